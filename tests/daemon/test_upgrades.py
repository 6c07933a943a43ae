"""A store of an earlier memd is brought up to date behind a copy, which goes when what came of it is proven."""

import asyncio
import encodings.utf_8_sig
import encodings.utf_16_le  # noqa: F401 - the other user may not read the interpreter's files
import hashlib
import importlib.readers  # noqa: F401 - likewise
import os
import shutil
import stat
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import apsw
import msgspec
import pytest
import structlog

from memd.runtime import logs
from memd.store import meta
from memd.store.migrations import KEPT_S, newest
from memd_client import AsyncClient, RequestFailed
from tests.daemon.disk import SmallDisk
from tests.daemon.inprocess import running
from tests.daemon.trouble import bugs, comes_true
from tests.fakes import HashingProvider
from tests.otheruser import as_other_user, shared_directory
from tests.store.golden.read import DIRECTORY, FILES, QUESTIONS, WORKSPACE, unpack
from tests.store.older import run, schema_of

# Less than an index takes, and more than SQLite needs to open one.
LITTLE_ROOM = 'cat /dev/zero > "$STATE/filler" 2> /dev/null; truncate -s -900K "$STATE/filler"'
OLDEST = DIRECTORY / "schema-1-2"
SCHEMAS = dict(zip(FILES, (newest("index"), newest("embeddings")), strict=True))


def installed(home: Path) -> Path:
    """A workspace with stores of the first schemas; the state directory."""
    shutil.copytree(WORKSPACE, home / "workspace", dirs_exist_ok=True)
    state = home / "state"
    unpack(OLDEST, state)
    run(state / "embeddings.sqlite", "DROP TABLE documents; DROP TABLE jobs; DROP TABLE job_texts")
    run(state / "embeddings.sqlite", "PRAGMA user_version = 1")
    cut_as_today(state / "agents/main.sqlite")
    return state


def cut_as_today(index: Path) -> None:
    """Have an index count as cut by today's rules: it would be built anew else, and its copy would go with that."""
    connection = apsw.Connection(str(index))
    stored = meta.get_fingerprint(connection)
    assert stored is not None
    chunking = f"{meta.CHUNKING}:{stored.chunking.partition(':')[2]}"
    today = msgspec.structs.replace(stored, chunking=chunking, tokenizer=str(meta.TOKENIZER))
    meta.put_fingerprint(connection, today)
    connection.close()


def copies_in(state: Path) -> dict[str, Path]:
    """The copies that are kept, by the name of their store."""
    return {
        name: state / f"{name}.before-schema-{schema}"
        for name, schema in SCHEMAS.items()
        if (state / f"{name}.before-schema-{schema}").exists()
    }


def digest(file: Path) -> str:
    """Of all that a database says; SQLite counts in its header how often it was written."""
    return hashlib.sha256(file.read_bytes()[100:]).hexdigest()


async def finds_all(client: AsyncClient) -> bool:
    assert (await client.sync()).vectors == "complete"
    found = {question: await client.search(question) for question in QUESTIONS}
    return {question: one.results[0].path for question, one in found.items()} == QUESTIONS


async def test_a_copy_is_kept_for_a_day(home: Path) -> None:
    """For its owner alone, over restarts; then it goes after the first whole pass. Nothing is embedded again."""
    state, provider = installed(home), HashingProvider()
    before = {name: digest(state / name) for name in FILES}
    kept: list[dict[str, tuple[int, int]]] = []
    with structlog.testing.capture_logs() as told:
        for _ in range(2):
            async with running(home, provider) as client:
                assert await finds_all(client)
            found = copies_in(state)
            kept.append({name: (path.stat().st_ino, path.stat().st_mtime_ns) for name, path in found.items()})
        assert kept[0] == kept[1]
        assert kept[0].keys() == set(FILES)
        for name, path in copies_in(state).items():
            assert digest(path) == before[name]
            assert stat.S_IMODE(path.stat().st_mode) == 0o600
            assert (schema_of(path), schema_of(state / name)) == (1, SCHEMAS[name])
            long_ago = time.time() - KEPT_S - 60
            os.utime(path, (long_ago, long_ago))
        async with running(home, provider) as client:

            async def are_gone() -> bool:
                await client.status()
                return not copies_in(state)

            await comes_true(are_gone)
            assert await finds_all(client)
    assert provider.requests == []
    assert bugs(told) == []
    wanted = {"store.copied", "store.brought_up_to_date", "store.copy_removed", "rebuild.started"}
    events = [event["event"] for event in told if event["event"] in wanted]
    one = ["store.copied", "store.brought_up_to_date"]
    assert events == [*one, *one, "store.copy_removed", "store.copy_removed"]


