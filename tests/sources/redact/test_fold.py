"""Texts as a reader sees them."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.sources.redact.fold import folded


@pytest.mark.parametrize(
    ("text", "plain"),
    [
        ("password", "password"),
        ("密码：abc", "密码：abc"),
        ("ｐａｓｓＷｏｒｄ：１２ａ", "passWord：12a"),
        ("pass\u200bword\ufeff:\u00a0x", "password: x"),
        ("\u200b\u200b", ""),
    ],
)
def test_a_text_is_folded(text: str, plain: str) -> None:
    """Letters and digits only; punctuation stays as it is."""
    assert folded(text).text == plain


@given(st.text(alphabet="ab１Ａ\u200b\ufeff \u00a0密", max_size=30))
def test_every_sign_knows_its_place(text: str) -> None:
    """What stands there in the text is the same sign, folded or not."""
    plain = folded(text)
    places = [plain.place(at) for at in range(len(plain.text))]
    assert places == sorted(set(places))
    assert [folded(text[place]).text for place in places] == list(plain.text)
