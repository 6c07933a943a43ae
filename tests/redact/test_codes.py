"""Codes of locks and logins, seeds of authenticators, recovery codes and licences."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor

_REDACTOR = Redactor(Redact())


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        ("The code for the garage keypad is 480213, thanks", "480213"),
        ("Alarm panel: disarm code 4821 then press star", "4821"),
        ("lockbox combo is 12-34-08", "12-34-08"),
        ("The safe opens with 731904.", "731904"),
        ("voicemail PIN: 4410", "4410"),
        ("card ends in 1881, cvv 773", "773"),
        ("the PUK is 83920174", "83920174"),
        ("Your Acme verification code is 492 118.", "492 118"),
        (
            "enter this setup key in your authenticator app: QNMX PVUO Z7HY JAMJ NP6R UEQL",
            "QNMX PVUO Z7HY JAMJ NP6R UEQL",
        ),
        (
            "2FA manual entry, lower case: qnmx pvuo z7hy jamj np6r ueql",
            "qnmx pvuo z7hy jamj np6r ueql",
        ),
        ("oathtool --totp -b QNMXPVUOZ7HYJAMJNP6RUEQL", "QNMXPVUOZ7HYJAMJNP6RUEQL"),
        ("Your Google backup codes\n1. 5060 2456\n2. 6800 2584\n3. 2387 7478", "6800 2584"),
        ("备用恢复码如下，请妥善保存：9uVW8VeF92、UvThQ5M09u、Fk61Nh5tqJ", "UvThQ5M09u"),
        ("序列号 A1B2-C3D4-E5F6-G7H8-J9K0 可以激活", "A1B2-C3D4-E5F6-G7H8-J9K0"),
        ("the duress code is 9981", "9981"),
        ("the front door takes 4471#", "4471#"),
        ("your one time code is 774812", "774812"),
        (
            "BitLocker recovery key: 482913-559021-339182-774520-118273-660194-225381-907164",
            "482913-559021-339182-774520-118273-660194-225381-907164",
        ),
        ("链接: https://pan.example.com/s/1abc 提取码 k8zp", "k8zp"),
    ],
)
def test_codes_go(text: str, secret: str) -> None:
    """Whole, and what says what they are stays."""
    redacted = _REDACTOR.redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:4])


@pytest.mark.parametrize(
    "text",
    [
        "the front door number 4821 of the street",
        "error code 4821 means that the door is open",
        "the garage code is 4821 lines long",
        "the safe opens with a key",
        "exit code 1024, entry point 4096",
        "we kept backup codes in 2019 and 2020, then stopped",
        "recovery codes 2021",
        "the authenticator app with that name, from that firm, does what they need",
        "product key 550E8400-E29B-41D4-A716-446655440000",
        "the combination of 3 - 4 words",
        "phone number 5551234567",
    ],
)
def test_other_numbers_stay(text: str) -> None:
    """Years, lengths, identifiers, and words of four letters."""
    assert _REDACTOR.redact(text).text == text
