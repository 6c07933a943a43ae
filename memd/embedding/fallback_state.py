"""When a provider that does not answer is left for its fallback, and when it is used again. Pure."""

import msgspec

from memd.embedding.health_state import Healthy, Refusing, RequestHealth


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
