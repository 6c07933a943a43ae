from collections.abc import Sequence

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.memory_limit.policy import (
    GIVE_UP_TO,
    LATELY_S,
    TAKE_BACK_TO,
    AgentVectors,
    MemoryDecision,
    MemorySeen,
    decide,
    seen_lately,
)


def holding(agent: str, size: int, *, asked_at: float | None = None, on_disk: bool = False) -> AgentVectors:
    return AgentVectors(agent, 0 if on_disk else size, size, on_disk, asked_at)


A, B, C = (holding(name, 100, asked_at=at) for name, at in (("a", 1000.0), ("b", 2000.0), ("c", None)))


def shelved(
    one: AgentVectors, *, asked_at: float | None = None, given_up_at: float | None = None
) -> AgentVectors:
    return msgspec.structs.replace(
        one,
        resident_bytes=0,
        is_shelved=True,
        asked_at=one.asked_at if asked_at is None else asked_at,
        given_up_at=given_up_at,
    )


def back(*agents: str) -> MemoryDecision:
    return MemoryDecision(take_back=agents)


def gone(*agents: str) -> MemoryDecision:
    return MemoryDecision(give_up=agents)


@pytest.mark.parametrize(
    ("limit", "rest", "holdings", "decided"),
    [
        # Without a limit, everything is in memory.
        (0, 10**9, [A, B, C], MemoryDecision()),
        (0, 10**9, [shelved(A), B, shelved(C)], back("a", "c")),
        # At the limit nothing is done; above it those go that were asked the longest ago, until a tenth is free.
        (1000, 700, [A, B, C], MemoryDecision()),
        (1000, 701, [A, B, C], gone("c", "a")),
        (1000, 790, [A, B, C], gone("c", "a")),
        (1000, int(GIVE_UP_TO * 1000) - 100, [A, B, C], gone("c", "a")),
        (1000, int(GIVE_UP_TO * 1000) - 99, [A, B, C], gone("c", "a", "b")),
        (1000, 801, [A, B, C], gone("c", "a", "b")),
        (1000, 701, [B, C, A], gone("c", "a")),
        (1000, 5000, [A, shelved(B), C], gone("c", "a")),
        # What is left is not vectors.
        (1000, 5000, [shelved(A), shelved(B)], MemoryDecision()),
        (1000, 5000, [], MemoryDecision()),
        (1000, 5000, [holding("none", 0)], MemoryDecision()),
        # There is clear room where a fifth stays free; whoever was asked last comes first.
        (1000, int(TAKE_BACK_TO * 1000) - 300, [shelved(A), shelved(B), shelved(C)], back("b", "a", "c")),
        (1000, 501, [shelved(A), shelved(B), shelved(C)], back("b", "a")),
        (1000, 601, [shelved(A), shelved(B), C], MemoryDecision(give_up=("c",), take_back=("b",))),
        (1000, 700, [shelved(A), shelved(B), shelved(C)], back("b")),
        (1000, 701, [shelved(A), shelved(B)], MemoryDecision()),
        # A large one that does not fit is no reason to keep a small one out.
        (1000, 600, [shelved(holding("large", 201, asked_at=5000.0)), shelved(A)], back("a")),
        # Whoever was left alone for ten minutes longer makes way; nobody else, and not for nothing.
        (1000, 700, [A, shelved(B, asked_at=1600.0)], MemoryDecision(give_up=("a",), take_back=("b",))),
        (1000, 700, [A, shelved(B, asked_at=1599.0)], MemoryDecision()),
        (1000, 700, [C, shelved(A)], MemoryDecision(give_up=("c",), take_back=("a",))),
        (1000, 600, [A, C, shelved(B, asked_at=1700.0)], MemoryDecision(give_up=("c",), take_back=("b",))),
        (1000, 701, [A, shelved(B, asked_at=9999.0)], MemoryDecision()),
        (1000, 700, [A, shelved(C)], MemoryDecision()),
    ],
)
def test_what_is_decided(
    limit: int, rest: int, holdings: Sequence[AgentVectors], decided: MemoryDecision
) -> None:
    """The least recently searched goes first and comes last."""
    assert decide(limit, [MemorySeen(0.0, rest)], holdings) == decided


def test_room_counts_only_if_it_was_there_all_the_time() -> None:
    """A worker that ran a minute ago runs again."""
    seen = [MemorySeen(0.0, 500), MemorySeen(60.0, 700), MemorySeen(120.0, 500)]
    assert decide(1000, seen, [shelved(A), shelved(B)]) == back("b")
    assert decide(1000, seen[::2], [shelved(A), shelved(B)]) == back("b", "a")


def test_who_just_went_stays_away() -> None:
    """Even where there is room; another one may come."""
    both = [shelved(A, given_up_at=0.0), shelved(B, given_up_at=1.0)]
    assert decide(1000, [MemorySeen(LATELY_S, 0)], both) == back("a")
    assert decide(0, [MemorySeen(LATELY_S, 0)], both) == back("b", "a")


def test_what_is_long_ago_is_forgotten() -> None:
    """After ten minutes."""
    seen: tuple[MemorySeen, ...] = ()
    for at in range(0, 1000, 100):
        seen = seen_lately(seen, MemorySeen(float(at), at))
    assert [one.at for one in seen] == [400.0, 500.0, 600.0, 700.0, 800.0, 900.0]


REST = st.lists(st.integers(0, 1500), min_size=1, max_size=200)
SIZES = st.lists(st.integers(1, 400), min_size=1, max_size=4)


@given(st.integers(100, 1200), REST, SIZES, st.integers(1, 120), st.data())
def test_nothing_flaps(
    limit: int, rests: list[int], sizes: list[int], step_s: int, data: st.DataObject
) -> None:
    """However memory goes up and down and whoever is asked, no vectors come back within ten minutes of going."""
    holdings = {f"agent{n}": holding(f"agent{n}", size) for n, size in enumerate(sizes)}
    seen: tuple[MemorySeen, ...] = ()
    went: dict[str, float] = {}
    for number, rest in enumerate(rests):
        now = float(number * step_s)
        asked = data.draw(st.sampled_from([None, *holdings]))
        if asked is not None:
            holdings[asked] = msgspec.structs.replace(holdings[asked], asked_at=now)
        seen = seen_lately(seen, MemorySeen(now, rest))
        decision = decide(limit, seen, list(holdings.values()))
        before = rest + sum(one.resident_bytes for one in holdings.values())
        for agent in decision.give_up:
            holdings[agent] = shelved(holdings[agent], given_up_at=now)
            went[agent] = now
        for agent in decision.take_back:
            assert now - went.get(agent, -LATELY_S) >= LATELY_S
            one = holdings[agent]
            holdings[agent] = msgspec.structs.replace(one, resident_bytes=one.whole_bytes, is_shelved=False)
        after = rest + sum(one.resident_bytes for one in holdings.values())
        # Either the limit is kept, or nothing is left to give up.
        assert after <= limit or not any(one.resident_bytes for one in holdings.values())
        assert not decision.take_back or after <= 0.8 * limit
        assert (
            before <= limit
            or after <= 0.9 * limit
            or not any(one.resident_bytes for one in holdings.values())
        )
