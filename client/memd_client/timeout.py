"""How long a call may take, and what that leaves to the daemon."""

import math

# What the timeouts of threads and sockets hold on every platform: 2**63 nanoseconds, nearly 300 years.
_LONGEST_S = 9_000_000_000


def checked_timeout(timeout: float | None) -> float | None:
    """The same timeout, in seconds; None waits for ever.

    Raises:
        ValueError: no call could end in such a time.
    """
    if timeout is None or 0 < timeout <= _LONGEST_S:
        return timeout
    raise ValueError(f"a timeout is None, or more than 0 and at most {_LONGEST_S} seconds, not {timeout!r}")


def patience_ms(left_s: float | None) -> int | None:
    """How long the daemon may take over a sync, so that its report arrives before the caller gives up."""
    return None if left_s is None else max(0, math.floor(left_s * 950) - 200)
