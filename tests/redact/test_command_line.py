"""Secrets that are handed to commands, or that they print."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("$ kubectl get secret db -o jsonpath={.data.password} | base64 -d\nSKWVu3N78CUKKd7x\nthanks", "SKWVu3N78CUKKd7x"),
        ('gpg --batch --passphrase "three wet stones under the bridge" -d db.gpg', "three wet stones under the bridge"),
        ("disql SYSDBA/KC2yW1OnK6R@10.0.4.30:5236", "KC2yW1OnK6R"),
        ('ssh-keygen -t ed25519 -f id -N "pebble kettle cobalt" -C ann', "pebble kettle cobalt"),
        ("echo -n 'biscuit raven ember' | sudo cryptsetup luksOpen /dev/sdb1 b", "biscuit raven ember"),
        ('["redis-server", "--requirepass", "eEc2TfGGFukuewyPyLtxqmvBhiJa"]', "eEc2TfGGFukuewyPyLtxqmvBhiJa"),
        ('"attributes": {"length": 24, "result": "cFlparB5v1dMIZgCtqpRZFAU"}}], "type": "random_password"', "cFlparB5v1dMIZgCtqpRZFAU"),
    ],
)  # fmt: skip
def test_what_a_command_takes_or_prints_goes(text: str, secret: str) -> None:
    """Behind a flag, in a list of arguments, on the line below it, and in a state that a program keeps."""
    redacted = Redactor(Redact()).redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:9])


@pytest.mark.parametrize(
    "text",
    [
        'ssh-keygen -t ed25519 -f id -N ""',
        "echo 'done with the disk' | tee cryptsetup.log",
        "$ grep -r password src\nsrc/settings/passwords.py",
        "the notes are below\nSKWVu3N78CUKKd7x",
        'gpg --passphrase "enter your passphrase here"',
        "$ cat secrets.md\nIntroductionToSecrets",
    ],
)
def test_what_else_a_command_prints_stays(text: str) -> None:
    """Paths and words; and what no prompt stands before."""
    assert Redactor(Redact()).redact(text).text == text
