"""Changes to JSON that leave the rest as it stands."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.ctl.integrations.json_edit import NotEditable, document, with_value, without_value

VALUE = {"command": "/usr/bin/memd-mcp", "args": ["--socket", "/run/é"]}
WAY = ("mcpServers", "memd")

FOUR = """{
    "theme": "dark",
    "numbers": [1.0, 1e3, 12345678901234567890],
    "mcpServers": {
        "other": {"command": "x"}
    },
    "last":   true
}
"""
FOUR_CHANGED = """{
    "theme": "dark",
    "numbers": [1.0, 1e3, 12345678901234567890],
    "mcpServers": {
        "other": {"command": "x"},
        "memd": {
            "command": "/usr/bin/memd-mcp",
            "args": [
                "--socket",
                "/run/é"
            ]
        }
    },
    "last":   true
}
"""


def test_a_member_is_added_where_it_belongs() -> None:
    """In the indentation of the file; numbers and spaces of others are not touched."""
    assert with_value(FOUR, WAY, VALUE) == FOUR_CHANGED
    assert with_value(FOUR_CHANGED, WAY, VALUE) == FOUR_CHANGED
    assert without_value(FOUR_CHANGED, WAY) == FOUR


@pytest.mark.parametrize("end", ["\n", "\r\n"])
@pytest.mark.parametrize("begin", ["", "\ufeff"])
def test_line_ends_tabs_and_a_byte_order_mark_are_kept(begin: str, end: str) -> None:
    """As editors on other systems write them."""
    text = begin + end.join(["{", '\t"a": {', '\t\t"b": 1', "\t}", "}"])
    changed = with_value(text, ("a", "c"), {"d": 2})
    assert changed == begin + end.join(
        ["{", '\t"a": {', '\t\t"b": 1,', '\t\t"c": {', '\t\t\t"d": 2', "\t\t}", "\t}", "}"]
    )
    assert without_value(changed, ("a", "c")) == text


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        (" \n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{}", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ("{\n}\n", '{\n  "a": {\n    "b": 1\n  }\n}\n'),
        ('{"x":1}', '{"x":1,"a": {"b": 1}}'),
        ('{"x": 1, "y": 2}\n', '{"x": 1, "y": 2, "a": {"b": 1}}\n'),
        ('{"a": {}}', '{"a": {"b": 1}}'),
        ('{"a":{"b":0}}', '{"a":{"b":1}}'),
        ('{\n  "a": {}\n}', '{\n  "a": {\n    "b": 1\n  }\n}'),
        ('{\n  "a": {"c": 2}\n}', '{\n  "a": {"c": 2,"b": 1}\n}'),
        ('{"a": {"b": 3}, "a": {"b": 0}}', '{"a": {"b": 3}, "a": {"b": 1}}'),
        ('{"\\u0061": {"b": 0}}', '{"\\u0061": {"b": 1}}'),
    ],
)
def test_a_value_is_set(text: str, changed: str) -> None:
    """In what is empty, on one line, or there already; of two members of one name the last counts."""
    assert with_value(text, ("a", "b"), 1) == changed


def test_an_element_is_added_to_a_list() -> None:
    """A list that is missing is made."""
    text = '{\n  "hooks": {\n    "Stop": [\n      {"a": 1}\n    ]\n  }\n}'
    assert json.loads(with_value(text, ("hooks", "Stop", 1), 2))["hooks"] == {"Stop": [{"a": 1}, 2]}
    assert json.loads(with_value(text, ("hooks", "End", 0), 2))["hooks"]["End"] == [2]
    assert without_value(with_value(text, ("hooks", "Stop", 1), 2), ("hooks", "Stop", 1)) == text


@pytest.mark.parametrize(
    "text",
    [
        "// a note\n{}",
        '{"a": 1,}',
        "{'a': 1}",
        "{a: 1}",
        '{"a": 1',
        "[1]",
        '"text"',
        "null",
        '{"mcpServers": null}',
        '{"mcpServers": []}',
        '{"mcpServers": "x"}',
        "[" * 100_000,
    ],
)
def test_what_is_not_such_json_is_refused(text: str) -> None:
    """With comments, broken, or with something else in the place."""
    with pytest.raises(NotEditable):
        with_value(text, WAY, VALUE)


def test_what_is_not_there_need_not_be_taken_out() -> None:
    """The text stays the same."""
    for text in ("{}", FOUR, '{"mcpServers": []}', "[]"):
        assert without_value(text, WAY) == text


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("abc"), inner, max_size=3),
    max_leaves=10,
)


@given(
    value=st.dictionaries(st.sampled_from("abc"), JSON, max_size=3),
    way=st.lists(st.sampled_from("abc"), min_size=1, max_size=3),
    new=JSON,
    indent=st.sampled_from([None, 0, 2, "\t"]),
)
def test_any_json_has_the_value_or_is_refused(value: Any, way: list[str], new: Any, indent: Any) -> None:
    """And without it again it says what it said."""
    text = json.dumps(value, indent=indent)
    try:
        changed = with_value(text, way, new)
    except NotEditable:
        return
    there: Any = document(changed)
    for key in way:
        there = there[key]
    assert there == new
    assert with_value(changed, way, new) == changed
    inner = document(without_value(changed, way))
    for key in way[:-1]:
        inner = inner[key]
    assert way[-1] not in inner
