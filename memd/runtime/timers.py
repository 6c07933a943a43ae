"""Periodic timers, debouncing of bursts, and backoff after failures. The caller passes the time."""

from collections.abc import Callable
from random import Random

Clock = Callable[[], float]
"""A clock that is injected: seconds, monotonic or Unix time, as its parameter says."""

ClockNs = Callable[[], int]
"""Likewise, in nanoseconds."""

LONGEST_WAIT_S = 30.0
"""Between two attempts of what shows in an answer while it fails: a pass, a rebuild, the start of an agent."""

# Event loops count in milliseconds, so a timer that rounds may fire just before its tick. The rest of the
# wait would round to zero, and be repeated until the tick has passed.
_RESOLUTION_S = 0.001


def until_next_tick_s(now: float, period_s: float) -> float:
    """Return the seconds until the next multiple of a period: more than a millisecond, and at most about one period.

    Timers with the same period wake at the same moment, so the processor can sleep in between.

    Args:
        now: Seconds of a clock that all timers share.
        period_s: The period in seconds; more than a few milliseconds.
    """
    left_s = period_s - now % period_s
    return left_s if left_s > _RESOLUTION_S else left_s + period_s


class Debouncer:
    """Computes when work is due after a burst of marks.

    Args:
        quiet_s: The work is due so many seconds after the last mark,
        cap_s: and at the latest so many seconds after the first one.
    """

    def __init__(self, *, quiet_s: float, cap_s: float) -> None:
        self._quiet_s = quiet_s
        self._cap_s = cap_s
        self._first: float | None = None
        self._last = 0.0

    def mark(self, now: float) -> None:
        """Add a mark at this time, in seconds of a monotonic clock."""
        if self._first is None:
            self._first = now
        self._last = now

    def due_at(self) -> float | None:
        """Return when the work is due; None if there was no mark since clear()."""
        return None if self._first is None else min(self._last + self._quiet_s, self._first + self._cap_s)

    def clear(self) -> None:
        """Forget the marks: the work begins, and later marks are another burst."""
        self._first = None


def delay_s(failures: int, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> float:
    """Return the wait of an exponential backoff, in seconds.

    The full wait doubles with each failure up to the cap; a random part of its upper half is used, so that
    clients do not retry at the same time ("equal jitter", M. Brooker, Exponential Backoff And Jitter, AWS
    Architecture Blog, 2015).

    Args:
        failures: Consecutive failures, 1 or more.
        rng: Source of the jitter.
        first_s: The full wait after the first failure.
        cap_s: The longest full wait.
    """
    full = min(cap_s, first_s * 2.0 ** min(failures - 1, 30))
    return full / 2 + rng.uniform(0, full / 2)


class Backoff:
    """Counts consecutive failures of one piece of work."""

    def __init__(self, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> None:
        """See delay_s for the parameters."""
        self._rng = rng
        self._first_s = first_s
        self._cap_s = cap_s
        self.failures = 0  # consecutive failures

    def failed(self) -> float:
        """Count one more failure; return the seconds to wait before the next attempt."""
        self.failures += 1
        return delay_s(self.failures, self._rng, first_s=self._first_s, cap_s=self._cap_s)

    def reset(self) -> None:
        """Reset the count, because the work has succeeded."""
        self.failures = 0
