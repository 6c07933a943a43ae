"""A request in, a reply out: the one place that maps requests to parts and errors to codes."""

import asyncio
import contextlib
import os
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Mapping, Sequence
from datetime import date, datetime
from functools import partial
from typing import TypeVar, assert_never

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, ForeignSession, LeftOut, RunningAgent, UnknownAgent
from memd.backends import scope
from memd.backends.backend import MAX_CHARS, BackendAnswer, BackendQuestion
from memd.backends.citation import citation, footer, is_cited
from memd.backends.truncate import clamp
from memd.config.load import ConfigError
from memd.config.settings import AgentSettings
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.errors import MemdError, TransientError
from memd.indexing.passes import PassFailed, PassReport
from memd.runtime.local_time import LocalZone
from memd.runtime.timing import spent
from memd.server.slow_requests import Slow
from memd.server.status.embedding import embedding
from memd.server.status.report import Facts, agent_status, for_session, left_out_status
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer
from memd_client import messages as wire
from memd_client import session_key

log = structlog.get_logger()

MAX_RESULTS = 50
MAX_LINES = 120
LEAST_CHARS = 100  # of an excerpt: fewer would take forever to read on
REVIVE_MS = 6000  # for an agent that could not be started: a store may be locked for some seconds
WARM_MS = 5000  # a session does not wait for longer before it begins
WARM_KEYS = 10_000  # session keys that are remembered as warmed
RELOADS = 16  # in the course of one request, without its coming to nothing
CHANGES = 64  # that are under way at a time: those of clients that have gone away count, too
AT_WORK = 8  # searches of one client that one agent is at; the others of a flood wait behind them, and nobody else does

T = TypeVar("T")


_OfAnAgent = (
    wire.Search | wire.Get | wire.Explain | wire.Sync | wire.Warm | wire.Reindex | wire.Embed | wire.Status
)


class BadRequest(MemdError):
    """The request makes no sense; the message says what to send instead."""


class DeniedSession(MemdError):
    """What is asked for is not for this session."""


class ConnectedClient:
    """What the daemon remembers of one client."""

    def __init__(self) -> None:
        self._turns: dict[
            str, asyncio.Semaphore
        ] = {}  # by agent: one that is slow holds up no search of another

    @contextlib.asynccontextmanager
    async def turn(self, agent: str) -> AsyncIterator[None]:
        """Bounds how many of the client's searches an agent is at."""
        turn = self._turns.setdefault(agent, asyncio.Semaphore(AT_WORK))
        with spent("waiting for its turn"):
            await turn.acquire()
        try:
            yield
        finally:
            turn.release()


class Control(msgspec.Struct, frozen=True):
    """What the daemon does at its owner's word."""

    stop: Callable[[], None]  # as SIGTERM does
    reload: Callable[
        [], Awaitable[tuple[str, ...]]
    ]  # as SIGHUP does; the settings that were not in force before


