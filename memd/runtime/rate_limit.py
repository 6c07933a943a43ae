"""How often something is told: once in a while, with the number of those that were not."""


class RateLimiter:
    """Lets one of many through in a while, each kind by itself."""

    def __init__(self, every_s: float = 10.0) -> None:
        """Nothing was told yet.

        Args:
            every_s: Seconds from one to the next that is told. A person can follow a log of six lines a minute.
        """
        self._every_s = every_s
        self._told: dict[str, tuple[float, int]] = {}  # kind -> when one was, and how many were not since

    def left_out(self, kind: str, now: float) -> int | None:
        """How many were left out before this one, which is told; None: so is this one.

        Args:
            kind: One of few: each is remembered.
            now: Seconds, monotonic.
        """
        before = self._told.get(kind)
        if before is not None and now - before[0] < self._every_s:
            self._told[kind] = before[0], before[1] + 1
            return None
        self._told[kind] = now, 0
        return 0 if before is None else before[1]
