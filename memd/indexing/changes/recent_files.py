"""A look at the few files that an agent is likely to have just written, where the watcher cannot tell whether it knows of all.

An agent that writes a note and searches at once asks before the event of the file system has arrived. Where nobody knows
that one is on its way (see watch.backlog), a handful of stat calls closes most of that gap: MEMORY.md and USER.md, the
newest notes, and the directories where new ones appear. One that has changed is listed, so that a new note among ten
thousand is the only one that is looked at.
"""

import os
import stat
import time
from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from pathlib import Path

import msgspec

from memd.model import FoundFile, Kind, Stamp
from memd.runtime.ticks import ClockNs
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    ExtraDirectory,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    is_markdown,
)

NEWEST = 24

# What is dated further ahead than this was not written just now: its date was set, or the clock was put back since.
_AHEAD_NS = 2_000_000_000

_NO_MATTER = -1  # neither a directory nor called like a note


class FileSignature(msgspec.Struct, frozen=True):
    """What something looks like."""

    stamp: Stamp
    # Of a directory: name -> inode, or _NO_MATTER. None: it is a file, or cannot be listed.
    entries: Mapping[str, int] | None = None


class RecentFiles:
    """What a few paths looked like to the last pass that was about them."""

    def __init__(self, roots: Iterable[Root], now_ns: ClockNs = time.time_ns) -> None:
        """Nothing is known of any file yet.

        Args:
            roots: As sources.roots gives them.
            now_ns: Unix time in nanoseconds.
        """
        self._now_ns = now_ns
        self._fixed = tuple(path for root in roots for path in _fixed(root))
        self._newest: dict[Path, int] = {}  # file -> mtime_ns
        self._looks: dict[Path, FileSignature | None] = {}  # None: not there

    def look(self) -> dict[Path, FileSignature | None]:
        """What the paths look like; a pass asks before it looks at the disk itself."""
        return {path: _look(path, self._looks.get(path)) for path in self._paths()}

    def remember(
        self,
        found: Collection[FoundFile],
        before: Mapping[Path, FileSignature | None],
        within: Collection[Path] | None,
    ) -> None:
        """A pass has ended. What was written while it ran shows as changed, as does what it was not about.

        Args:
            found: The files that it met, as it met them.
            before: What look gave before it.
            within: The files and directories that it was about; None: everything.
        """
        # What went is looked at for as long as there is room: it may be in the middle of being saved.
        went = (path for path in self._newest if within is None or path in within)
        self._newest |= dict.fromkeys(went, -1)
        notes = (file for file in found if file.kind is not Kind.SESSION)
        self._newest.update((file.file, file.stamp.mtime_ns) for file in notes)
        # Else a thousand notes from a time when the clock was ahead would hide for ever what is written now.
        latest = self._now_ns() + _AHEAD_NS
        kept = nlargest(NEWEST, self._newest.items(), key=lambda item: (item[1] <= latest, item[1], item[0]))
        self._newest = dict(kept)
        met = {file.file: file.stamp for file in found if file.file in self._newest}
        about = None if within is None else frozenset(within)
        looks: dict[Path, FileSignature | None] = {}
        for path in self._paths():
            now = before[path] if path in before else _look(path, None)
            if path in met:
                looks[path] = FileSignature(met[path])
            elif (
                path not in self._looks
                or about is None
                or about.issuperset(_different(path, self._looks[path], now))
            ):
                looks[path] = now
            else:
                looks[path] = now if any(path.is_relative_to(one) for one in about) else self._looks[path]
        self._looks = looks

    def changed(self) -> list[Path]:
        """The paths that look different now; for a directory that was listed, what came, went or was replaced in it."""
        return self._changed(list(self._looks))

    def changed_in(self, directories: Collection[Path]) -> list[Path]:
        """Those of them that lie in some directories."""
        return self._changed(
            [path for path in self._looks if any(path.is_relative_to(one) for one in directories)]
        )

    def _changed(self, paths: Iterable[Path]) -> list[Path]:
        changed: dict[Path, None] = {}
        for path in paths:
            look = self._looks[path]
            now = _look(path, look)
            different = _different(path, look, now)
            changed.update(dict.fromkeys(different))
            if not different:
                # Whatever came in a directory is no note: it is not listed again for that.
                self._looks[path] = now
        return list(changed)

    def _paths(self) -> dict[Path, None]:
        files = dict.fromkeys(self._newest)
        return {
            **dict.fromkeys(self._fixed),
            **files,
            **dict.fromkeys(file.parent for file in files if self._is_inner(file)),
        }

    def _is_inner(self, file: Path) -> bool:
        # The workspace itself changes whenever an agent does anything in it: only what is below memory/ tells of notes.
        return any(file.parent == path or path in file.parents for path in self._fixed)


def _fixed(root: Root) -> tuple[Path, ...]:
    match root:
        case Workspace():
            return root.directory / "MEMORY.md", root.directory / "USER.md", root.directory / MEMORY_DIRECTORY
        case ExtraDirectory():
            return (root.directory,)
        case SingleFile():
            return (root.directory / root.file,)
        case SessionPaths():
            return ()  # no search waits for a transcript


def _look(path: Path, last: FileSignature | None) -> FileSignature | None:
    """What a path looks like; a directory is listed only if it looks otherwise than last time."""
    try:
        status = path.lstat()
    except OSError:
        return None
    stamp = Stamp.of(status)
    if last is not None and last.stamp == stamp:
        return last
    return FileSignature(stamp, _entries(path) if stat.S_ISDIR(status.st_mode) else None)


def _entries(directory: Path) -> dict[str, int] | None:
    try:
        with os.scandir(directory) as listing:
            return {entry.name: entry.inode() if _matters(entry) else _NO_MATTER for entry in listing}
    except OSError:
        return None


def _matters(entry: os.DirEntry[str]) -> bool:
    return is_markdown(entry.name) or entry.is_dir(follow_symlinks=False)


def _different(path: Path, one: FileSignature | None, other: FileSignature | None) -> list[Path]:
    """What must be looked at, for what is at a path looks like one and then like the other."""
    if one == other:
        return []
    if one is None or other is None or one.entries is None or other.entries is None:
        return [path]
    changed = one.entries.items() ^ other.entries.items()
    # Nothing shows why it changed where a note was deleted and came again under the number of the old one.
    if not changed or one.stamp.inode != other.stamp.inode:
        return [path]
    return [path / name for name, inode in sorted(changed) if inode != _NO_MATTER]
