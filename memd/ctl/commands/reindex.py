"""memd-ctl reindex: build the index anew beside the old one."""

from memd.ctl.call import Call
from memd.ctl.output.humanize import counted
from memd.ctl.output.terminal import Outcome
from memd_client.messages import ReindexReport

_READS_S = 600.0


def run(call: Call) -> Outcome:
    """Ask for it, or for what it would cost."""
    options = call.options
    # A dry run reads and cuts every file before it answers.
    with call.client(_READS_S) if options.dry_run else call.client() as memd:
        report = memd.reindex(agent=options.agent, force=options.force, dry_run=options.dry_run)
    return Outcome(report, text(report, force=options.force))


def text(report: ReindexReport, *, force: bool) -> str:
    """What happens, or what would."""
    agents = ", ".join(report.agents) or "no agent"
    if not report.dry_run:
        again = " and every chunk embedded again" if force else ""
        return (
            f"Rebuilding {agents}: every file is read{again}; the old index answers meanwhile.\n"
            "memd-ctl status shows when it is done."
        )
    cost = (
        f"{counted(report.to_embed, 'chunk')} would be embedded, about {counted(report.tokens, 'token')}"
        if report.to_embed
        else "nothing would be embedded"
    )
    return (
        f"{agents}: {counted(report.files, 'file')}, {counted(report.chunks, 'chunk')}; "
        f"{counted(report.cached, 'vector')} of them {'is' if report.cached == 1 else 'are'} kept, {cost}."
        f"{_confirmation(report)}"
    )


def _confirmation(report: ReindexReport) -> str:
    if not report.asks:
        return ""
    return (
        f"\nThat is more than remote.confirm_above_chunks: the rebuild of {', '.join(report.asks)} would wait for"
        " `memd-ctl embed confirm`, and the old index answer meanwhile."
    )
