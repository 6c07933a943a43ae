"""Keeps those raw events of the file system that concern memory."""

from collections.abc import Callable, Iterable
from pathlib import Path

import msgspec
from watchfiles import Change

from memd.text.memory_paths import Root, SessionPaths, admits, descends, only_file, parts_below
from memd.watch.watch_plan import WatchPlan


class FilteredBatch(msgspec.Struct, frozen=True):
    """The events of a batch that concern memory."""

    paths: frozenset[Path]  # files that may be notes, and directories that may hold some
    unwatched: frozenset[Path]  # directories that came or went: what is in them now, no event tells

    @property
    def restructured(self) -> bool:
        """Whether the directories to watch have changed."""
        return bool(self.unwatched)


def sight(
    batch: Iterable[tuple[Change, str]],
    roots: Iterable[Root],
    ground: WatchPlan,
    is_directory: Callable[[Path], bool],
    has_other_names: Callable[[Path], bool] = lambda _: False,
) -> FilteredBatch:
    """Keep the events that concern memory.

    A directory that is created, renamed or deleted makes no events for the files in it, so its event counts for all of them.

    Args:
        batch: Changes with absolute paths.
        roots: As sources.roots gives them.
        ground: The watched directories: a path among them was a directory.
        is_directory: Whether a path is a directory now; does not follow symlinks.
        has_other_names: Whether a path is a file with several names: one of them may be that of a note.
    """
    roots = tuple(roots)
    paths: set[Path] = set()
    unwatched: set[Path] = set()
    for change, raw in batch:
        path = Path(raw)
        below = [(root, parts) for root in roots if (parts := parts_below(root, path)) is not None]
        is_watched = path in ground.flat or path in ground.deep
        # A watch with everything below goes along with the directories there, and knows none by name.
        is_deep = any(above in ground.deep for above in path.parents)
        if any(descends(root, parts) for root, parts in below):
            if change is Change.deleted:
                came_or_went, stands_for_files = is_watched, is_watched or is_deep
            else:
                is_now = is_directory(path)
                # One that is watched and only modified had its permissions or times changed.
                came_or_went = is_now and (change is Change.added or not is_watched)
                stands_for_files = is_now
            if came_or_went and not is_deep:
                unwatched.add(path)
        else:
            stands_for_files = False
        if stands_for_files or any(admits(root, parts) for root, parts in below):
            paths.add(path)
        elif (
            change is Change.added
            and any(descends(root, parts[:-1]) for root, parts in below if parts)
            and has_other_names(path)
        ):
            # Where that is, no event tells: all of the notes are looked at, each by its stamp.
            paths.update(
                root.directory / (only_file(root) or "")
                for root in roots
                if not isinstance(root, SessionPaths)
            )
    return FilteredBatch(frozenset(paths), frozenset(unwatched))
