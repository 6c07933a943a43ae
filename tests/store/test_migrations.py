import errno
import os
import shutil
import stat
from pathlib import Path
from types import SimpleNamespace

import apsw
import pytest

from memd.store import migrations
from memd.store.database import Database
from memd.store.errors import StoreDamaged, StoreFull, StoreUnavailable
from memd.store.migrations import KEPT_S, is_old
from tests.faults.vfs import Act, Operation, Sync, Write, between
from tests.store.golden.read import DIRECTORY, unpack
from tests.store.older import made, names, run, schema_of


def tables(file: Path) -> set[str]:
    connection = apsw.Connection(str(file), flags=apsw.SQLITE_OPEN_READONLY)
    try:
        return {name for (name,) in connection.execute("SELECT name FROM sqlite_schema")}
    finally:
        connection.close()


@pytest.mark.parametrize("schema", ["index", "embeddings"])
def test_no_step_ends_the_transaction_that_holds_them_all(schema: str) -> None:
    """Steps are numbered from 1 without a gap, and none says what only a whole migration may say."""
    steps = migrations.steps(schema)
    assert [number for number, _ in steps] == list(range(1, migrations.newest(schema) + 1))
    for _, sql in steps:
        said = {
            line.split("--")[0].split()[0].upper() for line in sql.splitlines() if line.split("--")[0].split()
        }
        assert not said & {"BEGIN", "COMMIT", "ROLLBACK", "VACUUM", "PRAGMA", "SAVEPOINT", "RELEASE"}


def test_steps_are_taken_all_or_none(tmp_path: Path) -> None:
    """Where the second fails, nothing of the first is there either."""
    file = made(tmp_path / "embeddings.sqlite", "embeddings", 0)
    run(file, "CREATE TABLE documents (somebody TEXT)")
    before = tables(file)
    connection = apsw.Connection(str(file))
    with pytest.raises(StoreDamaged, match="already exists"):
        migrations.migrate(connection, "embeddings")
    assert not connection.in_transaction
    connection.close()
    assert (schema_of(file), tables(file)) == (0, before)


