"""A daemon from its start to its end, with all that happens to it in between."""

import faulthandler
import os
import signal
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd_client import Client, ConnectionLost, DaemonNotRunning, TimedOut
from tests.fakes import hashing_worker
from tests.faults.death import Death, arm
from tests.faults.life import TIMEOUT_S
from tests.faults.mixed.course import AtStart, Event, KillWorker, Life, Rebuild, Reload
from tests.faults.mixed.household import Household
from tests.faults.mixed.tally import Starts, Tally
from tests.faults.process import Ended, Killed, Process
from tests.faults.rounds import Kill, Stop
from tests.faults.verdict import Diverged

LONG_ENOUGH_S = 1.0  # a daemon that has not come to its place of death by then, under load, is asked to stop
_SOON_S = 0.25  # for a first answer: a daemon that has stopped at its place of death gives none
_LONGEST_START_S = 2.0  # of processor time, until a daemon answers
# A process that is told to stop before it listens to signals has done nothing yet.
_IN_ORDER = frozenset({0, -signal.SIGTERM})


@contextmanager
def started(run: Callable[[], int], log: Path, marker: Path) -> Iterator[Process]:
    """A process that is gone afterwards."""
    process = Process(run, log, marker)
    try:
        yield process
    finally:
        process.discard()


def serve(household: Household, death: Death | None) -> int:
    """Be a daemon until a signal or its death; its exit status."""
    household.move_in()
    faulthandler.enable()  # into the log: who crashes is to say where
    provider = hashing_worker.provider(household.directory, hashing_worker.Provider)

    def choose(_: AgentSettings) -> ProviderChoice:
        return ProviderChoice(provider, None)

    fate = arm(death, household.marker) if death is not None else None
    status = daemon.main(
        config=household.config, state_dir=household.state, socket=household.socket, choose=choose
    )
    del fate
    return status


def live(household: Household, life: Life, tally: Tally) -> None:
    """Let a daemon live and end."""
    household.configure(life.form)
    death = life.end if isinstance(life.end, Death) else None
    with started(partial(serve, household, death), household.log, household.marker) as process:
        end = _its_end(household, life, process, tally)
    match end:
        case Killed():
            tally.kills += 1
            tally.in_transaction += bool(end.in_transaction)
            place = _place(life) + (", in a transaction" if end.in_transaction else "")
            tally.places[place] = tally.places.get(place, 0) + 1
        case Ended(status) if status in _IN_ORDER:
            tally.stopped += 1
        case _:
            raise Diverged(f"a daemon ended with {end.status}:\n{tail(household.log)}")


def _place(life: Life) -> str:
    match life.end:
        case Death(database=database, at=at):
            return f"{database}, {at}"
        case AtStart():
            return "at its start"
        case _:
            return "while it serves"


def _its_end(household: Household, life: Life, process: Process, tally: Tally) -> Killed | Ended:
    if isinstance(life.end, AtStart):
        return process.kill_after(life.end.after_ms / 1000, household.databases)
    if not first_answer(household, process, TIMEOUT_S, tally.starts):
        return process.wait(household.databases)
    began = time.monotonic()
    for event in life.events:
        if process.let_be(began + event.after_ms / 1000 - time.monotonic()):
            return process.wait(household.databases)
        _happen(household, event, process, tally)
    match life.end:
        case Kill(after_ms=after_ms):
            return process.kill_after(began + after_ms / 1000 - time.monotonic(), household.databases)
        case Stop(after_ms=after_ms):
            return process.terminate_after(began + after_ms / 1000 - time.monotonic())
        case Death():
            return process.terminate_after(LONG_ENOUGH_S, household.databases)


def _happen(household: Household, event: Event, process: Process, tally: Tally) -> None:
    match event:
        case Reload():
            household.configure(event.form)
            os.kill(process.pid, signal.SIGHUP)
        case KillWorker():
            for worker in hashing_worker.running(household.directory):
                os.kill(worker, signal.SIGKILL)
                tally.workers += 1
        case Rebuild():
            try:
                with Client(household.socket, timeout=_SOON_S) as client:
                    client.reindex(force=event.force)
            except (ConnectionLost, DaemonNotRunning, TimedOut):
                pass  # it has come to its place of death


def first_answer(household: Household, process: Process, timeout_s: float, starts: Starts) -> bool:
    """Wait until a daemon answers; False where it comes to its end before."""
    began = time.monotonic()
    while time.monotonic() - began < timeout_s:
        if process.let_be(0):
            return False
        try:
            with Client(household.socket, timeout=_SOON_S) as client:
                if client.status().pid == process.pid:
                    break
        except (ConnectionLost, DaemonNotRunning, TimedOut):
            process.let_be(0.005)
    else:
        raise Diverged(f"a daemon did not answer in {timeout_s} s:\n{tail(household.log)}")
    starts.after_kills_s.append(time.monotonic() - began)
    computed = _computed_s(process.pid)
    starts.computed_s.append(computed)
    if computed > _LONGEST_START_S:
        raise Diverged(f"a daemon computed for {computed:.1f} s before it answered:\n{tail(household.log)}")
    return True


def _computed_s(pid: int) -> float:
    """The processor time that a process has taken so far; 0 where the system does not tell."""
    stat = Path(f"/proc/{pid}/stat")
    if not stat.exists():
        return 0.0
    fields = stat.read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def tail(log: Path) -> str:
    """The end of what a process printed."""
    return log.read_text("utf-8", "replace")[-4000:]
