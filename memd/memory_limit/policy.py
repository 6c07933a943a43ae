"""Whose vectors are given up when memory is short, and whose come back when there is room. Pure.

Three numbers keep it calm. Above the limit vectors go, until memory is below GIVE_UP_TO of it. They come back only
where memory would stay below TAKE_BACK_TO of it, and only if that had been so at every moment of the last LATELY_S, in
which they were on disk: a worker that embeds for a minute, now and then, does not send them to and fro.
"""

from collections.abc import Iterator, Sequence

import msgspec

GIVE_UP_TO = 0.9
TAKE_BACK_TO = 0.8
LATELY_S = 600.0
NEVER = float("-inf")


class AgentVectors(msgspec.Struct, frozen=True):
    """The vectors of one agent."""

    agent: str
    resident_bytes: int  # that they take
    whole_bytes: int  # that they take, or would take in memory
    is_shelved: bool  # whether they are on disk only
    asked_at: float | None  # of a clock: the last search that wanted them; None: there was none
    given_up_at: float | None = None  # likewise; None: not since the limit is what it is


class MemorySeen(msgspec.Struct, frozen=True):
    """A moment, and what memd held then besides vectors."""

    at: float  # seconds of the clock
    rest_bytes: int


class MemoryDecision(msgspec.Struct, frozen=True):
    """Agents whose vectors are to be given up, the first one first, and then taken back."""

    give_up: tuple[str, ...] = ()
    take_back: tuple[str, ...] = ()


def seen_lately(before: Sequence[MemorySeen], now: MemorySeen) -> tuple[MemorySeen, ...]:
    """What was seen in the last LATELY_S, with what is seen now."""
    return (*(one for one in before if now.at - one.at < LATELY_S), now)


def decide(limit_bytes: int, seen: Sequence[MemorySeen], holdings: Sequence[AgentVectors]) -> MemoryDecision:
    """What to do about the memory that memd holds.

    Args:
        limit_bytes: Of all of it; 0: none, and everything comes back.
        seen: What there was besides vectors lately; the last is how it is now.
        holdings: The vectors of each agent.
    """
    shelved = sorted(
        (one for one in holdings if one.is_shelved), key=lambda one: (-_asked_at(one), one.agent)
    )
    if not limit_bytes:
        return MemoryDecision(take_back=tuple(one.agent for one in shelved))
    # Those that nobody has asked for the longest time go first.
    resident = sorted(
        (one for one in holdings if not one.is_shelved and one.resident_bytes),
        key=lambda one: (_asked_at(one), one.agent),
    )
    in_vectors = sum(one.resident_bytes for one in resident)
    held = seen[-1].rest_bytes + in_vectors
    if held > limit_bytes:
        gone = _until(held - GIVE_UP_TO * limit_bytes, resident)
        return MemoryDecision(give_up=tuple(one.agent for one in gone))
    room = TAKE_BACK_TO * limit_bytes - max(one.rest_bytes for one in seen) - in_vectors
    now = seen[-1].at
    rested = [one for one in shelved if one.given_up_at is None or now - one.given_up_at >= LATELY_S]
    return _returning(room, rested, resident)


def _returning(
    room: float, shelved: Sequence[AgentVectors], resident: Sequence[AgentVectors]
) -> MemoryDecision:
    """Who comes back, the last asked first; and who makes way for one that is asked, having been left alone for long."""
    given_up: list[AgentVectors] = []
    back: list[AgentVectors] = []
    for one in shelved:
        left_alone = [
            other
            for other in resident
            if other not in given_up and _asked_at(other) <= _asked_at(one) - LATELY_S
        ]
        gone = list(_until(one.whole_bytes - room, left_alone))
        made = room + sum(other.resident_bytes for other in gone)
        if one.whole_bytes <= made:
            given_up += gone
            back.append(one)
            room = made - one.whole_bytes
    return MemoryDecision(tuple(one.agent for one in given_up), tuple(one.agent for one in back))


def _until(wanted: float, resident: Sequence[AgentVectors]) -> Iterator[AgentVectors]:
    """The first of some that make so much room together; all, if they do not."""
    for one in resident:
        if wanted <= 0:
            return
        wanted -= one.resident_bytes
        yield one


def _asked_at(holding: AgentVectors) -> float:
    return NEVER if holding.asked_at is None else holding.asked_at
