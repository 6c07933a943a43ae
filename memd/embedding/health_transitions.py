"""How requests to a provider end, and when its fallback takes over: values and their transitions. Pure."""

import msgspec

from memd.providers.provider import EmbedTerminal, EmbedUnavailable

# A provider that asks for a longer wait is asked again all the same, as batch jobs are.
LONGEST_ASKED_S = 3600.0
GATE_FAILURES = 2  # in a row, before questions are not sent any more
GATE_S = 10.0  # that they are not sent then
LONGEST_GATE_S = 60.0  # likewise, where the provider asks for a longer wait


class Healthy(msgspec.Struct, frozen=True):
    """The last request was answered, or there was none."""


class Retrying(msgspec.Struct, frozen=True):
    """Requests are not answered just now; they are tried again without anybody's help."""

    since: float  # of the clock: the first failure in a row
    until: float  # of the clock: the next attempt
    failures: int  # in a row
    reason: str
    at: float = 0.0  # of the clock: the last failure


class Refusing(msgspec.Struct, frozen=True):
    """Requests are refused, and will be until the key, the account or the configuration changes."""

    since: float  # of the clock
    reason: str


RequestHealth = Healthy | Retrying | Refusing


def unanswered(before: RequestHealth, reason: str, now: float, *, is_final: bool) -> RequestHealth:
    """The health of a whole provider after a request that had no answer, whatever it was for.

    Args:
        before: Its health so far.
        reason: Why, for people.
        now: Of the clock, in seconds.
        is_final: No request will succeed until a person changes something.
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
    """The health of requests with passages after one that had no answer. A refusal ends only when a person says so.

    Args:
        before: Their health so far.
        reason: Why.
        began: When that request was sent. Those that were under way together fail together: that counts once.
        now: Of the same clock.
        wait_s: The backoff after so many failures in a row.
        retry_after_s: What the provider asked for, if it did. One huge number must not end embedding for years.
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
    """How many failures in a row one more would make."""
    return before.failures + 1 if isinstance(before, Retrying) else 1


class QuestionGate(msgspec.Struct, frozen=True):
    """Whether questions are sent. After some failures in a row searches do not wait for one more, but for one now and then."""

    failures: int = 0  # in a row
    until: float = 0.0  # of the clock: no question is sent before
    reason: str = ""  # of the last failure
    is_final: bool = False  # it was a refusal

    def failed(self, failure: EmbedUnavailable, now: float) -> "QuestionGate":
        """The gate after a question that had no answer."""
        pause_s = max(GATE_S, min(failure.retry_after_s or 0.0, LONGEST_GATE_S))
        is_final = isinstance(failure.__cause__, EmbedTerminal)
        return QuestionGate(self.failures + 1, now + pause_s, str(failure), is_final)

    def is_open(self, now: float) -> bool:
        """Whether a question may be sent."""
        return self.failures < GATE_FAILURES or now >= self.until

    def trying(self, now: float) -> "QuestionGate":
        """The gate while a question that it let through has no answer: the others are not sent meanwhile."""
        return self if self.failures < GATE_FAILURES else msgspec.structs.replace(self, until=now + GATE_S)


class FallbackThresholds(msgspec.Struct, frozen=True):
    """How long things take that are not decided in a hurry, in seconds."""

    down_s: float = 600.0  # a provider that has not answered for so long is down for good, for now
    ask_s: float = 600.0  # between two probes of a provider that was left
    stay_s: float = 1800.0  # on the fallback, at least: each change means to embed what is new
    check_s: float = 21_600.0  # between two looks whether the model is still the same


class LeftForFallback(msgspec.Struct, frozen=True):
    """The fallback is used in the place of its provider."""

    since: float  # of the clock
    reason: str  # the last failure of the provider
    # It refused: no answer leads back to it until a person says that something has changed.
    is_final: bool = False
    is_doubted: bool = False  # a person said so: its first answer leads back


def left_after(
    before: LeftForFallback | None, health: RequestHealth, now: float, thresholds: FallbackThresholds
) -> LeftForFallback | None:
    """Whether a provider is left for its fallback, after a request to it has ended.

    It is left after a refusal that no waiting mends, or when it has not answered for `down_s`; it is used again when it
    answers, `stay_s` after it was left at the earliest.

    Args:
        before: The decision so far; None: the provider is used.
        health: Of the provider, by that request.
        now: Of the clock, in seconds.
        thresholds: How long is long.
    """
    if before is None:
        is_lasting = isinstance(health, Refusing) or (
            not isinstance(health, Healthy) and now - health.since >= thresholds.down_s
        )
        if isinstance(health, Healthy) or not is_lasting:
            return None
        return LeftForFallback(now, health.reason, isinstance(health, Refusing))
    if isinstance(health, Healthy):
        may_return = before.is_doubted or now - before.since >= thresholds.stay_s
        return None if may_return and not before.is_final else before
    is_refused = isinstance(health, Refusing)
    return LeftForFallback(
        before.since, health.reason, is_refused or before.is_final, before.is_doubted and not is_refused
    )


def doubted(before: LeftForFallback | None) -> LeftForFallback | None:
    """The decision after a person said that something has changed: the next answer leads back, unless it is a refusal."""
    return None if before is None else msgspec.structs.replace(before, is_final=False, is_doubted=True)
