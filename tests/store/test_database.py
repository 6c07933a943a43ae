"""One SQLite file as it lies on the disk."""

import errno
import os
from pathlib import Path

import pytest

from memd.store.database import Database
from memd.store.database_files import identity, size
from memd.store.errors import StoreUnavailable
from tests.bounds import shipped


async def test_a_log_that_was_longer_is_cut_when_it_is_begun_anew(tmp_path: Path) -> None:
    """What one large write has taken of the disk is not kept for ever."""
    kept = shipped("memd.store.database.LOG_KEPT_BYTES")
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
