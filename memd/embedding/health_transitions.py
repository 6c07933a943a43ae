"""The health of requests to a provider and the decision to use its fallback, as values with pure transitions."""

import msgspec

from memd.providers.provider import EmbedTerminal, EmbedUnavailable

# Longer waits asked for by a provider are shortened to this, as for batch jobs.
LONGEST_ASKED_S = 3600.0
GATE_FAILURES = 2  # consecutive failures after which questions are not sent
GATE_S = 10.0  # the time for which they are not sent
LONGEST_GATE_S = 60.0  # the same, if the provider asks for a longer wait


class Healthy(msgspec.Struct, frozen=True):
    """The last request was answered, or none was sent."""


class Retrying(msgspec.Struct, frozen=True):
    """Requests fail, and are retried automatically."""

    since: float  # time of the first consecutive failure
    until: float  # time of the next attempt
    failures: int  # consecutive failures
    reason: str
    at: float = 0.0  # time of the last failure


class Refusing(msgspec.Struct, frozen=True):
    """Requests are refused, and will be until the key, the account or the configuration changes."""

    since: float  # time of the refusal
    reason: str


RequestHealth = Healthy | Retrying | Refusing


def unanswered(before: RequestHealth, reason: str, now: float, *, is_final: bool) -> RequestHealth:
    """Return the health of a provider after any request failed.

    Args:
        before: The previous health.
        reason: The message for the user.
        now: The current time in seconds.
        is_final: Whether requests will fail until the user changes something.
    """
    since = now if isinstance(before, Healthy) else before.since
    return Refusing(since, reason) if is_final else Retrying(since, now, failures_after(before), reason, now)


def passages_unanswered(
    before: RequestHealth,
    reason: str,
    *,
    began: float,
    now: float,
    wait_s: float,
    retry_after_s: float | None,
) -> RequestHealth:
    """Return the health of passage requests after one failed. A refusal lasts until the user retries.

    Args:
        before: The previous health.
        reason: The message for the user.
        began: When the request was sent. Concurrent requests that fail together count as one failure.
        now: The current time of the same clock.
        wait_s: The backoff after this number of consecutive failures.
        retry_after_s: The wait that the provider asked for, if any; at most LONGEST_ASKED_S of it counts.
    """
    if isinstance(before, Refusing):
        return before
    asked_s = min(retry_after_s or 0.0, LONGEST_ASKED_S)
    until = now + max(wait_s, asked_s)
    if not isinstance(before, Retrying):
        return Retrying(now, until, 1, reason, now)
    if began < before.at:
        return msgspec.structs.replace(before, until=max(before.until, now + asked_s if asked_s else 0.0))
    return Retrying(before.since, until, before.failures + 1, reason, now)


def failures_after(before: RequestHealth) -> int:
    """Return the number of consecutive failures after one more."""
    return before.failures + 1 if isinstance(before, Retrying) else 1


class QuestionGate(msgspec.Struct, frozen=True):
    """Decides whether questions are sent: after consecutive failures only one is sent now and then, so that searches do not wait."""

    failures: int = 0  # consecutive failures
    until: float = 0.0  # no question is sent before this time
    reason: str = ""  # of the last failure
    is_final: bool = False  # the last failure was a refusal

    def failed(self, failure: EmbedUnavailable, now: float) -> "QuestionGate":
        """Return the gate after a question failed."""
        pause_s = max(GATE_S, min(failure.retry_after_s or 0.0, LONGEST_GATE_S))
        is_final = isinstance(failure.__cause__, EmbedTerminal)
        return QuestionGate(self.failures + 1, now + pause_s, str(failure), is_final)

    def is_open(self, now: float) -> bool:
        """Return whether a question may be sent."""
        return self.failures < GATE_FAILURES or now >= self.until

    def trying(self, now: float) -> "QuestionGate":
        """Return the gate while a question is in flight after failures: no other one is sent meanwhile."""
        return self if self.failures < GATE_FAILURES else msgspec.structs.replace(self, until=now + GATE_S)


class FallbackThresholds(msgspec.Struct, frozen=True):
    """The durations, in seconds, after which fallbacks are used and left."""

    down_s: float = 600.0  # a provider that has failed for this long is left
    ask_s: float = 600.0  # between probes of a provider that was left
    # The least time on the fallback, since each change embeds new texts in another space.
    stay_s: float = 1800.0
    check_s: float = 21_600.0  # between checks whether the model is still the same


class LeftForFallback(msgspec.Struct, frozen=True):
    """The fallback is used instead of its provider."""

    since: float  # time when the provider was left
    reason: str  # the last failure of the provider
    # The provider refused: its answers do not lead back until the user retries.
    is_final: bool = False
    is_retried: bool = False  # the user retried: its first answer leads back


def left_after(
    before: LeftForFallback | None, health: RequestHealth, now: float, thresholds: FallbackThresholds
) -> LeftForFallback | None:
    """Decide after a request whether the fallback is used instead of the provider.

    A provider is left after a refusal, or after it has failed for `down_s`. It is used again when it answers, but not before
    `stay_s` have passed since it was left.

    Args:
        before: The previous decision; None: the provider is used.
        health: The health of the provider after the request.
        now: The current time in seconds.
        thresholds: The durations after which a fallback is used and left.
    """
    if before is None:
        is_lasting = isinstance(health, Refusing) or (
            not isinstance(health, Healthy) and now - health.since >= thresholds.down_s
        )
        if isinstance(health, Healthy) or not is_lasting:
            return None
        return LeftForFallback(now, health.reason, isinstance(health, Refusing))
    if isinstance(health, Healthy):
        may_return = before.is_retried or now - before.since >= thresholds.stay_s
        return None if may_return and not before.is_final else before
    is_refused = isinstance(health, Refusing)
    return LeftForFallback(
        before.since, health.reason, is_refused or before.is_final, before.is_retried and not is_refused
    )


def after_retry(before: LeftForFallback | None) -> LeftForFallback | None:
    """Return the decision after the user retried: the provider's next answer leads back, unless it is a refusal."""
    return None if before is None else msgspec.structs.replace(before, is_final=False, is_retried=True)
