"""What a daemon takes of the machine, looked at while it works, and whether that stays as it is."""

import os
import statistics
from collections.abc import Callable, Sequence
from itertools import combinations
from pathlib import Path

import msgspec

from tests.benchmarks.memory import resident_bytes

GROWTH = 0.25  # of what is usual, once it has settled: what the allocator keeps of rebuilds is most of that
GROWTH_BYTES = 24_000_000  # or so much, which a small daemon may take for its buffers
PEAK = 1.0  # what a rebuild may take beside, as a share of the usual: it holds a second matrix, and what it writes
PEAK_BYTES = 100_000_000
MORE_OPEN = 16  # descriptors or threads: a rebuild opens another index
LOG_SHARE = 1.5  # of the index: the swap of a rebuild writes all of it to the log at once
LOG_BYTES = 64_000_000


class Vitals(msgspec.Struct, frozen=True):
    """At a moment."""

    at_s: float  # since the load began
    resident: int  # bytes
    worker: int = 0  # bytes that the embedding worker holds; 0: there is none
    descriptors: int = 0
    threads: int = 0
    index: int = 0  # bytes of its file
    log: int = 0  # bytes of the log beside that
    cpu_s: float = 0.0  # processor time since the daemon began
    worker_cpu_s: float = 0.0  # of the worker that runs just now


def look(at_s: float, pid: int, index: Path) -> Vitals:
    """How a daemon is now.

    Args:
        at_s: The moment.
        pid: Of the daemon.
        index: The file of its only agent's index.
    """
    workers = _children(pid)
    return Vitals(
        at_s,
        resident_bytes(pid),
        round(sum(map(_if_it_runs(resident_bytes), workers))),
        len(_entries(Path(f"/proc/{pid}/fd"))),
        len(_entries(Path(f"/proc/{pid}/task"))),
        _size(index),
        _size(Path(f"{index}-wal")),
        _cpu_s(pid),
        sum(map(_if_it_runs(_cpu_s), workers)),
    )


def slope(times: Sequence[float], amounts: Sequence[float]) -> float:
    """How fast an amount grows, for each unit of time, whatever single samples say.

    The median of the slopes between any two samples. Source: Theil, A rank-invariant method of linear and polynomial
    regression analysis, 1950; Sen, JASA 63, 1968.
    """
    pairs = combinations(zip(times, amounts, strict=True), 2)
    slopes = [(later - before) / (end - begin) for (begin, before), (end, later) in pairs if end > begin]
    return statistics.median(slopes) if slopes else 0.0


