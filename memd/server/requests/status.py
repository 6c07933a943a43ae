"""Answers `status`."""

import asyncio

import msgspec
import structlog

from memd.agent.agents import Agents, AgentUnavailable, RunningAgent
from memd.errors import MemdError
from memd.server.request_times import RequestTimes
from memd.server.requests.caller import Caller, DeniedSession
from memd.server.status.agent import agent_status, left_out_status
from memd.server.status.process import ProcessFacts
from memd.store.errors import StoreClosed
from memd_client import messages as wire

log = structlog.get_logger()


async def status(
    request: wire.Status, caller: Caller, agents: Agents, facts: ProcessFacts, times: RequestTimes
) -> wire.StatusReport:
    """Report on the daemon and on the agents that are meant, as far as the caller may know.

    Raises:
        UnknownAgent.
        StoreClosed: an agent was replaced meanwhile; ask again.
    """
    left_out = agents.left_out() if caller.means_all(request.agent) else {}
    running: list[RunningAgent] = []
    try:
        running = await caller.agents(request.agent)
    except DeniedSession:
        pass
    except AgentUnavailable as unavailable:
        left_out = {unavailable.agent_id: unavailable.left_out}
    statuses = await asyncio.gather(*(_agent_status(agent, agents, times) for agent in running))
    by_id = {agent.id: one for agent, one in zip(running, statuses, strict=True)}
    by_id |= {name: left_out_status(one.settings, one.reason) for name, one in left_out.items()}
    report = facts.report(by_id)
    return report if caller.key is None else _for_session(report, is_private=caller.is_private)


async def _agent_status(agent: RunningAgent, agents: Agents, times: RequestTimes) -> wire.AgentStatus:
    """The status of an agent; where that fails, the reason in its place, so that the others are still reported.

    Raises:
        StoreClosed: another one is in its place by now.
    """
    try:
        return await agent_status(agent, times.searches(agent.id))
    except StoreClosed:
        await agents.settled()
        if agents.all().get(agent.id) is not agent:
            raise
        reason = "its index is closed; start memd again with `memd-ctl service restart`"
    except MemdError as trouble:
        reason = str(trouble)
    except Exception:
        log.exception("server.status_failed", agent=agent.id)
        reason = "memd failed at telling how it is; its log has the details"
    return left_out_status(agent.settings, reason)


def _for_session(report: wire.StatusReport, *, is_private: bool) -> wire.StatusReport:
    """What of a report a session is told: that it works, and what it works with; the rest where only the owner reads along."""
    if is_private:
        # They may name other agents.
        return msgspec.structs.replace(report, config_error=None, config_waiting=[], config_digest="")
    return msgspec.structs.replace(
        report,
        pid=0,
        uptime_s=0.0,
        socket="",
        config=None,
        config_error=None,
        config_waiting=[],
        config_digest="",
        cache=wire.Health(ok=report.cache.ok),
        damaged=[],
        memory=None,
        agents={agent_id: _hide_details(status) for agent_id, status in report.agents.items()},
    )


def _hide_details(status: wire.AgentStatus) -> wire.AgentStatus:
    fallback = status.backend_fallback
    return wire.AgentStatus(
        workspace="",
        backend=status.backend,
        provider=status.provider,
        model=status.model,
        files=0,
        chunks=0,
        vectors=wire.Vectors(),
        dirty=0,
        skipped={},
        keyword=wire.Health(ok=status.keyword.ok),
        vector=wire.VectorHealth(
            ok=status.vector.ok, enabled=status.vector.enabled, available=status.vector.available
        ),
        watcher=wire.Health(ok=status.watcher.ok),
        provider_health=wire.Health(ok=status.provider_health.ok),
        store_bytes=0,
        store=wire.Health(ok=status.store.ok),
        backend_fallback=None
        if fallback is None
        else msgspec.structs.replace(fallback, reason="its owner can see why"),
    )
