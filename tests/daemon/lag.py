"""Measures how long the event loop of a daemon is blocked."""

import asyncio
import threading
import time
from collections.abc import Callable
from pathlib import Path

import msgspec

TICK_S = 0.005
BOUNDS_MS = (1.0, 2.0, 5.0, 10.0, 20.0, 50.0, 100.0, 200.0)


class Lag(msgspec.Struct):
    """The delays of a task that is due every few milliseconds."""

    computing: list[int] = msgspec.field(default_factory=lambda: [0] * (len(BOUNDS_MS) + 1))  # by BOUNDS_MS
    longest_computing_ms: float = 0.0
    longest_ready_ms: float = 0.0
    longest_ms: float = 0.0

    def add(self, late_s: float, unscheduled_s: float, computed_s: float) -> None:
        """Count one tick.

        On a machine that has other things to do, a loop is late for reasons that are not its own. What it computed
        itself, or other threads of its process while it waited for them, is certain to be; waiting for the disk is not
        in that, but in the time that it was ready.

        Args:
            late_s: How much later the tick came than it wanted to.
            unscheduled_s: How long the thread of the loop was ready to run meanwhile, and the system ran another.
            computed_s: The processor time that all threads of the process took meanwhile.
        """
        ready_s = max(0.0, late_s - unscheduled_s)
        computing_ms = 1000 * min(ready_s, computed_s)
        self.computing[sum(computing_ms > bound for bound in BOUNDS_MS)] += 1
        self.longest_computing_ms = max(self.longest_computing_ms, computing_ms)
        self.longest_ready_ms = max(self.longest_ready_ms, 1000 * ready_s)
        self.longest_ms = max(self.longest_ms, 1000 * late_s)


def told(lag: Lag) -> str:
    """Format a line per range of delays, and the longest delays."""
    names = [f"up to {bound:g} ms" for bound in BOUNDS_MS] + [f"beyond {BOUNDS_MS[-1]:g} ms"]
    lines = [f"  {name:>15}  {count}" for name, count in zip(names, lag.computing, strict=True) if count]
    return "\n".join(
        [
            f"the event loop of the daemon, looked at {sum(lag.computing)} times, was blocked by what the daemon computed for",
            *lines,
            f"at most {lag.longest_computing_ms:.1f} ms",
            f"by all but a lack of processors for {lag.longest_ready_ms:.1f} ms, by whatever it was for {lag.longest_ms:.1f} ms",
        ]
    )


async def watch(tell: Callable[[Lag], object], unscheduled_s: Callable[[], float]) -> None:
    """Measure for as long as the loop runs.

    Args:
        tell: Given what was seen, at the end.
        unscheduled_s: How long this thread has been ready to run without running, since it began.
    """
    lag = Lag()
    waited, computed = unscheduled_s(), time.process_time()
    try:
        while True:
            due = time.perf_counter() + TICK_S
            await asyncio.sleep(TICK_S)
            late = time.perf_counter() - due
            waited_before, waited = waited, unscheduled_s()
            computed_before, computed = computed, time.process_time()
            lag.add(max(0.0, late), waited - waited_before, computed - computed_before)
    finally:
        tell(lag)


def unscheduled_s() -> float:
    """Return how long the calling thread has waited for a processor, as Linux counts it; 0 if unknown."""
    try:
        fields = Path(f"/proc/self/task/{threading.get_native_id()}/schedstat").read_bytes().split()
    except FileNotFoundError:
        return 0.0
    return int(fields[1]) / 1e9
