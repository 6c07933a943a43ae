"""How much memory the daemon takes."""

import subprocess
from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks.figures import Figure
from tests.benchmarks.notes import QUESTIONS
from tests.benchmarks.stage import Stage

SEARCHES = 1000


def measure(stage: Stage) -> Iterator[Figure]:
    """Resident memory of a daemon that has loaded everything, then after many searches.

    One that has just indexed has more, but how much is not memd's alone: the hashing embedder remembers its requests.
    """
    stage.daemon.stop()
    stage.daemon.start()
    stage.client.sync()
    yield _resident("resident, all loaded", stage)
    for number in range(SEARCHES):
        stage.client.search(QUESTIONS[number % len(QUESTIONS)].text)
    yield _resident(f"resident after {SEARCHES} searches", stage)


def _resident(name: str, stage: Stage) -> Figure:
    vectors = stage.corpus.chunks * 384 * 4 / 1e6
    resident = resident_bytes(stage.daemon.process.pid)
    return Figure(name=name, unit="MB", memd=resident / 1e6, note=f"of which vectors {vectors:.0f} MB")


def resident_bytes(pid: int) -> int:
    """Memory that a process holds."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():  # a small system has it, and no ps
        return 1024 * int(status.read_text().partition("VmRSS:")[2].split()[0])
    return 1024 * int(
        subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], check=True, stdout=subprocess.PIPE).stdout
    )
