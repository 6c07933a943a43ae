"""Limits how often an event is logged, and counts the suppressed ones."""


class RateLimiter:
    """Allows one event of each kind in a period."""

    def __init__(self, every_s: float = 10.0) -> None:
        """Set the period.

        Args:
            every_s: The period in seconds. A person can follow a log of six lines a minute.
        """
        self._every_s = every_s
        self._told: dict[str, tuple[float, int]] = {}  # kind -> when one was, and how many were not since

    def left_out(self, kind: str, now: float) -> int | None:
        """How many events were suppressed since the last allowed one; None: suppress this one, too.

        Args:
            kind: One of a few kinds: each is stored.
            now: Seconds, monotonic.
        """
        before = self._told.get(kind)
        if before is not None and now - before[0] < self._every_s:
            self._told[kind] = before[0], before[1] + 1
            return None
        self._told[kind] = now, 0
        return 0 if before is None else before[1]
