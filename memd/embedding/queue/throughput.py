"""How many texts get their vectors in a second, however many requests are under way at once. Pure."""

import math

MEMORY_S = 30.0  # what is longer past counts for less than a third


class Throughput:
    """Texts by the time that passed while anything was asked for; breaks do not count."""

    def __init__(self) -> None:
        self._in_flight = 0
        self._since = 0.0  # of the clock: the last answer, or the request that ended a break
        self._texts = 0.0
        self._seconds = 0.0

    @property
    def per_s(self) -> float | None:
        """Texts in a second, of late; None: nothing was answered yet."""
        return self._texts / self._seconds if self._seconds > 0 else None

    def asked(self, now: float) -> None:
        """A request was sent."""
        if not self._in_flight:
            self._since = now
        self._in_flight += 1

    def answered(self, texts: int, now: float) -> None:
        """A request has ended; with 0 texts if it failed."""
        self._in_flight -= 1
        passed_s = max(1e-6, now - self._since)
        kept = math.exp(-passed_s / MEMORY_S)
        # What passed counts for less the longer ago it is, from its beginning to its end: however long one request
        # hung, it is forgotten as soon as any other.
        counted_s = MEMORY_S * (1 - kept)
        self._texts = kept * self._texts + texts * counted_s / passed_s
        self._seconds = kept * self._seconds + counted_s
        self._since = now
