"""Finds the directories that must be watched so that no change of memory is missed."""

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
    """The state of the roots on disk, which changes if a root is replaced, unmounted or missing, or is behind a symlink."""

    # Of roots and memory/; None: missing, not accessible, or behind a symlink.
    identities: dict[Path, Identity | None]
    mounts: dict[Path, Mount]  # see mounts.concerning


class WatchPlan(msgspec.Struct, frozen=True):
    """The directories to watch, with the state of the roots at that time."""

    flat: frozenset[Path]  # each without its subdirectories
    deep: frozenset[Path]  # with everything below
    root_state: RootState
    above: frozenset[Path] = frozenset()  # directories above the roots: renaming one moves roots away

    @property
    def size(self) -> int:
        """The number of watches that the plan needs."""
        return len(self.flat) + len(self.deep) + len(self.above)

    @property
    def is_complete(self) -> bool:
        """Whether the creation of each missing directory would cause an event in a watched directory."""
        return all(
            identity is not None or directory.parent in self.flat
            for directory, identity in self.root_state.identities.items()
        )


def plan_watches(roots: Iterable[Root], *, recursive: bool, mountinfo: str = "") -> WatchPlan:
    """Return the directories to watch.

    Args:
        roots: See sources.roots.
        mountinfo: See mounts.read_mounts.
        recursive: Whether one watch covers a directory with everything below it. Otherwise each directory needs a watch, and
            directories that cannot hold notes are left out: one node_modules could use up the user's watches.

    Raises:
        OSError: the process has no free descriptor.
    """
    roots = tuple(roots)
    # Read before the directories, so that the next comparison finds later changes.
    root_state = root_state_of(roots, mountinfo)
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
    above = set() if recursive else {above for root in roots for above in root.directory.parents}
    return WatchPlan(frozenset(flat), frozenset(deep), root_state, frozenset(above - flat))


def listable(directories: Iterable[Path]) -> list[Path]:
    """Return the directories that exist, can be listed and are not behind a symlink."""
    return [directory for directory in directories if _is_listable(directory)]


def replaced(roots: Mapping[Path, Identity | None]) -> list[Path]:
    """Return the directories that were replaced by another one, or do not exist any more."""
    return [root for root, identity in roots.items() if identity_of(root) != identity]


def root_state_of(roots: Iterable[Root], mountinfo: str) -> RootState:
    """Return the current state of the roots.

    Args:
        roots: See sources.roots.
        mountinfo: See mounts.read_mounts.
    """
    roots = tuple(roots)
    return RootState(identities_of(roots), concerning(roots, parsed(mountinfo)))


def identities_of(roots: Iterable[Root]) -> dict[Path, Identity | None]:
    """Return the current identities of the roots' directories."""
    identities: dict[Path, Identity | None] = {}
    for root in roots:
        identities[root.directory] = _identity(root.directory)
        if isinstance(root, Workspace):
            memory = root.directory / MEMORY_DIRECTORY
            identities[memory] = _identity(memory)
    return identities


def _directories(root: Root, directory: Path, parts: Parts) -> Iterator[Path]:
    """Yield the directory, and the directories below it that can hold notes, except those that cannot be listed."""
    waiting = [(directory, parts)]
    while waiting:
        here, above = waiting.pop()
        try:
            with os.scandir(here) as listing:
                entries = [entry for entry in listing if _is_directory(entry)]
        except OSError as failure:
            if failure.errno in EXHAUSTED:
                raise  # otherwise all directories would count as gone
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
        # watchfiles supports UTF-8 names only. No others are entered below a root, but the root itself may have any name.
        is_utf8(str(directory))
        and not _is_behind_a_symlink(directory)
        # Before is_dir, which raises if a directory above cannot be entered.
        and os.access(directory, os.R_OK | os.X_OK)
        and directory.is_dir()
    )


def _identity(directory: Path) -> Identity | None:
    identity = identity_of(directory)
    # An inaccessible directory is not watched, so only this comparison finds that it is accessible again.
    if _is_behind_a_symlink(directory) or not os.access(directory, os.R_OK | os.X_OK):
        return None
    return identity


def identity_of(directory: Path) -> Identity | None:
    """Return the device and inode of a directory; None if it does not exist."""
    try:
        status = os.lstat(directory)
    except OSError:
        return None
    return status.st_dev, status.st_ino


def _is_behind_a_symlink(directory: Path) -> bool:
    """Return whether the directory, or one above it, is a symlink; such files are not read, see sources.safe_open."""
    return os.path.realpath(directory) != str(directory)
