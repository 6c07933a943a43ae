"""One SQLite file: a writer thread, a few readers, and errors as types."""

import asyncio
import contextlib
import math
import queue
import shutil
import stat
import threading
import time
from collections.abc import Callable, Collection, Iterator
from pathlib import Path
from typing import Concatenate, ParamSpec, TypeVar

import apsw
import msgspec
import structlog

from memd.runtime.threads import ResourceShortage, Threads
from memd.store import database_files, integrity, keywords, migrations, recovery
from memd.store.errors import (
    StoreClosed,
    StoreDamaged,
    StoreNewer,
    StoreRefused,
    StoreUnavailable,
    StoreUnsynced,
    full,
    mapped_errors,
)

P = ParamSpec("P")
T = TypeVar("T")

log = structlog.get_logger()

BUSY_TIMEOUT_MS = 5000
LOG_KEPT_BYTES = 64 << 20  # bytes that a log keeps of the disk when it is begun anew
EMPTYING_MS = 20  # for which readers may keep the log from being emptied
READERS = 3
SPARED = 8 << 20  # bytes of its disk that a database leaves free: FTS5 may merge so much at once
SPARED_SHARE = 8  # of a small disk, that part of it
PAGE = 4096  # bytes, as SQLite has it by default; in these, logs are counted
# Of a database that is made: four vectors of 384 dimensions fit in, and two in half of it. The cache takes a fifth less.
_PAGE_BYTES = {"embeddings": 8192}
IN_LOG, IN_FILE = 10, 4  # times the bytes that are added, the keyword index included
BY_REQUEST = 2  # of PRAGMA auto_vacuum: pages without content are given back when that is asked for
LEFT_FREE = 1000  # pages without content: fewer are kept for what comes, and so many are given back at once
LOOKING = 20  # times as long as a look took, none follows for the next statement that fails
LONG_LOG = 4  # times CHECKPOINT_PAGES: readers give way so that it does not grow any further
ASIDE_S = 0.1  # for which they are waited for, and wait themselves
# 16 MB of log; at SQLite's 1000, half the time of a first indexing goes into syncing the disk.
CHECKPOINT_PAGES = 4000

_READ_WRITE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_URI
_READ_ONLY = apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI


