import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.token_estimate import estimate_tokens, quarter_tokens


@pytest.mark.parametrize(
    ("given_text", "tokens"),
    [
        ("", 0),
        ("a", 1),
        ("four", 1),
        ("fives", 2),
        ("a" * 1600, 400),
        ("naïve café", 3),
        ("用户决定", 4),
        ("こんにちは", 5),
        ("안녕", 2),
        ("！？", 2),
        ("㐀", 3),
        ("\U00020000", 4),
        ("🙂", 1),
        ("用API做", 3),
    ],
)
def test_tokens_are_estimated_by_script(given_text: str, tokens: int) -> None:
    """Four Latin characters or one CJK character are a token, a rarer one more."""
    assert estimate_tokens(given_text) == tokens


@given(st.text(), st.text())
def test_quarters_add_up(one: str, other: str) -> None:
    """The size of a whole is the sum of its parts, and never less than a quarter of a token a character."""
    both = quarter_tokens(one + other)
    assert both == quarter_tokens(one) + quarter_tokens(other)
    assert both >= len(one + other)
