"""Whatever fails in a write or a read: the next one works, what was written stays, and a sound file is never called damaged."""

import asyncio
import errno
import os
import re
import resource
import shutil
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import contextmanager, nullcontext
from pathlib import Path
from types import SimpleNamespace
from typing import NamedTuple, cast

import apsw
import pytest

from memd.domain_types import Kind, TextHash
from memd.store import (
    connections,
    database_files,
    disk_room,
    integrity,
    recovery,
    vector_table,
    write_ahead_log,
)
from memd.store import database as databases
from memd.store.connections import Connections
from memd.store.database import FREE_PAGES_KEPT, READERS, Database
from memd.store.database_files import sync_directory
from memd.store.disk_room import SPARED_BYTES, SPARED_SHARE
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import (
    StoreDamaged,
    StoreFull,
    StoreRefused,
    StoreUnavailable,
    StoreUnsynced,
    mapped_errors,
)
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.store.migrations import BackupCopy, remove_copies
from tests.bounds import shipped
from tests.daemon.disk import FaultyDisk, fails
from tests.store.conftest import chunk_of, found_file, ranked, vector_of

SPACE = ("hashing", "words", "1")
EVERYTHING = frozenset(Kind)
KEPT = TextHash(b"k" * 32)
ROOM_STEP, MOST_ROOM = 2_000, 60_000  # bytes of memory that a statement is given

Work = Callable[[apsw.Connection], object]


class Disk(NamedTuple):
    """How full a disk is, in bytes."""

    total: int
    used: int
    free: int


class Scene:
    """A database with one row in it, on a disk that can be told to fail."""

    def __init__(self, database: Database, disk: FaultyDisk) -> None:
        self.database = database
        self.disk = disk


