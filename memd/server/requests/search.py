"""Answers `search` and `explain`: which hits are shown, how much of each, and with which citation."""

import asyncio
import contextlib
from collections.abc import AsyncIterator, Callable, Iterable
from datetime import datetime, time, timedelta, tzinfo
from typing import Any, Literal

import msgspec

from memd.backends.backend import BackendAnswer, BackendQuestion
from memd.domain_types import FoundHit, SearchFilter
from memd.runtime.profiling import timed_part
from memd.runtime.time_zones import wall_now, wall_s, zone_of
from memd.server.request_times import RequestTimes
from memd.server.scope import AllowedAgent, BadRequest, Caller
from memd.text.time_phrases import UnknownTime, read_time
from memd.text.time_spans import TimeSpan
from memd.text.tokens import folded
from memd_client import messages as wire
from memd_client.context.truncate import safe_end

MAX_RESULTS = 50
MAX_FILTERS = 20  # per kind
MAX_FILTER_CHARS = 500
_EPOCH_YEAR = 1970
_BEYOND = 1 << 62  # nanoseconds; SQLite's integers end in 2262
# concurrent searches of one client per agent; more of them wait, while those of other clients do not
AT_WORK = 8

_HIDDEN_REASON = "its owner can see why"  # a reason may name directories, which a group must not see


class ConnectedClient:
    """Limits how many searches of one client run at a time per agent."""

    def __init__(self) -> None:
        # One semaphore per agent, so that a slow agent delays no search of another.
        self._slots: dict[str, asyncio.Semaphore] = {}

    @contextlib.asynccontextmanager
    async def search_slot(self, agent: str) -> AsyncIterator[None]:
        """Hold one of the client's search slots of an agent within the block, waiting until one is free."""
        slots = self._slots.setdefault(agent, asyncio.Semaphore(AT_WORK))
        with timed_part("waiting for its turn"):
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
        if request.strict:
            strong = tuple(hit for hit in answer.hits if not hit.weak)
            answer = msgspec.structs.replace(answer, hits=strong)
        found = found_reply(allowed, answer, request.max_chars)
        timed.facts |= {"backend": answer.backend, "mode": answer.mode, "hits": len(found.results)}
        return found


def backend_question(allowed: AllowedAgent, request: wire.Search | wire.Explain) -> BackendQuestion:
    """Return a request's question, with the agent's configured values filled in.

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
    zone = zone_of(allowed.agent.settings.timezone)
    now = _wall_time(request.now, zone)
    wanted = search_filter(request, now, zone)
    if request.min_score is None and not wanted.is_empty:
        # The configured min_score suits searches of the whole memory; with a filter, the best that passes it
        # is wanted.
        min_score = 0.0
    return BackendQuestion(
        text=request.query,
        kinds=allowed.granted.kinds,
        included=allowed.granted.included,
        max_results=max_results,
        min_score=min_score,
        mode=(request.mode if isinstance(request, wire.Search) else None) or "hybrid",
        now=now,
        wanted=wanted,
        by_time=request.sort == "time",
    )


def search_filter(
    request: wire.Search | wire.Explain | wire.Files, now: datetime, zone: tzinfo
) -> SearchFilter:
    """Return the filter of a request.

    Raises:
        BadRequest: a field is invalid.
    """
    given: dict[str, list[str]] = {"tag": [], "property": [], "path": []}
    for one in request.only[:MAX_FILTERS]:
        name, _, value = one.partition(":")
        is_known = name in given and value.strip() and (name != "property" or "=" in value)
        if not is_known or len(one) > MAX_FILTER_CHARS:
            raise BadRequest(
                f"only has {one[:40]!r}; it must be tag:NAME, property:KEY=VALUE or path:GLOB, of at most {MAX_FILTER_CHARS} characters"
            )
        given[name].append(value)
    if len(request.only) > MAX_FILTERS:
        raise BadRequest(f"only has {len(request.only)} entries, and may have {MAX_FILTERS}")
    since, until = _bound("since", request.since, now, zone), _bound("until", request.until, now, zone)
    if since is not None and until is not None and since.first > until.last:
        raise BadRequest(f"since ({since.first}) is later than until ({until.last})")
    tags = (folded(tag).strip().removeprefix("#").strip("/") for tag in given["tag"])
    properties = (folded(one).partition("=") for one in given["property"])
    return SearchFilter(
        since_s=None if since is None else since.as_seconds[0],
        until_s=None if until is None else until.as_seconds[1],
        since_ns=None if since is None else _unix_ns(since.first, zone),
        until_ns=None if until is None else _unix_ns(until.last, zone) + 999_999_999,
        tags=tuple(dict.fromkeys(tags)),
        properties=tuple((key.strip(), value.strip()) for key, _, value in properties),
        paths=tuple(given["path"]),
    )


def _bound(name: str, given: str | None, now: datetime, zone: tzinfo) -> TimeSpan | None:
    try:
        return None if given is None else read_time(given, now, zone)
    except UnknownTime as error:
        raise BadRequest(f"{name}: {error}") from None


def _unix_ns(at: datetime, zone: tzinfo) -> int:
    """Return a zone's local time in Unix nanoseconds, clamped if it is out of range."""
    try:
        unix_ns = int(at.replace(tzinfo=zone).timestamp()) * 1_000_000_000
    except (OverflowError, ValueError, OSError):
        unix_ns = -_BEYOND if at.year < _EPOCH_YEAR else _BEYOND
    return max(-_BEYOND, min(unix_ns, _BEYOND))


