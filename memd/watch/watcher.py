"""Converts file system events into a stream of changes that concern memory."""

import asyncio
import os
import stat
import sys
from collections.abc import AsyncGenerator, Callable, Sequence
from contextlib import aclosing
from functools import partial
from pathlib import Path
from random import Random
from zlib import crc32

import msgspec
import structlog

from memd.runtime import safe_traceback
from memd.runtime.threads import ResourceShortage, Threads
from memd.runtime.timers import Backoff, Debouncer, until_next_tick_s
from memd.text.memory_paths import Root, SessionPaths, only_file
from memd.watch.event_barrier import EventBarrier, UnwatchedNames
from memd.watch.events import EventBatch, Feed, FeedBroken, FilteredBatch, filter_events
from memd.watch.inotify import InotifyFeed, sets_watches_by_directory
from memd.watch.mounts import Mount, mounted, parsed, read_mounts, unseen
from memd.watch.watch_plan import RootState, WatchPlan, identities_of, listable, plan_watches, root_state_of

_log = structlog.get_logger()

# Above this number of raw events, a full scan is cheaper than single checks, and events may have been lost unnoticed.
_MANY_EVENTS = 1000
# Directories can be deleted between being found and being watched.
_ATTEMPTS = 5


class PathsChanged(msgspec.Struct, frozen=True):
    """These files or directories may have changed, been created or deleted."""

    paths: frozenset[Path]


class RescanNeeded(msgspec.Struct, frozen=True):
    """Any file may have changed."""

    reason: str


class WatcherHealth(msgspec.Struct, frozen=True):
    """Whether changes cause events, and the places where they do not."""

    # Only a watch that should work and fails is a fault. A root on a network mount is the user's choice: changes are found by
    # polling within seconds, so status mentions it, while replies would only repeat it.
    ok: bool
    reason: str | None = None  # if ok: a remark for the user
    unseen: frozenset[Path] = frozenset()  # files and directories that the consumer has to poll


Event = PathsChanged | RescanNeeded | WatcherHealth


class WatcherPace(msgspec.Struct, frozen=True):
    """The intervals of the watcher, in seconds."""

    # Between checks whether the roots are still the same. Searches find a returned root at once, independent of this.
    check_s: float = 2.0
    # Likewise, if events report changes of roots; they do not report permissions of directories above.
    check_with_events_s: float = 60.0
    check_timeout_s: float = 0.5  # a check may block on a dead disk: events wait for it no longer than this
    rewatch_quiet_s: float = 0.2  # new watches are set once directories have not changed for this long,
    rewatch_cap_s: float = 2.0  # and at the latest after this long
    # A watch that breaks sooner than this would break again at once.
    trusted_s: float = 5.0
    retry_s: float = 2.0  # before the first attempt to watch again; later ones wait longer,
    retry_cap_s: float = 60.0


class WatchMethods(msgspec.Struct, frozen=True):
    """The system calls and feeds that the watcher uses; tests replace them."""

    recursive: bool  # whether the system itself watches a directory with everything below
    feed: Callable[[], Feed]
    mountinfo: Callable[[], str] = read_mounts


_USUAL = WatcherPace()


def methods_of(platform: str) -> WatchMethods:
    """Return the methods for a platform, a value of sys.platform."""
    if sets_watches_by_directory(platform):
        return WatchMethods(recursive=False, feed=InotifyFeed)
    from memd.watch.watchfiles_feed import LibraryFeed  # noqa: PLC0415 - it imports watchfiles

    return WatchMethods(recursive=platform == "darwin", feed=LibraryFeed)


