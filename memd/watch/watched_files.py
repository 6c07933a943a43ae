"""Watches of single files with several names: a write under another name makes no event in their own directory."""

from collections.abc import Collection
from pathlib import Path

from memd.watch.event_barrier import EventBarrier
from memd.watch.raw_events import EventBatch, Feed

_MOST_BEGUN = 256


class UnwatchedNames:
    """The files that may be written under a name without a watch; kept when the watches are set again."""

    def __init__(self, backlog: EventBarrier) -> None:
        """Begin without files.

        Args:
            backlog: Knows the files with several names.
        """
        self._backlog = backlog
        # A program may write a draft, link it to its name, take the first name away and write on: the last ones that came.
        self._begun: dict[Path, None] = {}

    async def follow_again(self, feed: Feed) -> frozenset[Path]:
        """Watch the files of the last feed again; returns them, since they may have changed meanwhile."""
        return await feed.watch_files(self._begun) if self._begun else frozenset()

    async def follow(self, feed: Feed, batch: EventBatch, noted: Collection[Path]) -> frozenset[Path]:
        """Watch new files, and files that a scan found to have several names.

        Args:
            feed: The feed of the batch.
            batch: May contain new files.
            noted: The files of the batch that concern memory. They have not been read since.

        Returns:
            Other files that may have changed until now.
        """
        came = [path for path in map(Path, batch.begun) if path in noted]
        if came:
            self._begun |= dict.fromkeys(came)
            for file in list(self._begun)[:-_MOST_BEGUN]:
                del self._begun[file]
            await feed.watch_files(came)
        to_follow = self._backlog.to_follow
        if not to_follow:
            return frozenset()
        watched = await feed.watch_files(file for file, _ in to_follow)
        self._backlog.follows(to_follow)
        return watched