class Handlers:
    """Answers requests from what the daemon built."""

    def __init__(self, agents: Agents, facts: Facts, control: Control, slow: Slow | None = None) -> None:
        self._agents = agents
        self._facts = facts
        self._control = control
        self._slow = Slow() if slow is None else slow
        self._warmed: dict[tuple[str, str], None] = {}  # in the order they came
        self._changes: set[asyncio.Task[wire.Reply]] = set()  # that are under way, whoever asked for them
        self._is_closed = False

    def of_client(self) -> Callable[[wire.Request], Awaitable[wire.Reply]]:
        """Answers the requests of one more client."""
        return partial(self.handle, client=ConnectedClient())

    async def handle(self, request: wire.Request, *, client: ConnectedClient | None = None) -> wire.Reply:
        """Answer a request; whatever goes wrong becomes a Failure, and the connection lives."""
        if isinstance(request, wire.Reload | wire.Embed):
            reply = await self._to_its_end(request)
        else:
            reply = await self._attempt(request, client or ConnectedClient())
        if isinstance(reply, wire.Failure) and reply.code == "unavailable" and not _is_private(request):
            # What is broken, and where, is for the owner.
            return wire.Failure(code=reply.code, message="memory cannot be asked just now")
        return reply

    async def close(self) -> None:
        """Give up the changes that are under way, and begin no more."""
        self._is_closed = True
        for change in self._changes:
            change.cancel()
        if self._changes:
            await asyncio.wait(self._changes)

    async def _to_its_end(self, request: wire.Reload | wire.Embed) -> wire.Reply:
        """Answer a request that changes something in several steps: a client that goes away does not leave it half done."""
        if self._is_closed or len(self._changes) >= CHANGES:
            return wire.Failure(
                code="unavailable",
                message="memd is stopping" if self._is_closed else "too many changes are under way",
                hint="Try again in a moment.",
            )
        change = asyncio.create_task(self._attempt(request, ConnectedClient()))
        self._changes.add(change)
        change.add_done_callback(self._changes.discard)
        return await asyncio.shield(change)

    async def _attempt(self, request: wire.Request, client: ConnectedClient) -> wire.Reply:
        try:
            for _ in range(RELOADS):
                with contextlib.suppress(StoreClosed):
                    return await self._dispatch(request, client)
                # Its agent was stopped to change its settings: the one that took its place answers.
                await self._agents.settled()
            return await self._dispatch(request, client)
        except DeniedSession as error:
            return wire.Failure(code="denied", message=str(error))
        except BadRequest as error:
            return wire.Failure(code="bad_request", message=str(error))
        except UnknownAgent as error:
            return wire.Failure(code="unknown_agent", message=str(error))
        except StoreDamaged as error:
            return wire.Failure(
                code="unavailable", message=f"an index is damaged: {error}", hint="memd-ctl reindex"
            )
        except (AgentUnavailable, StoreNewer) as error:
            # An agent is begun again by itself; what keeps it from running is rarely over in a moment.
            return wire.Failure(code="unavailable", message=str(error), hint="memd-ctl doctor")
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

    async def _dispatch(self, request: wire.Request, client: ConnectedClient) -> wire.Reply:
        match request:
            case wire.Search():
                return await self._search(request, client)
            case wire.Get():
                return await self._get(request)
            case wire.Explain():
                return await self._explain(request, client)
            case wire.Sync():
                return await self._sync(request)
            case wire.Warm():
                return await self._warm(request)
            case wire.Reindex():
                return await self._reindex(request)
            case wire.Embed():
                return await self._embed(request)
            case wire.Status():
                return await self._status(request)
            case wire.Reload() | wire.Stop():
                return await self._obey(request)
            case _:
                assert_never(request)

    # --- search and get

    async def _search(self, request: wire.Search, client: ConnectedClient) -> wire.Found:
        with self._slow.timed("search", question_chars=len(request.query)) as timed:
            agent, granted = await self._meant_by(request, request.source)
            if agent is None or isinstance(granted, scope.Denied):
                return wire.Found(scope_denied=True)
            question = _question(agent, granted, request)
            timed.agent = agent.id
            async with client.turn(agent.id):
                answer = await agent.backend.search(question)
            found = _found(agent, granted, answer, request.max_chars)
            timed.facts |= {"backend": answer.backend, "mode": answer.mode, "hits": len(found.results)}
            return found

    async def _explain(self, request: wire.Explain, client: ConnectedClient) -> wire.Explanation:
        agent, granted = await self._meant_by(request, request.source)
        if agent is None or isinstance(granted, scope.Denied):
            return wire.Explanation(found=wire.Found(scope_denied=True))
        question = _question(agent, granted, request)
        async with client.turn(agent.id):
            answer, trace = await agent.backend.explain(question)
        told = {"found": _found(agent, granted, answer), **msgspec.structs.asdict(trace)}
        return msgspec.convert(told, wire.Explanation, from_attributes=True)

    async def _meant_by(
        self, request: _OfAnAgent, source: wire.Source | None = None
    ) -> tuple[RunningAgent | None, scope.Access]:
        """The agent that a request means, and what it may see of it; None for an agent that is not the session's."""
        key = request.session_key
        try:
            with spent("waiting for its agent"):
                agent = await self._agents.meant_by(request.agent, key)
        except ForeignSession as foreign:
            log.info("scope.denied", agent=None, reason=str(foreign))
            return None, scope.Denied(str(foreign))
        except AgentUnavailable as unavailable:
            # Who may not ask is not told that there is no answer either.
            decided = _access(unavailable.agent_id, unavailable.left_out.settings, key, source)
            if isinstance(decided, scope.Denied):
                return None, decided
            raise
        return agent, _access(agent.id, agent.settings, key, source)

    async def _get(self, request: wire.Get) -> wire.Note:
        if request.start_line < 1 or (request.lines is not None and request.lines < 1):
            raise BadRequest("start_line and lines count from 1")
        if request.max_chars is not None and request.max_chars < LEAST_CHARS:
            raise BadRequest(f"max_chars is {request.max_chars}; it must be {LEAST_CHARS} or more")
        missing = wire.Note(path=request.path, missing=True, start_line=request.start_line)
        with self._slow.timed("get") as timed:
            agent, granted = await self._meant_by(request)
            if agent is None or isinstance(granted, scope.Denied):
                return missing
            timed.agent = agent.id
            excerpt = await agent.backend.get(
                request.path,
                start_line=request.start_line,
                lines=min(request.lines or MAX_LINES, MAX_LINES),
                kinds=granted.kinds,
                max_chars=min(request.max_chars or MAX_CHARS, MAX_CHARS),
            )
            if excerpt is None:
                return missing
            # Only here: what is not indexed is no name of a file, but whatever a model has written in its place.
            timed.facts |= {"path": request.path, "chars": len(excerpt.text)}
        return wire.Note(
            path=request.path,
            text=excerpt.text,
            start_line=excerpt.start_line,
            end_line=excerpt.end_line,
            next_line=excerpt.next_line,
            max_chars=agent.settings.limits.max_injected_chars,
            total_lines=excerpt.total_lines,
        )

    # --- sync

    async def _all_meant_by(
        self, request: wire.Sync | wire.Reindex | wire.Embed | wire.Status
    ) -> list[RunningAgent]:
        """The agent named, or every one; for a session its own alone.

        Raises:
            DeniedSession: the session may see nothing of it.
        """
        if request.agent is None and request.session_key is None:
            await self._agents.settled()
            running = list(self._agents.all().values())
            if not running and not isinstance(request, wire.Status):
                for agent_id, left_out in self._agents.left_out().items():
                    raise AgentUnavailable(agent_id, left_out)
            return running
        agent, granted = await self._meant_by(request)
        if agent is None or isinstance(granted, scope.Denied):
            raise DeniedSession("this session may not use this memory")
        return [agent]

    async def _sync(self, request: wire.Sync) -> wire.SyncReport | wire.Failure:
        await self._try_those_left_out(request)
        agents = await self._all_meant_by(request)
        if not _is_private(request):
            raise DeniedSession("only its owner may have memory brought up to date")
        report = await self._sync_of(agents, request)
        if isinstance(report, wire.SyncReport) and request.agent is None and request.session_key is None:
            report = _with_left_out(report, self._agents.left_out())
        return report

    async def _try_those_left_out(self, request: wire.Sync) -> None:
        """Whoever asks for all to be up to date may have mended what was in the way."""
        left_out = self._agents.left_out()
        wanted = [each for name, each in left_out.items() if request.agent in {None, name}]
        if wanted and request.session_key is None:
            await RequestTimeouts(REVIVE_MS).spend(*(each.try_again() for each in wanted))

    async def _sync_of(
        self, agents: Sequence[RunningAgent], request: wire.Sync
    ) -> wire.SyncReport | wire.Failure:
        tickets = [agent.sync.request(force=request.force) for agent in agents]
        if not request.wait:
            return await _report(agents)
        patience = RequestTimeouts(request.patience_ms)
        passes = await patience.spend(
            *(_settled(agent, ticket) for agent, ticket in zip(agents, tickets, strict=True))
        )
        if passes is None:
            return wire.Failure(
                code="timed_out",
                message="not all text is searchable yet; indexing goes on",
                hint="memd-ctl status shows how far it is.",
            )
        if request.vectors:
            await patience.spend(*(agent.sync.wait_for_vectors() for agent in agents))
        return await _report(agents, passes)

    async def _warm(self, request: wire.Warm) -> wire.SyncReport:
        agent, granted = await self._meant_by(request)
        if agent is None or isinstance(granted, scope.Denied):
            return wire.SyncReport()
        key = (agent.id, request.session_key)
        if key in self._warmed:
            return await _report([agent]) if granted.direct else wire.SyncReport()
        passes = await RequestTimeouts(WARM_MS).spend(agent.sync.settled(agent.sync.request()))
        self._warmed[key] = None
        while len(self._warmed) > WARM_KEYS:
            del self._warmed[next(iter(self._warmed))]
        return await _report([agent], passes or ()) if granted.direct else wire.SyncReport()

    async def _reindex(self, request: wire.Reindex) -> wire.ReindexReport:
        agents = await self._all_meant_by(request)
        if not _is_private(request):
            raise DeniedSession("only its owner may have memory indexed anew")
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
            asks=[
                agent.id
                for agent, cost in zip(agents, costs, strict=True)
                if agent.queue is not None and agent.queue.asks_before(cost.to_embed)
            ],
        )

    async def _obey(self, request: wire.Reload | wire.Stop) -> wire.Reloaded | wire.Stopping:
        if request.session_key is not None:
            # Nor one that nobody else reads along: it concerns all agents.
            raise DeniedSession("only the owner may do this")
        if isinstance(request, wire.Stop):
            self._control.stop()
            return wire.Stopping(pid=os.getpid())
        try:
            changed = await self._control.reload()
        except ConfigError as error:
            return wire.Reloaded(config=self._facts.config, error=str(error))
        return wire.Reloaded(config=self._facts.config, changed=list(changed))

    async def _embed(self, request: wire.Embed) -> wire.EmbedReport:
        agents = await self._all_meant_by(request)
        if not _is_private(request):
            raise DeniedSession("only its owner may say how memory is embedded")
        served = _served(agents, request.action)
        match request.action:
            case "pause":
                # Not only that of the model that is wanted: what is written meanwhile would go out to the one before.
                await _each(queue.pause(agent.id) for agent in agents for queue in agent.queues)
            case "resume":
                for agent in agents:
                    agent.supply.ask_again()  # also one that has no queue, since it never answered
                await _each(queue.resume(agent.id) for agent in agents for queue in agent.queues)
            case "confirm":
                await _each(queue.confirm(agent_id) for agent_id, queue in served.items())
            case "batch_on":
                batches = {
                    id(one): one for queue in served.values() if (one := queue.bulk.batches) is not None
                }
                if not batches:
                    raise BadRequest("there are no batch jobs: the provider has none")
                await _each(one.turn_on() for one in batches.values())
            case _:
                assert_never(request.action)
        return wire.EmbedReport(
            agents={
                agent.id: embedding(
                    agent.queue,
                    agent.id,
                    use_cache=agent.settings.cache.enabled,
                    trouble=agent.supply.trouble,
                )
                for agent in agents
            }
        )

    async def _status(self, request: wire.Status) -> wire.StatusReport:
        is_of_all = request.agent is None and request.session_key is None
        left_out = self._agents.left_out() if is_of_all else {}
        agents: list[RunningAgent] = []
        try:
            agents = await self._all_meant_by(request)
        except DeniedSession:
            pass
        except AgentUnavailable as unavailable:
            left_out = {unavailable.agent_id: unavailable.left_out}
        told = await asyncio.gather(*(self._status_of(agent) for agent in agents))
        by_id = dict(zip([agent.id for agent in agents], told, strict=True))
        report = self._facts.report(
            {
                **by_id,
                **{name: left_out_status(each.settings, each.reason) for name, each in left_out.items()},
            }
        )
        return report if request.session_key is None else for_session(report, is_private=_is_private(request))

    async def _status_of(self, agent: RunningAgent) -> wire.AgentStatus:
        """How an agent is; one that cannot tell is no reason to tell nothing of the others.

        Raises:
            StoreClosed: another one is in its place by now.
        """
        try:
            return await agent_status(agent, self._slow.searches(agent.id))
        except StoreClosed:
            await self._agents.settled()
            if self._agents.all().get(agent.id) is not agent:
                raise
            reason = "its index is closed; start memd again with `memd-ctl service restart`"
        except MemdError as trouble:
            reason = str(trouble)
        except Exception:
            log.exception("server.status_failed", agent=agent.id)
            reason = "memd failed at telling how it is; its log has the details"
        return left_out_status(agent.settings, reason)


