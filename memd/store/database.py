"""One SQLite file with a writer thread, a few reader threads, and typed errors; its WAL is in write_ahead_log.py."""

import asyncio
import contextlib
import math
import queue
import stat
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import msgspec
import structlog

from memd.runtime.threads import ResourceShortage, Threads
from memd.store import database_files, integrity, migrations, recovery
from memd.store.connections import Connections
from memd.store.disk_room import integers, require_room
from memd.store.errors import (
    StoreClosed,
    StoreDamaged,
    StoreNewer,
    StoreRefused,
    StoreUnavailable,
    StoreUnsynced,
    mapped_errors,
)
from memd.store.write_ahead_log import PAGE, WriteAheadLog

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

READERS = 3
# For new databases. A page of this size holds 19 packed vectors of 384 dimensions, and a page of 4 KB only four.
_PAGE_BYTES = {"embeddings": 16_384}
INCREMENTAL = 2  # a mode of PRAGMA auto_vacuum
FREE_PAGES_KEPT = 1000  # at most, and the number that is returned to the disk at once
# After a check of the file, failed statements cause no other one for this many times its duration.
CHECK_REST = 20

_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class _Reader(msgspec.Struct, frozen=True):
    """A reader's slot in the pool."""

    connection: apsw.Connection | None  # None: opened by the next user of the slot
    generation: int  # the generation of the file that it has open


