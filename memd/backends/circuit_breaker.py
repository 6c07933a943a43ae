"""A circuit breaker around a backend that may fail at any time.

The backend is created on first use. After a failure it is closed, and not asked again until a cool-down has
passed.
"""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Generic, Protocol, TypeVar

import msgspec
import structlog

from memd.backends.backend import MAX_CHARS, Excerpt
from memd.domain_types import Kind
from memd.errors import TransientError
from memd.runtime.asyncio_helpers import is_cancelled
from memd.runtime.profiling import timed_part
from memd.runtime.timers import Clock
from memd.runtime.wait_budget import waiting
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable

log = structlog.get_logger()

T = TypeVar("T")

CLOSE_S = 5.0  # how long a new backend waits for the previous one to close
# When an abandoned search has been unanswered for so long, no other is sent until it ends. The caller of a
# trial search waits so long, too. Chosen for impatient callers, such as a hook that waits for 1 s in all.
SILENCE_S = 0.5


class InUse(msgspec.Struct, frozen=True):
    """The backend answers, or has not been tried yet."""


class CoolingDown(msgspec.Struct, frozen=True):
    """The backend has failed, and is not asked before `retry_at`."""

    since: float  # clock time of the first failure in a row
    reason: str  # why the last attempt failed
    retry_at: float  # clock time from which a search may try the backend again
    needs_person: bool = False  # see TransientError


BreakerState = InUse | CoolingDown


def failed(
    before: BreakerState, reason: str, now: float, cooldown_s: float, *, needs_person: bool = False
) -> CoolingDown:
    """Return the state after a failed attempt to create or ask the backend.

    Args:
        before: The state before the attempt.
        reason: Why it failed, in words for people.
        now: The clock time, in seconds.
        cooldown_s: Seconds until the backend may be tried again.
        needs_person: See TransientError.
    """
    since = before.since if isinstance(before, CoolingDown) else now
    return CoolingDown(since, reason, now + cooldown_s, needs_person)


def may_be_tried(state: BreakerState, now: float) -> bool:
    """Return whether a search may be sent to the backend at this clock time."""
    return isinstance(state, InUse) or now >= state.retry_at


class GuardedBackend(Protocol):
    """A backend that a circuit breaker creates and closes."""

    async def run(self) -> None:
        """Run the backend's background work until cancelled."""
        ...

    async def close(self) -> None:
        """Stop all work of the backend; requests that still wait for an answer fail with an error."""
        ...


class ReadableBackend(GuardedBackend, Protocol):
    """A backend that also reads files of its memory."""

    async def get(
        self, path: str, *, start_line: int, lines: int, kinds: frozenset[Kind], max_chars: int = MAX_CHARS
    ) -> Excerpt | None:
        """Return lines of a file, or None if the caller may see no such file.

        Raises:
            TransientError: the backend does not answer.
        """
        ...


B = TypeVar("B", bound=GuardedBackend)


class BreakerTimeouts(msgspec.Struct, frozen=True):
    """Timeouts and waits of a circuit breaker, in seconds."""

    ready_s: float  # searches wait for the backend until this time after its creation began
    cooldown_s: float  # time during which a backend that failed is not asked
    silence_s: float = SILENCE_S  # see SILENCE_S


