"""A disk that fails on demand: a VFS layer of SQLite that injects faults."""

import contextlib
import encodings.utf_8_sig  # noqa: F401 - the other user may not read the interpreter's files
import importlib.readers  # noqa: F401 - likewise
import os
import signal
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Literal, Self

import apsw

from tests.daemon.process import Daemon

Operation = Literal["read", "write"]
Fault = Callable[[], None]


def fails(code: int) -> Fault:
    """Return a fault that raises an error of SQLite, by its (extended) code."""

    def fail() -> None:
        raise apsw.exception_for(code)

    return fail


def kills_after(count: int) -> Fault:
    """Return a fault that kills the process at call number `count`."""
    left = count

    def kill() -> None:
        nonlocal left
        left -= 1
        if left <= 0:
            os.kill(os.getpid(), signal.SIGKILL)

    return kill


class FaultyDisk(apsw.VFS):
    """Reads and writes every database that is opened while it is registered."""

    def __init__(self) -> None:
        """Create a disk without faults."""
        self.faults: dict[tuple[str, Operation], Fault] = {}  # (end of the file's name, operation)
        self.base = apsw.vfs_names()[0]
        super().__init__("faulty", base=self.base, makedefault=True)

    def xOpen(self, name: Any, flags: list[int]) -> "FaultyFile":  # noqa: N802 - the name is SQLite's
        return FaultyFile(self, name, flags)

    def meet(self, file: str, operation: Operation) -> None:
        """Inject the fault, if there is one for this operation."""
        for (ending, wanted), fault in list(self.faults.items()):
            if wanted == operation and file.endswith(ending):
                fault()

    @classmethod
    @contextmanager
    def inserted(cls) -> Iterator[Self]:
        """Register the disk within the context."""
        disk = cls()
        try:
            yield disk
        finally:
            disk.faults.clear()
            disk.unregister()


class FaultyFile(apsw.VFSFile):
    """A file on the faulty disk."""

    def __init__(self, disk: FaultyDisk, name: Any, flags: list[int]) -> None:
        self._disk = disk
        self._name = name.filename() if isinstance(name, apsw.URIFilename) else str(name)
        super().__init__(disk.base, name, flags)

    def xRead(self, amount: int, offset: int) -> bytes:  # noqa: N802 - likewise
        self._disk.meet(self._name, "read")
        return super().xRead(amount, offset)

    def xWrite(self, data: bytes, offset: int) -> None:  # noqa: N802 - likewise
        self._disk.meet(self._name, "write")
        super().xWrite(data, offset)


SIZE = "16m"


class SmallDisk(Daemon):
    """A daemon whose state directory is on a small disk, which disappears with its process."""

    @property
    def command(self) -> list[str]:
        self.state.mkdir(exist_ok=True)
        user = [] if os.geteuid() == 0 else ["-r"]
        keep = f'mount -t tmpfs -o size={SIZE} tmpfs "{self.state}" && cp -a "{self.kept}/." "{self.state}" && eval "$BEFORE" && exec "$@"'
        return ["unshare", *user, "-m", "sh", "-c", keep, "sh", *super().command]

    @property
    def kept(self) -> Path:
        """The content of the disk when it is mounted."""
        directory = self.home / "kept"
        directory.mkdir(exist_ok=True)
        return directory

    @property
    def seen(self) -> Path:
        """The state directory, as the daemon sees it."""
        return Path(f"/proc/{self.process.pid}/root{self.state}")

    @property
    def filler(self) -> Path:
        return self.seen / "filler"

    def fill(self) -> None:
        """Fill the disk."""
        with contextlib.suppress(OSError), self.filler.open("ab", buffering=0) as file:
            while file.write(bytes(4096)):
                pass
