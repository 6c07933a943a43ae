from typing import Any

import pytest

from memd_client.context.content import as_json, images_of, replaced, text_of

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
