"""Secrets that are handed to functions."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor


@pytest.mark.parametrize(
    "text",
    [
        'requests.get(url, auth=("ann", "hunter22"))',
        "smtp.login('ann@example.com', 'hunter22')",
        'mysqli_connect("db", "ann", "hunter22", "prod")',
        'jwt.encode(claims, "hunter22")',
        'ConvertTo-SecureString "hunter22" -AsPlainText',
        'user.setPassword("hunter22")',
    ],
)
def test_a_literal_password_goes(text: str) -> None:
    """The name before it stays."""
    assert Redactor(Redact()).redact(text).text == text.replace("hunter22", "[REDACTED:password]").replace(
        'claims, "[REDACTED:password]', 'claims, "[REDACTED:secret]'
    )


@pytest.mark.parametrize(
    "text",
    ["login(user, password)", 'login("ann", password)', 'auth=("user", os.environ["PASS1"])', 'connect("db", "ann", "prod")', "jwt.decode(token, key)"],
)  # fmt: skip
def test_what_is_handed_on_stays(text: str) -> None:
    """Variables, and words."""
    assert Redactor(Redact()).redact(text).text == text
