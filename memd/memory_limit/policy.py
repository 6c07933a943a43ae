"""Decides whose vectors are moved to disk when memory is short, and whose return when there is room. Pure.

Three constants prevent oscillation. Above the limit, vectors are given up until memory is below GIVE_UP_TO of
it. They are taken back only if memory would stay below TAKE_BACK_TO of it, and only if that was so at every
check of the last LATELY_S, in which they were on disk: a worker that embeds for a minute now and then does
not move them back and forth.
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
    resident_bytes: int  # bytes that they take now
    whole_bytes: int  # bytes that they take or would take in memory
    is_shelved: bool  # whether they are on disk only
    asked_at: float | None  # clock time of the last search that wanted them; None: there was none
    given_up_at: float | None = None  # clock time; None: not since the limit was set


class MemorySeen(msgspec.Struct, frozen=True):
    """What memd held besides vectors at one moment."""

    at: float  # clock time in seconds
    rest_bytes: int


class MemoryDecision(msgspec.Struct, frozen=True):
    """Agents whose vectors to give up, in this order, and then agents whose vectors to take back."""

    give_up: tuple[str, ...] = ()
    take_back: tuple[str, ...] = ()


def seen_lately(before: Sequence[MemorySeen], now: MemorySeen) -> tuple[MemorySeen, ...]:
    """Return the measurements of the last LATELY_S, including the new one."""
    return (*(one for one in before if now.at - one.at < LATELY_S), now)


def decide(limit_bytes: int, seen: Sequence[MemorySeen], holdings: Sequence[AgentVectors]) -> MemoryDecision:
    """Decide which vectors to give up or take back.

    Args:
        limit_bytes: The limit of all memory; 0: none, so that all vectors return.
        seen: What was held besides vectors lately; the last is the current state.
        holdings: The vectors of each agent.
    """
    shelved = sorted(
        (one for one in holdings if one.is_shelved), key=lambda one: (-_asked_at(one), one.agent)
    )
    if not limit_bytes:
        return MemoryDecision(take_back=tuple(one.agent for one in shelved))
    # Least recently searched first.
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
    """Return whose vectors return, most recently searched first, and who makes room for them.

    Vectors make room only for those that were searched at least LATELY_S later.
    """
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
    """Yield the first of some agents that together free so much memory; all, if that is not enough."""
    for one in resident:
        if wanted <= 0:
            return
        wanted -= one.resident_bytes
        yield one


def _asked_at(holding: AgentVectors) -> float:
    return NEVER if holding.asked_at is None else holding.asked_at
