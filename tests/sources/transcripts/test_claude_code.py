"""Lines of Claude Code."""

import json
from typing import Any

import pytest

from memd.sources.transcripts import claude_code
from memd.sources.transcripts.claude_code import FORMAT
from memd.sources.transcripts.format import Cleared, RecordAdded, SessionFacts, TurnAdded, UnparsedLine
from tests.bounds import shipped
from tests.sources.transcripts.parsing import events, turns
from tests.table import table


def user(uuid: str, content: Any, **more: Any) -> dict[str, Any]:
    return {"type": "user", "uuid": uuid, "message": {"role": "user", "content": content}, **more}


def reply(uuid: str, message: str | None, text: str, **more: Any) -> dict[str, Any]:
    content = [{"type": "text", "text": text}]
    return {"type": "assistant", "uuid": uuid, "message": {"id": message, "content": content, **more}}


@table(
    ("record", "found"),
    [
        (user("u", "hi"), [TurnAdded("u", "user", None, "hi")]),
        (user("u", [{"type": "text", "text": "hi"}, {"type": "image", "source": {}}]), [TurnAdded("u", "user", None, "hi")]),
        (user("u", "hi", isMeta=True), []),
        (user("u", "hi", isCompactSummary=True), []),
        (user("u", "hi", isVisibleInTranscriptOnly=True), []),
        (user("u", "hi", isMeta=False, isCompactSummary=False, isVisibleInTranscriptOnly=False), [TurnAdded("u", "user", None, "hi")]),
        (user("u", "hi", isMeta="yes"), [TurnAdded("u", "user", None, "hi")]),
        (user("u", [{"type": "tool_result", "content": "x"}], toolUseResult={"stdout": "x"}), []),
        (user("u", [{"type": "tool_result", "content": [{"type": "text", "text": "x"}]}]), []),
        (user("u", "[Request interrupted by user]"), []),
        (user("u", 5), [UnparsedLine("unknown")]),
        ({"type": "user", "uuid": "u"}, [UnparsedLine("unknown")]),
        ({"type": "user", "uuid": 5, "message": {"content": "hi"}}, [TurnAdded("", "user", None, "hi")]),
        (reply("u", "m", "hi"), [TurnAdded("m", "assistant", None, "hi")]),
        (reply("u", None, "hi"), [TurnAdded("u", "assistant", None, "hi")]),
        (reply("u", "m", "API Error: 500", model="<synthetic>"), []),
        ({"type": "assistant", "message": {"content": [{"type": "thinking", "thinking": "x"}]}}, []),
        ({"type": "assistant", "message": {"content": [{"type": "tool_use", "input": {"text": "x"}}]}}, []),
        ({"type": "summary", "summary": "x", "leafUuid": "u"}, []),
        ({"type": "ai-title", "title": "x"}, []),
        ({"type": "system", "subtype": "compact_boundary", "content": "x"}, []),
        ({"type": "attachment", "attachment": {"content": "x"}}, []),
        ({"type": "news"}, [UnparsedLine("unknown")]),
        ({}, [UnparsedLine("unknown")]),
        (b"5", [UnparsedLine("unknown")]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """Only what a user or the assistant said is speech, whatever shape a record has."""
    assert [event for event in events(FORMAT, record) if not isinstance(event, RecordAdded)] == found


def typed_ahead(uuid: str, prompt: Any, **more: Any) -> dict[str, Any]:
    queued = {"type": "queued_command", "commandMode": "prompt", "prompt": prompt} | more
    return {"type": "attachment", "uuid": uuid, "attachment": queued}


@pytest.mark.parametrize(
    ("attachment", "text"),
    [
        (typed_ahead("u", "port 7171"), "port 7171"),
        (typed_ahead("u", [{"type": "text", "text": "port 7171"}, {"type": "image"}]), "port 7171"),
        (typed_ahead("u", "port 7171", origin={"kind": "human"}), "port 7171"),
        (typed_ahead("u", "/plan", origin={"kind": "human"}), "/plan"),
        (typed_ahead("u", "port 7171", origin={"kind": "task-notification"}), None),
        (typed_ahead("u", "port 7171", commandMode="task-notification"), None),
        (typed_ahead("u", "<system-reminder>x</system-reminder>"), None),
        (typed_ahead("u", "port 7171") | {"isMeta": True}, None),
        (typed_ahead("u", "port 7171") | {"isSidechain": True}, None),
        ({"type": "attachment", "uuid": "u", "attachment": {"type": "file", "prompt": "x"}}, None),
        ({"type": "attachment", "uuid": "u"}, None),
        (typed_ahead("u", 7171), None),
        (typed_ahead("u", {"text": 7171}), None),
    ],
)
def test_what_is_typed_while_the_agent_works_is_said(attachment: dict[str, Any], text: str | None) -> None:
    """By a person, not by the program, nor a file that was attached."""
    assert turns(FORMAT, attachment) == ([] if text is None else [("user", text)])


def test_what_was_typed_ahead_and_is_sent_then_is_said_once() -> None:
    """Some versions write it both ways; what a person says again later is said again."""
    lines = [user("1", "build it"), typed_ahead("2", "on port 7171"), user("3", "on port 7171")]
    assert turns(FORMAT, *lines) == [("user", "build it"), ("user", "on port 7171")]
    assert len(turns(FORMAT, *lines, user("4", "on port 7171"))) == 3


def test_what_was_taken_back_is_gone() -> None:
    """A person goes back to an earlier point and says something else: the prompt from there on counts, with all after it."""
    before = [user("1", "hi"), reply("2", "m1", "hello", parentUuid="1")]
    mysql = [user("3", "use MySQL", parentUuid="2"), reply("4", "m2", "MySQL it is", parentUuid="3")]
    postgres = [user("5", "use PostgreSQL", parentUuid="2"), reply("6", "m3", "Sure", parentUuid="5")]
    said = [("user", "hi"), ("assistant", "hello"), ("user", "use PostgreSQL"), ("assistant", "Sure")]
    assert turns(FORMAT, *before, *mysql, *postgres) == said
    again = user("7", "no, SQLite", parentUuid="2")
    assert turns(FORMAT, *before, *mysql, *postgres, again)[2:] == [("user", "no, SQLite")]
    back = user("8", "MySQL after all", parentUuid="4")
    assert [text for _, text in turns(FORMAT, *before, *mysql, *postgres, back)] == [
        "hi",
        "hello",
        "use MySQL",
        "MySQL it is",
        "MySQL after all",
    ]


def test_tools_side_by_side_take_nothing_back() -> None:
    """Lines fork where several tools run, and a prompt follows on any of them, on a notice, or on nothing that is known."""
    result = [{"type": "tool_result", "content": "x"}]
    lines = [
        user("1", "count"),
        reply("2", "m1", "one", parentUuid="1"),
        reply("3", "m1", "two", parentUuid="2"),
        user("4", result, parentUuid="2"),
        user("5", result, parentUuid="3"),
        typed_ahead("6", "faster") | {"parentUuid": "4"},
        reply("7", "m2", "done", parentUuid="6"),
        {"type": "system", "uuid": "8", "parentUuid": "7", "content": "x"},
    ]
    said = [text for _, text in turns(FORMAT, *lines)]
    assert said == ["count", "one\n\ntwo", "faster", "done"]
    for parent in ("6", "7", "8", None):
        assert [text for _, text in turns(FORMAT, *lines, user("9", "thanks", parentUuid=parent))] == [
            *said,
            "thanks",
        ]
    assert [text for _, text in turns(FORMAT, *lines, user("9", "thanks", parentUuid="of another file"))] == [
        *said,
        "thanks",
    ]


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
    said = [each for each in events(FORMAT, *lines) if isinstance(each, TurnAdded)]
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
    assert events(FORMAT, task) == [SessionFacts(subagent=True), TurnAdded("s", "user", None, "count")]
    assert events(FORMAT, task, user("1", "hi"), task) == [
        SessionFacts(subagent=True),
        TurnAdded("s", "user", None, "count"),
        Cleared(),
        SessionFacts(subagent=False),
        TurnAdded("1", "user", None, "hi"),
    ]


def test_the_session_is_told_bit_by_bit() -> None:
    """Each thing that is learnt about the session comes from the first line that has it."""
    first = {"type": "mode", "sessionId": "s"}
    second = {"type": "system", "sessionId": "t", "cwd": "/a", "timestamp": "2026-08-10T12:00:00.000Z"}
    third = {"type": "system", "sessionId": "t", "cwd": "/b", "timestamp": "2026-08-11T12:00:00.000Z"}
    assert events(FORMAT, first, second, third) == [
        SessionFacts(session_id="s"),
        SessionFacts(cwd="/a", started_at=1786363200.0),
    ]


def test_what_was_typed_ahead_is_known_again_for_a_while() -> None:
    """So many; a prompt says again what is older."""
    kept = shipped("memd.sources.transcripts.claude_code._QUEUED_KEPT")
    ahead = [typed_ahead(f"a{n}", f"port {n}") for n in range(kept + 1)]
    said = turns(FORMAT, user("0", "build it"), *ahead, user("1", "port 1"), user("2", "port 0"))
    assert [text for _, text in said].count("port 1") == 1
    assert [text for _, text in said].count("port 0") == 2


def test_few_lines_are_remembered_of_a_session_without_end() -> None:
    """It is kept with the progress of each reading."""
    kept = shipped("memd.sources.transcripts.claude_code._RECENT_KEPT")
    state = claude_code.ClaudeCodeState()
    for number in range(3 * kept + 10):
        list(FORMAT.parse(json.dumps(reply(f"u{number}", f"m{number}", f"text {number}")).encode(), state))
        assert len(state.recent) <= 2 * kept
    assert len(state.recent) >= kept
