"""Secrets as what decodes to them: they go as they stand."""

import base64
import html
import itertools
import json
import random
import textwrap
import urllib.parse
from collections.abc import Callable

import pytest

from memd.config.settings import Redact
from memd.redact.keys.token_formats import TokenFormat
from memd.redact.redactor import Redactor
from tests.bounds import shipped
from tests.redact import innocent
from tests.redact.chance import shaped

_REDACTOR = Redactor(Redact())
_TOKENS = ("ghp_[A-Za-z0-9]{36}", "sk-ant-api03-[A-Za-z0-9_-]{93}AA", "AKIA[A-Z2-7]{16}", "hf_[A-Za-z]{34}")


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


def _unicode(text: str) -> str:
    return "".join(sign if sign.isalnum() else f"\\u{ord(sign):04x}" for sign in text)


_DISGUISES: dict[str, Callable[[str], str]] = {
    "percent, before it": lambda token: f"cb?next=https%3A%2F%2Fa.example%2F%3Fx%3D{token}%26y%3D1",
    "percent, quoted": lambda token: f"q=%22{token}%22",
    "percent, all of it": lambda token: "".join(f"%{ord(sign):02X}" for sign in token),
    "percent, twice": lambda token: urllib.parse.quote(urllib.parse.quote(f"x={token}&y", safe=""), safe=""),
    "unicode, before it": lambda token: f'"a\\u003d{token}\\u0026b"',
    "unicode, its signs": _unicode,
    "hexadecimal": lambda token: "'" + "".join(f"\\x{ord(sign):02x}" for sign in token) + "'",
    "JSON in JSON": lambda token: json.dumps(json.dumps({"a": f"<{token}>"})).replace("<", "\\\\u003c"),
    "HTML, quoted": lambda token: html.escape(f'<a b="{token}">'),
    "HTML, its signs": lambda token: "".join(f"&#{ord(s)};" if not s.isalnum() else s for s in token),
    "a colour": lambda token: f"\x1b[32m{token}\x1b[0m",
    "colours inside": lambda token: f"{token[:6]}\x1b[1;31m{token[6:]}\x1b[0m",
    "without a width": "\u200b".join,
    "Markdown": lambda token: token.replace("_", "\\_").replace("-", "\\-"),
    "base64": lambda token: _base64(f"the value for staging: {token}\n"),
    "base64 in a colour": lambda token: f"\x1b[32m{_base64(f'the value for staging: {token}')}\x1b[0m",
    "base64, JSON": lambda token: _base64(json.dumps({"user": "ann", "value": token})),
    "base64, wrapped": lambda token: textwrap.fill(
        _base64(f"dear all,\n\n{'we met today. ' * 20}{token}\n"), 76
    ),
    "base64, of a URL": lambda token: (
        base64.urlsafe_b64encode(f"x={token}&y=?>".encode()).decode().rstrip("=")
    ),
}


@pytest.mark.parametrize("disguise", _DISGUISES)
def test_a_disguised_token_goes(disguise: str) -> None:
    """And nothing around it, in any language."""
    for number, shape in enumerate(_TOKENS * 3):
        token = shaped(shape, random.Random(f"{disguise}/{number}"))
        inner = _DISGUISES[disguise](token)
        for before, after in (("see ", " there"), ("他发来的是 ", " 请看"), ("a line\n", "\nanother")):
            redacted = _REDACTOR.redact(f"{before}{inner}{after}").text
            assert redacted.startswith(before), redacted
            assert redacted.endswith(after), redacted
            assert token not in redacted
            assert inner[-12:] not in redacted or inner[-12:] not in token + inner[-4:], redacted
            assert "[REDACTED:" in redacted, redacted
            assert redacted.count("\n") == f"{before}{inner}{after}".count("\n")
            assert _REDACTOR.redact(redacted).text == redacted


def test_what_is_decoded_and_harmless_stays() -> None:
    """Escapes and base64 of talk, and of bytes."""
    rng = random.Random(5)
    talk = innocent.chat(rng, 200)
    for text in (
        urllib.parse.quote(talk),
        json.dumps(talk),
        html.escape(talk),
        _base64(talk),
        textwrap.fill(_base64(talk), 76),
        base64.b64encode(rng.randbytes(50_000)).decode(),
    ):
        assert _REDACTOR.redact(f"see\n{text}").text == f"see\n{text}"


_BREAKS = ("\n", "=\n", "=\r\n", "\r\n", "\n> ", "\n    ", "**", "`", " |\n| ", '" + "', '"\n  "')


@pytest.mark.parametrize("gap", _BREAKS)
def test_a_broken_token_goes(gap: str) -> None:
    """Wherever it is broken behind its first signs; what stands around it stays, and the lines keep their number."""
    more = shipped("memd.redact.keys.token_formats._LEAST_MORE")
    for token, last in (
        ("ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8", more),
        ("squ_" + "0a1b2c3d4e5f60789f8e" * 2, 6),
    ):
        for at in range(5, len(token) - last):
            text = f"see {token[:at]}{gap}{token[at:]} there"
            redacted = _REDACTOR.redact(text).text
            assert redacted.startswith("see [REDACTED:"), redacted
            assert token[at:] not in redacted
            assert redacted.endswith(" there")
            assert redacted.count("\n") == text.count("\n")
            assert _REDACTOR.redact(redacted).text == redacted


@pytest.mark.parametrize(
    "text",
    [
        "sk-ant-\nthe-prefix-of-keys is documented",
        "ghp_ and\n0123456789 lines of 2026",
        "xai-grok\n2026-01-01-release-notes-v2 came",
        "glpat-\n\n# Heading2 with words",
        "a `ghp_` then `Abc123Def` and more",
    ],
)
def test_words_on_the_line_below_complete_no_token(text: str) -> None:
    """What begins like one stays with what is below it."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize("more", [0, 1])
def test_a_token_may_have_so_many_parts(more: int) -> None:
    """Of what is broken more often, its parts are too short to tell."""
    most = shipped("memd.redact.keys.token_formats._MOST_PARTS") + more
    rest = "0a1b2c3d4e5f6a7b8c9d" * 2
    cuts = [len(rest) * number // most for number in range(most + 1)]
    text = "squ_" + "**".join(rest[first:last] for first, last in itertools.pairwise(cuts))
    assert (_REDACTOR.redact(text).text == text) is (more == 1)


@pytest.mark.parametrize("short", [0, 1])
def test_only_a_long_part_is_added_to_what_is_a_token_without_it(short: int) -> None:
    """A short one may be the first word of the next line."""
    part = ("a1B2c" * 8)[: shipped("memd.redact.keys.token_formats._LEAST_MORE") - short]
    redacted = _REDACTOR.redact(f"sk-ant-api03-{'x1Y2z' * 8}\n{part}").text
    assert (part in redacted) is (short == 1)


@pytest.mark.parametrize("short", [0, 1])
def test_an_anchor_has_so_many_signs_where_a_token_may_be_broken(short: int) -> None:
    """Words begin with shorter ones."""
    anchor = "qqqqqqqq"[: shipped("memd.redact.keys.token_formats._LEAST_ANCHOR") - short]
    assert TokenFormat("q", "Q", (anchor,), anchor + r"[a-z]{20}", "vendor").is_strict is (short == 0)
