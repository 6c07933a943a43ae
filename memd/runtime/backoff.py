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