class CircuitBreaker(Generic[B]):
    """Sends searches to a backend that may fail, and refuses them at once while it has failed.

    The first search creates the backend; searches that arrive meanwhile wait for the same creation. A backend
    that fails is closed and dropped. After the cool-down a single trial search goes to a new backend, and the
    others are refused at once, because what failed a minute ago is likely to fail again. If the trial
    succeeds, the backend is in use again.

    When a caller stops waiting, one abandoned search runs on to its end, and its outcome counts. Otherwise
    callers whose own timeout is shorter than the backend's would never detect that it hangs. An answer that
    comes after the deadline of its search does not bring the backend back: it is asked the same again, and
    is in use again if that answer comes in time. So a backend that is slow for a moment is back soon, and one
    that is slow each time delays one search only, until the next trial.
    """

    def __init__(
        self,
        agent: str,
        name: str,
        create: Callable[[], Awaitable[B]],
        timeouts: BreakerTimeouts,
        *,
        on_change: Callable[[bool], None] = lambda _: None,
        clock: Clock = time.monotonic,
    ) -> None:
        """Create the breaker; the backend itself is created by the first search, or by `ready`.

        Args:
            agent: The agent's id, for the log.
            name: The backend's name, for the log and for reasons.
            create: Creates a backend, or raises a TransientError.
            timeouts: See BreakerTimeouts.
            on_change: Called with True when a backend in use has failed, and with False when it is in use again.
            clock: Returns seconds; must be monotonic.
        """
        self.name = name
        self.state: BreakerState = InUse()
        self._agent = agent
        self._create = create
        self._timeouts = timeouts
        self._on_change = on_change
        self._clock = clock
        self._backend: B | None = None
        self._living: asyncio.Task[None] | None = None  # the backend's `run`
        self._creating: asyncio.Task[None] | None = None
        self._began = 0.0  # clock time at which the creation began
        self._is_late = False  # the creation has taken longer than ready_s: searches no longer wait for it
        self._is_tried = False  # a trial search runs, after a failure
        self._asking: set[asyncio.Task[Any]] = set()
        # An abandoned search that runs on, to show whether the backend answers at all.
        self._abandoned: asyncio.Task[Any] | None = None
        self._abandoned_since = 0.0  # clock time at which that search began
        self._in_time_s: float | None = None  # how long that search was waited for; None: it had no deadline
        self._ending: set[asyncio.Task[None]] = set()  # closes of backends that were dropped
        self._is_closed = False

    async def ask(
        self, put: Callable[[B], Awaitable[T]], overdue: "asyncio.Future[Any] | None" = None
    ) -> T | None:
        """Return the backend's answer, or None if it failed, is not asked now, or is too slow.

        Args:
            put: Sends the search to the backend.
            overdue: When this future ends first, the answer is too late, which counts as a failure; its result
                is not read. None: the search has no deadline but the backend's own.
        """
        if self._is_closed or self._is_silent:
            return None
        began = self._clock()
        is_trial = isinstance(self.state, CoolingDown)
        task = asyncio.create_task(self._answer(put))
        self._asking.add(task)
        task.add_done_callback(self._asked)
        try:
            # asyncio.wait does not cancel the task when the caller is cancelled.
            await asyncio.wait(
                [task] if overdue is None else [task, overdue],
                timeout=self._timeouts.silence_s if is_trial and overdue is None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            self._abandon(task, began)
            raise
        if task.done():
            return None if task.cancelled() else task.result()
        waited_s = None if overdue is None else self._clock() - began
        self._abandon(task, began, waited_s)
        if waited_s is not None:
            self._fail(f"{self.name} has not answered for {waited_s:.1f} s")
        return None

    def _abandon(self, task: "asyncio.Task[Any]", began: float, in_time_s: float | None = None) -> None:
        """Let the first abandoned search run on, to show whether the backend answers at all; cancel any other."""
        if self._abandoned is None and not task.done():
            self._abandoned, self._abandoned_since, self._in_time_s = task, began, in_time_s
        else:
            task.cancel()

    def _asked(self, task: "asyncio.Task[Any]") -> None:
        self._asking.discard(task)
        if task is self._abandoned:
            self._abandoned = None
        if not task.cancelled():
            task.exception()  # marks the exception as retrieved: a caller that still waits gets it

    async def _answer(self, put: Callable[[B], Awaitable[T]]) -> T | None:
        async with self._admission() as is_admitted:
            backend = await self._ready() if is_admitted else None
            if backend is None:
                return None
            try:
                answer = await put(backend)
                is_slow = await self._is_slow(lambda: put(backend))
            except (StoreClosed, StoreDamaged, StoreUnavailable):
                # memd's own index failed, not the backend: the built-in backend reports it better
                return None
            except TransientError as failure:
                self._lose(backend, str(failure), needs_person=failure.needs_person)
                return None
            except asyncio.CancelledError:
                # The backend was closed during the search: a failure, unless the caller itself was cancelled.
                if is_cancelled():
                    raise
                self._lose(backend, f"{self.name} was closed")
                return None
            except Exception:
                # A bug in memd's handling of the answer: searches continue without this backend; the log has
                # the traceback.
                log.exception("backend.failed", agent=self._agent, backend=self.name)
                self._lose(backend, f"memd failed at what {self.name} answered; its log has the details")
                return None
            if backend is self._backend and isinstance(self.state, CoolingDown) and not is_slow:
                self._enter(InUse())
            return answer

    async def _is_slow(self, ask: Callable[[], Awaitable[object]]) -> bool:
        """Return whether the running search was abandoned at its deadline and, asked once more, takes as long again."""
        if asyncio.current_task() is not self._abandoned or self._in_time_s is None:
            return False
        began = self._clock()
        await ask()
        return self._clock() - began > self._in_time_s

    @contextlib.asynccontextmanager
    async def _admission(self) -> AsyncIterator[bool]:
        """Yield whether this search may be sent: always while in use, else one trial at a time after the cool-down."""
        if isinstance(self.state, InUse):
            yield not self._is_closed
            return
        is_admitted = not self._is_tried and may_be_tried(self.state, self._clock())
        self._is_tried = self._is_tried or is_admitted
        try:
            yield is_admitted and not self._is_closed
        finally:
            if is_admitted:
                self._is_tried = False

    async def _ready(self) -> B | None:
        """Return the backend, created if need be; None if that failed or takes too long."""
        self._begin()
        if self._creating is not None:
            # asyncio.wait: a caller that stops waiting does not cancel the creation for the others.
            with timed_part("waiting for the engine"), waiting():
                _, running = await asyncio.wait([self._creating], timeout=self._left_s())
            self._is_late = bool(running)
        return self._backend

    def _left_s(self) -> float:
        """Return how long a search may still wait for the creation, so that one that hangs costs `ready_s` only once."""
        return max(0.0, self._began + self._timeouts.ready_s - self._clock())

    def _begin(self) -> None:
        """Start the creation of a backend, unless one exists or is being created."""
        if self._backend is None and self._creating is None and not self._is_closed:
            self._began = self._clock()
            self._creating = asyncio.create_task(self._make())

    async def _make(self) -> None:
        try:
            if self._ending:
                await asyncio.wait(self._ending, timeout=CLOSE_S)
            backend = await self._create()
        except TransientError as failure:
            self._fail(str(failure), needs_person=failure.needs_person)
        except Exception:
            log.exception("backend.failed", agent=self._agent, backend=self.name)
            self._fail(f"memd failed at making {self.name} ready; its log has the details")
        else:
            self._backend = backend
            self._living = asyncio.create_task(self._live(backend))
            log.info(
                "backend.ready",
                agent=self._agent,
                backend=self.name,
                took_s=round(self._clock() - self._began, 3),
            )
        finally:
            self._creating = None

    async def _live(self, backend: B) -> None:
        try:
            await backend.run()
        except Exception:
            log.exception("backend.failed", agent=self._agent, backend=self.name)
            self._lose(backend, f"memd failed at keeping {self.name} up to date; its log has the details")

    def _lose(self, backend: B, reason: str, *, needs_person: bool = False) -> None:
        """Record a failure of a backend, unless it was dropped already."""
        if backend is self._backend:
            self._drop()
            self._fail(reason, needs_person=needs_person)

    def _fail(self, reason: str, *, needs_person: bool = False) -> None:
        cooldown_s = self._timeouts.cooldown_s
        self._enter(failed(self.state, reason, self._clock(), cooldown_s, needs_person=needs_person))

    def _drop(self) -> None:
        """Forget the backend and close it in the background."""
        backend, living = self._backend, self._living
        self._backend = self._living = None
        if backend is not None:
            self._end(self._close(backend, living))

    def _end(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)

    async def _close(self, backend: B, living: asyncio.Task[None] | None) -> None:
        if living is not None:
            living.cancel()
            await asyncio.wait([living])
        try:
            await backend.close()
        except Exception:
            log.exception("backend.close_failed", agent=self._agent, backend=self.name)

    def _enter(self, after: BreakerState) -> None:
        before, self.state = self.state, after
        match after:
            case CoolingDown(reason=reason):
                log.warning(
                    "backend.fallen_back",
                    agent=self._agent,
                    backend=self.name,
                    reason=reason,
                    retry_in_s=self._timeouts.cooldown_s,
                )
            case InUse():
                log.info("backend.recovered", agent=self._agent, backend=self.name)
        if isinstance(after, CoolingDown) != isinstance(before, CoolingDown):
            self._on_change(isinstance(after, CoolingDown))

    async def ready(self) -> None:
        """Create the backend before the first search, and wait until that has succeeded or failed."""
        self._begin()
        if self._creating is not None:
            await asyncio.wait([self._creating])

    async def close(self) -> None:
        """Cancel all searches, and close the backend; a second call waits for the same work."""
        self._is_closed = True
        if self._creating is not None:
            self._creating.cancel()
            await asyncio.wait([self._creating])
        for task in self._asking:
            task.cancel()
        if self._asking:
            await asyncio.wait(self._asking)
        self._drop()
        if self._ending:
            await asyncio.wait(self._ending)

    # --- status

    @property
    def backend(self) -> B | None:
        """The backend if it exists and is in use, else None."""
        return self._backend if isinstance(self.state, InUse) else None

    @property
    def reason(self) -> str | None:
        """Why the backend is not asked now; None if it is."""
        if isinstance(self.state, CoolingDown):
            return self.state.reason
        if self._backend is None and self._is_late:
            return f"{self.name} is not ready yet"
        if self._is_silent:
            waited_s = self._clock() - self._abandoned_since
            return f"{self.name} has not answered for {waited_s:.1f} s"
        return None

    @property
    def needs_person(self) -> bool:
        """Whether the backend fails until somebody changes something, as far as is known."""
        return isinstance(self.state, CoolingDown) and self.state.needs_person

    @property
    def _is_silent(self) -> bool:
        """Whether an abandoned search has waited for its answer for `silence_s` or longer."""
        return (
            self._abandoned is not None and self._clock() - self._abandoned_since >= self._timeouts.silence_s
        )
