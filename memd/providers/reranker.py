"""What all rerankers share: a deadline, and a pause after failures, so that no search fails or waits because of one."""

import asyncio
import math
from abc import ABC, abstractmethod
from collections.abc import Sequence

from memd.config.settings import Rerank
from memd.domain_types import DegradedPart
from memd.errors import MemdError
from memd.runtime.timing import Clock

# After so many failures in a row no search waits for an answer for a while.
MOST_FAILURES = 3
PAUSE_S = 30.0
MAX_TEXT_CHARS = 2_000


class RerankFailed(MemdError):
    """A reranker has not ordered anything. Its words quote no text."""


class BoundedReranker(ABC):
    """Orders texts by how well they answer a question; a search that it fails goes on without it."""

    def __init__(self, name: str, settings: Rerank, clock: Clock, most: int) -> None:
        """Nothing is opened or loaded yet.

        Args:
            name: Stands in each reason.
            settings: Of the agent.
            clock: Tells the monotonic time, in seconds.
            most: Questions that are worked on at a time.
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
        """The texts by their place, the best first.

        Raises:
            MemdError: nobody has ordered them.
        """

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:
        """The texts by their place, the best first; or why nobody has ordered them in time."""
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
        """Why there is no answer by the deadline."""
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
            asking.exception()  # which nobody may be left to hear of

    async def close(self) -> None:
        """Give up what is under way."""
        under_way = set(self._under_way)
        for asking in under_way:
            asking.cancel()
        if under_way:
            await asyncio.wait(under_way)


class NoReranker:
    """Stands for one that cannot be asked: there is no key for it, no address, or no model."""

    candidates = 2  # one alone is not ordered, and nothing would be said

    def __init__(self, reason: str) -> None:
        self._part = DegradedPart("rerank", reason)

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:  # noqa: ARG002 - as a reranker
        """Why nobody orders them."""
        return self._part

    async def close(self) -> None:
        """Nothing is open."""


def by_score(scores: Sequence[float | None]) -> list[int]:
    """Places by their scores, the best first; those without one come last."""
    return sorted(range(len(scores)), key=lambda n: ((score := scores[n]) is None, -(score or 0.0), n))
