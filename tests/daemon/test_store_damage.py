"""A store that is damaged is set aside, made anew from notes and cache, and named (invariant 6)."""

import random
from collections.abc import Callable, Iterator
from pathlib import Path

import apsw
import pytest
import structlog

from memd_client import AsyncClient
from memd_client.messages import AgentStatus
from tests.daemon.contents import Content, contents, differences
from tests.daemon.disk import FaultyDisk, fails
from tests.daemon.inprocess import running, write
from tests.daemon.trouble import BLUE, RED, bugs, comes_true, finds, harm_store, is_well, many_notes
from tests.fakes import HashingProvider

PAGE = 4096
NOTES = 15

Harm = Callable[[Path], None]


def _bytes_at(file: Path, offset: int, data: bytes) -> None:
    with file.open("r+b") as opened:
        opened.seek(offset)
        opened.write(data)


def _root_of(file: Path, table: str) -> int:
    """The number of the page that a table begins on."""
    connection = apsw.Connection(str(file))
    connection.set_busy_timeout(10_000)
    try:
        number: int = connection.execute("SELECT rootpage FROM sqlite_schema WHERE name = ?", (table,)).get
    finally:
        connection.close()
    return number


def garbage_header(file: Path) -> None:
    _bytes_at(file, 0, random.Random(1).randbytes(100))


def truncated(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2 + 100])


def zeroed_page(file: Path) -> None:
    _bytes_at(file, (_root_of(file, "chunks") - 1) * PAGE, bytes(PAGE))


def garbage_page(file: Path) -> None:
    _bytes_at(file, (_root_of(file, "chunks") - 1) * PAGE, random.Random(2).randbytes(PAGE))


def directory(file: Path) -> None:
    file.unlink()
    file.mkdir()
    (file / "somebody's").write_text("not memd's to delete")


def dropped_table(file: Path) -> None:
    harm_store(file, "DROP TABLE chunks")


def wrong_type(file: Path) -> None:
    """A sound database with bytes where a text should be."""
    harm_store(file, "UPDATE chunks SET text = x'07'")


def zeroed_keywords(file: Path) -> None:
    """What SQLite itself finds nothing wrong with."""
    harm_store(file, "UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")


def empty(file: Path) -> None:
    file.write_bytes(b"")


def garbage_log(file: Path) -> None:
    Path(f"{file}-wal").write_bytes(random.Random(4).randbytes(50_000))


def directory_for_log(file: Path) -> None:
    log = Path(f"{file}-wal")
    log.unlink(missing_ok=True)
    log.mkdir()


def deleted(file: Path) -> None:
    file.unlink()


def replaced(file: Path) -> None:
    """By another database, as an editor or a tool for synchronising would do it."""
    other = file.with_name("other")
    other.write_bytes(b"SQLite format 3\0" + random.Random(5).randbytes(9000))
    other.rename(file)


def leave_log(file: Path) -> None:
    """What a daemon that is killed leaves beside its index."""
    left_over = Path(f"{file}-wal")
    connection = apsw.Connection(str(file))
    connection.set_busy_timeout(10_000)
    connection.execute("CREATE TABLE other (x)")
    frames = left_over.read_bytes()
    connection.close()
    left_over.write_bytes(frames)
    assert frames


def in_directory(file: Path) -> set[str]:
    """The names beside a file."""
    return {path.name for path in file.parent.iterdir()}


async def indexed(home: Path, provider: HashingProvider) -> dict[str, list[Content]]:
    """Let a daemon index some notes, and end in order; what its index holds."""
    many_notes(home / "workspace", NOTES)
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "complete"
    return contents(index_of(home))


def index_of(home: Path) -> Path:
    return home / "state/agents/main.sqlite"


def texts(provider: HashingProvider) -> list[str]:
    """All that was embedded."""
    return [text for request in provider.requests for text in request]


