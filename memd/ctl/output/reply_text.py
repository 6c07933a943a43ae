"""Formats replies of the daemon: search results, and the state and progress of embedding. Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import get_args

import msgspec

from memd.ctl.output.humanize import ago, clause, counted, estimate, visible
from memd.ctl.output.terminal import Paint
from memd_client.messages import BatchStatus, Embedding, Found, Hit, StatusReport, Vectors

_INDENT = "    "


def hits_text(hits: Sequence[Hit], paint: Paint) -> str:
    """Format each hit as ``path:start-end  score`` with its indented snippet, separated by empty lines."""
    return "\n\n".join(f"{hit_headline(hit, paint)}\n{indented_snippet(hit.snippet)}" for hit in hits)


def hit_headline(hit: Hit, paint: Paint) -> str:
    """Format the position and score of a hit."""
    place = visible(f"{hit.path}:{hit.start_line}-{hit.end_line}")
    scale = " on a scale of its own" if hit.own_scale else ""
    weak = ", weak" if hit.weak else ""
    # The name of a daily note contains its date.
    is_told = hit.date is not None and hit.date not in hit.path
    date = f"  {hit.date}{' (of the file)' if hit.file_date else ''}" if is_told else ""
    gone = ", superseded" if hit.superseded else ""
    if gone and hit.superseded_by:
        gone += visible(f" by {hit.superseded_by}")
    also = f"  also in {visible(', '.join(hit.copies))}" if hit.copies else ""
    return f"{paint(place, 'cyan')}  {paint(f'{hit.score:.3f}{scale}{weak}{gone}{date}{also}', 'dim')}"


def indented_snippet(snippet: str) -> str:
    """Indent a snippet; empty lines get no trailing blanks."""
    lines = visible(snippet).rstrip("\n").split("\n")
    return "\n".join(f"{_INDENT}{line}".rstrip() for line in lines)


SCOPE_DENIED = (
    "This session may not search this agent's memory: the scope rules of the configuration deny it."
)


def answer_notes(found: Found) -> tuple[str, ...]:
    """Return remarks on an answer: missing parts, and stand-ins."""
    if found.scope_denied:
        return (SCOPE_DENIED,)
    remarks = ["something written just now is not in these results yet"] if found.stale else []
    remarks += [f"{one.part.replace('_', ' ')}: {clause(one.reason)}" for one in found.degraded]
    if found.fallback:
        reason = f": {clause(found.fallback_reason)}" if found.fallback_reason else ""
        from memd.config.settings import Embedder  # noqa: PLC0415 - an eighth of the time of memd-ctl search

        is_provider = found.fallback_from in get_args(Embedder)
        stand_in = found.provider if is_provider else found.backend
        remarks.append(f"{stand_in} answered instead of {found.fallback_from}{reason}")
    if found.results and all(hit.weak for hit in found.results):
        remarks.append("nothing in memory is likely to answer this; these hits are the closest there are")
    joined = visible("; ".join(remarks))
    said = [f"Note: {joined}{'' if joined.endswith('?') else '.'}"] if remarks else []
    return (*([] if found.results else ["No hits."]), *said)


def total_vectors(report: StatusReport) -> Vectors:
    """Sum the vectors of all agents; since they share one queue, the longest estimate is that of all.

    Those of an agent without a provider are left out: they were made with an earlier one, and none of its searches uses them.
    """
    each = [agent.vectors for agent in report.agents.values() if agent.provider != "none"]
    return Vectors(
        done=sum(one.done for one in each),
        waiting=sum(one.waiting for one in each),
        eta_s=max((one.eta_s for one in each if one.eta_s is not None), default=None),
    )


def vectors_in_words(vectors: Vectors) -> str:
    """Format done and waiting vectors, with an estimate of the time."""
    if vectors.note is not None and not vectors.waiting:
        return f"{vectors.done:,} done; {vectors.note}" if vectors.done else vectors.note
    where = "; on disk, to keep below memory_limit_mb" if vectors.on_disk else ""
    if not vectors.waiting:
        return f"all {vectors.done:,} done{where}" if vectors.done else "none"
    everything = vectors.done + vectors.waiting
    rest = f", {estimate(vectors.eta_s)} to go" if vectors.eta_s is not None else ""
    return f"{vectors.done:,} of {everything:,} done, {vectors.waiting:,} waiting{rest}{where}"


_IN_WORDS = {
    "working": "working",
    "backing_off": "waiting to try again",
    "stopped": "stopped",
    "paused": "paused",
    "waiting_for_confirmation": "waiting for your confirmation",
    "none": "nothing is embedded",
}


def state_in_words(embedding: Embedding) -> str:
    """Format state, next attempt and reason on one line."""
    said = _IN_WORDS.get(embedding.state, embedding.state)
    if embedding.next_try_s is not None:
        said = f"{said} in {estimate(embedding.next_try_s)}"
    return f"{said}: {embedding.reason}" if embedding.reason else said


def embedding_troubles(embedding: Embedding, reported: Iterable[str] = ()) -> Iterator[tuple[str, str]]:
    """Return the problems of embedding as (part, message).

    Args:
        embedding: The reported state.
        reported: The reasons that are printed for other parts, such as the provider and the store.
    """
    # A provider that has refused may have failed in another way since: the reason of the stop stays with the stop.
    is_reported = _beginning(embedding.reason or "") in map(_beginning, reported)
    if embedding.state in {"paused", "waiting_for_confirmation"}:
        yield "embedding", state_in_words(embedding)
    elif embedding.state != "working":
        if not is_reported:
            yield "embedding", state_in_words(embedding)
        elif embedding.next_try_s is not None:
            yield "embedding", f"the next attempt is in {estimate(embedding.next_try_s)}"
        elif embedding.state == "stopped":
            yield (
                "embedding",
                "stopped; `memd-ctl embed resume` asks the provider again, as does a changed key",
            )
    elif embedding.reason:
        yield "embedding", embedding.reason


def _beginning(reason: str) -> str:
    """Return what a reason says before any advice, which differs between the parts."""
    return reason.partition(". ")[0]


def batch_in_words(status: BatchStatus, now: float) -> str:
    """Format on one line whether batch jobs are used, which are running and which have failed.

    Args:
        status: The reported status.
        now: Unix time.
    """
    if status.files_left:
        left = counted(status.files_left, "file")
        status = msgspec.structs.replace(status, files_left=0)
        return f"{batch_in_words(status, now)}; {left} of ended jobs not deleted at the provider's yet, tried again"
    when = "" if status.at is None else f", {ago(now - status.at)}"
    why = "" if status.reason is None else f": {status.reason}"
    if not status.on:
        return (
            f"off after {counted(status.failures, 'failure')}{when}{why}; plain requests do their work;"
            " `memd-ctl embed batch on` turns them on again"
        )
    if status.failures or why:
        return f"on; {status.failures} of {status.limit} failures{when}{why}"
    if status.jobs:
        return f"on, {counted(status.jobs, 'job')} under way with {counted(status.texts, 'text')}"
    return "on"
