"""A backend that may be lost at any time: made when it is wanted, left alone for a while after it has failed (a circuit breaker)."""

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
from memd.runtime.profiling import spent
from memd.runtime.synchronization import is_cancelled
from memd.runtime.timing import Clock
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable

log = structlog.get_logger()

T = TypeVar("T")

CLOSE_S = 5.0  # for which the end of one backend keeps the next from its beginning
# When a backend has kept an impatient caller, such as a hook that waits for a second in all, for so long, the others are not
# kept waiting for it. Nor is the one whose search tries a backend again.
SILENCE_S = 0.5


class InUse(msgspec.Struct, frozen=True):
    """The backend answers, as far as is known."""


class LeftAlone(msgspec.Struct, frozen=True):
    """The backend has failed, and is not asked for a while."""

    since: float  # of the clock: the first failure in a row
    reason: str  # of the last one
    retry_at: float  # of the clock: the first search from then on tries it


BreakerState = InUse | LeftAlone


def failed(before: BreakerState, reason: str, now: float, cooldown_s: float) -> LeftAlone:
    """A backend did not answer, or could not be had.

    Args:
        before: The state so far.
        reason: Why, for people.
        now: Of the clock, in seconds.
        cooldown_s: For how long it is left alone.
    """
    since = before.since if isinstance(before, LeftAlone) else now
    return LeftAlone(since, reason, now + cooldown_s)


def may_be_tried(state: BreakerState, now: float) -> bool:
    """Whether a search may be put to the backend."""
    return isinstance(state, InUse) or now >= state.retry_at


class LosableBackend(Protocol):
    """What a breaker makes and closes."""

    async def run(self) -> None:
        """What it does beside searches, for ever."""
        ...

    async def close(self) -> None:
        """End all that it has begun; what still waits for an answer of it gets an error."""
        ...


class ReadableBackend(LosableBackend, Protocol):
    """One that reads what it finds."""

    async def get(
        self, path: str, *, start_line: int, lines: int, kinds: frozenset[Kind], max_chars: int = MAX_CHARS
    ) -> Excerpt | None:
        """Lines of a file that it finds; None: there is none that may be seen.

        Raises:
            TransientError: it does not answer.
        """
        ...


B = TypeVar("B", bound=LosableBackend)


class BreakerTimeouts(msgspec.Struct, frozen=True):
    """How long things take, in seconds."""

    ready_s: float  # from the beginning of its creation, for which searches wait for a backend
    cooldown_s: float  # for which one that failed is left alone
    silence_s: float = SILENCE_S  # see there


