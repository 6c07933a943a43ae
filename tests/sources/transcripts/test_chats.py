"""Conversations of ChatGPT and of Claude as their exports have them."""

import json
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from memd.sources.transcripts.chats import CHATGPT, CLAUDE, identify
from memd.sources.transcripts.format import SessionFacts
from tests.sources.transcripts.exports import (
    DAY,
    chatgpt,
    chatgpt_message,
    chatgpt_talk,
    claude,
    claude_message,
)
from tests.sources.transcripts.parsing import events, turns
from tests.table import table


@pytest.mark.parametrize(
    ("conversation", "found"),
    [
        (chatgpt_talk("c1", ("user", "hi")), ("c1", DAY + 60, "chatgpt")),
        (claude("c2", claude_message("m", "human", "hi")), ("c2", DAY + 60, "claude")),
        (claude("c2"), ("c2", DAY + 60, "claude")),
        ({"id": "c1", "mapping": {}}, ("c1", None, "chatgpt")),
        ({"mapping": {}}, None),
        ({"id": "c1", "messages": []}, None),
        ({"uuid": 5, "chat_messages": []}, None),
        ({}, None),
    ],
)
def test_conversations_are_told_from_other_objects(conversation: Any, found: Any) -> None:
    """With their ids and the times at which they were changed last."""
    told = identify(json.dumps(conversation).encode())
    assert (None if told is None else (told.id, told.updated_at, told.kind.name)) == found


def test_only_the_living_branch_was_said() -> None:
    """An edited question and an answer that was made again leave branches; a title and a tree without a leaf have one, too."""
    nodes = {
        "root": (None, None),
        "q1": ("root", chatgpt_message("user", "first wording")),
        "a1": ("q1", chatgpt_message("assistant", "first answer")),
        "q2": ("root", chatgpt_message("user", "second wording")),
        "a2": ("q2", chatgpt_message("assistant", "second answer")),
        "a3": ("q2", chatgpt_message("assistant", "third answer")),
    }
    said = [("user", "second wording"), ("assistant", "third answer")]
    assert turns(CHATGPT, chatgpt("c", nodes, "a3")) == said
    assert turns(CHATGPT, chatgpt("c", nodes, None)) == said
    assert turns(CHATGPT, chatgpt("c", nodes, "a1")) == [
        ("user", "first wording"),
        ("assistant", "first answer"),
    ]
    assert turns(CHATGPT, chatgpt("c", nodes, "lost")) == []
    circle = {"a": ("b", chatgpt_message("user", "A")), "b": ("a", chatgpt_message("assistant", "B"))}
    assert turns(CHATGPT, chatgpt("c", circle, "b")) == [("user", "A"), ("assistant", "B")]


@table(
    ("message", "text"),
    [
        (chatgpt_message("user", "one", "two"), "one\n\ntwo"),
        (chatgpt_message("user", {"content_type": "image_asset_pointer", "asset_pointer": "x"}, "see", kind="multimodal_text"), "see"),
        (chatgpt_message("user", {"content_type": "audio_transcription", "text": "spoken"}, kind="multimodal_text"), "spoken"),
        (chatgpt_message("assistant", "It is so\ue200cite\ue202turn0search1\ue201. See 【12†source】."), "It is so. See ."),
        (chatgpt_message("assistant", "x", channel="final"), "x"),
        (chatgpt_message("assistant", "x", channel="commentary"), ""),
        (chatgpt_message("assistant", "print(1)", recipient="python"), ""),
        (chatgpt_message("assistant", kind="code", content={"content_type": "code", "text": "x"}), ""),
        (chatgpt_message("assistant", kind="thoughts", content={"content_type": "thoughts", "thoughts": []}), ""),
        (chatgpt_message("tool", "an output"), ""),
        (chatgpt_message("system", "a prompt"), ""),
        (chatgpt_message("user", "x", kind="user_editable_context"), ""),
        (chatgpt_message("user", "x", metadata={"is_visually_hidden_from_conversation": True}), ""),
        (chatgpt_message("user", 5, None, ["x"]), ""),
        (chatgpt_message("user", "x", content=None), ""),
    ],
)  # fmt: skip
def test_what_a_message_of_chatgpt_says(message: dict[str, Any], text: str) -> None:
    """What was typed, spoken or answered; no tool, thought, file, mark of a source or hidden prompt."""
    said = turns(CHATGPT, chatgpt("c", {"m": (None, message)}, "m"))
    assert [spoken for _, spoken in said] == ([text] if text else [])


