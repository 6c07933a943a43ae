"""Answers `status`."""

import asyncio

import structlog

from memd.agent.agents import Agents, AgentUnavailable, RunningAgent
from memd.errors import MemdError
from memd.server.request_times import RequestTimes
from memd.server.requests.caller import Caller, DeniedSession
from memd.server.status.report import ProcessFacts, agent_status, for_session, left_out_status
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
    return report if caller.key is None else for_session(report, is_private=caller.is_private)


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
