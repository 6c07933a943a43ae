"""Files that are watched by themselves: what is written to them under another name makes no event where they are."""

from collections.abc import Collection
from pathlib import Path

from memd.watch.event_barrier import EventBarrier
from memd.watch.raw_events import EventBatch, Feed

_MOST_BEGUN = 256


class UnwatchedNames:
    """Which files may be written under a name that nobody watches, over all the times that watches are set."""

    def __init__(self, backlog: EventBarrier) -> None:
        """No file is known.

        Args:
            backlog: Knows of files with several names.
        """
        self._backlog = backlog
        # A program may write a draft, link it to its name, take the first name away and write on: the last ones that came.
        self._begun: dict[Path, None] = {}

    async def follow_again(self, feed: Feed) -> frozenset[Path]:
        """Watch those that were watched through another feed; they may have changed until now."""
        return await feed.watch_files(self._begun) if self._begun else frozenset()

    async def follow(self, feed: Feed, batch: EventBatch, noted: Collection[Path]) -> frozenset[Path]:
        """Watch those that came, and those of which somebody has found out that they have several names.

        Args:
            feed: That gave the batch.
            batch: May tell of files that came.
            noted: The files of the batch that matter. Nobody has read them since.

        Returns:
            What may have changed until now beside these.
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
