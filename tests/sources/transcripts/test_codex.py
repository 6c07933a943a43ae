"""Lines of Codex."""

from typing import Any

import pytest

from memd.sources.transcripts.codex import FORMAT
from memd.sources.transcripts.format import Dropped, SessionFacts, TurnAdded, UnparsedLine
from tests.bounds import shipped
from tests.sources.transcripts.parsing import events, turns


def line(kind: str, **payload: Any) -> dict[str, Any]:
    return {"timestamp": "2026-08-10T20:02:51.000Z", "type": kind, "payload": payload}


def sent(role: str, text: str) -> dict[str, Any]:
    kind = "output_text" if role == "assistant" else "input_text"
    return line("response_item", type="message", role=role, content=[{"type": kind, "text": text}])


def shown(role: str, text: Any) -> dict[str, Any]:
    return line("event_msg", type="user_message" if role == "user" else "agent_message", message=text)


AT = 1786392171.0


@pytest.mark.parametrize(
    ("record", "found"),
    [
        (sent("user", "hi"), [TurnAdded("", "user", AT, "hi")]),
        (sent("assistant", "hi"), [TurnAdded("", "assistant", AT, "hi")]),
        (sent("developer", "hi"), []),
        (sent("system", "hi"), []),
        (sent("user", "<environment_context>\n</environment_context>"), []),
        (line("response_item", type="message", role=5), [UnparsedLine("unknown")]),
        (line("response_item", type="message", role="user", content=5), [UnparsedLine("unknown")]),
        (line("response_item", type="reasoning", summary=[{"type": "summary_text", "text": "x"}]), []),
        (line("response_item", type="function_call_output", output="x"), []),
        (line("response_item", type="news"), []),
        (shown("user", "hi"), [TurnAdded("", "user", AT, "hi")]),
        (shown("user", 5), [UnparsedLine("unknown")]),
        (line("event_msg", type="agent_reasoning", text="x"), []),
        (line("event_msg", type="token_count"), []),
        (line("event_msg", type="thread_rolled_back", num_turns=2), [Dropped(2)]),
        (line("event_msg", type="thread_rolled_back", num_turns=0), []),
        (line("event_msg", type="thread_rolled_back", num_turns=True), [UnparsedLine("unknown")]),
        (line("event_msg", type="thread_rolled_back"), [UnparsedLine("unknown")]),
        (line("compacted", message="x", replacement_history=[sent("user", "hi")]), []),
        (line("turn_context", cwd="/a"), []),
        (line("token_usage_record", total=5), []),
        (line("news"), [UnparsedLine("unknown")]),
        ({"type": "response_item", "payload": 5}, [UnparsedLine("unknown")]),
        ({"type": "response_item"}, [UnparsedLine("unknown")]),
        ({"type": "message", "role": "user", "content": [{"type": "input_text", "text": "hi"}]}, [TurnAdded("", "user", None, "hi")]),
        ({"record_type": "state"}, [SessionFacts()]),
    ],
)  # fmt: skip
def test_records(record: Any, found: list[Any]) -> None:
    """Only what a user or the assistant said is speech, whatever shape a record has."""
    assert events(FORMAT, record) == found


SENT = [sent("user", "yes"), sent("assistant", "A"), sent("user", "yes"), sent("assistant", "A")]
SHOWN = [shown("user", "yes"), shown("assistant", "A"), shown("user", "yes"), shown("assistant", "A")]


@pytest.mark.parametrize(
    "lines",
    [
        SENT,
        SHOWN,
        [each for pair in zip(SENT, SHOWN, strict=True) for each in pair],
        [each for pair in zip(SHOWN, SENT, strict=True) for each in pair],
        [SHOWN[0], SENT[0], SENT[1], SHOWN[1], SHOWN[2], SENT[2], SENT[3], SHOWN[3]],
        [SENT[0], SHOWN[0], SHOWN[1], SENT[1], SENT[2], SHOWN[2], SHOWN[3], SENT[3]],
        [SHOWN[0], SHOWN[1], SENT[0], SENT[1], SENT[2], SHOWN[2], SENT[3], SHOWN[3]],
        [SHOWN[0], SHOWN[1], SHOWN[2], SENT[2], SHOWN[3], SENT[3]],
        [shown("user", "yes "), SENT[0], *SENT[1:]],
        [shown("user", "yes"), sent("user", "yes\n\n# Files"), *SENT[1:]],
    ],
)
def test_two_logs_say_one_thing(lines: list[Any]) -> None:
    """A turn that both logs have is taken once, whichever has it first; where only one says anything, that counts."""
    assert turns(FORMAT, *lines) == [("user", "yes"), ("assistant", "A")] * 2


def test_turns_are_taken_back() -> None:
    """A user takes back turns of his, with all that came after them."""
    lines = [sent("user", "1"), sent("assistant", "A"), sent("user", "2"), sent("assistant", "B")]
    back = line("event_msg", type="thread_rolled_back", num_turns=1)
    assert turns(FORMAT, *lines, back, sent("user", "3")) == [
        ("user", "1"),
        ("assistant", "A"),
        ("user", "3"),
    ]


@pytest.mark.parametrize(
    ("meta", "subagent"),
    [
        ({"source": "cli"}, None),
        ({"source": {"subagent": "review"}}, True),
        ({"source": {"subagent": {"thread_spawn": {}}}}, True),
        ({"source": {"other": 1}}, None),
        ({"thread_source": "subagent"}, True),
        ({"thread_source": "user"}, None),
        ({"parent_thread_id": "p"}, True),
        ({"forked_from_id": "p"}, None),
    ],
)
def test_the_session_is_told_once(meta: dict[str, Any], subagent: bool | None) -> None:
    """The first head tells of the session; those that a fork repeats do not."""
    head = line("session_meta", id="t", cwd="/repo", timestamp="2026-08-10T20:00:00Z", **meta)
    other = line("session_meta", id="parent", cwd="/other")
    assert events(FORMAT, head, other) == [SessionFacts("t", "/repo", 1786392000.0, subagent)]


def test_turns_that_were_shown_are_known_again_in_another_order() -> None:
    """Those of one role say nothing of those of the other."""
    records = shown("assistant", "A"), shown("user", "yes"), sent("user", "yes"), sent("assistant", "A")
    assert turns(FORMAT, *records) == [("assistant", "A"), ("user", "yes")]


def test_a_turn_that_was_shown_is_known_again_for_some_turns() -> None:
    """Of as many as may be under way at once; what was shown long before is said once more."""
    most = shipped("memd.sources.transcripts.codex._MOST_SHOWN")
    for between, times in ((most - 1, 1), (most, 2)):
        others = [shown("assistant", f"{number}") for number in range(between)]
        found = turns(FORMAT, shown("user", "yes"), *others, sent("user", "yes"))
        assert found.count(("user", "yes")) == times