class RequestTimeouts:
    """How long a caller waits in all, over several waits."""

    def __init__(self, patience_ms: int | None) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = None if patience_ms is None else loop.time() + patience_ms / 1000

    async def spend(self, *waits: Awaitable[T]) -> list[T] | None:
        """The results of all, or None where there was not enough time.

        Raises:
            the first failure of any, once all have ended: nobody is left waiting for what another failed at.
        """
        try:
            async with asyncio.timeout_at(self._deadline):
                done = await asyncio.gather(*waits, return_exceptions=True)
        except TimeoutError:
            return None
        for outcome in done:
            if isinstance(outcome, BaseException):
                raise outcome
        return [outcome for outcome in done if not isinstance(outcome, BaseException)]


def _served(agents: Sequence[RunningAgent], action: wire.EmbedAction) -> dict[str, EmbeddingQueue]:
    """What embeds for each agent, where that is known.

    Raises:
        BadRequest: nobody embeds for any, so that there is nothing to say.
    """
    if not any(agent.supply.embeds for agent in agents):
        raise BadRequest("nothing is embedded: there is no embedding provider")
    served = {agent.id: agent.queue for agent in agents if agent.queue is not None}
    if not served and action != "resume":
        raise BadRequest("nothing is embedded yet: the embedding provider has not answered")
    return served