def settled(vitals: Sequence[Vitals], since_s: float) -> list[Vitals]:
    """Those of the last three quarters: by then everything was loaded, and asked at least once.

    Args:
        vitals: In the order of time.
        since_s: The moment from which nothing has a reason to grow. On a busy machine it comes late, and may come never.
    """
    return [one for one in vitals[len(vitals) // 4 :] if one.at_s >= since_s]


class Trend(msgspec.Struct, frozen=True):
    """An amount over the time after everything has settled, in bytes or pieces; over all of the time, where nothing has."""

    usual: float  # the median
    most: float
    growth: float  # by its slope, from the first to the last of them; 0 where nothing has settled


def trend(vitals: Sequence[Vitals], since_s: float, amount: Callable[[Vitals], float]) -> Trend:
    """How an amount went; see settled."""
    late = settled(vitals, since_s)
    if not late:
        amounts = [float(amount(one)) for one in vitals]
        return Trend(statistics.median(amounts), max(amounts), 0.0)
    # A worker that has nothing to do is ended, and takes nothing then.
    late = [one for one in late if amount(one)] or late
    times, amounts = [one.at_s for one in late], [float(amount(one)) for one in late]
    return Trend(statistics.median(amounts), max(amounts), slope(times, amounts) * (times[-1] - times[0]))


def unbounded(vitals: Sequence[Vitals], since_s: float) -> list[str]:
    """What grows and should not, a sentence each; see settled."""
    problems = []
    for name, amount in (("resident memory", _resident), ("memory of the worker", _worker)):
        seen = trend(vitals, since_s, amount)
        if seen.growth > max(GROWTH * seen.usual, GROWTH_BYTES):
            problems.append(
                f"{name} grew by {seen.growth / 1e6:.0f} MB, from {(seen.usual) / 1e6:.0f} MB usually"
            )
        if seen.most > seen.usual + max(PEAK * seen.usual, PEAK_BYTES):
            problems.append(
                f"{name} was {seen.most / 1e6:.0f} MB at a time, where {seen.usual / 1e6:.0f} MB are usual"
            )
    for name, pieces in (("descriptors", _descriptors), ("threads", _threads)):
        seen = trend(vitals, since_s, pieces)
        if seen.growth > MORE_OPEN:
            problems.append(f"{name} grew by {seen.growth:.0f}, from {seen.usual:.0f} usually")
    overflowing = [one for one in vitals if one.log > LOG_SHARE * one.index + LOG_BYTES]
    if overflowing:
        one = max(overflowing, key=_log)
        problems.append(
            f"the log of the index was {one.log / 1e6:.0f} MB beside {one.index / 1e6:.0f} MB of index"
        )
    return problems


def described(vitals: Sequence[Vitals], since_s: float) -> list[str]:
    """Lines for a person; see settled."""
    lines = []
    for name, amount in (("the daemon", _resident), ("its worker", _worker)):
        seen = trend(vitals, since_s, amount)
        lines.append(
            f"resident memory of {name}: {seen.usual / 1e6:.0f} MB usually, {seen.most / 1e6:.0f} MB at most,"
            f" {seen.growth / 1e6:+.1f} MB by its slope since it settled"
        )
    files, threads = trend(vitals, since_s, _descriptors), trend(vitals, since_s, _threads)
    last = vitals[-1]
    span_s = last.at_s - vitals[0].at_s
    took_s = last.cpu_s - vitals[0].cpu_s
    tenths = [f"{one.resident / 1e6:.0f}" for one in vitals[:: max(1, len(vitals) // 10)]]
    return [
        *lines,
        f"of the daemon, in MB, as time went on: {' '.join(tenths)}",
        (
            f"descriptors: {files.usual:.0f} usually, {files.most:.0f} at most, {files.growth:+.0f} by slope;"
            f" threads: {threads.usual:.0f}, {threads.most:.0f}, {threads.growth:+.0f}"
        ),
        (
            f"the index is {last.index / 1e6:.0f} MB; its log {last.log / 1e6:.1f} MB, at most"
            f" {max(map(_log, vitals)) / 1e6:.0f} MB"
        ),
        f"processor time: {took_s:.0f} s of the daemon ({took_s / max(span_s, 0.001):.2f} of a core)",
    ]


def _resident(one: Vitals) -> int:
    return one.resident


def _worker(one: Vitals) -> int:
    return one.worker


def _descriptors(one: Vitals) -> int:
    return one.descriptors


def _threads(one: Vitals) -> int:
    return one.threads


def _log(one: Vitals) -> int:
    return one.log


def _children(pid: int) -> list[int]:
    """The processes that a process has started; Linux alone tells of another one's."""
    found: list[int] = []
    for task in _entries(Path(f"/proc/{pid}/task")):
        try:
            found += map(int, Path(f"/proc/{pid}/task/{task}/children").read_text().split())
        except OSError:
            continue  # a thread that is over
    return found


def _if_it_runs(look_at: Callable[[int], int | float]) -> Callable[[int], float]:
    """What a look says of a process; 0 of one that has ended meanwhile."""

    def looked(pid: int) -> float:
        try:
            return look_at(pid)
        except (OSError, IndexError, ValueError):
            return 0

    return looked


def _entries(directory: Path) -> list[str]:
    try:
        return [entry.name for entry in directory.iterdir()]
    except OSError:
        return []


def _size(file: Path) -> int:
    try:
        return file.stat().st_size
    except OSError:
        return 0


def _cpu_s(pid: int) -> float:
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")
