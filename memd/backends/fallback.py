"""Answers with the backend that was chosen, and with the built-in one while that fails."""

import asyncio
import contextlib
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine
from typing import Any, Protocol, TypeVar

import msgspec
import structlog

from memd.backends.backend import (
    MAX_CHARS,
    Backend,
    BackendAnswer,
    BackendQuestion,
    BackendStandIn,
    BackendStatus,
    Excerpt,
    VectorSearchStatus,
)
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import FallbackUse, Kind, Trace
from memd.errors import TransientError
from memd.runtime.asyncio_utils import is_cancelled
from memd.runtime.profiling import spent
from memd.runtime.timing import Clock
from memd.store.errors import StoreClosed, StoreDamaged, StoreUnavailable

log = structlog.get_logger()

T = TypeVar("T")

CLOSE_S = 5.0  # for which the end of one backend keeps the next from its beginning
# When a backend has kept an impatient caller, such as a hook that waits for a second in all, for so long, the others are not
# kept waiting for it. Nor is the one whose search tries a backend again.
SILENCE_S = 0.5


class PrimaryInUse(msgspec.Struct, frozen=True):
    """The backend that was chosen answers, as far as is known."""


class BuiltinInUse(msgspec.Struct, frozen=True):
    """The built-in backend answers, since the one that was chosen has failed."""

    since: float  # of the clock: the first failure in a row
    reason: str  # of the last one
    retry_at: float  # of the clock: the first search from then on tries the chosen one


FallbackState = PrimaryInUse | BuiltinInUse


def failed(before: FallbackState, reason: str, now: float, cooldown_s: float) -> BuiltinInUse:
    """The backend that was chosen did not answer, or could not be had.

    Args:
        before: The state so far.
        reason: Why, for people.
        now: Of the clock, in seconds.
        cooldown_s: For how long it is left alone.
    """
    since = before.since if isinstance(before, BuiltinInUse) else now
    return BuiltinInUse(since, reason, now + cooldown_s)


def may_be_tried(state: FallbackState, now: float) -> bool:
    """Whether a search may be put to the backend that was chosen."""
    return isinstance(state, PrimaryInUse) or now >= state.retry_at


class ChosenBackend(Protocol):
    """What was chosen to answer searches, and may be lost at any time."""

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits for a question.

        Raises:
            TransientError: it does not answer, or nonsense.
        """
        ...

    async def run(self) -> None:
        """What it does beside searches, for ever."""
        ...

    def status(self) -> BackendStatus:
        """How it is."""
        ...

    async def close(self) -> None:
        """End all that it has begun; what still waits for an answer of it gets an error."""
        ...


class ReadingBackend(ChosenBackend, Protocol):
    """One that also tells how it comes to its hits, and reads what it finds."""

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The hits for a question, and how each candidate came to its place.

        Raises:
            TransientError: it does not answer.
        """
        ...

    async def get(
        self, path: str, *, start_line: int, lines: int, kinds: frozenset[Kind], max_chars: int = MAX_CHARS
    ) -> Excerpt | None:
        """Lines of a file that it finds; None: there is none that may be seen.

        Raises:
            TransientError: it does not answer.
        """
        ...


class RestingVectors(Protocol):
    """Makes vectors of the second backend's index, or lets them rest."""

    def want_vectors(self) -> None:
        """Make those that are missing."""
        ...

    def rest_vectors(self) -> None:
        """Make no more until they are wanted."""
        ...


class FallbackTimeouts(msgspec.Struct, frozen=True):
    """How long things take, in seconds."""

    ready_s: float  # from the beginning of its creation, for which searches wait for a backend
    cooldown_s: float  # for which one that failed is left alone
    silence_s: float = SILENCE_S  # see there


