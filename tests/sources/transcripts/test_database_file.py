"""Databases of other programs: read through the fence, without a trace, and without holding anybody up."""

import errno
import os
import signal
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import apsw
import msgspec
import pytest

from memd.sources.safe_open import FileHeld, FileMissing, FileUnreadable, OutsideFence, ProcessExhausted
from memd.sources.transcripts import database_file
from memd.sources.transcripts.database_file import OpenDatabase, look_into
from tests.bounds import shipped

PARTS = ("main", "agent", "a.sqlite")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


@pytest.fixture
def file(base: Path) -> Path:
    """Where a database will be."""
    file = base.joinpath(*PARTS)
    file.parent.mkdir(parents=True)
    return file


def _writer(file: Path, journal: str = "wal") -> apsw.Connection:
    connection = apsw.Connection(str(file))
    connection.pragma("journal_mode", journal)
    connection.execute("CREATE TABLE IF NOT EXISTS said (text TEXT)")
    connection.execute("INSERT INTO said VALUES ('one')")
    return connection


def _count(opened: OpenDatabase) -> int:
    with opened.transaction() as read:
        row = read.row("SELECT count(*) FROM said")
    assert row is not None
    return int(row[0])


def _trace(file: Path) -> dict[str, tuple[bytes, int]]:
    """What lies beside a database, to the byte."""
    return {each.name: (each.read_bytes(), each.stat().st_mtime_ns) for each in sorted(file.parent.iterdir())}


@pytest.mark.parametrize("journal", ["wal", "delete"])
def test_a_closed_one_is_read_without_a_trace(base: Path, file: Path, journal: str) -> None:
    """An ordinary opening for reading leaves an empty log and its memory behind."""
    _writer(file, journal).close()
    before = _trace(file)
    assert before.keys() == {"a.sqlite"}
    assert look_into(base, PARTS, _count) == 1
    assert _trace(file) == before


def test_an_open_one_is_read_with_its_log_and_without_a_trace(base: Path, file: Path) -> None:
    """What was written a moment ago is in the log alone."""
    with _writer(file) as writer:
        before = _trace_of_open(file)
        assert before.keys() == {"a.sqlite", "a.sqlite-wal", "a.sqlite-shm"}
        assert look_into(base, PARTS, lambda opened: (_count(opened), opened.is_live)) == (1, True)
        assert _trace_of_open(file) == before
    writer.close()
    assert _trace(file).keys() == {"a.sqlite"}


def test_all_reads_of_a_transaction_are_of_one_moment(base: Path, file: Path) -> None:
    """Though its program writes meanwhile; the next transaction sees that."""
    writer = _writer(file)

    def look(opened: OpenDatabase) -> list[int]:
        with opened.transaction() as read:
            counts = [row[0] for row in read.rows("SELECT count(*) FROM said")]
            writer.execute("INSERT INTO said VALUES ('two')")
            counts += [row[0] for row in read.rows("SELECT count(*) FROM said")]
        return [*counts, _count(opened)]

    assert look_into(base, PARTS, look) == [1, 1, 2]
    writer.close()


def _trace_of_open(file: Path) -> dict[str, tuple[int, int]]:
    """As _trace; without opening what has locks of this process."""
    return {
        each.name: (each.stat().st_size, each.stat().st_mtime_ns) for each in sorted(file.parent.iterdir())
    }


def test_a_directory_that_nobody_may_write_to_is_read(base: Path, file: Path) -> None:
    """Nothing is to be made there anyway."""
    _writer(file).close()
    file.parent.chmod(0o500)
    try:
        assert look_into(base, PARTS, _count) == 1
    finally:
        file.parent.chmod(0o700)


_KILLED = """
import os, sys, apsw
connection = apsw.Connection(sys.argv[1])
connection.pragma("journal_mode", "wal")
connection.execute("CREATE TABLE said (text TEXT)")
connection.execute("INSERT INTO said VALUES ('kept')")
connection.execute("BEGIN IMMEDIATE")
connection.execute("INSERT INTO said VALUES ('lost')")
print("ready", flush=True)
sys.stdin.read()
"""


