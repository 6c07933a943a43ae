"""A machine whose disk is a model: what a process does to a directory is told to the model, and power cuts are drawn.

The process itself works on real files, which are what the kernel has of them. SQLite's calls come by way of its VFS.
Names that Python changes, and files and directories that it syncs, are seen by standing in for the functions of `os`
through which all of them go. What Python writes is compared when it is synced, or the power goes: all that differs from
what was synced last is one write that may have arrived or not. That is so for the lock and the log too, and for the
shared memory beside a log of SQLite, of which nothing is ever certain.

Nothing is stopped. After each operation the power may go, and what the disk would hold is drawn there and then; of each
kind of place one cut is kept, any place of the kind with the same chance (Vitter, Random Sampling with a Reservoir,
1985).
"""

import os
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any

import apsw
import msgspec

from memd.ctl import atomic_write
from tests.faults.powercut_disk import Directory, Disk, Ended, File, Left, Style, Wrote
from tests.faults.vfs import Act, Delete, Open, Operation, Read, Sync, Truncate, Write, between

_SECTORS = (1, 512, 4096)
_LASTS = (
    "-wal",
    "-journal",
)  # SQLite syncs the directory of these, too, when it syncs one that it has just opened


class Cut(msgspec.Struct, frozen=True):
    """A power cut."""

    kind: str  # of the place: what was done last, and to what
    number: int  # which of that kind it was; from 1
    style: Style
    left: Left