def test_turns_have_their_times() -> None:
    """And the session has its id and beginning."""
    facts, first, second = events(CHATGPT, chatgpt_talk("c", ("user", "A"), ("assistant", "B")))
    assert facts == SessionFacts("c", None, DAY)
    assert [getattr(each, "at", None) for each in (first, second)] == [DAY + 1, DAY + 2]


ROOT = "00000000-0000-4000-8000-000000000000"


def test_branches_of_claude_are_told_by_parents() -> None:
    """Where an export names them; the last message is the leaf unless another is named."""

    def tree(**more: Any) -> Any:
        return claude(
            "c",
            claude_message("q1", "human", "first wording", parent_message_uuid=ROOT),
            claude_message("a1", "assistant", "first answer", parent_message_uuid="q1"),
            claude_message("q2", "human", "second wording", parent_message_uuid=ROOT),
            claude_message("a2", "assistant", "second answer", parent_message_uuid="q2"),
            **more,
        )

    assert turns(CLAUDE, tree()) == [("user", "second wording"), ("assistant", "second answer")]
    assert turns(CLAUDE, tree(current_leaf_message_uuid="a1")) == [
        ("user", "first wording"),
        ("assistant", "first answer"),
    ]


def test_what_messages_of_claude_say() -> None:
    """Their text blocks; of older exports their text; no thought, tool or attachment."""
    thought = {"type": "thinking", "thinking": "hm"}
    tool = {"type": "tool_use", "name": "x", "input": {}}
    messages = (
        claude_message("1", "human", "A", attachments=[{"file_name": "x", "extracted_content": "a file"}]),
        claude_message("2", "assistant", "B C", content=[thought, {"type": "text", "text": "B"}, tool, {"type": "text", "text": "C"}]),
        claude_message("3", "human", "D", content=[]),
        claude_message("4", "assistant", "", content=[tool, {"type": "tool_result", "content": "out"}]),
        claude_message("5", "system", "a prompt"),
    )  # fmt: skip
    assert turns(CLAUDE, claude("c", *messages)) == [("user", "A"), ("assistant", "B\n\nC"), ("user", "D")]


VALUES = st.one_of(
    st.none(),
    st.booleans(),
    st.integers(-(2**70), 2**70),
    st.text(max_size=5),
    st.just([]),
    st.just({}),
    st.just([{"content_type": "audio_transcription"}, {"text": 5}]),
)


def _changed(value: Any, path: tuple[int, ...], new: Any) -> Any:
    """A copy with another value at a place, which numbers lead to."""
    if not path or not isinstance(value, dict | list) or not value:
        return new
    keys: Any = list(value) if isinstance(value, dict) else range(len(value))
    key = keys[path[0] % len(keys)]
    copy = value.copy()
    copy[key] = _changed(value[key], path[1:], new)
    return copy


@pytest.mark.parametrize("number", [0, 1])
@settings(max_examples=2 * settings().max_examples)
@given(path=st.lists(st.integers(0, 30), max_size=8).map(tuple), new=VALUES, cut=st.integers(0, 3000))
def test_whatever_is_at_a_place_nothing_is_raised(
    number: int, path: tuple[int, ...], new: Any, cut: int
) -> None:
    """Whole or cut off; and what is said is text."""
    talk = (
        chatgpt_talk("c", ("user", "A"), ("assistant", "B")),
        claude("c", claude_message("1", "human", "A"), claude_message("2", "assistant", "B")),
    )[number]
    kind = (CHATGPT, CLAUDE)[number]
    content = json.dumps(_changed(talk, path, new)).encode()
    for line in (content, content[:cut]):
        identify(line)
        assert all(isinstance(text, str) for _, text in turns(kind, line))
