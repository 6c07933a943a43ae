"""What a daemon costs while nothing happens: processor time, and how often it wakes up."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import msgspec

from tests.benchmarks import notes
from tests.benchmarks.figures import Figure
from tests.daemon.process import Daemon

SECONDS = 60.0
CHUNKS = 2_000
AGENTS = 20  # with a workspace each
SETTLED_S = 15.0  # what is put off until nothing else goes on is done by then

# The plain way to be told of changed files.
_WATCHING = """
import asyncio, sys
from watchfiles import awatch

async def watch():
    async for _ in awatch(*sys.argv[1:]):
        pass

asyncio.run(watch())
"""


class Spent(msgspec.Struct, frozen=True):
    """What a process took of the machine until now."""

    cpu_s: float
    wakeups: (
        int | None
    )  # how often a thread of it that still runs went to sleep; None: the system does not tell


def measure(home: Path, seconds: float = SECONDS) -> Iterator[Figure]:
    """A daemon with some agents, and a process that only watches the same directories, both left alone at once."""
    daemon = Daemon(home)
    workspaces = [daemon.workspace]
    for number in range(1, AGENTS):
        workspaces.append(home / f"workspace-{number}")
        with daemon.config.open("a", encoding="utf-8") as config:
            config.write(f'[agents.other{number}]\nworkspace = "{workspaces[-1]}"\n')
    for workspace in workspaces:
        notes.generate(workspace, chunks=CHUNKS // AGENTS)
    with daemon, daemon.client(timeout=None) as client, _watcher(workspaces) as watcher:
        client.sync()
        client.close()
        time.sleep(SETTLED_S)
        processes = (daemon.process.pid, watcher.pid)
        before = [spent_by(pid) for pid in processes]
        time.sleep(seconds)
        after = [spent_by(pid) for pid in processes]
    mine, theirs = (end.cpu_s - start.cpu_s for start, end in zip(before, after, strict=True))
    woke = ""
    if after[0].wakeups is not None and before[0].wakeups is not None:
        woke = f"; {(after[0].wakeups - before[0].wakeups) / seconds:.1f} wake-ups a second"
    yield Figure(
        name=f"idle for {seconds:.0f} s, processor",
        unit="ms",
        memd=1000 * mine,
        baseline=1000 * theirs,
        note=f"{AGENTS} agents; {100 * mine / seconds:.2f} % of a core{woke}",
    )


@contextmanager
def _watcher(directories: list[Path]) -> Iterator[subprocess.Popen[bytes]]:
    with subprocess.Popen([sys.executable, "-c", _WATCHING, *map(str, directories)]) as process:
        try:
            yield process
        finally:
            process.terminate()


def spent_by(pid: int) -> Spent:
    """What a process has spent so far."""
    if not Path("/proc/self/task").is_dir():
        printed = subprocess.run(
            ["ps", "-o", "cputime=", "-p", str(pid)], check=True, stdout=subprocess.PIPE
        ).stdout
        minutes, _, seconds = printed.decode().strip().rpartition(":")
        return Spent(60 * float(minutes.rpartition(":")[2] or 0) + float(seconds), None)
    # Fields 14 and 15 of proc_pid_stat(5), after the name in brackets, in which anything may stand.
    fields = Path(f"/proc/{pid}/stat").read_text("utf-8", "replace").rpartition(")")[2].split()
    switches = sum(
        int(thread.joinpath("status").read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
        for thread in Path(f"/proc/{pid}/task").iterdir()
    )
    return Spent((int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK"), switches)
