"""One SQLite file: a writer thread, a few reader threads, and errors as types."""

import asyncio
import contextlib
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import structlog

from memd.errors import FatalError, MemdError, TransientError
from memd.store import migrations

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

BUSY_TIMEOUT_MS = 5000
READERS = 3
CHECKPOINT_PAGES = (
    4000  # 16 MB of log; at SQLite's 1000, half the time of a first indexing goes into syncing the disk
)


class StoreUnavailable(TransientError):
    """The disk does not take or give: busy, full, read-only, I/O error."""


class StoreDamaged(MemdError):
    """What is in the file is not what memd wrote there."""


class StoreNewer(FatalError):
    """The file was written by a newer memd."""

    def __init__(self, file: Path, found: int, known: int) -> None:
        super().__init__(
            f"{file} was written by a newer memd (schema {found}, this one knows {known}). "
            "Update memd, or move the file away: it is rebuilt from your notes.",
            exit_code=78,
        )


class StoreClosed(TransientError):
    """The daemon is stopping."""


@contextlib.contextmanager
def mapped_errors(file: Path) -> Iterator[None]:
    """Turn SQLite's errors into memd's, where they arise."""
    try:
        yield
    except (apsw.CorruptError, apsw.NotADBError) as error:
        raise StoreDamaged(f"{file}: {error}") from error
    except UnicodeDecodeError as error:
        # Whatever memd writes is valid text. The error itself would quote the bytes.
        raise StoreDamaged(f"{file}: a text in it is not UTF-8") from error
    except apsw.InterruptError as error:
        raise StoreClosed("the store is closing") from error
    except (apsw.BusyError, apsw.FullError, apsw.IOError, apsw.ReadOnlyError, apsw.CantOpenError) as error:
        raise StoreUnavailable(f"{file}: {error}") from error
    except (apsw.SQLError, apsw.ConstraintError, apsw.MismatchError) as error:
        # Our own SQL does not fail on a sound file: a table is missing or is not what it was.
        raise StoreDamaged(f"{file}: {error}") from error


def _as_it_is(_: apsw.Connection) -> None:
    pass


