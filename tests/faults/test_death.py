"""The hundred kills are worth what these say: a process stops where it is told to, and others can see it there."""

from functools import partial
from pathlib import Path

import apsw
import pytest

from tests.faults.death import Death, arm
from tests.faults.process import Ended, Killed, Process


def write_twice(file: Path, death: Death, marker: Path) -> int:
    """Two transactions on a database that is there."""
    fate = arm(death, marker)
    connection = apsw.Connection(str(file))
    for number in range(2):
        connection.execute("BEGIN IMMEDIATE")
        rows = ((number * 1000 + row, "x" * 100) for row in range(500))
        connection.executemany("INSERT INTO held VALUES (?, ?)", rows)
        connection.execute("COMMIT")
    connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
    connection.close()
    del fate
    return 0


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """A database with a table."""
    made = tmp_path / "main.sqlite"
    connection = apsw.Connection(str(made))
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE held (number INTEGER PRIMARY KEY, text)")
    connection.close()
    return made


@pytest.mark.parametrize(
    ("death", "rows", "is_open"),
    [
        (Death("main.sqlite", "statement", 1), 0, True),
        (Death("main.sqlite", "statement", 40), 0, True),
        (Death("main.sqlite", "log", 1), 0, True),
        (Death("main.sqlite", "log", 9, torn=True), 0, True),
        (
            Death("main.sqlite", "file", 1),
            1000,
            True,
        ),  # a checkpoint that truncates the log lets nobody write
        (Death("main.sqlite", "file", 3, torn=True), 1000, True),
    ],
)
def test_a_process_dies_where_it_is_told_to(file: Path, death: Death, rows: int, *, is_open: bool) -> None:
    """It is killed within its transaction, as another process can see, and nothing of that transaction is there."""
    log, marker = file.with_name("log"), file.with_name("marker")
    process = Process(partial(write_twice, file, death, marker), log, marker)
    end = process.wait((file,))
    assert isinstance(end, Killed), log.read_text()
    assert end.place is not None
    assert end.place.database == str(file)
    assert (end.in_transaction == ("main.sqlite",)) is is_open
    connection = apsw.Connection(str(file))
    assert connection.execute("SELECT count(*) FROM held").get == rows
    assert connection.pragma("integrity_check") == "ok"
    connection.close()


@pytest.mark.parametrize("at", ["statement", "log", "file"])
def test_a_process_that_does_not_come_there_ends_in_order(file: Path, at: str) -> None:
    """A place that is never reached, or another database's, kills nobody."""
    log, marker = file.with_name("log"), file.with_name("marker")
    for death in (Death("main.sqlite", at, 1_000_000), Death("other.sqlite", at, 1)):  # type: ignore[arg-type]  # a parameter is any str
        process = Process(partial(write_twice, file, death, marker), log, marker)
        assert process.wait((file,)) == Ended(0), log.read_text()
        connection = apsw.Connection(str(file))
        connection.execute("DELETE FROM held")
        connection.close()
