"""How far embedding is, for all agents together or in words. Pure."""

from memd.ctl.output.humanize import estimate
from memd_client.messages import StatusReport, Vectors


def total(report: StatusReport) -> Vectors:
    """The vectors of all agents of a report; they wait in one line, so the longest time is that of all."""
    each = [agent.vectors for agent in report.agents.values()]
    return Vectors(
        done=sum(one.done for one in each),
        waiting=sum(one.waiting for one in each),
        eta_s=max((one.eta_s for one in each if one.eta_s is not None), default=None),
    )


def in_words(vectors: Vectors) -> str:
    """How many are there, how many wait, and how long that takes."""
    if vectors.note is not None and not vectors.waiting:
        return f"{vectors.done:,} done; {vectors.note}" if vectors.done else vectors.note
    where = "; on disk, to keep below memory_limit_mb" if vectors.on_disk else ""
    if not vectors.waiting:
        return f"all {vectors.done:,} done{where}" if vectors.done else "none"
    everything = vectors.done + vectors.waiting
    rest = f", {estimate(vectors.eta_s)} to go" if vectors.eta_s is not None else ""
    return f"{vectors.done:,} of {everything:,} done, {vectors.waiting:,} waiting{rest}{where}"
