"""The write-ahead log (WAL) of a database: how long it is, and when its pages are copied into the file."""

from collections.abc import Callable
from contextlib import AbstractContextManager
from pathlib import Path

import apsw

from memd.store import connections
from memd.store.errors import StoreUnavailable, mapped_errors

WAL_KEPT_BYTES = 64 << 20  # the size to which a WAL is truncated when it restarts
TRUNCATE_WAIT_MS = 20  # the longest wait for readers when the WAL is truncated or restarted
PAGE = 4096  # bytes, SQLite's default page size; the unit in which WALs are measured
LONG_WAL = 4  # times CHECKPOINT_PAGES: from this length on, readers are paused to restart the WAL
PAUSE_S = 0.1  # the longest pause of readers; doubled for each LONG_WAL
# 16 MB of WAL. With SQLite's default of 1000, half of the time of a first indexing is spent in fsync.
CHECKPOINT_PAGES = 4000


class WriteAheadLog:
    """The WAL of a file with one writer, on whose thread everything here is called."""

    def __init__(self, file: Path, pause_readers: Callable[[float], AbstractContextManager[bool]]) -> None:
        """Create the object; `follow` takes the writer.

        Args:
            file: The path of the database.
            pause_readers: Returns a context in which nothing reads, after at most so many seconds of waiting; False: something still does.
        """
        self._file = file
        self._pause_readers = pause_readers
        self.page_bytes = PAGE  # the size of a page of the database
        self._pages = 0  # length after the last commit, in units of PAGE
        self._checkpoint_at = CHECKPOINT_PAGES

    @property
    def size_bytes(self) -> int:
        """The length of the WAL after the last commit."""
        return PAGE * self._pages

    def follow(self, writer: apsw.Connection) -> None:
        """Measure the WAL after each commit of a new writer, in the place of SQLite's automatic checkpoints. Raises apsw.Error."""
        self.page_bytes = writer.pragma("page_size")
        writer.pragma("journal_size_limit", WAL_KEPT_BYTES)
        writer.set_wal_hook(self._measure)

    def _measure(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._pages = pages * self.page_bytes // PAGE
        return apsw.SQLITE_OK

    def keep_short(self, writer: apsw.Connection) -> None:
        """Checkpoint a long WAL. SQLite's automatic checkpoint would do so too, but hides errors.

        Raises:
            StoreUnavailable, StoreDamaged: the WAL is kept; it is not tried again after each write.
        """
        if self._pages < self._checkpoint_at:
            return
        self._checkpoint_at = CHECKPOINT_PAGES
        try:
            with mapped_errors(self._file, writer):
                writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                if self._pages >= LONG_WAL * CHECKPOINT_PAGES:
                    self._restart(writer)
        except StoreUnavailable:
            self._checkpoint_at += self._pages
            raise

    def _restart(self, writer: apsw.Connection) -> None:
        """Restart the WAL from its beginning, which SQLite can do only at a moment without readers.

        Under steady searches there is no such moment: the WAL of an index of 19 MB grew to 433 MB in half a minute. So readers are
        paused, if that is possible within a short time. Otherwise it is tried after a later commit, with a timeout that grows with
        the WAL.
        """
        with self._pause_readers(PAUSE_S * 2 ** (self._pages // (LONG_WAL * CHECKPOINT_PAGES))) as is_paused:
            if is_paused:
                _checkpoint_soon(writer, "RESTART")
            else:
                self._checkpoint_at = self._pages + CHECKPOINT_PAGES

    def truncate(self, writer: apsw.Connection) -> bool:
        """Copy the content of the WAL into the file and truncate it; return whether that was possible.

        A passive checkpoint leaves old pages in the WAL until they are overwritten. Truncating needs a moment without readers, which
        is waited for only briefly.

        Raises:
            StoreUnavailable, StoreDamaged: the WAL is kept.
        """
        with mapped_errors(self._file, writer):
            return _checkpoint_soon(writer, "TRUNCATE")

    def checkpoint(self, writer: apsw.Connection, *, wait: bool) -> None:
        """Copy the content of the WAL into the file.

        Args:
            writer: The connection that writes.
            wait: Whether to wait for readers and copy everything; otherwise, pages that readers still need stay in the WAL.

        Raises:
            StoreUnavailable, StoreDamaged: the WAL is kept.
        """
        with mapped_errors(self._file, writer):
            mode = "TRUNCATE" if wait else "PASSIVE"
            [(is_busy, _, _)] = writer.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
        if wait and is_busy:
            raise StoreUnavailable(f"{self._file} is read by another process, and cannot be completed")


def _checkpoint_soon(writer: apsw.Connection, mode: str) -> bool:
    """Make a checkpoint that needs a moment without readers, for which it waits briefly; return whether there was one."""
    writer.set_busy_timeout(TRUNCATE_WAIT_MS)
    try:
        [(is_busy, _, _)] = writer.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
    finally:
        writer.set_busy_timeout(connections.BUSY_TIMEOUT_MS)
    return not is_busy
