"""Texts as a reader sees them."""

import sys
import unicodedata

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.redact.normalise import decoded, folded
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("password", "password"),
        ("密码：abc", "密码：abc"),
        ("ｐａｓｓＷｏｒｄ：１２ａ", "passWord：12a"),
        ("pass\u200bword\ufeff:\u00a0x", "password: x"),
        ("\u200b\u200b", ""),
        ("pass\u2066word\ufe0f\u202f:\u3000x", "password : x"),
    ],
)
def test_a_text_is_folded(text: str, plain: str) -> None:
    """Letters and digits only; punctuation stays as it is."""
    assert folded(text).text == plain


def test_every_sign_without_a_width_is_left_out_and_every_blank_is_one() -> None:
    """As Unicode has them, of whatever version this Python knows."""
    signs = [chr(code) for code in range(sys.maxunicode + 1)]
    unseen = [sign for sign in signs if unicodedata.category(sign) == "Cf"]
    blanks = [sign for sign in signs if unicodedata.category(sign) == "Zs"]
    assert {folded(sign).text for sign in unseen} == {""}
    assert {folded(sign).text for sign in blanks} == {" "}


@given(st.text(alphabet="ab１Ａ\u200b\ufeff\u2066\U000e0100 \u00a0\u202f\u3000密", max_size=30))
def test_every_sign_knows_its_place(text: str) -> None:
    """What stands there in the text is the same sign, folded or not."""
    plain = folded(text)
    places = [plain.place(at) for at in range(len(plain.text))]
    assert places == sorted(set(places))
    assert [folded(text[place]).text for place in places] == list(plain.text)


def test_escapes_in_escapes_are_taken_out_so_often() -> None:
    """A sign that is escaped once more stays escaped once."""
    levels = shipped("memd.redact.normalise._LEVELS")
    for depth in range(1, levels + 2):
        text = "key%" + "25" * (depth - 1) + "3D1"
        found = [plain.text for _, plain in decoded(text)]
        assert len(found) == min(depth, levels)
        assert (found[-1] == "key=1") is (depth <= levels)
