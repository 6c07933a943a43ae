"""The daemon's log: its files followed across rotation, and a line of it for a person."""

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
    """Time, level, event and values of a line that is JSON; any other line as it is."""
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
    """An ISO 8601 time to the second, in UTC as it was written."""
    return str(timestamp or "").partition(".")[0].replace("T", " ").removesuffix("Z")


def _value(value: object) -> str:
    return value if isinstance(value, str) and " " not in value else msgspec.json.encode(value).decode()


_BLOCK = 1 << 16
_STEP_S = 0.2


def last_lines(file: Path, count: int, *, since: int = 0) -> list[str]:
    """The last lines of a file, without those before an offset in bytes; none where it cannot be read."""
    try:
        with file.open("rb") as stream:
            # A log that is shorter than it was has begun anew.
            at = since if since <= os.fstat(stream.fileno()).st_size else 0
            stream.seek(max(at, start_of_last(stream, count)))
            data = stream.read()
    except OSError:
        return []
    return lines_of(data)[-count:] if count else []


def lines_of(data: bytes) -> list[str]:
    """The lines of a log: each ends at its newline alone, whatever else it has that Python takes for an end."""
    lines = data.decode("utf-8", "replace").split("\n")
    if not lines[-1]:
        lines.pop()
    return lines


def start_of_last(stream: BinaryIO, count: int) -> int:
    """The offset where the last lines of a file begin; a last line without an end counts as one."""
    end = stream.seek(0, os.SEEK_END)
    if not count:
        return end
    wanted = count
    at = end
    while at > 0:
        length = min(_BLOCK, at)
        at = stream.seek(at - length)
        block = stream.read(length)
        # The end of the last line is not that of a line before it.
        cut = len(block) - 1 if at + length == end and block.endswith(b"\n") else len(block)
        while (found := block.rfind(b"\n", 0, cut)) >= 0:
            wanted -= 1
            if not wanted:
                return at + found + 1
            cut = found
    return 0


def follow(file: Path, stream: BinaryIO) -> Generator[bytes, None, None]:
    """What is in a file from the stream's place on, and whatever is appended, without end.

    A file that is replaced, as a rotation does, is read to its end before the one that came after it; one that is cut
    is read from its beginning.
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
    """The file that was written after the one that is read; None where that is the one at the path.

    A log may be rotated twice between two looks: what came after a file has the next smaller number.
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
    """Where the last lines begin that several files hold together: the files to read, and from what offset.

    Args:
        files: The oldest first.
        count: How many lines.
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
