"""A log that is kept small without losing a line."""

import os
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd.runtime import log_file
from memd.runtime.log_file import LogFile, all_of, rotated


@pytest.fixture
def file(tmp_path: Path) -> Path:
    """Where the log is."""
    return tmp_path / "memd.log"


@pytest.fixture
def stream(file: Path) -> Iterator[int]:
    """A descriptor that writes to it, as a stderr does."""
    opened = os.open(file, os.O_WRONLY | os.O_APPEND | os.O_CREAT, 0o600)
    yield opened
    os.close(opened)


def written(stream: int, log: LogFile, numbers: range) -> None:
    """Write lines of five bytes, as events are written."""
    for number in numbers:
        log.tend()
        os.write(stream, b"%04d\n" % number)


def test_a_full_file_gets_another_name(file: Path, stream: int) -> None:
    """Two full ones are kept, the newest as .1; only their owner may read them."""
    log = LogFile(file, (stream,), limit_bytes=20)
    written(stream, log, range(4))
    assert list(all_of(file)) == [file]
    written(stream, log, range(4, 18))
    assert [path.name for path in all_of(file)] == ["memd.log.2", "memd.log.1", "memd.log"]
    assert [path.read_text().split() for path in all_of(file)] == [
        ["0008", "0009", "0010", "0011"],
        ["0012", "0013", "0014", "0015"],
        ["0016", "0017"],
    ]
    assert sorted(path.name for path in file.parent.iterdir()) == ["memd.log", "memd.log.1", "memd.log.2"]
    assert {path.stat().st_mode & 0o777 for path in all_of(file)} == {0o600}


def test_a_file_that_was_deleted_is_made_again(file: Path, stream: int) -> None:
    """Nobody could read what is written to one without a name."""
    log = LogFile(file, (stream,))
    written(stream, log, range(1))
    file.unlink()
    written(stream, log, range(1, 3))
    assert file.read_text().split() == ["0001", "0002"]


def test_a_file_that_another_program_moved_is_left_to_it(file: Path, stream: int) -> None:
    """What stands at the path is written to from then on, be it made by that program or not."""
    log = LogFile(file, (stream,))
    written(stream, log, range(1))
    file.rename(file.with_name("mine"))
    file.write_text("new\n")
    written(stream, log, range(1, 2))
    assert file.with_name("mine").read_text() == "0000\n"
    assert file.read_text() == "new\n0001\n"


def test_a_file_that_was_cut_is_written_from_its_beginning(file: Path, stream: int) -> None:
    """Without a hole where its lines were."""
    log = LogFile(file, (stream,))
    written(stream, log, range(2))
    os.truncate(file, 0)
    written(stream, log, range(2, 3))
    assert file.read_bytes() == b"0002\n"


def test_what_does_not_write_to_the_file_leaves_it_alone(file: Path, tmp_path: Path) -> None:
    """A daemon in a terminal, or under a service manager, has no file of its own."""
    file.write_text("x" * 100)
    other = os.open(tmp_path / "other", os.O_WRONLY | os.O_CREAT)
    try:
        log = LogFile(file, (other,), limit_bytes=20)
        log.tend()
        assert not log.is_ours
    finally:
        os.close(other)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["memd.log", "other"]


def test_where_no_file_can_be_made_the_old_one_is_written_on(file: Path, stream: int) -> None:
    """Nothing raises, and no line is lost."""
    rotated(file, 1).with_name("memd.log.new").mkdir()
    log = LogFile(file, (stream,), limit_bytes=20)
    written(stream, log, range(12))
    assert len(file.read_text().split()) == 12
    assert list(all_of(file)) == [file]


def test_whoever_reads_always_finds_a_log(file: Path, stream: int) -> None:
    """While it is rotated a thousand times."""
    log = LogFile(file, (stream,), limit_bytes=5)
    missed: list[int] = []
    ended = threading.Event()

    def look() -> None:
        while not ended.is_set():
            if not file.exists():
                missed.append(1)

    looking = threading.Thread(target=look)
    looking.start()
    written(stream, log, range(1000))
    ended.set()
    looking.join()
    assert missed == []


def test_so_many_full_files_are_kept(file: Path, stream: int) -> None:
    """However much is written."""
    log = LogFile(file, (stream,), limit_bytes=20)
    written(stream, log, range(4 * (log_file.KEPT + 4)))
    assert len(list(file.parent.iterdir())) == log_file.KEPT + 1
