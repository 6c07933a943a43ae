"""When a burst of marks is over: two numbers and some arithmetic, no clock."""


class Debouncer:
    """Waits for quiet, but not for ever.

    Args:
        quiet_s: This long after the last mark, the work is due.
        cap_s: And at the latest this long after the first one, however many follow.
    """

    def __init__(self, *, quiet_s: float, cap_s: float) -> None:
        self._quiet_s = quiet_s
        self._cap_s = cap_s
        self._first: float | None = None
        self._last = 0.0

    def mark(self, now: float) -> None:
        """Something happened at this time, in seconds of any clock that never goes back."""
        if self._first is None:
            self._first = now
        self._last = now

    def due_at(self) -> float | None:
        """When the work is due; None where nothing happened since clear()."""
        return None if self._first is None else min(self._last + self._quiet_s, self._first + self._cap_s)

    def clear(self) -> None:
        """The work begins: what happens from now on is another burst."""
        self._first = None
