"""Answers `explain`: a search, and how each candidate came to its place."""

import msgspec

from memd.server.requests.caller import Caller
from memd.server.requests.search import ConnectedClient, backend_question, found_reply
from memd_client import messages as wire


async def explain(request: wire.Explain, caller: Caller, client: ConnectedClient) -> wire.Explanation:
    """Explain a search to a caller who may make it."""
    allowed = await caller.agent(request.agent, request.source)
    if allowed is None:
        return wire.Explanation(found=wire.Found(scope_denied=True))
    question = backend_question(allowed, request)
    async with client.search_slot(allowed.agent.id):
        answer, trace = await allowed.agent.backend.explain(question)
    fields = {"found": found_reply(allowed, answer), **msgspec.structs.asdict(trace)}
    return msgspec.convert(fields, wire.Explanation, from_attributes=True)
