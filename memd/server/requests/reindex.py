"""Answers `reindex`: has indexes built anew, or says what that would cost."""

from memd.server.requests.caller import Caller
from memd_client import messages as wire


async def reindex(request: wire.Reindex, caller: Caller) -> wire.ReindexReport:
    """Begin the rebuilds, without waiting for them; a dry run only counts."""
    agents = await caller.agents_to_change(request.agent, "only its owner may have memory indexed anew")
    names = [agent.id for agent in agents]
    if not request.dry_run:
        for agent in agents:
            agent.sync.rebuild("a reindex was asked for", force=request.force)
        return wire.ReindexReport(agents=names)
    costs = [await agent.sync.cost(force=request.force) for agent in agents]
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
            if agent.queue is not None and agent.queue.asks_before(cost.to_embed)
        ],
    )
