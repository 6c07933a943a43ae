"""The questions that are put to one provider: each once for all who ask it, and together with others that wait."""

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
from memd.runtime.timing import Clock

log = structlog.get_logger()

AT_ONCE = 2  # requests; a provider has as many connections beside those for documents
TOGETHER_FIRST = 16  # questions of a request, until it is known how fast the provider is
TOGETHER_MOST = 64
CACHED_BYTES = 4 << 20  # of vectors: 2,700 of 384 dimensions, 340 of 3,072
LONGEST_S = 10.0  # that a question waits while others are answered

Outcome = Vector | EmbedUnavailable | EmbedTerminal


class _Question:
    """One text, and those who wait for its vector."""

    def __init__(self, key: bytes, text: str) -> None:
        self.key = key
        self.text = text
        self.askers = 0
        self.outcome: asyncio.Future[Outcome] = asyncio.get_running_loop().create_future()


class QuestionQueue:
    """Has questions embedded by one provider, whose vectors are all of one space.

    The same question is asked once however many ask it, and not at all if it was answered lately. Those that wait go
    together where the provider takes several, one of each asker after the other. A question waits on while others are
    answered: a hundred at once are a load, and no failure.
    """

    def __init__(
        self,
        provider: Provider,
        health: ProviderHealth,
        *,
        longest_s: float = LONGEST_S,
        clock: Clock = time.monotonic,
    ) -> None:
        """Empty.

        Args:
            provider: Embeds the questions.
            health: Of the provider: says whether a question may be sent, and hears how each request ended.
            longest_s: How long a question waits while others are answered.
            clock: Seconds, monotonic.
        """
        self.provider = provider
        # Whether a class has the methods of a protocol takes Python 20 µs to tell.
        self._takes_several = provider if isinstance(provider, EmbedsTogether) else None
        self._health = health
        self._longest_s = longest_s
        self._clock = clock
        self._waiting: OrderedDict[Hashable, dict[bytes, _Question]] = OrderedDict()  # by who asks
        self._unanswered: dict[bytes, _Question] = {}  # all that wait or are under way
        self._known: OrderedDict[bytes, Vector] = OrderedDict()  # the most recently used last
        self._known_bytes = 0
        self._under_way: set[asyncio.Task[None]] = set()
        self._together = TOGETHER_FIRST
        self._answered_at = float("-inf")
        self._is_closed = False

    async def ask(self, text: str, patience_s: float, asker: Hashable = None) -> Vector:
        """The vector of a question, shape (dimensions,), of length 1.

        Args:
            text: The question.
            patience_s: How long to wait if nothing is answered meanwhile, be it another question.
            asker: Whose turn it is used up by the question.

        Raises:
            EmbedUnavailable: there is none in time, or the provider said so; its cause may be an EmbedTerminal.
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
            return _vector_or_raise(await self._awaited(question, patience_s))
        finally:
            question.askers -= 1
            if not question.askers:
                self._drop(question)

    def close(self) -> None:
        """Answer nobody any more: who waits is told."""
        self._is_closed = True
        for task in self._under_way:
            task.cancel()
        for question in [*self._unanswered.values()]:
            self._answer_question(question, EmbedUnavailable("the embedding provider is closed"))
        self._waiting.clear()

    async def _awaited(self, question: _Question, patience_s: float) -> Outcome:
        began = self._clock()
        while True:
            until = min(max(began, self._answered_at) + patience_s, began + max(patience_s, self._longest_s))
            left_s = until - self._clock()
            if left_s <= 0:
                waited = f"{self._clock() - began:.1f}".removesuffix(".0")
                raise EmbedUnavailable(f"the question had no vector after {waited} s")
            await asyncio.wait([question.outcome], timeout=left_s)
            if question.outcome.done():
                return question.outcome.result()

    # --- whose turn it is

    def _fill(self) -> None:
        """Ask as much at once as may be."""
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
        """The questions that are next, one of each asker after the other."""
        some: list[_Question] = []
        while self._waiting and len(some) < count:
            asker, questions = next(iter(self._waiting.items()))
            some.append(questions.pop(next(iter(questions))))
            self._waiting.move_to_end(asker)
            if not questions:
                del self._waiting[asker]
        return some

    def _drop(self, question: _Question) -> None:
        """Nobody waits for a question any more: unless it is under way, it is not asked."""
        for asker, questions in self._waiting.items():
            if questions.pop(question.key, None) is not None:
                self._unanswered.pop(question.key, None)
                if not questions:
                    del self._waiting[asker]
                return

    # --- what came of it

    async def _put(self, some: Sequence[_Question]) -> None:
        began = self._clock()
        outcomes: Sequence[Outcome] = [EmbedUnavailable("the question was given up")] * len(some)
        try:
            outcomes = await self._outcomes([question.text for question in some])
            self._answered_at = self._clock()
            if len(some) == self._together and self._answered_at - began < self._longest_s / 20:
                self._together = min(TOGETHER_MOST, 2 * self._together)
        except (EmbedUnavailable, EmbedTerminal) as failure:
            self._together = max(1, len(some) // 2)
            outcomes = [failure] * len(some)
        except Exception as failure:
            if not isinstance(failure, MemdError):
                log.error("embed.question_failed", exc_info=failure)
            self._together = max(1, len(some) // 2)
            outcomes = [EmbedUnavailable(safe_message(failure))] * len(some)
        finally:
            # Whatever happened: one that stays unanswered would be joined by all who ask the same, and asked never again.
            for question, outcome in zip(some, outcomes, strict=True):
                self._answer_question(question, outcome)

    async def _outcomes(self, texts: Sequence[str]) -> Sequence[Outcome]:
        """The outcome of each text.

        Raises:
            EmbedUnavailable, EmbedTerminal: of all of them.
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
        # It may be a row of a larger matrix, which would stay with it.
        self._known[question.key] = outcome.copy()
        self._known_bytes += outcome.nbytes
        while self._known_bytes > CACHED_BYTES:
            _, oldest = self._known.popitem(last=False)
            self._known_bytes -= oldest.nbytes


def _vector_or_raise(outcome: Outcome) -> Vector:
    """A vector, or what was said in its place, raised anew for each who asked."""
    if isinstance(outcome, EmbedUnavailable):
        raise EmbedUnavailable(str(outcome), retry_after_s=outcome.retry_after_s) from outcome.__cause__
    if isinstance(outcome, EmbedTerminal):
        raise EmbedUnavailable(str(outcome)) from outcome
    return outcome