async def _each(wishes: Iterable[Awaitable[None]]) -> None:
    """Carry out all; one that will not survive a restart keeps no other from being carried out.

    Raises:
        MemdError: the first failure.
    """
    failures = [one for one in await asyncio.gather(*wishes, return_exceptions=True) if one is not None]
    for failure in failures:
        raise failure


def _question(
    agent: RunningAgent, granted: scope.Granted, request: wire.Search | wire.Explain
) -> BackendQuestion:
    query = agent.settings.query
    max_results = query.max_results if request.max_results is None else request.max_results
    min_score = query.min_score if request.min_score is None else request.min_score
    if not 1 <= max_results <= MAX_RESULTS:
        raise BadRequest(f"max_results is {max_results}; it must be 1 to {MAX_RESULTS}")
    if not 0 <= min_score <= 1:
        raise BadRequest(f"min_score is {min_score}; it must be 0 to 1")
    if isinstance(request, wire.Search) and (request.max_chars or 0) < 0:
        raise BadRequest("max_chars counts characters; 0 means as many as there are")
    return BackendQuestion(
        text=request.query,
        kinds=granted.kinds,
        max_results=max_results,
        min_score=min_score,
        today=_day(request.now),
    )


def _day(now: str | None) -> date:
    """The day on which a question is asked, as this machine counts days.

    Raises:
        BadRequest: it is no day or moment.
    """
    if now is None:
        return datetime.now(LocalZone()).date()
    try:
        asked_at = datetime.fromisoformat(now)
        return (asked_at if asked_at.tzinfo is None else asked_at.astimezone(LocalZone())).date()
    except (ValueError, OverflowError):
        raise BadRequest(
            f"now is {now[:40]!r}; it must be a day or a moment, such as 2026-02-09 or 2026-02-09T18:30+01:00"
        ) from None


