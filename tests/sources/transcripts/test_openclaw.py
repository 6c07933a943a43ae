"""Lines of OpenClaw and pi."""

from itertools import pairwise
from typing import Any

import pytest

from memd.sources.transcripts.format import Branched, RecordAdded, SessionFacts, TurnAdded, UnparsedLine
from memd.sources.transcripts.openclaw import FORMAT
from tests.bounds import shipped
from tests.sources.transcripts.parsing import events, turns
from tests.table import table


def line(identity: str, parent: str | None, role: str, text: Any, **more: Any) -> dict[str, Any]:
    message = {"role": role, "content": text, **more}
    return {"type": "message", "id": identity, "parentId": parent, "message": message}


def test_the_head_tells_of_the_session() -> None:
    """Id, directory and time of the session are learnt from its first line."""
    head = {"type": "session", "version": 3, "id": "s", "timestamp": "2026-03-02T01:02:03.000Z", "cwd": "/ws"}
    assert events(FORMAT, head) == [SessionFacts(session_id="s", cwd="/ws", started_at=1772413323.0)]


@pytest.mark.parametrize(
    ("times", "at"),
    [
        ({"timestamp": "2026-03-02T01:02:09.120Z"}, 1772413329.12),
        ({"timestamp": 1772413329120}, 1772413329.12),
        ({"timestamp": "1772413329120"}, 1772413329.12),
        ({"timestamp": "soon"}, 5.0),
        ({"timestamp": None}, 5.0),
        ({}, 5.0),
    ],
)
def test_times(times: dict[str, Any], at: float) -> None:
    """A turn has the time of its record, or else that of its message."""
    record = {**line("a", None, "user", "hi", timestamp=5), **times}
    assert events(FORMAT, record) == [TurnAdded("a", "user", at, "hi")]


