"""The file system as a stream of changes that concern memory."""

import asyncio
import stat
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing
from pathlib import Path
from typing import Protocol

import msgspec
import structlog
from anyio.to_thread import current_default_thread_limiter
from watchfiles import Change, awatch

from memd.paths import Root
from memd.watch.debounce import Debouncer
from memd.watch.filters import sight
from memd.watch.survey import Survey, identities_of, survey

_log = structlog.get_logger()

# Where one batch holds more than this, looking at everything costs less than looking at each; and the kernel's
# queue may have overflowed, of which the library tells nothing.
_MANY_PATHS = 1000
# Directories can go away between being found and being watched.
_ATTEMPTS = 5


RawEvent = tuple[Change, str]


class Changed(msgspec.Struct, frozen=True):
    """These files or directories may have changed, come or gone."""

    paths: frozenset[Path]


class Rescan(msgspec.Struct, frozen=True):
    """Anything may have changed."""

    reason: str


class Health(msgspec.Struct, frozen=True):
    """Whether changes are seen as they happen; else a Rescan comes every few seconds."""

    ok: bool
    reason: str | None = None


Event = Changed | Rescan | Health


class Pace(msgspec.Struct, frozen=True):
    """How fast the watcher is."""

    debounce_ms: int = 50  # of the library: events of one moment come together
    step_ms: int = 50  # it looks for events this often; at 50, an idle watch costs 0.1 % of a core
    check_s: float = 2.0  # between looks whether the roots are still the same
    settle_s: float = 0.2  # directories that come and go are watched anew when this long none did,
    settle_cap_s: float = 2.0  # and at the latest after this long
    # A file whose name is not UTF-8 breaks the watch that sees it. Watching again mends that; a watch that breaks
    # sooner than this would only break again.
    trusted_s: float = 5.0
    poll_s: float = 5.0  # between two Rescans where watching is not possible
    retry_s: float = 60.0  # between attempts to watch again


class Arm(Protocol):
    """What watchfiles.awatch is to the watcher."""

    def __call__(
        self,
        *paths: Path,
        watch_filter: None,
        debounce: int,
        step: int,
        stop_event: asyncio.Event,
        rust_timeout: int,
        recursive: bool,
        ignore_permission_denied: bool,
    ) -> AsyncIterator[set[RawEvent]]:
        """Raise an error of the file system, or yield sets of changes until the event is set."""
        ...


_USUAL = Pace()


async def watch(
    roots: Sequence[Root],
    *,
    recursive: bool = sys.platform == "darwin",
    pace: Pace = _USUAL,
    arm: Arm = awatch,
) -> AsyncGenerator[Event, None]:
    """Tell what happens to the notes below the roots, as soon as it happens.

    Begins with a Health and, once changes are seen, a Rescan: what was found before may have changed meanwhile. A
    Rescan comes again whenever events may have been lost. Roots may be missing; they are watched when they come.
    Nothing is held back for more than a moment: whoever works on the changes debounces them. What happens on the
    far side of a network file system is not seen.

    Iterate inside contextlib.aclosing. Closing the generator, or cancelling the task that waits for it, ends the
    threads that watch before it returns.

    Args:
        roots: As sources.roots gives them.
        recursive: Whether the system itself watches a directory with everything below.
        pace: How fast.
        arm: Sets the watches.
    """
    clock = asyncio.get_running_loop().time
    reason = "watching began"
    while True:
        armed_at: float | None = None
        try:
            async with aclosing(_watched(roots, recursive, reason, pace, arm)) as events:
                async for event in events:
                    if isinstance(event, Health):
                        armed_at = clock()
                    yield event
            reason = "other directories are watched now"
            continue
        except _Broken as failure:
            broken = str(failure)
        reason = "watching began again"
        _log.warning("watch.broken", reason=broken)
        if armed_at is not None and clock() - armed_at >= pace.trusted_s:
            continue
        yield Health(ok=False, reason=f"changes are looked for every {pace.poll_s:g} s: {broken}")
        retry_at = clock() + pace.retry_s
        while clock() < retry_at:
            yield Rescan("changes are not seen as they happen")
            await asyncio.sleep(min(pace.poll_s, max(0.0, retry_at - clock())))


