"""The base of rerankers: deadlines, and a pause after failures, so that no search fails or waits because of a reranker."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from memd.config.settings import Rerank
from memd.domain_types import DegradedPart
from memd.errors import MemdError
from memd.runtime.timers import Clock

# After this many consecutive failures, searches do not wait for the reranker for a while.
MOST_FAILURES = 3
PAUSE_S = 30.0
MAX_TEXT_CHARS = 2_000


class RerankFailed(MemdError):
    """A reranker failed. The message quotes no text."""


class BoundedReranker(ABC):
    """Orders texts by how well they answer a question; if it fails, searches keep their order."""

    def __init__(self, name: str, settings: Rerank, clock: Clock, most: int) -> None:
        """Create the reranker without opening or loading anything.

        Args:
            name: Its name in reasons.
            settings: The agent's settings.
            clock: Returns monotonic seconds.
            most: The most concurrent questions.
        """
        self.candidates = settings.candidates
        self._name = name
        self._timeout_s = settings.timeout_ms / 1000
        self._clock = clock
        self._most = most
        self._under_way: set[asyncio.Task[list[int]]] = set()
        self._failures = 0
        self._paused_until = -math.inf
        self._reason = ""

    @abstractmethod
    async def ask(self, question: str, texts: Sequence[str]) -> list[int]:
        """Return the indexes of the texts, best first.

        Raises:
            MemdError: there is no order.
        """

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:
        """Return the indexes of the texts, best first, or why there is no order in time."""
        if self._clock() < self._paused_until:
            return DegradedPart("rerank", f"{self._reason}; it is asked again within {PAUSE_S:g} s")
        if len(self._under_way) >= self._most:
            return DegradedPart("rerank", f"{self._name}: earlier requests are not answered yet")
        asking = asyncio.ensure_future(self.ask(question, [text[:MAX_TEXT_CHARS] for text in texts]))
        self._under_way.add(asking)
        asking.add_done_callback(self._ended)
        done, _ = await asyncio.wait({asking}, timeout=self._timeout_s)
        try:
            if not done:
                raise RerankFailed(self.why_late())
            order = asking.result()
        except MemdError as failure:
            self._failed(str(failure))
            return DegradedPart("rerank", str(failure))
        self._failures = 0
        return order

    def why_late(self) -> str:
        """Return why there is no answer by the deadline."""
        return f"{self._name}: no answer within {1000 * self._timeout_s:g} ms"

    def _failed(self, reason: str) -> None:
        self._failures += 1
        self._reason = reason
        if self._failures >= MOST_FAILURES:
            self._failures = 0
            self._paused_until = self._clock() + PAUSE_S

    def _ended(self, asking: asyncio.Task[list[int]]) -> None:
        self._under_way.discard(asking)
        if not asking.cancelled():
            asking.exception()  # retrieves the exception, since no caller may be left

    async def close(self) -> None:
        """Cancel running requests."""
        under_way = set(self._under_way)
        for asking in under_way:
            asking.cancel()
        if under_way:
            await asyncio.wait(under_way)


class NoReranker:
    """Stands in for a reranker without key, address or model."""

    candidates = 2  # with one candidate, nothing would be reported

    def __init__(self, reason: str) -> None:
        self._part = DegradedPart("rerank", reason)

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:  # noqa: ARG002 - as a reranker
        """Return why there is no order."""
        return self._part

    async def close(self) -> None:
        """Do nothing, since nothing is open."""


def by_score(scores: Sequence[float | None]) -> list[int]:
    """Return indexes by score, best first; those without a score come last."""
    return sorted(range(len(scores)), key=lambda n: ((score := scores[n]) is None, -(score or 0.0), n))
