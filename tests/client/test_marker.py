"""Recalled memory is told from what was said."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.marker import BEGIN, END, marked, unmarked

TEXTS = st.lists(st.one_of(st.text(), st.sampled_from([BEGIN, END, "\n"]))).map("".join)


@given(TEXTS)
def test_a_marked_block_goes_whole(recalled: str) -> None:
    """Whatever was recalled, nothing of it is left, and nothing else is lost."""
    assert unmarked(f"before\n{marked(recalled)}\nafter") == "before\nafter"


@given(TEXTS)
def test_a_block_can_be_marked_again(recalled: str) -> None:
    """A recalled text that quotes a block is one block."""
    assert unmarked(marked(marked(recalled))) == ""


@pytest.mark.parametrize(
    ("text", "left"),
    [
        ("", ""),
        ("no mark at all", "no mark at all"),
        (marked("a"), ""),
        (f"{marked('a')}\nsaid", "said"),
        (f"said\n{marked('a')}", "said\n"),
        (f"said {marked('a')} and more", "said  and more"),
        (f"one\n{marked('a')}\ntwo\n{marked('b')}\nthree", "one\ntwo\nthree"),
        (f"said\n{BEGIN}\ncut sho", "said\n"),
        (f"said\r\n{BEGIN}\r\nrecalled\r\n{END}", "said\r\n"),
        (f"what does {BEGIN} mean?", f"what does {BEGIN} mean?"),
        (f"between {BEGIN} and {END} it stands", f"between {BEGIN} and {END} it stands"),
        (f"{END} alone", f"{END} alone"),
    ],
)
def test_unmarked(text: str, left: str) -> None:
    """Blocks go as they were written, even when cut short; a mark in a sentence stays."""
    assert unmarked(text) == left
