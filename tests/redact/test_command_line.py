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


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("$ kubectl get secret db -o jsonpath={.data.password} | base64 -d\nSKWVu3N78CUKKd7x\nthanks", "SKWVu3N78CUKKd7x"),
        ('gpg --batch --passphrase "three wet stones under the bridge" -d db.gpg', "three wet stones under the bridge"),
        ('["redis-server", "--requirepass", "eEc2TfGGFukuewyPyLtxqmvBhiJa"]', "eEc2TfGGFukuewyPyLtxqmvBhiJa"),
        ('"attributes": {"length": 24, "result": "cFlparB5v1dMIZgCtqpRZFAU"}}], "type": "random_password"', "cFlparB5v1dMIZgCtqpRZFAU"),
    ],
)  # fmt: skip
def test_what_a_command_takes_or_prints_goes(text: str, secret: str) -> None:
    """Behind a flag, in a list of arguments, on the line below it, and in a state that a program keeps."""
    redacted = Redactor(Redact()).redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:12])


@pytest.mark.parametrize(
    "text",
    [
        "$ grep -r password src\nsrc/settings/passwords.py",
        "the notes are below\nSKWVu3N78CUKKd7x",
        'gpg --passphrase "enter your passphrase here"',
        "$ cat secrets.md\nIntroductionToSecrets",
    ],
)
def test_what_else_a_command_prints_stays(text: str) -> None:
    """Paths and words; and what no prompt stands before."""
    assert Redactor(Redact()).redact(text).text == text
