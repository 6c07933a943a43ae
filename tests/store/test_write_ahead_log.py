"""How long a write-ahead log gets, and when it is brought into its file."""

import asyncio
import queue
import threading
import time
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import pytest

from memd.store import connections, database_files, write_ahead_log
from memd.store import database as databases
from memd.store.database import Database
from tests.bounds import shipped
from tests.store.forgetful import fill, opened


async def test_a_long_log_is_brought_into_the_file(tmp_path: Path) -> None:
    """Once it has so many pages, and by the write that makes it so long."""
    async with opened(tmp_path / "e.sqlite") as (database, disk):
        before = disk.syncs
        await database.write(fill, 10)
        assert disk.syncs == before
        await database.write(fill, write_ahead_log.CHECKPOINT_PAGES)
        assert disk.syncs >= before + 2
        assert (tmp_path / "e.sqlite").stat().st_size > 4096 * write_ahead_log.CHECKPOINT_PAGES


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


async def test_emptying_the_log_takes_no_patience_from_writes(tmp_path: Path) -> None:
    """It waits a moment for whoever reads; a write afterwards waits as long as before for whoever writes."""
    database = Database(tmp_path / "e.sqlite", "embeddings")
    await database.open()

    def patience_ms(connection: apsw.Connection) -> int:
        return int(connection.pragma("busy_timeout"))

    assert await database.write(patience_ms) == connections.BUSY_TIMEOUT_MS
    await database.write(fill, 1)
    assert await database.truncate_wal()
    assert await database.write(patience_ms) == connections.BUSY_TIMEOUT_MS
    reader = apsw.Connection(str(database.file))
    reader.execute("BEGIN; SELECT count(*) FROM cache").fetchall()
    await database.write(fill, 1)
    assert not await database.truncate_wal()
    assert await database.write(patience_ms) == connections.BUSY_TIMEOUT_MS
    reader.close()
    await database.close()
