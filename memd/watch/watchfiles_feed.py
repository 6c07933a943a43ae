"""Raw events from watchfiles, for systems that can watch directories recursively.

watchfiles does not report an overflow of the system's queue: a very large batch of events may follow one.
"""

import asyncio
from collections.abc import Iterable, Sequence
from pathlib import Path

from anyio.to_thread import current_default_thread_limiter
from watchfiles import awatch

from memd.watch.events import Change, EventBatch, FeedBroken, RawEvent
from memd.watch.watch_plan import WatchPlan

DEBOUNCE_MS = 50  # events of one moment come together
STEP_MS = 50  # it looks for events this often; at 50, an idle watch costs 0.1 % of a core


class LibraryFeed:
    """Runs two watches of watchfiles: one for single directories, one for recursive ones."""

    def __init__(self) -> None:
        self._stop = asyncio.Event()
        self._batches: asyncio.Queue[set[RawEvent]] = asyncio.Queue()
        self._pumps: list[asyncio.Task[None]] = []
        self._failure: Exception | None = None

    async def start(self, plan: WatchPlan) -> None:
        """Set the watches; see events.Feed."""
        for directories, recursive in ((plan.flat, False), (plan.deep, True)):
            if directories:
                pump = self._pump(sorted(directories), recursive=recursive)
                self._pumps.append(asyncio.create_task(pump))
        # The library sets its watches before it first waits: once each pump had its turn, they are set.
        await asyncio.sleep(0)
        if isinstance(self._failure, FileNotFoundError | PermissionError):
            raise self._failure
        self._raise_failure()

    async def next(self, until: float) -> EventBatch:
        """Return the next events; see events.Feed."""
        events: set[RawEvent] = set()
        try:
            async with asyncio.timeout_at(until):
                events |= await self._batches.get()
        except TimeoutError:
            return EventBatch()
        while not self._batches.empty():
            events |= self._batches.get_nowait()
        self._raise_failure()
        return EventBatch(frozenset(events))

    async def watch_files(self, files: Iterable[Path]) -> frozenset[Path]:  # noqa: ARG002 - see events.Feed
        """Do nothing, as these systems report the name that a file is written under."""
        return frozenset()

    @property
    def reports_roots(self) -> bool:
        """False: directories above the roots are not watched."""
        return False

    def position(self) -> None:
        """Return None: the number of queued events is unknown."""

    async def stop(self) -> None:
        """Stop the threads that watch."""
        self._stop.set()
        await asyncio.gather(*self._pumps)

    def _raise_failure(self) -> None:
        if self._failure is not None:
            raise FeedBroken(str(self._failure)) from self._failure

    async def _pump(self, directories: Sequence[Path], *, recursive: bool) -> None:
        # A watch keeps a thread for as long as it lives. It brings its own place among those the library may have,
        # or the watches of many agents would wait for one another for ever.
        threads = current_default_thread_limiter()
        threads.total_tokens += 1
        try:
            async for batch in awatch(
                *directories,
                watch_filter=None,
                debounce=DEBOUNCE_MS,
                step=STEP_MS,
                stop_event=self._stop,
                rust_timeout=0,
                recursive=recursive,
                # True would hide every error, that no watches are left among them.
                ignore_permission_denied=False,
            ):
                self._batches.put_nowait({(Change(change), path) for change, path in batch})
            if not self._stop.is_set():
                self._fail(RuntimeError("the watch ended"))
        # Errors of a running watch come in a group. The library's own error is a RuntimeError.
        except* (OSError, RuntimeError) as failures:
            self._fail(_first(failures))
        finally:
            threads.total_tokens -= 1

    def _fail(self, failure: Exception) -> None:
        self._failure = self._failure or failure
        self._batches.put_nowait(set())  # wakes the waiter in `next`


def _first(failures: ExceptionGroup[OSError | RuntimeError]) -> Exception:
    failure: Exception = failures
    while isinstance(failure, ExceptionGroup):
        failure = failure.exceptions[0]
    return failure
