"""How one provider answers, as everybody finds it who asks it: kept in one place, for all who have to know.

The queue of passages and the queue of questions report here how each request ended, and so do probes, which ask the provider how
it is. What follows from that is read here: the queue of passages waits until the provider may be asked again, questions are sent
or not, a fallback stands in or not, and status says why.
"""

import asyncio
import contextlib
import time
from random import Random

import msgspec
import structlog

from memd.embedding.health_transitions import (
    FallbackThresholds,
    Healthy,
    LeftForFallback,
    QuestionGate,
    Refusing,
    RequestHealth,
    Retrying,
    doubted,
    failures_after,
    left_after,
    passages_unanswered,
    unanswered,
)
from memd.errors import MemdError
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.dialect import BadReply, KeyRefused
from memd.runtime.synchronization import ChangeNotifier
from memd.runtime.timing import Clock, delay_s

log = structlog.get_logger()


class ProviderState(msgspec.Struct, frozen=True):
    """How the requests to one provider end, and what follows from that."""

    overall: RequestHealth = Healthy()  # by the last request of any kind
    passages: RequestHealth = Healthy()  # by requests with passages: when the queue sends the next one
    questions: QuestionGate = QuestionGate()
    left: LeftForFallback | None = None  # the fallback is used in its place


class Standby(msgspec.Struct, frozen=True):
    """The fallback of a provider, as far as its health is concerned."""

    provider: str  # its name
    needed: asyncio.Event  # set when it is to stand in
    thresholds: FallbackThresholds