class Machine:
    """Tells a model of the disk what happens to a directory."""

    def __init__(self, directory: Path, seed: int, *, ignores_syncs: bool = False) -> None:
        """All that is there already is certain.

        Args:
            directory: Nothing has a file of it open.
            seed: Of the places and of what is lost.
            ignores_syncs: The disk is told to sync, says that it did, and did not.
        """
        self._root = directory
        self._rng = Random(seed)
        self._ignores_syncs = ignores_syncs
        self._disk = Disk()
        self._lock = threading.RLock()
        self._asked: set[str] = set()  # files that SQLite has opened
        self._lasts: set[str] = set()  # files whose first sync is their directory's, too
        self._places: dict[str, tuple[int, Disk]] = {}  # of each kind: which it is, and how the disk was
        self._counts: dict[str, int] = {}
        self._look()
        for path in self._disk.paths:
            node = self._disk.holds(path)
            if isinstance(node, File):
                node.lasting = Path(path).read_bytes()
        self._disk.settle()

    def cuts(self, kinds: tuple[str, ...] = ("",), draws: int = 1) -> list[Cut]:
        """The power cuts.

        Args:
            kinds: How the names of their kinds begin.
            draws: How often it is drawn, at each place, what is lost there.
        """
        return [
            self._cut(kind, number, disk)
            for kind, (number, disk) in self._places.items()
            if kind.startswith(kinds)
            for _ in range(draws)
        ]

    def _cut(self, kind: str, number: int, disk: Disk) -> Cut:
        style = Style(
            self._rng.choice(_SECTORS), self._rng.choice(("any", "first")), is_filthy=self._rng.random() < 0.5
        )
        return Cut(kind, number, style, disk.lose_power(self._rng, style))

    @contextmanager
    def watching(self) -> Iterator[None]:
        """Let the model follow what this process does."""
        with between(self.meet), self._names():
            yield

    # --- SQLite

    def meet(self, operation: Operation, act: Act) -> bytes:
        """What SQLite does."""
        if isinstance(operation, Read) or not self._is_ours(operation.file):
            return act(operation)
        with self._lock:
            done = act(operation)
            if self._follow(operation):
                self._may_lose_power(f"{type(operation).__name__.lower()} {self._role(operation.file)}")
            return done

    def _follow(self, operation: Operation) -> bool:
        """Tell the model; whether that changed anything."""
        path = operation.file
        match operation:
            case Open():
                return self._open(path, operation.flags)
            case Write():
                self._file(path).since.append(Wrote(operation.offset, operation.data))
            case Truncate():
                self._file(path).since.append(Ended(operation.size))
            case Sync() if not self._ignores_syncs:
                self._file(path).sync()
                if path in self._lasts:
                    self._lasts.discard(path)
                    self._sync_directory(str(Path(path).parent))
            case Delete():
                self._disk.remove(path)
                if operation.is_lasting:
                    self._sync_directory(str(Path(path).parent))
            case _:
                return False
        return True

    def _open(self, path: str, flags: int) -> bool:
        """Whether a file was made."""
        if path not in self._asked and self._disk.holds(path) is not None:
            self._compare(path)  # Python wrote it until now
        self._asked.add(path)
        if path.endswith(_LASTS) and flags & apsw.SQLITE_OPEN_CREATE:
            self._lasts.add(path)
        is_new = self._disk.holds(path) is None and Path(path).exists()
        if is_new:
            self._disk.make(path, File())
        return is_new

    def _file(self, path: str) -> File:
        node = self._disk.holds(path)
        # What has lost its name while it was open goes with the last who has it open.
        return node if isinstance(node, File) else File()

    # --- Python

    @contextmanager
    def _names(self) -> Iterator[None]:
        functions: dict[str, Callable[..., Any]] = {
            "rename": self._moves(os.rename),
            "replace": self._moves(os.replace),
            "unlink": self._removes(os.unlink),
            "remove": self._removes(os.remove),
            "rmdir": self._removes(os.rmdir),
            "mkdir": self._makes(os.mkdir),
            "link": self._links(os.link),
            "fsync": self._syncs(os.fsync),
        }
        stands_in = {(os, name): function for name, function in functions.items()}
        stands_in[atomic_write, "exchange"] = self._exchanges(atomic_write.exchange)
        real = {(module, name): getattr(module, name) for module, name in stands_in}
        for (module, name), function in stands_in.items():
            setattr(module, name, function)
        try:
            yield
        finally:
            for (module, name), function in real.items():
                setattr(module, name, function)

    def _moves(self, real: Callable[..., None]) -> Callable[..., None]:
        def move(
            src: str | Path, dst: str | Path, *, src_dir_fd: int | None = None, dst_dir_fd: int | None = None
        ) -> None:
            path, to = _whole(src, src_dir_fd), _whole(dst, dst_dir_fd)
            with self._lock:
                self._look()
                real(src, dst, src_dir_fd=src_dir_fd, dst_dir_fd=dst_dir_fd)
                if self._disk.holds(path) is not None:
                    self._disk.rename(path, to)
                    (self._asked.add if path in self._asked else self._asked.discard)(to)
                    self._may_lose_power(f"rename {self._role(path)}")

        return move

    def _removes(self, real: Callable[..., None]) -> Callable[..., None]:
        def remove(path: str | Path, *, dir_fd: int | None = None) -> None:
            whole = _whole(path, dir_fd)
            with self._lock:
                if self._is_ours(whole):
                    self._look()
                real(path, dir_fd=dir_fd)
                if self._is_ours(whole):
                    self._disk.remove(whole)
                    self._asked.discard(whole)
                    self._may_lose_power(f"unlink {self._role(whole)}")

        return remove

    def _exchanges(self, real: Callable[[Path, Path], bool]) -> Callable[[Path, Path], bool]:
        def exchange(one: Path, other: Path) -> bool:
            with self._lock:
                self._look()
                for path in (one, other):
                    if isinstance(self._disk.holds(str(path)), File):
                        self._compare(str(path))
                done = real(one, other)
                if done and self._is_ours(str(one)):
                    self._disk.exchange(str(one), str(other))
                    self._may_lose_power(f"exchange {self._role(str(other))}")
                return done

        return exchange

    def _links(self, real: Callable[..., None]) -> Callable[..., None]:
        def link(src: str | Path, dst: str | Path, **named: Any) -> None:
            path, to = os.fspath(src), os.fspath(dst)
            with self._lock:
                self._look()
                real(src, dst, **named)
                if self._disk.holds(path) is not None:
                    self._disk.link(path, to)
                    self._may_lose_power(f"link {self._role(to)}")

        return link

    def _makes(self, real: Callable[..., None]) -> Callable[..., None]:
        def make(*arguments: Any, **named: Any) -> None:
            with self._lock:
                real(*arguments, **named)
                self._look()

        return make

    def _syncs(self, real: Callable[[int], None]) -> Callable[[int], None]:
        def sync(fd: int) -> None:
            path = str(Path(f"/proc/self/fd/{fd}").readlink())
            with self._lock:
                real(fd)
                if self._is_ours(path) or path in {str(self._root), str(self._root.parent)}:
                    self._look()
                    self._synced(path)
                    self._may_lose_power(f"fsync {self._role(path)}")

        return sync

    def _synced(self, path: str) -> None:
        if Path(path).is_dir():
            self._sync_directory(path)
        elif not self._ignores_syncs:
            self._compare(path)
            self._file(path).sync()

    def _sync_directory(self, directory: str) -> None:
        if not self._ignores_syncs:
            self._disk.sync_directory(directory)

    # --- what is there

    def _is_ours(self, path: str) -> bool:
        return path.startswith(f"{self._root}/")

    def _look(self) -> None:
        """Find what came, or went, by other ways than those that are watched."""
        there: dict[str, bool] = {str(self._root): True} if self._root.is_dir() else {}
        for above, directories, files in os.walk(self._root):
            there |= {f"{above}/{name}": True for name in directories}
            there |= {f"{above}/{name}": False for name in files if _is_file(Path(above, name))}
        for path in self._disk.paths:
            if path not in there:
                self._disk.remove(path)
        for path, is_directory in there.items():
            if self._disk.holds(path) is None:
                self._disk.make(path, Directory() if is_directory else File())

    def _compare(self, path: str) -> None:
        """Take what Python wrote into a file for one write."""
        file = self._file(path)
        if path in self._asked:
            return
        found = Path(path).read_bytes()
        file.since = [] if found == file.lasting else [Ended(len(found)), Wrote(0, found)]

    def _role(self, path: str) -> str:
        """The file's name, without what tells one of its kind from another."""
        if path == str(self._root.parent):
            return "what is above"
        return Path(path).name.rstrip("0123456789")

    # --- the power

    def _may_lose_power(self, kind: str) -> None:
        number = self._counts[kind] = self._counts.get(kind, 0) + 1
        if self._rng.randrange(number):
            return
        self.lose_power(kind)

    def lose_power(self, kind: str) -> None:
        """Let the cuts of a kind be here."""
        with self._lock:
            self._look()
            for path in self._disk.paths:
                if isinstance(self._disk.holds(path), File) and path not in self._asked:
                    self._compare(path)
            self._places[kind] = self._counts.get(kind, 1), self._disk.as_now()


def restore(left: Left, directory: Path) -> None:
    """Have a directory hold what a disk held.

    Args:
        left: What it held.
        directory: Is not there.
    """
    for path in left.directories:
        Path(path).mkdir(mode=0o700, parents=True, exist_ok=True)
    for path, data in left.files.items():
        file = Path(path)
        assert file.is_relative_to(directory), file
        file.touch(mode=0o600)
        file.write_bytes(data)


def _whole(path: str | Path, dir_fd: int | None) -> str:
    below = os.fspath(path)
    return below if dir_fd is None else f"{Path(f'/proc/self/fd/{dir_fd}').readlink()}/{below}"


def _is_file(path: Path) -> bool:
    return path.is_file() and not path.is_symlink()
