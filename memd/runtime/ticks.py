"""Moments at which everything that looks at something now and then looks at once."""

# Milliseconds are what event loops count in. Whoever was woken by a beat, and rounds, must not wait for it again: a wait
# of less is none, and would be repeated until the beat is past.
_RESOLUTION_S = 0.001


def until_beat_s(now: float, period_s: float) -> float:
    """How long it is to the next multiple of a period, in seconds; more than a millisecond, and about the period at most.

    Whoever has the same period wakes at the same moment: a process that wakes rarely lets the processor sleep.

    Args:
        now: Of a clock that all share, in seconds.
        period_s: In seconds; more than a few milliseconds.
    """
    left_s = period_s - now % period_s
    return left_s if left_s > _RESOLUTION_S else left_s + period_s
