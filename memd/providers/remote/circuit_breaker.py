"""Keeps searches quick while a provider does not answer questions."""

from memd.providers.provider import EmbedUnavailable

PATIENCE = 2  # failures in a row before questions are not put any more
PAUSE_S = 10.0


class CircuitBreaker:
    """After some failures in a row, refuses at once for a while; then one question may try again."""

    def __init__(self) -> None:
        self._failures = 0
        self._closed_until = 0.0
        self._last: EmbedUnavailable | None = None

    def check(self, now: float) -> None:
        """Let a question through, or not.

        Raises:
            EmbedUnavailable: the last ones failed a moment ago.
        """
        if self._failures >= PATIENCE and self._last is not None:
            if now < self._closed_until:
                # With its cause: what no waiting mends does not become a trouble in passing.
                raise EmbedUnavailable(str(self._last)) from self._last.__cause__
            self._closed_until = now + PAUSE_S  # the others go on without, until this one has its answer

    def failed(self, failure: EmbedUnavailable, now: float) -> None:
        """A question had no answer."""
        self._failures += 1
        self._last = failure
        self._closed_until = now + max(PAUSE_S, min(failure.retry_after_s or 0.0, 6 * PAUSE_S))

    def succeeded(self) -> None:
        """A question had its answer."""
        self._failures, self._last = 0, None
