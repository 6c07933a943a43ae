"""Sentences about passwords, and what only looks like a secret, in many languages: nothing of them goes."""

import re
from pathlib import Path
from typing import Final

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor

_TEXT: Final = Path(__file__).with_name("stays.txt").read_text("utf-8")
_CLASSES: Final = {
    head: body.strip().split("\n")
    for head, body in re.findall(r"^== (\w+)\n(.*?)(?=^==|\Z)", _TEXT, re.MULTILINE | re.DOTALL)
}
_PLACES: Final = ("{}", "- {}\n", "Notes of today.\n{}\nMore of that tomorrow.", "* {}\n* next", "    {}\n")


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("name", _CLASSES)
def test_what_only_looks_like_a_secret_stays(name: str, place: str) -> None:
    """Alone, in a list, and between other lines."""
    redactor = Redactor(Redact())
    texts = [place.format(line) for line in _CLASSES[name]]
    assert [text for text in texts if redactor.redact(text).text != text] == []


def test_each_class_has_thirty_sentences() -> None:
    """So that a class is not one form alone."""
    assert {name: len(lines) for name, lines in _CLASSES.items() if len(lines) < 30} == {}
