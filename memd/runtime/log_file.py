"""The file that the process writes its log to, kept below a size.

The file is the stderr of the process, opened by the program that started it. Only this process renames it when it is full, so that
no two processes do. What a child process writes to an inherited descriptor goes to the renamed file.
"""

import contextlib
import os
import stat
from collections.abc import Iterator
from pathlib import Path

LIMIT_BYTES = 5_000_000
KEPT = 2  # full ones: memd.log.1, the newer, and memd.log.2
_STREAMS = (1, 2)


def rotated(file: Path, number: int) -> Path:
    """The path of a full file; number 1 is the newest. Number 0 is the file that is written to."""
    return file.with_name(f"{file.name}.{number}") if number else file


class LogFile:
    """A log that this process owns.

    Args:
        file: The path it has.
        streams: The descriptors that write to it.
        limit_bytes: A file that is larger is full.
    """

    def __init__(
        self, file: Path, streams: tuple[int, ...] = _STREAMS, limit_bytes: int = LIMIT_BYTES
    ) -> None:
        self._file = file
        self._limit_bytes = limit_bytes
        self._streams = tuple(one for one in streams if _is_the_same(one, file))

    @property
    def is_ours(self) -> bool:
        """Whether a stream of this process writes to the file."""
        return bool(self._streams)

    def tend(self) -> None:
        """Begin a new file if this one is full, or is not at its path any more; call it between two events.

        Never raises: if there is no room for a new file, the process goes on with the old one.
        """
        if not self._streams:
            return
        with contextlib.suppress(OSError):
            writing = os.fstat(self._streams[0])
            try:
                there = self._file.lstat()
            except FileNotFoundError:
                self._move_to(self._file)
                return
            if not os.path.samestat(there, writing):
                if stat.S_ISREG(there.st_mode):
                    self._move_to(self._file)
            elif writing.st_size >= self._limit_bytes:
                self._rotate()

    def _rotate(self) -> None:
        # The new file first: without it nothing may be renamed.
        new = self._file.with_name(f"{self._file.name}.new")
        self._move_to(new, os.O_TRUNC)
        for number in range(KEPT, 1, -1):
            with contextlib.suppress(FileNotFoundError):
                rotated(self._file, number - 1).replace(rotated(self._file, number))
        # A second name and then the new file over the first one: whoever looks for the log finds one at any moment.
        try:
            os.link(self._file, rotated(self._file, 1))
        except OSError:  # a file system without links
            self._file.replace(rotated(self._file, 1))
        new.replace(self._file)

    def _move_to(self, file: Path, flags: int = 0) -> None:
        """Have all streams write to the end of a file, which is created if it does not exist."""
        flags |= os.O_WRONLY | os.O_APPEND | os.O_CREAT | os.O_CLOEXEC | os.O_NOFOLLOW
        opened = os.open(file, flags, 0o600)
        try:
            for stream in self._streams:
                os.dup2(opened, stream)
        finally:
            os.close(opened)


def all_of(file: Path) -> Iterator[Path]:
    """The existing files of a log: the full ones, the oldest first, then the file that is written to."""
    return (path for number in range(KEPT, -1, -1) if (path := rotated(file, number)).is_file())


def _is_the_same(stream: int, file: Path) -> bool:
    try:
        return os.path.samestat(os.fstat(stream), file.lstat())
    except OSError:
        return False
