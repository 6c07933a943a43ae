"""Answers `sync` and `warm`: brings an index up to date with the disk."""

import asyncio
from collections.abc import Awaitable, Mapping, Sequence
from typing import TypeVar

import msgspec

from memd.agent.agents import Agents, LeftOut, RunningAgent
from memd.indexing.pass_scheduler import PassFailed, PassReport
from memd.server.scope import Caller
from memd.text.memory_paths import as_text
from memd_client import messages as wire

# For agents that failed to start, or start again: their store may be locked for some seconds.
REVIVE_MS = 6000

T = TypeVar("T")


class RequestDeadline:
    """The time that a caller waits in total, over several waits."""

    def __init__(self, timeout_ms: int | None) -> None:
        loop = asyncio.get_running_loop()
        self._deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000

    async def gather(self, *waits: Awaitable[T]) -> list[T] | None:
        """Return all results, or None if time ran out.

        Raises:
            BaseException: the first failure, once all waits have ended, so that none is left running.
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


async def sync(request: wire.Sync, caller: Caller, agents: Agents) -> wire.SyncReport | wire.Failure:
    """Index changed files; wait for it if the request asks for that."""
    if caller.key is None:
        await _try_left_out(request, agents)
    denial = "only its owner may have memory brought up to date"
    meant = await caller.agents_to_change(request.agent, denial)
    if await _follow_links(meant, agents):
        meant = await caller.agents_to_change(request.agent, denial)
    report = await _sync(meant, request)
    if isinstance(report, wire.SyncReport) and caller.means_all(request.agent):
        report = _with_left_out(report, agents.left_out())
    return report


async def _try_left_out(request: wire.Sync, agents: Agents) -> None:
    """Start failed agents again: the caller may have removed the cause."""
    wanted = [each for name, each in agents.left_out().items() if request.agent in {None, name}]
    if wanted:
        await RequestDeadline(REVIVE_MS).gather(*(each.try_again() for each in wanted))


async def _follow_links(meant: Sequence[RunningAgent], agents: Agents) -> bool:
    """Wait for agents that are started again because a configured path leads elsewhere; return whether there were any."""
    links = await asyncio.gather(*(agent.index_service.changed_link() for agent in meant))
    moved = [
        agent for agent, link in zip(meant, links, strict=True) if link is not None and link.now is not None
    ]
    await RequestDeadline(REVIVE_MS).gather(*map(agents.replaced, moved))
    return bool(moved)


async def _sync(agents: Sequence[RunningAgent], request: wire.Sync) -> wire.SyncReport | wire.Failure:
    tickets = [agent.index_service.request(force=request.force) for agent in agents]
    if not request.wait:
        return await sync_report(agents)
    deadline = RequestDeadline(request.patience_ms)
    passes = await deadline.gather(
        *(_wait_for_pass(agent, ticket) for agent, ticket in zip(agents, tickets, strict=True))
    )
    if passes is None:
        return wire.Failure(
            code="timed_out",
            message="not all text is searchable yet; indexing goes on",
            hint="memd-ctl status shows how far it is.",
        )
    if request.vectors:
        await deadline.gather(*(agent.index_service.wait_for_vectors() for agent in agents))
    return await sync_report(agents, passes)


async def _wait_for_pass(agent: RunningAgent, ticket: int) -> PassReport:
    try:
        return await agent.index_service.wait_for_pass(ticket)
    except PassFailed as failure:
        raise PassFailed(f"agent {agent.id}: {failure}", needs_person=failure.needs_person) from failure


def _with_left_out(report: wire.SyncReport, left_out: Mapping[str, LeftOut]) -> wire.SyncReport:
    return msgspec.structs.replace(report, left_out={name: each.reason for name, each in left_out.items()})


async def sync_report(agents: Sequence[RunningAgent], passes: Sequence[PassReport] = ()) -> wire.SyncReport:
    """Return the state of some agents' indexes.

    Args:
        agents: The agents.
        passes: The passes that ran for this request.
    """
    counts = [await agent.index_service.counts() for agent in agents]
    waiting = sum(count.waiting for count, agent in zip(counts, agents, strict=True) if agent.embeds)
    embedding = [agent for agent in agents if not agent.index_service.vectors_suspended]
    queues = [(agent.id, agent.queue) for agent in embedding if agent.queue is not None]
    troubles = [queue.reason_of(agent_id) for agent_id, queue in queues]
    troubles += [agent.providers.reason for agent in embedding if agent.queue is None]
    notes = [queue.note_of(agent_id) for agent_id, queue in queues]
    return wire.SyncReport(
        files=sum(count.files for count in counts),
        chunks=sum(count.chunks for count in counts),
        changed=sum(one.changed for one in passes),
        removed=sum(one.removed for one in passes),
        took_s=max((one.took_s for one in passes), default=0.0),
        vectors="waiting" if waiting else "complete",
        waiting_chunks=waiting,
        reason=_joined(troubles) or (_joined(notes) or "embedding is under way" if waiting else None),
        missing=list(dict.fromkeys(path for agent in agents for path in _missing(agent))),
    )


def _missing(agent: RunningAgent) -> list[str]:
    """Return the configured paths of an agent whose directory does not exist; homes of presets may not be in use."""
    settings = agent.settings
    paths = (settings.workspace, *settings.extra_paths, *settings.sessions.paths)
    configured = {as_text(path.expanduser().absolute()) for path in paths}
    return [origin.path for origin in agent.index_service.missing if origin.path in configured]


def _joined(reasons: Sequence[str | None]) -> str:
    return "; ".join(dict.fromkeys(filter(None, reasons)))


WARM_MS = 5000  # a session waits no longer than this before it begins
WARM_KEYS = 10_000  # session keys that are remembered as warmed


class WarmedSessions:
    """Remembers the sessions whose agents were brought up to date, by (agent, session key); the oldest are forgotten."""

    def __init__(self) -> None:
        self._warmed: dict[tuple[str, str], None] = {}  # oldest first

    async def warm(self, request: wire.Warm, caller: Caller) -> wire.SyncReport:
        """Index changed files on a session's first request; only direct sessions get numbers in the reply."""
        allowed = await caller.agent(request.agent)
        if allowed is None:
            return wire.SyncReport()
        agent, key = allowed.agent, (allowed.agent.id, request.session_key)
        passes = None
        if key not in self._warmed:
            passes = await RequestDeadline(WARM_MS).gather(
                agent.index_service.wait_for_pass(agent.index_service.request())
            )
            self._warmed[key] = None
            while len(self._warmed) > WARM_KEYS:
                del self._warmed[next(iter(self._warmed))]
        report = await sync_report([agent], passes or ()) if allowed.granted.direct else wire.SyncReport()
        return msgspec.structs.replace(report, timezone=agent.settings.timezone)
