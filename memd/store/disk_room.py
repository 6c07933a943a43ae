"""Decides whether the disk has room for a write, and for a deletion afterwards."""

import shutil
from pathlib import Path

import apsw

from memd.store import database_files
from memd.store.errors import StoreUnavailable, full, mapped_errors

SPARED_BYTES = 8 << 20
"""Bytes of the disk that are left free: FTS5 may need as much for one merge."""
SPARED_SHARE = 8
"""On a small disk, this fraction of it is left free."""
WAL_GROWTH, FILE_GROWTH = 10, 4
"""Bytes by which the WAL and the file grow per byte added, including the keyword index."""


def require_room(writer: apsw.Connection, file: Path, added: int, *, wal_bytes: int, page_bytes: int) -> None:
    """Raise unless the disk has room for the data, for a checkpoint of the WAL, and for the pages that a deletion changes.

    Args:
        writer: A connection that may write.
        file: The database.
        added: The size in bytes of the texts and vectors to add, without indexes.
        wal_bytes: The length of the WAL after the last commit.
        page_bytes: The size of a page of the database.

    Raises:
        StoreFull: there is less room.
        StoreUnavailable, StoreDamaged: the WAL cannot be checkpointed.
    """
    free, spared = _free_and_spared(file)
    if free >= spared + wal_bytes + (WAL_GROWTH + FILE_GROWTH) * added:
        return
    with mapped_errors(file, writer):
        [(_, pages, copied)] = integers(writer, "PRAGMA wal_checkpoint(PASSIVE)")
        [(free_pages,)] = integers(writer, "PRAGMA freelist_count")
    # A WAL that is checkpointed completely is reused from its beginning, and free pages of the file are reused.
    reused_bytes = database_files.size(Path(f"{file}-wal")) if pages == copied else 0
    wanted = max(0, spared + WAL_GROWTH * added - reused_bytes) + max(
        0, spared + FILE_GROWTH * added - page_bytes * free_pages
    )
    free, _ = _free_and_spared(file)
    if free < page_bytes * (pages - copied) + wanted:
        raise full(file)


def _free_and_spared(file: Path) -> tuple[int, int]:
    """Return the free bytes of the disk, and how many of them must stay free."""
    try:
        disk = shutil.disk_usage(file.parent)
    except OSError as error:
        raise StoreUnavailable(f"{file}: {error.strerror}") from error
    return disk.free, min(SPARED_BYTES, disk.total // SPARED_SHARE)


def integers(connection: apsw.Connection, sql: str) -> list[tuple[int, ...]]:
    """Return rows of integers."""
    return connection.execute(sql).fetchall()  # type: ignore[return-value]  # apsw types a row as any tuple
