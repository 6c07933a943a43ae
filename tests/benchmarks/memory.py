"""How much memory the daemon takes."""

import signal
import subprocess
from collections.abc import Iterator
from pathlib import Path

from memd.config.settings import LEAST_LIMIT_MB
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.notes import QUESTIONS
from tests.benchmarks.stage import Stage
from tests.wait import until

SEARCHES = 1000
LIMITED_SEARCHES = 300


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
    yield from _below_a_limit(stage)


def _below_a_limit(stage: Stage) -> Iterator[Figure]:
    """The same daemon when it may hold as little as can be: here the baseline is itself without a limit."""
    resident_mb = resident_bytes(stage.daemon.process.pid) / 1e6
    in_memory = _searches(stage)
    answers = [stage.client.search(question.text) for question in QUESTIONS]
    settings = stage.daemon.config.read_text(encoding="utf-8")
    _follow(stage, f"{settings}[daemon]\nmemory_limit_mb = {LEAST_LIMIT_MB}\n", on_disk=True)
    on_disk = _searches(stage)
    same = sum(
        stage.client.search(question.text) == answer
        for question, answer in zip(QUESTIONS, answers, strict=True)
    )
    below_mb = resident_bytes(stage.daemon.process.pid) / 1e6
    _follow(stage, settings, on_disk=False)
    yield Figure(
        name="resident, vectors on disk",
        unit="MB",
        memd=below_mb,
        baseline=resident_mb,
        note="baseline: memd with its vectors in memory",
    )
    yield milliseconds(
        "search, vectors on disk",
        on_disk,
        in_memory,
        f"likewise; {same} of {len(QUESTIONS)} answers the same",
    )


def _searches(stage: Stage) -> Samples:
    samples = Samples()
    for number in range(LIMITED_SEARCHES):
        with samples.timed():
            stage.client.search(QUESTIONS[number % len(QUESTIONS)].text)
    return samples


def _follow(stage: Stage, settings: str, *, on_disk: bool) -> None:
    stage.daemon.config.write_text(settings, encoding="utf-8")
    stage.daemon.process.send_signal(signal.SIGHUP)
    until(lambda: stage.client.status().agents["main"].vectors.on_disk is on_disk, 60)


def _resident(name: str, stage: Stage) -> Figure:
    vectors = stage.corpus.chunks * 384 * 4 / 1e6
    resident = resident_bytes(stage.daemon.process.pid)
    return Figure(name=name, unit="MB", memd=resident / 1e6, note=f"of which vectors {vectors:.0f} MB")


def anonymous_bytes(pid: int) -> int | None:
    """Memory that a process holds and no file backs; the rest are pages of programs, which processes share. None: no /proc here."""
    status = Path(f"/proc/{pid}/status")
    return _figure(status, "RssAnon") if status.exists() else None


def _figure(status: Path, name: str) -> int:
    return 1024 * int(status.read_text().partition(f"{name}:")[2].split()[0])


def resident_bytes(pid: int) -> int:
    """Memory that a process holds."""
    status = Path(f"/proc/{pid}/status")
    if status.exists():  # a small system has it, and no ps
        return _figure(status, "VmRSS")
    return 1024 * int(
        subprocess.run(["ps", "-o", "rss=", "-p", str(pid)], check=True, stdout=subprocess.PIPE).stdout
    )
