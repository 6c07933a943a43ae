"""From events to turns, in one reading or in many."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import Role, Turn
from memd.sources.transcripts.format import (
    Branched,
    Cleared,
    Dropped,
    Event,
    RecordAdded,
    Rewound,
    SessionFacts,
    TurnAdded,
    UnparsedLine,
)
from memd.sources.transcripts.turn_builder import TurnBuilder, UnresolvedReference, both
from tests.table import table


def user(identity: str, text: str = "", **more: bool) -> TurnAdded:
    return TurnAdded(identity, "user", None, text or identity.upper(), **more)


def reply(identity: str, text: str = "", **more: bool) -> TurnAdded:
    return TurnAdded(identity, "assistant", None, text or identity.upper(), **more)


def turn(identity: str, start: int = 1, end: int | None = None, text: str = "", role: Role = "user") -> Turn:
    return Turn(identity, role, None, start, end or start, text or identity.upper())


def built(
    events: list[Event], before: int | None = None, last: Turn | None = None, after: int = 0
) -> TurnBuilder:
    builder = TurnBuilder(before, last)
    for number, event in enumerate(events, after + 1):
        builder.take(number, event)
    return builder


@table(
    ("events", "said"),
    [
        ([], []),
        ([user("a"), reply("b")], ["A 1-1", "B 2-2"]),
        ([reply("a"), RecordAdded("x"), reply("a", "more", joins=True)], ["A\n\nmore 1-3"]),
        ([reply("a"), user("b"), reply("a", "more", joins=True)], ["A 1-1", "B 2-2", "more 3-3"]),
        ([reply("a", joins=True)], ["A 1-1"]),
        ([user("a"), user("a", "more", joins=True), reply("a", joins=True)], ["A\n\nmore 1-2", "A 3-3"]),
        ([user("a"), reply("b"), reply("b", "B2", again=True)], ["A 1-1", "B2 2-3"]),
        ([user("a"), reply("b"), user("a", "A2", again=True)], ["A2 1-1", "B 2-2"]),
        ([user("a", again=True)], ["A 1-1"]),
        ([user(""), user("")], [" 1-1", " 2-2"]),
        ([user("a"), reply("b"), user("c"), Rewound("b")], ["A 1-1"]),
        ([user("a"), RecordAdded("x"), reply("b"), Rewound("x")], ["A 1-1"]),
        ([user("a"), Rewound("lost"), user("b")], ["B 3-3"]),
        ([user("a"), reply("b"), Rewound("b"), Rewound("b")], ["A 1-1"]),
        ([user("a"), reply("b"), Rewound("b"), reply("b", again=True)], ["A 1-1", "B 4-4"]),
        ([user("a"), reply("b"), user("c"), reply("d"), Dropped(1)], ["A 1-1", "B 2-2"]),
        ([user("a"), reply("b"), user("c"), reply("d"), Dropped(2)], []),
        ([reply("z"), user("a"), reply("b"), Dropped(9)], ["Z 1-1"]),
        ([reply("z"), Dropped(1)], ["Z 1-1"]),
        ([user("a"), Cleared(), user("b")], ["B 3-3"]),
        ([user("a"), reply("b"), Branched("a"), reply("c")], ["A 1-1", "C 4-4"]),
        ([user("a"), reply("b"), Branched("a"), reply("c"), Branched("b"), user("d")], ["A 1-1", "B 2-2", "D 6-6"]),
        ([RecordAdded("x"), user("a"), Branched("x"), user("b")], ["B 4-4"]),
        ([user("a"), Branched(None), user("b")], ["B 3-3"]),
        ([user("a"), Branched("lost"), user("b")], ["A 1-1", "B 3-3"]),
        ([user("a"), UnparsedLine("broken"), SessionFacts(cwd="/a")], ["A 1-1"]),
    ],
)  # fmt: skip
def test_one_reading(events: list[Event], said: list[str]) -> None:
    """Turns come, join, are replaced, and go, as the events say; they stay in the order of their lines."""
    builder = built(events)
    assert builder.turns_from == 0
    found = [f"{each.text} {each.start_line}-{each.end_line}" for each in builder.turns]
    assert found == said


LAST = turn("b", 8, role="assistant")


@pytest.mark.parametrize(
    ("events", "turns_from", "turns"),
    [
        ([], 5, []),
        ([user("c")], 5, [turn("c", 9)]),
        ([RecordAdded("x"), user("c"), Branched("x")], 5, []),
        ([reply("b", "more", joins=True)], 4, [turn("b", 8, 9, "B\n\nmore", "assistant")]),
        ([reply("b", "B2", again=True)], 4, [turn("b", 8, 9, "B2", "assistant")]),
        ([Rewound("b")], 4, []),
        ([Rewound("b"), user("c")], 4, [turn("c", 10)]),
        ([user("c"), Branched("b"), user("d")], 5, [turn("d", 11)]),
        ([user("c"), Dropped(1)], 5, []),
        ([Cleared(), user("c")], 0, [turn("c", 10)]),
        ([Branched(None), user("c")], 0, [turn("c", 10)]),
    ],
)
def test_going_on(events: list[Event], turns_from: int, turns: list[Turn]) -> None:
    """A later reading gives what changed, and from where on."""
    builder = built(events, 5, LAST, 8)
    assert (builder.turns_from, builder.turns) == (turns_from, turns)


@pytest.mark.parametrize(
    "events",
    [
        [user("a", again=True)],
        [Rewound("a")],
        [Branched("a")],
        [Dropped(1)],
        [user("c"), Dropped(2)],
        [Rewound("b"), reply("a", joins=True)],
    ],
)
def test_what_cannot_be_followed(events: list[Event]) -> None:
    """What refers to an earlier reading is not guessed at."""
    with pytest.raises(UnresolvedReference):
        built(events, 5, LAST, 8)


def test_records_before_the_first_turn() -> None:
    """Also where an earlier reading found no turn, what it passed is not known."""
    with pytest.raises(UnresolvedReference):
        built([user("a"), Branched("x")], 0)
    assert built([user("a")], 0).turns == [turn("a")]


def test_an_unknown_last_turn() -> None:
    """Where the last turn is not known, others still come after it."""
    builder = built([user("c")], 5, None, 8)
    assert (builder.turns_from, builder.turns) == (5, [turn("c", 9)])
    with pytest.raises(UnresolvedReference):
        built([reply("b", joins=True)], 5)


def test_learnt() -> None:
    """What is learnt later counts, and what was learnt before is kept."""
    known = SessionFacts(session_id="s", subagent=True)
    builder = TurnBuilder(0, None, known)
    builder.take(1, SessionFacts(cwd="/a", subagent=False))
    assert builder.learnt == SessionFacts(session_id="s", cwd="/a", subagent=False)
    assert both(SessionFacts(), known) == known


IDS = st.sampled_from(["", "a", "b", "c", "d", "e"])
EVENTS = st.lists(
    st.one_of(
        st.builds(
            TurnAdded,
            IDS,
            st.sampled_from(["user", "assistant"]),
            st.none(),
            st.sampled_from(["one", "two"]),
            joins=st.booleans(),
        ),
        st.builds(RecordAdded, IDS),
        st.builds(Rewound, IDS),
        st.builds(Branched, st.none() | IDS),
        st.builds(Dropped, st.integers(1, 3)),
        st.builds(Cleared),
    ),
    max_size=14,
)


@given(EVENTS, st.lists(st.integers(0, 14), max_size=3))
def test_many_readings_give_what_one_gives(events: list[Event], cuts: list[int]) -> None:
    """However the events are spread over readings, the turns are those of one reading, or it is said that they are not."""
    stored: list[Turn] = []
    builder, start = TurnBuilder(), 0
    for end in [*sorted(cut for cut in cuts if cut < len(events)), len(events)]:
        try:
            for number, event in enumerate(events[start:end], start + 1):
                builder.take(number, event)
        except UnresolvedReference:
            return
        stored[builder.turns_from :] = builder.turns
        builder, start = TurnBuilder(len(stored), stored[-1] if stored else None), end
    assert stored == built(events).turns