async def watch(
    roots: Sequence[Root],
    *,
    methods: WatchMethods | None = None,
    pace: WatcherPace = _USUAL,
    rng: Random | None = None,
    barrier: EventBarrier | None = None,
) -> AsyncGenerator[Event, None]:
    """Yield changes of the notes below the roots as soon as they happen.

    The first event is a WatcherHealth. When the watches are set, a RescanNeeded follows, because files may have changed before; it
    comes again whenever events may have been lost. Roots may be missing; they are watched when they appear. The generator holds
    no event back for more than a moment: the consumer debounces them. If there are no events, because no watch can be set or
    other machines write to the disk, WatcherHealth says so.

    A consumer that asks for the next event has handled the one before: the barrier depends on that.

    Iterate inside contextlib.aclosing. Closing the generator, or cancelling the task that waits for it, removes the watches before
    it returns. It does not end by itself, whatever goes wrong.

    Args:
        roots: As sources.roots gives them.
        methods: Feeds and system calls; None: those of this platform.
        pace: How fast.
        rng: Source of the jitter between attempts to watch again.
        barrier: Receives the position of the watcher.
    """
    barrier = barrier or EventBarrier()
    methods = methods or methods_of(sys.platform)
    rng = rng or Random()
    # A pool of its own: if a disk does not answer, other work goes on.
    threads = Threads(1, "memd-watch")
    clock = asyncio.get_running_loop().time
    reason = "watching began"
    broken, backoff = "", Backoff(rng, first_s=pace.retry_s, cap_s=pace.retry_cap_s)
    names = UnwatchedNames(barrier)
    barrier.suspend()
    while True:
        armed_at: float | None = None
        try:
            async with aclosing(_watched(roots, reason, methods, pace, threads, barrier, names)) as events:
                async for event in events:
                    if isinstance(event, WatcherHealth):
                        armed_at = clock()
                    yield event
            reason, broken = "other directories are watched now", ""
            backoff.reset()
            continue
        except (FeedBroken, ResourceShortage, OSError) as failure:
            if str(failure) != broken:  # the same failure may last for days
                _log.warning("watch.broken", reason=str(failure))
            broken = str(failure)
        except Exception as failure:  # noqa: BLE001 - the top of a loop that must go on
            said, broken = broken, safe_traceback.cause(failure)
            if broken != said:
                _log.exception("watch.failed")
        reason = "watching began again"
        if armed_at is not None and clock() - armed_at >= pace.trusted_s:
            backoff.reset()
            continue
        barrier.end(note_places(roots))
        yield WatcherHealth(
            ok=False,
            reason=f"changes are looked for every few seconds, not seen as they happen: {broken}",
            unseen=frozenset(_place(root) for root in roots),
        )
        await asyncio.sleep(backoff.failed())


async def _watched(
    roots: Sequence[Root],
    reason: str,
    methods: WatchMethods,
    pace: WatcherPace,
    threads: Threads,
    barrier: EventBarrier,
    names: UnwatchedNames,
) -> AsyncGenerator[Event, None]:
    """Yield events until the directories to watch have changed.

    Args:
        roots: As for watch.
        reason: Of the first rescan.
        methods: As for watch.
        pace: As for watch.
        threads: For calls that read the disk.
        barrier: Receives the position of the watcher.
        names: Knows which files have a watch of their own.

    Raises:
        FeedBroken: watching is not possible, or no longer.
    """
    clock = asyncio.get_running_loop().time
    rewatch = Debouncer(quiet_s=pace.rewatch_quiet_s, cap_s=pace.rewatch_cap_s)
    feed, plan = await _armed(roots, methods, threads)
    check_with_events_s = (
        pace.check_with_events_s if _reports_replaced_roots(feed, plan, roots) else pace.check_s
    )
    check = _Check(roots, methods.mountinfo, plan.root_state, barrier, (pace.check_s, check_with_events_s))
    places = frozenset(_place(root) for root in roots)
    unwatched: frozenset[Path] = frozenset()
    try:
        _log.info("watch.armed", directories=plan.size, reason=reason)
        health = await threads.run(_health, roots, plan.root_state)
        yield health
        yield RescanNeeded(reason)
        if await threads.run(_plan_watches, roots, methods) != plan:
            # A directory created between planning and watching its parent caused no event.
            rewatch.mark(clock())
            unwatched = places
        # Before the barrier begins: files written while no watch was set caused no event.
        if again := await names.watch_again(feed):
            yield PathsChanged(again)
        _begin(barrier, feed, _notes(roots), plan)
        while (due_at := rewatch.due_at()) is None or clock() < due_at:
            barrier.advance(unwatched)
            batch = await feed.next(until=check.due_at if due_at is None else min(check.due_at, due_at))
            changed: frozenset[Path] = frozenset()
            if batch.uprooted:
                rewatch.mark(clock())
                unwatched = places
            if batch.incomplete or len(batch.events) > _MANY_EVENTS:
                rewatch.mark(clock())
                unwatched = places  # directories may be among the changes
                yield RescanNeeded("very many files changed at once")
            else:
                filtered = await _filtered(batch, roots, plan, threads)
                if filtered.restructured:
                    rewatch.mark(clock())
                    unwatched |= filtered.unwatched
                changed = filtered.paths
            changed |= await names.watch_new(feed, batch, changed)
            is_another = False
            if batch.remounted or _may_be_closed(batch, plan) or clock() >= check.due_at:
                is_another, returned = await check.look(pace.check_timeout_s, remounted=batch.remounted)
                changed |= frozenset() if is_another else returned
            if changed:
                yield PathsChanged(changed)
            if is_another:
                return  # returned places are reported after the health of the new watches
    finally:
        barrier.suspend()
        check.cancel()
        await feed.stop()


