"""A private key that was sent in pieces, a turn each."""

import base64
import hashlib
import random

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.bounds import shipped

_REDACTOR = Redactor(Redact())


def material(seed: int, lines: int, width: int) -> list[str]:
    """Lines of a key."""
    data = base64.b64encode(random.Random(seed).randbytes(lines * width)).decode()
    return [data[at : at + width] for at in range(0, lines * width, width)]


@pytest.mark.parametrize("width", [64, 70, 76])
@pytest.mark.parametrize("end", ["", "\n", "Ab3=", "Q/x9==\n"])
def test_the_middle_of_a_key_goes(width: int, end: str) -> None:
    """Neither its first line nor its last is there to say what it is; the lines keep their number."""
    lines = material(width, 6, width)
    text = "\n".join(lines) + "\n" + end
    redacted = _REDACTOR.redact(text)
    assert redacted.counts == {"private-key": 1}
    assert not [line for line in lines if line in redacted.text]
    assert redacted.text.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "\n".join(hashlib.sha256(bytes([n])).hexdigest() for n in range(8)),
        "\n".join(hashlib.sha256(bytes([n])).hexdigest().upper() for n in range(8)),
        "\n".join("a" * 64 for _ in range(8)),
        "\n".join(material(1, 2, 64))[:120],
        "\n".join([*material(1, 3, 64)[:2], "and that was all"]),
        "The picture:\n" + "\n".join(material(1, 6, 64)),
    ],
)
def test_other_lines_stay(text: str) -> None:
    """Digests, rulers, a token or two, and base64 in a text that speaks of something else."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize("short", [0, 1])
def test_a_line_below_the_first_one_is_of_the_key_if_it_is_long_enough(short: int) -> None:
    """Though other text stands behind it; shorter words are words."""
    signs = "p" * (shipped("memd.redact.private_keys._LEAST") - short)
    text = f"-----BEGIN PRIVATE KEY-----\n{signs} and so on"
    assert _REDACTOR.redact(text).text == (text if short else "[REDACTED:private-key]\n and so on")


def test_all_lines_of_a_literal_are_secret() -> None:
    """However many it has; what is indented less is none of them."""
    lines = [f"  Tr0ub4d&r{number}xQz" for number in range(300)]
    redacted = _REDACTOR.redact("password: |\n" + "\n".join(lines) + "\nuser: ann\n").text
    assert redacted == "password: |\n  [REDACTED:password]" + "\n" * 300 + "user: ann\n"
