"""Answers `get` and `tags`: lines of an indexed file, and the labels of notes."""

from collections.abc import Iterable

from memd.backends.backend import MAX_CHARS
from memd.config.settings import included_path
from memd.server.request_times import RequestTimes
from memd.server.scope import BadRequest, Caller
from memd.store.labels import LabelCount
from memd_client import messages as wire

MAX_LINES = 120
MAX_NAMES = 1000  # tags of an agent, and as many links
LEAST_CHARS = 100  # smallest max_chars: with less, reading a file takes too many requests


async def get(request: wire.Get, caller: Caller, times: RequestTimes) -> wire.Note:
    """Read lines; a missing file and one that the caller may not see give the same reply.

    Raises:
        BadRequest: a field is out of its range.
        UnknownAgent, AgentUnavailable, FilesBlocked.
    """
    if request.start_line < 1 or (request.lines is not None and request.lines < 1):
        raise BadRequest("start_line and lines count from 1")
    if request.max_chars is not None and request.max_chars < LEAST_CHARS:
        raise BadRequest(f"max_chars is {request.max_chars}; it must be {LEAST_CHARS} or more")
    missing = wire.Note(path=request.path, missing=True, start_line=request.start_line)
    with times.timed("get") as timed:
        allowed = await caller.agent(request.agent)
        if allowed is None:
            return missing
        timed.agent = allowed.agent.id
        path = _without_dot(request.path)
        of = included_path(path, allowed.agent.settings.include)
        if of is not None and of[0].name not in allowed.granted.included:
            return missing
        excerpt = await allowed.agent.backend.get(
            path,
            start_line=request.start_line,
            lines=min(request.lines or MAX_LINES, MAX_LINES),
            kinds=allowed.granted.kinds,
            max_chars=min(request.max_chars or MAX_CHARS, MAX_CHARS),
        )
        if excerpt is None:
            return missing
        # Logged only for indexed files: any other path may be arbitrary text written by a model.
        timed.facts |= {"path": path, "chars": len(excerpt.text)}
    return wire.Note(
        path=request.path,
        text=excerpt.text,
        start_line=excerpt.start_line,
        end_line=excerpt.end_line,
        next_line=excerpt.next_line,
        max_chars=allowed.agent.settings.limits.max_injected_chars,
        total_lines=excerpt.total_lines,
    )


def _without_dot(path: str) -> str:
    """Return a path without a leading `./`, as shells complete it; no path of the index begins so."""
    while path.startswith("./"):
        path = path[2:].lstrip("/")
    return path


async def tags(request: wire.Tags, caller: Caller) -> wire.TagsReport:
    """Count the tags and links of the notes that the caller may see.

    Raises:
        DeniedSession: the session may see nothing of this memory.
        UnknownAgent, AgentUnavailable.
    """
    found: dict[str, wire.AgentTags] = {}
    for agent in await caller.agents(request.agent):
        allowed = await caller.agent(agent.id)
        if allowed is not None:
            counts = await allowed.agent.index.label_counts(allowed.granted.kinds, MAX_NAMES)
            found[agent.id] = wire.AgentTags(
                tags=_named(counts.tags), links=_named(counts.links), omitted=counts.omitted
            )
    return wire.TagsReport(agents=found)


def _named(counts: Iterable[LabelCount]) -> list[wire.NameCount]:
    return [wire.NameCount(name=one.name, notes=one.notes, missing=one.is_missing) for one in counts]