async def _filtered(
    batch: EventBatch, roots: Sequence[Root], plan: WatchPlan, threads: Threads
) -> FilteredBatch:
    if not batch.events:
        return FilteredBatch(frozenset(), frozenset())
    return await threads.run(filter_events, batch.events, roots, plan, _is_directory, _has_other_names)


def _begin(barrier: EventBarrier, feed: Feed, notes: Sequence[Root], plan: WatchPlan) -> None:
    position = feed.position()
    if position is None:
        barrier.end()
        return
    identities = plan.root_state.identities
    barrier.begin(
        position,
        roots={root.directory: identities[root.directory] for root in notes if root.directory in plan.flat},
        absent=frozenset(root.directory for root in notes) - plan.flat,
        unseen=frozenset(unseen(notes, plan.root_state.mounts)),
    )


def _may_be_closed(batch: EventBatch, plan: WatchPlan) -> bool:
    """Return whether an event is about a root directory itself, whose permissions may have changed."""
    return any(Path(place) in plan.root_state.identities for _, place in batch.events)


def _reports_replaced_roots(feed: Feed, plan: WatchPlan, roots: Sequence[Root]) -> bool:
    """Return whether events report the replacement of a root by another directory."""
    return feed.reports_roots and plan.is_complete and not unseen(roots, plan.root_state.mounts)


def _next_check(now: float, check_s: float, roots: Sequence[Root]) -> float:
    """Return the time of the next check: near a common tick, but apart from other threads', which would compete for the GIL."""
    apart_s = crc32(b"\0".join(os.fsencode(root.directory) for root in roots)) % 100 / 500
    return now + until_next_tick_s(now - apart_s, check_s)


async def _armed(roots: Sequence[Root], methods: WatchMethods, threads: Threads) -> tuple[Feed, WatchPlan]:
    """Return a started feed, with the plan of its watches.

    Raises:
        FeedBroken: no watches could be set.
    """
    attempts_left = _ATTEMPTS
    while True:
        attempts_left -= 1
        plan = await threads.run(_plan_watches, roots, methods)
        feed = methods.feed()
        try:
            await feed.start(plan)
        except (FileNotFoundError, PermissionError) as failure:
            await feed.stop()
            if not attempts_left:
                raise FeedBroken(str(failure)) from failure
        except BaseException:
            await feed.stop()
            raise
        else:
            return feed, plan


