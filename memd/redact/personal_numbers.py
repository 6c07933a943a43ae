"""Personal numbers, which are redacted if ``redact.kinds`` names them.

They are recognised by check digits, which other numbers may match too: one in ten random numbers passes the check of payment
cards. So none is redacted by default.
"""

import re
from collections.abc import Callable, Iterator

from memd.config.settings import PersonalNumber
from memd.redact.rule import Span

_BEFORE = r"(?<![\w.+-])"
_AFTER = r"(?![\w-]|\.[0-9])"
# ISO/IEC 7812: 13 to 19 digits, in groups of four, or grouped as by American Express.
_CARD = re.compile(
    rf"{_BEFORE}(?:[3-6][0-9]{{12,18}}|[3-6][0-9]{{3}}(?:[ -][0-9]{{4}}){{3}}(?:[ -][0-9]{{1,3}})?|3[47][0-9]{{2}}[ -][0-9]{{6}}[ -][0-9]{{5}}){_AFTER}"
)
# ISO 13616: country, two check digits, 11 to 30 letters and digits, possibly in groups of four.
_IBAN = re.compile(
    rf"{_BEFORE}[A-Z]{{2}}[0-9]{{2}}(?:[A-Z0-9]{{11,30}}|(?:[ ][A-Z0-9]{{4}}){{2,7}}(?:[ ][A-Z0-9]{{1,3}})?){_AFTER}"
)
# GB 11643: region, date of birth, serial number, check digit.
_CHINESE_ID = re.compile(
    rf"{_BEFORE}[1-8][0-9]{{5}}(?:18|19|20)[0-9]{{2}}(?:0[1-9]|1[0-2])(?:0[1-9]|[12][0-9]|3[01])[0-9]{{3}}[0-9Xx]{_AFTER}"
)
_CHINESE_MOBILE = re.compile(
    rf"(?<![\w.-])(?:(?:\+|00)?86[ -]?)?1[3-9][0-9](?:[0-9]{{8}}|[ -][0-9]{{4}}[ -][0-9]{{4}}){_AFTER}"
)


def _passes_luhn(text: str) -> bool:
    """Check a number by ISO/IEC 7812-1, annex B: every second digit from the right counts twice."""
    digits = [int(sign) for sign in text if sign.isdigit()]
    total = sum(digits[-1::-2]) + sum(sum(divmod(2 * digit, 10)) for digit in digits[-2::-2])
    return total % 10 == 0 and len(set(digits)) > 1


def _passes_97(text: str) -> bool:
    """Check a number by ISO 7064 MOD 97-10: with the first four characters at the end and letters as 10 to 35, it leaves 1."""
    plain = text.replace(" ", "")
    return int("".join(str(int(sign, 36)) for sign in plain[4:] + plain[:4])) % 97 == 1


def _passes_11(text: str) -> bool:
    """Check a number by ISO 7064 MOD 11-2, as in GB 11643."""
    total = sum(int(digit) * pow(2, 17 - at, 11) for at, digit in enumerate(text[:17]))
    return "10X98765432"[total % 11] == text[17].upper()


def _passes(text: str) -> bool:
    """Accept a number that has no check digit."""
    return bool(text)


_NUMBERS: dict[PersonalNumber, tuple[re.Pattern[str], Callable[[str], bool]]] = {
    "payment-card": (_CARD, _passes_luhn),
    "iban": (_IBAN, _passes_97),
    "chinese-id": (_CHINESE_ID, _passes_11),
    "chinese-mobile": (_CHINESE_MOBILE, _passes),
}


def spans(text: str, kind: PersonalNumber) -> Iterator[Span]:
    """Yield the spans of all numbers of a kind."""
    pattern, passes = _NUMBERS[kind]
    for match in pattern.finditer(text):
        if passes(match[0]):
            yield match.span()