class ProviderHealth:
    """The health of one provider, and the only place where it changes."""

    def __init__(
        self,
        provider: str,
        rng: Random,
        clock: Clock = time.monotonic,
        *,
        is_remote: bool = False,
        key_places: str = "",
        standby: Standby | None = None,
        changes: ChangeNotifier | None = None,
        first_wait_s: float = 1.0,
    ) -> None:
        """Healthy, until a request fails.

        Args:
            provider: Its name, for the log.
            rng: Source of the jitter of a backoff.
            clock: Seconds, monotonic.
            is_remote: Whether one server answers questions and passages. Else passages, which a worker process embeds, say
                nothing about questions, and no question is held back: the provider refuses by itself while it is stuck.
            key_places: Where a person can put another key.
            standby: Its fallback; None: there is none.
            changes: Notified when the provider begins or ceases to answer, or to be used; None: nobody waits for that.
            first_wait_s: The full wait after the first failure with passages; it doubles from there.
        """
        self.now = ProviderState()
        self.rng = rng
        self.clock = clock
        self.progress = ChangeNotifier()  # of passages: of their health, and of the queue that they wait in
        self.probe_wanted = asyncio.Event()
        self._provider = provider
        self._is_remote = is_remote
        self._key_places = key_places
        self._standby = standby
        self._changes = changes or ChangeNotifier()
        self._first_wait_s = first_wait_s
        self._is_closed = False

    @property
    def reason(self) -> str | None:
        """Why the provider does not answer, for people; None: it does, as far as is known."""
        overall = self.now.overall
        return None if isinstance(overall, Healthy) else overall.reason

    def close(self) -> None:
        """Listen no more: requests that end from now on were given up."""
        self._is_closed = True

    def begin_anew(self) -> None:
        """Another model is behind the name: what was found with the one before counts for nothing."""
        self.now = msgspec.structs.replace(self.now, passages=Healthy(), questions=QuestionGate())

    # --- passages

    def passages_answered(self, began: float) -> None:
        """A request with passages, sent at a time of the clock, was answered."""
        # An answer to what was asked before the last failure is no sign that the provider is well again.
        if isinstance(self.now.passages, Retrying) and began >= self.now.passages.at:
            self._set_passages(Healthy())
        if self._is_remote:
            self._answered()

    def passages_failed(self, failure: EmbedUnavailable | EmbedTerminal, began: float) -> None:
        """A request with passages, sent at a time of the clock, had no answer."""
        before, now = self.now.passages, self.clock()
        if isinstance(failure, EmbedTerminal):
            log.error("embed.stopped", provider=self._provider, reason=str(failure))
            self._set_passages(Refusing(now, str(failure)))
        else:
            after = passages_unanswered(
                before,
                str(failure),
                began=began,
                now=now,
                wait_s=delay_s(failures_after(before), self.rng, first_s=self._first_wait_s),
                retry_after_s=failure.retry_after_s,
            )
            if isinstance(after, Retrying):
                log.warning(
                    "embed.retry_scheduled",
                    provider=self._provider,
                    reason=str(failure),
                    wait_s=round(after.until - now, 1),
                )
            self._set_passages(after)
        if self._is_remote:
            self._failed(failure)

    async def passages_due(self) -> None:
        """Wait until passages may be sent again, or are refused."""
        while (
            isinstance(waiting := self.now.passages, Retrying)
            and (left_s := waiting.until - self.clock()) > 0
        ):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self.progress.next()

    def hurry_passages(self) -> None:
        """Have the next request with passages sent now: what failed is not what it asks for."""
        if isinstance(self.now.passages, Retrying):
            self._set_passages(msgspec.structs.replace(self.now.passages, until=self.clock()))

    def retry_passages(self) -> None:
        """Have passages sent again, even if they were refused."""
        self._set_passages(Healthy())

    def _set_passages(self, passages: RequestHealth) -> None:
        self.now = msgspec.structs.replace(self.now, passages=passages)
        self.progress.notify()

    # --- questions

    def admit_question(self) -> None:
        """Let a question be sent, or not.

        Raises:
            EmbedUnavailable: the last ones failed a moment ago.
        """
        gate, now = self.now.questions, self.clock()
        if not self._is_remote:
            return
        if gate.is_open(now):
            self._set_gate(gate.trying(now))
            return
        cause = EmbedTerminal(gate.reason) if gate.is_final else None
        failure = EmbedUnavailable(gate.reason)
        self._failed(cause or failure)
        raise failure from cause

    def question_failed(self, failure: EmbedUnavailable) -> None:
        """A request with questions had no answer."""
        self._set_gate(self.now.questions.failed(failure, self.clock()))
        self._question_failed(failure)

    def questions_refused(self, failure: EmbedUnavailable) -> None:
        """A request with questions was answered, and none of them was embedded."""
        self._set_gate(QuestionGate())
        self._question_failed(failure)

    def questions_answered(self) -> None:
        """A request with questions was answered."""
        self._set_gate(QuestionGate())
        self._answered()

    def _question_failed(self, failure: EmbedUnavailable) -> None:
        # A question is answered without a vector whatever the cause; whether that will pass is what the cause says.
        cause = failure.__cause__
        self._failed(cause if isinstance(cause, EmbedTerminal) else failure)

    def _set_gate(self, gate: QuestionGate) -> None:
        self.now = msgspec.structs.replace(self.now, questions=gate)

    # --- the provider as a whole

    def probe_answered(self) -> None:
        """A probe was answered, and the model is the one that is known."""
        self._set_gate(QuestionGate())  # it has just answered something else
        if self.reason is not None:
            log.info("embed.provider_recovered", provider=self._provider)
        self._set_overall(Healthy())

    def probe_failed(self, failure: MemdError) -> None:
        """A probe had no answer, or one that cannot be used."""
        self._note(failure)

    def _note(self, failure: MemdError) -> None:
        is_final = not isinstance(failure, EmbedUnavailable)
        before = self.now.overall
        after = unanswered(before, self._in_words(failure), self.clock(), is_final=is_final)
        if type(after) is not type(before):
            log.warning("embed.provider_failed", provider=self._provider, reason=str(failure), final=is_final)
        self._set_overall(after)

    def _answered(self) -> None:
        if self.reason is not None and not self._is_closed:
            log.info("embed.provider_recovered", provider=self._provider)
            self._set_overall(Healthy())
            self.probe_wanted.set()  # after an outage another model may be behind the name

    def _failed(self, failure: MemdError) -> None:
        if self._is_closed:
            return
        is_new = self.reason is None
        self._note(failure)
        if is_new or isinstance(failure, BadReply):
            self.probe_wanted.set()

    def _in_words(self, failure: MemdError) -> str:
        """What went wrong, and what a person can do about it."""
        if isinstance(failure, KeyRefused) and self._key_places:
            return f"{failure}. Set {self._key_places}, then restart memd, or send it SIGHUP if the configuration has the key"
        return str(failure)

    def _set_overall(self, overall: RequestHealth) -> None:
        before = self.now
        left = before.left
        if self._standby is not None:
            left = left_after(left, overall, self.clock(), self._standby.thresholds)
        self.now = msgspec.structs.replace(before, overall=overall, left=left)
        if self._standby is not None and left is not None and before.left is None:
            log.warning(
                "embed.fallback_taken",
                provider=self._standby.provider,
                reason=left.reason,
                final=left.is_final,
            )
            self._standby.needed.set()
        elif left is None and before.left is not None:
            log.info("embed.fallback_left", provider=self._provider)
        if (
            type(overall) is not type(before.overall)
            or _said(overall) != _said(before.overall)
            or left != before.left
        ):
            self._changes.notify()

    # --- the fallback

    def doubt(self) -> None:
        """A person says that something has changed: a refusal is met again, or counts no more."""
        self.now = msgspec.structs.replace(self.now, left=doubted(self.now.left))

    @property
    def returns(self) -> bool:
        """Whether the provider was left for its fallback, answers, and is used again after a while."""
        left = self.now.left
        return left is not None and not left.is_final and isinstance(self.now.overall, Healthy)

    @property
    def returns_in_s(self) -> float | None:
        """After how many seconds the next answer leads back from the fallback; None: this is not being waited for."""
        left = self.now.left
        if left is None or self._standby is None or not self.returns:
            return None
        return max(0.0, left.since + self._standby.thresholds.stay_s - self.clock())


def _said(health: RequestHealth) -> str | None:
    return None if isinstance(health, Healthy) else health.reason
