"""What a search waits for, so that it finds what was written a moment ago."""

import asyncio
import time
from collections.abc import Collection
from pathlib import Path

from memd.indexing.passes import Passes
from memd.indexing.pending_changes import PendingChanges
from memd.indexing.recent_files import LOOK_S, RecentFileCheck
from memd.runtime.profiling import spent
from memd.watch.event_barrier import EventBarrier


class Freshness:
    """Has what is known to have changed indexed for whoever asks."""

    def __init__(
        self,
        pending: PendingChanges,
        passes: Passes,
        recent: RecentFileCheck,
        backlog: EventBarrier,
        wait_s: float,
    ) -> None:
        """Nobody has asked yet.

        Args:
            pending: What is marked.
            passes: That take it.
            recent: Looks at a few files, where the watcher does not see all.
            backlog: Of the watcher.
            wait_s: How long one who asks waits.
        """
        self._pending = pending
        self._passes = passes
        self._recent = recent
        self._backlog = backlog
        self._wait_s = wait_s

    async def catch_up(self) -> bool:
        """Have what is known to have changed indexed now, waiting for it as long as configured.

        A transcript that is not due yet stays so, and the index counts as up to date without it: the one of the agent
        that asks has always grown since, by this very question. Otherwise each search would read it again, or call each
        answer stale.

        Returns:
            Whether the index is up to date with every change that was known at the call, or that was made before it where
            the watcher sees all; see watch.event_barrier.

        Raises:
            StoreClosed: no pass is made any more.
        """
        with spent("catching up"):
            return await self._catch_up(time.monotonic() + self._wait_s)

    async def _catch_up(self, deadline: float) -> bool:
        late = False
        unwatched: Collection[Path] | None = None
        try:
            unwatched = await self._backlog.drained(max(self._wait_s, LOOK_S))
        except TimeoutError:
            late = True  # whether it is the disk that does not answer, a look tells
        if unwatched is not None and self._backlog.roots:
            replaced = await self._recent.replaced(
                self._backlog.roots, max(deadline - time.monotonic(), LOOK_S)
            )
            late |= replaced is None
            unwatched = [*unwatched, *(replaced or ())]
        changed = await self._changed(unwatched, max(deadline - time.monotonic(), LOOK_S))
        if changed is None and unwatched is None:
            return False
        if changed is None:
            late, changed = True, unwatched
        if changed:
            self._pending.mark(changed)
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await self._passes_over_all_that_is_marked() and not late
        except TimeoutError:
            return False

    async def _changed(
        self, unwatched: Collection[Path] | None, patience_s: float
    ) -> Collection[Path] | None:
        """What has to be looked at beside what is marked; None: that cannot be told in time."""
        known = await self._recent.changed(patience_s) if unwatched is None else unwatched
        absent = self._backlog.missing
        unseen: frozenset[Path] = frozenset()
        if unwatched is not None:
            absent, unseen = absent | self._backlog.absent, self._backlog.unseen
        if known is None or not (absent or unseen):
            return known
        beside = await self._recent.changed_in(absent, unseen, patience_s)
        return None if beside is None else [*known, *beside]

    async def _passes_over_all_that_is_marked(self) -> bool:
        """Wait for the passes that run and for those over what is marked; whether these are all, and went well."""
        running = self._pending.running_for_s()
        # A pass that has run for longer is a long one: waiting once more for it would only make every search slow.
        numbers = [number for number, ran_s in running.items() if ran_s <= self._wait_s]
        is_behind = len(numbers) < len(running)
        by_name, everything = self._pending.awaits_paths, self._pending.awaits_everything
        if self._passes.awaits_retry:
            is_behind, by_name = True, False  # what failed is tried again in its time, not at each search
        # Behind a long pass only what is marked by name goes in between.
        everything = everything and not is_behind
        hurried = self._pending.hurry() if by_name or everything else 0
        if by_name and not everything:
            numbers.append(hurried)
        for number in numbers:
            await self._pending.wait_for(number)
        if everything:
            numbers.append(await self._pending.wait_for_everything(hurried))
        return not is_behind and all(map(self._passes.has_succeeded, numbers))
