"""Lines of Copilot CLI, as its schema of events (1.0.102) has them."""

from typing import Any

import pytest

from memd.sources.transcripts.copilot import FORMAT
from memd.sources.transcripts.format import RecordAdded, Rewound, SessionFacts, TurnAdded, UnparsedLine
from tests.sources.transcripts.parsing import events, turns
from tests.table import table

AT = "2026-08-21T10:00:00Z"


def event(kind: str, identity: str = "e", **data: Any) -> dict[str, Any]:
    return {"type": kind, "id": identity, "timestamp": AT, "parentId": None, "data": data}


def user(text: Any, identity: str = "u", **data: Any) -> dict[str, Any]:
    return event("user.message", identity, content=text, **data)


def agent(text: Any, identity: str = "a", **data: Any) -> dict[str, Any]:
    return event("assistant.message", identity, content=text, **data)


START = event("session.start", sessionId="s", startTime=AT, context={"cwd": "/home/li/shop"})
NOTHING = [RecordAdded("e")]


@table(
    ("record", "found"),
    [
        (START, [SessionFacts("s", "/home/li/shop", 1787306400.0), *NOTHING]),
        (event("session.start", sessionId="s"), [SessionFacts("s", None, 1787306400.0), *NOTHING]),
        (user("hi", "e", transformedContent="<current_datetime>x</current_datetime>\n\nhi"),
         [TurnAdded("e", "user", 1787306400.0, "hi")]),
        (agent("yes", "e", toolRequests=[{"name": "bash", "arguments": {"command": "ls"}}]),
         [TurnAdded("e", "assistant", 1787306400.0, "yes")]),
        (agent("", "e", toolRequests=[{"name": "bash"}]), NOTHING),
        (agent("a thought", "e", phase="thinking"), NOTHING),
        (agent("yes", "e") | {"agentId": "7"}, NOTHING),
        (agent("yes", "e", parentToolCallId="call_1"), NOTHING),
        (user("count the tables", "e", source="agent-7"), NOTHING),
        (user("what a skill says", "e", source="skill-pdf"), NOTHING),
        (user("go on", "e", isAutopilotContinuation=True), NOTHING),
        (user("<system_reminder>x</system_reminder>", "e"), [TurnAdded("e", "user", 1787306400.0, "<system_reminder>x</system_reminder>")]),
        (event("system.message", content="You are an assistant."), NOTHING),
        (event("tool.execution_complete", result={"content": "an output"}), NOTHING),
        (event("session.compaction_complete", summaryContent="They spoke."), NOTHING),
        (event("some.news", content="x"), NOTHING),
        (event("session.snapshot_rewind", upToEventId="u"), [Rewound("u", or_all=False), *NOTHING]),
        (event("session.snapshot_rewind"), [UnparsedLine("unknown"), *NOTHING]),
        (user(5, "e"), NOTHING),
        ({"type": "user.message", "id": "e", "data": 5}, [UnparsedLine("unknown")]),
        ({"type": "user.message", "id": "e"}, NOTHING),
        ({"id": "e"}, [UnparsedLine("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """What was typed and what was answered; nothing of subagents, of tools and of the program."""
    assert events(FORMAT, record) == found


A, B, C = user("A", "a"), agent("B", "b"), user("C", "c")
AS, BS, CS = ("user", "A"), ("assistant", "B"), ("user", "C")


@pytest.mark.parametrize(
    ("first", "said"),
    [("c", [AS, BS]), ("b", [AS]), ("a", []), ("e", [AS, BS]), ("lost", [AS, BS, CS])],
)
def test_what_was_taken_back_is_gone(first: str, said: list[tuple[str, str]]) -> None:
    """From an event on, be it a turn or none; one that is not there took its turns with it."""
    lines = [START, A, B, event("assistant.turn_end", "e"), C]
    assert turns(FORMAT, *lines, event("session.snapshot_rewind", "r", upToEventId=first)) == said