class _Reader(msgspec.Struct, frozen=True):
    """A place for one who reads."""

    connection: apsw.Connection | None  # None: it is opened by who takes the place
    generation: int  # of the file that the connection has open


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
        remakes: bool = False,
    ) -> None:
        """Does not open the file.

        Args:
            file: Where the database is; its directory must exist.
            schema: The folder of migrations, below sql/.
            extension: A loadable extension that every connection gets, or None.
            remakes: Whether a write may make the file where there is none any more. It is made of the copy that was kept
                before an upgrade, if there is one.
        """
        self.file = file
        self.read_only: str | None = None  # why it can only be read, for now
        self.ended_cleanly = True  # whether it was there, and the last one who had it open closed it
        self.unsynced: str | None = None  # why some of what was written may be lost
        # Copies of the database as it was before it was brought up to date.
        self.copies: tuple[migrations.BackupCopy, ...] = ()
        self._schema = schema
        self._extension = extension
        self._remakes = remakes
        self._writer: apsw.Connection | None = None
        self._writing = Threads(1, f"memd-write-{file.stem}")
        self._reading = Threads(READERS, f"memd-read-{file.stem}")
        self._readers: queue.SimpleQueue[_Reader] = queue.SimpleQueue()
        for _ in range(READERS):
            self._readers.put(_Reader(None, 0))
        self._generation = 0
        self._uri = database_files.uri(file)  # how readers open it
        self._identity: tuple[int, int] | None = None  # device and inode of the file that is open
        self._connections: set[apsw.Connection] = set()
        self._connections_lock = threading.Lock()
        self._opened = False
        self._closing = False
        self._page_bytes = PAGE
        self._log_pages = 0  # at the last commit
        self._fold_at = CHECKPOINT_PAGES
        self._look_from = -math.inf  # when a statement that fails may have the file looked through again

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
        database_files.require_files(self.file)
        migrations.require_known(self.file, self._schema)
        # Its log goes with the last who closes it. One of no bytes may be all that a power cut has left of it.
        self.ended_cleanly = database_files.identity(Path(f"{self.file}-wal")) is None
        try:
            if create and self._remakes and database_files.identity(self.file) is None:
                self._bring_back()
            self._open_writer(create=create)
        except StoreRefused:
            raise
        except StoreUnavailable as trouble:
            self._open_for_reading(trouble)
        self.copies = migrations.kept_copies(self.file)

    def _bring_back(self) -> None:
        try:
            with mapped_errors(self.file):
                recovery.bring_back(self.file, self._schema)
        except OSError as error:
            raise StoreUnavailable(f"{self.file} cannot be made: {error.strerror}") from error

    def _open_writer(self, *, create: bool) -> None:
        with mapped_errors(self.file):
            _let_write(self.file)
            connection = self.connect(
                database_files.uri(self.file), _READ_WRITE | (apsw.SQLITE_OPEN_CREATE if create else 0)
            )
            try:
                # Closing must not fold the log of a newer memd into its file.
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1)
                migrations.require_version(self.file, connection.pragma("user_version"), self._schema)
                connection.config(apsw.SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 0)
                if not connection.pragma("user_version"):
                    # Both before there is a page: auto_vacuum makes the first.
                    connection.pragma("page_size", _PAGE_BYTES.get(self._schema, PAGE))
                    connection.pragma("auto_vacuum", BY_REQUEST)
                connection.pragma("journal_mode", "wal")
                self._page_bytes = connection.pragma("page_size")
                # A crash of the process loses nothing; a power cut may lose the last seconds, which the next scan repairs.
                connection.pragma("synchronous", "normal")
                connection.pragma("foreign_keys", 1)
                connection.pragma("journal_size_limit", LOG_KEPT_BYTES)
                connection.set_wal_hook(self._has_logged)  # in the place of SQLite's own checkpoints
                # What is taken out is to be gone: without it, the text of a note that was deleted stays in free pages.
                # It costs a quarter more where whole files are taken out, and nothing elsewhere.
                connection.pragma("secure_delete", "on")
                _require_writable(connection)
                migrations.remove_partial_copy(self.file)
                self._bring_up_to_date(connection)
            except BaseException:
                self._close(connection)
                raise
        self._writer, self.read_only, self._uri = connection, None, database_files.uri(self.file)
        self._identity = database_files.identity(self.file)

    def _bring_up_to_date(self, connection: apsw.Connection) -> None:
        found, newest = connection.pragma("user_version"), migrations.newest(self._schema)
        self.ended_cleanly = self.ended_cleanly and found > 0  # else it is made only now
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

    def _open_for_reading(self, trouble: StoreUnavailable) -> None:
        """Have readers open what is there without writing anything, not even the index of its log.

        Raises:
            StoreUnavailable: the trouble that was given, where that cannot be done either.
        """
        has_log = database_files.size(Path(f"{self.file}-wal")) > 0
        uri = f"{database_files.uri(self.file)}?{'mode=ro' if has_log else 'immutable=1'}"
        try:
            with mapped_errors(self.file):
                connection = self.connect(uri, _READ_ONLY)
                found: int = connection.pragma("user_version")
                self._close(connection)
        except StoreUnavailable:
            raise trouble from None
        if found != migrations.newest(self._schema):
            raise trouble
        self.read_only, self._uri = str(trouble), uri
        self._generation += 1
        self._identity = database_files.identity(self.file)

    def connect(self, uri: str, flags: int) -> apsw.Connection:
        """A new connection with what every statement needs; it is closed with all others. Raises apsw.Error."""
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
            if self._schema == "index":
                keywords.prepare(connection)
        except BaseException:
            self._close(connection)
            raise
        return connection

    def _close(self, connection: apsw.Connection | None) -> None:
        if connection is None:
            return
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
        return await self._on_writer(lambda: self._transaction(lambda writer: fn(writer, *args, **kwargs)))

    async def write_more(
        self,
        size_bytes: int,
        fn: Callable[Concatenate[apsw.Connection, P], T],
        *args: P.args,
        **kwargs: P.kwargs,
    ) -> T:
        """Like write, for what makes the file larger: some room on the disk is left, without which nothing could be deleted.

        Args:
            size_bytes: That are added, about: of texts and vectors, without indexes.
            fn: As for write, with its arguments.
            args: Of fn.
            kwargs: Of fn.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing of it was written.
        """

        def transaction() -> T:
            self._require_room(size_bytes)
            return self._transaction(lambda writer: fn(writer, *args, **kwargs))

        return await self._on_writer(transaction)

    def _require_room(self, added: int) -> None:
        """Leave the room that it takes to bring the log into the file, and to write what a deletion changes.

        Raises:
            StoreFull: there is not so much.
        """
        writer = self._writer_now()
        free, spared = self._free_bytes()
        if free >= spared + PAGE * self._log_pages + (IN_LOG + IN_FILE) * added:
            return
        with mapped_errors(self.file):
            [(_, in_log, folded)] = _numbers(writer, "PRAGMA wal_checkpoint(PASSIVE)")
            [(free_pages,)] = _numbers(writer, "PRAGMA freelist_count")
        # A log that is all in the file is written from its beginning again, and pages without content take what comes.
        log_room = database_files.size(Path(f"{self.file}-wal")) if in_log == folded else 0
        wanted = max(0, spared + IN_LOG * added - log_room) + max(
            0, spared + IN_FILE * added - self._page_bytes * free_pages
        )
        if self._free_bytes()[0] < self._page_bytes * (in_log - folded) + wanted:
            raise full(self.file)

    def _free_bytes(self) -> tuple[int, int]:
        """Of the disk: what is free, and what of it nothing is to be added to."""
        try:
            disk = shutil.disk_usage(self.file.parent)
        except OSError as error:
            raise StoreUnavailable(f"{self.file}: {error.strerror}") from error
        return disk.free, min(SPARED, disk.total // SPARED_SHARE)

    async def shrink(self) -> bool:
        """Give some pages back to the disk that nothing is in any more, if they are many; whether there are more.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def give_back(writer: apsw.Connection) -> bool:
            [(free, pages, mode)] = _numbers(
                writer,
                "SELECT freelist_count, page_count, auto_vacuum"
                " FROM pragma_freelist_count, pragma_page_count, pragma_auto_vacuum",
            )
            # A file that an earlier memd made has another mode; the next rebuild makes another file.
            if free < max(LEFT_FREE, pages // 4) or mode != BY_REQUEST:
                return False
            writer.execute(f"PRAGMA incremental_vacuum({LEFT_FREE})").fetchall()
            return True

        return await self.write(give_back)

    async def write_lasting(
        self, fn: Callable[Concatenate[apsw.Connection, P], T], *args: P.args, **kwargs: P.kwargs
    ) -> T:
        """Like write; and it is on the disk itself when this returns, with all that was written before.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: nothing of it was written.
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
        with mapped_errors(self.file):
            writer.execute("BEGIN IMMEDIATE")
            try:
                result = work(writer)
                writer.execute("COMMIT")
            except BaseException:
                # After some errors SQLite has ended it by itself. Left open, no other could begin.
                if writer.in_transaction:
                    self._roll_back(writer)
                raise
        self._keep_log_short(writer)
        return result

    def _roll_back(self, writer: apsw.Connection) -> None:
        try:
            writer.execute("ROLLBACK")
        except apsw.Error:
            # The error that led here is raised. The next write opens the file anew.
            self._close_writer()

    def _has_logged(self, _: apsw.Connection, __: str, pages: int) -> int:
        self._log_pages = pages * self._page_bytes // PAGE
        return apsw.SQLITE_OK

    def _keep_log_short(self, writer: apsw.Connection) -> None:
        """Bring the log into the file where it has grown long. SQLite would do it by itself, and be silent when it fails."""
        if self._log_pages < self._fold_at:
            return
        self._fold_at = CHECKPOINT_PAGES
        try:
            with mapped_errors(self.file):
                writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
                if self._log_pages >= LONG_LOG * CHECKPOINT_PAGES:
                    self._begin_log_anew(writer)
        except StoreUnavailable as trouble:
            self._note(trouble)
            self._fold_at += self._log_pages  # what cannot be done now is not tried at each write
            log.warning("store.log_not_folded", file=str(self.file), reason=str(trouble))

    def _begin_log_anew(self, writer: apsw.Connection) -> None:
        """Have the log written from its beginning again, for which SQLite needs a moment without readers.

        Under steady searches there is none by itself: the log of an index of 19 MB grew to 433 MB in half a minute. So the
        places of readers are taken, if that is possible in a time that no search notices; else at one of the next commits,
        with the more patience the longer the log is.
        """
        taken: list[_Reader] = []
        deadline = time.monotonic() + ASIDE_S * 2 ** (self._log_pages // (LONG_LOG * CHECKPOINT_PAGES))
        try:
            while len(taken) < READERS:
                taken.append(self._readers.get(timeout=max(0.0, deadline - time.monotonic())))
            writer.set_busy_timeout(EMPTYING_MS)
            writer.execute("PRAGMA wal_checkpoint(RESTART)").fetchall()
        except queue.Empty:
            self._fold_at = self._log_pages + CHECKPOINT_PAGES
        finally:
            writer.set_busy_timeout(BUSY_TIMEOUT_MS)
            for reader in taken:
                self._readers.put(reader)

    def _note(self, trouble: StoreUnavailable) -> None:
        if isinstance(trouble, StoreUnsynced):
            self.unsynced = str(trouble)

    async def raise_if_unsynced(self) -> None:
        """Refuse to rely on a file of which something may be lost.

        Where a sync failed, a system may drop what it could not write, and call the next sync a success: Linux does.
        What was written is then in memory for a while, and no call says when it is gone. So all of it has to be
        made or written once more, elsewhere, as soon as the disk keeps what it is given.

        Raises:
            StoreUnavailable: a sync failed, and the next one does, too.
            StoreDamaged: a sync failed, and the next one did not. This is raised once.
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
                with self._alone():
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
        """Run fn(connection, ...) on a reader thread, seeing one state of the file throughout.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed.
        """

        def snapshot() -> T:
            if self._closing or not self._opened:
                raise StoreClosed("the store is closed")
            reader = self._readers.get()
            try:
                with self.judged():
                    if reader.connection is None or reader.generation != self._generation:
                        before, reader = reader, _Reader(None, 0)
                        self._close(before.connection)
                        reader = self._new_reader()
                    assert reader.connection is not None
                    reader.connection.execute("BEGIN")
                    try:
                        return fn(reader.connection, *args, **kwargs)
                    finally:
                        # SQLite may have ended it by itself: with no memory, or an I/O error.
                        if reader.connection.in_transaction:
                            reader.connection.execute("ROLLBACK")
            finally:
                self._readers.put(reader)

        return await self._on(self._reading, snapshot)

    def _new_reader(self) -> _Reader:
        generation = self._generation
        with mapped_errors(self.file):
            connection = self.connect(self._uri, _READ_ONLY if "?" in self._uri else _READ_WRITE)
            connection.pragma("query_only", 1)
        return _Reader(connection, generation)

    @contextlib.contextmanager
    def _alone(self) -> Iterator[None]:
        """Wait for the readers, close their connections, and let no read begin before the end."""
        for _ in range(READERS):
            self._close(self._readers.get().connection)
        opened: list[_Reader] = []
        try:
            yield
            # All of them now, while the file is there: a name that leads nowhere could not be opened later.
            opened += (self._new_reader() for _ in range(READERS))
        finally:
            for number in range(READERS):
                self._readers.put(opened[number] if number < len(opened) else _Reader(None, 0))

    async def _on(self, threads: Threads, work: Callable[[], T]) -> T:
        # What begins once the connections are being closed would find none.
        if self._closing:
            raise StoreClosed("the store is closed")
        try:
            return await threads.run(work)
        except ResourceShortage as trouble:
            raise StoreUnavailable(f"{self.file}: {trouble}") from trouble

    async def _on_writer(self, work: Callable[[], T]) -> T:

        def judged() -> T:
            with self._judging():
                return work()

        try:
            return await self._on(self._writing, judged)
        except StoreUnavailable as trouble:
            self._note(trouble)
            raise

    # --- the file as a whole

    @property
    def is_gone(self) -> bool:
        """Whether the name leads to another file than the one that is open, or to none."""
        return self._identity is not None and database_files.identity(self.file) != self._identity

    async def check(self) -> None:
        """Look for damage that no statement has met yet, the insides of the keyword index included.

        Raises:
            StoreDamaged: naming the first that was found.
            StoreUnavailable, StoreClosed.
        """
        # By another connection than the one whose place is taken.
        await self.read(lambda _: self._require_sound())

    def _require_sound(self) -> None:
        """Look through the file by a connection of its own.

        Raises:
            StoreDamaged: naming what was found first.
        """
        with mapped_errors(self.file):
            fresh = self._new_reader().connection
            assert fresh is not None
            try:
                fresh.execute("BEGIN")
                found = integrity.faults(fresh, self._schema)
            finally:
                self._close(fresh)
        if found:
            raise StoreDamaged(f"{self.file}: {found[0]}")

    @contextlib.contextmanager
    def judged(self) -> Iterator[None]:
        """Have errors of SQLite as memd's, and see at a statement that fails whether the file is damaged.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: in the place of SQLite's errors, and of a lack of memory.
        """
        with self._judging(), mapped_errors(self.file):
            yield

    @contextlib.contextmanager
    def _judging(self) -> Iterator[None]:
        """Where SQLite fails at a statement without calling the file damaged, see whether it is.

        Raises:
            StoreDamaged: it is; else what was raised.
        """
        try:
            yield
        except StoreRefused as refused:
            # A look takes a second where there are 30,000 chunks: not for each of many statements that fail.
            began = time.monotonic()
            if began >= self._look_from:
                with contextlib.suppress(StoreUnavailable):  # then nothing is known
                    try:
                        self._require_sound()
                    except StoreDamaged as damage:
                        raise damage from refused
                self._look_from = time.monotonic() + LOOKING * (time.monotonic() - began)
            raise

    async def release_pages(self) -> None:
        """Give up what connections that are not in use just now keep of the file in memory; each up to 2 MB.

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
        """Delete copies of this database as it was; what has been written since is on the disk itself before.

        Args:
            which: Those; None: all of them.

        Raises:
            StoreUnavailable, StoreDamaged, StoreClosed: some are still there.
        """

        def drop() -> None:
            writer = self._writer_now()
            with mapped_errors(self.file):
                # It syncs the log first, and what is in the log is as good as what is in the file.
                writer.execute("PRAGMA wal_checkpoint(PASSIVE)").fetchall()
            migrations.remove_copies(self.copies if which is None else which)
            self.copies = migrations.kept_copies(self.file)

        if self.copies:
            await self._on_writer(drop)

    async def write_anew(self) -> None:
        """Write all of this database once more, into another file that takes its place; see raise_if_unsynced.

        Right after a sync that failed, the system still has in memory what it did not keep.

        Raises:
            StoreUnavailable: the disk still does not take or keep it; the database is as it was.
            StoreDamaged: there is damage in it.
        """

        def again() -> None:
            if self.unsynced is None:
                return
            with self._alone():
                self._close_writer()
                self._identity = None
                self._generation += 1
                with mapped_errors(self.file):
                    migrations.rewrite(self.file)
                self._open(create=False)
                self.unsynced = None

        await self._on_writer(again)

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
                with migrations.immutable(other) as source:
                    migrations.copy_pages(source, writer)
                # Virtual tables keep what they read of the old content in their connection.
                self._generation += 1
                self._close_writer()
            # The copy is committed, whatever comes now: the next write opens the file, and raises if that fails.
            with contextlib.suppress(StoreUnavailable):
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
                self.unsynced = None  # that was of another file
                self._open(create=True)
            self._opened = True

        await self._on_writer(in_between)

    def _close_writer(self) -> None:
        writer, self._writer = self._writer, None
        self._close(writer)

    async def checkpoint(self, *, wait: bool) -> None:
        """Bring what is in the log into the file itself.

        Args:
            wait: Bring everything, waiting for readers; only for a file without searches. Else what can be brought
                without: under steady searches, there may be no moment without a reader for seconds.

        Raises:
            StoreUnavailable, StoreDamaged: what is in the log stays there.
        """

        def fold() -> None:
            if self._writer is None:
                return
            with mapped_errors(self.file):
                mode = "TRUNCATE" if wait else "PASSIVE"
                [(is_busy, _, _)] = self._writer.execute(f"PRAGMA wal_checkpoint({mode})").fetchall()
            if wait and is_busy:
                raise StoreUnavailable(f"{self.file} is read by another process, and cannot be completed")

        await self._on_writer(fold)

    async def empty_log(self) -> bool:
        """Bring what is in the log into the file itself and leave nothing in it; whether that was possible now.

        After a passive checkpoint the log still has its old pages, until others are written over them. Under steady
        reads there may be no moment for it: no reader is kept waiting for longer than is noticed.

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
        while not (self._reading.is_done and self._writing.is_done):
            # An interrupt reaches the statement that runs now: a long write needs more than one.
            self._interrupt()
            await asyncio.sleep(0.01)
        try:
            await self._writing.run(self._close_connections)
        except ResourceShortage:
            self._close_connections()

    def _interrupt(self) -> None:
        with self._connections_lock:
            connections = list(self._connections)
        for connection in connections:
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()

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


def _numbers(connection: apsw.Connection, sql: str) -> list[tuple[int, ...]]:
    """What SQLite answers with whole numbers alone."""
    return connection.execute(sql).fetchall()  # type: ignore[return-value]  # apsw types a row as any tuple


def _release(connection: apsw.Connection | None) -> None:
    if connection is not None:
        with contextlib.suppress(apsw.Error):
            connection.execute("PRAGMA shrink_memory")


def _let_write(file: Path) -> None:
    """Let the log and its index have the mode of the file: SQLite makes them so, and they stay so.

    Had they been made while the file might only be read, nothing could ever be written again.
    """
    for beside in (Path(f"{file}-wal"), Path(f"{file}-shm")):
        with contextlib.suppress(OSError):
            mode, has = file.stat().st_mode, beside.lstat().st_mode
            if mode & stat.S_IWUSR and stat.S_ISREG(has) and not has & stat.S_IWUSR:
                beside.chmod(stat.S_IMODE(mode))


def _require_writable(connection: apsw.Connection) -> None:
    """SQLite opens a file that it may not write without a word."""
    if connection.readonly("main"):
        raise apsw.ReadOnlyError("no permission to write")
