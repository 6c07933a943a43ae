import copy
from typing import Any

from memd_client.context.anthropic import conversation, rebuilt
from memd_client.context.conversation import Message
from memd_client.context.pruning import Record, prune

IMAGE = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AAAA"}}
MESSAGES: list[dict[str, Any]] = [
    {"role": "user", "content": "read both"},
    {
        "role": "assistant",
        "content": [
            {"type": "thinking", "thinking": "hm", "signature": "s"},
            {"type": "text", "text": "I read."},
            {"type": "tool_use", "id": "t1", "name": "read", "input": {"path": "a"}},
            {"type": "tool_use", "id": "t2", "name": "shot", "input": {}},
        ],
    },
    {
        "role": "user",
        "content": [
            {"type": "tool_result", "tool_use_id": "t1", "content": "a" * 70_000, "is_error": False},
            {"type": "tool_result", "tool_use_id": "t2", "content": [{"type": "text", "text": "see"}, IMAGE]},
            {"type": "text", "text": "and now?"},
        ],
    },
    {"role": "assistant", "content": "Well."},
    {"role": "user", "content": [{"type": "text", "text": "Go on."}, IMAGE]},
    {"role": "assistant", "content": [{"type": "text", "text": "More."}]},
    {"role": "user", "content": []},
    {"role": "assistant", "content": None},
]


def test_a_conversation_says_who_said_what() -> None:
    """Each result is a message with the name of its tool; thoughts and arguments are of the assistant."""
    told = conversation(MESSAGES)
    assert [message.role for message in told] == [
        *("user", "assistant", "tool", "tool", "user"),
        *("assistant", "user", "assistant", "user", "assistant"),
    ]
    assert told[1].text == 'hm\nI read.\n{"path":"a"}\n{}'
    assert told[2] == Message(role="tool", text="a" * 70_000, tool="read", call="t1")
    assert told[3] == Message(role="tool", text="see", images=1, tool="shot", call="t2")
    assert (told[4].text, told[6].text, told[6].images) == ("and now?", "Go on.", 1)


def test_a_message_with_results_alone_is_not_the_users() -> None:
    """What the user said first is what protects all before it."""
    told = conversation(
        [{"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t", "content": "x"}]}]
    )
    assert [message.role for message in told] == ["tool"]


def test_only_what_was_shortened_changes() -> None:
    """The other blocks, ids and flags are as they were, and the input is not touched."""
    before = copy.deepcopy(MESSAGES)
    done = prune(conversation(MESSAGES), window_tokens=50_000, record=Record(asked_at=0.0), now_s=1e6)
    sent = rebuilt(MESSAGES, done.messages)
    assert before == MESSAGES
    assert sent[:2] == MESSAGES[:2]
    assert sent[3:] == MESSAGES[3:]
    block = sent[2]["content"][0]
    assert block == MESSAGES[2]["content"][0] | {"content": done.messages[2].text}
    assert len(block["content"]) < 4_000
    assert sent[2]["content"][1:] == MESSAGES[2]["content"][1:]


def test_a_cleared_result_has_no_images_left() -> None:
    """A list of blocks stays one."""
    told = conversation(MESSAGES)
    told[3] = Message(role="tool", text="gone", tool="shot", call="t2")
    assert rebuilt(MESSAGES, told)[2]["content"][1]["content"] == [{"type": "text", "text": "gone"}]


def test_what_makes_no_sense_is_counted_and_passed_on() -> None:
    """Unknown blocks, missing keys and odd values are no error."""
    odd: list[dict[str, Any]] = [
        {},
        {
            "role": "user",
            "content": ["plain", 5, {"type": "new", "data": "d"}, {"type": "text", "text": None}],
        },
        {"role": "user", "content": [{"type": "tool_result"}]},
        {"role": "assistant", "content": [{"type": "tool_use", "input": {"set": {1, 2}, "odd": object()}}]},
    ]
    told = conversation(odd)
    assert told[1].text == 'plain\n{"type":"new","data":"d"}'
    assert told[2] == Message(role="tool")
    assert len(told[3].text) == 128
    assert rebuilt(odd, told) == odd


def test_a_result_has_the_name_of_the_nearest_call_of_its_id() -> None:
    """Some servers that speak like Anthropic count anew in each turn."""
    told = conversation(
        [
            message
            for name in ("memory_get", "shell")
            for message in (
                {
                    "role": "assistant",
                    "content": [{"type": "tool_use", "id": "t0", "name": name, "input": {}}],
                },
                {"role": "user", "content": [{"type": "tool_result", "tool_use_id": "t0", "content": "x"}]},
            )
        ]
    )
    assert [message.tool for message in told if message.role == "tool"] == ["memory_get", "shell"]