def _wall_time(now: str | None, zone: tzinfo) -> datetime:
    """Return the local time, without a zone, at which a question is asked; for a day without a time, its end.

    Raises:
        BadRequest: it is neither a day nor a time.
    """
    if now is None:
        return wall_now(zone)
    try:
        asked_at = datetime.fromisoformat(now)
        if asked_at.tzinfo is not None:
            return asked_at.astimezone(zone).replace(tzinfo=None)
        return datetime.combine(asked_at, time.max) if len(now) <= len("2026-02-09") else asked_at
    except (ValueError, OverflowError):
        raise BadRequest(
            f"now is {now[:40]!r}; it must be a day or a moment, such as 2026-02-09 or 2026-02-09T18:30+01:00"
        ) from None


def found_reply(allowed: AllowedAgent, answer: BackendAnswer, max_chars: int | None = 0) -> wire.Found:
    """Return the reply with what a backend found.

    Args:
        allowed: The agent, and what the caller may see of it.
        answer: The backend's answer.
        max_chars: The most characters of all snippets together; None: as configured; 0: no limit.
    """
    settings, granted = allowed.agent.settings, allowed.granted
    citations = is_cited(settings.citations, direct=granted.direct)
    most = settings.limits.max_injected_chars if max_chars is None else max_chars
    hits = clamp(answer.hits, most, footer if citations else lambda _: "") if most else answer.hits
    zone = zone_of(settings.timezone)
    fallback = answer.fallback
    return wire.Found(
        results=[
            wire.Hit(**_fields(hit, zone), citation=citation(hit) if citations else None) for hit in hits
        ],
        filtered=True,
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


def _fields(hit: FoundHit, zone: tzinfo) -> dict[str, Any]:
    """Return the wire fields of a hit; its times become one day, or the first and the last day."""
    fields = msgspec.structs.asdict(hit) | {"copies": list(hit.copies)}
    return fields | dated(fields.pop("when"), fields.pop("written_ns"), zone)


def dated(when: tuple[int, int] | None, written_ns: int, zone: tzinfo) -> dict[str, Any]:
    """Return the fields with the date of a hit or file: a day, or the first and the last; empty if nothing is known."""
    if when is None and not written_ns:
        return {}
    days = dict.fromkeys(_day(seconds) for seconds in when or (wall_s(written_ns, zone),))
    return {"date": "/".join(days), "file_date": when is None}


def _day(seconds: int) -> str:
    return (datetime(1970, 1, 1) + timedelta(seconds=seconds)).date().isoformat()  # noqa: DTZ001 - of clocks on the wall


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


STUMP_CHARS = 40  # a shorter part of a snippet is useless


def clamp(hits: Iterable[FoundHit], most: int, footer: Callable[[FoundHit], str]) -> list[FoundHit]:
    """Return the hits that fit, in order; the last may be cut.

    The first hit of which only a stump would fit is dropped with all after it, so that a larger limit only
    appends hits. A hit that does not fit because its footer is long is skipped.

    Args:
        hits: Best first.
        most: Characters (code points) of all snippets with their footers.
        footer: Returns the text below the snippet of a hit.

    Returns:
        The hits; end_line is that of the cut snippet.
    """
    kept: list[FoundHit] = []
    for hit in hits:
        room = most - len(footer(hit))
        if len(hit.snippet) > room and room < STUMP_CHARS <= most:
            continue
        if len(hit.snippet) > room:
            short = _cut(hit, room)
            return kept if short is None else [*kept, short]
        kept.append(hit)
        most = room - len(hit.snippet)
    return kept


def _cut(hit: FoundHit, room: int) -> FoundHit | None:
    """Return the hit cut to `room` characters, at a line end if that keeps half; None if only a stump would remain."""
    if room < STUMP_CHARS:
        return None
    text = hit.snippet[: safe_end(hit.snippet, room)]
    line_end = text.rfind("\n")
    if 2 * line_end >= len(text) and line_end >= STUMP_CHARS:
        text = text[:line_end]
    text = text.rstrip()
    if len(text) < STUMP_CHARS:
        return None
    end_line = _end_line(hit, text)
    return msgspec.structs.replace(hit, snippet=text, end_line=end_line)


def _end_line(hit: FoundHit, text: str) -> int:
    """Return the line on which a cut snippet ends; for a transcript, whose turns may span lines, the hit's own end."""
    if hit.source == "sessions":
        return hit.end_line
    return min(hit.end_line, hit.start_line + text.count("\n"))


Mode = Literal["auto", "on", "off"]


def is_cited(mode: Mode, *, direct: bool) -> bool:
    """Return whether hits get a citation; auto means in direct chats and for the owner."""
    return mode == "on" or (mode == "auto" and direct)


def citation(hit: FoundHit) -> str:
    """Return `path#L3-L9`, or `path#L3` for one line."""
    lines = f"L{hit.start_line}" if hit.start_line == hit.end_line else f"L{hit.start_line}-L{hit.end_line}"
    return f"{hit.path}#{lines}"


def footer(hit: FoundHit) -> str:
    """Return the text that the tools put below a snippet."""
    return f"\n\nSource: {citation(hit)}"
