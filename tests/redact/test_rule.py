"""Where anchors stand: with the automaton, and without it."""

import random
import re

import pytest

from memd.config.settings import Redact
from memd.redact import rule
from memd.redact.redactor import Redactor
from memd.redact.rule import AnchorIndex, Nearby
from memd.redact.rule_set import RULES
from tests.redact.corpus import samples

_ANCHORS = ("a", "ab", "aba", "b密", "密码", "xyz")


def test_every_place_of_every_anchor_is_found() -> None:
    """Also where anchors overlap, and where one stands in another."""
    assert AnchorIndex(_ANCHORS).places("ababa 密码b密码") == {
        "a": [0, 2, 4],
        "ab": [0, 2],
        "aba": [0, 2],
        "密码": [6, 9],
        "b密": [8],
    }
    assert AnchorIndex(_ANCHORS).places("") == {}


@pytest.mark.parametrize("has_automaton", sorted({False, rule.HAS_AUTOMATON}))
@pytest.mark.parametrize("piece", [1, 2, 3, 7, 1000])
def test_places_do_not_depend_on_how_they_are_found(
    piece: int, *, has_automaton: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In pieces of any length, with the automaton or by searching."""
    monkeypatch.setattr(rule, "_PIECE", piece)
    monkeypatch.setattr(rule, "HAS_AUTOMATON", has_automaton)
    index = AnchorIndex(_ANCHORS)
    rng = random.Random(piece)
    for length in range(40):
        text = "".join(rng.choices("abxyz密码", k=length))
        expected = {
            anchor: [at for at in range(length) if text.startswith(anchor, at)] for anchor in _ANCHORS
        }
        assert index.places(text) == {anchor: places for anchor, places in expected.items() if places}


@pytest.mark.skipif(not rule.HAS_AUTOMATON, reason="ahocorasick_rs has no wheel here")
def test_the_anchors_of_all_rules_stand_where_a_search_finds_them(monkeypatch: pytest.MonkeyPatch) -> None:
    """In texts that were written for memd."""
    anchors = {anchor for one in RULES for anchor in one.anchors}
    text = "\n".join(sample.text for sample in samples(seed=5))
    places = AnchorIndex(anchors).places(text)
    monkeypatch.setattr(rule, "HAS_AUTOMATON", False)
    assert AnchorIndex(anchors).places(text) == places
    assert len(places) > 150


@pytest.mark.parametrize("seed", range(30))
def test_what_stands_near_is_found_as_a_search_at_each_place_finds_it(seed: int) -> None:
    """Whatever the places are, and however close together: more is searched at once where they are."""
    rng = random.Random(seed)
    length = rng.choice((200, 3_000))
    text = "".join(rng.choices("ab1", weights=(6, 6, rng.choice((0.01, 1, 3))), k=length))
    pattern, width = rng.choice(
        ((re.compile("1"), 1), (re.compile("1a{1,3}b"), 5), (re.compile("b1(?!a)"), 3))
    )
    nearby = Nearby(pattern, rng.randrange(12), rng.randrange(12), width)
    begins = [match for match in range(len(text)) if pattern.match(text, match)]
    places = sorted(rng.sample(range(length), length * rng.choice((3, 40, 150)) // 200))
    assert nearby.beside(places, text) == [
        at for at in places if any(at - nearby.before <= begin <= at + nearby.behind for begin in begins)
    ]


def test_an_anchor_in_any_case_is_read() -> None:
    """Anchors stand in lower case in the rules, and in any case in texts: no rule fails at one that it has not in that case."""
    for find, anchors in ((one.find, one.anchors) for one in RULES if one.find is not None):
        for anchor in anchors:
            for written in (anchor.upper(), anchor.title(), anchor.swapcase()):
                find(f"{written}: Kx7mango!22", 0)
    assert Redactor(Redact()).redact("Mima: Kx7mango!22").text == "Mima: [REDACTED:password]"
