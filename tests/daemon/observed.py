"""Measures what a running daemon uses and logs, from outside."""

import os
import resource
import subprocess
import time
from pathlib import Path

from tests.daemon.process import Daemon
from tests.wait import until

WATCHED_S = 1.0  # for which the processor time of a daemon is looked at
QUIET = 0.25  # of a core: what a daemon in trouble, which is asked all the while, may take


def open_files(daemon: Daemon) -> set[int]:
    """Return the number of its open descriptors."""
    return {int(entry.name) for entry in Path(f"/proc/{daemon.process.pid}/fd").iterdir()}


def spent_s(daemon: Daemon) -> float:
    """Return its processor time in seconds."""
    fields = Path(f"/proc/{daemon.process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def ends_within_s(daemon: Daemon) -> float:
    """Return the processor time that stopping takes; unlike wall time, it does not depend on a busy machine."""
    assert isinstance(daemon.process, subprocess.Popen), "only the time of own children is known"
    children, spent = _children_s(), spent_s(daemon)
    assert daemon.stop() == 0
    return _children_s() - children - spent


def _children_s() -> float:
    """Return the processor time of all ended child processes."""
    used = resource.getrusage(resource.RUSAGE_CHILDREN)
    return used.ru_utime + used.ru_stime


def rests(daemon: Daemon) -> bool:
    """Return whether it is nearly idle for a while."""
    began, before = time.monotonic(), spent_s(daemon)
    until(lambda: time.monotonic() - began > WATCHED_S, 10)
    return spent_s(daemon) - before < QUIET * (time.monotonic() - began)


def warnings(daemon: Daemon) -> list[str]:
    """Return its warnings, except those about slow work, which a busy machine causes."""
    lines = daemon.printed().splitlines()
    return [line for line in lines if '"level":"info"' not in line and ".was_slow" not in line]