def test_what_a_killed_program_had_written_is_read_and_left_as_it_is(base: Path, file: Path) -> None:
    """Its log and what it had not committed are for its next start to take care of."""
    with subprocess.Popen(
        [sys.executable, "-c", _KILLED, str(file)], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as program:
        assert program.stdout is not None
        assert program.stdout.readline() == b"ready\n"
        assert look_into(base, PARTS, _count) == 1  # it has the database open, in a transaction
        program.send_signal(signal.SIGKILL)
    before = _trace(file)
    assert before.keys() == {"a.sqlite", "a.sqlite-wal", "a.sqlite-shm"}
    assert look_into(base, PARTS, _count) == 1
    assert _trace(file) == before


_READER = """
import sys
from pathlib import Path
from memd.sources.transcripts.database_file import look_into
def look(opened):
    with opened.transaction() as read:
        read.row("SELECT text FROM said")
        print("ready", flush=True)
        sys.stdin.read()
look_into(Path(sys.argv[1]), tuple(sys.argv[2:]), look)
"""


@pytest.mark.parametrize("is_open", [True, False])
def test_a_reader_that_is_killed_leaves_no_file_and_no_lock(base: Path, file: Path, is_open: bool) -> None:
    """In the middle of a transaction; the program that writes can cut its log at once."""
    writer = _writer(file)
    if not is_open:
        writer.close()
    before = _trace(file)
    with subprocess.Popen(
        [sys.executable, "-c", _READER, str(base), *PARTS], stdin=subprocess.PIPE, stdout=subprocess.PIPE
    ) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == b"ready\n"
        if is_open:
            assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 1  # it is busy
        reader.send_signal(signal.SIGKILL)
    assert _trace(file).keys() == before.keys()
    if not is_open:
        assert _trace(file) == before
        writer = _writer(file)
    assert writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0][0] == 0
    assert Path(f"{file}-wal").stat().st_size == 0
    writer.close()
    assert _trace(file).keys() == {"a.sqlite"}


def test_a_log_without_its_memory_is_left_to_its_program(base: Path, file: Path) -> None:
    """Only a writer may take it over; the message says who."""
    writer = _writer(file)
    log = Path(f"{file}-wal").read_bytes()
    writer.close()
    Path(f"{file}-wal").write_bytes(log)
    before = _trace(file)
    with pytest.raises(FileUnreadable, match="has to be started once"):
        look_into(base, PARTS, _count)
    assert _trace(file) == before


def test_a_writer_may_cut_its_log_between_two_transactions(base: Path, file: Path) -> None:
    """A reader that stays keeps it from growing shorter."""
    writer = _writer(file)

    def look(opened: OpenDatabase) -> list[int]:
        counts = []
        for _ in range(3):
            counts.append(_count(opened))
            writer.execute("INSERT INTO said VALUES ('more')")
            busy, _, _ = writer.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            assert busy == 0
            assert Path(f"{file}-wal").stat().st_size == 0
        return counts

    assert look_into(base, PARTS, look) == [1, 2, 3]
    writer.close()


def test_a_closed_one_that_is_changed_during_a_look_is_looked_at_again(base: Path, file: Path) -> None:
    """SQLite takes what is said to be unchanging at its word: pages of before and after would be one state."""
    _writer(file).close()
    looks: list[int] = []

    def look(opened: OpenDatabase) -> int:
        count = _count(opened)
        if not looks:
            _writer(file).close()
        looks.append(count)
        return count

    assert look_into(base, PARTS, look) == 2
    assert looks == [1, 2]


def test_one_that_is_changed_by_each_look_is_left_alone(base: Path, file: Path) -> None:
    """For now: it is held."""
    _writer(file).close()
    looks: list[int] = []

    def look(opened: OpenDatabase) -> None:
        looks.append(_count(opened))
        _writer(file).close()

    with pytest.raises(FileHeld, match="changes it all the time"):
        look_into(base, PARTS, look)
    assert len(looks) == shipped("memd.sources.transcripts.database_file.LOOKS")


def test_no_file_is_made_if_the_writer_closes_it_before_it_is_read(base: Path, file: Path) -> None:
    """The log and its memory go at that moment; SQLite would make both anew."""
    writer = _writer(file)

    def look(opened: OpenDatabase) -> int:
        writer.close()
        return _count(opened)

    assert look_into(base, PARTS, look) == 1
    assert _trace(file).keys() == {"a.sqlite"}


def test_one_that_its_program_keeps_to_itself_is_held(base: Path, file: Path) -> None:
    """It is looked at again; nobody waits long."""

    def patience_ms(opened: OpenDatabase) -> tuple[Any, ...] | None:
        with opened.transaction() as read:
            return read.row("PRAGMA busy_timeout")

    writer = _writer(file, "delete")
    assert look_into(base, PARTS, patience_ms) == (shipped("memd.sources.transcripts.database_file.BUSY_MS"),)
    writer.execute("BEGIN EXCLUSIVE")
    writer.execute("INSERT INTO said VALUES ('more')")
    with pytest.raises((FileHeld, FileUnreadable)):
        look_into(base, PARTS, _count)
    writer.execute("ROLLBACK")
    writer.close()
    assert look_into(base, PARTS, _count) == 1


def test_no_symlink_is_followed(base: Path, file: Path) -> None:
    """Neither to the database, nor to a directory above, nor to what lies beside it."""
    other = base / "elsewhere.sqlite"
    writer = _writer(other)
    file.symlink_to(other)
    with pytest.raises(OutsideFence):
        look_into(base, PARTS, _count)
    file.unlink()
    own = _writer(file)
    own.close()
    Path(f"{file}-wal").symlink_to(f"{other}-wal")
    with pytest.raises(OutsideFence):
        look_into(base, PARTS, _count)
    Path(f"{file}-wal").unlink()
    file.parent.rename(base / "moved")
    file.parent.symlink_to(base / "moved")
    with pytest.raises(OutsideFence):
        look_into(base, PARTS, _count)
    writer.close()


