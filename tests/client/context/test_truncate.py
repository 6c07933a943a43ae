import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.truncate import ends, head, tail
from tests.bounds import shipped


@given(st.text(max_size=60), st.text(max_size=60), st.integers(0, 80), st.floats(0, 1), st.text(max_size=10))
def test_both_ends_fit(beginning: str, end: str, cap: int, share: float, mark: str) -> None:
    """Whatever the texts, the result has no more characters than it may have."""
    assert len(ends(beginning, end, cap, head_share=share, mark=mark)) <= cap


def test_the_room_is_shared_out() -> None:
    """Three quarters for the beginning, a quarter for the end, the mark between."""
    text = "a" * 50 + "b" * 50
    assert ends(text, text, 44, head_share=0.75, mark="[..]") == "a" * 30 + "[..]" + "b" * 10


def test_a_mark_that_is_too_long_becomes_a_dot() -> None:
    """A small room is for text."""
    assert ends("abcdef", "uvwxyz", 5, head_share=0.5, mark="[left out]") == "ab…yz"
    assert [ends("abcdef", "uvwxyz", cap, head_share=0.5, mark="[..]") for cap in (0, 1)] == ["", "…"]


def test_a_visible_character_is_not_cut_in_half() -> None:
    """Combining marks stay with their letter, and a family of emoji together."""
    assert head("ae\u0301x", 2) == "a"
    assert tail("xe\u0301a", 2) == "a"
    family = "\U0001f468\u200d\U0001f469"
    assert head(f"x{family}", 2) == "x"
    assert tail(f"{family}x", 2) == "x"


@given(st.text(max_size=80), st.integers(-2, 90))
def test_an_end_is_an_end(text: str, n: int) -> None:
    """A head begins the text, a tail ends it, and neither is longer than asked for."""
    assert text.startswith(head(text, n))
    assert text.endswith(tail(text, n))
    assert max(len(head(text, n)), len(tail(text, n))) <= max(0, n)


def test_the_longest_character_is_left_out_whole() -> None:
    """What has more marks is none, and is cut where told."""
    longest = shipped("memd_client.context.truncate._LONGEST_CLUSTER")
    given = "xa" + "\u0301" * (longest - 1) + "b"
    assert given[-2:] != "ab"
    assert len(head(given, len(given) - 2)) == 1
    given = "xa" + "\u0301" * longest + "b"
    assert len(head(given, len(given) - 2)) == len(given) - 2


@pytest.mark.parametrize(
    ("given_text", "n", "expected"),
    [
        ("abc", 5, "abc"),
        ("abc", 2, "ab"),
        ("abc", 0, ""),
        ("abc", -1, ""),
        ("e\u0301a", 1, ""),
        ("xe\u0301a", 2, "x"),
        ("ab👨\u200d👩\u200d👧", 4, "ab"),
        ("a👍\U0001f3fd", 2, "a"),
        ("❤\ufe0fb", 1, ""),
        ("数据", 1, "数"),
    ],
)
def test_a_cut_keeps_visible_characters_whole(given_text: str, n: int, expected: str) -> None:
    """What is written with several code points is kept or left out as one."""
    assert head(given_text, n) == expected


def test_a_cut_through_endless_marks_still_cuts() -> None:
    """A run of marks that is no real character is cut where told, so that the rest is not lost."""
    assert len(head("a" + "\u0301" * 1000, 500)) == 500
