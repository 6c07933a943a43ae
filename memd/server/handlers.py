"""A request in, a reply out: the one place that maps requests to parts and errors to codes."""

import asyncio
from collections.abc import Awaitable, Sequence
from typing import TypeVar, assert_never

import msgspec
import structlog

from memd.agents import Agent, Agents, UnknownAgent
from memd.backends import scope
from memd.backends.backend import Answer, Question
from memd.errors import MemdError, TransientError
from memd.model import Hit
from memd.server.report import Facts, agent_status
from memd.store.database import StoreClosed, StoreDamaged
from memd.sync.loop import PassReport
from memd_client import messages as wire

log = structlog.get_logger()

MAX_RESULTS = 50
MAX_LINES = 120
WARM_MS = 5000  # a session does not wait for longer before it begins
WARM_KEYS = 10_000  # session keys that are remembered as warmed

T = TypeVar("T")


class BadRequest(MemdError):
    """The request makes no sense; the message says what to send instead."""


class Handlers:
    """Answers requests from what the daemon built."""

    def __init__(self, agents: Agents, facts: Facts) -> None:
        self._agents = agents
        self._facts = facts
        self._warmed: dict[tuple[str, str], None] = {}  # in the order they came

    async def handle(self, request: wire.Request) -> wire.Reply:
        """Answer a request; whatever goes wrong becomes a Failure, and the connection lives."""
        try:
            await self._agents.settled()
            try:
                return await self._dispatch(request)
            except StoreClosed:
                # Its agent was stopped to change its settings: the one that took its place answers.
                await self._agents.settled()
                return await self._dispatch(request)
        except BadRequest as error:
            return wire.Failure(code="bad_request", message=str(error))
        except UnknownAgent as error:
            return wire.Failure(code="unknown_agent", message=str(error))
        except StoreDamaged as error:
            return wire.Failure(
                code="unavailable", message=f"an index is damaged: {error}", hint="memd-ctl reindex"
            )
        except TransientError as error:
            return wire.Failure(code="unavailable", message=str(error), hint="Try again in a moment.")
        except Exception:
            # A bug of ours must not take the connection, let alone the daemon, with it.
            log.exception("server.request_failed", request=type(request).__name__)
            return wire.Failure(
                code="internal",
                message="memd failed at this request; its log has the details",
                hint="memd-ctl logs",
            )

    async def _dispatch(self, request: wire.Request) -> wire.Reply:
        match request:
            case wire.Search():
                return await self._search(request)
            case wire.Get():
                return await self._get(request)
            case wire.Explain():
                return await self._explain(request)
            case wire.Sync():
                return await self._sync(request)
            case wire.Warm():
                return await self._warm(request)
            case wire.Reindex():
                return await self._reindex(request)
            case wire.Status():
                return await self._status(request)
            case _:
                assert_never(request)

    # --- search and get

    async def _search(self, request: wire.Search) -> wire.Found:
        agent = self._agents.meant_by(request.agent, request.session_key)
        granted = self._access(agent, request.session_key, request.source)
        if isinstance(granted, scope.Denied):
            return _denied(agent)
        answer = await agent.backend.search(_question(agent, granted, request))
        return _found(agent, granted, answer)

    async def _explain(self, request: wire.Explain) -> wire.Explanation:
        agent = self._agents.meant_by(request.agent, request.session_key)
        granted = self._access(agent, request.session_key, request.source)
        if isinstance(granted, scope.Denied):
            return wire.Explanation(found=_denied(agent))
        answer, trace = await agent.backend.explain(_question(agent, granted, request))
        return wire.Explanation(
            found=_found(agent, granted, answer),
            terms=list(trace.terms),
            match=trace.match,
            vector_weight=trace.vector_weight,
            text_weight=trace.text_weight,
            min_score=trace.min_score,
            candidates=[
                wire.ExplainedHit(**{**msgspec.structs.asdict(one), "terms": list(one.terms)})
                for one in trace.candidates
            ],
        )

    def _access(self, agent: Agent, key: str | None, source: str | None) -> scope.Access:
        settings = agent.settings
        decided = scope.access(settings.scope, key, agent=agent.id, source=source, sources=settings.sources)  # type: ignore[arg-type]
        if isinstance(decided, scope.Denied):
            log.info("scope.denied", agent=agent.id, reason=decided.reason)
        return decided

    async def _get(self, request: wire.Get) -> wire.Note:
        if request.start_line < 1 or (request.lines is not None and request.lines < 1):
            raise BadRequest("start_line and lines count from 1")
        agent = self._agents.meant_by(request.agent, request.session_key)
        granted = self._access(agent, request.session_key, None)
        missing = wire.Note(path=request.path, missing=True, start_line=request.start_line)
        if isinstance(granted, scope.Denied):
            return missing
        lines = min(request.lines or MAX_LINES, MAX_LINES)
        excerpt = await agent.backend.get(
            request.path, start_line=request.start_line, lines=lines, kinds=granted.kinds
        )
        if excerpt is None:
            return missing
        return wire.Note(
            path=request.path,
            text=excerpt.text,
            start_line=excerpt.start_line,
            end_line=excerpt.end_line,
            next_line=excerpt.next_line,
        )

    # --- sync

    def _named(self, name: str | None) -> list[Agent]:
        return list(self._agents.all().values()) if name is None else [self._agents.get(name)]

    async def _sync(self, request: wire.Sync) -> wire.SyncReport | wire.Failure:
        agents = self._named(request.agent)
        tickets = [agent.sync.request(force=request.force) for agent in agents]
        if not request.wait:
            return await _report(agents)
        patience = Patience(request.patience_ms)
        passes = await patience.spend(
            *(agent.sync.settled(ticket) for agent, ticket in zip(agents, tickets, strict=True))
        )
        if passes is None:
            return wire.Failure(
                code="timed_out",
                message="not all text is searchable yet; indexing goes on",
                hint="memd-ctl status shows how far it is.",
            )
        if request.vectors:
            await patience.spend(
                *(agent.queue.wait_for(agent.index) for agent in agents if agent.queue is not None)
            )
        return await _report(agents, passes)

    async def _warm(self, request: wire.Warm) -> wire.SyncReport:
        agent = self._agents.meant_by(request.agent, request.session_key)
        key = (agent.id, request.session_key)
        if key in self._warmed:
            return await _report([agent])
        passes = await Patience(WARM_MS).spend(agent.sync.settled(agent.sync.request()))
        self._warmed[key] = None
        while len(self._warmed) > WARM_KEYS:
            del self._warmed[next(iter(self._warmed))]
        return await _report([agent], passes or ())

    async def _reindex(self, request: wire.Reindex) -> wire.ReindexReport:
        agents = self._named(request.agent)
        if not request.dry_run:
            for agent in agents:
                agent.sync.rebuild("a reindex was asked for", force=request.force)
            return wire.ReindexReport(agents=[agent.id for agent in agents])
        costs = [await agent.sync.cost(force=request.force) for agent in agents]
        return wire.ReindexReport(
            agents=[agent.id for agent in agents],
            dry_run=True,
            files=sum(cost.files for cost in costs),
            chunks=sum(cost.chunks for cost in costs),
            cached=sum(cost.cached for cost in costs),
            to_embed=sum(cost.to_embed for cost in costs),
            tokens=sum(cost.tokens for cost in costs),
        )

    async def _status(self, request: wire.Status) -> wire.StatusReport:
        return self._facts.report(
            {agent.id: await agent_status(agent) for agent in self._named(request.agent)}
        )


