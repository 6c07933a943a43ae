"""The interface of a source of raw file system events, and the filter that keeps those that concern memory."""

from collections.abc import Callable, Iterable
from enum import IntEnum
from pathlib import Path
from typing import Protocol

import msgspec

from memd.errors import MemdError
from memd.text.memory_paths import Root, SessionPaths, admits, descends, only_file, parts_below
from memd.watch.watch_plan import WatchPlan


class Change(IntEnum):
    """What happened to a file, with the names and numbers of watchfiles."""

    # watchfiles itself is imported where it watches: it takes 6 ms of a start.
    added = 1
    modified = 2
    deleted = 3


RawEvent = tuple[Change, str]


class EventBatch(msgspec.Struct, frozen=True):
    """The raw events of one moment."""

    events: frozenset[RawEvent] = frozenset()
    incomplete: bool = False  # events were lost: the system had no room left for them
    # Files that came and were not closed by whoever wrote them under that name: one that was written under another, and
    # linked to this one, goes on being written with events for the other name alone.
    begun: frozenset[str] = frozenset()
    remounted: bool = False  # something was mounted or unmounted, somewhere
    uprooted: bool = False  # a directory above a root was renamed or deleted


class FeedBroken(MemdError):
    """Watching is not possible, or no longer; the message says why, and how to fix it."""


class FeedPosition(Protocol):
    """The position in a feed's queue of events: how much the system has queued, and how much the feed has given; in one unit, from 0."""

    @property
    def given(self) -> int:
        """The amount that the feed has given."""
        ...

    def queued(self) -> int:
        """Return the amount that the system has queued, given or not, including all changes before this call."""
        ...

    def hurry(self) -> None:
        """Give queued events at once, without collecting more, since a task waits for them."""
        ...


class Feed(Protocol):
    """The raw events of some watches, until the feed breaks. A feed is started once, and must be stopped."""

    async def start(self, plan: WatchPlan) -> None:
        """Set the watches; once it returns, all changes cause events.

        Raises:
            FileNotFoundError, PermissionError: a directory vanished or cannot be read any more; try without it.
            FeedBroken: changes will not be seen.
        """
        ...

    async def next(self, until: float) -> EventBatch:
        """Return all queued events, or wait for the next ones; an empty batch if none came until this time of the event loop.

        Raises:
            FeedBroken: no more will come.
        """
        ...

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        """Set a watch on each file itself, for writes under any of its names; return the files that were not watched before."""
        ...

    @property
    def reports_roots(self) -> bool:
        """Whether there is an event if another directory takes the place of a root, or of one above it."""
        ...

    def position(self) -> FeedPosition | None:
        """Return the position; None if the system does not say how many events it has queued."""
        ...

    async def stop(self) -> None:
        """Remove all watches."""
        ...


class FilteredBatch(msgspec.Struct, frozen=True):
    """The events of a batch that concern memory."""

    paths: frozenset[Path]  # files that may be notes, and directories that may hold some
    unwatched: frozenset[Path]  # created or deleted directories, whose content caused no events

    @property
    def restructured(self) -> bool:
        """Whether the directories to watch have changed."""
        return bool(self.unwatched)


def filter_events(
    batch: Iterable[RawEvent],
    roots: Iterable[Root],
    plan: WatchPlan,
    is_directory: Callable[[Path], bool],
    has_other_names: Callable[[Path], bool] = lambda _: False,
) -> FilteredBatch:
    """Return the events that concern memory.

    A directory that is created, renamed or deleted makes no events for the files in it, so its event counts for all of them.

    Args:
        batch: Changes with absolute paths.
        roots: As sources.roots gives them.
        plan: The watched directories: a path among them was a directory.
        is_directory: Whether a path is a directory now; does not follow symlinks.
        has_other_names: Whether a path is a file with several names: one of them may be that of a note.
    """
    roots = tuple(roots)
    paths: set[Path] = set()
    unwatched: set[Path] = set()
    for change, raw in batch:
        path = Path(raw)
        below = [(root, parts) for root in roots if (parts := parts_below(root, path)) is not None]
        is_watched = path in plan.flat or path in plan.deep
        # A watch with everything below goes along with the directories there, and knows none by name.
        is_deep = any(above in plan.deep for above in path.parents)
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
            # No event reports where its other name is: all notes are checked by their stamps.
            paths.update(
                root.directory / (only_file(root) or "")
                for root in roots
                if not isinstance(root, SessionPaths)
            )
    return FilteredBatch(frozenset(paths), frozenset(unwatched))
