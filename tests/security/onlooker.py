"""A thread that looks at every file as soon as it is made, the way somebody would who waits for a moment's weakness."""

import ctypes
import os
import select
import stat
import struct
import threading
from contextlib import suppress
from pathlib import Path
from types import TracebackType
from typing import Self

_CREATE, _MOVED_TO, _ATTRIB = 0x100, 0x80, 0x4
_ONLY_DIRECTORIES = 0x01000000
_EVENT = struct.Struct("iIII")
_LIBC = ctypes.CDLL(None, use_errno=True)


class Onlooker:
    """Remembers the widest mode that each name below some directories ever had.

    What is in a directory when it is first looked at counts as well.
    """

    def __init__(self, *directories: Path) -> None:
        self.widest: dict[Path, int] = {}
        self.looks = 0
        self._inotify = _LIBC.inotify_init1(os.O_NONBLOCK | os.O_CLOEXEC)
        assert self._inotify >= 0, os.strerror(ctypes.get_errno())
        self._directories: dict[int, Path] = {}
        self._ended = threading.Event()
        self._thread = threading.Thread(target=self._look)
        for directory in directories:
            self._watch(directory)

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._ended.set()
        self._thread.join()
        os.close(self._inotify)

    def _watch(self, directory: Path) -> None:
        mask = _CREATE | _MOVED_TO | _ATTRIB | _ONLY_DIRECTORIES
        watch = _LIBC.inotify_add_watch(self._inotify, os.fsencode(directory), mask)
        if watch < 0:  # it is gone again
            return
        self._directories[watch] = directory
        with suppress(FileNotFoundError):  # it is gone now
            for path in directory.iterdir():
                self._note(path)

    def _note(self, path: Path) -> None:
        try:
            status = path.lstat()
        except OSError:
            return
        self.looks += 1
        # The modes of links say nothing.
        if not stat.S_ISLNK(status.st_mode):
            self.widest[path] = self.widest.get(path, 0) | stat.S_IMODE(status.st_mode)
        if stat.S_ISDIR(status.st_mode) and path not in self._directories.values():
            self._watch(path)

    def _look(self) -> None:
        while not self._ended.is_set():
            if not select.select([self._inotify], [], [], 0.05)[0]:
                continue
            data = os.read(self._inotify, 1 << 16)
            at = 0
            while at < len(data):
                watch, _, _, length = _EVENT.unpack_from(data, at)
                name = data[at + _EVENT.size : at + _EVENT.size + length].rstrip(b"\0")
                at += _EVENT.size + length
                if name and watch in self._directories:
                    self._note(self._directories[watch] / os.fsdecode(name))
