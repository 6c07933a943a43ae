"""The backend that searches a memory published by another machine on a PostgreSQL server."""

import asyncio
from pathlib import Path
from typing import Self

import msgspec

from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendQuestion,
    BackendStatus,
    Excerpt,
    VectorSearchStatus,
)
from memd.backends.builtin import answer_of, explain_with, propose_with, search_with
from memd.backends.circuit_breaker import BreakerTimeouts
from memd.backends.indexed_text import line_of, note_excerpt, turns_excerpt
from memd.config.settings import AgentSettings, IncludedMemory, SharedMemory
from memd.domain_types import Kind, Trace
from memd.embedding.registry import AgentProviders
from memd.postgres.shared_index import SharedIndex, find_file
from memd.postgres.snapshots import SharedConnections
from memd.postgres.transcripts import stretch_of, turns_in
from memd.runtime.time_zones import zone_of
from memd.search.make_hits import Proposal
from memd.search.protocols import Reranker
from memd.search.searcher import Searcher

TIMEOUT_S = 3.0  # for each of the few statements of a search
COOLDOWN_S = 15.0  # time without searches after a failure of the server
TIMEOUTS = BreakerTimeouts(TIMEOUT_S, COOLDOWN_S)


class PostgresBackend:
    """Searches one published memory, and reads its files."""

    def __init__(
        self,
        shared: SharedMemory | IncludedMemory,
        settings: AgentSettings,
        providers: AgentProviders,
        reranker: Reranker | None = None,
    ) -> None:
        """Create the backend without connecting.

        Args:
            shared: The published memory and how to reach it.
            settings: The agent's settings.
            providers: The providers that embed questions.
            reranker: Reorders the first candidates; None: they keep their order.
        """
        self._providers = providers
        self._zone = zone_of(settings.timezone)
        self._connections = SharedConnections(Path(shared.dsn_file), shared.memory, TIMEOUT_S)
        self._index = SharedIndex(self._connections)
        self._searcher = Searcher(self._index, settings, providers, reranker)

    @classmethod
    async def create(
        cls,
        shared: SharedMemory | IncludedMemory,
        settings: AgentSettings,
        providers: AgentProviders,
        reranker: Reranker | None = None,
    ) -> Self:
        """Create a backend and check that its memory can be searched.

        Raises:
            SharedUnavailable: the memory cannot be searched.
        """
        made = cls(shared, settings, providers, reranker)
        try:
            await made._index.refresh()
        except BaseException:
            await made.close()
            raise
        return made

    async def run(self) -> None:
        """Wait until cancelled: there is no background work, because each search reads the server's current state."""
        await asyncio.Event().wait()

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """See ChosenBackend.search."""
        await self._index.refresh()
        found = await search_with(self._searcher, question)
        return answer_of(found, "postgres", self._providers)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """See ChosenBackend.explain."""
        await self._index.refresh()
        found, trace = await explain_with(self._searcher, question)
        return answer_of(found, "postgres", self._providers), trace

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> Proposal:
        """Return the candidates for a question that goes to several memories.

        Raises:
            SharedUnavailable: the memory cannot be searched.
        """
        await self._index.refresh()
        return await propose_with(self._searcher, question, is_explained=is_explained)

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """See ChosenBackend.get."""
        memory = self._connections.memory
        file = await self._connections.run(lambda snapshot: find_file(snapshot, memory, path))
        if file is None or file.kind not in kinds:
            return None
        if file.kind.is_session:
            turns = turns_in(file.content)
            span = stretch_of(turns, line_of(start_line), lines, max_chars)
            excerpt = turns_excerpt(span, start_line, max_chars, self._zone)
            if excerpt.text or excerpt.next_line is not None:
                return excerpt
            last = max((turn.end_line for turn in turns), default=0)
            return msgspec.structs.replace(excerpt, total_lines=last)
        text = file.content.split("\n")
        return msgspec.structs.replace(
            note_excerpt(text, start_line, lines, max_chars), total_lines=len(text)
        )

    def status(self) -> BackendStatus:
        """See ChosenBackend.status."""
        is_wanted = self._providers.settings.provider != "none"
        space = self._index.space
        is_available = space is not None and self._providers.is_answering(space)
        reason = None
        if is_wanted and not is_available:
            reason = "the memory has no vectors yet" if space is None else self._providers.reason
        return BackendStatus(
            backend="postgres",
            provider=self._providers.provider_name,
            model=self._providers.model_name,
            vector=VectorSearchStatus(enabled=is_wanted, available=is_available, reason=reason),
        )

    async def close(self) -> None:
        """Close the connections."""
        self._connections.close()
