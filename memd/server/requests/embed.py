"""Answers `embed`: pauses, resumes or confirms embedding, or turns batch jobs on again."""

import asyncio
from collections.abc import Awaitable, Iterable, Sequence
from typing import assert_never

from memd.agent.agents import RunningAgent
from memd.embedding.queue.scheduler import EmbeddingQueue
from memd.server.requests.caller import BadRequest, Caller
from memd.server.status.embedding import embedding
from memd_client import messages as wire


async def embed(request: wire.Embed, caller: Caller) -> wire.EmbedReport:
    """Do to the embedding of some agents what their owner asks for.

    Raises:
        BadRequest: there is nothing to do that to.
        DeniedSession, UnknownAgent, AgentUnavailable.
    """
    agents = await caller.agents_to_change(request.agent, "only its owner may say how memory is embedded")
    queues = _queues(agents, request.action)
    match request.action:
        case "pause":
            # Not only that of the model that is wanted: what is written meanwhile would go out to the one before.
            await _all(queue.pause(agent.id) for agent in agents for queue in agent.queues)
        case "resume":
            for agent in agents:
                agent.providers.ask_again()  # also one that has no queue, since it never answered
            await _all(queue.resume(agent.id) for agent in agents for queue in agent.queues)
        case "confirm":
            await _all(queue.confirm(agent_id) for agent_id, queue in queues.items())
        case "batch_on":
            batches = {id(one): one for queue in queues.values() if (one := queue.bulk.batches) is not None}
            if not batches:
                raise BadRequest("there are no batch jobs: the provider has none")
            await _all(one.turn_on() for one in batches.values())
        case _:
            assert_never(request.action)
    return wire.EmbedReport(agents={agent.id: embedding(agent) for agent in agents})


def _queues(agents: Sequence[RunningAgent], action: wire.EmbedAction) -> dict[str, EmbeddingQueue]:
    """The queue of each agent that has one.

    Raises:
        BadRequest: none has, so that there is nothing to act on.
    """
    if not any(agent.providers.embeds for agent in agents):
        raise BadRequest("nothing is embedded: there is no embedding provider")
    queues = {agent.id: agent.queue for agent in agents if agent.queue is not None}
    if not queues and action != "resume":
        raise BadRequest("nothing is embedded yet: the embedding provider has not answered")
    return queues


async def _all(changes: Iterable[Awaitable[None]]) -> None:
    """Make all changes; one that will not survive a restart keeps no other from being made.

    Raises:
        MemdError: the first failure.
    """
    for failure in await asyncio.gather(*changes, return_exceptions=True):
        if failure is not None:
            raise failure
