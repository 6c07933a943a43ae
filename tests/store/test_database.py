"""One SQLite file as it lies on the disk."""

from pathlib import Path

from memd.store.database import Database
from memd.store.database_files import size
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
