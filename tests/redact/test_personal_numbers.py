"""Numbers of persons: taken out where somebody says so, by their check digits."""

import random

import pytest

from memd.config.settings import PersonalNumber, Redact
from memd.redact.redactor import Redactor
from memd.redact.rule import rules_key

_EVERY: tuple[PersonalNumber, ...] = ("payment-card", "iban", "chinese-id", "chinese-mobile")
# Numbers of tests, as issuers, banks and standards publish them.
_PUBLISHED: dict[PersonalNumber, tuple[str, ...]] = {
    "payment-card": (
        "4111111111111111",
        "4111 1111 1111 1111",
        "5555-5555-5555-4444",
        "378282246310005",
        "3782 822463 10005",
        "6011111111111117",
        "3530111333300000",
        "6200000000000005",
        "4222222222222",
    ),
    "iban": (
        "DE89370400440532013000",
        "DE89 3704 0044 0532 0130 00",
        "GB82 WEST 1234 5698 7654 32",
        "FR1420041010050500013M02606",
        "NO9386011117947",
    ),
    "chinese-id": ("11010519491231002X", "440524188001010014"),
    "chinese-mobile": ("13800138000", "+86 138 0013 8000", "+8613800138000", "138-0013-8000"),
}


@pytest.mark.parametrize("kind", _EVERY)
def test_a_number_goes_where_it_is_chosen(kind: PersonalNumber) -> None:
    """In a sentence of either language, and as it is otherwise."""
    chosen = Redactor(Redact(kinds=(kind,)))
    for number in _PUBLISHED[kind]:
        for around in ("it is § today", "号码是 §，谢谢", '{"a": "§"}', "|§|"):
            text = around.replace("§", number)
            assert chosen.redact(text).text == around.replace("§", f"[REDACTED:{kind}]")
            assert Redactor(Redact()).redact(text).text == text


@pytest.mark.parametrize("kind", ["payment-card", "iban", "chinese-id"])
def test_a_wrong_digit_is_no_such_number(kind: PersonalNumber) -> None:
    """Each of the standards finds every single wrong digit."""
    chosen = Redactor(Redact(kinds=(kind,)))
    rng = random.Random(kind)
    for number in _PUBLISHED[kind]:
        for _ in range(20):
            at = rng.choice([place for place, sign in enumerate(number) if sign.isdigit()])
            wrong = (
                number[:at]
                + rng.choice([digit for digit in "0123456789" if digit != number[at]])
                + number[at + 1 :]
            )
            assert chosen.redact(f"it is {wrong}").text == f"it is {wrong}"


def test_parts_of_other_numbers_stay() -> None:
    """Of a digest, a version, an amount, a longer number."""
    text = "1.4111111111111111 a4111111111111111b 41111111111111110000000 13800138000.5 0x13800138000 ab13800138000"
    assert Redactor(Redact(kinds=_EVERY)).redact(text).text == text


def test_the_choice_is_part_of_what_decides() -> None:
    """With another one, an index is redacted anew."""
    assert len({rules_key(Redact(kinds=kinds)) for kinds in ((), ("iban",), _EVERY)}) == 3
    assert rules_key(Redact(kinds=_EVERY)) == rules_key(Redact(kinds=_EVERY[::-1]))
