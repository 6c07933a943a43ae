"""Tells numbers that are codes from others: what follows them, a postal code, a pin of a board, a series."""

import re
from itertools import pairwise

from memd.redact.values import secret_candidates

ENDS_NUMBER = r"(?![\w%]|[.,:/-][0-9]|[ ]{0,20}(?:lines|bytes|characters|chars|files|words|tokens|times|digits|%)(?![a-z]))"
"""What no code is followed by: more of a number, or what the number counts."""
# In India a PIN code is the postal one.
_POSTAL = re.compile(
    r"pin[ ]?code[ ](?:for|of|in)[ ][^\n0-9]{0,30}(?:parcel|deliver|shipping|address|postal|area|city|courier)",
    re.IGNORECASE,
)
# "#define LED_PIN 4": where something is connected to a board.
_OF_BOARD = re.compile(r"#[ ]{0,4}define[ \t]{1,8}\w{0,40}\Z")


def means_other_pin(text: str, at: int) -> bool:
    """Return whether a place is in "PIN code" or "code" where that names a part of a country, or in the name of a board's pin."""
    return (
        _POSTAL.search(text, max(0, at - 4), at + 60) is not None
        or _OF_BOARD.search(text, max(0, at - 60), at) is not None
    )


def is_counted(said: str) -> bool:
    """Return whether digits have the same distance from each to the next: a series, or one digit over and over."""
    digits = list(map(int, re.findall("[0-9]+" if re.search("[0-9]{2}[ -]", said) else "[0-9]", said)))
    return len(digits) > 2 and len({after - before for before, after in pairwise(digits)}) == 1


def may_be_code(said: str) -> bool:
    """Return whether digits are neither a year, nor a round number, nor a series."""
    return not (secret_candidates.is_year(said) or said.endswith("000") or is_counted(said))