def _access(
    agent_id: str, settings: AgentSettings, key: str | None, source: wire.Source | None
) -> scope.Access:
    decided = scope.access(settings.scope, key, agent=agent_id, source=source, sources=settings.sources)
    if isinstance(decided, scope.Denied):
        log.info("scope.denied", agent=agent_id, reason=decided.reason)
    return decided


def _is_private(request: wire.Request) -> bool:
    """Whether the owner asks, or a conversation that nobody else reads along."""
    return request.session_key is None or session_key.parse(request.session_key).is_owner_private


async def _settled(agent: RunningAgent, ticket: int) -> PassReport:
    try:
        return await agent.sync.settled(ticket)
    except PassFailed as failure:
        raise PassFailed(f"agent {agent.id}: {failure}") from failure


def _found(
    agent: RunningAgent, granted: scope.Granted, answer: BackendAnswer, max_chars: int | None = 0
) -> wire.Found:
    citations = is_cited(agent.settings.citations, direct=granted.direct)
    most = agent.settings.limits.max_injected_chars if max_chars is None else max_chars
    hits = clamp(answer.hits, most, footer if citations else lambda _: "") if most else answer.hits
    return wire.Found(
        results=[
            wire.Hit(**msgspec.structs.asdict(hit), citation=citation(hit) if citations else None)
            for hit in hits
        ],
        backend=answer.backend,
        provider=answer.provider,
        model=answer.model,
        mode=answer.mode,
        fallback=answer.fallback is not None,
        fallback_from=None if answer.fallback is None else answer.fallback.instead_of,
        fallback_reason=_fallback_reason(answer, granted),
        citations=citations,
        max_chars=most,
        omitted=len(answer.hits) - len(hits),
        stale=answer.stale,
        # A reason may name directories, which are no business of a group.
        degraded=[
            wire.Degraded(part=one.part, reason=one.reason if granted.direct else "its owner can see why")
            for one in answer.degraded
        ],
    )


