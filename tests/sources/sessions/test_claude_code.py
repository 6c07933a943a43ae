"""Lines of Claude Code."""

from typing import Any

import pytest

from memd.sources.sessions.claude_code import FORMAT
from memd.sources.sessions.events import Cleared, Learnt, Said, Unread
from tests.sources.sessions.parsing import events, turns


def user(uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}, **more}


def reply(uuid: str, message: str | None, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "uuid": uuid, "message": {"id": message, "content": content, **more}}


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (user("u", "hi"), [Said("u", "user", None, "hi")]),
        (user("u", [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}]), [Said("u", "user", None, "hi")]),
        (user("u", "hi", isMeta=True), []),
        (user("u", "hi", isCompactSummary=True), []),
        (user("u", "hi", isMeta="yes"), [Said("u", "user", None, "hi")]),
        (user("u", [{"type": "tool_result", "content": "x"}], toolUseResult={"stdout": "x"}), []),
        (user("u", [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]), []),
        (user("u", "[Request interrupted by user]"), []),
        (user("u", 5), [Unread("unknown")]),
        ({"type": "user", "uuid": "u"}, [Unread("unknown")]),
        ({"type": "user", "uuid": 5, "message": {"content": "hi"}}, [Said("", "user", None, "hi")]),
        (reply("u", "m", "hi"), [Said("m", "assistant", None, "hi")]),
        (reply("u", None, "hi"), [Said("u", "assistant", None, "hi")]),
        (reply("u", "m", "API Error: 500", model="<synthetic>"), []),
        ({"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "x"}]}}, []),
        ({"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"text": "x"}}]}}, []),
        ({"type": "summary", "summary": "x", "leafUuid": "u"}, []),
        ({"type": "ai-title", "title": "x"}, []),
        ({"type": "system", "subtype": "compact_boundary", "content": "x"}, []),
        ({"type": "attachment", "attachment": {"content": "x"}}, []),
        ({"type": "news"}, [Unread("unknown")]),
        ({}, [Unread("unknown")]),
        (b"5", [Unread("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """Only what a user or the assistant said is speech, whatever shape a record has."""
    assert events(FORMAT, record) == found


def test_lines_of_one_reply_are_one_turn() -> None:
    """Blocks of a message are joined, with tools in between, until somebody else speaks."""
    result = user("r", [{"type": "tool_result", "content": "x"}])
    lines = [
        reply("1", "m", "one"),
        result,
        reply("2", "m", "two"),
        user("3", "stop"),
        reply("4", "m", "three"),
    ]
    assert turns(FORMAT, *lines) == [("assistant", "one\n\ntwo"), ("user", "stop"), ("assistant", "three")]
    said = [each for each in events(FORMAT, *lines) if isinstance(each, Said)]
    assert [(each.id, each.joins) for each in said] == [("m", False), ("m", True), ("3", False), ("4", False)]


def test_repeated_lines_are_said_once() -> None:
    """A line that is there again, as after a session was resumed, adds nothing."""
    lines = [user("1", "hi"), reply("2", "m", "hello"), user("3", "hi")]
    assert turns(FORMAT, *lines, *lines) == turns(FORMAT, *lines)
    assert len(turns(FORMAT, *lines)) == 3


def test_lines_of_subagents_are_left_out() -> None:
    """A session does not say what its subagents said; their own transcripts do, and are known as such."""
    task = user("s", "count", isSidechain=True)
    assert turns(FORMAT, user("1", "hi"), task, user("2", "well?")) == [("user", "hi"), ("user", "well?")]
    assert events(FORMAT, task) == [Learnt(subagent=True), Said("s", "user", None, "count")]
    assert events(FORMAT, task, user("1", "hi"), task) == [
        Learnt(subagent=True),
        Said("s", "user", None, "count"),
        Cleared(),
        Learnt(subagent=False),
        Said("1", "user", None, "hi"),
    ]


def test_the_session_is_told_bit_by_bit() -> None:
    """Each thing that is learnt about the session comes from the first line that has it."""
    first = {"type": "mode", "sessionId": "s"}
    second = {"type": "system", "sessionId": "t", "cwd": "/a", "timestamp": "2026-08-10T12:00:00.000Z"}
    third = {"type": "system", "sessionId": "t", "cwd": "/b", "timestamp": "2026-08-11T12:00:00.000Z"}
    assert events(FORMAT, first, second, third) == [
        Learnt(session_id="s"),
        Learnt(cwd="/a", started_at=1786363200.0),
    ]
