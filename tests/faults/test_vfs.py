"""Fault models are worth what these say: what SQLite does passes through the medium, and what a medium does reaches SQLite."""

from pathlib import Path

import apsw
import pytest

from tests.faults.vfs import Act, Delete, Open, Operation, Read, Sync, Truncate, Write, between


def work(file: Path, journal: str) -> None:
    """A transaction, and all of it in the file itself."""
    connection = apsw.Connection(str(file))
    try:
        connection.pragma("journal_mode", journal)
        connection.execute("CREATE TABLE IF NOT EXISTS held (text)")
        connection.executemany("INSERT INTO held VALUES (?)", [("x" * 3000,)] * 20)
        if journal == "wal":
            connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    finally:
        connection.close()


def rows(file: Path) -> int:
    """What is in the file."""
    connection = apsw.Connection(str(file))
    try:
        found: int = connection.execute("SELECT count(*) FROM held").get
        return found
    finally:
        connection.close()


@pytest.mark.parametrize(
    ("journal", "beside", "kinds"),
    [
        ("wal", "-wal", {Open, Read, Write, Sync, Truncate, Delete}),
        ("delete", "-journal", {Open, Write, Sync, Delete}),
    ],
)
def test_all_that_sqlite_does_passes_through(
    tmp_path: Path, journal: str, beside: str, kinds: set[type[Operation]]
) -> None:
    """The medium sees what happens to the file and to its log, the bytes included, and what it lets pass happens."""
    seen: list[Operation] = []

    def watch(operation: Operation, act: Act) -> bytes:
        done = act(operation)
        seen.append(operation)
        return done

    file = tmp_path / "held.sqlite"
    with between(watch):
        work(file, journal)
    assert rows(file) == 20
    assert {type(one) for one in seen if one.file == f"{file}{beside}"} >= kinds - {Read, Truncate}
    assert {type(one) for one in seen} >= kinds
    written = [one for one in seen if isinstance(one, Write) and one.file == str(file)]
    assert file.read_bytes()[:100] == [one.data for one in written if one.offset == 0][-1][:100]
    there = len(seen)
    work(file, journal)
    assert len(seen) == there


@pytest.mark.parametrize(
    ("kind", "code", "error"),
    [
        (Write, apsw.SQLITE_FULL, apsw.FullError),
        (Write, apsw.SQLITE_IOERR_WRITE, apsw.IOError),
        (Sync, apsw.SQLITE_IOERR_FSYNC, apsw.IOError),
        (Read, apsw.SQLITE_IOERR_READ, apsw.IOError),
        (Truncate, apsw.SQLITE_IOERR_TRUNCATE, apsw.IOError),
        (Open, apsw.SQLITE_CANTOPEN, apsw.CantOpenError),
    ],
)
def test_what_fails_in_the_medium_fails_in_sqlite(
    tmp_path: Path, kind: type[Operation], code: int, error: type[apsw.Error]
) -> None:
    """An error of a medium comes out of the statement, with its code; the next one is well again."""
    file = tmp_path / "held.sqlite"
    work(file, "wal")
    left = 1

    def fail_once(operation: Operation, act: Act) -> bytes:
        nonlocal left
        if isinstance(operation, kind) and left:
            left -= 1
            raise apsw.exception_for(code)
        return act(operation)

    with between(fail_once):
        with pytest.raises(error) as raised:
            work(file, "wal")
        assert getattr(raised.value, "extendedresult", None) == code
        work(file, "wal")
    assert rows(file) in {40, 60}


def test_a_medium_can_do_half_of_what_is_asked(tmp_path: Path) -> None:
    """A write that is torn leaves what its first half makes of the file."""
    file = tmp_path / "held.sqlite"
    work(file, "wal")
    before = file.read_bytes()

    def tear(operation: Operation, act: Act) -> bytes:
        if isinstance(operation, Write) and operation.file == str(file):
            return act(Write(operation.file, operation.offset, operation.data[:10]))
        return act(operation)

    with between(tear):
        work(file, "wal")
    after = file.read_bytes()[: len(before)]
    assert before[10:100] == after[10:100]
    assert file.read_bytes() != before
