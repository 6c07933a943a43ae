"""The health of one provider, in the only place where it is stored.

The queues of passages and of questions report the end of each request, and probes report their results. Others read it: the
queue of passages waits until the next attempt, questions are sent or not, a fallback is used or not, and status prints the
reason.
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
    after_retry,
    failures_after,
    left_after,
    passages_unanswered,
    unanswered,
)
from memd.errors import MemdError
from memd.providers.provider import EmbedTerminal, EmbedUnavailable
from memd.providers.remote.dialect import BadReply, KeyRefused
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.runtime.timers import Clock, delay_s

log = structlog.get_logger()


class ProviderState(msgspec.Struct, frozen=True):
    """The health of requests to one provider, and the decisions that follow."""

    overall: RequestHealth = Healthy()  # by the last request of any kind
    passages: RequestHealth = Healthy()  # by passage requests: determines when the queue sends the next one
    questions: QuestionGate = QuestionGate()
    left: LeftForFallback | None = None  # the fallback is used instead


class Standby(msgspec.Struct, frozen=True):
    """The fallback of a provider."""

    provider: str  # its name
    needed: asyncio.Event  # set when it is to be used
    thresholds: FallbackThresholds


class ProviderHealth:
    """The health of one provider; all changes of it are made here."""

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
        """Start healthy.

        Args:
            provider: The provider's name, for the log.
            rng: Source of the jitter of backoffs.
            clock: Returns seconds, monotonic.
            is_remote: Whether one server embeds questions and passages. Otherwise passages, which a worker process embeds, say
                nothing about questions, and questions are always sent: a blocked local provider fails by itself.
            key_places: Where the user can set another key.
            standby: The fallback; None: there is none.
            changes: Notified when the provider starts or stops answering or being used; None: nothing is notified.
            first_wait_s: The wait after the first failure of passages; it doubles with each further one.
        """
        self.now = ProviderState()
        self.rng = rng
        self.clock = clock
        self.progress = ChangeNotifier()  # notified by changes of passage health, and by the passage queue
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
        """Why the provider does not answer; None: it does, as far as is known."""
        overall = self.now.overall
        return None if isinstance(overall, Healthy) else overall.reason

    def close(self) -> None:
        """Ignore requests that end from now on, since they were cancelled."""
        self._is_closed = True

    def begin_anew(self) -> None:
        """Reset the health of requests, since the provider has another model now."""
        self.now = msgspec.structs.replace(self.now, passages=Healthy(), questions=QuestionGate())

    # --- passages

    def passages_answered(self, began: float) -> None:
        """Record that a passage request, sent at `began`, was answered."""
        # An answer to a request sent before the last failure does not prove recovery.
        if isinstance(self.now.passages, Retrying) and began >= self.now.passages.at:
            self._set_passages(Healthy())
        if self._is_remote:
            self._answered()

    def passages_failed(self, failure: EmbedUnavailable | EmbedTerminal, began: float) -> None:
        """Record that a passage request, sent at `began`, failed."""
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
        """Wait until the next passage request may be sent, or requests are refused."""
        while (
            isinstance(waiting := self.now.passages, Retrying)
            and (left_s := waiting.until - self.clock()) > 0
        ):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(left_s):
                    await self.progress.next()

    def hurry_passages(self) -> None:
        """Allow the next passage request now, since its texts are other ones than those that failed."""
        if isinstance(self.now.passages, Retrying):
            self._set_passages(msgspec.structs.replace(self.now.passages, until=self.clock()))

    def retry_passages(self) -> None:
        """Allow passage requests now, even after a refusal."""
        self._set_passages(Healthy())

    def _set_passages(self, passages: RequestHealth) -> None:
        self.now = msgspec.structs.replace(self.now, passages=passages)
        self.progress.notify()

    # --- questions

    def admit_question(self) -> None:
        """Check that a question may be sent.

        Raises:
            EmbedUnavailable: questions failed recently.
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
        """Record that a question request failed."""
        self._set_gate(self.now.questions.failed(failure, self.clock()))
        self._question_failed(failure)

    def questions_refused(self, failure: EmbedUnavailable) -> None:
        """Record that a question request was answered, but embedded none of its questions."""
        self._set_gate(QuestionGate())
        self._question_failed(failure)

    def questions_answered(self) -> None:
        """Record that a question request was answered."""
        self._set_gate(QuestionGate())
        self._answered()

    def _question_failed(self, failure: EmbedUnavailable) -> None:
        # Searches treat all causes alike; whether the failure is final depends on its cause.
        cause = failure.__cause__
        self._failed(cause if isinstance(cause, EmbedTerminal) else failure)

    def _set_gate(self, gate: QuestionGate) -> None:
        self.now = msgspec.structs.replace(self.now, questions=gate)

    # --- the provider as a whole

    def probe_answered(self) -> None:
        """Record that a probe was answered by the known model."""
        self._set_gate(QuestionGate())  # a request was just answered
        if self.reason is not None:
            log.info("embed.provider_recovered", provider=self._provider)
        self._set_overall(Healthy())

    def probe_failed(self, failure: MemdError) -> None:
        """Record that a probe failed, or had an invalid answer."""
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
            self.probe_wanted.set()  # after an outage, the provider may have another model

    def _failed(self, failure: MemdError) -> None:
        if self._is_closed:
            return
        is_new = self.reason is None
        self._note(failure)
        if is_new or isinstance(failure, BadReply):
            self.probe_wanted.set()

    def _in_words(self, failure: MemdError) -> str:
        """Return the message of a failure, with advice for the user."""
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

    def retry_after_refusal(self) -> None:
        """Record that the user retries: a refusal does not keep the fallback in use any longer."""
        self.now = msgspec.structs.replace(self.now, left=after_retry(self.now.left))

    @property
    def returns(self) -> bool:
        """Whether the provider answers again, and will replace its fallback after the least time."""
        left = self.now.left
        return left is not None and not left.is_final and isinstance(self.now.overall, Healthy)

    @property
    def returns_in_s(self) -> float | None:
        """The seconds until the next answer ends the use of the fallback; None: that is not expected."""
        left = self.now.left
        if left is None or self._standby is None or not self.returns:
            return None
        return max(0.0, left.since + self._standby.thresholds.stay_s - self.clock())


def _said(health: RequestHealth) -> str | None:
    return None if isinstance(health, Healthy) else health.reason
