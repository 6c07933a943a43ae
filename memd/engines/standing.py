"""Whether the first provider is used or its fallback: a value and its transitions. Pure."""

import msgspec


class Patience(msgspec.Struct, frozen=True):
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
    reason: str  # why the first one is not
    is_final: bool = False


Standing = Well | Failing | FellBack


def failed(
    before: Standing, reason: str, now: float, patience: Patience, *, is_final: bool, has_fallback: bool
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
        return FellBack(before.since, reason, is_final or before.is_final)
    since = before.since if isinstance(before, Failing) else now
    is_lasting = is_final or now - since >= patience.down_s
    if has_fallback and is_lasting:
        return FellBack(now, reason, is_final)
    return Failing(since, reason, is_final)


def doubted(before: Standing) -> Standing:
    """A person says that something has changed: what was final is so no longer, unless it is met again."""
    return before if isinstance(before, Well) else msgspec.structs.replace(before, is_final=False)


def answered(before: Standing, now: float, patience: Patience) -> Standing:
    """The first provider answered. After a change to the fallback it is come back to, though not at once."""
    if not isinstance(before, FellBack):
        return Well()
    if before.is_final or now - before.since < patience.stay_s:
        return before
    return Well()
