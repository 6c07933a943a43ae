"""Answers with the backend that was chosen, and with the built-in one while that fails."""

import time
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
from memd.backends.circuit_breaker import CircuitBreaker, LeftAlone, LosableBackend, ReadableBackend
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import FallbackUse, Kind, Trace
from memd.runtime.timing import Clock


class ChosenBackend(LosableBackend, Protocol):
    """What was chosen to answer searches, and may be lost at any time."""

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits for a question.

        Raises:
            TransientError: it does not answer, or nonsense.
        """
        ...

    def status(self) -> BackendStatus:
        """How it is."""
        ...


class ReadingBackend(ChosenBackend, ReadableBackend, Protocol):
    """One that also tells how it comes to its hits, and reads what it finds."""

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The hits for a question, and how each candidate came to its place.

        Raises:
            TransientError: it does not answer.
        """
        ...


C = TypeVar("C", bound=ChosenBackend)


class Fallback(Generic[C]):
    """Two backends as one: whatever happens to the first, a search is answered, and says by whom.

    A search that the first fails at goes to the second, which also answers while the first is left alone: it is at hand and
    up to date. Lines are always read by the second: the first knows places only.
    """

    def __init__(self, first: CircuitBreaker[C], second: Backend, *, clock: Clock = time.monotonic) -> None:
        """Join two backends; the first is created when it is first wanted.

        Args:
            first: The backend that was chosen, behind its circuit breaker.
            second: Answers in its place.
            clock: In seconds; the same as that of the circuit breaker.
        """
        self.name = first.name
        self.first = first
        self.second = second
        self._clock = clock

    # --- what is asked

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits for a question, of the first backend or, with the reason why, of the second."""
        answer = await self.first.ask(lambda backend: backend.search(question))
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
        await self.first.ready()

    async def close(self) -> None:
        """End what was begun; a second call waits for the same end."""
        await self.first.close()

    # --- how it is

    def status(self) -> BackendStatus:
        """Which of the two answers just now, and how that one is."""
        backend, use, state = self.first.backend, self.use, self.first.state
        if use is not None:
            stand_in = BackendStandIn(instead_of=use.instead_of, reason=use.reason)
            if isinstance(state, LeftAlone):
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
        """That the second backend stands in just now, and why; None: it does not."""
        trouble = self.first.trouble
        return None if trouble is None else FallbackUse(self.name, trouble)


R = TypeVar("R", bound=ReadingBackend)


class ReadingFallback(Fallback[R]):
    """The same where the first backend is a ReadingBackend: only while that is away the second explains and reads."""

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The hits for a question, and how they came to be, of the first backend or, with the reason why, of the second."""
        explained = await self.first.ask(lambda backend: backend.explain(question))
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

        async def read(backend: R) -> tuple[Excerpt | None]:
            found = await backend.get(
                path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
            )
            return (found,)

        answered = await self.first.ask(read)
        if answered is not None and answered[0] is not None:
            return answered[0]
        excerpt = await super().get(
            path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
        )
        if excerpt is None and answered is None:
            reason = self.use.reason if self.use is not None else f"{self.name} has not answered"
            raise FilesBlocked(f"{path} cannot be read just now: {reason}.")
        return excerpt
