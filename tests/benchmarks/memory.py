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
    kibibytes = _resident_kibibytes(stage.daemon.process.pid)
    return Figure(
        name=name, unit="MB", memd=kibibytes * 1024 / 1e6, note=f"of which vectors {vectors:.0f} MB"
    )


def _resident_kibibytes(pid: int) -> int:
    status = Path(f"/proc/{pid}/status")
    if status.exists():  # a small system has it, and no ps
        return int(status.read_text().partition("VmRSS:")[2].split()[0])
    return int(
        subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], check=True, stdout=subprocess.PIPE).stdout
    )
