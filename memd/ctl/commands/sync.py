"""memd-ctl sync: bring the index up to date."""

from memd.ctl.call import Call
from memd.ctl.daemon import catch_up
from memd.ctl.output.humanize import counted, duration, one_line, visible
from memd.ctl.output.terminal import Outcome
from memd_client.messages import SyncReport


def run(call: Call) -> Outcome:
    """Ask for it, and wait as long as was asked for."""
    options = call.options
    if options.no_wait:
        with call.client() as memd:
            report = memd.sync(agent=options.agent, force=options.force, wait=False)
        return Outcome(report, f"Asked for. Until then: {_searchable(report)}.")
    report = catch_up.sync(
        call.client,
        call.screen,
        agent=options.agent,
        force=options.force,
        vectors=not options.no_vectors,
        timeout_s=options.timeout,
    )
    return Outcome(report, text(report))


def text(report: SyncReport) -> str:
    """What is searchable, what was done for it, and how far vectors are."""
    work = f"{report.changed:,} indexed again, {report.removed:,} removed, {duration(report.took_s)}"
    return f"{_searchable(report)} ({work}).\n{_vectors(report)}"


def _searchable(report: SyncReport) -> str:
    return f"{counted(report.files, 'file')}, {counted(report.chunks, 'chunk')} searchable"


def _vectors(report: SyncReport) -> str:
    reason = visible(one_line(report.reason)) if report.reason else ""
    if report.vectors == "complete":
        return f"No vectors: {reason}." if reason else "Vectors are complete."
    return f"Vectors: {counted(report.waiting_chunks, 'chunk')} waiting{f': {reason}' if reason else ''}."
