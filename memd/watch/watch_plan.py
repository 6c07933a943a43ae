"""Which directories must be watched to see every change of memory."""

import os
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path

import msgspec

from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    Parts,
    Root,
    Workspace,
    descends,
    descends_into,
    is_utf8,
    only_file,
)
from memd.watch.mounts import EXHAUSTED, Mount, concerning, parsed

Identity = tuple[int, int]  # device, inode


class RootState(msgspec.Struct, frozen=True):
    """What memory hangs on. A replaced, unmounted or missing root shows in it, and a symlink above one."""

    identities: dict[
        Path, Identity | None
    ]  # of roots and memory/; None: not there, closed, or behind a symlink
    mounts: dict[Path, Mount]  # as mounts.concerning gives them


class WatchPlan(msgspec.Struct, frozen=True):
    """The directories to watch, and what tells that they are still the same."""

    flat: frozenset[Path]  # each for itself
    deep: frozenset[Path]  # with everything below
    footing: RootState

    @property
    def size(self) -> int:
        """How many watches that takes."""
        return len(self.flat) + len(self.deep)


def survey(roots: Iterable[Root], *, recursive: bool, mountinfo: str = "") -> WatchPlan:
    """Find the directories to watch.

    Args:
        roots: As sources.roots gives them.
        mountinfo: As mounts.read_mounts gives it.
        recursive: Whether the system itself watches a directory with everything below, at no cost for what is
            below. Where it does not, each directory costs a watch, so those that hold no notes are left out:
            a node_modules alone could use up what a user may have.

    Raises:
        OSError: the process has no descriptor to look with.
    """
    roots = tuple(roots)
    # Before the directories: what changes meanwhile shows at the next comparison.
    footing = footing_of(roots, mountinfo)
    flat: set[Path] = set()
    deep: set[Path] = set()
    for root in roots:
        holds_files = isinstance(root, Workspace) or only_file(root) is not None
        if holds_files and _is_listable(root.directory):
            flat.add(root.directory)
        if only_file(root) is not None:
            continue
        top: Parts = (MEMORY_DIRECTORY,) if isinstance(root, Workspace) else ()
        directory = root.directory.joinpath(*top)
        if not descends(root, top) or not _is_listable(directory):
            continue
        if recursive:
            deep.add(directory)
        else:
            flat.update(_directories(root, directory, top))
    return WatchPlan(frozenset(flat), frozenset(deep), footing)


def listable(directories: Iterable[Path]) -> list[Path]:
    """Those of some directories that are there, can be listed and lie behind no symlink."""
    return [directory for directory in directories if _is_listable(directory)]


def replaced(roots: Mapping[Path, Identity | None]) -> list[Path]:
    """Those of some directories in whose place there is another now, or nothing."""
    return [root for root, identity in roots.items() if identity_of(root) != identity]


def footing_of(roots: Iterable[Root], mountinfo: str) -> RootState:
    """What memory hangs on just now.

    Args:
        roots: As sources.roots gives them.
        mountinfo: As mounts.read_mounts gives it.
    """
    roots = tuple(roots)
    return RootState(identities_of(roots), concerning(roots, parsed(mountinfo)))


def identities_of(roots: Iterable[Root]) -> dict[Path, Identity | None]:
    """What the directories that memory hangs on are just now."""
    identities: dict[Path, Identity | None] = {}
    for root in roots:
        identities[root.directory] = _identity(root.directory)
        if isinstance(root, Workspace):
            memory = root.directory / MEMORY_DIRECTORY
            identities[memory] = _identity(memory)
    return identities


def _directories(root: Root, directory: Path, parts: Parts) -> Iterator[Path]:
    """The directory and those below it that can hold notes, without those that cannot be listed."""
    waiting = [(directory, parts)]
    while waiting:
        here, above = waiting.pop()
        try:
            with os.scandir(here) as listing:
                entries = [entry for entry in listing if _is_directory(entry)]
        except OSError as failure:
            if failure.errno in EXHAUSTED:
                raise  # else all that is watched would count as gone
            continue
        yield here
        for entry in entries:
            parts = (*above, entry.name)
            if descends_into(root, parts):
                waiting.append((here / entry.name, parts))


def _is_directory(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.is_dir(follow_symlinks=False)
    except OSError:
        return False


def _is_listable(directory: Path) -> bool:
    return (
        # The library takes names in UTF-8 only. Below a root no others are entered, but a root may lie anywhere.
        is_utf8(str(directory))
        and not _is_behind_a_symlink(directory)
        # First: is_dir raises where a directory above may not be entered.
        and os.access(directory, os.R_OK | os.X_OK)
        and directory.is_dir()
    )


def _identity(directory: Path) -> Identity | None:
    identity = identity_of(directory)
    # One that is closed is not watched; nothing but this tells when it is opened.
    if _is_behind_a_symlink(directory) or not os.access(directory, os.R_OK | os.X_OK):
        return None
    return identity


def identity_of(directory: Path) -> Identity | None:
    """What lies there just now; None: nothing."""
    try:
        status = os.lstat(directory)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_behind_a_symlink(directory: Path) -> bool:
    """Whether it is a symlink, or any directory above is one: nothing is read there, see sources.fence."""
    return os.path.realpath(directory) != str(directory)
