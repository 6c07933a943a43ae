"""Reads the daemon's log: follows its files across rotation, and formats its lines for people."""

import os
import time
from collections.abc import Generator, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, BinaryIO

import msgspec

from memd.ctl.output.humanize import visible
from memd.ctl.output.terminal import Paint, Style
from memd.runtime.log_file import KEPT, rotated

_STYLES: dict[str, Style] = {"debug": "dim", "warning": "yellow", "error": "red", "critical": "red"}
_HEAD_FIELDS = frozenset({"timestamp", "level", "event", "exception"})


def readable(line: str, paint: Paint) -> str:
    """Format the time, level, event and values of a JSON line; return any other line unchanged."""
    event = _find_event(line)
    if event is None:
        return visible(line)
    level = visible(str(event.get("level", "")))
    values = " ".join(f"{name}={_value(value)}" for name, value in event.items() if name not in _HEAD_FIELDS)
    head = " ".join(
        (
            paint(visible(_time(event.get("timestamp"))), "dim"),
            paint(level.ljust(7), _STYLES[level]) if level in _STYLES else level.ljust(7),
            paint(visible(str(event["event"])), "bold"),
        )
    )
    trace = "".join(f"\n  {visible(part)}" for part in str(event.get("exception", "")).splitlines())
    return f"{head} {visible(values)}".rstrip() + trace


def _find_event(line: str) -> dict[str, Any] | None:
    try:
        event = msgspec.json.decode(line, type=dict[str, Any])
    except (msgspec.DecodeError, UnicodeEncodeError, RecursionError):
        return None
    return event if "event" in event else None


def _time(timestamp: object) -> str:
    """Format an ISO 8601 time to the second, in UTC as in the log."""
    return str(timestamp or "").partition(".")[0].replace("T", " ").removesuffix("Z")


def _value(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()


_BLOCK = 1 << 16
_STEP_S = 0.2


def last_lines(file: Path, count: int, *, since: int = 0) -> list[str]:
    """Return the last lines of a file that begin at or after an offset in bytes; none if the file cannot be read."""
    try:
        with file.open("rb") as stream:
            # A file that is shorter than the offset was truncated meanwhile.
            at = since if since <= os.fstat(stream.fileno()).st_size else 0
            stream.seek(max(at, start_of_last(stream, count)))
            data = stream.read()
    except OSError:
        return []
    return lines_of(data)[-count:] if count else []


def lines_of(data: bytes) -> list[str]:
    """Split a log at newlines only: str.splitlines would split at other characters, too."""
    lines = data.decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def start_of_last(stream: BinaryIO, count: int) -> int:
    """Return the offset at which the last `count` lines of a file begin; an incomplete last line counts."""
    end = stream.seek(0, os.SEEK_END)
    if not count:
        return end
    wanted = count
    at = end
    while at > 0:
        length = min(_BLOCK, at)
        at = stream.seek(at - length)
        block = stream.read(length)
        # The newline at the end of the file ends the last line; no line follows it.
        cut = len(block) - 1 if at + length == end and block.endswith(b"\n") else len(block)
        while (found := block.rfind(b"\n", 0, cut)) >= 0:
            wanted -= 1
            if not wanted:
                return at + found + 1
            cut = found
    return 0


def follow(file: Path, stream: BinaryIO) -> Generator[bytes, None, None]:
    """Yield the content of a file from the stream's position on, and then appended data, without end.

    A file that was replaced, as by rotation, is read to its end before its successor; a truncated one is read again from its
    beginning.
    """
    current = stream
    try:
        while True:
            data = current.read(_BLOCK)
            if data:
                yield data
            elif (newer := _find_replacement(file, current)) is not None:
                yield from iter(lambda: current.read(_BLOCK), b"")  # noqa: B023  it is read before it changes
                current.close()
                current = newer
            elif os.fstat(current.fileno()).st_size < current.tell():
                current.seek(0)
            else:
                time.sleep(_STEP_S)
    finally:
        current.close()


def _find_replacement(file: Path, current: BinaryIO) -> BinaryIO | None:
    """Open the file that was written after the current one; None if the current one is still at the path.

    A log may be rotated several times between two checks: a file's successor has the next smaller number.
    """
    reading = os.fstat(current.fileno())
    for number in range(KEPT + 1):
        with suppress(OSError):
            if os.path.samestat(rotated(file, number).stat(), reading):
                return _find_open(rotated(file, number - 1)) if number else None
    return _find_open(file)


def _find_open(file: Path) -> BinaryIO | None:
    try:
        return file.open("rb")
    except OSError:
        return None


def last_of(files: Sequence[Path], count: int) -> list[tuple[Path, int]]:
    """Return the files that contain the last `count` lines of all, each with the offset to read it from.

    Args:
        files: The files of a log, the oldest first.
        count: The number of lines.
    """
    chosen: list[tuple[Path, int]] = []
    for file in reversed(files):
        with suppress(FileNotFoundError), file.open("rb") as stream:
            at = start_of_last(stream, count)
            chosen.insert(0, (file, at))
            if at or count <= 0:
                break
            stream.seek(0)
            count -= sum(block.count(b"\n") for block in iter(lambda: stream.read(_BLOCK), b""))
    return chosen