class Database:
    """A SQLite file in WAL mode with one writer and several readers.

    Functions passed to `read` and `write` get a connection as their first argument and run on a thread until they return.
    """

    def __init__(
        self,
        file: Path,
        schema: str,
        *,
        extension: str | None = None,
        remakes: bool = False,
    ) -> None:
        """Create the object; `open` opens the file.

        Args:
            file: The path of the database; its directory must exist.
            schema: The folder of migrations, below sql/.
            extension: A loadable extension for each connection, or None.
            remakes: Whether a write creates the file if it is missing; it is restored from the backup made before a migration, if
                there is one.
        """
        self.file = file
        self.read_only: str | None = None  # why the database can only be read now; None: it can be written
        self.ended_cleanly = True  # whether the file existed, and its last user closed it
        self.unsynced: str | None = None  # the message of a failed sync, after which written data may be lost
        # Backups made before migrations.
        self.copies: tuple[migrations.BackupCopy, ...] = ()
        self._schema = schema
        self._remakes = remakes
        self._writer: apsw.Connection | None = None
        self._writing = Threads(1, f"memd-write-{file.stem}")
        self._reading = Threads(READERS, f"memd-read-{file.stem}")
        self._readers: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(_Reader(None, 0))
        self._generation = 0
        self._uri = database_files.uri(file)  # used by readers
        self._identity: tuple[int, int] | None = None  # device and inode of the open file
        self._connections = Connections(schema, extension)
        self._opened = False
        self._closing = False
        self._wal = WriteAheadLog(file, self._without_running_reads)
        # A failed statement causes a check of the file from this time.monotonic() on.
        self._check_from = -math.inf

    # --- opening

    async def open(self) -> None:
        """Open or create the file, and migrate its schema.

        If the file exists and can only be read, it is opened for reading: `read_only` says why, and each write tries to open it
        for writing.

        Raises:
            StoreUnavailable: the file cannot be opened or created.
            StoreDamaged: it is not a sound database.
            StoreNewer: a newer memd wrote it; it was not changed.
        """

        def first() -> None:
            with self._without_readers():
                self._open(create=True)
            self._opened = True

        await self._on_writer(first)

    def _open(self, *, create: bool) -> None:
        """Open the writer or, if that fails, the readers alone; nothing may have the file open."""
        database_files.require_files(self.file)
        migrations.require_known(self.file, self._schema)
        # The last connection that closes deletes the WAL. An empty WAL may be what a power failure has left.
        self.ended_cleanly = database_files.identity(Path(f"{self.file}-wal")) is None
        try:
            if create and self._remakes and database_files.identity(self.file) is None:
                self._restore_backup()
            self._open_writer(create=create)
        except StoreRefused:
            raise
        except StoreUnavailable as trouble:
            self._open_for_reading(trouble)
        self.copies = migrations.kept_copies(self.file)

    def _restore_backup(self) -> None:
        try:
            with mapped_errors(self.file):
                recovery.bring_back(self.file, self._schema)
        except OSError as error:
            raise StoreUnavailable(f"{self.file} cannot be made: {error.strerror}") from error

    def _open_writer(self, *, create: bool) -> None:
        with mapped_errors(self.file):
            _let_write_beside(self.file)
            connection = self._connections.open(
                database_files.uri(self.file), _READ_WRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            )
            try:
                with mapped_errors(self.file, connection):
                    self._prepare_writer(connection)
            except BaseException:
                self._connections.close(connection)
                raise
        self._writer, self.read_only, self._uri = connection, None, database_files.uri(self.file)
        self._identity = database_files.identity(self.file)

    def _prepare_writer(self, connection: apsw.Connection) -> None:
        """Set how a connection writes, and bring the schema up to date."""
        # Closing must not checkpoint the WAL of a newer memd.
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
        migrations.require_version(self.file, connection.pragma("user_version"), self._schema)
        connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
        if not connection.pragma("user_version"):
            # Both must precede the first page, which auto_vacuum creates.
            connection.pragma("page_size", _PAGE_BYTES.get(self._schema, PAGE))
            connection.pragma("auto_vacuum", INCREMENTAL)
        connection.pragma("journal_mode", "wal")
        # A crash of the process loses nothing; a power failure may lose the last seconds, which the next scan restores.
        connection.pragma("synchronous", "normal")
        connection.pragma("foreign_keys", 1)
        self._wal.follow(connection)
        # Overwrites deleted content: otherwise the text of a deleted note stays in free pages. It costs a quarter more when whole files
        # are deleted, and nothing otherwise.
        connection.pragma("secure_delete", "on")
        _require_writable(connection)
        migrations.remove_partial_copy(self.file)
        self._bring_up_to_date(connection)

    def _bring_up_to_date(self, connection: apsw.Connection) -> None:
        found, newest = connection.pragma("user_version"), migrations.newest(self._schema)
        self.ended_cleanly = self.ended_cleanly and found > 0  # False if the file was only created now
        if 0 < found < newest:
            kept_as = migrations.make_copy(connection, self.file, newest)
            migrations.migrate(connection, self._schema)
            log.info(
                "store.brought_up_to_date",
                file=str(self.file),
                before=found,
                schema=newest,
                kept_as=str(kept_as),
            )
        else:
            migrations.migrate(connection, self._schema)
        migrations.give_back_pages(connection, self.file, self._schema)

    def _open_for_reading(self, trouble: StoreUnavailable) -> None:
        """Open the existing file for readers without writing anything, not even the shared memory of its WAL.

        Raises:
            StoreUnavailable: the given trouble, if the file cannot be read either or has an older schema.
        """
        has_wal = database_files.size(Path(f"{self.file}-wal")) > 0
        uri = f"{database_files.uri(self.file)}?{'mode=ro' if has_wal else 'immutable=1'}"
        try:
            with mapped_errors(self.file):
                connection = self._connections.open(uri, _READ_ONLY)
                found: int = connection.pragma("user_version")
                self._connections.close(connection)
        except StoreUnavailable:
            raise trouble from None
        if found != migrations.newest(self._schema):
            raise trouble
        self.read_only, self._uri = str(trouble), uri
        self._generation += 1
        self._identity = database_files.identity(self.file)

    # --- work

    async def write(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in one immediate transaction on the writer thread.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing was written.
        """
        return await self._on_writer(lambda: self._transaction(lambda writer: fn(writer, *args, **kwargs)))

    async def write_more(
        self,
        size_bytes: int,
        fn: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Write as `write` does, if enough disk space is left to delete data afterwards.

        Args:
            size_bytes: The approximate size of the added texts and vectors, without indexes.
            fn: See write.
            args: Arguments of fn.
            kwargs: Keyword arguments of fn.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing was written.
        """

        def transaction() -> T:
            require_room(
                self._writer_now(),
                self.file,
                size_bytes,
                wal_bytes=self._wal.size_bytes,
                page_bytes=self._wal.page_bytes,
            )
            return self._transaction(lambda writer: fn(writer, *args, **kwargs))

        return await self._on_writer(transaction)

    async def shrink(self) -> bool:
        """Return some free pages to the disk if there are many; return whether more may be left.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def give_back(writer: apsw.Connection) -> bool:
            [(free, pages, mode)] = integers(
                writer,
                "SELECT freelist_count, page_count, auto_vacuum"
                " FROM pragma_freelist_count, pragma_page_count, pragma_auto_vacuum",
            )
            # A file created by an older memd has another mode; the next rebuild creates a new file.
            if free < max(FREE_PAGES_KEPT, pages // 4) or mode != INCREMENTAL:
                return False
            writer.execute(f"PRAGMA incremental_vacuum({FREE_PAGES_KEPT})").fetchall()
            return True

        return await self.write(give_back)

    async def write_lasting(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Write as `write` does, and sync this and all earlier writes to disk before returning.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing was written.
        """

        def transaction() -> T:
            writer = self._writer_now()
            with mapped_errors(self.file):
                writer.pragma("synchronous", "full")
                try:
                    return self._transaction(lambda writer: fn(writer, *args, **kwargs))
                finally:
                    writer.pragma("synchronous", "normal")

        return await self._on_writer(transaction)

    def _transaction(self, work: Callable[[apsw.Connection], T]) -> T:
        writer = self._writer_now()
        with mapped_errors(self.file, writer):
            writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(writer)
                writer.execute("COMMIT")
            except BaseException:
                # After some errors, SQLite has rolled back by itself. An open transaction would block all later ones.
                if writer.in_transaction:
                    self._roll_back(writer)
                raise
        try:
            self._wal.keep_short(writer)
        except StoreUnavailable as trouble:  # what was written is in the WAL
            self._note_failed_sync(trouble)
            log.warning("store.log_not_folded", file=str(self.file), reason=str(trouble))
        return result

    def _roll_back(self, writer: apsw.Connection) -> None:
        try:
            writer.execute("ROLLBACK")
        except apsw.Error:
            # The original error is raised. The next write opens the file again.
            self._close_writer()

    def _note_failed_sync(self, trouble: StoreUnavailable) -> None:
        if isinstance(trouble, StoreUnsynced):
            self.unsynced = str(trouble)

    async def raise_if_unsynced(self) -> None:
        """Raise if a sync has failed since the file was opened.

        After a failed sync, Linux may drop the data that it could not write, and report success for the next sync. Written data then
        exists only in memory, until it is evicted without notice. So all of it must be rebuilt or written again elsewhere, once
        the disk works.

        Raises:
            StoreUnavailable: a sync has failed, and fails again.
            StoreDamaged: a sync has failed, and succeeds now. Raised once.
        """
        if self.unsynced is None:
            return
        await self.checkpoint(wait=False)
        reason, self.unsynced = self.unsynced, None
        raise StoreDamaged(f"what was written may be lost: {reason}")

    def _writer_now(self) -> apsw.Connection:
        if self._closing or not self._opened:
            raise StoreClosed("the store is closed")
        if self._writer is None:
            try:
                with self._without_readers():
                    self._open(create=self._remakes)
            except StoreNewer as newer:
                raise StoreUnavailable(str(newer)) from newer
        elif self.is_gone:
            raise StoreDamaged(f"{self.file} was deleted or replaced while memd had it open")
        if self._writer is None:
            raise StoreUnavailable(self.read_only or f"{self.file} cannot be written")
        return self._writer

    async def read(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Run fn(connection, ...) in a read transaction, on a reader thread.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def snapshot() -> T:
            if self._closing or not self._opened:
                raise StoreClosed("the store is closed")
            reader = self._readers.get()
            try:
                with self.mapping_errors():
                    if reader.connection is None or reader.generation != self._generation:
                        before, reader = reader, _Reader(None, 0)
                        self._connections.close(before.connection)
                        reader = self._new_reader()
                    assert reader.connection is not None
                    reader.connection.execute("BEGIN")
                    try:
                        return fn(reader.connection, *args, **kwargs)
                    finally:
                        # After lack of memory or an I/O error, SQLite may have rolled back by itself.
                        if reader.connection.in_transaction:
                            reader.connection.execute("ROLLBACK")
            finally:
                self._readers.put(reader)

        return await self._on(self._reading, snapshot)

    def _new_reader(self) -> _Reader:
        generation = self._generation
        with mapped_errors(self.file):
            connection = self._connections.open(self._uri, _READ_ONLY if "?" in self._uri else _READ_WRITE)
            connection.pragma("query_only", 1)
        return _Reader(connection, generation)

    @contextlib.contextmanager
    def _without_readers(self) -> Iterator[None]:
        """Wait for running reads, close all readers, and block reads until the end of the context."""
        for _ in range(READERS):
            self._connections.close(self._readers.get().connection)
        opened: list[_Reader] = []
        try:
            yield
            # All are opened now, while the file exists: its name could not be opened later.
            opened += (self._new_reader() for _ in range(READERS))
        finally:
            for number in range(READERS):
                self._readers.put(opened[number] if number < len(opened) else _Reader(None, 0))

    @contextlib.contextmanager
    def _without_running_reads(self, most_s: float) -> Iterator[bool]:
        """Wait at most `most_s` seconds for running reads, and block reads until the end of the context; False: some still run."""
        taken: list[_Reader] = []
        deadline = time.monotonic() + most_s
        try:
            with contextlib.suppress(queue.Empty):
                while len(taken) < READERS:
                    taken.append(self._readers.get(timeout=max(0.0, deadline - time.monotonic())))
            yield len(taken) == READERS
        finally:
            for reader in taken:
                self._readers.put(reader)

    async def _on(self, threads: Threads, work: Callable[[], T]) -> T:
        # Work that starts while connections are being closed would find none.
        if self._closing:
            raise StoreClosed("the store is closed")
        try:
            return await threads.run(work)
        except ResourceShortage as trouble:
            raise StoreUnavailable(f"{self.file}: {trouble}") from trouble

    async def _on_writer(self, work: Callable[[], T]) -> T:

        def checked() -> T:
            with self._checking_refusals():
                return work()

        try:
            return await self._on(self._writing, checked)
        except StoreUnavailable as trouble:
            self._note_failed_sync(trouble)
            raise

    # --- the file as a whole

    @property
    def is_gone(self) -> bool:
        """Whether the path refers to another file than the open one, or to none."""
        return self._identity is not None and database_files.identity(self.file) != self._identity

    async def check(self) -> None:
        """Check the whole file for damage, including the content of the keyword index.

        Raises:
            StoreDamaged: the first fault found.
            StoreUnavailable, StoreClosed.
        """
        # It takes a reader slot, but uses a new connection.
        await self.read(lambda _: self._require_sound())

    def _require_sound(self) -> None:
        """Check the file on a new connection.

        Raises:
            StoreDamaged: the first fault found.
        """
        with mapped_errors(self.file):
            fresh = self._new_reader().connection
            assert fresh is not None
            try:
                fresh.execute("BEGIN")
                found = integrity.faults(fresh, self._schema)
            finally:
                self._connections.close(fresh)
        if found:
            raise StoreDamaged(f"{self.file}: {found[0]}")

    @contextlib.contextmanager
    def mapping_errors(self) -> Iterator[None]:
        """Convert errors of SQLite and of memory, and check the file if a statement fails without a clear reason.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: instead of the original errors.
        """
        try:
            yield
        except Exception:
            with self._checking_refusals(), mapped_errors(self.file):
                raise

    @contextlib.contextmanager
    def _checking_refusals(self) -> Iterator[None]:
        """Check the file if a statement fails without SQLite reporting damage.

        Raises:
            StoreDamaged: the file is damaged; otherwise the original error.
        """
        try:
            yield
        except StoreRefused as refused:
            # A check takes a second for 30,000 chunks, so it does not follow each of many failing statements.
            began = time.monotonic()
            if began >= self._check_from:
                with contextlib.suppress(StoreUnavailable):  # the check gave no result
                    try:
                        self._require_sound()
                    except StoreDamaged as damage:
                        raise damage from refused
                self._check_from = time.monotonic() + CHECK_REST * (time.monotonic() - began)
            raise

    async def release_pages(self) -> None:
        """Release the page caches of idle connections, up to 2 MB each.

        Raises:
            StoreClosed.
        """

        def of_readers() -> None:
            idle: list[_Reader] = []
            with contextlib.suppress(queue.Empty):
                while True:
                    idle.append(self._readers.get_nowait())
            for reader in idle:
                _release(reader.connection)
                self._readers.put(reader)

        await self._on(self._reading, of_readers)
        await self._on_writer(lambda: _release(self._writer))

    async def drop_copies(self, which: Collection[migrations.BackupCopy] | None = None) -> None:
        """Delete backups of this database, after syncing what was written since.

        Args:
            which: The backups to delete; None: all.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: some still exist.
        """

        def drop() -> None:
            writer = self._writer_now()
            # A checkpoint syncs the WAL first; data in a synced WAL is as safe as data in the file.
            self._wal.checkpoint(writer, wait=False)
            migrations.remove_copies(self.copies if which is None else which)
            self.copies = migrations.kept_copies(self.file)

        if self.copies:
            await self._on_writer(drop)

    async def write_anew(self) -> None:
        """Write the whole database into a new file that replaces it; see raise_if_unsynced.

        Right after a failed sync, the data that the disk lost is still in the page cache.

        Raises:
            StoreUnavailable: the disk still fails; the database is unchanged.
            StoreDamaged: the data is damaged.
        """

        def again() -> None:
            if self.unsynced is None:
                return
            with self._without_readers():
                self._close_writer()
                self._identity = None
                self._generation += 1
                with mapped_errors(self.file):
                    migrations.rewrite(self.file)
                self._open(create=False)
                self.unsynced = None

        await self._on_writer(again)

    async def replace_from(self, other: Path) -> None:
        """Replace the content by that of another file, atomically; until then, readers see the old content.

        The pages are copied by SQLite's backup in one transaction. So a crash leaves the old content intact, and no WAL of the old file
        can be applied to the new one.

        Args:
            other: A database without a WAL that nothing has open.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: the content is unchanged.
        """

        def copy() -> None:
            writer = self._writer_now()
            with mapped_errors(self.file):
                with migrations.immutable(other) as source:
                    migrations.copy_pages(source, writer)
                # Virtual tables cache old content per connection.
                self._generation += 1
                self._close_writer()
            # The copy is committed. If opening fails, the next write tries again and raises.
            with contextlib.suppress(StoreUnavailable):
                self._open_writer(create=False)

        await self._on_writer(copy)

    async def exchange(self, swap: Callable[[], None]) -> None:
        """Close all connections, call `swap` to move files, and open the file again; reads wait meanwhile.

        Args:
            swap: Runs on the writer thread.

        Raises:
            StoreUnavailable: files cannot be moved or opened.
            StoreDamaged, StoreNewer: see open.
        """

        def in_between() -> None:
            with self._without_readers():
                self._close_writer()
                self._identity = None
                try:
                    swap()
                except OSError as error:
                    raise StoreUnavailable(
                        f"{self.file} is damaged and cannot be set aside: {error.strerror}"
                    ) from error
                self.unsynced = None  # it concerned the old file
                self._open(create=True)
            self._opened = True

        await self._on_writer(in_between)

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        self._connections.close(writer)

    async def checkpoint(self, *, wait: bool) -> None:
        """Copy the content of the WAL into the file.

        Args:
            wait: Whether to wait for readers and copy everything; only for a file without searches. Otherwise, pages that readers
                still need stay in the WAL.

        Raises:
            StoreUnavailable, StoreDamaged: the WAL is kept.
        """

        def copy_wal() -> None:
            if self._writer is not None:
                self._wal.checkpoint(self._writer, wait=wait)

        await self._on_writer(copy_wal)

    async def truncate_wal(self) -> bool:
        """See WriteAheadLog.truncate."""
        return await self._on_writer(lambda: self._wal.truncate(self._writer_now()))

    async def close(self) -> None:
        """Interrupt all work, roll back a running write, and close. May be called twice."""
        self._closing = True
        while not (self._reading.is_done and self._writing.is_done):
            # An interrupt stops only the running statement; a long write has several.
            self._connections.interrupt()
            await asyncio.sleep(0.01)
        try:
            await self._writing.run(self._close_connections)
        except ResourceShortage:
            self._close_connections()

    def _close_connections(self) -> None:
        """Close the writer last: the last connection checkpoints the WAL, which a reader must not do."""
        self._connections.close_all_but(self._writer)
        if self._writer is not None:
            # A pending interrupt would abort the checkpoint; this statement consumes it.
            with contextlib.suppress(apsw.Error):
                self._writer.execute("SELECT 1").fetchall()
            self._close_writer()


def _release(connection: apsw.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(apsw.Error):
            connection.execute("PRAGMA shrink_memory")


def _let_write_beside(file: Path) -> None:
    """Give the WAL and its shared memory the write permission of the database.

    SQLite creates them with the mode of the database: if that was read-only then, they would stay read-only.
    """
    for beside in (Path(f"{file}-wal"), Path(f"{file}-shm")):
        with contextlib.suppress(OSError):
            mode, has = file.stat().st_mode, beside.lstat().st_mode
            if mode & stat.S_IWUSR and stat.S_ISREG(has) and not has & stat.S_IWUSR:
                beside.chmod(stat.S_IMODE(mode))


def _require_writable(connection: apsw.Connection) -> None:
    """Raise if the file is read-only, which SQLite does not report when it opens a file."""
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("no permission to write")
