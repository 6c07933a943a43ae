from hypothesis import given
from hypothesis import strategies as st

from memd.text import tokens as daemon
from memd_client.context import tokens


@given(st.text(max_size=200))
def test_an_estimate_is_that_of_the_daemon(text: str) -> None:
    """Client and daemon estimate any text alike."""
    assert tokens.quarter_tokens(text) == daemon.quarter_tokens(text)
    assert tokens.estimate_tokens(text) == daemon.estimate_tokens(text)


def test_four_ascii_characters_or_one_chinese_one_are_a_token() -> None:
    """The unit is what it is said to be."""
    assert tokens.estimate_tokens("abcdefgh") == 2
    assert tokens.estimate_tokens("数据库") == 3
    assert tokens.estimate_tokens("") == 0


@given(st.lists(st.text(max_size=20)))
def test_texts_together_are_estimated_like_one(texts: list[str]) -> None:
    """What is added up is rounded once."""
    assert tokens.estimate_all(texts) == tokens.estimate_tokens("".join(texts))