async def main_status(client: AsyncClient) -> AgentStatus:
    return (await client.status()).agents["main"]


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("harm", "is_kept"),
    [
        (garbage_header, True),
        (truncated, True),
        (zeroed_page, True),
        (garbage_page, True),
        (directory, True),
        (directory_for_log, True),
        (dropped_table, True),
        (wrong_type, True),
        (zeroed_keywords, True),
        (empty, False),
        (garbage_log, False),
        (deleted, False),
    ],
)
async def test_an_index_that_was_damaged_between_two_lives_is_made_anew(
    home: Path, harm: Harm, is_kept: bool
) -> None:
    """It is set aside under a name that status tells, equals what it was, and not one text is embedded again."""
    before = await indexed(home, HashingProvider())
    harm(index_of(home))
    provider = HashingProvider()
    with structlog.testing.capture_logs() as logs:
        async with running(home, provider) as client:
            await comes_true(lambda: finds(client, "lighthouse painted red", "memory/a.md"))
            await comes_true(lambda: is_well(client))
            assert (await client.sync()).vectors == "complete"
            damaged = (await main_status(client)).damaged
    assert damaged == ([f"{index_of(home)}.damaged-1"] if is_kept else [])
    assert ("main.sqlite.damaged-1" in in_directory(index_of(home))) == is_kept
    assert ("store.set_aside" in [event["event"] for event in logs]) == is_kept
    assert differences(before, contents(index_of(home))) == []
    assert provider.requests == []
    assert bugs(logs) == []


@pytest.mark.rows(1)
@pytest.mark.parametrize("harm", [deleted, replaced, directory, dropped_table, wrong_type, zeroed_keywords])
async def test_an_index_that_is_damaged_in_use_is_made_anew(home: Path, harm: Harm) -> None:
    """While the daemon runs: soon all is as it was, with what was written meanwhile, and only that was embedded."""
    before = await indexed(home, HashingProvider())
    provider = HashingProvider()
    with structlog.testing.capture_logs() as logs:
        async with running(home, provider) as client:
            await client.sync()
            harm(index_of(home))
            write(home, "memory/b.md", BLUE)
            await comes_true(lambda: finds(client, "chapel blue", "memory/b.md"))
            await comes_true(lambda: finds(client, "lighthouse painted red", "memory/a.md"))
            await comes_true(lambda: is_well(client))
            assert (await client.sync()).vectors == "complete"
    after = contents(index_of(home))
    del after["memory/b.md"]
    assert differences(before, after) == []
    assert len(texts(provider)) == 1
    assert bugs(logs) == []


@pytest.fixture
def disk() -> Iterator[FaultyDisk]:
    with FaultyDisk.inserted() as inserted:
        yield inserted


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    "code",
    [apsw.SQLITE_IOERR_READ, apsw.SQLITE_IOERR_SHORT_READ, apsw.SQLITE_CORRUPT, apsw.SQLITE_NOTADB],
)
async def test_a_part_of_the_disk_that_cannot_be_read_is_left(
    home: Path, disk: FaultyDisk, code: int
) -> None:
    """Where pages of the index cannot be read any more, another file takes its place, and nothing is embedded again."""
    await indexed(home, HashingProvider())
    provider = HashingProvider()
    async with running(home, provider) as client:
        await client.sync()
        # Pages that were read before are looked at again once another connection has written.
        harm_store(index_of(home), "UPDATE files SET mtime_ns = mtime_ns")
        disk.faults["main.sqlite", "read"] = fails(code)

        async def is_set_aside() -> bool:
            await finds(client, "lighthouse")
            return bool((await main_status(client)).damaged)

        await comes_true(is_set_aside)
        disk.faults.clear()
        await comes_true(lambda: is_well(client))
        assert (await client.sync()).vectors == "complete"
    assert provider.requests == []


async def test_damage_that_nobody_met_is_found_after_a_kill(home: Path) -> None:
    """A log that was left over tells of an end without order: the index is looked through, without any search."""
    await indexed(home, HashingProvider())
    zeroed_keywords(index_of(home))
    leave_log(index_of(home))
    async with running(home) as client:

        async def is_mended() -> bool:
            status = await main_status(client)
            return bool(status.damaged) and status.rebuild is None

        await comes_true(is_mended)


async def test_only_the_newest_two_damaged_files_are_kept(home: Path) -> None:
    """However often a disk fails, it is not filled with what failed."""
    write(home, "memory/a.md", RED)
    for _ in range(4):
        async with running(home) as client:
            await client.sync()
            await comes_true(lambda: is_well(client))
            damaged = (await main_status(client)).damaged
        garbage_header(index_of(home))
    assert [Path(path).name for path in damaged] == ["main.sqlite.damaged-3", "main.sqlite.damaged-2"]
    names = sorted(path.name for path in index_of(home).parent.iterdir())
    assert names == ["main.sqlite", "main.sqlite.damaged-2", "main.sqlite.damaged-3"]


