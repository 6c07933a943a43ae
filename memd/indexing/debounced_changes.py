"""Collects marks of changed paths until a burst of changes is over, for the next pass; marks of a failed pass are put back."""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from memd.runtime.timers import Clock, Debouncer
from memd.store.errors import StoreClosed


class TakenChanges(msgspec.Struct, frozen=True):
    """The marks that one pass has taken."""

    number: int  # the number of the pass, from 1
    paths: frozenset[Path]
    everything: bool  # scan all roots
    force: bool  # read every file, even with an unchanged stamp
    eager: bool  # read transcripts that have grown only a little


class _Running(msgspec.Struct, frozen=True):
    """A running pass."""

    began: float
    taken: TakenChanges


class DebouncedChanges:
    """Collects marks from the watcher, searches, timers and requests until a pass takes them.

    A path is pending from its raw event on. A pass is due when its paths have been quiet or have waited long enough, or when a
    caller needs it now.
    """

    def __init__(self, debouncer: Debouncer, clock: Clock) -> None:
        self._debouncer = debouncer
        self._clock = clock
        self._paths: set[Path] = set()
        self._everything = False
        self._force = False
        self._eager = False
        self._hurried = False
        self._called_for = False  # a pass over everything is due now
        self._begun = 0
        self._everything_ended = 0  # the number of the last finished pass over everything
        self._running: dict[int, _Running] = {}  # by number
        self._changed = asyncio.Event()
        self._done = asyncio.Condition()
        self._closed = False

    @property
    def count(self) -> int:
        """The number of marks."""
        return len(self._paths) + self._everything

    @property
    def unfinished(self) -> int:
        """The number of marks that wait for a pass, or that a running pass has taken."""
        taken = [running.taken for running in self._running.values()]
        paths = self._paths.union(*(one.paths for one in taken))
        return len(paths) + (self._everything or any(one.everything for one in taken))

    def running_for_s(self) -> dict[int, float]:
        """Return by number how long each running pass has run, in seconds."""
        now = self._clock()
        return {number: now - running.began for number, running in self._running.items()}

    def mark(self, paths: Iterable[Path]) -> None:
        """Mark paths as changed."""
        self._paths.update(paths)
        if self._paths:
            self._debouncer.mark(self._clock())
            self._changed.set()

    @property
    def awaits_paths(self) -> bool:
        """Whether paths are marked."""
        return bool(self._paths)

    @property
    def awaits_everything(self) -> bool:
        """Whether everything is marked, and no pass has taken that yet."""
        return self._everything

    def mark_all(self, *, force: bool = False, eager: bool = False) -> int:
        """Mark everything, for a pass that is due now; return a number for wait_for_everything."""
        self._everything = True
        self._force |= force
        self._eager |= eager
        self._called_for = True
        self._changed.set()
        return self._begun + 1

    def hurry(self) -> int:
        """Make the marked paths due now; return the number of the pass that will take them."""
        self._hurried = True
        self._called_for = self._everything
        self._changed.set()
        return self._begun + 1

    def put_back(self, taken: TakenChanges) -> None:
        """Put the marks of a failed pass back, for the next pass."""
        self._paths |= taken.paths
        self._everything |= taken.everything
        self._force |= taken.force
        self._eager |= taken.eager

    async def take(self) -> TakenChanges:
        """Wait until a pass is due, and take all marks. No await is between checking and taking."""
        while not (self._called_for or self._is_due):
            await self._moved()
        taken = self._begin(everything=self._everything, force=self._force, eager=self._eager)
        self._everything = self._force = self._eager = self._called_for = False
        return taken

    async def paths_due(self) -> None:
        """Wait until take_due_paths would return marks."""
        while not (self._is_due and self._paths):
            await self._moved()

    def take_due_paths(self) -> TakenChanges | None:
        """Take the paths that are due, for a short pass between two groups of files of a long one.

        Other marks wait for the end of the long pass: a saved note must not wait for a scan of thousands of files.
        """
        if not (self._is_due and self._paths):
            return None
        return self._begin(everything=False, force=False, eager=False)

    async def _moved(self) -> None:
        self._changed.clear()
        due_at = self._debouncer.due_at()
        wait_s = None if due_at is None else max(0.0, due_at - self._clock())
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(wait_s):
                await self._changed.wait()

    def _begin(self, *, everything: bool, force: bool, eager: bool) -> TakenChanges:
        self._begun += 1
        taken = TakenChanges(self._begun, frozenset(self._paths), everything, force, eager)
        self._running[self._begun] = _Running(self._clock(), taken)
        self._paths = set()
        self._hurried = False
        self._debouncer.clear()
        return taken

    @property
    def _is_due(self) -> bool:
        due_at = self._debouncer.due_at()
        return self._hurried or (due_at is not None and due_at <= self._clock())

    async def finish(self, taken: TakenChanges) -> None:
        """Record that a pass ended, successfully or not."""
        async with self._done:
            self._running.pop(taken.number, None)
            if taken.everything:
                self._everything_ended = taken.number
            self._done.notify_all()

    async def wait_for(self, number: int) -> None:
        """Wait until a pass has ended.

        Raises:
            StoreClosed: there will be no such pass.
        """
        async with self._done:
            await self._done.wait_for(lambda: self._closed or self._has_ended(number))
            if not self._has_ended(number):
                raise StoreClosed("the agent was stopped before its index was brought up to date")

    async def wait_for_everything(self, number: int) -> int:
        """Wait until a pass over everything has ended that began after mark_all returned `number`; return its number.

        Raises:
            StoreClosed: there will be no such pass.
        """
        async with self._done:
            await self._done.wait_for(lambda: self._closed or self._everything_ended >= number)
            if self._everything_ended < number:
                raise StoreClosed("the agent was stopped before its index was brought up to date")
            return self._everything_ended

    def _has_ended(self, number: int) -> bool:
        return number <= self._begun and number not in self._running

    async def close(self) -> None:
        """Let no pass begin any more, and raise StoreClosed in all waiters."""
        async with self._done:
            self._closed = True
            self._done.notify_all()
