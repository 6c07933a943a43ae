from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context import conversation
from memd_client.context.conversation import Message, as_json, images_of, quarters, replaced, text_of
from memd_client.token_estimate import estimate_tokens


@given(st.lists(st.text(max_size=20)))
def test_texts_together_are_estimated_like_one(texts: list[str]) -> None:
    """What is added up is rounded once."""
    assert conversation.estimate_all(texts) == estimate_tokens("".join(texts))


def test_a_message_is_as_large_as_its_text_and_images() -> None:
    """A letter counts one, a Chinese character four, an image 8,000."""
    assert quarters(Message(role="user", text="abcd")) == 4
    assert quarters(Message(role="user", text="数据")) == 8
    assert quarters(Message(role="tool", text="x", images=2)) == 16_001


TEXTS: list[tuple[Any, str]] = [
    ("plain", "plain"),
    (None, ""),
    (5, ""),
    ([], ""),
    (
        [
            {"type": "text", "text": "a"},
            {"type": "input_text", "text": "b"},
            {"type": "output_text", "text": "c"},
        ],
        "a\nb\nc",
    ),
    ([{"type": "thinking", "thinking": "hm"}], "hm"),
    ([{"type": "tool_use", "input": {"a": 1}}], '{"a":1}'),
    ([{"type": "tool_result", "content": [{"type": "text", "text": "deep"}]}], "deep"),
    ([{"type": "image", "source": "x" * 99}], ""),
    (["bare", 3, None], "bare"),
    (({"type": "text", "text": "tuple"},), "tuple"),
]


@pytest.mark.parametrize(("content", "text"), TEXTS)
def test_text_is_found_in_any_content(content: Any, text: str) -> None:
    """Strings, lists of blocks, and what is neither."""
    assert text_of(content) == text


def test_images_are_counted_where_they_are() -> None:
    """In a message and inside a result, by the names of each provider."""
    image = {"type": "image"}
    result = {"type": "tool_result", "content": [image, {"type": "text", "text": "x"}]}
    assert images_of([image, {"type": "image_url"}, {"type": "input_image"}, result, "x"]) == 4
    assert images_of("image") == 0


def test_a_content_keeps_its_shape() -> None:
    """A provider that was given a list gets a list."""
    assert replaced("old", "new") == "new"
    assert replaced(None, "new") == "new"
    assert replaced([{"type": "text", "text": "old"}], "new") == [{"type": "text", "text": "new"}]


def test_what_is_no_json_counts_as_128_characters() -> None:
    """Arguments that a program put together by hand are no error, nor is one that holds itself."""
    endless: list[Any] = []
    endless.append(endless)
    assert [len(as_json(value)) for value in (object(), endless)] == [128, 128]
    assert as_json('{"a": 1}') == '{"a": 1}'
