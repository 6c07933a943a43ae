"""A disk fails where it was told to, and no longer than that."""

from pathlib import Path

import apsw
import pytest

from tests.faults.failing_disk import A_WHILE, A_WHILE_S, FailingDisk, Fault, Lasting
from tests.faults.vfs import Operation, Sync, Write, between


def met(disk: FailingDisk, operations: list[Operation]) -> list[int]:
    """The places, from 1, of those that fail."""
    found = []
    for number, operation in enumerate(operations, 1):
        try:
            disk(operation, lambda _: b"")
        except apsw.IOError:
            found.append(number)
    return found


@pytest.mark.parametrize(
    ("lasting", "last"), [("once", 5), ("while", 4 + A_WHILE), ("until mended", 100), ("until the end", 100)]
)
def test_it_fails_for_so_long(lasting: Lasting, last: int) -> None:
    """From the operation that was counted on: one of them, some, or all, until it is mended."""
    disk = FailingDisk(Fault("sync", "a", 5, apsw.SQLITE_IOERR_FSYNC, lasting))
    assert met(disk, [Sync("/x/a", 2)] * 100) == list(range(5, last + 1))
    disk.mend()
    assert met(disk, [Sync("/x/a", 2)] * 100) == []
    assert disk.counted["sync", "a"] == 200


def test_a_while_ends_with_its_time() -> None:
    """However few operations have failed by then."""
    now = 100.0
    disk = FailingDisk(Fault("sync", "a", 1, apsw.SQLITE_IOERR_FSYNC, "while"), lambda: now)
    assert met(disk, [Sync("/x/a", 2)]) == [1]
    now += A_WHILE_S - 0.1
    assert met(disk, [Sync("/x/a", 2)]) == [1]
    now += 0.1
    assert met(disk, [Sync("/x/a", 2)] * 2) == []


def test_another_operation_does_not_fail() -> None:
    """Those of another kind never, those of another file only where every file is to fail, from the first on."""
    both: list[Operation] = [Sync("/x/b", 2), Sync("/x/a", 2), Write("/x/a", 0, b""), Sync("/x/b", 2)]
    for everywhere, expected in ((False, [2]), (True, [2, 4])):
        fault = Fault("sync", "a", 1, apsw.SQLITE_IOERR_FSYNC, "until mended", everywhere)
        assert met(FailingDisk(fault), both) == expected


@pytest.mark.parametrize(
    ("error", "expected"), [(apsw.SQLITE_FULL, apsw.FullError), (apsw.SQLITE_IOERR_WRITE, apsw.IOError)]
)
def test_sqlite_meets_it_as_an_error_of_the_disk(
    tmp_path: Path, error: int, expected: type[apsw.Error]
) -> None:
    """The statement fails with that error, and succeeds once the disk is mended."""
    disk = FailingDisk(Fault("write", "a", 1, error, "until mended"))
    with between(disk):
        connection = apsw.Connection(str(tmp_path / "a"))
        with pytest.raises(expected):
            connection.execute("CREATE TABLE a (b)")
        disk.mend()
        connection.execute("CREATE TABLE a (b)")
        connection.close()
