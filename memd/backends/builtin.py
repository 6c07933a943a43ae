"""The built-in backend, which searches memd's own index."""

import contextlib
from collections.abc import Iterator, Mapping

import msgspec
import structlog

from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendQuestion,
    BackendStatus,
    Excerpt,
    IndexedAgent,
    VectorSearchStatus,
)
from memd.backends.indexed_text import FilesBlocked, line_of, note_excerpt, read_note, turns_excerpt
from memd.domain_types import DegradedPart, Kind, Trace
from memd.embedding.registry import AgentProviders
from memd.errors import TransientError
from memd.providers.provider import space_of
from memd.runtime.profiling import timed_part
from memd.runtime.threads import Threads
from memd.search.make_hits import Proposal, Searched
from memd.search.searcher import Searcher
from memd.sources.notes import TooLarge
from memd.sources.safe_open import FileUnreadable, NoRoot, SourceError
from memd.store.errors import StoreDamaged, StoreUnavailable

log = structlog.get_logger()

READERS = 4  # files read at a time per agent


async def search_with(searcher: Searcher, question: BackendQuestion) -> Searched:
    """Search for a question."""
    return await searcher.search(
        question.text,
        kinds=question.kinds,
        max_results=question.max_results,
        min_score=question.min_score,
        now=question.now,
        mode=question.mode,
        wanted=question.wanted,
        by_time=question.by_time,
    )


async def explain_with(searcher: Searcher, question: BackendQuestion) -> tuple[Searched, Trace]:
    """Search for a question, and trace how each candidate was ranked."""
    return await searcher.explain(
        question.text,
        kinds=question.kinds,
        max_results=question.max_results,
        min_score=question.min_score,
        now=question.now,
        wanted=question.wanted,
        by_time=question.by_time,
    )


async def propose_with(searcher: Searcher, question: BackendQuestion, *, is_explained: bool) -> Proposal:
    """Return the candidates for a question that goes to several memories."""
    return await searcher.propose(
        question.text,
        kinds=question.kinds,
        min_score=question.min_score,
        now=question.now,
        mode=question.mode,
        wanted=question.wanted,
        by_time=question.by_time,
        is_explained=is_explained,
    )


def answer_of(found: Searched, backend: str, providers: AgentProviders) -> BackendAnswer:
    """Convert the result of a searcher to the answer of a backend."""
    return BackendAnswer(
        hits=found.hits,
        backend=backend,
        provider=found.provider,
        model=found.model,
        mode=found.mode,
        fallback=providers.fallback_use(found.space),
        degraded=found.degraded,
    )


class OwnProposal(msgspec.Struct, frozen=True):
    """The candidates of the agent's own memory for a question that goes to several memories."""

    proposal: Proposal
    is_fresh: bool


