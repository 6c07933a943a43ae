"""Moments at which everything that looks at something now and then looks at once."""


def until_beat_s(now: float, period_s: float) -> float:
    """How long it is to the next multiple of a period, in seconds; more than 0, and at most the period.

    Whoever has the same period wakes at the same moment: a process that wakes rarely lets the processor sleep.

    Args:
        now: Of a clock that all share, in seconds.
        period_s: In seconds; more than 0.
    """
    return period_s - now % period_s
