"""memd-ctl sync, reindex and embed: updates the index, rebuilds it, and controls embedding."""

import stat
import time
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import msgspec

from memd.ctl.failures import BUSY
from memd.ctl.invocation import Invocation
from memd.ctl.output import reply_text, terminal
from memd.ctl.output.humanize import counted, duration, estimate, one_line, visible
from memd.ctl.output.reply_text import total_vectors
from memd.ctl.output.terminal import Outcome, Screen, Stage
from memd.runtime.timers import Clock
from memd_client.blocking import Client
from memd_client.errors import MemdClientError, TimedOut
from memd_client.messages import EmbedAction, EmbedReport, ReindexReport, StatusReport, SyncReport

_ANSWER_S = 10.0
_LOOK_S = 1.0  # timeout of a status request for the progress

Connect = Callable[[float | None], Client]
"""A client of the daemon with a timeout in seconds."""


def sync_text(
    connect: Connect,
    screen: Screen,
    *,
    agent: str | None,
    force: bool = False,
    timeout_s: float | None = None,
) -> SyncReport:
    """Index all text that is on disk now, showing the progress."""
    # A daemon that does not answer a status request in time will not do this either.
    with connect(_ANSWER_S) as asked:
        asked.status(agent)

    def work() -> SyncReport:
        with connect(timeout_s) as memd:
            return memd.sync(agent=agent, force=force, vectors=False)

    return _with_progress(connect, screen, work, agent, text_stage)


def sync_vectors(
    connect: Connect, screen: Screen, *, agent: str | None, timeout_s: float | None = None
) -> SyncReport:
    """Wait for vectors as long as they progress, showing the progress."""

    def work() -> SyncReport:
        with connect(timeout_s) as memd:
            return memd.sync(agent=agent)

    return _with_progress(connect, screen, work, agent, _vector_stage)


def sync_all(
    connect: Connect,
    screen: Screen,
    *,
    agent: str | None,
    force: bool,
    vectors: bool,
    timeout_s: float | None,
    clock: Clock = time.monotonic,
) -> SyncReport:
    """Wait for text, then for vectors if wanted.

    Args:
        connect: Creates clients.
        screen: Shows the progress.
        agent: The agent's id; None: all agents.
        force: Whether to read every file, changed or not.
        vectors: Whether to wait for vectors.
        timeout_s: Seconds for both together; None: no limit.
        clock: Returns seconds; must be monotonic.

    Raises:
        TimedOut: no time is left for vectors.
    """
    began = clock()
    text = sync_text(connect, screen, agent=agent, force=force, timeout_s=timeout_s)
    if not vectors or text.vectors == "complete":
        return text
    left_s = None
    if timeout_s is not None:
        left_s = timeout_s - (clock() - began)
        if left_s <= 0:
            raise TimedOut(timeout_s)
    both = sync_vectors(connect, screen, agent=agent, timeout_s=left_s)
    return msgspec.structs.replace(
        both, changed=text.changed + both.changed, removed=text.removed + both.removed, took_s=text.took_s
    )


def _with_progress(
    connect: Connect,
    screen: Screen,
    work: Callable[[], SyncReport],
    agent: str | None,
    stage: Callable[[StatusReport], Stage],
) -> SyncReport:
    """Do the work, and show its progress, which is requested on a connection of its own.

    The work has its own client: closing one waits for its reply, which Ctrl-C must not.
    """
    with connect(_LOOK_S) as watching:

        def look() -> Stage | None:
            with suppress(MemdClientError):
                return stage(watching.status(agent))
            return None

        return terminal.show_progress(screen, work, look)


def text_stage(report: StatusReport) -> Stage:
    """Return how many files of all agents have been read, of those to read."""
    reading = [agent.progress for agent in report.agents.values() if agent.progress is not None]
    if not reading:
        files = sum(agent.files for agent in report.agents.values())
        return Stage("Reading notes", remark=f"{counted(files, 'file')} searchable")
    done, total = sum(one.done for one in reading), sum(one.total for one in reading)
    return Stage("Reading notes", done, total, f"{done:,} of {counted(total, 'file')}")