class CircuitBreaker(Generic[B]):
    """Asks a backend that may fail, and says at once that it cannot be asked while it has.

    It is made when it is first wanted, once for all who want it. One that fails is closed and dropped. After the cool-down one
    question, and one alone, is put to a new one; the others meanwhile hear at once that there is none: what failed a minute
    ago is likely to fail again, so nobody shall wait for that. It is back when that question was answered.

    A question that was put to it is its to answer, whoever waits: when a caller gives up, it goes on to its end, and
    what comes of it decides. Else a backend that hangs would never be noticed by callers with less patience than it is given.
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
        """Nothing is made yet.

        Args:
            agent: Its id, for the log.
            name: Of the backend.
            create: Makes one; raises a TransientError where that cannot be done now.
            timeouts: Of the backend.
            on_change: Called with whether it is left alone, when that changes.
            clock: In seconds.
        """
        self.name = name
        self.state: BreakerState = InUse()
        self._agent = agent
        self._create = create
        self._timeouts = timeouts
        self._on_change = on_change
        self._clock = clock
        self._backend: B | None = None
        self._living: asyncio.Task[None] | None = None  # what the backend does beside searches
        self._creating: asyncio.Task[None] | None = None
        self._began = 0.0  # of the clock: the creation
        self._is_late = False  # searches do not wait for its end any more
        self._is_tried = False  # a search is put to a backend, after one has failed
        self._asking: set[asyncio.Task[Any]] = set()
        # Goes on although nobody waits for it.
        self._witness: asyncio.Task[Any] | None = None
        self._witness_since = 0.0  # of the clock
        self._ending: set[asyncio.Task[None]] = set()  # backends that were dropped
        self._is_closed = False

    async def ask(
        self, put: Callable[[B], Awaitable[T]], overdue: "asyncio.Future[Any] | None" = None
    ) -> T | None:
        """What the backend answers to what is put to it; None: it does not, or not in time.

        Args:
            put: Asks it.
            overdue: Ends when the answer comes too late, which is a failure like others; None: nothing but the backend
                itself decides that.
        """
        if self._is_closed or self._is_silent:
            return None
        began = self._clock()
        is_trial = isinstance(self.state, LeftAlone)
        task = asyncio.create_task(self._answer(put))
        self._asking.add(task)
        task.add_done_callback(self._asked)
        try:
            # Not awaited itself: it belongs to the backend, and not to who asks.
            await asyncio.wait(
                [task] if overdue is None else [task, overdue],
                timeout=self._timeouts.silence_s if is_trial and overdue is None else None,
                return_when=asyncio.FIRST_COMPLETED,
            )
        except asyncio.CancelledError:
            self._leave(task, began)
            raise
        if task.done():
            return None if task.cancelled() else task.result()
        if overdue is None:
            self._leave(task, began)
        else:
            task.cancel()
            self._fail(f"{self.name} has not answered for {self._clock() - began:.1f} s")
        return None

    def _leave(self, task: "asyncio.Task[Any]", began: float) -> None:
        """Nobody waits for an answer any more: the first such question shows whether the backend answers at all."""
        if self._witness is None and not task.done():
            self._witness, self._witness_since = task, began
        else:
            task.cancel()

    def _asked(self, task: "asyncio.Task[Any]") -> None:
        self._asking.discard(task)
        if task is self._witness:
            self._witness = None
        if not task.cancelled():
            task.exception()  # whoever still waits is given it; else it is nobody's

    async def _answer(self, put: Callable[[B], Awaitable[T]]) -> T | None:
        async with self._turn() as is_mine:
            backend = await self._ready() if is_mine else None
            if backend is None:
                return None
            try:
                answer = await put(backend)
            except (StoreClosed, StoreDamaged, StoreUnavailable):
                return None  # of memd's own index, on which the built-in one says more; the backend is not to blame
            except TransientError as failure:
                self._lose(backend, str(failure))
                return None
            except asyncio.CancelledError:
                # Its backend was closed under it; unless it is the caller who went, which is no failure of anybody's.
                if is_cancelled():
                    raise
                self._lose(backend, f"{self.name} was closed")
                return None
            except Exception:
                # A bug of ours in what is made of its answers: searches go on without it, and the log tells.
                log.exception("backend.failed", agent=self._agent, backend=self.name)
                self._lose(backend, f"memd failed at what {self.name} answered; its log has the details")
                return None
            if backend is self._backend and isinstance(self.state, LeftAlone):
                self._enter(InUse())
            return answer

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[bool]:
        """Whether this search is put to the backend: all are, but after a failure one after the other."""
        if isinstance(self.state, InUse):
            yield not self._is_closed
            return
        is_mine = not self._is_tried and may_be_tried(self.state, self._clock())
        self._is_tried = self._is_tried or is_mine
        try:
            yield is_mine and not self._is_closed
        finally:
            if is_mine:
                self._is_tried = False

    async def _ready(self) -> B | None:
        """The backend, which is made if there is none; None: that failed, or takes too long."""
        self._begin()
        if self._creating is not None:
            # Not awaited itself: who stops waiting does not take it from the others.
            with spent("waiting for the engine"):
                _, running = await asyncio.wait([self._creating], timeout=self._left_s())
            self._is_late = bool(running)
        return self._backend

    def _left_s(self) -> float:
        """How long a search waits for the backend that is being made: one that hangs costs its time once, not every time."""
        return max(0.0, self._began + self._timeouts.ready_s - self._clock())

    def _begin(self) -> None:
        """Make a backend, unless there is one or it is being made."""
        if self._backend is None and self._creating is None and not self._is_closed:
            self._began = self._clock()
            self._creating = asyncio.create_task(self._make())

    async def _make(self) -> None:
        try:
            if self._ending:
                await asyncio.wait(self._ending, timeout=CLOSE_S)
            backend = await self._create()
        except TransientError as failure:
            self._fail(str(failure))
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

    def _lose(self, backend: B, reason: str) -> None:
        """A backend has failed. What was dropped already is no news."""
        if backend is self._backend:
            self._drop()
            self._fail(reason)

    def _fail(self, reason: str) -> None:
        self._enter(failed(self.state, reason, self._clock(), self._timeouts.cooldown_s))

    def _drop(self) -> None:
        """Close the backend, while searches go on."""
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
            case LeftAlone(reason=reason):
                log.warning(
                    "backend.fallen_back",
                    agent=self._agent,
                    backend=self.name,
                    reason=reason,
                    retry_in_s=self._timeouts.cooldown_s,
                )
            case InUse():
                log.info("backend.recovered", agent=self._agent, backend=self.name)
        if isinstance(after, LeftAlone) != isinstance(before, LeftAlone):
            self._on_change(isinstance(after, LeftAlone))

    async def ready(self) -> None:
        """Have the backend made before anybody asks."""
        self._begin()
        if self._creating is not None:
            await asyncio.wait([self._creating])

    async def close(self) -> None:
        """End what was begun; a second call waits for the same end."""
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

    # --- how it is

    @property
    def backend(self) -> B | None:
        """The backend, while it is the one that answers, or is about to."""
        return self._backend if isinstance(self.state, InUse) else None

    @property
    def trouble(self) -> str | None:
        """Why the backend is not asked just now; None: it is."""
        if isinstance(self.state, LeftAlone):
            return self.state.reason
        if self._backend is None and self._is_late:
            return f"{self.name} is not ready yet"
        if self._is_silent:
            waited_s = self._clock() - self._witness_since
            return f"{self.name} has not answered for {waited_s:.1f} s"
        return None

    @property
    def _is_silent(self) -> bool:
        """Whether the backend keeps a question for longer than others are to wait for it."""
        return self._witness is not None and self._clock() - self._witness_since >= self._timeouts.silence_s