class Patience:
    """How long a caller waits in all, over several waits."""

    def __init__(self, patience_ms: int | None) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = None if patience_ms is None else loop.time() + patience_ms / 1000

    async def spend(self, *waits: Awaitable[T]) -> list[T] | None:
        """The results of all, or None where there was not enough time."""
        try:
            async with asyncio.timeout_at(self._deadline):
                return await asyncio.gather(*waits)
        except TimeoutError:
            return None


def _question(agent: Agent, granted: scope.Granted, request: wire.Search | wire.Explain) -> Question:
    query = agent.settings.query
    max_results = query.max_results if request.max_results is None else request.max_results
    min_score = query.min_score if request.min_score is None else request.min_score
    if not 1 <= max_results <= MAX_RESULTS:
        raise BadRequest(f"max_results is {max_results}; it must be 1 to {MAX_RESULTS}")
    if not 0 <= min_score <= 1:
        raise BadRequest(f"min_score is {min_score}; it must be 0 to 1")
    return Question(text=request.query, kinds=granted.kinds, max_results=max_results, min_score=min_score)


def _denied(agent: Agent) -> wire.Found:
    return wire.Found(backend=agent.settings.backend, scope_denied=True)


def _found(agent: Agent, granted: scope.Granted, answer: Answer) -> wire.Found:
    mode = agent.settings.citations
    citations = mode == "on" or (mode == "auto" and granted.direct)
    return wire.Found(
        results=[
            wire.Hit(**msgspec.structs.asdict(hit), citation=_citation(hit) if citations else None)
            for hit in answer.hits
        ],
        backend=answer.backend,
        provider=answer.provider,
        model=answer.model,
        mode=answer.mode,
        citations=citations,
        stale=answer.stale,
        degraded=[wire.Degraded(part=one.part, reason=one.reason) for one in answer.degraded],
    )


def _citation(hit: Hit) -> str:
    lines = f"L{hit.start_line}" if hit.start_line == hit.end_line else f"L{hit.start_line}-L{hit.end_line}"
    return f"{hit.path}#{lines}"


async def _report(agents: Sequence[Agent], passes: Sequence[PassReport] = ()) -> wire.SyncReport:
    counts = [await agent.index.counts() for agent in agents]
    waiting = sum(
        count.waiting for count, agent in zip(counts, agents, strict=True) if agent.queue is not None
    )
    keyword_only = [agent.choice.reason for agent in agents if agent.queue is None and agent.choice.reason]
    troubles = [agent.queue.trouble for agent in agents if agent.queue is not None and agent.queue.trouble]
    return wire.SyncReport(
        files=sum(count.files for count in counts),
        chunks=sum(count.chunks for count in counts),
        changed=sum(one.changed for one in passes),
        removed=sum(one.removed for one in passes),
        took_s=max((one.took_s for one in passes), default=0.0),
        vectors="waiting" if waiting else "complete",
        waiting_chunks=waiting,
        reason="; ".join(dict.fromkeys([*troubles, *keyword_only]))
        or ("embedding is under way" if waiting else None),
    )
