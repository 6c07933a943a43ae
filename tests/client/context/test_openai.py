import copy
from typing import Any

from memd_client.context.conversation import Message
from memd_client.context.openai import conversation, rebuilt
from memd_client.context.pruning import Record, prune

MESSAGES: list[dict[str, Any]] = [
    {"role": "developer", "content": "Be brief."},
    {
        "role": "user",
        "content": [{"type": "text", "text": "look"}, {"type": "image_url", "image_url": {"url": "u"}}],
    },
    {
        "role": "assistant",
        "content": None,
        "tool_calls": [
            {"id": "c1", "type": "function", "function": {"name": "read", "arguments": '{"path":"a"}'}},
            {"id": "c2", "type": "function", "function": {"name": "list", "arguments": "{}"}},
        ],
    },
    {"role": "tool", "tool_call_id": "c1", "content": "a" * 70_000},
    {"role": "tool", "tool_call_id": "c2", "content": [{"type": "text", "text": "b" * 5_000}]},
    {"role": "assistant", "content": "One."},
    {"role": "assistant", "content": "Two."},
    {"role": "assistant", "content": "Three."},
]


def test_a_conversation_says_who_said_what() -> None:
    """Results have the name of their tool, and a call counts by its arguments."""
    told = conversation(MESSAGES)
    assert [message.role for message in told] == [
        *("system", "user", "assistant", "tool", "tool"),
        *["assistant"] * 3,
    ]
    assert (told[1].text, told[1].images) == ("look", 1)
    assert told[2].text == '\n{"path":"a"}\n{}'
    assert told[3] == Message(role="tool", text="a" * 70_000, tool="read", call="c1")
    assert (told[4].tool, told[4].text) == ("list", "b" * 5_000)


def test_a_result_of_the_older_kind_has_its_name() -> None:
    """Functions, before there were tools, were named in the result."""
    told = conversation([{"role": "function", "name": "read", "content": "x"}])
    assert told == [Message(role="tool", text="x", tool="read")]


def test_only_what_was_shortened_changes() -> None:
    """Strings stay strings, lists stay lists, and the input is not touched."""
    before = copy.deepcopy(MESSAGES)
    done = prune(conversation(MESSAGES), window_tokens=50_000, record=Record(asked_at=0.0), now_s=1e6)
    sent = rebuilt(MESSAGES, done.messages)
    assert before == MESSAGES
    assert sent[:3] == MESSAGES[:3]
    assert sent[5:] == MESSAGES[5:]
    assert sent[3] == MESSAGES[3] | {"content": done.messages[3].text}
    assert len(sent[3]["content"]) < 4_000
    assert sent[4]["content"] == [{"type": "text", "text": done.messages[4].text}]


def test_what_makes_no_sense_is_counted_and_passed_on() -> None:
    """Missing keys and odd values are no error."""
    odd: list[dict[str, Any]] = [
        {},
        {"role": "tool", "content": 5},
        {
            "role": "assistant",
            "tool_calls": [None, {}, {"function": {"arguments": {"a": 1}}}],
            "content": "x",
        },
        {"role": "assistant", "tool_calls": "no list"},
    ]
    told = conversation(odd)
    assert [message.role for message in told] == ["user", "tool", "assistant", "assistant"]
    assert told[2].text == 'x\n\n\n{"a":1}'.replace("\n\n\n", "\n\n")
    assert rebuilt(odd, told) == odd


def test_a_result_has_the_name_of_the_nearest_call_of_its_id() -> None:
    """Some servers count from call_0 in each turn."""
    told = conversation(
        [
            message
            for name in ("memory_get", "shell")
            for message in (
                {"role": "assistant", "tool_calls": [{"id": "call_0", "function": {"name": name}}]},
                {"role": "tool", "tool_call_id": "call_0", "content": "x"},
            )
        ]
    )
    assert [message.tool for message in told if message.role == "tool"] == ["memory_get", "shell"]
