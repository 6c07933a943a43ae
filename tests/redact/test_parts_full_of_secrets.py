"""Parts of a text that are so full of labels and secrets that they go as one."""

import random
from collections.abc import Sequence

import pytest

from memd.config.settings import Redact
from memd.redact import parts_full_of_secrets
from memd.redact.redactor import Redactor
from tests.bounds import shipped
from tests.redact import hostile
from tests.redact.chance import ALNUM, some

_REDACTOR = Redactor(Redact())
_WINDOW = int(shipped("memd.redact.parts_full_of_secrets._WINDOW"))
_LABELS = int(shipped("memd.redact.parts_full_of_secrets._LEAST_LABELS"))
_WINDOWS = int(shipped("memd.redact.parts_full_of_secrets._LEAST_WINDOWS"))
_STEP = int(shipped("memd.redact.parts_full_of_secrets._STEP"))
_SECRETS = int(shipped("memd.redact.parts_full_of_secrets._LEAST_SECRETS"))
_SAMPLE = int(shipped("memd.redact.parts_full_of_secrets.SAMPLE_CHARS"))
_KEPT = int(shipped("memd.redact.parts_full_of_secrets.KEPT_CHARS"))


def _passwords(seed: int, count: int) -> list[str]:
    rng = random.Random(seed)
    return [f"{some(rng, ALNUM, 6, 9)}{rng.randrange(10)}q" for _ in range(count)]


def _listed(passwords: Sequence[str], label: str = "password: ") -> str:
    return "".join(f"{label}{password}\n" for password in passwords)


@pytest.mark.parametrize("windows", [_WINDOWS - 1, _WINDOWS, _WINDOWS + 5])
@pytest.mark.parametrize("labels", [_LABELS - 1, _LABELS])
def test_so_many_labels_make_a_crowd(windows: int, labels: int) -> None:
    """In each of so many windows, one after another; whose labels they are makes no difference."""
    length = 2 * _WINDOWS * _WINDOW
    places = [
        at for window in range(3, 3 + windows) for at in range(window * _WINDOW, window * _WINDOW + labels)
    ]
    expected = [(3 * _WINDOW, (3 + windows) * _WINDOW)] if labels >= _LABELS and windows >= _WINDOWS else []
    assert (
        list(parts_full_of_secrets.parts_full_of_labels([places[::2], [], places[1::2]], length)) == expected
    )


def test_two_crowds_are_two_parts() -> None:
    """And the last one ends with the text."""
    length = (2 * _WINDOWS + 8) * _WINDOW - 300
    places = [
        window * _WINDOW + at
        for window in range(2 * _WINDOWS + 8)
        if window != _WINDOWS
        for at in range(0, 700, 700 // _LABELS)
    ]
    assert list(parts_full_of_secrets.parts_full_of_labels([places], length)) == [
        (0, _WINDOWS * _WINDOW),
        ((_WINDOWS + 1) * _WINDOW, length),
    ]


@pytest.mark.parametrize("missing", [0, 1])
def test_so_many_secrets_fill_a_sample(missing: int) -> None:
    """In each step of it."""
    begins = [step + at for step in range(0, _SAMPLE, _STEP) for at in range(_SECRETS)]
    del begins[_SECRETS : _SECRETS + missing]
    assert parts_full_of_secrets.is_full_of_secrets(begins) is not bool(missing)


def test_what_is_full_of_secrets_goes_as_one() -> None:
    """Nothing of any password is left, nor does anything go that stands before it or behind; lines keep their numbers."""
    passwords = _passwords(1, 4_500)
    before, behind = "what he sent me in the morning:\n" * 5, "\nand then we went home\n" * 40
    text = before + _listed(passwords) + behind
    redacted = _REDACTOR.redact(text)
    assert not [password for password in passwords if password in redacted.text]
    assert redacted.text.startswith(before)
    assert redacted.text.endswith(behind)
    assert redacted.text.count("\n") == text.count("\n")
    assert sum(redacted.counts.values()) < 2 * (_KEPT + _WINDOW) / len("password: ")
    assert _REDACTOR.redact(redacted.text).text == redacted.text


def test_a_list_with_more_than_passwords_keeps_what_is_none() -> None:
    """A name beside each password makes them fewer."""
    passwords = _passwords(2, 2_000)
    text = _listed(passwords, "user: margarete, password: ")
    redacted = _REDACTOR.redact(text)
    assert redacted.text == "user: margarete, password: [REDACTED:password]\n" * len(passwords)


def test_labels_without_secrets_stay() -> None:
    """However many there are."""
    text = "".join(f"password_{at % 7} token key secret\n" for at in range(3_000))
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize("seed", range(3))
def test_no_secret_gets_through_where_some_have_labels_and_no_value(seed: int) -> None:
    """Such a crowd is judged value by value, or goes as a whole."""
    rng = random.Random(seed)
    passwords = _passwords(seed, 4_500)
    parts = [_listed(passwords[at : at + 300]) for at in range(0, 4_500, 300)]
    empty = "password: none\n" * 40
    text = "".join(part + (empty * rng.choice((0, 1, 8))) for part in parts)
    redacted = _REDACTOR.redact(text).text
    assert not [password for password in passwords if password in redacted]


def test_what_is_allowed_stays_in_a_crowd() -> None:
    """It is then judged value by value."""
    passwords = _passwords(4, 4_500)
    allowed = passwords[1_000]
    redacted = Redactor(Redact(allow=(allowed,))).redact(_listed(passwords))
    assert f"password: {allowed}\n" in redacted.text
    assert sum(redacted.counts.values()) == len(passwords) - 1


@pytest.mark.parametrize("anchor", ["PWD=", "vpn", "비번"])
def test_more_of_a_crowd_is_hardly_more_work(anchor: str) -> None:
    """The text between the samples is only searched for tables and lists."""
    _REDACTOR.redact(hostile.repeated("value", anchor, 1_000))
    short, long = (hostile.repeated("value", anchor, length, numbered=True) for length in (100_000, 400_000))
    assert hostile.work(_REDACTOR, long) < 3 * hostile.work(_REDACTOR, short)