async def _watched(
    roots: Sequence[Root], recursive: bool, reason: str, pace: Pace, arm: Arm
) -> AsyncGenerator[Event, None]:
    """The events until other directories must be watched.

    Raises:
        _Broken: watching is not possible, or no longer.
    """
    clock = asyncio.get_running_loop().time
    settle = Debouncer(quiet_s=pace.settle_s, cap_s=pace.settle_cap_s)
    feed = _Feed(roots, recursive, pace, arm)
    try:
        ground = await feed.start()
        _log.info("watch.armed", directories=ground.size, reason=reason)
        yield Health(ok=True)
        yield Rescan(reason)
        if await asyncio.to_thread(survey, roots, recursive=recursive) != ground:
            # A directory that came between the survey and the watch of the one above it was announced to nobody.
            settle.mark(clock())
        check_at = clock() + pace.check_s
        while (due_at := settle.due_at()) is None or clock() < due_at:
            batch = await feed.next(until=check_at if due_at is None else min(check_at, due_at))
            if len(batch) > _MANY_PATHS:
                settle.mark(clock())
                yield Rescan("many files changed at once")
            elif batch:
                sighting = sight(batch, roots, ground, _is_directory)
                if sighting.restructured:
                    settle.mark(clock())
                if sighting.paths:
                    yield Changed(sighting.paths)
            if clock() >= check_at:
                if await asyncio.to_thread(identities_of, roots) != ground.identities:
                    return
                check_at = clock() + pace.check_s
    finally:
        await feed.stop()


class _Broken(Exception):
    """Watching is not possible, or no longer."""

    def __init__(self, reason: str, *, may_be_over: bool = False) -> None:
        super().__init__(reason)
        self.may_be_over = may_be_over  # a directory went away meanwhile: find the others, and try again


class _Feed:
    """The raw events of the watches that are set, until one breaks."""

    def __init__(self, roots: Sequence[Root], recursive: bool, pace: Pace, arm: Arm) -> None:
        self._roots = roots
        self._recursive = recursive
        self._pace = pace
        self._arm = arm
        self._stop = asyncio.Event()
        self._batches: asyncio.Queue[set[RawEvent]] = asyncio.Queue()
        self._pumps: list[asyncio.Task[None]] = []
        self._broken: _Broken | None = None

    async def start(self) -> Survey:
        """Return what is watched, when changes are seen.

        Raises:
            _Broken: they will not be.
        """
        for attempts_left in reversed(range(_ATTEMPTS)):
            ground = await asyncio.to_thread(survey, self._roots, recursive=self._recursive)
            for directories, recursive in ((ground.flat, False), (ground.deep, True)):
                if directories:
                    pump = self._pump(sorted(directories), recursive=recursive)
                    self._pumps.append(asyncio.create_task(pump))
            # The library sets its watches before it first waits: once each pump had its turn, they are set.
            await asyncio.sleep(0)
            if self._broken is None:
                break
            if not (self._broken.may_be_over and attempts_left):
                raise self._broken
            await self.stop()
        return ground

    async def next(self, until: float) -> set[RawEvent]:
        """All events that wait, or the next ones; empty where none came until this time of the event loop.

        Raises:
            _Broken: no more will come.
        """
        batch: set[RawEvent] = set()
        try:
            async with asyncio.timeout_at(until):
                batch |= await self._batches.get()
        except TimeoutError:
            return batch
        while not self._batches.empty():
            batch |= self._batches.get_nowait()
        if self._broken is not None:
            raise self._broken
        return batch

    async def stop(self) -> None:
        """End the threads that watch."""
        self._stop.set()
        await asyncio.gather(*self._pumps)
        self._pumps.clear()
        self._stop, self._broken = asyncio.Event(), None

    async def _pump(self, directories: list[Path], *, recursive: bool) -> None:
        # A watch keeps a thread for as long as it lives. It brings its own place among those the library may have,
        # or the watches of many agents would wait for one another for ever.
        threads = current_default_thread_limiter()
        threads.total_tokens += 1
        try:
            async for batch in self._arm(
                *directories,
                watch_filter=None,
                debounce=self._pace.debounce_ms,
                step=self._pace.step_ms,
                stop_event=self._stop,
                rust_timeout=0,
                recursive=recursive,
                # True would hide every error, that no watches are left among them.
                ignore_permission_denied=False,
            ):
                self._batches.put_nowait(batch)
            if not self._stop.is_set():
                self._break(_Broken("the watch ended"))
        # Errors of a running watch come in a group. The library's own error is a RuntimeError.
        except* (OSError, RuntimeError) as failures:
            self._break(_broken_by(failures))
        finally:
            threads.total_tokens -= 1

    def _break(self, broken: _Broken) -> None:
        self._broken = self._broken or broken
        self._batches.put_nowait(set())  # wakes whoever waits for the next batch


def _broken_by(failures: BaseExceptionGroup[OSError | RuntimeError]) -> _Broken:
    failure: BaseException = failures
    while isinstance(failure, BaseExceptionGroup):
        failure = failure.exceptions[0]
    return _Broken(str(failure), may_be_over=isinstance(failure, FileNotFoundError | PermissionError))


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
