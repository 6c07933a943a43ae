"""Searches an agent's own memory together with the memories that it includes."""

import asyncio
from collections.abc import Sequence
from functools import partial
from typing import Protocol

import msgspec

from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendQuestion,
    BackendStatus,
    Excerpt,
    IncludedState,
)
from memd.backends.builtin import Builtin, OwnProposal
from memd.backends.circuit_breaker import CircuitBreaker, ReadableBackend
from memd.backends.indexed_text import blocked
from memd.config.settings import IncludedMemory, included_path
from memd.domain_types import DegradedPart, Kind, SearchFilter, Trace
from memd.search.make_hits import Proposal


class ProposingBackend(ReadableBackend, Protocol):
    """The backend of an included memory."""

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> Proposal:
        """Return the candidates for a question.

        Raises:
            TransientError: the backend does not answer.
        """
        ...


class Including:
    """Searches the agent's own memory and, at the same time, each memory that it includes.

    The included memories delay an answer by at most `wait_s` after the own memory has answered. One that is
    too late or fails is named in `degraded`, and not asked again until its cool-down has passed.
    """

    def __init__(
        self,
        own: Builtin,
        included: Sequence[tuple[IncludedMemory, CircuitBreaker[ProposingBackend]]],
        wait_s: float,
    ) -> None:
        """Combine memories; none is asked yet.

        Args:
            own: The agent's own memory.
            included: The included memories, each behind its circuit breaker.
            wait_s: Seconds to wait for the included memories after the own one has answered.
        """
        self._own = own
        self._breakers = {one.name: breaker for one, breaker in included}
        self._include = [one for one, _ in included]
        self._wait_s = wait_s

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the hits of all memories that the caller may see, ranked together."""
        if not question.included:
            return await self._own.search(question)
        own, included, missing = await self._proposals(question, is_explained=False)
        answer = await self._own.search_together(own, included, question.max_results)
        return msgspec.structs.replace(answer, degraded=(*answer.degraded, *missing))

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the same as `search`, and how each candidate was ranked."""
        if not question.included:
            return await self._own.explain(question)
        own, included, missing = await self._proposals(question, is_explained=True)
        answer, trace = await self._own.explain_together(own, included, question.max_results)
        return msgspec.structs.replace(answer, degraded=(*answer.degraded, *missing)), trace

    async def _proposals(
        self, question: BackendQuestion, *, is_explained: bool
    ) -> tuple[OwnProposal, dict[str, Proposal], list[DegradedPart]]:
        """Ask all memories; return the own candidates, those of the others by name, and which did not answer."""
        own = asyncio.ensure_future(self._own.propose(question, is_explained=is_explained))
        overdue = asyncio.ensure_future(self._waited_for(own))
        asked = {
            name: asyncio.ensure_future(
                breaker.ask(
                    partial(_proposed, question=_within(question, name), is_explained=is_explained),
                    overdue,
                )
            )
            for name, breaker in self._breakers.items()
            if name in question.included
        }
        try:
            mine = await own
            answered = dict(zip(asked, await asyncio.gather(*asked.values()), strict=True))
        finally:
            for task in (own, overdue, *asked.values()):
                task.cancel()
        found = {name: one for name, one in answered.items() if one is not None}
        missing = [
            DegradedPart("included", f"{name}: {self._breakers[name].reason or 'it has not answered'}")
            for name in answered.keys() - found.keys()
        ]
        return mine, found, sorted(missing, key=lambda one: one.reason)

    async def _waited_for(self, own: "asyncio.Future[OwnProposal]") -> None:
        """Wait until the included memories are too late."""
        await asyncio.wait([own])
        await asyncio.sleep(self._wait_s)

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Return lines of a file of the own memory, or of the included memory whose name its path begins with.

        Raises:
            FilesBlocked: the included memory does not answer, or the file cannot be read now.
        """
        of = included_path(path, self._include)
        if of is None:
            return await self._own.get(
                path, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
            )
        memory, there = of

        async def read(backend: ProposingBackend) -> tuple[Excerpt | None]:
            found = await backend.get(
                there, start_line=start_line, lines=lines, kinds=kinds, max_chars=max_chars
            )
            return (found,)

        breaker = self._breakers[memory.name]
        answered = await breaker.ask(read)
        if answered is None:
            reason = breaker.reason or "the server has not answered"
            raise blocked(path, reason, needs_person=breaker.needs_person)
        return answered[0]

    async def warm(self) -> None:
        """Prepare all memories before the first search."""
        await self._own.warm()
        await asyncio.gather(*(breaker.ready() for breaker in self._breakers.values()))

    def status(self) -> BackendStatus:
        """Return the own memory's status, and which included memories are searched."""
        included = tuple(IncludedState(name, breaker.reason) for name, breaker in self._breakers.items())
        return msgspec.structs.replace(self._own.status(), included=included)

    async def close(self) -> None:
        """Close all backends."""
        await asyncio.gather(*(breaker.close() for breaker in self._breakers.values()))
        await self._own.close()


async def _proposed(backend: ProposingBackend, *, question: BackendQuestion, is_explained: bool) -> Proposal:
    return await backend.propose(question, is_explained=is_explained)


def _within(question: BackendQuestion, name: str) -> BackendQuestion:
    """Return the question as an included memory understands it: globs without the memory's name in front."""
    wanted: SearchFilter = question.wanted
    paths = tuple(
        f"{'!' * glob.startswith('!')}{glob.removeprefix('!').removeprefix(f'{name}/')}"
        for glob in wanted.paths
    )
    return msgspec.structs.replace(question, wanted=msgspec.structs.replace(wanted, paths=paths))
