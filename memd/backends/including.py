"""The agent's own memory together with those that it includes: one answer, whichever of them can be had."""

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
from memd.backends.indexed_text import FilesBlocked
from memd.config.settings import IncludedMemory, included_path
from memd.domain_types import DegradedPart, Kind, SearchFilter, Trace
from memd.search.ranked import Proposal


class ProposingBackend(ReadableBackend, Protocol):
    """An included memory."""

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> Proposal:
        """What it has for a question.

        Raises:
            TransientError: it does not answer.
        """
        ...


class Including:
    """Searches the agent's own memory, and at the same time each that it includes.

    What is its own is never waited for longer than without them, but for a bounded time: from when it is there, the others
    have so long to follow. One that is too late, or fails, is named, and then left alone for a while.
    """

    def __init__(
        self,
        own: Builtin,
        included: Sequence[tuple[IncludedMemory, CircuitBreaker[ProposingBackend]]],
        wait_s: float,
    ) -> None:
        """Nothing is asked yet.

        Args:
            own: The agent's own memory.
            included: The others.
            wait_s: For which they are waited for.
        """
        self._own = own
        self._breakers = {one.name: breaker for one, breaker in included}
        self._include = [one for one, _ in included]
        self._wait_s = wait_s

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """The hits of all memories that the asker may see, in one order."""
        if not question.included:
            return await self._own.search(question)
        own, included, missing = await self._proposals(question, is_explained=False)
        answer = await self._own.search_together(own, included, question.max_results)
        return msgspec.structs.replace(answer, degraded=(*answer.degraded, *missing))

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """The same, and how each candidate came to its place."""
        if not question.included:
            return await self._own.explain(question)
        own, included, missing = await self._proposals(question, is_explained=True)
        answer, trace = await self._own.explain_together(own, included, question.max_results)
        return msgspec.structs.replace(answer, degraded=(*answer.degraded, *missing)), trace

    async def _proposals(
        self, question: BackendQuestion, *, is_explained: bool
    ) -> tuple[OwnProposal, dict[str, Proposal], list[DegradedPart]]:
        """What each memory has, and which do not answer."""
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
            DegradedPart("included", f"{name}: {self._breakers[name].trouble or 'it has not answered'}")
            for name in answered.keys() - found.keys()
        ]
        return mine, found, sorted(missing, key=lambda one: one.reason)

    async def _waited_for(self, own: "asyncio.Future[OwnProposal]") -> None:
        """Until the others are too late."""
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
        """Lines of a file of the agent's own, or of an included memory, by whose name its path begins.

        Raises:
            FilesBlocked: it cannot be read just now.
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
            raise FilesBlocked(
                f"{path} cannot be read just now: {breaker.trouble or 'the server has not answered'}."
            )
        return answered[0]

    async def warm(self) -> None:
        """Have all ready before anybody asks."""
        await self._own.warm()
        await asyncio.gather(*(breaker.ready() for breaker in self._breakers.values()))

    def status(self) -> BackendStatus:
        """How the agent's own memory is, and which of the others take part."""
        included = tuple(IncludedState(name, breaker.trouble) for name, breaker in self._breakers.items())
        return msgspec.structs.replace(self._own.status(), included=included)

    async def close(self) -> None:
        """End what was begun."""
        await asyncio.gather(*(breaker.close() for breaker in self._breakers.values()))
        await self._own.close()


async def _proposed(backend: ProposingBackend, *, question: BackendQuestion, is_explained: bool) -> Proposal:
    return await backend.propose(question, is_explained=is_explained)


def _within(question: BackendQuestion, name: str) -> BackendQuestion:
    """The question as an included memory is asked it: its paths are known there without its name."""
    wanted: SearchFilter = question.wanted
    paths = tuple(
        f"{'!' * glob.startswith('!')}{glob.removeprefix('!').removeprefix(f'{name}/')}"
        for glob in wanted.paths
    )
    return msgspec.structs.replace(question, wanted=msgspec.structs.replace(wanted, paths=paths))
