"""Messages that were written down before they were tried on the rules."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.unseen import FILES, harmless, left, messages


@pytest.mark.parametrize(
    ("file", "least"),
    [
        ("unseen.txt", 0.95),
        ("unseen_later.txt", 0.97),
        ("unseen_blind.txt", 0.99),
        ("unseen_blind_later.txt", 0.97),
        ("unseen_third.txt", 0.98),
        ("unseen_fourth.txt", 0.77),
        ("unseen_fifth.txt", 0.55),
        ("unseen_sixth.txt", 0.89),
        ("unseen_seventh.txt", 0.78),
    ],
)
def test_what_is_distinctive_goes(file: str, least: float) -> None:
    """No more of it is left than when the rules were last mended on it."""
    count, missed = left(file, distinctive=True)
    assert 1 - len(missed) / count >= least, missed


def test_the_messages_have_what_they_say() -> None:
    """Each secret stands in its message, in a dozen languages."""
    every = [message for file in FILES for message in messages(file)]
    assert len(every) > 200
    assert len({message.language for message in every}) > 12
    for message in every:
        assert message.secrets
        assert all(secret in message.text for secret in message.secrets)


@pytest.mark.parametrize("file", ["unseen_fifth.txt", "unseen_sixth.txt"])
def test_what_is_harmless_stays(file: str) -> None:
    """However much it looks like a password, a code or a key."""
    texts = harmless(file)
    assert len(texts) > 90
    redactor = Redactor(Redact())
    assert [text for text in texts if redactor.redact(text).text != text] == []


def test_of_the_last_set_two_harmless_messages_are_touched() -> None:
    """The gate of an airport, and what stands behind an address in a table."""
    redactor = Redactor(Redact())
    touched = [text for text in harmless("unseen_seventh.txt") if redactor.redact(text).text != text]
    assert all("gate 3917 at Terminal 2" in text or "Plus-2026" in text for text in touched)
