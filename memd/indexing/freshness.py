"""Lets a search wait until recent changes are indexed."""

import asyncio
import time
from collections.abc import Collection
from pathlib import Path

from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.pass_scheduler import PassScheduler
from memd.indexing.recent_files import LOOK_S, RecentFileCheck
from memd.runtime.profiling import timed_part
from memd.watch.event_barrier import EventBarrier


class Freshness:
    """Brings the index up to date with all known changes before a search."""

    def __init__(
        self,
        pending: DebouncedChanges,
        passes: PassScheduler,
        recent: RecentFileCheck,
        barrier: EventBarrier,
        wait_s: float,
    ) -> None:
        """Create the object.

        Args:
            pending: The marks of changed paths that wait for a pass.
            passes: The passes that take them.
            recent: Checks a few files where the watcher does not see all changes.
            barrier: The barrier of the watcher's events.
            wait_s: The longest wait of a search, in seconds.
        """
        self._pending = pending
        self._passes = passes
        self._recent = recent
        self._barrier = barrier
        self._wait_s = wait_s

    async def catch_up(self) -> bool:
        """Index all known changes now, and wait for that as long as configured.

        Transcripts that are not due yet are not read, and the index counts as up to date without them: the transcript of the
        searching agent has always grown, by this question. Otherwise each search would read it again, or call each answer stale.

        Returns:
            Whether the index contains every change that was known at the call or, where the watcher sees all changes, that was made
            before it; see watch.event_barrier.

        Raises:
            StoreClosed: no pass is made any more.
        """
        with timed_part("catching up"):
            return await self._catch_up(time.monotonic() + self._wait_s)

    async def _catch_up(self, deadline: float) -> bool:
        late = False
        unwatched: Collection[Path] | None = None
        try:
            unwatched = await self._barrier.drained(max(self._wait_s, LOOK_S))
        except TimeoutError:
            late = True  # if the disk does not answer, the check below fails too
        if unwatched is not None and self._barrier.roots:
            replaced = await self._recent.replaced(
                self._barrier.roots, max(deadline - time.monotonic(), LOOK_S)
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
        late |= self._recent.links.changed is not None
        try:
            async with asyncio.timeout(max(0.0, deadline - time.monotonic())):
                return await self._passes_over_all_that_is_marked() and not late
        except TimeoutError:
            return False

    async def _changed(self, unwatched: Collection[Path] | None, timeout_s: float) -> Collection[Path] | None:
        """Return paths to check in addition to marked ones; None: they cannot be determined in time."""
        known = await self._recent.changed(timeout_s) if unwatched is None else unwatched
        absent = self._barrier.missing
        unseen: frozenset[Path] = frozenset()
        if unwatched is not None:
            absent, unseen = absent | self._barrier.absent, self._barrier.unseen
        if known is None or not (absent or unseen):
            return known
        beside = await self._recent.changed_in(absent, unseen, timeout_s)
        return None if beside is None else [*known, *beside]

    async def _passes_over_all_that_is_marked(self) -> bool:
        """Wait for running passes and for those over marked paths; return whether they cover all marks and succeeded."""
        running = self._pending.running_for_s()
        # A pass that has already run for longer is a long one: waiting for it would only slow down each search.
        numbers = [number for number, ran_s in running.items() if ran_s <= self._wait_s]
        is_behind = len(numbers) < len(running)
        by_name, everything = self._pending.awaits_paths, self._pending.awaits_everything
        if self._passes.awaits_retry:
            is_behind, by_name = True, False  # a failed pass is retried by its timer, not by each search
        # While a long pass runs, only marked paths can be handled in between.
        everything = everything and not is_behind
        hurried = self._pending.hurry() if by_name or everything else 0
        if by_name and not everything:
            numbers.append(hurried)
        for number in numbers:
            await self._pending.wait_for(number)
        if everything:
            numbers.append(await self._pending.wait_for_everything(hurried))
        return not is_behind and all(map(self._passes.has_succeeded, numbers))
