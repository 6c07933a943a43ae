"""Lines in many languages: of those that speak of secrets nothing goes, and of those that have one all of it."""

import re
from pathlib import Path
from typing import Final

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor

_REDACTOR: Final = Redactor(Redact())
_PLACES: Final = ("{}", "- {}\n", "Notes of today.\n{}\nMore of that tomorrow.", "* {}\n* next", "    {}\n")


def _classes(file: str) -> dict[str, list[str]]:
    """The lines of a file, by the name of their class."""
    text = Path(__file__).with_name(file).read_text("utf-8")
    found = re.findall(r"^== (\w+)\n(.*?)(?=^==|\Z)", text, re.MULTILINE | re.DOTALL)
    return {name: body.strip().split("\n") for name, body in found}


_STAYS: Final = _classes("stays.txt")
_GOES: Final = _classes("goes.txt")


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("name", _STAYS)
def test_what_only_looks_like_a_secret_stays(name: str, place: str) -> None:
    """Alone, in a list, and between other lines."""
    texts = [place.format(line) for line in _STAYS[name]]
    assert [text for text in texts if _REDACTOR.redact(text).text != text] == []


@pytest.mark.parametrize("place", _PLACES)
@pytest.mark.parametrize("name", _GOES)
def test_what_stands_in_brackets_goes(name: str, place: str) -> None:
    """The secret in ⟦ ⟧, in the same surroundings, and nothing of the other lines."""
    left = []
    for line in _GOES[name]:
        text = place.replace("{}", re.sub("[⟦⟧]", "", line))
        redacted = _REDACTOR.redact(text).text
        before, _, after = place.partition("{}")
        if any(secret in redacted for secret in re.findall("⟦(.*?)⟧", line)):
            left.append(text)
        assert redacted.startswith(before)
        assert redacted.endswith(after)
    assert left == []


def test_each_class_of_what_stays_has_thirty_lines() -> None:
    """So that a class is not one form alone."""
    assert {name: len(lines) for name, lines in _STAYS.items() if len(lines) < 30} == {}
