"""Finds a single recovery code behind a label for one: "恢复码:R51250", "code de secours : 55713-08264".

Lists of them are in codes.py. What it is for may stand between the label and the code, and the code on the line below.
"""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, matching
from memd.redact.secret_words import SECRET_WORDS, either

_LABELS = (*SECRET_WORDS.recovery, *SECRET_WORDS.recovery_of_one)
_CODE = (
    r"(?:[0-9]{3,5}(?:[ -][0-9]{3,5}){1,5}|[0-9]{6,12}|(?=[A-Za-z-]{0,24}[0-9])[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,6}"
    r"|(?=[A-Za-z]{1,14}[0-9]|[0-9]{1,14}[A-Za-z])[A-Za-z0-9]{6,20})"
)
_RECOVERY = re.compile(
    rf"(?:{either(_LABELS)})s?[\"'`*_]{{0,3}}(?:[ ]?[(（][^()（）\n]{{1,40}}[)）]|[ ](?:for|of|to|from|{either(SECRET_WORDS.plain.of)})[ ][^\n:：=]{{1,60}}?)?"
    rf"(?:[ ]?[:：=→][*_]{{0,2}}\s{{0,8}}|[ ](?:is|{either(SECRET_WORDS.plain.says)})[ ]{{1,2}}|[是为為は][ ]?|[는은][ ]|(?<=[^\x00-\x7f])[ ]|[ ](?=[0-9]{{4}}[ ][0-9]{{4}}(?![\w])|(?=[a-z-]{{0,12}}[0-9])[a-z0-9]{{4,8}}-[a-z0-9]{{4,8}}(?![\w.])))[\"'`“「]{{0,2}}"
    rf"(?P<secret>{_CODE})(?![\w%@-]|[./:]\w|[ ][0-9])",
    re.IGNORECASE,
)
# In a name with a number ("prod-keys-2024") one part has digits, in a code several do, or it is in capitals.
_PART_WITH_DIGIT = re.compile("[A-Za-z]*[0-9][A-Za-z0-9]*")
_YEARS = re.compile(r"(?:19|20)[0-9]{2}(?:[ -](?:(?:19|20)[0-9]{2}|[0-9]{1,2}))*")


def _recovery(text: str, at: int) -> Span | None:
    match = _RECOVERY.match(text, at)
    if match is None or _YEARS.fullmatch(match["secret"]) is not None:
        return None
    said = match["secret"]
    is_name = "-" in said and said != said.upper() and len(_PART_WITH_DIGIT.findall(said)) < 2
    return None if is_name else match.span("secret")


# Six groups of four, which macOS shows once when it encrypts a disk.
_OF_DISK = r"filevault[^\n]{0,120}?(?P<secret>(?-i:(?=[A-Z-]{0,29}[0-9])(?=[0-9-]{0,29}[A-Z])[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5}))(?![\w-])"

RULES = (
    Rule("recovery-code", "code", _LABELS, _recovery, needs=Nearby(DIGIT, 0, 110)),
    Rule("recovery-key-of-disk", "code", ("filevault",), matching(_OF_DISK, re.IGNORECASE)),
)
"""Codes behind their label, and keys of encrypted disks."""