async def test_an_index_that_is_built_anew_keeps_no_copy(home: Path) -> None:
    """Other rules may be the reason: nothing of the old text is left. The cache holds no text, and keeps its own."""
    state = installed(home)
    async with running(home, settings="chunking = { tokens = 200, overlap = 20 }") as client:

        async def is_gone() -> bool:
            await client.status()
            return copies_in(state).keys() == {"embeddings.sqlite"}

        await comes_true(is_gone)
        assert await finds_all(client)


async def test_an_index_that_cannot_be_brought_up_to_date_is_made_anew(home: Path) -> None:
    """It is set aside by name, the agent serves, and not one text is embedded again."""
    state, provider = installed(home), HashingProvider()
    run(state / "agents/main.sqlite", "CREATE TABLE sessions (somebody TEXT)")
    async with running(home, provider) as client:
        assert await finds_all(client)
        status = (await client.status()).agents["main"]
        assert status.damaged == [str(state / "agents/main.sqlite.damaged-1")]
        assert status.store.ok
    assert copies_in(state).keys() == set(FILES)
    assert provider.requests == []


@pytest.fixture
def small(home: Path) -> Iterator[SmallDisk]:
    """A daemon on a small disk that holds the stores of earlier days."""
    daemon = SmallDisk(home)
    installed(home)
    daemon.state.rename(daemon.kept)
    yield daemon
    daemon.__exit__(None, None, None)


def test_without_room_for_a_copy_nothing_is_touched(small: SmallDisk) -> None:
    """The agent is left out with the reason, and serves once there is room; what has room is brought up to date."""
    index, cache = FILES
    before = digest(small.kept / index)
    with small.start(environ={"BEFORE": LITTLE_ROOM, "STATE": str(small.state)}), small.client() as client:
        with pytest.raises(RequestFailed) as failed:
            client.search("database")
        assert failed.value.code == "unavailable"
        for reason in (client.status().agents["main"].store.reason or "", str(failed.value)):
            assert all(word in reason for word in ("no room is left", "copy", "by itself"))
        assert digest(small.seen / index) == before
        assert not list((small.seen / "agents").glob("*before-schema*"))
        assert copies_in(small.seen).keys() == {cache}
        small.filler.unlink()
        assert client.sync().vectors == "complete"
        assert client.search("which database did we pick?").results[0].path == "MEMORY.md"
        assert copies_in(small.seen).keys() == {index, cache}


async def live_read_only(home: Path) -> list[str]:
    """What a daemon says of older stores that its user may not write, and what it does when that is mended."""
    state = installed(home)
    (state / "memd.lock").touch(0o600)
    before = {path: digest(path) for path in state.rglob("*.sqlite")}
    for path in (*before, state / "agents", state):
        path.chmod(0o500 if path.is_dir() else 0o400)
    async with running(home) as client:
        status = await client.status()
        told = [str("read-only" in (status.agents["main"].store.reason or "")), str(status.cache.ok)]
        told.append(str({path: digest(path) for path in state.rglob("*.sqlite*")} == before))
        for path in (state, state / "agents", *before):
            path.chmod(0o700 if path.is_dir() else 0o600)
        await client.sync()
        told += [str(await finds_all(client)), str("agents/main.sqlite" in copies_in(state))]
    return told


def read_only(home: str) -> list[str]:
    """As live_read_only, for another user."""
    logs.configure("info", sys.stderr, terminal=False, color=False)
    return asyncio.run(live_read_only(Path(home)))


def test_where_nothing_may_be_written_an_older_store_is_left_alone() -> None:
    """It is neither changed nor copied, and brought up to date after a chmod."""
    with shared_directory() as home:
        told = as_other_user("tests.daemon.test_upgrades", "read_only", str(home))
    assert told == ["True", "False", "True", "True", "True"]


async def test_who_goes_back_to_an_earlier_memd_is_told_how(home: Path) -> None:
    """The refusal names the copy, and what it says brings the index back."""
    state = installed(home)
    async with running(home) as client:
        await client.sync()
    file = state / "agents/main.sqlite"
    kept = copies_in(state)["agents/main.sqlite"]
    run(file, "PRAGMA user_version = 99")
    async with running(home) as client:
        status = await client.status()
        reason = status.agents["main"].store.reason or ""
        assert all(word in reason for word in ("newer memd", f"mv {kept} {file}", "stop memd"))
        assert status.cache.ok
    kept.replace(file)
    async with running(home) as client:
        assert await finds_all(client)
    assert schema_of(file) == newest("index")
