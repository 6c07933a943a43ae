"""Aligns periodic timers, so that the process wakes once for all of them."""

from collections.abc import Callable

Clock = Callable[[], float]
"""A clock that is injected: seconds, monotonic or Unix time, as its parameter says."""

ClockNs = Callable[[], int]
"""Likewise, in nanoseconds."""

# Milliseconds are what event loops count in. Whoever was woken by a beat, and rounds, must not wait for it again: a wait
# of less is none, and would be repeated until the beat is past.
_RESOLUTION_S = 0.001


def until_next_tick_s(now: float, period_s: float) -> float:
    """Seconds until the next multiple of a period: more than a millisecond, and about one period at most.

    Timers with the same period wake at the same moment, so the processor can sleep in between.

    Args:
        now: Seconds of a clock that all timers share.
        period_s: In seconds; more than a few milliseconds.
    """
    left_s = period_s - now % period_s
    return left_s if left_s > _RESOLUTION_S else left_s + period_s
