"""Answers `search`; `explain` asks and replies the same way."""

import asyncio
import contextlib
from collections.abc import AsyncIterator
from datetime import date, datetime

import msgspec

from memd.backends.backend import BackendAnswer, BackendQuestion
from memd.backends.truncate import citation, clamp, footer, is_cited
from memd.runtime.local_time import LocalZone
from memd.runtime.timing import spent
from memd.server.request_times import RequestTimes
from memd.server.requests.caller import AllowedAgent, BadRequest, Caller
from memd_client import messages as wire

MAX_RESULTS = 50
AT_WORK = 8  # searches of one client that one agent works on; further ones of a flood wait behind them, and those of other clients do not

_HIDDEN_REASON = "its owner can see why"  # a reason may name directories, which are no business of a group


class ConnectedClient:
    """Bounds how many searches of one client an agent works on at a time."""

    def __init__(self) -> None:
        # By agent: a slow one holds up no search of another.
        self._slots: dict[str, asyncio.Semaphore] = {}

    @contextlib.asynccontextmanager
    async def search_slot(self, agent: str) -> AsyncIterator[None]:
        """Wait for a free slot of an agent, and hold it within the block."""
        slots = self._slots.setdefault(agent, asyncio.Semaphore(AT_WORK))
        with spent("waiting for its turn"):
            await slots.acquire()
        try:
            yield
        finally:
            slots.release()


async def search(
    request: wire.Search, caller: Caller, client: ConnectedClient, times: RequestTimes
) -> wire.Found:
    """Answer a search; a session that may not search gets no hits and `scope_denied`."""
    with times.timed("search", question_chars=len(request.query)) as timed:
        allowed = await caller.agent(request.agent, request.source)
        if allowed is None:
            return wire.Found(scope_denied=True)
        agent = allowed.agent
        question = backend_question(allowed, request)
        timed.agent = agent.id
        async with client.search_slot(agent.id):
            answer = await agent.backend.search(question)
        found = found_reply(allowed, answer, request.max_chars)
        timed.facts |= {"backend": answer.backend, "mode": answer.mode, "hits": len(found.results)}
        return found


def backend_question(allowed: AllowedAgent, request: wire.Search | wire.Explain) -> BackendQuestion:
    """A request with the agent's configured values filled in.

    Raises:
        BadRequest: a field is out of its range.
    """
    query = allowed.agent.settings.query
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
        kinds=allowed.granted.kinds,
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


def found_reply(allowed: AllowedAgent, answer: BackendAnswer, max_chars: int | None = 0) -> wire.Found:
    """The reply with what a backend found.

    Args:
        allowed: The agent, and what the caller may see of it.
        answer: Of its backend.
        max_chars: Of all snippets together; None: the configured number; 0: as many as there are.
    """
    settings, granted = allowed.agent.settings, allowed.granted
    citations = is_cited(settings.citations, direct=granted.direct)
    most = settings.limits.max_injected_chars if max_chars is None else max_chars
    hits = clamp(answer.hits, most, footer if citations else lambda _: "") if most else answer.hits
    fallback = answer.fallback
    return wire.Found(
        results=[
            wire.Hit(**msgspec.structs.asdict(hit), citation=citation(hit) if citations else None)
            for hit in hits
        ],
        backend=answer.backend,
        provider=answer.provider,
        model=answer.model,
        mode=answer.mode,
        fallback=fallback is not None,
        fallback_from=None if fallback is None else fallback.instead_of,
        fallback_reason=None if fallback is None else fallback.reason if granted.direct else _HIDDEN_REASON,
        citations=citations,
        max_chars=most,
        omitted=len(answer.hits) - len(hits),
        stale=answer.stale,
        degraded=[
            wire.Degraded(part=one.part, reason=one.reason if granted.direct else _HIDDEN_REASON)
            for one in answer.degraded
        ],
    )
