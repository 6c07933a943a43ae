"""How long to wait after failures in a row."""

from random import Random

LONGEST_WAIT_S = 30.0
"""Between two attempts of what shows in an answer while it fails: a pass, a rebuild, the start of an agent."""


def delay_s(failures: int, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> float:
    """Exponential backoff with full upper-half jitter, in seconds.

    The wait doubles with each failure up to the cap; a random half of it keeps many waiters from meeting again
    ("equal jitter", M. Brooker, Exponential Backoff And Jitter, AWS Architecture Blog, 2015).

    Args:
        failures: In a row, 1 or more.
        rng: Source of the jitter.
        first_s: The full wait after the first failure.
        cap_s: The longest full wait.
    """
    full = min(cap_s, first_s * 2.0 ** min(failures - 1, 30))
    return full / 2 + rng.uniform(0, full / 2)


class Backoff:
    """Counts the failures in a row of one piece of work."""

    def __init__(self, rng: Random, *, first_s: float = 1.0, cap_s: float = 60.0) -> None:
        """See delay_s for the parameters."""
        self._rng = rng
        self._first_s = first_s
        self._cap_s = cap_s
        self.failures = 0  # in a row

    def failed(self) -> float:
        """Count one more failure; how long to wait before the next attempt, in seconds."""
        self.failures += 1
        return delay_s(self.failures, self._rng, first_s=self._first_s, cap_s=self._cap_s)

    def reset(self) -> None:
        """Count no failures any more: the work has succeeded."""
        self.failures = 0