def test_what_is_not_sound_afterwards_is_not_kept(tmp_path: Path) -> None:
    """A database that was damaged before stays at its schema, as it is."""
    unpack(DIRECTORY / "schema-1-2", tmp_path)
    file = tmp_path / "agents" / "main.sqlite"
    run(file, "UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
    connection = apsw.Connection(str(file))
    with pytest.raises(StoreDamaged, match="fts5"):
        migrations.migrate(connection, "index")
    connection.close()
    assert schema_of(file) == 1
    assert "turns" not in tables(file)


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database whose last words are in its log alone; another connection keeps it there."""
    return tmp_path / "main.sqlite"


def written(file: Path) -> apsw.Connection:
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", "wal")
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("CREATE TABLE held (text); PRAGMA user_version = 3")
    connection.executemany("INSERT INTO held VALUES (?)", ((f"line {n} 第{n}行" * 40,) for n in range(300)))
    return connection


def rows(file: Path) -> list[object]:
    connection = apsw.Connection(
        f"file:{file}?immutable=1", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
    )
    try:
        return [connection.pragma("user_version"), *connection.execute("SELECT text FROM held")]
    finally:
        connection.close()


def test_a_copy_has_all_that_the_log_has(file: Path) -> None:
    """It is for its owner alone, needs no log of its own, and nothing else is left beside the database."""
    connection = written(file)
    mask = os.umask(0o022)
    try:
        kept_as = migrations.make_copy(connection, file, 4)
    finally:
        os.umask(mask)
    assert kept_as == file.with_name("main.sqlite.before-schema-4")
    assert stat.S_IMODE(kept_as.stat().st_mode) == 0o600
    assert rows(kept_as) == [connection.pragma("user_version"), *connection.execute("SELECT text FROM held")]
    assert len(rows(kept_as)) == 301
    assert names(file.parent) == ["main.sqlite", "main.sqlite-shm", "main.sqlite-wal", kept_as.name]
    [copy] = migrations.kept_copies(file)
    assert (copy.path, copy.before, copy.schema, copy.bytes) == (kept_as, 4, 3, kept_as.stat().st_size)
    connection.close()


def test_a_copy_is_on_the_disk_before_it_has_its_name(file: Path) -> None:
    """Nothing is written to it after the last time that it is synced."""
    connection = written(file)
    seen: list[Operation] = []

    def watch(operation: Operation, act: Act) -> bytes:
        if isinstance(operation, Write | Sync):
            assert [path.name for path in file.parent.glob("*before-schema-*")] == []
            seen.append(operation)
        return act(operation)

    with between(watch):
        migrations.make_copy(connection, file, 4)
    assert len(seen) > 20
    assert [type(one) for one in seen].index(Sync) == len(seen) - 1
    connection.close()


@pytest.mark.parametrize("code", [apsw.SQLITE_FULL, apsw.SQLITE_IOERR_WRITE, apsw.SQLITE_IOERR_FSYNC])
def test_a_copy_that_cannot_be_written_leaves_nothing(file: Path, code: int) -> None:
    """The database is as it was, and a disk that is full is called so."""
    connection = written(file)
    before = file.read_bytes(), Path(f"{file}-wal").read_bytes()

    def fail(operation: Operation, act: Act) -> bytes:
        is_late = (
            isinstance(operation, Sync) if code == apsw.SQLITE_IOERR_FSYNC else isinstance(operation, Write)
        )
        if is_late and operation.file.endswith(".partial"):
            raise apsw.exception_for(code)
        return act(operation)

    with between(fail), pytest.raises((StoreFull, apsw.IOError)) as failed:
        migrations.make_copy(connection, file, 4)
    if code == apsw.SQLITE_FULL:
        assert isinstance(failed.value, StoreFull)
        assert all(word in str(failed.value) for word in (str(file), "copy", "no room", "by itself"))
    assert (file.read_bytes(), Path(f"{file}-wal").read_bytes()) == before
    assert migrations.kept_copies(file) == ()
    assert not list(file.parent.glob("*.partial"))
    connection.close()


def test_what_stands_in_the_place_of_a_copy_is_not_written_through(file: Path, tmp_path: Path) -> None:
    """A link that somebody put there is replaced, and what it leads to stays."""
    connection = written(file)
    other = tmp_path / "other"
    other.write_text("precious")
    for name in ("main.sqlite.before-schema.partial", "main.sqlite.before-schema-4"):
        (tmp_path / name).symlink_to(other)
    assert migrations.kept_copies(file) == ()
    kept_as = migrations.make_copy(connection, file, 4)
    assert other.read_text() == "precious"
    assert not kept_as.is_symlink()
    connection.close()


def test_a_directory_in_the_place_of_a_copy_is_told(file: Path) -> None:
    """Nothing in it is deleted, and nothing is left of the attempt."""
    connection = written(file)
    (file.with_name("main.sqlite.before-schema-4") / "precious").mkdir(parents=True)
    with pytest.raises(StoreUnavailable, match="cannot be copied before"):
        migrations.make_copy(connection, file, 4)
    assert migrations.kept_copies(file) == ()
    assert not list(file.parent.glob("*.partial"))
    connection.close()


def test_copies_of_several_schemas_are_kept_apart(file: Path) -> None:
    """The newest first; what was begun, and files of other databases, are none."""
    connection = written(file)
    for number in (4, 12, 5):
        migrations.make_copy(connection, file, number)
    connection.close()
    for name in (
        "main.sqlite.before-schema.partial",
        "mainxsqlite.before-schema-7",
        "main.sqlite.before-schema-x",
    ):
        (file.parent / name).touch()
    assert [copy.before for copy in migrations.kept_copies(file)] == [12, 5, 4]
    migrations.remove_copies(migrations.kept_copies(file)[:2])
    assert [copy.before for copy in migrations.kept_copies(file)] == [4]
    migrations.remove_partial_copy(file)
    assert not (file.parent / "main.sqlite.before-schema.partial").exists()


@pytest.mark.parametrize(
    ("age_s", "expected"),
    [
        (KEPT_S, True),
        (KEPT_S - 1, False),
        (0.0, False),
        (-60.0, False),  # the clock was set right
        (-KEPT_S * 400, True),  # it is from a year that is yet to come
    ],
)
def test_a_copy_is_kept_for_a_day(age_s: float, *, expected: bool) -> None:
    """Whatever the clock did meanwhile."""
    assert is_old(age_s) is expected


@pytest.mark.parametrize("missing", [0, 1])
def test_a_copy_that_has_no_room_is_not_begun(
    file: Path, monkeypatch: pytest.MonkeyPatch, missing: int
) -> None:
    """A disk that is filled to its end is everybody's trouble; with just the room, it is made."""
    connection = written(file)
    size = int(connection.pragma("page_count")) * int(connection.pragma("page_size"))
    monkeypatch.setattr(shutil, "disk_usage", lambda _: SimpleNamespace(free=size - missing))
    if missing:
        with pytest.raises(StoreFull):
            migrations.make_copy(connection, file, 4)
    else:
        migrations.make_copy(connection, file, 4)
    assert len(migrations.kept_copies(file)) == 1 - missing
    connection.close()


async def test_of_several_copies_those_are_deleted_that_are_named(tmp_path: Path) -> None:
    """Or all of them."""
    database = Database(tmp_path / "e.sqlite", "embeddings")
    await database.open()
    await database.close()
    for schema in (2, 3):
        shutil.copy(database.file, tmp_path / f"e.sqlite.before-schema-{schema}")
    database = Database(database.file, "embeddings")
    await database.open()
    older, newer = sorted(database.copies, key=lambda copy: copy.before)
    assert (newer.before, older.before) == (3, 2)
    migrations.remove_copies([newer])
    await database.drop_copies([newer])  # gone already
    left = [copy.before for copy in database.copies]
    await database.drop_copies()
    assert (left, [copy.before for copy in database.copies]) == ([older.before], [])
    await database.close()


@pytest.mark.parametrize(
    ("code", "kind"),
    [(errno.ENOSPC, StoreFull), (errno.EDQUOT, StoreFull), (errno.EACCES, StoreUnavailable)],
)
def test_a_disk_that_refuses_a_copy_is_told_by_what_can_be_done(
    file: Path, monkeypatch: pytest.MonkeyPatch, code: int, kind: type[Exception]
) -> None:
    """Room can be made; and a file that cannot be written anew stays as it is."""

    def refuse(*_: object) -> None:
        raise OSError(code, os.strerror(code))

    connection = written(file)
    held = list(connection.execute("SELECT text FROM held"))
    with monkeypatch.context() as patched:
        patched.setattr(migrations, "copy_pages", refuse)
        with pytest.raises(StoreUnavailable) as failed:
            migrations.make_copy(connection, file, 4)
        assert type(failed.value) is kind
        connection.close()
        with pytest.raises(StoreUnavailable, match=f"cannot be written anew: {os.strerror(code)}"):
            migrations.rewrite(file)
    assert names(file.parent) == ["main.sqlite"]
    assert rows(file)[1:] == held
    migrations.rewrite(file)
    assert rows(file)[1:] == held
