"""The interface of a source of raw file system events."""

from collections.abc import Iterable
from pathlib import Path
from typing import Protocol

import msgspec
from watchfiles import Change

from memd.errors import MemdError
from memd.watch.watch_plan import WatchPlan

RawEvent = tuple[Change, str]


class EventBatch(msgspec.Struct, frozen=True):
    """The raw events of one moment."""

    events: frozenset[RawEvent] = frozenset()
    incomplete: bool = False  # events were lost: the system had no room left for them
    # Files that came and were not closed by whoever wrote them under that name: one that was written under another, and
    # linked to this one, goes on being written with events for the other name alone.
    begun: frozenset[str] = frozenset()
    remounted: bool = False  # something was mounted or unmounted, somewhere


class FeedBroken(MemdError):
    """Watching is not possible, or no longer; the message says why, and how to mend it."""


class FeedPosition(Protocol):
    """The position of a feed: how much the system has queued, and how much of that the feed has given. Both count in one unit, from 0."""

    @property
    def given(self) -> int:
        """How much the feed has given."""
        ...

    def told(self) -> int:
        """How much the system has queued, given or not, including all changes before this call."""
        ...

    def hurry(self) -> None:
        """Give queued events at once, without gathering more: a task waits for them."""
        ...


class Feed(Protocol):
    """The raw events of some watches, until the feed breaks. It is started once, and always stopped."""

    async def start(self, ground: WatchPlan) -> None:
        """Set the watches; changes are seen when it returns.

        Raises:
            FileNotFoundError, PermissionError: a directory vanished or cannot be read any more; try without it.
            FeedBroken: changes will not be seen.
        """
        ...

    async def next(self, until: float) -> EventBatch:
        """All queued events, or the next ones; an empty batch if none came until this time of the event loop.

        Raises:
            FeedBroken: no more will come.
        """
        ...

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        """Set a watch on each file itself, for writes under any name; returns the files that this call watches newly."""
        ...

    def tap(self) -> FeedPosition | None:
        """The position; None if the system does not say how many events it has queued."""
        ...

    async def stop(self) -> None:
        """Remove the watches; all are gone when it returns."""
        ...
