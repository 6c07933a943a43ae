"""A disk whose syncs fail when a test says so, and a database on it."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import apsw

from memd.store.database import Database
from tests.faults.vfs import Act, Operation, Sync, between


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
