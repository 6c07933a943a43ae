"""Lines of Gemini CLI."""

import json
from typing import Any

import pytest

from memd.sources.transcripts.format import RecordAdded, Rewound, SessionFacts, TurnAdded, UnparsedLine
from memd.sources.transcripts.gemini import FORMAT, QWEN
from tests.sources.transcripts.parsing import events, turns
from tests.table import table


def line(identity: str, content: Any, kind: str = "user", **more: Any) -> dict[str, Any]:
    return {"id": identity, "type": kind, "content": content, **more}


HEAD = {"sessionId": "s", "projectHash": "9f", "startTime": "2026-08-21T10:00:00Z", "kind": "main"}
LEARNT = SessionFacts(session_id="s", started_at=1787306400.0)


@table(
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


@table(
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


def test_what_a_hook_adds_was_not_said() -> None:
    """It is a part of its own; a person may write about it."""
    added = "<hook_context>from memory</hook_context>"
    assert turns(FORMAT, line("a", [{"text": "hi"}, {"text": added}])) == [("user", "hi")]
    assert turns(FORMAT, line("a", [{"text": f"what is {added}?"}])) == [("user", f"what is {added}?")]


# --- Qwen Code


def record(
    identity: str, parent: str | None, kind: str, *parts: object, provenance: str | None = None
) -> bytes:
    """A line as Qwen Code writes it."""
    head = {"uuid": identity, "parentUuid": parent, "sessionId": "s", "type": kind, "provenance": provenance}
    return json.dumps({**head, "message": {"role": "user", "parts": parts}}).encode()


ASKED = record("a", None, "user", {"text": "which one?"}, provenance="real_user")
CALLED = record("b", "a", "assistant", {"functionCall": {"name": "x"}}, provenance="assistant_output")
FOUND = record("c", "b", "tool_result", {"text": "a file"}, provenance="tool_result")
REPLIED = record("d", "c", "assistant", {"text": "hm", "thought": True}, {"text": "That one."})
TYPED = ("user", "which one?")


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        ([ASKED, CALLED, FOUND, REPLIED], [TYPED, ("assistant", "That one.")]),
        ([ASKED, REPLIED, ASKED, REPLIED], [TYPED, ("assistant", "That one.")]),
        # Rewound to before the answer, and to the very beginning.
        ([ASKED, CALLED, FOUND, REPLIED, record("e", "a", "user", {"text": "no"})], [TYPED, ("user", "no")]),
        ([ASKED, REPLIED, record("e", None, "user", {"text": "again"})], [("user", "again")]),
        ([ASKED, record("b", "a", "user", {"text": "go on"}, provenance="goal_runtime")], [TYPED]),
        (
            [
                record(
                    "a",
                    None,
                    "user",
                    {"text": "hi"},
                    {"text": "<qwen:user-prompt-submit-context>\nx\n</qwen:user-prompt-submit-context>"},
                )
            ],
            [("user", "hi")],
        ),
        (
            [
                record("a", None, "system", {"text": "x"}),
                record("b", "a", "user", {"text": ""}),
                b'{"uuid": "c"}',
            ],
            [],
        ),
        ([b'{"uuid": "a", "type": "user", "message": {"parts": 5}}', b"{", b"[]", b'{"uuid": 5}'], []),
    ],
)
def test_what_is_said_in_qwen_code(lines: list[bytes], said: list[tuple[str, str]]) -> None:
    """The living branch: no thoughts, no tools, nothing that a hook or the program itself added."""
    assert turns(QWEN, *lines) == said
