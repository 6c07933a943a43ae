"""The daemon's log: followed across rotation, and read by a person."""

import os
import tempfile
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from memd.ctl.daemon_log import follow, last_lines, last_of, readable, start_of_last
from memd.ctl.output.terminal import ansi, uncoloured
from tests.awkward.programs import LOGS
from tests.wait import until


@pytest.mark.parametrize(
    ("line", "said"),
    [
        (
            '{"timestamp":"2026-11-21T11:20:46.353468Z","level":"info","event":"sync.finished","changed":2}',
            "2026-11-21 11:20:46 info    sync.finished changed=2",
        ),
        (
            '{"level":"error","event":"config.reload_refused","reason":"line 3: no","exception":"Traceback\\n  x"}',
            ' error   config.reload_refused reason="line 3: no"\n  Traceback\n    x',
        ),
        ("memd: there is no such file", "memd: there is no such file"),
        (
            '{"level":"warning","event":"search.was_slow","parts":{"question\'s vector":1906,"ranking":5.3},"hits":6}',
            ' warning search.was_slow parts={"question\'s vector":1906,"ranking":5.3} hits=6',
        ),
        ('{"no": "event of ours"}', '{"no": "event of ours"}'),
        ("{broken", "{broken"),
        ("[1]", "[1]"),
        ("\x1b[2J", "\\x1b[2J"),
        ("", ""),
    ],
)
def test_an_event_reads_as_a_line(line: str, said: str) -> None:
    """Anything else is left as it is, without what a terminal would obey."""
    assert readable(line, uncoloured) == said


def test_trouble_is_painted() -> None:
    """A warning stands out."""
    assert "\x1b[33mwarning" in readable('{"level":"warning","event":"x.y"}', ansi)


@given(LOGS)
@example(b'{"timestamp": "\\u001b[2J", "level": "\\u001b[31m", "event": "x"}')
@example(b'{"event": "x", "n": ' + b"9" * 30 + b"}")
@example(b'{"event": "x", "n": ' + b"[" * 20_000 + b"]" * 20_000 + b"}")
def test_any_log_can_be_shown(log: bytes) -> None:
    """Torn lines, and lines of others: each is shown, without what a terminal would obey."""
    for line in log.decode("utf-8", "replace").split("\n"):
        shown = readable(line, uncoloured)
        shown.encode()
        assert not {sign for sign in shown if sign not in "\n\t" and (sign < " " or "\x7f" <= sign < "\xa0")}


@pytest.mark.parametrize(
    ("text", "count", "lines"),
    [
        ("", 3, []),
        ("a\nb\nc\n", 2, ["b", "c"]),
        ("a\nb\nc", 2, ["b", "c"]),
        ("a\nb\nc\n", 0, []),
        ("a\nb\nc\n", 9, ["a", "b", "c"]),
        ("a\n\n\n", 2, ["", ""]),
        ("\n", 1, [""]),
        ("x" * 200_000 + "\ny\n", 1, ["y"]),
        ("x" * 200_000 + "\ny\n", 2, ["x" * 200_000, "y"]),
        ("ab\n" * 70_000, 3, ["ab", "ab", "ab"]),
    ],
)
def test_the_last_lines_are_found_from_the_end(
    tmp_path: Path, text: str, count: int, lines: list[str]
) -> None:
    """Whatever the length of the lines, and whether the last one has an end."""
    file = tmp_path / "log"
    file.write_text(text, encoding="utf-8")
    assert last_lines(file, count) == lines


def test_the_last_lines_begin_at_an_offset(tmp_path: Path) -> None:
    """What was there before is not told; a file that is gone tells nothing; bytes that are no text are replaced."""
    file = tmp_path / "log"
    file.write_bytes(b"old\nnew\n\xff\n")
    assert last_lines(file, 9, since=4) == ["new", "\ufffd"]
    assert last_lines(tmp_path / "none", 9) == []


class _Follower:
    """Follows a file on a thread, until the reading is stopped by what it gets."""

    def __init__(self, file: Path, lines: int | None = None) -> None:
        self.got = b""
        stream = file.open("rb")
        if lines is not None:
            stream.seek(start_of_last(stream, lines))

        def read() -> None:
            for data in follow(file, stream):
                self.got += data
                if b"END" in self.got:
                    return

        self._thread = threading.Thread(target=read)
        self._thread.start()

    def has(self, data: bytes) -> Callable[[], bool]:
        return lambda: self.got == data

    def end(self, file: Path) -> bytes:
        with file.open("ab") as log:
            log.write(b"END")
        self._thread.join(60)
        assert not self._thread.is_alive()
        return self.got


