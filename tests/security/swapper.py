"""A process that puts ways out of the fence in the place of files and directories, and back, as fast as it can.

    python -m tests.security.swapper HOME SEED [--mounts]

It ends when its stdin does, with everything in its place, and prints what it did, as JSON.
"""

import contextlib
import ctypes
import json
import os
import shutil
import socket
import sys
import threading
from collections import Counter
from collections.abc import Iterator
from pathlib import Path
from random import Random

from tests.security.world import World

_AT_FDCWD, _EXCHANGE = -100, 2
_MS_BIND, _MNT_DETACH = 4096, 2
_LIBC = ctypes.CDLL(None, use_errno=True)

_KINDS = ("link", "relative", "chain", "magic", "fifo", "socket", "folder", "file", "hard")
# A client is told where its workspace is by its owner, so that one may be reached by a link.
_NOT_SWAPPED = frozenset({"agent"})


def exchange(one: Path, other: Path) -> None:
    """Let two names change places, at once.

    Raises:
        OSError: they cannot.
    """
    names = os.fsencode(one), os.fsencode(other)
    if _LIBC.renameat2(_AT_FDCWD, names[0], _AT_FDCWD, names[1], _EXCHANGE):
        raise OSError(ctypes.get_errno(), "renameat2")


class Swapper:
    """Everything that is done to one world."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        self._traps = world.home / "traps"
        self._traps.mkdir()
        self._files = world.files()
        directories = [one for one in world.directories() if one not in _NOT_SWAPPED]
        # As often as files: a directory is a way out for all that lies below.
        self._places = [*self._files, *directories, *directories]
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        """One place, or several at a time, become something else for a moment."""
        rng = self._rng
        with contextlib.ExitStack() as back:
            for _ in range(rng.choice((1, 1, 1, 2, 3))):
                with contextlib.suppress(FileNotFoundError, NotADirectoryError):
                    way = rng.choice((self._exchanged, self._exchanged, self._renamed, self._recased))
                    place = rng.choice(self._places)
                    # Where somebody writes, a moment without the name would be used to make it.
                    is_written = place.startswith("agent/")
                    back.enter_context(self._exchanged(place) if is_written else way(place))
            for _ in range(rng.choice((0, 0, 100, 3000))):
                pass

    @contextlib.contextmanager
    def _exchanged(self, place: str) -> Iterator[None]:
        """In one step, so that there is no moment without the name."""
        path = self._plain(place)
        trap, kind = self._made(place)
        try:
            exchange(path, trap)
        except OSError:
            _remove(trap)
            raise
        self.done[f"exchange {kind}"] += 1
        try:
            yield
        finally:
            exchange(path, trap)
            _remove(trap)

    @contextlib.contextmanager
    def _renamed(self, place: str) -> Iterator[None]:
        """In two, with a moment in which nothing is there."""
        path = self._plain(place)
        trap, kind = self._made(place)
        aside = trap.with_name(f"{trap.name}-aside")
        try:
            path.rename(aside)
        except OSError:
            _remove(trap)
            raise
        trap.rename(path)
        self.done[f"rename {kind}"] += 1
        try:
            yield
        finally:
            _remove(path)
            aside.rename(path)

    @contextlib.contextmanager
    def _recased(self, place: str) -> Iterator[None]:
        """Under the name that a careless comparison takes for the same, with a way out under the old one."""
        path = self._plain(place)
        other = path.with_name(path.name.swapcase())
        if other == path:
            raise FileNotFoundError
        path.rename(other)
        path.symlink_to(self._world.outside / place)
        self.done["case"] += 1
        try:
            yield
        finally:
            path.unlink()
            other.rename(path)

    def _plain(self, place: str) -> Path:
        """Where a place is, unless something above it is a way out just now: nothing outside is touched.

        Raises:
            FileNotFoundError: it is.
        """
        path = self._world.inside / place
        if os.path.realpath(path) != str(path):
            raise FileNotFoundError
        return path

    def _made(self, place: str) -> tuple[Path, str]:
        target, kind = self._world.outside / place, self._rng.choice(_KINDS)
        trap = self._traps / f"{sum(self.done.values())}-{self._rng.random()}"
        match kind:
            case "link":
                trap.symlink_to(target)
            case "relative":
                trap.symlink_to(os.path.relpath(target, (self._world.inside / place).parent))
            case "chain":
                link = trap.with_name(f"{trap.name}-link")
                link.symlink_to(target)
                trap.symlink_to(link)
            case "magic":  # a link of the kernel's, which leads on without a path
                trap.symlink_to(f"/proc/self/root{target}")
            case "fifo":
                os.mkfifo(trap)
            case "socket":
                with socket.socket(socket.AF_UNIX) as one:
                    one.bind(str(trap))
            case "folder":
                trap.mkdir()
            case "file":
                trap.write_bytes(b"")
            case _:  # another name of a file inside
                os.link(self._world.home / "spare.md", trap)
        return trap, kind


class Mounter:
    """Mounts what is outside over what is inside, where only this process sees it."""

    def __init__(self, world: World, rng: Random) -> None:
        self._world = world
        self._rng = rng
        self._places = [one for one in world.directories() if one not in _NOT_SWAPPED]
        self.done: Counter[str] = Counter()

    def step(self) -> None:
        """One directory is another for a moment."""
        place = self._rng.choice(self._places)
        inside, outside = (os.fsencode(base / place) for base in (self._world.inside, self._world.outside))
        if _LIBC.mount(outside, inside, None, _MS_BIND, None):
            self.done["refused"] += 1
            return
        self.done["mount"] += 1
        _LIBC.umount2(inside, _MNT_DETACH)


def _remove(trap: Path) -> None:
    link = trap.with_name(f"{trap.name}-link")
    if trap.is_dir() and not trap.is_symlink():
        shutil.rmtree(trap)
    else:
        trap.unlink()
    link.unlink(missing_ok=True)


def _say(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def main(home: str, seed: str, *mode: str) -> None:
    """Go on until nobody wants more."""
    world, rng = World(Path(home)), Random(seed)
    one: Swapper | Mounter = Mounter(world, rng) if mode else Swapper(world, rng)
    ended = threading.Event()

    def wait() -> None:
        sys.stdin.read()
        ended.set()

    threading.Thread(target=wait, daemon=True).start()
    _say("ready")
    while not ended.is_set():
        one.step()
    _say(json.dumps(one.done))


if __name__ == "__main__":
    main(*sys.argv[1:])
