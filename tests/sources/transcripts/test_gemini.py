"""Lines of Gemini CLI."""

from typing import Any

import pytest

from memd.sources.transcripts.format import RecordAdded, Rewound, SessionFacts, TurnAdded, UnparsedLine
from memd.sources.transcripts.gemini import FORMAT
from tests.sources.transcripts.parsing import events, turns


def line(identity: str, content: Any, kind: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": identity, "type": kind, "content": content, **more}


HEAD = {"sessionId": "s", "projectHash": "9f", "startTime": "2026-08-21T10:00:00Z", "kind": "main"}
LEARNT = SessionFacts(session_id="s", started_at=1787306400.0)


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (HEAD, [LEARNT]),
        ({**HEAD, "kind": "subagent"}, [SessionFacts("s", None, 1787306400.0, subagent=True)]),
        (line("m", "hi"), [TurnAdded("m", "user", None, "hi")]),
        (line("m", [{"text": "hi, "}, {"text": "you"}]), [TurnAdded("m", "user", None, "hi, you")]),
        (line("m", {"text": "hi"}), [TurnAdded("m", "user", None, "hi")]),
        (line("m", ["hi"]), [TurnAdded("m", "user", None, "hi")]),
        (line("m", [{"text": "x", "thought": True}, {"text": "hi"}], "gemini"), [TurnAdded("m", "assistant", None, "hi")]),
        (line("m", "hi\nfile", displayContent=[{"text": "hi"}]), [TurnAdded("m", "user", None, "hi")]),
        (line("m", [{"functionResponse": {"response": {"output": "x"}}}]), [RecordAdded("m")]),
        (line("m", [{"inlineData": {"data": "aa"}}]), [RecordAdded("m")]),
        (line("m", "", "gemini", toolCalls=[{"result": [{"text": "x"}]}]), [RecordAdded("m")]),
        (line("m", "x", "info"), [RecordAdded("m")]),
        (line("m", "x", "error"), [RecordAdded("m")]),
        (line("m", "x", "news"), [RecordAdded("m"), UnparsedLine("unknown")]),
        (line("m", 5), [RecordAdded("m"), UnparsedLine("unknown")]),
        ({"$set": {"lastUpdated": "x", "summary": "x"}}, []),
        ({"$set": {"messages": []}}, []),
        ({"$set": 5}, [UnparsedLine("unknown")]),
        ({"$set": {"messages": [5]}}, [UnparsedLine("unknown")]),
        ({"$rewindTo": "m"}, [Rewound("m")]),
        ({"$rewindTo": 5}, [UnparsedLine("unknown")]),
        ({}, [UnparsedLine("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """Only what a user or the assistant said is speech, whatever shape a record has."""
    assert events(FORMAT, record) == found


A, B, C = line("a", "A"), line("b", "B", "gemini"), line("c", "C")
AS, BS, CS = ("user", "A"), ("assistant", "B"), ("user", "C")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([A, line("b", "B to be", "gemini"), B, C], [AS, BS, CS]),
        ([A, line("b", "B", "gemini"), C, line("b", "B2", "gemini")], [AS, ("assistant", "B2"), CS]),
        ([A, line("b", "", "gemini"), B, C], [AS, BS, CS]),
        ([A, B, line("b", "", "gemini"), C], [AS, BS, CS]),
        ([A, B, line("a", "x", "info"), C, line("a", "A2")], [("user", "A2"), BS, CS]),
        ([A, B, C, {"$rewindTo": "b"}], [AS]),
        ([A, B, C, {"$rewindTo": "b"}, B], [AS, BS]),
        ([A, B, C, {"$rewindTo": "a"}], []),
        ([A, B, {"$rewindTo": "lost"}, C], [CS]),
        ([A, line("i", "x", "info"), B, {"$rewindTo": "i"}, C], [AS, CS]),
        ([A, B, {"$rewindTo": "b"}, {"$rewindTo": "b"}, C], [AS, CS]),
        ([A, B, {"$set": {"messages": [B, C]}}], [BS, CS]),
        ([A, B, {"$set": {"messages": [C]}}, line("c", "C2"), B], [("user", "C2"), BS]),
        ([HEAD | {"messages": [A, B]}], [AS, BS]),
        ([HEAD, A, HEAD, B], [AS, BS]),
    ],
)
def test_operations(lines: list[Any], said: list[tuple[str, str]]) -> None:
    """Messages are replaced by id, taken back from one on, and replaced all."""
    assert turns(FORMAT, *lines) == said
