"""Changes to JSON that leave the rest as it stands."""

import json
import re
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


# --- with comments


COMMENTED = """// mine
{
  "theme": "dark", // the good one
  "mcpServers": {
    "other": {}, // of Bob
  },
  /* the
     end */
}
"""


def test_comments_and_trailing_commas_stay() -> None:
    """Where they are; the new member comes behind what is said of the one before it."""
    changed = with_value(COMMENTED, WAY, {"command": "x"}, comments=True)
    assert changed == COMMENTED.replace(
        '"other": {}, // of Bob\n',
        '"other": {}, // of Bob\n    "memd": {\n      "command": "x"\n    },\n',
    )
    assert document(changed, comments=True)["mcpServers"]["memd"] == {"command": "x"}
    assert with_value(changed, WAY, {"command": "x"}, comments=True) == changed
    assert without_value(changed, WAY, comments=True) == COMMENTED


@pytest.mark.parametrize(
    "text",
    [
        '{\n  "a": 1 // why\n  // end\n}\n',
        '{\n  "a": 1, // why\n  /* m\n   two */ "b": 2 /* q\n z */\n  // end\n}\n',
        "{\n  // nothing yet\n}\n",
        '{ "a": 1, /* x */ }',
        '{"a": "// no", "b": "/* no */", }\n',
        '{\r\n\t"a": 1, // x\r\n}\r\n',
        '{\n "mcpServers": {\n // c\n }\n}',
        '{\n  "mcpServers": {"z": 1 /* k */}, // t\n  "y": [1, 2, ], \n}',
        '{\n  "mcpServers": {\n    "memd": {}, // old\n    "z": 1\n  }\n}',
        '{"mcpServers": {"memd": {} /* old */, "z": 1}}',
        "// only a comment\n",
        '{"a": "\\"// no\\"", /* "x": 1, */ }',
        "{\n  // mine\n  agents: {list: [{id: 'it\\'s // no',},],}, // JSON5\n  mcpServers: {'z': +.5, y: 0xF},\n}\n",
        "{a: 1}",
    ],
)
def test_wherever_comments_stand(text: str) -> None:
    """It says what it said, and the value; out of it again nothing else is gone."""
    before = document(text, comments=True)
    changed = with_value(text, WAY, VALUE, comments=True)
    after = document(changed, comments=True)
    assert after == {**before, "mcpServers": {**before.get("mcpServers", {}), "memd": VALUE}}
    out = without_value(changed, WAY, comments=True)
    left = document(out, comments=True)
    assert left == {**after, "mcpServers": {k: v for k, v in after["mcpServers"].items() if k != "memd"}}
    for comment in re.findall(r"(?<!\")//[^\r\n\"]*|(?<!\")/\*.*?\*/", text, re.DOTALL):
        assert comment in changed
        assert comment in out


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"memd": {"command": /* mine */ {"x": 1 /* y */}}}}',
        '{"a": 1 /* no end',
        "{a: 1",
        "{a b}",
        "{a: 1} b",
        "{'a: 1}",
    ],
)
def test_where_a_comment_would_go_it_is_refused(text: str) -> None:
    """Or where it is no JSON at all."""
    with pytest.raises(NotEditable):
        with_value(text, (*WAY, "command"), "x", comments=True)


_PIECES = st.sampled_from(["// c\n", "/* d */", "\n", "  ", "/* e\n f */", "\r\n"])


@given(data=st.data(), value=st.dictionaries(st.sampled_from("ab"), JSON, min_size=1, max_size=3))
def test_comments_anywhere_between_are_kept(data: st.DataObject, value: dict[str, Any]) -> None:
    """Each of them, when a value is added and when it is taken out."""
    pieces: list[str] = []
    for token in re.findall(r'"(?:[^"\\]|\\.)*"|[^\s{}\[\],:"]+|[{}\[\],:]', json.dumps(value)):
        pieces += [data.draw(_PIECES), token] if data.draw(st.booleans()) else [token]
    text = "".join(pieces)
    try:
        changed = with_value(text, ("c", "memd"), 1, comments=True)
        out = without_value(changed, ("c", "memd"), comments=True)
    except NotEditable:
        return
    assert document(changed, comments=True) == {**value, "c": {"memd": 1}}
    assert document(out, comments=True) == {**value, "c": {}}
    for kind in ("// c", "/* d */", "/* e"):
        assert text.count(kind) == changed.count(kind) == out.count(kind)
