"""Letters drawn by chance, and words."""

import random
import string

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from memd.redact.values.randomness import alternates, is_jumble, is_scrambled
from memd.redact.values.secret_values import SecretValue, is_generated, is_reference, is_secret
from tests.bounds import shipped


@pytest.mark.parametrize(
    "text",
    [
        "authentication", "configuration", "getenvironment", "kubernetesdashboard", "internationalization", "zhongguorenmin",
        "placeholder", "description", "notimplementederror", "abc", "", "qzx", "UPPERCASELETTERS", "with spaces inside", "a1b2c3d4e5f6g7",
    ],
)  # fmt: skip
def test_a_word_is_no_jumble(text: str) -> None:
    """Nor are words put together, short texts, and what has other signs."""
    assert not is_jumble(text)


def test_chance_makes_a_jumble() -> None:
    """Nearly always."""
    rng = random.Random(1)
    drawn = ["".join(rng.choices(string.ascii_lowercase, k=16)) for _ in range(500)]
    assert sum(map(is_jumble, drawn)) > 430


def test_of_few_letters_none_look_like_chance() -> None:
    """From so many on a text is told from words."""
    least = shipped("memd.redact.values.randomness._LEAST_LETTERS")
    assert [is_jumble("qzxvkjwqzxvkjw"[:count]) for count in (least - 1, least)] == [False, True]


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_signs_of_a_value_tell_whether_it_is_secret(more: int) -> None:
    """The digit of a token, among them or behind them."""
    text = "a" * (shipped("memd.redact.values.randomness.MOST_JUDGED") - 1 + more) + "1"
    value = SecretValue(0, len(text), text, True, "")
    assert is_secret(value, "token", shouts=False, spoken=False) is (more == 0)


def test_letters_and_digits_drawn_by_chance_are_scrambled() -> None:
    """Nearly all of thirty-two (few have one digit or none), and no name of a program."""
    rng = random.Random(1)
    drawn = ["".join(rng.choices(string.ascii_letters + string.digits, k=32)) for _ in range(1000)]
    assert sum(map(is_scrambled, drawn)) > 950
    for name in (
        "getHTTP2ClientByID",
        "shouldReturnUser2WhenNotFound3Times",
        "AbstractSingletonProxyFactoryBean42",
        "test_user_2_is_not_in_group_3_of_9",
        "3f9a1c77b2caa2109e4d80bc3f1d6e75",
        "2026-11-23T10-11-12Z-backup-Final",
    ):
        assert not is_scrambled(name), name
    least = shipped("memd.redact.values.randomness._LEAST_SCRAMBLED")
    assert is_scrambled("aB3dE9xQkM5zT7vW"[:least])
    assert not is_scrambled("aB3dE9xQkM5zT7vW"[: least - 1])


@pytest.mark.parametrize(
    ("text", "stands"),
    [
        ("$HOME", False),
        ("$dbPass1", False),
        ("$oauth2Token", False),
        ("$purple76MIRROR", True),
        ("$a7Kq2Zr9Lm", True),
    ],
)
def test_what_begins_with_a_dollar_sign(text: str, *, stands: bool) -> None:
    """A variable is named like words; what is drawn by chance is a password."""
    assert is_reference(text) is not stands


@pytest.mark.parametrize(
    ("text", "is_one"),
    [
        ("LX9dg2DYy5^0", True),
        ("Walnut@River19", True),
        ("Walnut41!", False),
        ("React@18.2.0", False),
        ("Class12#method3", False),
        ("Ctrl+Shift+P12", False),
        ("ann12B@example.org", False),
    ],
)
def test_what_could_only_be_a_password(text: str, *, is_one: bool) -> None:
    """Letters of both cases, two digits and a sign inside, and no form that something else has."""
    assert is_generated(text) is is_one


def test_a_call_that_takes_an_object_is_no_password() -> None:
    """What makes one is a name of the program."""
    text = "const password = generatePassword({ length: 20, symbols: true })"
    assert Redactor(Redact()).redact(text).text == text


@pytest.mark.parametrize("fewer", [0, 1])
def test_so_many_letters_and_digits_alternate(fewer: int) -> None:
    """Fewer may be the name of a model or a room."""
    said = "k7TqX2mP"[: shipped("memd.redact.values.randomness._LEAST_ALTERNATING") - fewer]
    assert alternates(said) is not bool(fewer)
