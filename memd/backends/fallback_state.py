"""Whether the engine that was chosen answers, or the built-in one in its place: a value and its transitions. Pure."""

import msgspec


class PrimaryInUse(msgspec.Struct, frozen=True):
    """The engine that was chosen answers, as far as is known."""


class BuiltinInUse(msgspec.Struct, frozen=True):
    """The built-in engine answers, since the one that was chosen has failed."""

    since: float  # of the clock: the first failure in a row
    reason: str  # of the last one
    retry_at: float  # of the clock: the first search from then on tries the chosen one


Standing = PrimaryInUse | BuiltinInUse


def failed(before: Standing, reason: str, now: float, cooldown_s: float) -> BuiltinInUse:
    """The engine that was chosen did not answer, or could not be had.

    Args:
        before: The standing so far.
        reason: Why, for people.
        now: Of the clock, in seconds.
        cooldown_s: For how long it is left alone.
    """
    since = before.since if isinstance(before, BuiltinInUse) else now
    return BuiltinInUse(since, reason, now + cooldown_s)


def may_be_tried(standing: Standing, now: float) -> bool:
    """Whether a search may be put to the engine that was chosen."""
    return isinstance(standing, PrimaryInUse) or now >= standing.retry_at
