import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.text.writing_systems import ScriptShares, scripts


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("the kiln is at 1225", {"LATIN": 1.0}),
        ("ein Öfchen à la carte", {"LATIN": 1.0}),
        ("窑烧到 1225 度", {"CJK": 1.0}),
        ("печь нагрета до 1225", {"CYRILLIC": 1.0}),
        ("الفرن ساخن", {"ARABIC": 1.0}),
        ("ﾔｷﾓﾉ", {"KANA": 1.0}),
        ("かまはあつい", {"KANA": 1.0}),
        ("窯を焼く", {"CJK": 0.5, "KANA": 0.5}),
        ("가마가 뜨겁다", {"HANGUL": 1.0}),
        ("ｋｉｌｎ", {"LATIN": 1.0}),
        ("窑炉 kilns", {"CJK": 2 / 3, "LATIN": 1 / 3}),
        ("1225 °, 12:30 - 👍", {}),
        ("", {}),
    ],
)
def test_a_text_is_told_by_its_letters(text: str, expected: dict[str, float]) -> None:
    """Five letters count as much as one character of a script without spaces; digits and signs belong to none."""
    assert scripts(text) == pytest.approx(expected)


def foreign(question: dict[str, float], text: dict[str, float]) -> float:
    """Of a text among others, which change nothing."""
    others = ScriptShares.of([{"THAI": 0.5, "LATIN": 0.5}, {}])
    return float(others.followed_by(ScriptShares.of([text, {"CJK": 1.0}])).foreign_to(question)[2])


@pytest.mark.parametrize(
    ("question", "text", "expected"),
    [
        ("kiln", "the kilns", 0.0),
        ("kiln", "窑", 1.0),
        ("печь", "the kilns", 1.0),
        ("kiln", "窑炉 kilns", 2 / 3),
        ("窑炉 kilns", "窑炉", 1 / 3),
        ("1225", "窑", 0.0),
        ("kiln", "1225", 0.0),
    ],
)
def test_what_is_foreign_is_what_the_scripts_do_not_share(question: str, text: str, expected: float) -> None:
    """A text without letters is foreign to nobody."""
    assert foreign(scripts(question), scripts(text)) == pytest.approx(expected)


def test_some_texts_keep_their_shares() -> None:
    """In the order that is asked for, among whichever others."""
    texts = [scripts("kiln"), scripts("窑炉 kilns"), scripts("12")]
    every = ScriptShares.of(texts)
    assert len(every) == 3
    some = every.some(np.array([1, 0]))
    assert some.foreign_to(scripts("kiln")).tolist() == pytest.approx([2 / 3, 0.0])
    assert len(some.followed_by(every)) == 5
    assert some.followed_by(every).foreign_to(scripts("窑")).tolist() == pytest.approx(
        [1 / 3, 1, 1, 1 / 3, 0]
    )
    assert len(ScriptShares.of([])) == 0


@given(st.text(), st.text())
def test_any_text_is_taken(one: str, other: str) -> None:
    """Shares add up to 1; nothing is foreign to itself, and both directions agree."""
    shares = scripts(one)
    assert not shares or sum(shares.values()) == pytest.approx(1)
    assert foreign(shares, shares) == pytest.approx(0)
    assert foreign(shares, scripts(other)) == pytest.approx(foreign(scripts(other), shares))
    assert 0 <= foreign(shares, scripts(other)) <= 1