class Builtin:
    """Searches one agent's index, and reads what is indexed."""

    def __init__(self, agent: IndexedAgent, searcher: Searcher, providers: AgentProviders) -> None:
        """Create the backend of one agent.

        Args:
            agent: The agent and its index.
            searcher: Searches that index.
            providers: The agent's embedding providers.
        """
        self._agent = agent.id
        self._index = agent.index
        self._index_service = agent.index_service
        self._rules = agent.rules
        self._searcher = searcher
        self._providers = providers
        self._threads = Threads(READERS, f"memd-get-{agent.id}")

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the hits; pending changes are indexed first, else the answer is marked stale."""
        fresh = await self._index_service.catch_up()
        with self._damage_noticed():
            found = await search_with(self._searcher, question)
        return self._answer(found, fresh=fresh)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the same as `search`, and how each candidate was ranked."""
        fresh = await self._index_service.catch_up()
        with self._damage_noticed():
            found, trace = await explain_with(self._searcher, question)
        return self._answer(found, fresh=fresh), trace

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> OwnProposal:
        """Return the candidates for a question that goes to several memories."""
        fresh = await self._index_service.catch_up()
        with self._damage_noticed():
            return OwnProposal(await propose_with(self._searcher, question, is_explained=is_explained), fresh)

    async def search_together(
        self, own: OwnProposal, included: Mapping[str, Proposal], max_results: int
    ) -> BackendAnswer:
        """Return the hits of the own candidates and of those of other memories, which are given by name."""
        found = await self._searcher.search_together(own.proposal, included, max_results)
        return self._answer(found, fresh=own.is_fresh)

    async def explain_together(
        self, own: OwnProposal, included: Mapping[str, Proposal], max_results: int
    ) -> tuple[BackendAnswer, Trace]:
        """Return the same as `search_together`, and how each candidate was ranked."""
        found, trace = await self._searcher.explain_together(own.proposal, included, max_results)
        return self._answer(found, fresh=own.is_fresh), trace

    async def warm(self) -> None:
        """Read the keyword index once, and log what is broken before the first search.

        Vectors need no preparation: they are in memory since the index was opened, or on disk because memory
        is short. The provider loads its model by itself.
        """
        try:
            with self._damage_noticed():
                reason = await self._searcher.warm()
        except TransientError as failure:
            log.warning("backend.warm_up_failed", agent=self._agent, backend="builtin", reason=str(failure))
            return
        if reason is not None:
            self._index.damage.report_keyword(reason)
            log.warning("backend.warm_up_failed", agent=self._agent, backend="builtin", reason=reason)
        if self._index.extension_trouble is not None:
            log.warning(
                "backend.vectors_limited",
                agent=self._agent,
                backend="builtin",
                reason=self._index.extension_trouble,
            )

    def status(self) -> BackendStatus:
        """Return the backend's name, its provider and whether vector search is available."""
        return BackendStatus(
            backend="builtin",
            provider=self._providers.provider_name,
            model=self._providers.model_name,
            vector=self._vector_status(),
        )

    def _vector_status(self) -> VectorSearchStatus:
        providers, is_wanted = self._providers, self._providers.settings.provider != "none"
        if not providers.embeds:
            return VectorSearchStatus(
                ok=not is_wanted,
                reason="keyword search only: there is no embedding provider",
                enabled=is_wanted,
                available=False,
            )
        if providers.wanted is None:
            return VectorSearchStatus(
                ok=False,
                reason="keyword search only, until the embedding provider has answered",
                available=False,
            )
        if self._index.extension_trouble is not None:
            return VectorSearchStatus(
                ok=False, reason=f"{self._index.extension_trouble}; vectors are compared in memory"
            )
        is_available = providers.is_answering(self._index.space or space_of(providers.wanted))
        return VectorSearchStatus(available=is_available, reason=None if is_available else providers.reason)

    async def close(self) -> None:
        """Close the searcher; idle threads end by themselves, and the index belongs to the agent."""
        await self._searcher.close()

    @contextlib.contextmanager
    def _damage_noticed(self) -> Iterator[None]:
        """Report damage of the index, so that it is rebuilt.

        Raises:
            StoreUnavailable: in place of StoreDamaged, because the rebuild repairs the damage.
        """
        try:
            yield
        except StoreDamaged as damage:
            self._index.damage.report(str(damage))
            raise StoreUnavailable(f"the index is damaged and is being rebuilt: {damage}") from damage

    def _answer(self, found: Searched, *, fresh: bool) -> BackendAnswer:
        if found.keyword_damage is not None:
            self._index.damage.report_keyword(found.keyword_damage)
        if found.vector_damage is not None:
            self._index.damage.report(found.vector_damage)
        answer = answer_of(found, "builtin", self._providers)
        return msgspec.structs.replace(answer, stale=not fresh, degraded=self._degraded(found))

    def _degraded(self, found: Searched) -> tuple[DegradedPart, ...]:
        health = self._index_service.health
        return (
            *found.degraded,
            *([DegradedPart("watcher", health.watcher)] if health.watcher is not None else []),
            *([DegradedPart("rebuild", health.rebuild)] if health.rebuild is not None else []),
            *([DegradedPart("store", health.store)] if health.store is not None else []),
        )

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Return lines of an indexed note as it is on disk now, or turns of an indexed transcript.

        Turns come from the index, because the transcript on disk may contain secrets. None: the file is not
        indexed, no longer on disk, or of a kind that the caller may not see.

        Raises:
            FilesBlocked: the disk does not answer, the root directory is missing, or the file may not be
                read.
        """
        await self._index_service.catch_up()
        with self._damage_noticed(), timed_part("finding the file"):
            known = await self._index.find(path)
        if known is None or known.kind not in kinds:
            return None
        if known.kind.is_session:
            return await self._get_turns(path, start_line, lines, max_chars)
        try:
            text = await read_note(known.path, self._rules, self._threads)
        except (NoRoot, FileUnreadable, TooLarge) as failure:
            why = "its directory is not there" if isinstance(failure, NoRoot) else failure.reason
            raise FilesBlocked(f"{path} cannot be read just now: {why}.") from failure
        except SourceError:
            return None
        excerpt = note_excerpt(text, start_line, lines, max_chars)
        return msgspec.structs.replace(excerpt, total_lines=len(text))

    async def _get_turns(self, path: str, start_line: int, lines: int, max_chars: int) -> Excerpt:
        with self._damage_noticed(), timed_part("reading turns"):
            found = await self._index.stretch(path, line_of(start_line), lines, max_chars)
            excerpt = turns_excerpt(found, start_line, max_chars, self._rules.zone)
            if excerpt.text or excerpt.next_line is not None:
                return excerpt
            return msgspec.structs.replace(excerpt, total_lines=await self._index.last_turn_line(path))
