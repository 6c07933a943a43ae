"""A disk that does not keep what it was given is not believed when it says next that it does."""

import asyncio
import os
import queue
import threading
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from memd.domain_types import TextHash
from memd.store import connections, database_files, recovery, write_ahead_log
from memd.store import database as databases
from memd.store.database import Database
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.int16_vectors import rounded
from tests.bounds import shipped
from tests.faults.vfs import Act, Operation, Read, Sync, between

SPACE = ("hashing", "words", "1")


class Stammering:
    """A disk that cannot read the next thing it is asked for, so many times."""

    def __init__(self) -> None:
        self.left = 0

    def __call__(self, operation: Operation, act: Act) -> bytes:
        if self.left and isinstance(operation, Read):
            self.left -= 1
            raise apsw.exception_for(apsw.SQLITE_IOERR_READ)
        return act(operation)


class Forgetful:
    """A disk whose syncs fail while it is told so; it counts them."""

    def __init__(self) -> None:
        self.fails = False
        self.syncs = 0

    def __call__(self, operation: Operation, act: Act) -> bytes:
        self.syncs += isinstance(operation, Sync)
        if self.fails and isinstance(operation, Sync):
            raise apsw.exception_for(apsw.SQLITE_IOERR_FSYNC)
        return act(operation)


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[tuple[Database, Forgetful]]:
    """A database on such a disk."""
    disk = Forgetful()
    with between(disk):
        database = Database(file, "embeddings")
        await database.open()
        try:
            yield database, disk
        finally:
            disk.fails = False
            await database.close()


def fill(connection: apsw.Connection, pages: int) -> None:
    """Write so much that the log is that long."""
    connection.execute(
        "INSERT OR REPLACE INTO cache (provider, model, provider_key, hash, vector, used_at)"
        " VALUES ('a', 'b', 'c', randomblob(32), zeroblob(?), 0)",
        (4096 * pages,),
    )


async def test_a_long_log_is_brought_into_the_file(tmp_path: Path) -> None:
    """Once it has so many pages, and by the write that makes it so long."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        before = disk.syncs
        await database.write(fill, 10)
        assert disk.syncs == before
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert disk.syncs >= before + 2
        assert (tmp_path / "e.sqlite").stat().st_size > 4096 * write_ahead_log.CHECKPOINT_PAGES


async def test_only_a_write_that_has_to_last_is_synced_at_once(tmp_path: Path) -> None:
    """The writes after it are as quick as those before it."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        await database.write(fill, 1)
        before = disk.syncs
        await database.write_lasting(fill, 1)
        lasting = disk.syncs
        assert lasting > before
        await database.write(fill, 1)
        assert disk.syncs == lasting


async def test_a_log_that_cannot_be_brought_into_the_file_is_noticed(tmp_path: Path) -> None:
    """What was written counts as written, not each write tries again, and the file is not relied on any more."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        disk.fails = True
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert database.unsynced is not None
        before = disk.syncs
        for _ in range(10):
            await database.write(fill, 10)
        assert disk.syncs == before
        with pytest.raises(StoreUnavailable):
            await database.raise_if_unsynced()
        disk.fails = False
        with pytest.raises(StoreDamaged, match="may be lost"):
            await database.raise_if_unsynced()
        await database.raise_if_unsynced()


async def test_what_was_paid_for_is_written_once_more(tmp_path: Path) -> None:
    """After a sync that failed the cache is copied to another file as soon as the disk keeps it, and nothing is lost."""
    file, disk = tmp_path / "e.sqlite", Forgetful()
    vectors = rounded({TextHash(bytes([number]) * 32): bytes([number]) * 1536 for number in range(50)})
    with between(disk):
        cache = EmbeddingStore(file)
        await cache.open()
        await cache.put(SPACE, vectors, 1.0)
        before = file.stat().st_ino
        disk.fails = True
        await cache.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        await cache.put(SPACE, dict(list(vectors.items())[:1]), 2.0)
        assert "did not keep" in str(cache.failure)
        assert file.stat().st_ino == before
        assert (await cache.look_up(SPACE, list(vectors), 3.0)).vectors == vectors
        disk.fails = False
        await cache.put(SPACE, dict(list(vectors.items())[:1]), 4.0)
        assert str(cache.failure) == "None"
        assert file.stat().st_ino != before
        assert (await cache.look_up(SPACE, list(vectors), 5.0)).vectors == vectors
        await cache.close()
    assert [Path(entry).name for entry in os.scandir(tmp_path)] == ["e.sqlite"]


async def test_another_file_is_relied_on(tmp_path: Path) -> None:
    """What a disk did not keep of one that was set aside is no reason to write its successor anew."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        disk.fails = True
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert database.unsynced is not None
        disk.fails = False
        await database.exchange(lambda: recovery.quarantine(database.file, "damaged"))
        await database.raise_if_unsynced()


