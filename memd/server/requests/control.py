"""Answers the requests of the owner: `reload`, `stop`, `reindex`, `embed` and `redact`."""

import asyncio
import os
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import assert_never

import msgspec

from memd.agent.agents import RunningAgent
from memd.config.load import ConfigError
from memd.config.settings import Redact
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.server.requests.agent_status import embedding
from memd.server.scope import BadRequest, Caller, DeniedSession
from memd_client import messages as wire


class DaemonControl(msgspec.Struct, frozen=True):
    """How the daemon is stopped and reloaded."""

    stop: Callable[[], None]  # the same as SIGTERM
    # The same as SIGHUP; returns the settings that have changed.
    reload: Callable[[], Awaitable[tuple[str, ...]]]


async def control_daemon(
    request: wire.Reload | wire.Stop, caller: Caller, control: DaemonControl, config: str | None
) -> wire.Reloaded | wire.Stopping:
    """Stop the daemon or reload its configuration.

    Args:
        request: Which of the two.
        caller: Must be the owner.
        control: Stops and reloads the daemon.
        config: The configuration file in use; None: built-in defaults.

    Raises:
        DeniedSession: the request has a session key, even a private one: it concerns all agents.
    """
    if caller.key is not None:
        raise DeniedSession("only the owner may do this")
    if isinstance(request, wire.Stop):
        control.stop()
        return wire.Stopping(pid=os.getpid())
    try:
        changed = await control.reload()
    except ConfigError as error:
        return wire.Reloaded(config=config, error=str(error))
    return wire.Reloaded(config=config, changed=list(changed))


async def answer_private(
    request: wire.Reindex | wire.Embed | wire.RedactText, caller: Caller
) -> wire.ReindexReport | wire.EmbedReport | wire.RedactedText:
    """Answer a request that the owner and private conversations may make.

    Raises:
        BadRequest: there is nothing that it could apply to.
        DeniedSession, UnknownAgent, AgentUnavailable.
    """
    match request:
        case wire.Reindex():
            return await reindex(request, caller)
        case wire.Embed():
            return await embed(request, caller)
        case wire.RedactText():
            return await redact_text(request, caller)


MAX_REDACTED_CHARS = 65_536  # takes tenths of a second


async def redact_text(request: wire.RedactText, caller: Caller) -> wire.RedactedText:
    """Redact a text by the agent's rules, whichever sources its settings redact.

    Raises:
        BadRequest: the text is too long.
        DeniedSession: the conversation is shared, or the session may not use this memory.
        UnknownAgent, AgentUnavailable.
    """
    if len(request.text) > MAX_REDACTED_CHARS:
        raise BadRequest(f"text has {len(request.text)} characters; {MAX_REDACTED_CHARS} are possible")
    if not caller.is_private:
        raise DeniedSession("only its owner may write to memory")
    allowed = await caller.agent(request.agent)
    if allowed is None:
        raise DeniedSession("this session may not use this memory")
    settings = allowed.agent.settings
    text, counts = await asyncio.to_thread(_redacted, settings.redact, request.text)
    return wire.RedactedText(
        text=text,
        counts=counts,
        agent=allowed.agent.id,
        workspace=str(settings.workspace),
        timezone=settings.timezone,
    )


def _redacted(settings: Redact, text: str) -> tuple[str, dict[str, int]]:
    # Imported late: rarely needed at the start, and this function runs on a thread, which may wait for it.
    from memd.redact.redactor import Redactor  # noqa: PLC0415

    found = Redactor(settings).redact(text)
    return found.text, dict(found.counts)


async def reindex(request: wire.Reindex, caller: Caller) -> wire.ReindexReport:
    """Start rebuilds and return at once; a dry run only counts."""
    agents = await caller.agents_to_change(request.agent, "only its owner may have memory indexed anew")
    names = [agent.id for agent in agents]
    if not request.dry_run:
        for agent in agents:
            agent.index_service.rebuild("a reindex was asked for", force=request.force)
        return wire.ReindexReport(agents=names)
    costs = [await agent.index_service.cost(force=request.force) for agent in agents]
    return wire.ReindexReport(
        agents=names,
        dry_run=True,
        files=sum(cost.files for cost in costs),
        chunks=sum(cost.chunks for cost in costs),
        cached=sum(cost.cached for cost in costs),
        to_embed=sum(cost.to_embed for cost in costs),
        tokens=sum(cost.tokens for cost in costs),
        asks=[
            agent.id
            for agent, cost in zip(agents, costs, strict=True)
            if agent.queue is not None and agent.queue.confirmations.asks_before(cost.to_embed)
        ],
    )


async def embed(request: wire.Embed, caller: Caller) -> wire.EmbedReport:
    """Pause, resume or confirm the embedding of some agents, or turn batch jobs on again.

    Raises:
        BadRequest: there is nothing that it could apply to.
        DeniedSession, UnknownAgent, AgentUnavailable.
    """
    agents = await caller.agents_to_change(request.agent, "only its owner may say how memory is embedded")
    queues = _queues(agents, request.action)
    match request.action:
        case "pause":
            # All queues of an agent, not only that of the wanted model: new text would otherwise go to the
            # previous model's provider.
            await _all(queue.pause(agent.id) for agent in agents for queue in agent.queues)
        case "resume":
            for agent in agents:
                agent.providers.ask_again()  # also providers that have no queue, since they never answered
            await _all(queue.resume(agent.id) for agent in agents for queue in agent.queues)
        case "confirm":
            await _all(queue.confirm(agent_id) for agent_id, queue in queues.items())
        case "batch_on":
            batches = {
                id(one): one
                for queue in queues.values()
                if (one := queue.batch_submitter.batches) is not None
            }
            if not batches:
                raise BadRequest("there are no batch jobs: the provider has none")
            await _all(one.turn_on() for one in batches.values())
        case _:
            assert_never(request.action)
    return wire.EmbedReport(agents={agent.id: embedding(agent) for agent in agents})


def _queues(agents: Sequence[RunningAgent], action: wire.EmbedAction) -> dict[str, EmbeddingQueue]:
    """Return the queue of each agent that has one.

    Raises:
        BadRequest: none has one, so the action has no effect.
    """
    if not any(agent.providers.embeds for agent in agents):
        raise BadRequest("nothing is embedded: there is no embedding provider")
    queues = {agent.id: agent.queue for agent in agents if agent.queue is not None}
    if not queues and action != "resume":
        raise BadRequest("nothing is embedded yet: the embedding provider has not answered")
    return queues


async def _all(changes: Iterable[Awaitable[None]]) -> None:
    """Make all changes, even if one of them cannot be stored.

    Raises:
        MemdError: the first failure.
    """
    for failure in await asyncio.gather(*changes, return_exceptions=True):
        if failure is not None:
            raise failure
