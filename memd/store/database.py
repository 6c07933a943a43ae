"""One SQLite file: a writer thread, a few readers, and errors as types."""

import asyncio
import contextlib
import queue
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import msgspec

from memd.store import migrations, ondisk
from memd.store.trouble import StoreClosed, StoreDamaged, StoreNewer, StoreUnavailable, mapped_errors
from memd.threads import Threads

P = ParamSpec("P")
T = TypeVar("T")

BUSY_TIMEOUT_MS = 5000
EMPTYING_MS = 20  # for which readers may keep the log from being emptied
READERS = 3
CHECKPOINT_PAGES = (
    4000  # 16 MB of log; at SQLite's 1000, half the time of a first indexing goes into syncing the disk
)

_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class _Reader(msgspec.Struct, frozen=True):
    """A place for one who reads."""

    connection: apsw.Connection | None  # None: it is opened by who takes the place
    generation: int  # of the file that the connection has open


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
        remakes: bool = False,
    ) -> None:
        """Nothing is opened yet.

        Args:
            file: Where the database is; its directory must exist.
            schema: The folder of migrations, below sql/.
            extension: A loadable extension that every connection gets, or None.
            prepare: Gives every connection what else its statements need.
            remakes: Whether a write may make the file where there is none any more.
        """
        self.file = file
        self.read_only: str | None = None  # why it can only be read, for now
        self.ended_cleanly = True  # whether the last one who had the file open closed it
        self._schema = schema
        self._extension = extension
        self._prepare = prepare
        self._remakes = remakes
        self._writer: apsw.Connection | None = None
        self._writing = Threads(1, f"memd-write-{file.stem}")
        self._reading = Threads(READERS, f"memd-read-{file.stem}")
        self._readers: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(_Reader(None, 0))
        self._generation = 0
        self._uri = ondisk.uri(file)  # how readers open it
        self._identity: tuple[int, int] | None = None  # device and inode of the file that is open
        self._connections: set[apsw.Connection] = set()
        self._connections_lock = threading.Lock()
        self._opened = False
        self._closing = False

    # --- opening

    async def open(self) -> None:
        """Open or make the file and bring its schema up to date.

        Where the file is there and can only be read, it is open for reading: read_only says why, and each write tries
        to open it anew.

        Raises:
            StoreUnavailable: the file cannot be opened or made.
            StoreDamaged: it is not a sound database.
            StoreNewer: a newer memd wrote it; it was not touched.
        """

        def first() -> None:
            with self._alone():
                self._open(create=True)
            self._opened = True

        await self._on_writer(first)

    def _open(self, *, create: bool) -> None:
        """Open the writer, or else at least the readers; nothing has the file open."""
        ondisk.require_files(self.file)
        ondisk.require_known(self.file, self._schema)
        self.ended_cleanly = ondisk.size(Path(f"{self.file}-wal")) == 0
        try:
            self._open_writer(create=create)
        except StoreUnavailable as trouble:
            self._open_for_reading(trouble)

    def _open_writer(self, *, create: bool) -> None:
        with mapped_errors(self.file):
            connection = self._connect(
                ondisk.uri(self.file), _READ_WRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            )
            try:
                # Closing must not fold the log of a newer memd into its file.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                ondisk.require_version(self.file, connection.pragma("user_version"), self._schema)
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                connection.pragma("journal_mode", "wal")
                # A crash of the process loses nothing; a power cut may lose the last seconds, which the next scan repairs.
                connection.pragma("synchronous", "normal")
                connection.pragma("foreign_keys", 1)
                connection.pragma("journal_size_limit", 64 << 20)
                connection.pragma("wal_autocheckpoint", CHECKPOINT_PAGES)
                migrations.migrate(connection, self._schema)
                _require_writable(connection)
            except BaseException:
                self._close(connection)
                raise
        self._writer, self.read_only, self._uri = connection, None, ondisk.uri(self.file)
        self._identity = ondisk.identity(self.file)

    def _open_for_reading(self, trouble: StoreUnavailable) -> None:
        """Have readers open what is there without writing anything, not even the index of its log.

        Raises:
            StoreUnavailable: the trouble that was given, where that cannot be done either.
        """
        has_log = ondisk.size(Path(f"{self.file}-wal")) > 0
        uri = f"{ondisk.uri(self.file)}?{'mode=ro' if has_log else 'immutable=1'}"
        try:
            with mapped_errors(self.file):
                connection = self._connect(uri, _READ_ONLY)
                found: int = connection.pragma("user_version")
                self._close(connection)
        except StoreUnavailable:
            raise trouble from None
        if found != migrations.newest(self._schema):
            raise trouble
        self.read_only, self._uri = str(trouble), uri
        self._generation += 1
        self._identity = ondisk.identity(self.file)

    def _connect(self, uri: str, flags: int) -> apsw.Connection:
        connection = apsw.Connection(uri, flags=flags)
        with self._connections_lock:
            self._connections.add(connection)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("temp_store", 2)  # in memory: a full disk must not keep a search from sorting
            if self._extension is not None:
                connection.enable_load_extension(True)
                connection.load_extension(self._extension)
                connection.enable_load_extension(False)
            self._prepare(connection)
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _close(self, connection: apsw.Connection) -> None:
        with self._connections_lock:
            self._connections.discard(connection)
        # What is wrong with the file may show here, too; it is closed all the same.
        with contextlib.suppress(apsw.Error):
            connection.close()

    # --- work

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in one immediate transaction on the writer thread.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing of it was written.
        """

        def transaction() -> T:
            writer = self._writer_now()
            with mapped_errors(self.file):
                writer.execute("BEGIN IMMEDIATE")
                try:
                    result = fn(writer, *args, **kwargs)
                    writer.execute("COMMIT")
                except BaseException:
                    if writer.in_transaction:
                        writer.execute("ROLLBACK")
                    raise
                return result

        return await self._on_writer(transaction)

    def _writer_now(self) -> apsw.Connection:
        if self._closing or not self._opened:
            raise StoreClosed("the store is closed")
        if self._writer is None:
            try:
                self._reopen()
            except StoreNewer as newer:
                raise StoreUnavailable(str(newer)) from newer
        elif self.is_gone:
            raise StoreDamaged(f"{self.file} was deleted or replaced while memd had it open")
        if self._writer is None:
            raise StoreUnavailable(self.read_only or f"{self.file} cannot be written")
        return self._writer

    def _reopen(self) -> None:
        """Try once more to open a file for writing."""
        with self._alone():
            self._open(create=self._remakes)

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) on a reader thread, seeing one state of the file throughout.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def snapshot() -> T:
            if self._closing or not self._opened:
                raise StoreClosed("the store is closed")
            with mapped_errors(self.file):
                reader = self._take()
                try:
                    assert reader.connection is not None
                    reader.connection.execute("BEGIN")
                    try:
                        return fn(reader.connection, *args, **kwargs)
                    finally:
                        reader.connection.execute("ROLLBACK")
                finally:
                    self._readers.put(reader)

        self._require_not_closing()
        return await self._reading.run(snapshot)

    def _take(self) -> _Reader:
        """A place with a connection to the file as it is now."""
        reader = self._readers.get()
        if reader.connection is not None and reader.generation == self._generation:
            return reader
        try:
            if reader.connection is not None:
                self._close(reader.connection)
            return self._new_reader()
        except BaseException:
            self._readers.put(_Reader(None, 0))
            raise

    def _new_reader(self) -> _Reader:
        generation = self._generation
        with mapped_errors(self.file):
            connection = self._connect(self._uri, _READ_ONLY if "?" in self._uri else _READ_WRITE)
            connection.pragma("query_only", 1)
        return _Reader(connection, generation)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for those who read, close what they read with, and let nobody begin before the end."""
        for _ in range(READERS):
            reader = self._readers.get()
            if reader.connection is not None:
                self._close(reader.connection)
        opened: list[_Reader] = []
        try:
            yield
            # All of them now, while the file is there: a name that leads nowhere could not be opened later.
            opened += (self._new_reader() for _ in range(READERS))
        finally:
            for number in range(READERS):
                self._readers.put(opened[number] if number < len(opened) else _Reader(None, 0))

    async def _on_writer(self, work: Callable[[], T]) -> T:
        self._require_not_closing()
        return await self._writing.run(work)

    def _require_not_closing(self) -> None:
        # What begins once the connections are being closed would find none.
        if self._closing:
            raise StoreClosed("the store is closed")

    # --- the file as a whole

    @property
    def is_gone(self) -> bool:
        """Whether the name leads to another file than the one that is open, or to none."""
        return self._identity is not None and ondisk.identity(self.file) != self._identity

    async def check(self) -> None:
        """Look for damage that no statement has met yet, the insides of the keyword index included.

        Raises:
            StoreDamaged: naming the first that was found.
            StoreUnavailable, StoreClosed.
        """

        def look(connection: apsw.Connection) -> str:
            found: str = connection.execute("PRAGMA quick_check(1)").get
            return found

        found = await self.read(look)
        if found != "ok":
            raise StoreDamaged(f"{self.file}: {found}")

    async def replace_from(self, other: Path) -> None:
        """Make this database equal to another file, atomically; readers see the old content until then.

        The pages are copied through SQLite's backup in one transaction, so that a crash leaves the old content whole
        and no log of the old file can ever be applied to the new one.

        Args:
            other: Nothing has it open, and it has no log.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: the old content is as it was.
        """

        def copy() -> None:
            writer = self._writer_now()
            with mapped_errors(self.file):
                source = apsw.Connection(f"{ondisk.uri(other)}?immutable=1", flags=_READ_ONLY)
                try:
                    with writer.backup("main", source, "main") as backup:
                        backup.step(-1)
                finally:
                    source.close()
                # Virtual tables keep what they read of the old content in their connection.
                self._generation += 1
                self._close_writer()
                self._open_writer(create=False)

        await self._on_writer(copy)

    async def exchange(self, swap: Callable[[], None]) -> None:
        """Close every connection, let swap move files, and open what is there then; those who read wait meanwhile.

        Args:
            swap: Runs on the writer thread.

        Raises:
            StoreUnavailable: files cannot be moved, or nothing can be opened.
            StoreDamaged, StoreNewer: as for open.
        """

        def in_between() -> None:
            with self._alone():
                self._close_writer()
                self._identity = None
                self._generation += 1
                try:
                    swap()
                except OSError as error:
                    raise StoreUnavailable(
                        f"{self.file} is damaged and cannot be set aside: {error.strerror}"
                    ) from error
                self._open(create=True)
            self._opened = True

        await self._on_writer(in_between)

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        if writer is not None:
            self._close(writer)

    async def checkpoint(self, *, wait: bool) -> None:
        """Bring what is in the log into the file itself.

        Args:
            wait: Bring everything, waiting for readers; only for a file that nobody searches. Else what can be brought
                without: under steady searches, there may be no moment without a reader for seconds.

        Raises:
            StoreUnavailable, StoreDamaged: what is in the log stays there.
        """

        def fold() -> None:
            if self._writer is not None:
                with mapped_errors(self.file):
                    self._writer.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if wait else 'PASSIVE'})")

        await self._on_writer(fold)

    async def empty_log(self) -> bool:
        """Bring what is in the log into the file itself and leave nothing in it; whether that was possible now.

        After a passive checkpoint the log still has its old pages, until others are written over them. Where somebody
        reads all the time, there may be no moment for it: nobody is kept waiting for one for longer than is noticed.

        Raises:
            StoreUnavailable, StoreDamaged: what is in the log stays there.
        """

        def empty() -> bool:
            writer = self._writer_now()
            with mapped_errors(self.file):
                writer.set_busy_timeout(EMPTYING_MS)
                try:
                    [(is_busy, _, _)] = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()
                finally:
                    writer.set_busy_timeout(BUSY_TIMEOUT_MS)
            return not is_busy

        return await self._on_writer(empty)

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
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()

    def _end_work(self) -> None:
        self._reading.wait_until_done()
        self._writing.wait_until_done()

    def _close_connections(self) -> None:
        """The writer last: the last connection that closes folds the log into the file, and a reader may not write."""
        with self._connections_lock:
            readers = self._connections - {self._writer}
        for connection in readers:
            self._close(connection)
        if self._writer is not None:
            # An interrupt that met no statement would otherwise end the folding: the next statement takes it back.
            with contextlib.suppress(apsw.Error):
                self._writer.execute("SELECT 1").fetchall()
            self._close_writer()


def _require_writable(connection: apsw.Connection) -> None:
    """SQLite opens a file that it may not write without a word."""
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("no permission to write")
