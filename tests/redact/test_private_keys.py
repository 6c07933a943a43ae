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


_HEADS = (
    "MIIEvQIBADANBgkqhkiG", "MIIEowIBAAKCAQEA", "MIIJKAIBAAKCAgEA", "MHcCAQEEIK", "MIGkAgEBBDD6", "MIGHAgEAMBMGByqGSM49", "b3BlbnNzaC1rZXktdjEAAAAA",
)  # fmt: skip


@pytest.mark.parametrize("head", _HEADS)
@pytest.mark.parametrize(
    ("before", "mark", "after"),
    [
        ("this one:\n```\n", "", "\n```\nkeep it"),
        ("Ann wrote:\n", "> ", "\nthat was it"),
        ("$ nl key\n", "     7\t", "\n$"),
        ('{"k": "', "", '"}'),
    ],
)
def test_the_body_of_a_key_goes_without_its_first_line(head: str, before: str, mark: str, after: str) -> None:
    """How a private key begins tells it; what stands around it stays."""
    lines = material(len(head), 4, 64)
    lines[0] = head + lines[0][len(head) :]
    end = "\\n" if before.startswith("{") else "\n"
    redacted = _REDACTOR.redact(before + end.join(mark + line for line in lines) + after).text
    assert not [line for line in lines if line in redacted]
    assert redacted.startswith(before)
    assert redacted.endswith(after)


@pytest.mark.parametrize(
    "head",
    ["MIIBIjANBgkqhkiG9w0BAQEFAAOC", "MIIDdzCCAl+gAwIBAgIEAgAAuTANBg", "MFkwEwYHKoZIzj0CAQYIKoZIzj0DAQ"],
)
def test_the_body_of_a_public_key_or_a_certificate_stays(head: str) -> None:
    """It begins otherwise."""
    lines = material(len(head), 4, 64)
    text = "this one:\n" + "\n".join([head + lines[0][len(head) :], *lines[1:]]) + "\nends here"
    assert _REDACTOR.redact(text).text == text


def test_a_quoted_middle_of_a_key_goes() -> None:
    """With the marks of the quotation, however deep."""
    lines = material(5, 6, 64)
    for mark in ("> ", ">> ", "> > "):
        redacted = _REDACTOR.redact("\n".join(mark + line for line in lines)).text
        assert not [line for line in lines if line in redacted]


@pytest.mark.parametrize(
    ("begin", "before", "end"),
    [
        ("-BEGIN RSA PRIVATE KEY-----", "\n", "-----END RSA PRIVATE KEY-"),
        ("--BEGIN RSA PRIVATE KEY--", " ", "--END RSA PRIVATE KEY--"),
        ("--BEGIN RSA PRIVATE KEY--", "", "--END RSA PRIVATE KEY--"),
        ("BEGIN PRIVATE KEY", "\n", "END PRIVATE KEY"),
        ("——-BEGIN EC PRIVATE KEY——-", "\n", "——-END EC PRIVATE KEY——-"),
        ("- - - - -BEGIN PRIVATE KEY- - - - -", "\n", "- - - - -END PRIVATE KEY- - - - -"),
        (">> > ---BEGIN PRIVATE KEY---", "\n>> > ", ">> > ---END PRIVATE KEY---"),
        ("> -----BEGIN RSA\n> PRIVATE KEY-----", "\n> ", "> -----END RSA PRIVATE\n> KEY-----"),
        ("-----BEGINRSAPRIVATEKEY-----", "\n", "-----ENDRSAPRIVATEKEY-----"),
        ("-----BEGIN_RSA_PRIVATE_KEY-----", "\n", "-----END_RSA_PRIVATE_KEY-----"),
        ("--BEGIN RSA PRIVATE KEY--", "<br>", "--END RSA PRIVATE KEY--"),
    ],
)
@pytest.mark.parametrize("has_end", [True, False])
def test_a_key_goes_whose_armour_is_damaged(begin: str, before: str, end: str, *, has_end: bool) -> None:
    """Dashes, blanks and line ends that a mail program or a hand lost do not keep it."""
    lines = material(7, 6, 64)
    text = f"this is it:\n{begin}{before}{before.join(lines)}\n{end if has_end else 'and so on'}\n"
    redacted = _REDACTOR.redact(text).text
    assert not [line for line in lines if line in redacted]
    assert "and so on" in redacted or has_end
    assert redacted.startswith("this is it:\n")
    assert redacted.count("\n") == text.count("\n")


