"""The stores with transcripts that earlier programs left are of use to this one."""

import shutil
from hashlib import sha256
from pathlib import Path

import apsw
import msgspec
import pytest

from memd.config.load import load
from memd.rebuild.fingerprint import wanted_fingerprint
from memd.sources.transcripts.read_position import decoded, encoded
from memd.store import meta, migrations
from memd_client import AsyncClient
from tests.daemon.contents import contents, differences
from tests.daemon.inprocess import configure, running
from tests.fakes import HashingProvider
from tests.fakes.homes import write
from tests.store.golden.read import FILES, REJECTED, TALKED, TRANSCRIPTS, WORKSPACE, settings, stores, unpack
from tests.store.golden.talk import MIDDLE, TOKEN

FERRY, TEA, LIGHT = (f"sessions/transcripts/{name}.jsonl" for name in ("ferry", "tea", "lighthouse"))
# What is asked, which source, what is found first, and what is shown there.
QUESTIONS = [
    ("which harbour did we pick for the walrus ferry?", "sessions", FERRY, "Lerwick"),
    ("who looks after buoy 20?", "sessions", FERRY, MIDDLE),
    ("how long does the oolong steep", "sessions", TEA, "Four minutes"),
    ("乌龙茶第二泡要多久", "sessions", TEA, "六分钟"),
    ("灯塔的钥匙放在哪里", "sessions", LIGHT, "蓝色抽屉"),
    ("我们选了哪个数据库?", "memory", "MEMORY.md", "PostgreSQL"),
    ("jitter", "memory", "memory/2026-02-09.md", "jitter"),
]


def installed(home: Path) -> Path:
    """The notes and transcripts as they were; where the state is kept."""
    home.mkdir(exist_ok=True)
    shutil.copytree(WORKSPACE, home / "workspace")
    shutil.copytree(TRANSCRIPTS, home / "transcripts")
    return home / "state"


def provider() -> HashingProvider:
    return HashingProvider(rejects=[REJECTED])


async def answers(client: AsyncClient) -> list[tuple[str, bool]]:
    """For each question the first hit, and whether what is wanted is shown there."""
    found = []
    for question, source, _, shown in QUESTIONS:
        [hit] = (await client.search(question, max_results=1, source=source)).results  # type: ignore[arg-type]  # a literal
        found.append((hit.path, shown in hit.snippet))
    return found


def at_home(home: Path) -> set[str]:
    """Have the store take the transcripts for those that it has read: they are on another disk, and these are other days.

    Returns:
        Those whose reading can go on: today's program has not given up how theirs was remembered.
    """
    followed: set[str] = set()
    configure(home, settings(home))
    wanted = wanted_fingerprint(load(home / "config.toml", {}, home).agents["main"], provider().identity)
    connection = apsw.Connection(str(home / "state" / "agents" / "main.sqlite"))
    rows: list[tuple[int, str, bytes]] = connection.execute(
        "SELECT files.id, path, progress FROM files JOIN sessions ON file_id = files.id"
    ).fetchall()  # type: ignore[assignment]  # apsw types a row as any tuple
    for file_id, path, raw in rows:
        [file] = (home / "transcripts").glob(f"{Path(path).stem}.*")
        status, progress = file.stat(), decoded(raw)
        connection.execute(
            "UPDATE files SET inode = ?, mtime_ns = ?, size = ? WHERE id = ?",
            (status.st_ino, status.st_mtime_ns, status.st_size, file_id),
        )
        if progress is not None:
            followed.add(path)
            moved = encoded(msgspec.structs.replace(progress, inode=status.st_ino))
            connection.execute("UPDATE sessions SET progress = ? WHERE file_id = ?", (moved, file_id))
    meta.put_fingerprint(connection, wanted)
    connection.close()
    return followed


def embedded(state: Path) -> set[bytes]:
    """The hashes of the texts that a store has embedded, or set aside."""
    connection = apsw.Connection(str(state / FILES[0]))
    rows: list[tuple[bytes]] = connection.execute("SELECT hash FROM chunks").fetchall()  # type: ignore[assignment]  # as above
    connection.close()
    return {found for (found,) in rows}


def test_the_store_of_this_schema_is_in_the_collection() -> None:
    """After a migration was added: python -m tests.store.golden.write."""
    name = f"schema-{migrations.newest('index')}-{migrations.newest('embeddings')}"
    assert stores(TALKED)[-1].name == name


@pytest.mark.parametrize("store", stores(TALKED), ids=lambda store: store.name)
async def test_transcripts_answer_as_before(home: Path, store: Path) -> None:
    """Whatever its schema: no text is embedded again, no secret is anywhere, and it becomes what a fresh index is."""
    state = installed(home)
    unpack(store, state)
    known = embedded(state)
    embedder = provider()
    async with running(home, embedder, settings=settings(home)) as client:
        assert (await client.sync(vectors=False)).files == 5
        status = (await client.status()).agents["main"]
        assert status.embedding is not None
        assert status.embedding.state == "paused"
        assert status.sessions is not None
        await client.embed("resume")
        assert (await client.sync()).vectors == "complete"
        assert await answers(client) == [(path, True) for _, _, path, _ in QUESTIONS]
    # Only chunks that today's program cuts otherwise.
    cut_anew = {sha256(text.encode()).digest() for request in embedder.requests for text in request}
    assert not cut_anew & known
    assert len(cut_anew) < len(known)
    for file in state.rglob("*"):
        assert file.is_dir() or TOKEN.encode()[4:] not in file.read_bytes()
    fresh = home / "fresh"
    installed(fresh)
    async with running(fresh, provider(), settings=settings(fresh)) as client:
        assert (await client.sync()).vectors == "complete"
        assert await answers(client) == [(path, True) for _, _, path, _ in QUESTIONS]
    index = Path(FILES[0])
    assert differences(contents(state / index), contents(fresh / "state" / index)) == []


@pytest.mark.parametrize("store", stores(TALKED), ids=lambda store: store.name)
async def test_a_transcript_that_has_grown_is_read_on(home: Path, store: Path) -> None:
    """From where that program left it: what stands before is not looked at, and only what is new is embedded."""
    unpack(store, installed(home))
    followed = at_home(home)
    ferry = home / "transcripts" / "ferry.jsonl"
    text = ferry.read_text(encoding="utf-8")
    assert text.count(MIDDLE) == 1
    # Of the same length, far from both ends: whoever reads from the beginning would find it.
    other = "a" * len(MIDDLE)
    with ferry.open("r+", encoding="utf-8") as opened:
        opened.write(text.replace(MIDDLE, other))
    last = msgspec.json.decode(text.splitlines()[-1])
    said = {"role": "user", "content": "The narwhal is fed at noon. 独角鲸中午喂食。"}
    write(
        ferry,
        {**last, "uuid": "f0000000-0000-4000-8000-000000000000", "parentUuid": last["uuid"], "message": said},
    )
    embedder = provider()
    async with running(home, embedder, settings=settings(home)) as client:
        await client.embed("resume")
        assert (await client.sync()).vectors == "complete"
        for question in ("narwhal", "独角鲸"):
            [hit] = (await client.search(question, max_results=1)).results
            assert (hit.path, "narwhal" in hit.snippet) == (FERRY, True)
        turns = (await client.get(FERRY, lines=10_000)).text
    assert (MIDDLE in turns, other in turns) == (FERRY in followed, FERRY not in followed)
    if FERRY in followed:
        embedded = [one for request in embedder.requests for one in request]
        assert 1 <= len(embedded) <= 2
        assert all("Lerwick" not in one for one in embedded)
