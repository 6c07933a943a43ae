"""Values of JSON5, as its specification has them."""

import json
import math
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.ctl.integrations.json5 import decode
from tests.bounds import shipped
from tests.table import table

JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=4), inner, max_size=3),
    max_leaves=10,
)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ('{a: 1, $b_2: \'x\', "c d": "y", été: true}', {"a": 1, "$b_2": "x", "c d": "y", "été": True}),
        ("[1, [2,], {}, null, ]", [1, [2], {}, None]),
        ("'it\\'s \"so\"'", 'it\'s "so"'),
        ("'a\\\nb\\\r\nc'", "abc"),
        ("'\\x41\\u00e9\\ud83d\\ude00\\n\\v\\0\\q'", "Aé😀\n\v\0q"),
        ("'数据库'", "数据库"),
        ("[+1, -1, .5, 5., 1e3, -0x1F, 0XaB]", [1, -1, 0.5, 5.0, 1000.0, -31, 171]),
        ("[Infinity, -Infinity, +Infinity]", [math.inf, -math.inf, math.inf]),
        ("12345678901234567890", 12345678901234567890),
        ("{true: false}", {"true": False}),
        ("{a: 1, a: 2}", {"a": 2}),
    ],
)
def test_values_are_read(text: str, value: Any) -> None:
    """Up to their last sign."""
    assert decode(f"{text} rest", 0) == (value, len(text))


def test_no_number_is_one() -> None:
    """NaN is equal to nothing."""
    value, end = decode("NaN", 0)
    assert math.isnan(value)
    assert end == 3


@table(
    "text",
    ["", "{", "[", "'a", "'a\nb'", "{a}", "{a: }", "{1: 2}", "[1 2]", "[,]", "01", "1x", "0x", "yes", "undefined", "+'a'", "["*2000],
)  # fmt: skip
def test_what_is_no_value_is_refused(text: str) -> None:
    """With the place."""
    with pytest.raises(ValueError, match=r"line \d+, column \d+|nested too deeply"):
        decode(text, 0)


def test_how_deep_a_value_may_be() -> None:
    """Behind a key that is none of JSON: Python's own stack has an end."""
    deepest = shipped("memd.ctl.integrations.json5._DEEPEST")
    value, _ = decode(f"{{a: {'[' * (deepest - 1)}1{']' * (deepest - 1)}}}", 0)
    assert isinstance(value["a"], list)
    with pytest.raises(ValueError, match="nested too deeply"):
        decode(f"{{a: {'[' * deepest}1{']' * deepest}}}", 0)


@given(value=JSON, indent=st.sampled_from([None, 2, "\t"]), as_ascii=st.booleans())
def test_json_says_the_same(value: Any, indent: Any, as_ascii: bool) -> None:
    """Also behind a key that is none of JSON, where it is read sign by sign."""
    text = json.dumps(value, indent=indent, ensure_ascii=as_ascii)
    assert decode(text, 0) == (value, len(text))
    assert decode(f"{{k: {text}}}", 0)[0] == {"k": value}
