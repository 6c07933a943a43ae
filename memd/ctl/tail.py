"""The end of a file that grows."""

import os
import time
from collections.abc import Iterator
from pathlib import Path
from typing import BinaryIO

_BLOCK = 1 << 16
_STEP_S = 0.2


def last_lines(file: Path, count: int, *, since: int = 0) -> list[str]:
    """The last lines of a file, without those before an offset in bytes; none where it cannot be read."""
    try:
        with file.open("rb") as stream:
            stream.seek(max(since, start_of_last(stream, count)))
            data = stream.read()
    except OSError:
        return []
    return data.decode("utf-8", "replace").splitlines()[-count:] if count else []


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


def follow(file: Path, stream: BinaryIO) -> Iterator[bytes]:
    """What is in a file from the stream's place on, and whatever is added, for ever.

    A file that is replaced, as a rotation does, is read to its end before the new one; one that is cut is read
    from its beginning.
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
    """The file that stands at the path, if it is not the one that is read."""
    try:
        newer = file.open("rb")
    except OSError:
        return None
    if os.path.samestat(os.fstat(newer.fileno()), os.fstat(current.fileno())):
        newer.close()
        return None
    return newer