@pytest.mark.long
async def test_what_is_missing_while_an_index_is_filled_anew_is_told(home: Path) -> None:
    """Until all notes are in it again, replies and status say that the index was damaged."""
    await indexed(home, HashingProvider())
    many_notes(home / "workspace", 400)
    garbage_header(index_of(home))
    async with running(home, settings="sync = { wait_ms = 0 }") as client:
        found = await client.search("lighthouse")
        assert [one.part for one in found.degraded if "damaged" in one.reason] == ["rebuild"]
        assert "damaged" in ((await main_status(client)).rebuild or "")
        await client.sync()
        assert (await main_status(client)).rebuild is None
        assert (await client.search("lighthouse")).degraded == []


# --- the cache


def cached(home: Path) -> int:
    """How many vectors the cache holds."""
    connection = apsw.Connection(str(home / "state/embeddings.sqlite"))
    connection.set_busy_timeout(10_000)
    try:
        count: int = connection.execute("SELECT count(*) FROM cache").get
    finally:
        connection.close()
    return count


def dropped_cache(file: Path) -> None:
    harm_store(file, "DROP TABLE cache")


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    "harm", [garbage_header, truncated, directory, directory_for_log, dropped_cache, empty, deleted]
)
async def test_a_cache_that_was_damaged_between_two_lives_is_filled_from_the_indexes(
    home: Path, harm: Harm
) -> None:
    """The index stays as it is, the vectors are in the cache again, and a rebuild embeds nothing."""
    await indexed(home, HashingProvider())
    before = cached(home)
    identity = index_of(home).stat().st_ino
    harm(home / "state/embeddings.sqlite")
    provider = HashingProvider()
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "complete"
        assert await is_well(client)
        await client.reindex()
        await comes_true(lambda: is_well(client))
        assert (await client.sync()).vectors == "complete"
        status = await client.status()
        assert status.cache.ok
        assert len(status.damaged) == (harm not in {empty, deleted})
        assert status.agents["main"].damaged == []
    assert provider.requests == []
    assert index_of(home).stat().st_ino == identity
    assert cached(home) == before


@pytest.mark.rows(1)
@pytest.mark.parametrize("harm", [deleted, replaced, dropped_cache])
async def test_a_cache_that_is_damaged_in_use_is_filled_from_the_indexes(home: Path, harm: Harm) -> None:
    """The next text that is embedded meets the damage; then the cache has that and all the others."""
    await indexed(home, HashingProvider())
    before = cached(home)
    provider = HashingProvider()
    async with running(home, provider) as client:
        await client.sync()
        harm(home / "state/embeddings.sqlite")
        write(home, "memory/b.md", BLUE)
        assert (await client.sync()).vectors == "complete"

        async def is_filled() -> bool:
            return (await client.status()).cache.ok and cached(home) == before + 1

        await comes_true(is_filled)
        await client.reindex()
        await comes_true(lambda: is_well(client))
        assert (await client.sync()).vectors == "complete"
        assert (await client.status()).cache.ok
    assert len(texts(provider)) == 1


@pytest.mark.rows(1)
@pytest.mark.parametrize("code", [apsw.SQLITE_FULL, apsw.SQLITE_READONLY, apsw.SQLITE_IOERR_WRITE])
async def test_without_a_cache_vectors_are_made_and_kept(home: Path, disk: FaultyDisk, code: int) -> None:
    """What is embedded while the cache cannot be written is found, embedded once, and in the cache later."""
    await indexed(home, HashingProvider())
    before = cached(home)
    provider = HashingProvider()
    async with running(home, provider) as client:
        await client.sync()
        disk.faults["embeddings.sqlite-wal", "write"] = fails(code)
        write(home, "memory/b.md", BLUE)
        assert (await client.sync()).vectors == "complete"
        assert not (await client.status()).cache.ok
        assert (await client.search("chapel blue")).mode == "hybrid"
        await client.reindex()
        await comes_true(lambda: is_well(client))
        disk.faults.clear()
        write(home, "memory/c.md", "Kettles whistle.\n")
        assert (await client.sync()).vectors == "complete"
        assert (await client.status()).cache.ok
    assert len(texts(provider)) == 2
    assert cached(home) == before + 2
