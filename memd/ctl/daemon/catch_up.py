"""Bringing the index up to date, with a progress bar."""

import time
from collections.abc import Callable
from contextlib import suppress

import msgspec

from memd.ctl.output import terminal
from memd.ctl.output.humanize import counted, estimate
from memd.ctl.output.reply_text import total_vectors
from memd.ctl.output.terminal import Screen, Stage
from memd.runtime.ticks import Clock
from memd_client.blocking import Client
from memd_client.errors import MemdClientError, TimedOut
from memd_client.messages import StatusReport, SyncReport

_ANSWER_S = 10.0
_LOOK_S = 1.0  # a status that takes longer is not worth waiting for

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
    """Have all text that is on disk now made searchable."""
    # A daemon that does not answer even this will not do the work, however long that may take.
    with connect(_ANSWER_S) as asked:
        asked.status(agent)

    def work() -> SyncReport:
        with connect(timeout_s) as memd:
            return memd.sync(agent=agent, force=force, vectors=False)

    return _with_progress(connect, screen, work, agent, text_stage)


def sync_vectors(
    connect: Connect, screen: Screen, *, agent: str | None, timeout_s: float | None = None
) -> SyncReport:
    """Wait for the vectors of what is searchable, as long as they progress."""

    def work() -> SyncReport:
        with connect(timeout_s) as memd:
            return memd.sync(agent=agent)

    return _with_progress(connect, screen, work, agent, _vector_stage)


def sync(
    connect: Connect,
    screen: Screen,
    *,
    agent: str | None,
    force: bool,
    vectors: bool,
    timeout_s: float | None,
    clock: Clock = time.monotonic,
) -> SyncReport:
    """Text first, then vectors where they are wanted.

    Args:
        connect: Makes clients.
        screen: Shows how far it is.
        agent: Whose index; None: every agent's.
        force: Look into every file, changed or not.
        vectors: Whether to wait for them.
        timeout_s: For both together; None: as long as it takes.
        clock: Seconds.

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
    """Do the work, asking meanwhile how far it is on a connection of its own.

    The work has its client for itself: closing one waits for the answer it is owed, and Ctrl-C must not.
    """
    with connect(_LOOK_S) as watching:

        def look() -> Stage | None:
            with suppress(MemdClientError):
                return stage(watching.status(agent))
            return None

        return terminal.show_progress(screen, work, look)


def text_stage(report: StatusReport) -> Stage:
    """What of all agents has been read, of what is to be read."""
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
