"""Secrets where people and programs leave them, from forms that were written down without a look at the rules."""

import random
import string
from collections import Counter
from collections.abc import Callable, Iterator
from functools import partial

import pytest
from hypothesis import settings

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped
from tests.redact import harmless, places, vendors
from tests.redact.chance import filled

_REDACTOR = Redactor(Redact())
_BEFORE, _AFTER = "the line before stays\n", "\nthe line after stays"
Made = tuple[str, tuple[str, ...]]

# Letters that chance put together may look like a word. Nothing else may be missed.
_LIKE_WORDS = 0.25


def _times(quick: int, long: int) -> int:
    """How many values each form gets: few where the whole suite runs, many with --hypothesis-profile=long."""
    return long if settings().max_examples > 100 else quick


def _survivors(name: str, make: Callable[[random.Random], Made], times: int) -> Iterator[tuple[str, str]]:
    """The texts in which a secret is left, with what became of them."""
    for number in range(times):
        inner, secrets = make(random.Random(f"{name}/{number}"))
        text = _BEFORE + inner + _AFTER
        redacted = _REDACTOR.redact(text).text
        assert redacted.count("\n") == text.count("\n"), text
        assert redacted.startswith(_BEFORE), redacted
        assert redacted.endswith(_AFTER), redacted
        assert secrets
        assert all(secret in text for secret in secrets), text
        if any(secret in redacted or secret[-12:] in redacted for secret in secrets):
            yield text, redacted


@pytest.mark.parametrize(("name", "shape"), list(vendors.tokens()))
def test_a_vendors_token_goes(name: str, shape: str) -> None:
    """Bare, quoted, escaped, in a table, in a sentence of either language."""
    assert not list(_survivors(name, lambda rng: vendors.token(shape, rng), _times(4, 60)))


@pytest.mark.parametrize(
    "make", [vendors.web_token, vendors.block, vendors.putty, vendors.service_account, vendors.key_by_name]
)
def test_what_has_a_form_of_its_own_goes(make: Callable[[random.Random], Made]) -> None:
    """Tokens of the web, private keys whole and cut, files of keys, keys that only their names tell."""
    assert not list(_survivors(make.__name__, make, _times(60, 1000)))


@pytest.mark.parametrize("group", ["english", "chinese", "settings", "commands", "programs", "traffic"])
def test_a_password_goes_wherever_it_stands(group: str) -> None:
    """In a thousand places: talk, settings, commands, programs, logs."""
    templates = [template for of, template in places.places() if of == group]
    survived = {
        template: found
        for template in templates
        if "§l" not in template
        and (found := list(_survivors(template, partial(filled, template), _times(3, 20))))
    }
    assert not survived
    assert len(templates) > 50


def test_letters_without_meaning_go() -> None:
    """Nearly always: a few are made like words."""
    templates = [template for _, template in places.places() if "§l" in template]
    times = _times(20, 200)
    missed = sum(len(list(_survivors(template, partial(filled, template), times))) for template in templates)
    assert missed <= _LIKE_WORDS * times * len(templates)
    assert len(templates) > 10


def test_what_is_harmless_stays() -> None:
    """Prose about passwords, programs that handle them, hashes, lock files, logs."""
    wrong = [
        (text, redacted)
        for text in harmless.texts(_times(3, 50))
        if (redacted := _REDACTOR.redact(text).text) != text
    ]
    assert not wrong


def test_the_corpus_has_many_forms() -> None:
    """And each place is written down once."""
    counted = Counter(template for _, template in places.places())
    assert len(counted) > 950
    assert [template for template, count in counted.items() if count > 1] == []
    assert len(list(vendors.tokens())) > 140
    assert sum(1 for _ in harmless.texts()) > 800


@pytest.mark.parametrize("more", [-1, 0, 1, 300])
def test_a_value_of_a_header_goes_to_its_end(more: int) -> None:
    """However many signs it has beyond those that it is judged by."""
    length = shipped("memd.redact.programs.headers._MOST_JUDGED") + more
    value = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=length))
    assert _REDACTOR.redact(f"authorization={value} end").text == "authorization=[REDACTED:authorization] end"


@pytest.mark.parametrize(("words", "is_one"), [(0.75, True), (1.5, False)])
def test_a_value_of_a_header_is_judged_by_so_many_characters(words: float, *, is_one: bool) -> None:
    """What is no word within them tells it, and what stands behind them does not."""
    judged = shipped("memd.redact.programs.headers._MOST_JUDGED")
    drawn = "".join(random.Random(1).choices(string.ascii_letters + string.digits, k=2 * judged))
    value = ("the-quick-brown-fox-" * judged)[: int(words * judged)] + drawn
    assert ("[REDACTED:authorization]" in _REDACTOR.redact(f"authorization={value} end").text) is is_one
