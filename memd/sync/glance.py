"""A look at the few files that an agent is likely to have just written, quicker than the watcher can tell.

An agent that writes a note and searches at once asks before the event of the file system has arrived. A handful of stat
calls closes that gap: MEMORY.md and USER.md, the newest notes, and the directories where new ones appear.
"""

from collections.abc import Collection, Iterable, Mapping
from heapq import nlargest
from pathlib import Path

from memd.model import FoundFile
from memd.paths import MEMORY_DIRECTORY, Root, SingleFile, Tree, Workspace

NEWEST = 24

Look = tuple[int, int, int] | None  # size, mtime_ns, inode; None: not there


class Glance:
    """What a few paths looked like to the last pass that was about them."""

    def __init__(self, roots: Iterable[Root]) -> None:
        self._fixed = tuple(path for root in roots for path in _fixed(root))
        self._newest: dict[Path, int] = {}  # file -> mtime_ns
        self._looks: dict[Path, Look] = {}

    def look(self) -> dict[Path, Look]:
        """What the paths look like; a pass asks before it looks at the disk itself."""
        return {path: _look(path) for path in self._paths()}

    def remember(
        self, found: Collection[FoundFile], before: Mapping[Path, Look], within: Collection[Path] | None
    ) -> None:
        """A pass has ended. What was written while it ran shows as changed, as does what it was not about.

        Args:
            found: The files that it met, as it met them.
            before: What look gave before it.
            within: The files and directories that it was about; None: everything.
        """
        self._newest.update((file.file, file.stamp.mtime_ns) for file in found)
        kept = nlargest(NEWEST, self._newest.items(), key=lambda item: (item[1], item[0]))
        self._newest = dict(kept)
        met = {file.file: file.stamp for file in found if file.file in self._newest}
        looks: dict[Path, Look] = {}
        for path in self._paths():
            if path in met:
                stamp = met[path]
                looks[path] = stamp.size, stamp.mtime_ns, stamp.inode
            elif within is None or any(path.is_relative_to(one) for one in within):
                looks[path] = before[path] if path in before else _look(path)
            else:
                looks[path] = self._looks[path] if path in self._looks else _look(path)
        self._looks = looks

    def changed(self) -> list[Path]:
        """The paths that look different now."""
        return [path for path, look in self._looks.items() if _look(path) != look]

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
        case Tree():
            return (root.directory,)
        case SingleFile():
            return (root.directory / root.file,)


def _look(path: Path) -> Look:
    try:
        status = path.lstat()
    except OSError:
        return None
    return status.st_size, status.st_mtime_ns, status.st_ino
