"""Embeds questions with one provider: equal questions once, and waiting questions together."""

import asyncio
import hashlib
import time
from collections import OrderedDict
from collections.abc import Hashable, Sequence

import structlog

from memd.embedding.provider_health import ProviderHealth
from memd.errors import MemdError
from memd.providers.provider import (
    EmbedsTogether,
    EmbedTerminal,
    EmbedUnavailable,
    Provider,
    Vector,
    failures_of,
)
from memd.runtime.safe_traceback import safe_message
from memd.runtime.timers import Clock

log = structlog.get_logger()

AT_ONCE = 2  # requests; a provider has as many connections for them, beside those for documents
TOGETHER_FIRST = 16  # questions per request, until the speed of the provider is known
TOGETHER_MOST = 64
CACHED_BYTES = 4 << 20  # of vectors: 2,700 of 384 dimensions, or 340 of 3,072
LONGEST_S = 10.0  # the longest wait of a question while others are answered

Outcome = Vector | EmbedUnavailable | EmbedTerminal


class _Question:
    """A text, and the number of callers that wait for its vector."""

    def __init__(self, key: bytes, text: str) -> None:
        self.key = key
        self.text = text
        self.askers = 0
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()


class QuestionQueue:
    """Embeds questions with one provider, in one vector space.

    Equal questions are embedded once, and not at all if the vector is cached. If the provider supports it, waiting questions are
    sent together, taken from callers in round-robin order. A question waits longer while others are answered, since many questions
    at once are load and no failure.
    """

    def __init__(
        self,
        provider: Provider,
        health: ProviderHealth,
        *,
        longest_s: float = LONGEST_S,
        clock: Clock = time.monotonic,
    ) -> None:
        """Start empty.

        Args:
            provider: Embeds the questions.
            health: Admits questions, and records how requests end.
            longest_s: The longest wait of a question while others are answered.
            clock: Returns seconds, monotonic.
        """
        self.provider = provider
        # Computed once, since isinstance with a protocol takes 20 µs.
        self._takes_several = provider if isinstance(provider, EmbedsTogether) else None
        self._health = health
        self._longest_s = longest_s
        self._clock = clock
        self._waiting: OrderedDict[Hashable, dict[bytes, _Question]] = OrderedDict()  # by asker
        self._unanswered: dict[bytes, _Question] = {}  # waiting or in flight
        self._known: OrderedDict[bytes, Vector] = OrderedDict()  # cached vectors, least recently used first
        self._known_bytes = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._together = TOGETHER_FIRST
        self._answered_at = float("-inf")
        self._is_closed = False

    async def ask(self, text: str, timeout_s: float, asker: Hashable = None) -> Vector:
        """Return the vector of a question, shape (dimensions,), length 1.

        Args:
            text: The question.
            timeout_s: The timeout in seconds; it restarts whenever any question is answered.
            asker: Questions are taken from askers in round-robin order.

        Raises:
            EmbedUnavailable: timeout, or failure of the provider; its cause may be an EmbedTerminal.
        """
        key = hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest()
        if (known := self._known.get(key)) is not None:
            self._known.move_to_end(key)
            return known
        question = self._unanswered.get(key)
        if question is None:
            if self._is_closed:
                raise EmbedUnavailable("the embedding provider is closed")
            question = self._unanswered[key] = _Question(key, text)
            self._waiting.setdefault(asker, {})[key] = question
            self._fill()
        question.askers += 1
        try:
            return _vector_or_raise(await self._awaited(question, timeout_s))
        finally:
            question.askers -= 1
            if not question.askers:
                self._drop(question)

    def close(self) -> None:
        """Fail all waiting questions."""
        self._is_closed = True
        for task in self._under_way:
            task.cancel()
        for question in [*self._unanswered.values()]:
            self._answer_question(question, EmbedUnavailable("the embedding provider is closed"))
        self._waiting.clear()

    async def _awaited(self, question: _Question, timeout_s: float) -> Outcome:
        began = self._clock()
        while True:
            until = min(max(began, self._answered_at) + timeout_s, began + max(timeout_s, self._longest_s))
            left_s = until - self._clock()
            if left_s <= 0:
                waited = f"{self._clock() - began:.1f}".removesuffix(".0")
                raise EmbedUnavailable(f"the question had no vector after {waited} s")
            await asyncio.wait([question.outcome], timeout=left_s)
            if question.outcome.done():
                return question.outcome.result()

    # --- order of questions

    def _fill(self) -> None:
        """Start as many requests as are allowed."""
        takes_several = self._takes_several is not None
        while self._waiting and len(self._under_way) < (AT_ONCE if takes_several else 1):
            some = self._next(self._together if takes_several else 1)
            task = asyncio.create_task(self._put(some))
            self._under_way.add(task)
            task.add_done_callback(self._done)

    def _done(self, task: asyncio.Task[None]) -> None:
        self._under_way.discard(task)
        if not self._is_closed:
            self._fill()

    def _next(self, count: int) -> list[_Question]:
        """Remove and return the next questions, in round-robin order of askers."""
        some: list[_Question] = []
        while self._waiting and len(some) < count:
            asker, questions = next(iter(self._waiting.items()))
            some.append(questions.pop(next(iter(questions))))
            self._waiting.move_to_end(asker)
            if not questions:
                del self._waiting[asker]
        return some

    def _drop(self, question: _Question) -> None:
        """Remove a question that no caller waits for, unless it is in flight."""
        for asker, questions in self._waiting.items():
            if questions.pop(question.key, None) is not None:
                self._unanswered.pop(question.key, None)
                if not questions:
                    del self._waiting[asker]
                return

    # --- outcomes

    async def _put(self, some: Sequence[_Question]) -> None:
        began = self._clock()
        outcomes: Sequence[Outcome] = [EmbedUnavailable("the question was given up")] * len(some)
        try:
            outcomes = await self._outcomes([question.text for question in some])
            self._answered_at = self._clock()
            if len(some) == self._together and self._answered_at - began < self._longest_s / 20:
                self._together = min(TOGETHER_MOST, 2 * self._together)
        except Exception as failure:
            if not isinstance(failure, MemdError):
                log.error("embed.question_failed", exc_info=failure)
            self._together = max(1, len(some) // 2)
            told = (
                failure
                if isinstance(failure, (EmbedUnavailable, EmbedTerminal))
                else EmbedUnavailable(safe_message(failure))
            )
            outcomes = [told] * len(some)
        finally:
            # In any case: an unanswered question would be joined by later equal ones, and never be sent again.
            for question, outcome in zip(some, outcomes, strict=True):
                self._answer_question(question, outcome)

    async def _outcomes(self, texts: Sequence[str]) -> Sequence[Outcome]:
        """Return the outcome of each text.

        Raises:
            EmbedUnavailable, EmbedTerminal: all of them failed.
        """
        self._health.admit_question()
        try:
            with failures_of(self.provider.identity.provider):
                outcomes = await self._asked(texts)
        except EmbedUnavailable as failure:
            self._health.question_failed(failure)
            raise
        failures = [outcome for outcome in outcomes if isinstance(outcome, EmbedUnavailable)]
        if len(failures) == len(outcomes):
            self._health.questions_refused(failures[0])
        else:
            self._health.questions_answered()
        return outcomes

    async def _asked(self, texts: Sequence[str]) -> Sequence[Vector | EmbedUnavailable]:
        if self._takes_several is None:
            return [await self.provider.embed_query(text) for text in texts]
        outcomes = await self._takes_several.embed_queries(texts)
        if len(outcomes) != len(texts):
            raise EmbedUnavailable(f"the provider gave {len(outcomes)} vectors for {len(texts)} questions")
        return outcomes

    def _answer_question(self, question: _Question, outcome: Outcome) -> None:
        self._unanswered.pop(question.key, None)
        if not question.outcome.done():
            question.outcome.set_result(outcome)
        if isinstance(outcome, Exception):
            return
        # A copy, since it may be a view that keeps a larger matrix alive.
        self._known[question.key] = outcome.copy()
        self._known_bytes += outcome.nbytes
        while self._known_bytes > CACHED_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._known_bytes -= oldest.nbytes


def _vector_or_raise(outcome: Outcome) -> Vector:
    """Return a vector, or raise a new error for each caller."""
    if isinstance(outcome, EmbedUnavailable):
        raise EmbedUnavailable(str(outcome), retry_after_s=outcome.retry_after_s) from outcome.__cause__
    if isinstance(outcome, EmbedTerminal):
        raise EmbedUnavailable(str(outcome)) from outcome
    return outcome