class _Check:
    """Compares the roots with their last state, on a thread: a dead disk may never answer."""

    def __init__(
        self,
        roots: Sequence[Root],
        mountinfo: Callable[[], str],
        root_state: RootState,
        barrier: EventBarrier,
        periods_s: tuple[float, float],
    ) -> None:
        """Start with the state of the roots as just seen.

        Args:
            roots: As for watch.
            mountinfo: As for watch.
            root_state: Of the watches that are set.
            barrier: Knows which directories of roots a scan has missed.
            periods_s: Between two looks, in seconds: while a directory is missed, and else.
        """
        self._roots = roots
        self._missing_s, self._usual_s = periods_s
        self._looked_at = asyncio.get_running_loop().time()
        self._mountinfo = mountinfo
        self._parsed: str | None = None  # mount tables can have thousands of lines, and rarely change
        self._root_state = root_state
        # A pool of its own: a check that blocks must not delay events.
        self._threads = Threads(1, "memd-check")
        self._barrier = barrier
        self._remounted = False  # a mount event that no check has covered yet
        self._asked: asyncio.Task[tuple[bool, frozenset[Path]]] | None = None

    @property
    def due_at(self) -> float:
        """The time of the next check on the event loop's clock."""
        period_s = self._missing_s if self._barrier.missing else self._usual_s
        return _next_check(self._looked_at, period_s, self._roots)

    async def look(self, timeout_s: float, *, remounted: bool) -> tuple[bool, frozenset[Path]]:
        """Compare the roots, unless the previous comparison still runs.

        Args:
            timeout_s: How long to wait for it.
            remounted: Something was mounted or unmounted.

        Returns:
            Whether the state of the roots has changed; and if not, the places that were gone or back between two checks, as a
            scan saw meanwhile.
        """
        self._remounted |= remounted
        if self._asked is None:
            self._asked = asyncio.create_task(self._threads.run(self._look))
        await asyncio.wait([self._asked], timeout=timeout_s)
        self._looked_at = asyncio.get_running_loop().time()
        if not self._asked.done():
            return False, frozenset()
        answer, self._asked = self._asked.result(), None
        return answer

    def _look(self) -> tuple[bool, frozenset[Path]]:
        remounted, self._remounted = self._remounted, False
        try:
            text = self._mountinfo()
        except OSError:
            self._remounted |= remounted
            return False, frozenset()  # mounts cannot be read now
        returned = frozenset(listable(self._barrier.missing))
        if remounted:
            returned |= self._barrier.changed_mounts(partial(mounted, mounts=parsed(text)))
        if text == self._parsed:
            return identities_of(self._roots) != self._root_state.identities, returned
        root_state = root_state_of(self._roots, text)
        if root_state.mounts == self._root_state.mounts:
            self._parsed = text
        return root_state != self._root_state, returned

    def cancel(self) -> None:
        """Stop waiting for a running comparison."""
        if self._asked is not None:
            self._asked.cancel()


def _plan_watches(roots: Sequence[Root], methods: WatchMethods) -> WatchPlan:
    return plan_watches(roots, recursive=methods.recursive, mountinfo=methods.mountinfo())


def _health(roots: Sequence[Root], root_state: RootState) -> WatcherHealth:
    distant = unseen(roots, root_state.mounts)
    notes = [
        _absence(root.directory)
        for root in roots
        if root_state.identities[root.directory] is None
        and not (isinstance(root, SessionPaths) and not root.expected)
    ]
    if distant:
        notes.append(
            f"{', '.join(_shown(place, mount) for place, mount in sorted(distant.items()))}: what others change there is "
            "looked for every few seconds, not seen as it happens"
        )
    return WatcherHealth(ok=True, reason="; ".join(dict.fromkeys(notes)) or None, unseen=frozenset(distant))


def _shown(place: Path, mount: Mount) -> str:
    return f"{place} is on {mount.source} ({mount.kind})" if mount.source else f"{place} ({mount.kind})"


def _absence(directory: Path) -> str:
    try:
        status = directory.lstat()
    except PermissionError:
        pass  # a directory above is closed
    except OSError:
        return f"{directory} does not exist; it is watched as soon as it does"
    else:
        if stat.S_ISLNK(status.st_mode) or os.path.realpath(directory) != str(directory):
            return f"{directory} is a symlink now, or lies behind one, and is not followed before memd is started again"
    return f"{directory} cannot be listed by this user; it is watched as soon as it can"


def note_places(roots: Sequence[Root]) -> frozenset[Path]:
    """Return the files and directories of notes, which a search scans itself while there are no events."""
    return frozenset(_place(root) for root in _notes(roots))


def _notes(roots: Sequence[Root]) -> list[Root]:
    """Return the roots of notes, which a search waits for; transcripts are indexed later."""
    return [root for root in roots if not isinstance(root, SessionPaths)]


def _place(root: Root) -> Path:
    return root.directory / (only_file(root) or "")


def _has_other_names(path: Path) -> bool:
    try:
        status = path.lstat()
    except OSError:
        return False
    return stat.S_ISREG(status.st_mode) and status.st_nlink > 1


def _is_directory(path: Path) -> bool:
    try:
        return stat.S_ISDIR(path.lstat().st_mode)
    except OSError:
        return False
