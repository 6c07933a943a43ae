"""What has changed and waits for a pass: marks that are taken before the work, and put back when it fails."""

import asyncio
import contextlib
from collections.abc import Iterable
from pathlib import Path

import msgspec

from memd.runtime.timing import Clock, Debouncer
from memd.store.errors import StoreClosed


class TakenChanges(msgspec.Struct, frozen=True):
    """The marks of one pass."""

    number: int  # of the pass, from 1
    paths: frozenset[Path]
    everything: bool  # scan all roots
    force: bool  # read every file, whatever its stamp says
    eager: bool  # transcripts too, however little they have grown


class PendingChanges:
    """Marks from the watcher, searches, timers and requests, gathered until a pass takes them.

    A path counts as pending from its raw event on. A pass is due when the paths have been quiet, or have waited long
    enough, or somebody needs it now.
    """

    def __init__(self, debouncer: Debouncer, clock: Clock) -> None:
        self._debouncer = debouncer
        self._clock = clock
        self._paths: set[Path] = set()
        self._everything = False
        self._force = False
        self._eager = False
        self._hurried = False
        self._called_for = False  # everything, now
        self._begun = 0
        self._everything_ended = 0  # the number of the last pass over everything that has ended
        self._running: dict[int, float] = {}  # number -> when it began
        self._changed = asyncio.Event()
        self._done = asyncio.Condition()
        self._closed = False

    @property
    def count(self) -> int:
        """How many marks wait."""
        return len(self._paths) + self._everything

    def running_for_s(self) -> dict[int, float]:
        """How long each pass that is under way has run, by its number."""
        now = self._clock()
        return {number: now - began for number, began in self._running.items()}

    def mark(self, paths: Iterable[Path]) -> None:
        """These paths changed."""
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
        """Whether everything must be looked at, and no pass has begun to."""
        return self._everything

    def mark_all(self, *, force: bool = False, eager: bool = False) -> int:
        """Everything must be looked at, now; a number for wait_for_everything."""
        self._everything = True
        self._force |= force
        self._eager |= eager
        self._called_for = True
        self._changed.set()
        return self._begun + 1

    def hurry(self) -> int:
        """What is marked is needed now; the number of the pass that takes it."""
        self._hurried = True
        self._called_for = self._everything
        self._changed.set()
        return self._begun + 1

    def put_back(self, taken: TakenChanges) -> None:
        """A pass failed: its marks wait again, for the next one that is due."""
        self._paths |= taken.paths
        self._everything |= taken.everything
        self._force |= taken.force
        self._eager |= taken.eager

    async def take(self) -> TakenChanges:
        """Wait until a pass is due, and take all marks for it. There is no await between looking and taking."""
        while not (self._called_for or self._is_due):
            await self._moved()
        taken = self._begin(everything=self._everything, force=self._force, eager=self._eager)
        self._everything = self._force = self._eager = self._called_for = False
        return taken

    async def paths_due(self) -> None:
        """Wait until there is something for take_due_paths."""
        while not (self._is_due and self._paths):
            await self._moved()

    def take_due_paths(self) -> TakenChanges | None:
        """The paths whose pass is due now: one over them may go between two groups of files of a long one.

        What else is wanted waits for the end of that: whoever saves a note must not wait for thousands of files because
        somebody has asked for all of them.
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
        self._running[self._begun] = self._clock()
        taken = TakenChanges(self._begun, frozenset(self._paths), everything, force, eager)
        self._paths = set()
        self._hurried = False
        self._debouncer.clear()
        return taken

    @property
    def _is_due(self) -> bool:
        due_at = self._debouncer.due_at()
        return self._hurried or (due_at is not None and due_at <= self._clock())

    async def finish(self, taken: TakenChanges) -> None:
        """A pass ended, well or not."""
        async with self._done:
            self._running.pop(taken.number, None)
            if taken.everything:
                self._everything_ended = taken.number
            self._done.notify_all()

    async def wait_for(self, number: int) -> None:
        """Wait until the pass of that number has ended.

        Raises:
            StoreClosed: there will be no such pass.
        """
        async with self._done:
            await self._done.wait_for(lambda: self._closed or self._has_ended(number))
            if not self._has_ended(number):
                raise StoreClosed("the agent was stopped before its index was brought up to date")

    async def wait_for_everything(self, number: int) -> int:
        """Wait until a pass over everything has ended that began after mark_all gave this number; which one.

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
        """No pass begins any more: whoever waits for one is told."""
        async with self._done:
            self._closed = True
            self._done.notify_all()
