"""Whether the first provider is used or its fallback: a value and its transitions. Pure."""

import msgspec


class FallbackThresholds(msgspec.Struct, frozen=True):
    """How long things take that are not decided in a hurry, in seconds."""

    down_s: float = 600.0  # a provider that has not answered for so long is down for good, for now
    ask_s: float = 600.0  # between two questions whether it is back
    stay_s: float = 1800.0  # on the fallback, at least: each change means to embed what is new
    check_s: float = 21_600.0  # between two looks whether the model is still the same


class Well(msgspec.Struct, frozen=True):
    """The first provider is used, and answers."""


class Failing(msgspec.Struct, frozen=True):
    """The first provider is used, and does not answer."""

    since: float  # of the clock
    reason: str
    is_final: bool = False  # nothing but another key, account or configuration will help


class FellBack(msgspec.Struct, frozen=True):
    """The fallback is used."""

    since: float
    reason: str  # why the first one was not, when it was asked last
    is_final: bool = False
    answers: bool = False  # the first one did when it was asked last, and has not been left for long enough
    is_doubted: bool = False  # a person says that something has changed: its first answer leads back


Standing = Well | Failing | FellBack


def failed(
    before: Standing,
    reason: str,
    now: float,
    patience: FallbackThresholds,
    *,
    is_final: bool,
    has_fallback: bool,
) -> Standing:
    """The first provider did not answer.

    Args:
        before: The standing so far.
        reason: Why, for people.
        now: Of the clock, in seconds.
        patience: How long is long.
        is_final: No request will succeed until a person changes something.
        has_fallback: Whether there is anybody to go to.
    """
    if isinstance(before, FellBack):
        return FellBack(
            before.since, reason, is_final or before.is_final, is_doubted=before.is_doubted and not is_final
        )
    since = before.since if isinstance(before, Failing) else now
    is_lasting = is_final or now - since >= patience.down_s
    if has_fallback and is_lasting:
        return FellBack(now, reason, is_final)
    return Failing(since, reason, is_final)


def doubted(before: Standing) -> Standing:
    """A person says that something has changed: what was final is so no longer, unless it is met again."""
    match before:
        case Well():
            return before
        case Failing():
            return msgspec.structs.replace(before, is_final=False)
        case FellBack():
            return msgspec.structs.replace(before, is_final=False, is_doubted=True)


def answered(before: Standing, now: float, patience: FallbackThresholds) -> Standing:
    """The first provider answered. After a change to the fallback it is come back to, though not at once by itself."""
    if not isinstance(before, FellBack):
        return Well()
    if before.is_final:
        return before
    if before.is_doubted or now - before.since >= patience.stay_s:
        return Well()
    return msgspec.structs.replace(before, answers=True)