def test_nobody_waits_at_a_pipe(base: Path, file: Path) -> None:
    """To open one waits for whoever writes into it."""
    os.mkfifo(file)
    with pytest.raises(OutsideFence):
        look_into(base, PARTS, _count)
    file.unlink()
    with pytest.raises(FileMissing):
        look_into(base, PARTS, _count)


@pytest.mark.parametrize("content", [b"not a database, but long enough to have a header" * 30, b"SQL"])
def test_what_is_no_database_says_so(base: Path, file: Path, content: bytes) -> None:
    """Without a word of what is in it."""
    file.write_bytes(content)
    with pytest.raises(FileUnreadable, match=r"not a sound SQLite database|cannot be opened"):
        look_into(base, PARTS, _count)


def test_a_query_without_end_is_ended(base: Path, file: Path) -> None:
    """A damaged file may have any tables."""
    _writer(file).close()
    guard_s = shipped("memd.sources.transcripts.database_file.GUARD_S")
    endless = "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT count(*) FROM n"

    def look(opened: OpenDatabase) -> None:
        with opened.transaction() as read:
            read.row(endless)

    with pytest.raises(FileUnreadable, match=f"longer than {guard_s:g} s"):
        look_into(base, PARTS, look)


def test_a_transaction_is_enough_after_its_time_or_its_bytes(
    base: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whichever is over first."""
    most_s, now_s = shipped("memd.sources.transcripts.database_file.READ_S"), 0.0
    size = shipped("memd.sources.transcripts.database_file.READ_BYTES")
    _writer(file).close()
    monkeypatch.setattr(database_file, "READ_S", 60.0)

    def by_bytes(opened: OpenDatabase) -> list[bool]:
        with opened.transaction() as read:
            return [read.is_enough(size - 1), read.is_enough(1)]

    assert look_into(base, PARTS, by_bytes) == [False, True]
    monkeypatch.undo()

    def by_time(opened: OpenDatabase) -> list[bool]:
        nonlocal now_s
        now_s = 0.0
        with opened.transaction() as read:
            now_s = most_s - 0.001
            before = read.is_enough()
            now_s = most_s
            return [before, read.is_enough()]

    monkeypatch.setattr(database_file, "time", SimpleNamespace(monotonic=lambda: now_s))
    assert look_into(base, PARTS, by_time) == [False, True]


@pytest.mark.parametrize(
    ("trouble", "kind", "said"),
    [
        (apsw.NoMemError("out of memory"), ProcessExhausted, "no memory is left"),
        (apsw.BusyError("busy"), FileHeld, "keeps it to itself"),
        (apsw.LockedError("locked"), FileHeld, "keeps it to itself"),
        (apsw.InterruptError("interrupted"), FileUnreadable, "takes longer than"),
        (msgspec.ValidationError("Expected `str`"), FileUnreadable, "rows of other types"),
        (UnicodeDecodeError("utf-8", b"secret", 0, 1, "invalid"), FileUnreadable, "rows of other types"),
        (apsw.NotADBError("no database"), FileUnreadable, "not a sound SQLite database"),
        (apsw.CorruptError("malformed"), FileUnreadable, "not a sound SQLite database"),
        (apsw.PermissionsError("denied"), FileUnreadable, "cannot be opened"),
        (apsw.CantOpenError("unable to open"), FileUnreadable, "cannot be opened"),
        (apsw.SQLError("no such column: secret"), FileUnreadable, r"SQLite cannot read it \(SQLError\)"),
        (KeyError("a defect"), KeyError, "a defect"),
    ],
)
def test_why_a_database_cannot_be_read_is_told(
    base: Path, file: Path, trouble: Exception, kind: type[Exception], said: str
) -> None:
    """Without what is in it; a mistake in memd's own code is none of its program."""
    _writer(file).close()

    def look(_: OpenDatabase) -> None:
        raise trouble

    with pytest.raises(kind, match=said) as told:
        look_into(base, PARTS, look)
    assert type(told.value) is kind
    assert "secret" not in str(told.value)


def test_a_disk_that_does_not_say_what_is_there_is_told(
    base: Path, file: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A file that is gone is missing."""
    _writer(file).close()
    look = os.stat

    def refused(path: object, **how: Any) -> os.stat_result:
        if path == file.name:
            raise OSError(errno.EIO, "Input/output error")
        return look(path, **how)  # type: ignore[arg-type]  # whatever it was called with

    with monkeypatch.context() as patched:
        patched.setattr(os, "stat", refused)
        with pytest.raises(FileUnreadable, match="Input/output error"):
            look_into(base, PARTS, _count)
    file.unlink()
    with pytest.raises(FileMissing):
        look_into(base, PARTS, _count)
