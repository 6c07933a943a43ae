"""Search results as text. Pure."""

from collections.abc import Sequence
from typing import get_args

from memd.config.settings import Embedder
from memd.ctl.output.humanize import clause, visible
from memd.ctl.output.screen import Paint
from memd_client.messages import Found, Hit

_INDENT = "    "


def text(hits: Sequence[Hit], paint: Paint) -> str:
    """Each hit as ``path:start-end  score`` with its snippet indented below, an empty line between two."""
    return "\n\n".join(f"{headline(hit, paint)}\n{indented(hit.snippet)}" for hit in hits)


def headline(hit: Hit, paint: Paint) -> str:
    """Where a hit is, and what it scored."""
    place = visible(f"{hit.path}:{hit.start_line}-{hit.end_line}")
    scale = " on a scale of its own" if hit.own_scale else ""
    return f"{paint(place, 'cyan')}  {paint(f'{hit.score:.3f}{scale}', 'dim')}"


def indented(snippet: str) -> str:
    """A snippet set off from its headline, its empty lines without trailing blanks."""
    lines = visible(snippet).rstrip("\n").split("\n")
    return "\n".join(f"{_INDENT}{line}".rstrip() for line in lines)


def notes(found: Found) -> tuple[str, ...]:
    """What a reader should know of an answer besides its hits."""
    if found.scope_denied:
        return (
            "This session may not search this agent's memory: the scope rules of the configuration deny it.",
        )
    remarks = ["something written just now is not in these results yet"] if found.stale else []
    remarks += [f"{one.part.replace('_', ' ')}: {clause(one.reason)}" for one in found.degraded]
    if found.fallback:
        reason = f": {clause(found.fallback_reason)}" if found.fallback_reason else ""
        is_provider = found.fallback_from in get_args(Embedder)
        stand_in = found.provider if is_provider else found.backend
        remarks.append(f"{stand_in} answered instead of {found.fallback_from}{reason}")
    told = visible("; ".join(remarks))
    said = [f"Note: {told}{'' if told.endswith('?') else '.'}"] if remarks else []
    return (*([] if found.results else ["No hits."]), *said)
