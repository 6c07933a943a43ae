"""Harmless texts of many kinds, drawn by chance."""

import pytest
from hypothesis import settings

from tests.redact import bulk


@pytest.mark.parametrize("kind", bulk.KINDS)
def test_not_one_character_of_a_harmless_text_goes(kind: str) -> None:
    """A sample of each kind; ``python -m tests.redact.bulk`` looks at ten megabytes."""
    length = bulk.LENGTH if settings().max_examples > 100 else 60_000
    assert list(bulk.found(kind, length)) == []


def test_what_is_secret_in_such_a_text_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the rule that found it, so that a find there means something."""
    monkeypatch.setitem(bulk.KINDS, "logs", lambda _: "password: hunter22 in a line of a log\n" * 3)
    assert {rule for _, rule in bulk.found("logs", 1000)} == {"password-assigned"}