@table(
    ("record", "found"),
    [
        (line("a", None, "user", "hi"), [TurnAdded("a", "user", None, "hi")]),
        (line("a", None, "assistant", [{"type": "text", "text": "a"}, {"type": "text", "text": "b"}]), [TurnAdded("a", "assistant", None, "a\n\nb")]),
        (line("a", None, "assistant", [{"type": "thinking", "thinking": "x"}, {"type": "toolCall", "id": "1"}]), [RecordAdded("a")]),
        (line("a", None, "user", [{"type": "image", "data": "aa"}]), [RecordAdded("a")]),
        (line("a", None, "user", []), [RecordAdded("a")]),
        (line("a", None, "user", None), [RecordAdded("a")]),
        (line("a", None, "toolResult", [{"type": "text", "text": "x"}]), [RecordAdded("a")]),
        (line("a", None, "bashExecution", None, command="ls", output="a"), [RecordAdded("a")]),
        (line("a", None, "assistant", "NO_REPLY"), [RecordAdded("a")]),
        (line("a", None, "user", 5), [RecordAdded("a"), UnparsedLine("unknown")]),
        (line("a", None, "user", [{"type": "text", "text": 5}]), [RecordAdded("a"), UnparsedLine("unknown")]),
        (line("a", None, "user", [5, {"type": "text", "text": "hi"}]), [TurnAdded("a", "user", None, "hi")]),
        ({"type": "message", "id": "a", "parentId": None, "message": {"role": 5}}, [RecordAdded("a"), UnparsedLine("unknown")]),
        ({"type": "message", "id": "a", "parentId": None, "message": 5}, [UnparsedLine("unknown")]),
        ({"type": "message", "message": {"role": "user", "content": "hi"}}, [TurnAdded("", "user", None, "hi")]),
        ({"type": "compaction", "id": "a", "parentId": None, "summary": "x"}, [RecordAdded("a")]),
        ({"type": "branch_summary", "id": "a", "parentId": None, "summary": "x"}, [RecordAdded("a")]),
        ({"type": "custom_message", "id": "a", "parentId": None, "content": "x"}, [RecordAdded("a")]),
        ({"type": "custom", "id": "a", "parentId": None, "data": {}}, [RecordAdded("a")]),
        ({"type": "label", "id": "a", "parentId": None}, [RecordAdded("a")]),
        ({"type": "news", "id": "a", "parentId": None}, [RecordAdded("a"), UnparsedLine("unknown")]),
        ({"type": ["message"]}, [UnparsedLine("unknown")]),
        ([], [UnparsedLine("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """Only what a user or the assistant said is speech, whatever shape a record has."""
    assert events(FORMAT, record) == found


def test_the_branch_that_is_gone_on_with() -> None:
    """What is on no way from the last record to the root is gone, and back when somebody goes back there."""
    first = [
        line("a", None, "user", "A"),
        line("b", "a", "assistant", "B"),
        line("c", "b", "toolResult", "x"),
    ]
    other = [line("d", "a", "assistant", "D"), line("e", "d", "user", "E")]
    a, b, d, e = ("user", "A"), ("assistant", "B"), ("assistant", "D"), ("user", "E")
    assert turns(FORMAT, *first) == [a, b]
    assert turns(FORMAT, *first, *other) == [a, d, e]
    assert turns(FORMAT, *first, *other, line("f", "c", "user", "F")) == [a, b, ("user", "F")]
    assert turns(FORMAT, *first, *other, line("f", None, "user", "F")) == [("user", "F")]
    assert turns(FORMAT, *first, line("f", "lost", "user", "F")) == [a, b, ("user", "F")]


def test_records_from_outside_the_tree() -> None:
    """A record without a parent stands where it stands, and branches nothing."""
    inserted = {"type": "message", "id": "x", "message": {"role": "assistant", "content": "X"}}
    found = events(FORMAT, line("a", None, "user", "A"), inserted, line("b", "a", "user", "B"))
    assert not any(isinstance(each, Branched) for each in found)
    assert turns(FORMAT, {"type": "session", "id": "s"}, inserted, inserted) == [("assistant", "X")] * 2


def test_what_was_delivered_is_no_second_reply() -> None:
    """A reply that is written down again when it is delivered counts once; one that was silent before counts."""
    hi, mirror = line("a", None, "user", "hi"), {"provider": "openclaw", "model": "delivery-mirror"}
    reply, silent = line("b", "a", "assistant", "Hello."), line("b", "a", "assistant", "NO_REPLY")
    delivered = line("c", "b", "assistant", "Hello.", **mirror)
    said = [("user", "hi"), ("assistant", "Hello.")]
    assert turns(FORMAT, hi, reply, delivered) == said
    assert turns(FORMAT, hi, silent, delivered) == said


def test_what_the_gateway_puts_in_takes_nothing_back() -> None:
    """The agent goes on from its own last record, or from what was put in; both stay."""
    mirror = {"provider": "openclaw", "model": "delivery-mirror"}
    lines = [
        line("a", None, "user", "hi"),
        line("b", "a", "assistant", "", model="x"),
        line("m", "b", "assistant", "M", **mirror),
    ]
    said = [("user", "hi"), ("assistant", "M"), ("assistant", "C")]
    assert turns(FORMAT, *lines, line("c", "b", "assistant", "C")) == said
    assert turns(FORMAT, *lines, line("c", "m", "assistant", "C")) == said
    assert turns(FORMAT, *lines, line("c", "a", "assistant", "C")) == [said[0], said[2]]
    for parent in ("b", "m"):
        assert Branched(parent) not in events(FORMAT, *lines, line("c", parent, "assistant", "C"))


def test_a_reply_is_known_again_among_the_last_ones() -> None:
    """However often the agent spoke meanwhile it is one of so many."""
    most = shipped("memd.sources.transcripts.openclaw._REPLIES_KEPT")
    for between, times in ((most - 1, 1), (most, 2)):
        names = [f"r{number}" for number in range(between + 1)]
        replies = [
            line(name, before, "assistant", "Hello." if number == 0 else f"And {number}.")
            for number, (before, name) in enumerate(pairwise(["a", *names]))
        ]
        mirror = line("m", names[-1], "assistant", "Hello.", provider="openclaw", model="delivery-mirror")
        said = turns(FORMAT, line("a", None, "user", "hi"), *replies, mirror)
        assert said.count(("assistant", "Hello.")) == times


def test_the_last_records_that_were_put_in_may_be_gone_on_from() -> None:
    """So many of them; an earlier one is a rewind."""
    most = shipped("memd.sources.transcripts.openclaw._BESIDE_KEPT")
    mirror = {"provider": "openclaw", "model": "delivery-mirror"}
    for count, rewound in ((most, False), (most + 1, True)):
        put_in = [line(f"m{number}", "b", "assistant", f"M{number}", **mirror) for number in range(count)]
        lines = [line("a", None, "user", "hi"), line("b", "a", "assistant", "", model="x"), *put_in]
        gone_on = line("c", "m0", "assistant", "C")
        assert (Branched("m0") in events(FORMAT, *lines, gone_on)) is rewound
