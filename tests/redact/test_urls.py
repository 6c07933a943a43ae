"""Credentials in URLs, as long as they may be."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

USER, PASSWORD = "u" * 200, "p4" * 150


@pytest.mark.parametrize(("user", "password"), [(USER, PASSWORD), ("", PASSWORD), (USER, "p4")])
def test_the_longest_name_and_password_go(user: str, password: str) -> None:
    """What is looked at for the sign behind them is as long as both together."""
    text = f"https://{user}:{password}@example.org/path"
    assert len(f"://{user}:{password}@") <= shipped("memd.redact.programs.urls._LONGEST")
    assert Redactor(Redact()).redact(text).text == text.replace(password, "[REDACTED:url-password]")