class Database:
    """A SQLite file in WAL mode, open for one writer and several readers.

    Functions given to read and write take a connection first and run to their end on a thread; the caller awaits.
    """

    def __init__(
        self,
        file: Path,
        schema: str,
        *,
        extension: str | None = None,
        prepare: Callable[[apsw.Connection], None] = _as_it_is,
    ) -> None:
        """Nothing is opened yet.

        Args:
            file: Where the database is; its directory must exist.
            schema: The folder of migrations, below sql/.
            extension: A loadable extension that every connection gets, or None.
            prepare: Gives every connection what else its statements need.
        """
        self.file = file
        self._schema = schema
        self._extension = extension
        self._prepare = prepare
        self._writer: apsw.Connection | None = None
        self._writing = ThreadPoolExecutor(1, thread_name_prefix=f"memd-write-{file.stem}")
        self._reading = ThreadPoolExecutor(READERS, thread_name_prefix=f"memd-read-{file.stem}")
        self._local = threading.local()
        self._readers: list[apsw.Connection] = []
        self._readers_lock = threading.Lock()
        self._generation = 0
        self._closing = False

    async def open(self) -> None:
        """Open or make the file and bring its schema up to date.

        Raises:
            StoreUnavailable: the file cannot be opened or written.
            StoreDamaged: it is not a sound database.
            StoreNewer: a newer memd wrote it.
        """
        await asyncio.get_running_loop().run_in_executor(self._writing, self._open)

    def _open(self) -> None:
        with mapped_errors(self.file):
            connection = self._connect()
            connection.pragma("journal_mode", "wal")
            # A crash of the process loses nothing; a power cut may lose the last seconds, which the next scan repairs.
            connection.pragma("synchronous", "normal")
            connection.pragma("foreign_keys", 1)
            connection.pragma("journal_size_limit", 64 << 20)
            connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
            found, known = migrations.migrate(connection, self._schema)
            if found > known:
                connection.close()
                raise StoreNewer(self.file, found, known)
            self._writer = connection

    def _connect(self) -> apsw.Connection:
        connection = apsw.Connection(str(self.file))
        connection.set_busy_timeout(BUSY_TIMEOUT_MS)
        if self._extension is not None:
            connection.enable_load_extension(True)
            connection.load_extension(self._extension)
            connection.enable_load_extension(False)
        self._prepare(connection)
        return connection

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in one immediate transaction on the writer thread.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing of it was written.
        """

        def transaction() -> T:
            if self._closing or self._writer is None:
                raise StoreClosed("the store is closed")
            with mapped_errors(self.file):
                self._writer.execute("BEGIN IMMEDIATE")
                try:
                    result = fn(self._writer, *args, **kwargs)
                    self._writer.execute("COMMIT")
                except BaseException:
                    if self._writer.in_transaction:
                        self._writer.execute("ROLLBACK")
                    raise
                return result

        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._writing, transaction)

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) on a reader thread, seeing one state of the file throughout.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def snapshot() -> T:
            with mapped_errors(self.file):
                connection = self._reader()
                connection.execute("BEGIN")
                try:
                    return fn(connection, *args, **kwargs)
                finally:
                    connection.execute("ROLLBACK")

        self._require_open()
        return await asyncio.get_running_loop().run_in_executor(self._reading, snapshot)

    def _require_open(self) -> None:
        # A pool that has been shut down would raise an error of its own.
        if self._closing:
            raise StoreClosed("the store is closed")

    def _reader(self) -> apsw.Connection:
        if self._closing:
            raise StoreClosed("the store is closed")
        if getattr(self._local, "generation", None) != self._generation:
            old = getattr(self._local, "connection", None)
            connection = self._connect()
            connection.pragma("query_only", 1)
            with self._readers_lock:
                self._readers.append(connection)
                if old is not None:
                    self._readers.remove(old)
            if old is not None:
                old.close()
            self._local.connection, self._local.generation = connection, self._generation
        found: apsw.Connection = self._local.connection
        return found

    async def replace_from(self, other: Path) -> None:
        """Make this database equal to another file, atomically; readers see the old content until then.

        The pages are copied through SQLite's backup in one transaction, so that a crash leaves the old content whole
        and no log of the old file can ever be applied to the new one.
        """

        def copy() -> None:
            if self._closing or self._writer is None:
                raise StoreClosed("the store is closed")
            with mapped_errors(self.file):
                source = apsw.Connection(str(other), flags=apsw.SQLITE_OPEN_READONLY)
                try:
                    with self._writer.backup("main", source, "main") as backup:
                        backup.step(-1)
                finally:
                    source.close()
                # Virtual tables keep what they read of the old content in their connection.
                self._writer.close()
                self._generation += 1
                self._writer = self._connect()
                self._writer.pragma("synchronous", "normal")
                self._writer.pragma("foreign_keys", 1)
                self._writer.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)

        await asyncio.get_running_loop().run_in_executor(self._writing, copy)

    async def checkpoint(self, *, wait: bool) -> None:
        """Bring what is in the log into the file itself.

        Args:
            wait: Bring everything, waiting for readers; only for a file that nobody searches. Else what can be brought
                without: under steady searches, there may be no moment without a reader for seconds.
        """

        def fold() -> None:
            if self._writer is not None:
                with mapped_errors(self.file):
                    self._writer.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if wait else 'PASSIVE'})")

        await asyncio.get_running_loop().run_in_executor(self._writing, fold)

    async def close(self) -> None:
        """End all work, rolling back a write that is under way. May be called twice."""
        self._closing = True
        ended = asyncio.ensure_future(asyncio.to_thread(self._end_work))
        while not ended.done():
            # An interrupt reaches the statement that runs now: a long write needs more than one.
            self._interrupt()
            await asyncio.wait([ended], timeout=0.01)
        await ended
        await asyncio.to_thread(self._close_connections)

    def _interrupt(self) -> None:
        with self._readers_lock:
            connections = [*self._readers, *([self._writer] if self._writer is not None else [])]
        for connection in connections:
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()

    def _end_work(self) -> None:
        self._reading.shutdown()
        self._writing.shutdown()

    def _close_connections(self) -> None:
        """The writer last: the last connection that closes folds the log into the file, and a reader may not write."""
        with self._readers_lock:
            readers, self._readers = self._readers, []
        for connection in readers:
            connection.close()
        if self._writer is not None:
            # An interrupt that met no statement would otherwise end the folding: the next statement takes it back.
            with contextlib.suppress(apsw.Error):
                self._writer.execute("SELECT 1").fetchall()
            self._writer.close()
            self._writer = None