def test_what_is_added_is_followed(tmp_path: Path) -> None:
    """From the last lines on."""
    file = tmp_path / "log"
    file.write_bytes(b"1\n2\n3\n")
    follower = _Follower(file, lines=1)
    until(follower.has(b"3\n"))
    with file.open("ab") as log:
        log.write(b"4\n")
    until(follower.has(b"3\n4\n"))
    assert follower.end(file) == b"3\n4\nEND"


def test_a_rotation_is_survived(tmp_path: Path) -> None:
    """The old file is read to its end, then the new one from its beginning."""
    file = tmp_path / "log"
    file.write_bytes(b"1\n")
    follower = _Follower(file)
    until(follower.has(b"1\n"))
    old = file.open("ab")
    file.rename(tmp_path / "log.1")
    old.write(b"2\n")
    old.close()
    until(follower.has(b"1\n2\n"))
    new = tmp_path / "log.new"
    new.write_bytes(b"3\n")
    new.rename(file)
    until(follower.has(b"1\n2\n3\n"))
    assert follower.end(file) == b"1\n2\n3\nEND"


def test_a_truncation_is_survived(tmp_path: Path) -> None:
    """A file that became shorter is read from its beginning."""
    file = tmp_path / "log"
    file.write_bytes(b"a long line\n")
    follower = _Follower(file)
    until(follower.has(b"a long line\n"))
    os.truncate(file, 0)
    with file.open("ab") as log:
        log.write(b"b\n")
    until(follower.has(b"a long line\nb\n"))
    assert follower.end(file) == b"a long line\nb\nEND"


def test_two_rotations_between_two_looks_are_survived(tmp_path: Path) -> None:
    """The file in the middle is read too."""
    file = tmp_path / "log"
    file.write_bytes(b"1\n")
    reading = follow(file, file.open("rb"))
    assert next(reading) == b"1\n"
    file.rename(tmp_path / "log.2")
    (tmp_path / "log.1").write_bytes(b"2\n")
    file.write_bytes(b"3\n")
    assert [next(reading), next(reading)] == [b"2\n", b"3\n"]
    reading.close()


def test_a_file_that_is_away_for_a_while_is_waited_for(tmp_path: Path) -> None:
    """Deleted, and made again by the next daemon."""
    file = tmp_path / "log"
    file.write_bytes(b"1\n")
    follower = _Follower(file)
    until(follower.has(b"1\n"))
    file.unlink()
    file.write_bytes(b"2\n")
    until(follower.has(b"1\n2\n"))
    assert follower.end(file) == b"1\n2\nEND"


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, b""),
        (1, b"f\n"),
        (2, b"e\nf\n"),
        (3, b"d\ne\nf\n"),
        (4, b"c\nd\ne\nf\n"),
        (99, b"a\nb\nc\nd\ne\nf\n"),
    ],
)
def test_the_last_lines_of_several_files_are_found(tmp_path: Path, count: int, expected: bytes) -> None:
    """As far back as it takes."""
    files = [tmp_path / name for name in ("log.2", "log.1", "log")]
    for file, text in zip(files, (b"a\nb\nc\n", b"d\n", b"e\nf\n"), strict=True):
        file.write_bytes(text)
    assert b"".join(path.read_bytes()[at:] for path, at in last_of(files, count)) == expected


def test_a_log_that_has_begun_anew_is_read_from_its_beginning(tmp_path: Path) -> None:
    """Whoever remembers where a longer one ended still sees its last lines."""
    (tmp_path / "log").write_bytes(b"1\n2\n")
    assert last_lines(tmp_path / "log", 10, since=1000) == ["1", "2"]


@given(LOGS, st.integers(0, 6))
@example(b"a\xe2\x80\xa8b\nc\n", 2)
@example(b"a\x0cb\nc\n", 1)
def test_the_last_lines_are_those_of_the_file(log: bytes, count: int) -> None:
    """Whatever stands in them: a line ends at its newline alone."""
    with tempfile.TemporaryDirectory() as directory:
        file = Path(directory) / "log"
        file.write_bytes(log)
        lines = log.decode("utf-8", "replace").split("\n")
        if not lines[-1]:
            lines.pop()
        assert last_lines(file, count) == lines[max(0, len(lines) - count) :]