def _vector_stage(report: StatusReport) -> Stage:
    vectors = total_vectors(report)
    everything = vectors.done + vectors.waiting
    rest = f", {estimate(vectors.eta_s)} to go" if vectors.eta_s is not None else ""
    return Stage("Computing vectors", vectors.done, everything, f"{vectors.done:,} of {everything:,}{rest}")


def run_sync(invocation: Invocation) -> Outcome:
    """Bring the index up to date, and wait for text and vectors unless told otherwise."""
    options = invocation.options
    if options.no_wait:
        with invocation.client() as memd:
            report = memd.sync(agent=options.agent, force=options.force, wait=False)
        return _synced(report, f"Asked for. Until then: {_searchable(report)}.")
    report = sync_all(
        invocation.client,
        invocation.screen,
        agent=options.agent,
        force=options.force,
        vectors=not options.no_vectors,
        timeout_s=options.timeout,
    )
    return _synced(report, sync_text_of(report))


def _synced(report: SyncReport, text: str) -> Outcome:
    """Return the outcome; the files of an agent that cannot run are not searchable, which a script must notice."""
    return Outcome(report, text, left_out_notes(report), exit_code=BUSY if report.left_out else 0)


def left_out_notes(report: SyncReport) -> tuple[str, ...]:
    """Return a remark for each agent that cannot run."""
    return tuple(
        f"Agent {visible(name)} cannot run: {visible(one_line(reason)).removesuffix('.')}. See memd-ctl doctor."
        for name, reason in sorted(report.left_out.items())
    )


def sync_text_of(report: SyncReport) -> str:
    """Return what can be searched, what was indexed, what does not exist, and the progress of vectors."""
    missing = "".join(f"{visible(path)} {_why_unread(path)}\n" for path in report.missing)
    work = f"{report.changed:,} indexed again, {report.removed:,} removed, {duration(report.took_s)}"
    return f"{_searchable(report)} ({work}).\n{missing}{_vectors(report)}"


def _why_unread(path: str) -> str:
    """Return why the daemon has found no directory at a configured path, and how to fix it."""
    try:
        mode = Path(path).stat().st_mode
    except (OSError, ValueError):
        mode = None
    if mode is None or stat.S_ISDIR(mode):
        return "does not exist, so nothing of it could be read."
    names = "Name a directory in the configuration, or a file that ends in .md (of transcripts: .jsonl)."
    if stat.S_ISREG(mode):
        return f"is a file and no directory, so nothing of it could be read. {names}"
    return f"is neither a file nor a directory, so nothing of it could be read. {names}"


def _searchable(report: SyncReport) -> str:
    return f"{counted(report.files, 'file')}, {counted(report.chunks, 'chunk')} searchable"


def _vectors(report: SyncReport) -> str:
    reason = visible(one_line(report.reason)) if report.reason else ""
    if report.vectors == "complete":
        return f"No vectors: {reason}." if reason else "Vectors are complete."
    return f"Vectors: {counted(report.waiting_chunks, 'chunk')} waiting{f': {reason}' if reason else ''}."


_READS_S = 600.0


def run_reindex(invocation: Invocation) -> Outcome:
    """Start a rebuild, or print its estimated cost."""
    options = invocation.options
    # A dry run reads and cuts every file before it replies.
    with invocation.client(_READS_S) if options.dry_run else invocation.client() as memd:
        report = memd.reindex(agent=options.agent, force=options.force, dry_run=options.dry_run)
    return Outcome(report, reindex_text(report, force=options.force))


def reindex_text(report: ReindexReport, *, force: bool) -> str:
    """Return the text about a started rebuild, or the cost found by a dry run."""
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


_ACTIONS: dict[str, EmbedAction] = {
    "pause": "pause",
    "resume": "resume",
    "confirm": "confirm",
    "batch": "batch_on",
}


def run_embed(invocation: Invocation) -> Outcome:
    """Send the action to the daemon, and print the state of embedding."""
    with invocation.client() as memd:
        report = memd.embed(_ACTIONS[invocation.options.action], invocation.options.agent)
    return Outcome(report, embed_text(report))


def embed_text(report: EmbedReport) -> str:
    """Return the state of embedding, one line per agent."""
    return "\n".join(
        f"{visible(agent)}: {visible(one_line(reply_text.state_in_words(embedding)))}"
        for agent, embedding in sorted(report.agents.items())
    )
