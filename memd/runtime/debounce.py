"""Decides when a burst of marks is over. Pure: the caller passes the time."""


class Debouncer:
    """Waits for a quiet moment, for a limited time.

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
        """When the work is due; None if there was no mark since clear()."""
        return None if self._first is None else min(self._last + self._quiet_s, self._first + self._cap_s)

    def clear(self) -> None:
        """Forget the marks: the work begins, and later marks are another burst."""
        self._first = None