class Fallback:
    """Two backends as one: whatever happens to the first, a search is answered, and says by whom.

    The first is made when it is first wanted, once for all who want it. One that fails is closed and dropped, and the search
    that it failed at goes to the second. After the cool-down one search, and one alone, is put to a new one. The others
    meanwhile are answered by the second at once: that one is at hand and up to date, and what failed a minute ago is likely
    to fail again, so nobody shall wait for that. The first is back when that search was answered.

    A question that was put to the first is its to answer, whoever waits: when a caller gives up, it goes on to its end, and
    what comes of it decides. Else a backend that hangs would never be noticed by callers with less patience than it is given.

    Lines are always read by the second: the first knows places only.
    """

    def __init__(
        self,
        agent: str,
        name: str,
        create: Callable[[], Awaitable[ChosenBackend]],
        second: Backend,
        timeouts: FallbackTimeouts,
        *,
        vectors: RestingVectors,
        clock: Clock = time.monotonic,
    ) -> None:
        """Make the pair; the first backend is created when it is first wanted.

        Args:
            agent: Its id, for the log.
            name: Of the first backend.
            create: Makes one; raises a TransientError where that cannot be done now.
            second: Answers in its place.
            timeouts: Of the first.
            vectors: Of the second, which are made only while it stands in.
            clock: In seconds.
        """
        self.name = name
        self.second = second
        self.state: FallbackState = PrimaryInUse()
        self._agent = agent
        self._create = create
        self._timeouts = timeouts
        self._vectors = vectors
        self._clock = clock
        self._backend: ChosenBackend | None = None
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

    # --- what is asked

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits for a question, of the first backend or, with the reason why, of the second."""
        answer: BackendAnswer | None = await self._ask_first(lambda backend: backend.search(question))
        if answer is not None:
            return answer
        answer = await self.second.search(question)
        return msgspec.structs.replace(answer, fallback=self.use or answer.fallback)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """How the second backend would answer, and that it is not the first."""
        answer, trace = await self.second.explain(question)
        untold = FallbackUse(self.name, f"{self.name} does not tell how it comes to its hits")
        return msgspec.structs.replace(answer, fallback=self.use or untold), trace

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Lines of an indexed file, whichever backend answers searches."""
        return await self.second.get(
            path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
        )

    async def warm(self) -> None:
        """Have both ready before anybody asks."""
        await self.second.warm()
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

    def status(self) -> BackendStatus:
        """Which of the two answers just now, and how that one is."""
        backend, use = self.backend, self.use
        if use is not None:
            stand_in = BackendStandIn(instead_of=use.instead_of, reason=use.reason)
            if isinstance(self.state, BuiltinInUse):
                to_unix_s = time.time() - self._clock()
                stand_in = msgspec.structs.replace(
                    stand_in,
                    since=round(self.state.since + to_unix_s, 3),
                    retry_at=round(self.state.retry_at + to_unix_s, 3),
                )
            program = None if backend is None else backend.status().program
            return msgspec.structs.replace(self.second.status(), stand_in=stand_in, program=program)
        if backend is None:
            vector = VectorSearchStatus(available=False, reason=f"{self.name} is not ready yet")
            return BackendStatus(backend=self.name, provider=self.name, model=self.name, vector=vector)
        return backend.status()

    @property
    def backend(self) -> ChosenBackend | None:
        """The first backend, while it is the one that answers, or is about to."""
        return self._backend if isinstance(self.state, PrimaryInUse) else None

    @property
    def use(self) -> FallbackUse | None:
        """That the second backend stands in just now, and why; None: it does not."""
        if isinstance(self.state, BuiltinInUse):
            return FallbackUse(self.name, self.state.reason)
        if self._backend is None and self._is_late:
            return FallbackUse(self.name, f"{self.name} is not ready yet")
        if self._is_silent:
            waited_s = self._clock() - self._witness_since
            return FallbackUse(self.name, f"{self.name} has not answered for {waited_s:.1f} s")
        return None

    @property
    def _is_silent(self) -> bool:
        """Whether the backend keeps a question for longer than others are to wait for it."""
        return self._witness is not None and self._clock() - self._witness_since >= self._timeouts.silence_s

    # --- the first backend

    async def _ask_first(self, put: Callable[[Any], Awaitable[T]]) -> T | None:
        """What the first backend answers to what is put to it; None: it does not, or not in time."""
        if self._is_closed or self._is_silent:
            return None
        began = self._clock()
        is_trial = isinstance(self.state, BuiltinInUse)
        task = asyncio.create_task(self._answer_of_first(put))
        self._asking.add(task)
        task.add_done_callback(self._asked)
        try:
            # Not awaited itself: it belongs to the backend, and not to who asks.
            await asyncio.wait([task], timeout=self._timeouts.silence_s if is_trial else None)
        except asyncio.CancelledError:
            self._leave(task, began)
            raise
        if not task.done():
            self._leave(task, began)
            return None
        return None if task.cancelled() else task.result()

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

    async def _answer_of_first(self, put: Callable[[Any], Awaitable[T]]) -> T | None:
        async with self._turn() as is_mine:
            backend = await self._ready() if is_mine else None
            if backend is None:
                return None
            try:
                answer = await put(backend)
            except (StoreClosed, StoreDamaged, StoreUnavailable):
                return None  # of memd's own index, on which the second says more; the backend is not to blame
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
            if backend is self._backend and isinstance(self.state, BuiltinInUse):
                self._enter(PrimaryInUse())
            return answer

    @contextlib.asynccontextmanager
    async def _turn(self) -> AsyncIterator[bool]:
        """Whether this search is put to the first backend: all are, but after a failure one after the other."""
        if isinstance(self.state, PrimaryInUse):
            yield not self._is_closed
            return
        is_mine = not self._is_tried and may_be_tried(self.state, self._clock())
        self._is_tried = self._is_tried or is_mine
        try:
            yield is_mine and not self._is_closed
        finally:
            if is_mine:
                self._is_tried = False

    async def _ready(self) -> ChosenBackend | None:
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

    async def _live(self, backend: ChosenBackend) -> None:
        try:
            await backend.run()
        except Exception:
            log.exception("backend.failed", agent=self._agent, backend=self.name)
            self._lose(backend, f"memd failed at keeping {self.name} up to date; its log has the details")

    def _lose(self, backend: ChosenBackend, reason: str) -> None:
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

    async def _close(self, backend: ChosenBackend, living: asyncio.Task[None] | None) -> None:
        if living is not None:
            living.cancel()
            await asyncio.wait([living])
        try:
            await backend.close()
        except Exception:
            log.exception("backend.close_failed", agent=self._agent, backend=self.name)

    def _enter(self, after: FallbackState) -> None:
        before, self.state = self.state, after
        match after:
            case BuiltinInUse(reason=reason):
                log.warning(
                    "backend.fallen_back",
                    agent=self._agent,
                    backend=self.name,
                    reason=reason,
                    retry_in_s=self._timeouts.cooldown_s,
                )
            case PrimaryInUse():
                log.info("backend.recovered", agent=self._agent, backend=self.name)
        is_fallen = isinstance(after, BuiltinInUse)
        if is_fallen != isinstance(before, BuiltinInUse):
            if is_fallen:
                self._vectors.want_vectors()
            else:
                self._vectors.rest_vectors()


class ReadingFallback(Fallback):
    """The same where the first backend is a ReadingBackend: only while that is away the second explains and reads."""

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The hits for a question, and how they came to be, of the first backend or, with the reason why, of the second."""
        explained = await self._ask_first(lambda backend: backend.explain(question))
        return await super().explain(question) if explained is None else explained

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Lines of a file that the first backend finds, else of one that the second has.

        Raises:
            FilesBlocked: the first does not answer, and the second has no such file.
        """

        async def read(backend: ReadingBackend) -> tuple[Excerpt | None]:
            found = await backend.get(
                path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
            )
            return (found,)

        answered = await self._ask_first(read)
        if answered is not None and answered[0] is not None:
            return answered[0]
        excerpt = await super().get(
            path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
        )
        if excerpt is None and answered is None:
            reason = self.use.reason if self.use is not None else f"{self.name} has not answered"
            raise FilesBlocked(f"{path} cannot be read just now: {reason}.")
        return excerpt
