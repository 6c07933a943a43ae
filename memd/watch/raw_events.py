"""What a source of raw events of the file system is to the watcher."""

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
    """Watching is not possible, or no longer; says why, and how to mend it."""


class FeedPosition(Protocol):
    """How far a feed is: what it has given of what the system has told. Both count in the same unit, from 0."""

    @property
    def given(self) -> int:
        """How much the feed has given until now."""
        ...

    def told(self) -> int:
        """How much the system has told until now, given or not: whatever was done before the call is in it."""
        ...

    def hurry(self) -> None:
        """Somebody waits for it: what was told is given at once, and not gathered."""
        ...


class Feed(Protocol):
    """The raw events of the watches that are set, until one breaks. It is started once, and always stopped."""

    async def start(self, ground: WatchPlan) -> None:
        """Set the watches; when it returns, changes are seen.

        Raises:
            FileNotFoundError, PermissionError: a directory went away or was closed meanwhile; the others may do.
            Broken: changes will not be seen.
        """
        ...

    async def next(self, until: float) -> EventBatch:
        """All events that wait, or the next ones; an empty batch where none came until this time of the event loop.

        Raises:
            Broken: no more will come.
        """
        ...

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:
        """Watch some files by themselves, whatever name they are written under; those that are watched since this call."""
        ...

    def tap(self) -> FeedPosition | None:
        """How far it is; None where the system does not tell how much it has told."""
        ...

    async def stop(self) -> None:
        """Take the watches away. Nothing of them is left when it returns."""
        ...