@pytest.fixture
async def scene(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> AsyncIterator[Scene]:
    monkeypatch.setattr(connections, "BUSY_TIMEOUT_MS", 20)
    with FaultyDisk.inserted() as disk:
        made = Database(tmp_path / "e.sqlite", "embeddings")
        await made.open()
        await made.write(put, KEPT)
        yield Scene(made, disk)
        disk.faults.clear()
        await made.close()


def put(connection: apsw.Connection, text_hash: bytes, times: int = 1) -> None:
    connection.execute(
        "INSERT INTO cache (provider, model, provider_key, hash, vector, used_at) VALUES ('a', 'b', 'c', ?, ?, 0)",
        (text_hash, bytes(4096 * times)),
    )


def count(connection: apsw.Connection) -> int:
    found: int = connection.execute("SELECT count(*) FROM cache").get
    return found


@contextmanager
def nothing(_: Scene) -> Iterator[None]:
    yield


@contextmanager
def locked(scene: Scene) -> Iterator[None]:
    """By another program."""
    other = apsw.Connection(str(scene.database.file), vfs=scene.disk.base)
    other.execute("BEGIN IMMEDIATE")
    yield
    other.close()


def disk_that_fails(code: int) -> Callable[[Scene], object]:
    @contextmanager
    def failing(scene: Scene) -> Iterator[None]:
        scene.disk.faults["-wal", "write"] = fails(code)
        yield
        scene.disk.faults.clear()

    return failing


def raising(failure: BaseException) -> Work:
    """A defect of the caller's, after it has written something."""

    def work(connection: apsw.Connection) -> None:
        put(connection, b"half")
        raise failure

    return work


def constraint(connection: apsw.Connection) -> None:
    put(connection, b"half")
    put(connection, KEPT)


def missing_value(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute("INSERT INTO cache (provider) VALUES (NULL)")


def wrong_sql(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute("SELECT nothing FROM nowhere")


def too_large(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute("SELECT zeroblob(2000000000)")


def too_long_a_number(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute("SELECT ?", (1 << 63,))


def interrupted(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.set_progress_handler(lambda: True, 1)
    try:
        connection.execute("SELECT count(*) FROM cache AS a, cache AS b").fetchall()
    finally:
        connection.set_progress_handler(None)


def rolled_back_by_sqlite(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute("INSERT OR ROLLBACK INTO cache SELECT * FROM cache")


def full(connection: apsw.Connection) -> None:
    put(connection, b"half")
    connection.execute(f"PRAGMA max_page_count = {connection.pragma('page_count')}")
    try:
        put(connection, b"much", times=1000)
    finally:
        connection.execute("PRAGMA max_page_count = 1000000")


@pytest.mark.parametrize("lasting", [False, True])
@pytest.mark.parametrize(
    ("around", "work"),
    [
        (nothing, raising(KeyError("ours"))),
        (nothing, raising(MemoryError())),
        (nothing, raising(UnicodeEncodeError("utf-8", "\ud800", 0, 1, "surrogates"))),
        (nothing, constraint),
        (nothing, missing_value),
        (nothing, wrong_sql),
        (nothing, too_large),
        (nothing, too_long_a_number),
        (nothing, interrupted),
        (nothing, rolled_back_by_sqlite),
        (nothing, full),
        (locked, put_more := (lambda connection: put(connection, b"half", times=50))),
        (disk_that_fails(apsw.SQLITE_FULL), put_more),
        (disk_that_fails(apsw.SQLITE_IOERR_WRITE), put_more),
        (disk_that_fails(apsw.SQLITE_READONLY), put_more),
    ],
)
async def test_after_a_write_that_failed_the_next_one_works(
    scene: Scene, around: Callable[[Scene], object], work: Work, *, lasting: bool
) -> None:
    """Nothing of it is there, nothing else is gone, and nobody says that the file is damaged."""
    write = scene.database.write_lasting if lasting else scene.database.write
    with around(scene), pytest.raises(Exception) as failed:  # type: ignore[attr-defined]
        await write(work)
    assert not isinstance(failed.value, StoreDamaged)
    await scene.database.write(put, b"next")
    await scene.database.check()
    assert await scene.database.read(count) == 2


@pytest.mark.parametrize(
    "work",
    [
        lambda connection: connection.execute("SELECT nothing FROM nowhere"),
        lambda connection: connection.execute("SELECT zeroblob(2000000000)").fetchall(),
        lambda connection: connection.execute("ROLLBACK"),
        lambda connection: connection.execute("DELETE FROM cache"),
        interrupted,
    ],
)
async def test_after_a_read_that_failed_the_next_one_works(scene: Scene, work: Work) -> None:
    """With the same places for readers, each of which is tried."""
    for _ in range(2 * databases.READERS):
        with pytest.raises(Exception) as failed:
            await scene.database.read(lambda reader: (work(reader), count(reader), 1 / 0))
        assert not isinstance(failed.value, StoreDamaged)
        assert await scene.database.read(count) == 1


@pytest.fixture
def memory() -> Iterator[Callable[[int], None]]:
    """How much of it SQLite may take beyond what it has."""

    def leave(room: int) -> None:
        apsw.hard_heap_limit(apsw.memory_used() + room if room else 0)

    yield leave
    apsw.hard_heap_limit(0)


async def test_a_moment_without_memory_damages_nothing(index: Index, memory: Callable[[int], None]) -> None:
    """Wherever in a read or a write it runs out: that one fails, and may be tried again."""
    chunks = [chunk_of(f"kettle word{n} " * 20, n + 1) for n in range(50)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    failed = 0
    for room in range(ROOM_STEP, MOST_ROOM, ROOM_STEP):
        for work in (
            lambda: ranked(index, '"kettle" OR "word7"', 20, EVERYTHING),
            index.known,
            lambda room=room: index.replace(
                found_file("memory/b.md"), b"%d" % room, [chunk_of(f"walrus {room} " * 40)], {}, frozenset()
            ),
        ):
            await index.vectors.release_pages()
            memory(room)
            try:
                await work()
            except StoreUnavailable:
                failed += 1
            finally:
                memory(0)
    assert failed > 10
    await index.database.check()
    assert len(await ranked(index, '"kettle"', 100, EVERYTHING)) == 50
    assert recovery.kept_damaged(index.file) == []


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The schemas of the files that were looked through, in order."""
    seen = []
    faults = integrity.faults

    def counted(connection: apsw.Connection, schema: str) -> tuple[str, ...]:
        seen.append(schema)
        return faults(connection, schema)

    monkeypatch.setattr(integrity, "faults", counted)
    return seen


async def test_damage_that_sqlite_does_not_name_is_looked_for(
    scene: Scene, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A table that is gone is found by a look through the file, which is not taken for each statement that fails."""
    monkeypatch.setattr(databases, "CHECK_REST", 1e9)
    for _ in range(3):
        with pytest.raises(StoreUnavailable):
            await scene.database.write(wrong_sql)
    assert looks == ["embeddings"]
    monkeypatch.setattr(scene.database, "_check_from", 0.0)
    await scene.database.write(lambda writer: writer.execute("DROP TABLE set_aside"))
    with pytest.raises(StoreDamaged, match="set_aside"):
        await scene.database.write(lambda writer: writer.execute("SELECT * FROM set_aside"))


@pytest.mark.parametrize("name", ["plain", "with space", "a?b#c%41", "\u6570\u636e", "st\udcffate"])
@pytest.mark.parametrize("slashes", ["/", "//", "///"])
async def test_a_directory_by_any_name_holds_the_same_files(tmp_path: Path, name: str, slashes: str) -> None:
    """What POSIX takes for one directory is one: what was paid for is there, and nothing is set aside."""
    directory = tmp_path / name
    directory.mkdir()
    store = EmbeddingStore(directory / "embeddings.sqlite")
    await store.open()
    await store.put(SPACE, {KEPT: b"v"}, 1.0)
    assert store.failure is None
    await store.close()
    again = EmbeddingStore(Path(f"{slashes}{str(directory).lstrip('/')}") / "embeddings.sqlite")
    await again.open()
    assert again.failure is None
    assert await again.held(SPACE, [KEPT]) == {KEPT}
    await again.close()
    assert recovery.kept_damaged(store.file) == []
    assert [path.name for path in directory.iterdir()] == ["embeddings.sqlite"]


@pytest.mark.parametrize(
    "dimensions", [vector_table.MOST_DIMENSIONS, vector_table.MOST_DIMENSIONS + 1, 16_384]
)
async def test_vectors_of_any_length_are_kept(tmp_path: Path, dimensions: int) -> None:
    """Also those that are longer than sqlite-vec takes; over a restart, too."""
    made_for = Fingerprint("c1", "t1", ("memory",), "fake", "large", "k", dimensions)
    chunk, vector = chunk_of("kettle"), bytes(4 * dimensions - 4) + b"\0\0\x80\x3f"
    for life in range(2):
        index = Index(tmp_path / "main.sqlite")
        await index.open()
        await index.adopt(made_for)
        if not life:
            await index.replace(found_file("memory/a.md"), b"1", [chunk], {chunk.hash: vector}, frozenset())
        assert await index.vectors_of([chunk.hash]) == {chunk.hash: vector}
        assert (await index.counts()).waiting == 0
        await index.database.check()
        await index.close()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), "fake", "small", "k", 8))
    assert (await index.counts()).waiting == 1
    await index.close()
    assert recovery.kept_damaged(index.file) == []


@pytest.mark.parametrize("damage", [None, "a page cannot be read"])
async def test_a_swap_that_has_happened_counts_though_the_file_cannot_be_opened_after(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, damage: str | None
) -> None:
    """With the new content come the vectors and the space of the new content: never two models in one table."""
    before, after = (Fingerprint("c1", "t1", ("memory",), "fake", name, "k", 8) for name in ("old", "new"))
    chunk = chunk_of("kettle")
    index, other = Index(tmp_path / "main.sqlite"), Index(tmp_path / "main.sqlite.next")
    for one, made_for, seed in ((index, before, 1), (other, after, 2)):
        await one.open()
        await one.adopt(made_for)
        await one.replace(
            found_file("memory/a.md"), b"1", [chunk], {chunk.hash: vector_of(seed)}, frozenset()
        )
    attempts: list[str] = []
    usual = Connections.open

    def fail_once(connections: Connections, uri: str, flags: int) -> apsw.Connection:
        if uri == database_files.uri(index.file) and flags & apsw.SQLITE_OPEN_READWRITE and not attempts:
            attempts.append(uri)
            raise apsw.CantOpenError("no more descriptors")
        return usual(connections, uri, flags)

    monkeypatch.setattr(Connections, "open", fail_once)
    await index.swap_in(other, damage=damage)
    assert attempts
    assert index.space == after.space
    assert await index.fingerprint() == after
    late = chunk_of("walrus")
    changes = [FileChange(found_file("memory/b.md"), b"1", [late])]
    await index.replace_all(changes, {late.hash: vector_of(1)}, frozenset(), before.space)
    assert await index.vectors_of([chunk.hash, late.hash]) == {chunk.hash: vector_of(2)}
    await index.database.check()
    await index.close()


async def test_what_is_deleted_is_given_back_to_the_disk(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In steps, once there is much of it; a little is kept for what comes."""
    monkeypatch.setattr(databases, "FREE_PAGES_KEPT", 20)
    for n in range(40):
        chunks = [chunk_of(f"word{n} {i} " * 60, i + 1) for i in range(30)]
        await index.replace(found_file(f"memory/{n}.md"), b"1", chunks, {}, frozenset())
    await index.database.checkpoint(wait=False)
    before = database_files.size(index.file)
    await index.remove([f"memory/{n}.md" for n in range(38)])
    steps = 0
    while await index.database.shrink():
        steps += 1
        await index.database.checkpoint(wait=False)
    await index.database.checkpoint(wait=False)
    assert steps > 3
    assert database_files.size(index.file) < before / 2
    assert not await index.database.shrink()
    await index.database.check()
    assert len(await ranked(index, '"word39"', 100, EVERYTHING)) == 30


@pytest.mark.parametrize("missing", [0, 1])
async def test_as_many_free_pages_are_kept_as_one_step_gives_back(index: Index, missing: int) -> None:
    """With one page less nothing is done, so that each deleted note does not rewrite the file."""

    def leave_free(writer: apsw.Connection) -> None:
        writer.execute("CREATE TABLE filler (x BLOB)")
        row = (bytes(3_900),)  # has a page of its own
        writer.executemany("INSERT INTO filler VALUES (?)", [row] * (FREE_PAGES_KEPT + 50))
        writer.execute("DELETE FROM filler WHERE rowid > 10")  # and the pages above those of rows
        while writer.pragma("freelist_count") > FREE_PAGES_KEPT - missing:
            writer.execute("INSERT INTO filler VALUES (?)", row)

    await index.database.write(leave_free)
    assert await index.database.shrink() is not bool(missing)
    left = await index.database.read(lambda reader: reader.pragma("freelist_count"))
    assert left == (FREE_PAGES_KEPT - 1 if missing else 0)


@pytest.mark.parametrize(
    ("disk_bytes", "stays_free"),
    [
        (1 << 40, SPARED_BYTES),
        (SPARED_BYTES * SPARED_SHARE, SPARED_BYTES),
        (SPARED_BYTES * SPARED_SHARE // 2, SPARED_BYTES // 2),
    ],
)
async def test_some_of_the_disk_stays_free(
    index: Index, monkeypatch: pytest.MonkeyPatch, disk_bytes: int, stays_free: int
) -> None:
    """So that something can be deleted afterwards; of a small disk a part."""
    log_bytes = database_files.size(Path(f"{index.file}-wal"))  # has to fit into the file, too
    assert log_bytes < stays_free // 10
    for free in (stays_free + log_bytes, stays_free - 1):
        monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(disk_bytes, disk_bytes, free))  # noqa: B023
        with nullcontext() if free > stays_free else pytest.raises(StoreFull):
            await index.database.write_more(0, lambda _: None)


async def test_room_is_left_to_delete_something(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where little is free nothing is added, what is there can be taken out, and that makes room for other things."""
    chunks = [chunk_of(f"word {i} " * 60, i + 1) for i in range(400)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1 << 30, 1 << 30, 0))
    with pytest.raises(StoreFull):
        await index.replace(found_file("memory/b.md"), b"1", chunks, {}, frozenset())
    assert len(await index.known()) == 1
    monkeypatch.setattr(disk_room, "SPARED_BYTES", 1 << 16)
    await index.remove(["memory/a.md"])
    await index.replace(found_file("memory/b.md"), b"1", chunks[:20], {}, frozenset())
    assert set(await index.known()) == {"memory/b.md"}


@pytest.mark.parametrize("added", [30_000, 3_000_000])
@pytest.mark.parametrize("is_enough", [True, False])
async def test_what_is_to_be_written_has_room_in_the_log_and_in_the_file(
    index: Index, monkeypatch: pytest.MonkeyPatch, added: int, *, is_enough: bool
) -> None:
    """To the byte: the log is written over where all of it is in the file, and so are pages of the file that are free."""
    chunks = [chunk_of(f"word {i} " * 60, i + 1) for i in range(100)]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    await index.remove(["memory/a.md"])
    await index.database.checkpoint(wait=False)
    log_bytes = database_files.size(Path(f"{index.file}-wal"))
    free_pages = await index.database.read(lambda one: one.pragma("freelist_count"))
    assert log_bytes > 0
    assert free_pages > 0
    in_log = max(0, disk_room.WAL_GROWTH * added - log_bytes)
    in_file = max(0, disk_room.FILE_GROWTH * added - write_ahead_log.PAGE * free_pages)
    assert in_log + in_file > 0
    free = in_log + in_file - (not is_enough)
    monkeypatch.setattr(disk_room, "SPARED_BYTES", 0)
    monkeypatch.setattr(shutil, "disk_usage", lambda _: Disk(1 << 40, 1 << 40, free))
    if is_enough:
        assert await index.database.write_more(added, lambda _: "written") == "written"
    else:
        with pytest.raises(StoreFull):
            await index.database.write_more(added, lambda _: "written")


async def test_pages_in_memory_are_given_up_by_each_connection(scene: Scene) -> None:
    """By those that read, which are not in use just now, and by the one that writes."""
    told: list[str] = []

    def tells(_: apsw.Cursor, sql: str, __: object) -> bool:
        told.append(sql)
        return True

    def listen(connection: apsw.Connection) -> None:
        connection.set_exec_trace(tells)

    await scene.database.write(listen)
    await scene.database.read(listen)
    told.clear()
    await scene.database.release_pages()
    assert told == ["PRAGMA shrink_memory"] * 2


async def test_after_a_look_another_one_is_taken_in_time(
    scene: Scene, looks: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """After as many times as long as it took: damage that came since is not hidden for ever."""
    monkeypatch.setattr(databases, "CHECK_REST", 1)
    async with asyncio.timeout(60):
        while len(looks) < 3:
            with pytest.raises(StoreUnavailable):
                await scene.database.write(wrong_sql)


async def test_another_look_is_taken_after_so_many_times_as_long(
    scene: Scene, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A statement that fails before that is not looked into."""
    looking, took_s, now_s, looks = shipped("memd.store.database.CHECK_REST"), 2.0, 1e6, 0

    def slow(_: apsw.Connection, __: str) -> tuple[str, ...]:
        nonlocal now_s, looks
        now_s += took_s
        looks += 1
        return ()

    monkeypatch.setattr(integrity, "faults", slow)
    monkeypatch.setattr(databases, "time", SimpleNamespace(monotonic=lambda: now_s))
    for after_s, expected in ((0.0, 1), (looking * took_s - 0.1, 1), (0.1, 2)):
        now_s += after_s
        with pytest.raises(StoreUnavailable):
            await scene.database.write(wrong_sql)
        assert looks == expected


@pytest.mark.parametrize("is_read_only", [True, False])
def test_a_file_that_cannot_be_opened_on_a_disk_that_is_read_only_is_told_so(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, is_read_only: bool
) -> None:
    """SQLite says of both that it was unable to open it."""
    flags = os.ST_RDONLY if is_read_only else 0
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    with pytest.raises(StoreUnavailable) as told, mapped_errors(tmp_path / "main.sqlite"):
        raise apsw.CantOpenError("unable to open database file")
    assert ("its disk is read-only" in str(told.value)) is is_read_only
    assert ("unable to open" in str(told.value)) is not is_read_only


@pytest.mark.parametrize(
    ("error", "is_told"),
    [
        (apsw.SQLError("no such table: keywords"), True),
        (apsw.SQLError('fts5: syntax error near "the kettle"'), False),
        (apsw.SQLError("no such column: kettle"), False),
        (apsw.ConstraintError("UNIQUE constraint failed: files.path"), True),
    ],
)
def test_what_is_told_of_a_statement_that_is_refused_quotes_no_question(
    tmp_path: Path, error: apsw.Error, *, is_told: bool
) -> None:
    """What SQLite says of its tables is told, since that helps who reads it."""
    with pytest.raises(StoreRefused) as told, mapped_errors(tmp_path / "main.sqlite"):
        raise error
    assert (str(error) in str(told.value)) is is_told
    assert "main.sqlite" in str(told.value)


@pytest.mark.parametrize("is_copied", [True, False])
async def test_connections_last_until_the_content_is_swapped(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, is_copied: bool
) -> None:
    """Each keeps what it has read of the old content: one that stayed open would answer from it."""
    opened: list[apsw.Connection] = []
    usual = Connections.open

    def connect(connections: Connections, uri: str, flags: int) -> apsw.Connection:
        connection = usual(connections, uri, flags)
        if uri == database_files.uri(tmp_path / "e.sqlite"):
            opened.append(connection)
        return connection

    async def read_with_each() -> None:
        for _ in range(READERS):  # they take turns
            await database.read(lambda connection: connection.pragma("user_version"))

    monkeypatch.setattr(Connections, "open", connect)
    database, other = (Database(tmp_path / name, "embeddings") for name in ("e.sqlite", "next.sqlite"))
    for one in (database, other):
        await one.open()
    await other.close()
    await read_with_each()
    before = opened.copy()
    await read_with_each()
    assert opened == before
    if is_copied:
        await database.replace_from(other.file)
    else:

        def put_in_place() -> None:
            other.file.replace(database.file)

        await database.exchange(put_in_place)
    await read_with_each()
    assert [is_closed(one) for one in before] == [True] * len(before)
    await database.close()


def is_closed(connection: apsw.Connection) -> bool:
    try:
        connection.changes()
    except apsw.ConnectionClosedError:
        return True
    return False


@pytest.mark.parametrize("make", [Path.mkdir, os.mkfifo])
@pytest.mark.parametrize("end", ["", "-wal", "-shm"])
async def test_what_is_no_file_is_named(tmp_path: Path, make: Callable[[Path], None], end: str) -> None:
    """SQLite would fail at it without a word, or wait for ever for what comes out of a pipe."""
    file = tmp_path / "main.sqlite"
    database_files.require_files(file)
    file.touch()
    database_files.require_files(file)
    file.unlink()
    taken = Path(f"{file}{end}")
    make(taken)
    with pytest.raises(StoreDamaged, match=re.escape(f"{taken} is not a file")):
        database_files.require_files(file)


@pytest.mark.parametrize(
    ("error", "kind"),
    [
        (apsw.MisuseError("library routine called out of sequence"), apsw.MisuseError),
        (apsw.CorruptError("malformed"), StoreDamaged),
        (apsw.BusyError("busy"), StoreUnavailable),
        (apsw.FullError("full"), StoreFull),
        (apsw.ReadOnlyError("read-only"), StoreUnavailable),
        (MemoryError(), StoreUnavailable),
        (UnicodeDecodeError("utf-8", b"secret", 0, 1, "invalid"), StoreDamaged),
        (KeyError("a defect"), KeyError),
    ],
)
def test_what_an_error_of_sqlite_means(tmp_path: Path, error: Exception, kind: type[Exception]) -> None:
    """A mistake in memd's own code is none of the disk."""
    with pytest.raises(kind) as told, mapped_errors(tmp_path / "main.sqlite"):
        raise error
    assert "secret" not in str(told.value)


@pytest.mark.parametrize(
    "code", [apsw.SQLITE_IOERR_FSYNC, apsw.SQLITE_IOERR_DIR_FSYNC, apsw.SQLITE_IOERR_WRITE]
)
def test_a_disk_that_did_not_keep_what_was_written_is_told_apart(tmp_path: Path, code: int) -> None:
    """What it says next time may be wrong."""
    error = type("Told", (apsw.IOError,), {"extendedresult": code})("disk I/O error")
    with pytest.raises(StoreUnavailable) as told, mapped_errors(tmp_path / "main.sqlite"):
        raise error
    assert isinstance(told.value, StoreUnsynced) is (code != apsw.SQLITE_IOERR_WRITE)


@pytest.mark.parametrize(
    ("number", "said"),
    [
        (
            errno.EFBIG,
            r"a may not grow: the limit on the size of a file .* is reached \(ulimit -f, LimitFSIZE\)",
        ),
        (errno.EDQUOT, r"the disk of .*a: the quota is used up"),
    ],
)
def test_a_limit_of_the_system_is_told_as_a_full_disk(tmp_path: Path, number: int, said: str) -> None:
    """SQLite knows it as an I/O error, and the connection knows which."""
    connection = cast("apsw.Connection", SimpleNamespace(system_errno=number))
    for code, kind, words in (
        (apsw.SQLITE_IOERR_WRITE, StoreFull, said),
        (apsw.SQLITE_IOERR_READ, StoreDamaged, "cannot be read"),
    ):
        error = type("Told", (apsw.IOError,), {"extendedresult": code})("disk I/O error")
        with pytest.raises(kind, match=words), mapped_errors(tmp_path / "a", connection):
            raise error


async def test_a_file_that_may_not_grow_is_told_as_a_full_disk(index: Index) -> None:
    """Nothing is written, and what was written stays."""
    await index.replace(found_file("a.md"), b"1", [chunk_of("kept")], {}, frozenset())
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (database_files.size(index.file), limits[1]))
    try:
        texts = [chunk_of(f"{number} " * 500) for number in range(400)]
        with pytest.raises(StoreFull, match="may not grow"):
            await index.replace(found_file("b.md"), b"2", texts, {}, frozenset())
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert (await index.counts()).files == 1
    await index.replace(found_file("b.md"), b"2", texts, {}, frozenset())
    assert (await index.counts()).files == 2


def test_a_file_that_cannot_be_opened_where_the_disk_cannot_be_asked_is_told_as_it_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And a directory that is gone is named."""

    def refused(_: object) -> None:
        raise OSError(errno.EIO, "Input/output error")

    monkeypatch.setattr(os, "statvfs", refused)
    for file, said in (
        (tmp_path / "main.sqlite", "unable to open"),
        (tmp_path / "no/main.sqlite", "no is gone"),
    ):
        with pytest.raises(StoreUnavailable, match=said), mapped_errors(file):
            raise apsw.CantOpenError("unable to open database file")


@pytest.mark.parametrize("why", [errno.EINVAL, errno.EIO])
def test_a_file_system_that_syncs_no_directory_is_no_failure(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, why: int
) -> None:
    """A disk that fails is one; the directory is closed in any case."""
    synced: list[int] = []

    def fsync(descriptor: int) -> None:
        synced.append(descriptor)
        raise OSError(why, os.strerror(why))

    monkeypatch.setattr(os, "fsync", fsync)
    if why == errno.EIO:
        with pytest.raises(OSError, match="Input/output error"):
            sync_directory(tmp_path)
    else:
        sync_directory(tmp_path)
    with pytest.raises(OSError, match="Bad file descriptor"):
        os.fstat(synced[0])


def test_a_copy_that_cannot_be_deleted_is_told(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By its name; the others are gone."""
    copies = [BackupCopy(tmp_path / name, 2, 1, 0, 0.0) for name in ("a", "b")]
    for copy in copies:
        copy.path.touch()
    remove_copies(copies[:1])
    assert not copies[0].path.exists()

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StoreUnavailable, match="b cannot be deleted: Read-only file system"):
        remove_copies(copies[1:])


async def test_what_is_sorted_needs_no_disk(index: Index) -> None:
    """A search must answer where there is no room: of readers and of the writer, what is temporary lies in memory."""

    def place(connection: apsw.Connection) -> object:
        return connection.pragma("temp_store")

    assert [await index.database.read(place), await index.database.write(place)] == [2, 2]