def _fallback_reason(answer: BackendAnswer, granted: scope.Granted) -> str | None:
    if answer.fallback is None:
        return None
    return answer.fallback.reason if granted.direct else "its owner can see why"


def _with_left_out(report: wire.SyncReport, left_out: Mapping[str, LeftOut]) -> wire.SyncReport:
    reasons = [f"agent {name} cannot run: {each.reason}" for name, each in left_out.items()]
    if not reasons:
        return report
    told = "; ".join([*([report.reason] if report.reason else []), *reasons])
    return msgspec.structs.replace(report, reason=told)


async def _report(agents: Sequence[RunningAgent], passes: Sequence[PassReport] = ()) -> wire.SyncReport:
    counts = [await agent.sync.counts() for agent in agents]
    waiting = sum(count.waiting for count, agent in zip(counts, agents, strict=True) if agent.embeds)
    embedding = [agent for agent in agents if not agent.sync.vectors_rest]
    keyword_only = [
        agent.supply.trouble for agent in embedding if agent.queue is None and agent.supply.trouble
    ]
    troubles = [
        trouble
        for agent in embedding
        if agent.queue is not None and (trouble := agent.queue.trouble_of(agent.id)) is not None
    ]
    notes = [
        note
        for agent in embedding
        if agent.queue is not None and (note := agent.queue.note_of(agent.id)) is not None
    ]
    return wire.SyncReport(
        files=sum(count.files for count in counts),
        chunks=sum(count.chunks for count in counts),
        changed=sum(one.changed for one in passes),
        removed=sum(one.removed for one in passes),
        took_s=max((one.took_s for one in passes), default=0.0),
        vectors="waiting" if waiting else "complete",
        waiting_chunks=waiting,
        reason="; ".join(dict.fromkeys([*troubles, *keyword_only]))
        or ("; ".join(dict.fromkeys(notes)) or "embedding is under way" if waiting else None),
    )