@pytest.mark.parametrize(
    "text",
    [
        "the line says BEGIN RSA PRIVATE KEY and then comes base64",
        "grep -r 'BEGIN RSA PRIVATE KEY' /etc/ssl/private/keys/for/everyone/and/more/here",
        "begin private key rotation 4f3a9b2c1d0e4f3a9b2c1d0e4f3a9b2c1d0e4f3a",
    ],
)
def test_a_sentence_about_such_a_line_stays(text: str) -> None:
    """Without all dashes only data below it tells a key."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize("short", [0, 1])
def test_the_first_line_below_a_damaged_one_is_long(short: int) -> None:
    """Or it is no line of a key."""
    text = "--BEGIN PRIVATE KEY--\n" + "aB1" * 20
    text = text[
        : len("--BEGIN PRIVATE KEY--\n") + shipped("memd.redact.keys.private_keys._LEAST_DRAWN") - short
    ]
    assert (_REDACTOR.redact(text).text == text) is bool(short)


@pytest.mark.parametrize("short", [0, 1])
def test_the_body_of_a_key_has_so_many_signs(short: int) -> None:
    """What is shorter is none."""
    least = shipped("memd.redact.keys.private_keys._LEAST_BODY") - short
    text = ("b3BlbnNzaC1rZXktdjE" + "Ab1" * least)[:least]
    assert (_REDACTOR.redact(f"see {text} now").text == f"see {text} now") is (short == 1)


@pytest.mark.parametrize("short", [0, 1])
def test_a_line_below_the_first_one_is_of_the_key_if_it_is_long_enough(short: int) -> None:
    """Though other text stands behind it; shorter words are words."""
    signs = "p" * (shipped("memd.redact.keys.private_keys._LEAST") - short)
    text = f"-----BEGIN PRIVATE KEY-----\n{signs} and so on"
    assert _REDACTOR.redact(text).text == (text if short else "[REDACTED:private-key]\n and so on")


def test_all_lines_of_a_literal_are_secret() -> None:
    """However many it has; what is indented less is none of them."""
    lines = [f"  Tr0ub4d&r{number}xQz" for number in range(300)]
    redacted = _REDACTOR.redact("password: |\n" + "\n".join(lines) + "\nuser: ann\n").text
    assert redacted == "password: |\n  [REDACTED:password]" + "\n" * 300 + "user: ann\n"


def test_the_private_members_of_a_json_web_key_go() -> None:
    """The public ones stay."""
    drawn = "9GTk0SF09n2p-OkqYZz-sMK7OW2IYQkwtxOU0kj-kMY"
    text = '{"kty":"EC","crv":"P-256","x":"9_V7ns7KgyLTYvZpUomWc0pnuM0_2Ngi8P4opqudCx0","d":"%s"}'
    assert _REDACTOR.redact(text % drawn).text == text % "[REDACTED:private-key]"
    public = text.replace(',"d":"%s"', "")
    assert _REDACTOR.redact(public).text == public


@pytest.mark.parametrize("far", [0, 1])
def test_a_json_web_key_ends_near_its_kind(far: int) -> None:
    """So many signs behind it; what is longer is something else."""
    most = shipped("memd.redact.keys.private_keys._MOST_OF_OBJECT")
    drawn = "9GTk0SF09n2p-OkqYZz-sMK7OW2IYQkwtxOU0kj-kMY"
    head = f'"kty":"EC","d":"{drawn}","x5c":"'
    text = "{" + head + "." * (most - len(head) - len('"}') + far) + '"}'
    assert (drawn in _REDACTOR.redact(text).text) is bool(far)
