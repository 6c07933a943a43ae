import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.providers.provider import ProviderLimits
from memd.providers.remote.split_requests import TextPiece, pieces, requests, split, whole
from memd_client.token_estimate import estimate_tokens

TEXT = st.text(alphabet="ab c\n.。数据库é\u0301👩\u200d💻", max_size=300)


@given(TEXT, st.integers(4, 50))
def test_no_part_is_too_long_and_nothing_is_lost(text: str, tokens: int) -> None:
    """The parts put together are the text, but for white space at its end."""
    parts = split(text, tokens)
    assert all(estimate_tokens(part) <= tokens or len(part) == 1 for part in parts)
    joined = "".join(parts)
    assert text.startswith(joined)
    assert not text[len(joined) :].strip()
    assert parts


def test_a_text_is_cut_where_a_reader_pauses() -> None:
    """After a sentence rather than inside a word."""
    [first, second] = split("One sentence stands here. " + "Another one follows it", 8)
    assert first.endswith(". ")
    assert second.startswith("Another")


def test_a_pause_near_the_beginning_is_no_place_to_cut() -> None:
    """A part has at least half of what it may have: each is a vector to pay for."""
    parts = split("a" * 30 + ". " + "b" * 300, 20)
    most = max(len(part) for part in parts)
    assert 60 < most < 90
    assert len(parts[0]) >= most // 2


def test_a_part_has_a_character_at_least() -> None:
    """Even where two would be too many."""
    assert split("数据库", 1) == ["数", "据", "库"]


@given(st.lists(TEXT, max_size=20), st.integers(10, 100), st.integers(1, 5))
def test_requests_hold_all_pieces_in_order(texts: list[str], tokens: int, count: int) -> None:
    """None is larger than its limits, unless by a single piece."""
    some = pieces(texts, 40)
    packed = list(requests(some, ProviderLimits(tokens, count, 1)))
    assert [piece for group in packed for piece in group] == some
    for group in packed:
        assert 1 <= len(group) <= count
        assert sum(piece.tokens for piece in group) <= tokens or len(group) == 1


def test_chinese_is_packed_by_its_tokens() -> None:
    """A character is a token: a thousand of them are not taken for 250."""
    some = pieces(["数" * 1000] * 10, 8000)
    assert [len(group) for group in requests(some, ProviderLimits(4000, 100, 1))] == [4, 4, 2]


def test_a_text_in_pieces_gets_the_mean_of_their_vectors() -> None:
    """Weighted by length, of length 1; texts in one piece keep theirs."""
    some = [TextPiece("a", 0, 10), TextPiece("b", 1, 30), TextPiece("c", 1, 10)]
    rows = np.array([[1, 0], [1, 0], [0, 1]], np.float32)
    wanted = np.array([[1, 0], [3 / 10**0.5, 1 / 10**0.5]], np.float32)
    np.testing.assert_allclose(whole(some, rows, 2), wanted, rtol=1e-6)


@pytest.mark.parametrize(("left", "expected"), [(0, [0, 1]), (0.9e-6, [0, 1]), (1.1e-6, [1, 0])])
def test_pieces_that_cancel_each_other_out_leave_the_first(left: float, expected: list[float]) -> None:
    """A vector of zeros would be no direction at all, and what rounding leaves is none."""
    some = [TextPiece("a", 0, 1), TextPiece("b", 0, 1)]
    rows = np.array([[0, 1], [left, -1]], np.float32)
    np.testing.assert_array_equal(whole(some, rows, 1), [expected])


@pytest.mark.parametrize("text", ["", " ", "\n\n"])
def test_a_text_of_nothing_is_still_one_piece(text: str) -> None:
    """Every text has a vector."""
    assert [piece.of for piece in pieces([text, "a"], 10)] == [0, 1]
