"""A backend that answers with the configured one, and with the built-in one while that fails."""

import asyncio
import contextlib
import time
from collections.abc import Awaitable, Callable
from typing import Generic, Protocol, TypeVar

import msgspec

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
from memd.backends.circuit_breaker import CircuitBreaker, CoolingDown, GuardedBackend, ReadableBackend
from memd.backends.indexed_text import blocked
from memd.domain_types import FallbackUse, Kind, Trace
from memd.errors import TransientError
from memd.runtime.timers import Clock
from memd.runtime.wait_budget import WaitBudget


class ChosenBackend(GuardedBackend, Protocol):
    """The configured backend, which may fail at any time."""

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the hits for a question.

        Raises:
            TransientError: the backend does not answer, or its answer is invalid.
        """
        ...

    def status(self) -> BackendStatus:
        """Return the backend's status."""
        ...


class ReadingBackend(ChosenBackend, ReadableBackend, Protocol):
    """A configured backend that can also explain a search and read files."""

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the hits for a question, and how each candidate was ranked.

        Raises:
            TransientError: the backend does not answer.
        """
        ...


C = TypeVar("C", bound=ChosenBackend)


class Fallback(Generic[C]):
    """Combines two backends: when the first fails, the second answers, and the answer says so.

    The second also answers while the first waits for its cool-down: it is local and always up to date. Lines
    of files always come from the second, because the first returns positions only.
    """

    def __init__(self, first: CircuitBreaker[C], second: Backend, *, clock: Clock = time.monotonic) -> None:
        """Combine two backends; the first is created on first use.

        Args:
            first: The configured backend, behind its circuit breaker.
            second: The backend that answers when the first does not.
            clock: Returns seconds; must be the circuit breaker's clock.
        """
        self.name = first.name
        self.first = first
        self.second = second
        self._clock = clock

    # --- requests

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the first backend's hits or, if it fails, the second's, with the reason in `fallback`."""
        answer = await self.first.ask(lambda backend: backend.search(question))
        return self._stand_in(await self.second.search(question)) if answer is None else answer

    def _stand_in(self, answer: BackendAnswer) -> BackendAnswer:
        """Return an answer of the second backend with the reason why the first did not give it."""
        return msgspec.structs.replace(answer, fallback=self.use or answer.fallback)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the second backend's answer and explanation; `fallback` says that they are not the first's."""
        answer, trace = await self.second.explain(question)
        untold = FallbackUse(self.name, f"{self.name} does not report how it ranks its hits")
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
        """Return lines of an indexed file; they always come from the second backend."""
        return await self.second.get(
            path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
        )

    async def warm(self) -> None:
        """Prepare both backends before the first search."""
        await self.second.warm()
        await self.first.ready()

    async def close(self) -> None:
        """Close the first backend; a second call waits for the same work."""
        await self.first.close()

    # --- status

    def status(self) -> BackendStatus:
        """Return the status of the backend that answers now."""
        backend, use, state = self.first.backend, self.use, self.first.state
        if use is not None:
            stand_in = BackendStandIn(instead_of=use.instead_of, reason=use.reason)
            if isinstance(state, CoolingDown):
                to_unix_s = time.time() - self._clock()
                stand_in = msgspec.structs.replace(
                    stand_in,
                    since=round(state.since + to_unix_s, 3),
                    retry_at=round(state.retry_at + to_unix_s, 3),
                )
            program = None if backend is None else backend.status().program
            return msgspec.structs.replace(self.second.status(), stand_in=stand_in, program=program)
        if backend is None:
            vector = VectorSearchStatus(available=False, reason=f"{self.name} is not ready yet")
            return BackendStatus(backend=self.name, provider=self.name, model=self.name, vector=vector)
        return backend.status()

    @property
    def use(self) -> FallbackUse | None:
        """Why the second backend answers now; None if the first does."""
        reason = self.first.reason
        return None if reason is None else FallbackUse(self.name, reason)


R = TypeVar("R", bound=ReadingBackend)
T = TypeVar("T")


class ReadingFallback(Fallback[R]):
    """A Fallback whose first backend also explains and reads; the second does so only when the first fails.

    A search waits `wait_s` for the first; then the second is asked, too, and what it finds is the answer if it is
    there before that of the first. Where it finds nothing, the first has the time of its own timeouts, except for
    a trial after a failure.
    """

    def __init__(
        self, first: CircuitBreaker[R], second: Backend, wait_s: float, *, clock: Clock = time.monotonic
    ) -> None:
        """Combine two backends; the first is created on first use.

        Args:
            first: See Fallback.
            second: See Fallback.
            wait_s: Seconds to wait for the first, see runtime.wait_budget.
            clock: See Fallback.
        """
        super().__init__(first, second, clock=clock)
        self._wait_s = wait_s

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return hits of the first backend or, if it fails or is too slow, of the second, with the reason."""
        answer, is_first = await self._ask(
            lambda backend: backend.search(question), lambda answer: bool(answer.hits)
        )
        return answer if is_first else self._stand_in(answer)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the same as `search`, and how each candidate was ranked."""
        (answer, trace), is_first = await self._ask(
            lambda backend: backend.explain(question), lambda explained: bool(explained[0].hits)
        )
        return answer if is_first else self._stand_in(answer), trace

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Return lines of a file from the first backend or, if it has no such file, fails or is too slow, from the second.

        Raises:
            FilesBlocked: the first backend does not answer, and the second has no such file.
        """

        async def read(backend: R | Backend) -> tuple[Excerpt | None]:
            found = await backend.get(
                path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
            )
            return (found,)

        (excerpt,), is_first = await self._ask(read, lambda found: found[0] is not None)
        if excerpt is None and is_first:
            [excerpt] = await read(self.second)
        elif excerpt is None:
            reason = self.use.reason if self.use is not None else f"{self.name} has not answered"
            raise blocked(path, reason, needs_person=self.first.needs_person)
        return excerpt

    async def _ask(
        self, put: Callable[[R | Backend], Awaitable[T]], is_found: Callable[[T], bool]
    ) -> tuple[T, bool]:
        """Return an answer, and whether the first backend gave it."""
        budget = WaitBudget(self._wait_s)
        late = asyncio.ensure_future(self._late(budget, put, is_found))
        try:
            with budget.applied():
                answer = await self.first.ask(put, late)
        finally:
            is_late = not late.cancel()
        if answer is not None:
            return answer, True
        return late.result() if is_late else await put(self.second), False

    async def _late(
        self,
        budget: WaitBudget,
        put: Callable[[R | Backend], Awaitable[T]],
        is_found: Callable[[T], bool],
    ) -> T:
        """Return the second backend's answer once a search need not wait for the first any longer."""
        await budget.is_spent.wait()
        with contextlib.suppress(TransientError):
            answer = await put(self.second)
            if is_found(answer) or isinstance(self.first.state, CoolingDown):
                return answer
        never: asyncio.Future[T] = asyncio.get_running_loop().create_future()
        return await never