@pytest.mark.parametrize(("times", "lost"), [(1, False), (10, True)])
async def test_what_was_paid_for_is_not_given_up_for_a_moment_of_trouble(
    tmp_path: Path, times: int, *, lost: bool
) -> None:
    """What cannot be read is read again before the file counts as damaged."""
    file, disk, text = tmp_path / "e.sqlite", Stammering(), TextHash(bytes(32))
    with between(disk):
        for is_again in (False, True):
            cache = EmbeddingStore(file)
            await cache.open()
            if not is_again:
                await cache.put(SPACE, {text: bytes(200_000)}, 1.0)
                await cache.close()
        disk.left = times
        found = (await cache.look_up(SPACE, [text], 2.0)).vectors
        assert (found == {}, bool(cache.damaged_files())) == (lost, lost)
        await cache.close()


async def test_a_log_stays_short_though_somebody_always_reads(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """SQLite alone begins a log anew only in a moment without a reader; here there is never one by itself."""
    monkeypatch.setattr(write_ahead_log, "CHECKPOINT_PAGES", 50)
    monkeypatch.setattr(write_ahead_log, "PAUSE_S", 2.0)
    file, is_over, reads = tmp_path / "e.sqlite", False, 0

    def slowly(connection: apsw.Connection) -> None:
        connection.execute("SELECT count(*) FROM cache").fetchall()
        time.sleep(0.005)

    async with opened(file) as (database, _):

        async def read() -> None:
            nonlocal reads
            while not is_over:
                await database.read(slowly)
                reads += 1

        readers = [asyncio.create_task(read()) for _ in range(2 * databases.READERS)]
        longest = 0
        for _ in range(150):
            await database.write(fill, 10)
            await database.write(lambda writer: writer.execute("DELETE FROM cache"))
            longest = max(longest, database_files.size(Path(f"{file}-wal")))
        is_over = True
        await asyncio.gather(*readers)
    assert reads > 10
    assert longest < 4120 * 50 * write_ahead_log.LONG_WAL * 3


@pytest.mark.parametrize("times", [1, 2])
async def test_readers_are_waited_for_the_longer_the_log_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, times: int
) -> None:
    """Twice as long for each time that it has the length at which they give way; then the write ends all the same."""
    monkeypatch.setattr(write_ahead_log, "CHECKPOINT_PAGES", 20)
    timeout_s: list[float] = []

    class Waited(queue.SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            timeout_s.extend([] if timeout is None else [timeout])
            return super().get(block, timeout)

    monkeypatch.setattr(databases, "queue", SimpleNamespace(SimpleQueue=Waited, Empty=queue.Empty))
    monkeypatch.setattr(databases, "time", SimpleNamespace(monotonic=lambda: 7.0))
    reading, is_over = threading.Barrier(databases.READERS + 1), threading.Event()

    def hold(connection: apsw.Connection) -> None:
        connection.execute("SELECT count(*) FROM cache").fetchall()
        reading.wait(60)
        is_over.wait(60)

    async with opened(tmp_path / "e.sqlite") as (database, _):
        readers = [asyncio.create_task(database.read(hold)) for _ in range(databases.READERS)]
        await asyncio.to_thread(reading.wait, 60)
        try:
            await database.write(fill, times * write_ahead_log.LONG_WAL * 20)
        finally:
            is_over.set()
        await asyncio.gather(*readers)
    assert timeout_s == [pytest.approx(shipped("memd.store.write_ahead_log.PAUSE_S") * 2**times)]


async def test_a_log_is_not_emptied_under_a_reader(tmp_path: Path) -> None:
    """It is waited for as long as no search notices, and other writers for as long as before."""
    file = tmp_path / "e.sqlite"
    async with opened(file) as (database, _):
        await database.write(fill, 10)
        reader = apsw.Connection(str(file))
        reader.execute("BEGIN")
        reader.execute("SELECT count(*) FROM cache").fetchall()
        patiences_ms: list[int] = []

        def tell_patience(writer: apsw.Cursor, sql: str, _: object) -> bool:
            if "wal_checkpoint" in sql:
                patiences_ms.append(writer.connection.pragma("busy_timeout"))
            return True

        await database.write(lambda writer: writer.set_exec_trace(tell_patience))
        assert not await database.truncate_wal()
        await database.write(lambda writer: writer.set_exec_trace(None))
        reader.execute("COMMIT")
        assert await database.truncate_wal()
        reader.close()
        patience_ms = await database.write(lambda writer: writer.pragma("busy_timeout"))
    assert patiences_ms == [shipped("memd.store.write_ahead_log.TRUNCATE_WAIT_MS")]
    assert patience_ms == connections.BUSY_TIMEOUT_MS
