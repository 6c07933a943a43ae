"""One SQLite file as it lies on the disk."""

import asyncio
import errno
import os
import shutil
import stat
import time
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import NoReturn

import apsw
import pytest

from memd.runtime.threads import NoThread, Threads
from memd.store import migrations, recovery
from memd.store.database import Database
from memd.store.database_files import identity, size
from memd.store.errors import StoreDamaged, StoreNewer, StoreRefused, StoreUnavailable
from tests.bounds import shipped


async def test_a_log_that_was_longer_is_cut_when_it_is_begun_anew(tmp_path: Path) -> None:
    """What one large write has taken of the disk is not kept for ever."""
    kept = shipped("memd.store.write_ahead_log.WAL_KEPT_BYTES")
    database = Database(tmp_path / "main.sqlite", "index")
    log = Path(f"{database.file}-wal")
    await database.open()
    await database.write(lambda writer: writer.execute("CREATE TABLE large (content)"))
    await database.write(lambda writer: writer.execute("INSERT INTO large VALUES (zeroblob(?))", (kept,)))
    assert size(log) > kept
    await database.checkpoint(wait=False)
    await database.write(lambda writer: writer.execute("INSERT INTO large VALUES (1)"))
    assert size(log) == kept
    await database.close()


async def test_files_that_cannot_be_moved_stay_as_they_are_and_are_opened_again(tmp_path: Path) -> None:
    """Whoever wanted to exchange them is told why; what was written is there."""
    database = Database(tmp_path / "main.sqlite", "index")
    await database.open()
    await database.write(lambda writer: writer.execute("CREATE TABLE kept (content)"))
    before = identity(database.file)

    def swap() -> None:
        raise OSError(errno.EROFS, os.strerror(errno.EROFS))

    with pytest.raises(StoreUnavailable, match="cannot be set aside: Read-only file system"):
        await database.exchange(swap)
    assert identity(database.file) == before
    await database.write(lambda writer: writer.execute("INSERT INTO kept VALUES (1)"))
    assert await database.read(lambda reader: reader.execute("SELECT * FROM kept").fetchall()) == [(1,)]
    await database.close()


@pytest.fixture
async def database(tmp_path: Path) -> AsyncIterator[Database]:
    """An open one, with a table."""
    made = Database(tmp_path / "main.sqlite", "index")
    await made.open()
    await made.write(lambda writer: writer.execute("CREATE TABLE kept (content)"))
    yield made
    await made.close()


def insert(connection: apsw.Connection) -> None:
    connection.execute("INSERT INTO kept VALUES (1)")


def refusing(failure: Exception) -> Callable[..., NoReturn]:
    def refuse(*_: object, **__: object) -> NoReturn:
        raise failure

    return refuse


@pytest.mark.parametrize("failure", [StoreRefused("other memd"), StoreUnavailable("no descriptors")])
@pytest.mark.parametrize("schema", [0, -1])
async def test_what_cannot_be_written_is_read_if_it_is_of_this_schema(
    database: Database, monkeypatch: pytest.MonkeyPatch, failure: StoreUnavailable, schema: int
) -> None:
    """Else, and where it was refused, it is told why it cannot be written."""
    version = migrations.newest("index") + schema
    await database.write(lambda writer: writer.execute(f"PRAGMA user_version = {version}"))
    await database.close()
    again = Database(database.file, "index")
    monkeypatch.setattr(again, "_open_writer", refusing(failure))
    if schema or isinstance(failure, StoreRefused):
        with pytest.raises(StoreUnavailable, match=str(failure)):
            await again.open()
    else:
        await again.open()
        assert again.read_only == str(failure)
        assert await again.read(lambda reader: reader.execute("SELECT * FROM kept").fetchall()) == []
        with pytest.raises(StoreUnavailable, match=str(failure)):
            await again.write(insert)
    await again.close()


async def test_a_disk_that_does_not_tell_its_room_is_written_when_it_does(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    with monkeypatch.context() as patched:
        patched.setattr(shutil, "disk_usage", refusing(OSError(errno.EIO, os.strerror(errno.EIO))))
        with pytest.raises(StoreUnavailable, match=r"main\.sqlite: Input/output error"):
            await database.write_more(1, insert)
    await database.write_more(1, insert)


async def test_a_file_that_is_gone_takes_no_write(database: Database) -> None:
    """What was written would be in no file."""
    await database.write(insert)
    database.file.unlink()
    with pytest.raises(StoreDamaged, match="deleted or replaced"):
        await database.write(insert)


async def test_a_file_that_a_newer_memd_has_taken_over_meanwhile_is_left_alone(database: Database) -> None:
    """The program that may read it again is told, and the file is not damaged."""

    def newer() -> None:
        writer = apsw.Connection(str(database.file))
        writer.execute(f"PRAGMA user_version = {migrations.newest('index') + 1}")
        writer.close()

    with pytest.raises(StoreNewer):
        await database.exchange(newer)
    with pytest.raises(StoreUnavailable, match="newer memd"):
        await database.write(insert)


async def test_without_a_thread_nothing_is_done_and_all_is_closed_all_the_same(
    database: Database, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Closing needs none: the log is in the file afterwards."""
    await database.write(insert)
    with monkeypatch.context() as patched:
        patched.setattr(Threads, "run", refusing(NoThread("no thread can be started")))
        for work in (database.read, database.write):
            with pytest.raises(StoreUnavailable, match=r"main\.sqlite: no thread can be started"):
                await work(id)
        await database.close()
    assert [file.name for file in database.file.parent.iterdir()] == ["main.sqlite"]


async def test_a_log_takes_the_mode_of_its_file(database: Database, tmp_path: Path) -> None:
    """One that was made while the file might only be read would never be written again; whoever may not write stays so."""
    await database.write(insert)
    for mode, expected in ((0o600, 0o600), (0o400, 0o440)):
        directory = tmp_path / f"{mode:o}"
        directory.mkdir()
        for name in ("main.sqlite", "main.sqlite-wal"):
            shutil.copy(tmp_path / name, directory / name)
        copy, log = Database(directory / "main.sqlite", "index"), directory / "main.sqlite-wal"
        log.chmod(0o440)
        copy.file.chmod(mode)
        await copy.open()
        assert stat.S_IMODE(log.stat().st_mode) == expected
        await copy.close()


async def test_a_file_that_cannot_be_brought_back_is_told(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It may be another time: what is left of it is not written over by a new one."""
    cache = Database(tmp_path / "embeddings.sqlite", "embeddings", remakes=True)
    with monkeypatch.context() as patched:
        patched.setattr(recovery, "bring_back", refusing(OSError(errno.EROFS, os.strerror(errno.EROFS))))
        with pytest.raises(StoreUnavailable, match="cannot be made: Read-only file system"):
            await cache.open()
    assert identity(cache.file) is None
    await cache.open()
    await cache.close()


async def test_writes_are_one_after_the_other(database: Database) -> None:
    """Each is a transaction of its own, however long the one before it takes."""

    def slow(connection: apsw.Connection) -> None:
        insert(connection)
        time.sleep(0.01)

    await asyncio.gather(*(database.write(slow) for _ in range(4)))
    assert await database.read(lambda reader: reader.execute("SELECT count(*) FROM kept").get) == 4
