"""Finds recovery codes and keys, which open an account, a vault or a disk when everything else is lost: single ones, lists and what is left of them."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, matching, sought
from memd.redact.words.secret_words import SECRET_WORDS, either

_UNSEAL = re.compile(
    r"""(?:unseal|recovery)(?:[ _]key)?(?:[ _]?[0-9]{1,2})?[*_`"']{0,3}[ \t]{0,4}[:=]?[ \t]{0,8}["'`*]{0,3}
    (?P<secret>[A-Za-z0-9+/]{43}=|[A-Za-z0-9+/]{44}|[0-9a-f]{32,66})(?![A-Za-z0-9+/])""",
    re.VERBOSE | re.IGNORECASE,
)

# A key in groups of four letters and digits, as of a messenger or a vault.
_OF_FOURS = re.compile(r"(?:security|recovery)[ _-](?:key|code)s?|恢复(?:代码|码|密钥)|安全密钥")
_FOURS = re.compile(r"(?<![\w-])(?P<secret>[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){6,15})(?![\w-])", re.ASCII)
_MIXED_FOUR = re.compile(r"(?=[A-Za-z]{0,3}[0-9])(?=[0-9]{0,3}[A-Za-z])[A-Za-z0-9]{4}")
_CHARS_OF_FOURS = 60  # characters after the anchor in which the groups begin


def _fours(text: str, at: int) -> Span | None:
    label = _OF_FOURS.match(text[at : at + 20].lower())
    match = None if label is None else _FOURS.search(text, at + label.end(), at + _CHARS_OF_FOURS + 100)
    # Prose may have consecutive words of four letters too, with a year among them.
    if match is None or len(_MIXED_FOUR.findall(match["secret"])) < 2:
        return None
    return match.span("secret")


# Eight groups of six digits have no other meaning beside these words; each of a true key is a multiple of eleven, which a misread one is not.
_BITLOCKER = re.compile(r"(?<![0-9-])[0-9]{6}(?:-[0-9]{6}){7}(?![0-9-])")
_CHARS_OF_DISK = 300  # characters after the anchor in which they begin


# Backup codes of an authenticator: a list of two or more, each with a digit and none of them a year.
_ITEM = r"(?:[0-9]{1,2}[.)、][ \t]{0,2}|[-*•>][ \t]{0,2}|\[[ x]?\][ ])?"
_ONE = (
    r"(?!(?:19|20)[0-9]{2}(?![0-9A-Za-z]))(?=[A-Za-z-]{0,20}[0-9])"
    r"(?:[0-9]{4}[ ][0-9]{4}(?![0-9])|[A-Za-z0-9]{4,12}(?:-[A-Za-z0-9]{4,12}){0,4})"
)
_CODES = re.compile(
    rf"(?:(?:backup|recovery|scratch|emergency|rescue)[ _-](?:codes?|keys?|passcodes?)|(?:(?<=2fa )|(?<=mfa ))backup|(?:恢复|备用|备份|应急|救援|备用验证)(?:码|代码|密钥)|(?:{either(SECRET_WORDS.recovery)})\w{{0,2}}(?:[ ][\w.'’-]{{1,20}}){{0,3}}?)"
    r"[\"'`*_]{0,3}(?:[ ](?:for|of|to|from)(?:[ ][\w.'’-]{1,20}){1,4}?)?(?:\.txt)?(?:[ ](?:are|is|below|follow|如下)){0,2}(?:[ ]?[（(][^()（）\n]{1,60}[)）]|[ ][–—-][ ][^\n:：]{1,60}(?=\n))?"
    r"(?:[是为如下，,]{1,4}[^\n:：0-9]{0,24})?[ ]?[:：=]?[ \t]{0,4}[\"'\[]{0,2}\n?(?:[ \t]{0,8}\n)?[ \t]{0,8}"
    rf"(?P<secret>{_ITEM}{_ONE}(?:[\"']{{0,2}}[ \t]{{0,4}}[ \t,;、，；|\n][ \t]{{0,16}}[\"']{{0,2}}{_ITEM}{_ONE}){{1,30}})(?![\w-])",
    re.IGNORECASE,
)

# Backup codes somewhere behind their label: two or more of the same form.
_OF_SERIES = re.compile(
    r"(?:backup|recovery|scratch|emergency|rescue|one-time)(?P<named>[ _-](?:login[ ])?(?:codes?|keys?|passcodes?))?(?![A-Za-z])"
    r"|(?P<chinese>(?:恢复|备用|备份|应急|救援)(?:验证)?(?:码|代码|密钥))",
    re.IGNORECASE,
)
# Between the label and the first code: no sentence ends.
_ANNOUNCES_SERIES = re.compile(
    r"[^\n.;!?。；！？]{0,60}(?:(?<=[:：，, 个是])|\n\s{0,8}(?:[-*•>]|[0-9]{1,2}[.)]|\[[ x]?\])?)[ ]{0,2}"
)
_AT_ONCE = re.compile(r"[ :：,]{1,3}")
_CHARS_OF_SERIES = 90
_OF_SAME_FORM = re.compile(
    r"(?<![\w-])(?:[0-9]{4}[ ][0-9]{4}|(?=[0-9-]{0,12}[A-Za-z])(?=[A-Za-z-]{0,12}[0-9])[A-Za-z0-9]{4,6}(?:-[A-Za-z0-9]{4,6}){1,3}"
    r"|(?=[0-9]{0,15}[a-z])(?=[a-z]{0,15}[0-9])[a-z0-9]{8,16})(?![A-Za-z0-9_-])",
    re.ASCII,
)
_BETWEEN_CODES = re.compile(r"[\s,;、，；|/`\"'*•>()\[\]和与及-]{1,12}(?:and[ ]|[0-9]{1,2}[.)][ ]?)?")
_MOST_CODES = 32


def _series(text: str, at: int) -> Span | None:
    """Return backup codes of the same form, from the first one to the last one."""
    label = _OF_SERIES.match(text, at)
    if label is None:
        return None
    first = _OF_SAME_FORM.search(text, label.end(), label.end() + _CHARS_OF_SERIES)
    announces = _ANNOUNCES_SERIES if label["named"] or label["chinese"] else _AT_ONCE
    if first is None or announces.fullmatch(text, label.end(), first.start()) is None:
        return None
    form = re.sub("[A-Za-z0-9]", "x", first[0])
    end, count = first.end(), 1
    while count < _MOST_CODES and (between := _BETWEEN_CODES.match(text, end)) is not None:
        following = _OF_SAME_FORM.match(text, between.end())
        if following is None or re.sub("[A-Za-z0-9]", "x", following[0]) != form:
            break
        end, count = following.end(), count + 1
    return (first.start(), end) if count > 1 else None


# Backup codes in capitals, of which some have no digit.
_CAPITAL_CODES = re.compile(
    r"(?:backup|recovery|scratch|emergency|rescue)[ _-](?:codes?|keys?)[^\n:]{0,40}:\s{1,4}(?P<secret>[A-Z0-9]{5,10}(?:[ \t]{0,4}[ ,;|/\n][ \t]{0,8}[A-Z0-9]{5,10}){1,30})(?![\w-])",
)


def _capital_codes(text: str, at: int) -> Span | None:
    match = _CAPITAL_CODES.match(text, at)
    if match is None or DIGIT.search(match["secret"]) is None:
        return None
    return match.span("secret") if len(set(map(len, re.findall("[A-Z0-9]+", match["secret"])))) == 1 else None


# バックアップコードを控えました → 「k3v8 z1qm」「p0xw 7dta」: codes in quotes, each with a digit.
_IN_QUOTES = r"(?=[A-Za-z -]{0,24}[0-9])[A-Za-z0-9]{3,12}(?:[ -][A-Za-z0-9]{3,12}){0,5}"
_QUOTED = re.compile(
    rf"(?:{either((*SECRET_WORDS.recovery, *SECRET_WORDS.recovery_of_one))})[^\n。！？「『“\"A-Z]{{0,12}}(?:[(（][^()（）\n]{{1,30}}[)）])?[^\n。！？「『“\"0-9]{{0,24}}[「『“\"]"
    rf"(?P<secret>{_IN_QUOTES}(?:[」』”\"][ 、，,・/]{{0,2}}(?:と|和|及|와|과)?[「『“\"]{_IN_QUOTES}){{0,30}})[」』”\"]",
    re.IGNORECASE,
)

_SHAPE_BEFORE = re.compile("格式|形式|例|比如|形如|样式|フォーマット|형식|예시")
_SHAPE_BEHIND = re.compile('[」』”"][ ]?(?:开头|開頭|这样|這樣|之类|格式|のよう|などの|처럼|で始|로 시작)')


def _quoted(text: str, at: int) -> Span | None:
    """Return codes in quotes, unless a text says what such codes look like."""
    match = _QUOTED.match(text, at)
    if match is None or _SHAPE_BEFORE.search(text, at, match.start("secret")) is not None:
        return None
    return None if _SHAPE_BEHIND.match(text, match.end("secret")) else match.span("secret")


KEYS_AND_LISTS = (
    Rule("unseal-key", "key", ("unseal", "recovery"), matching(_UNSEAL)),
    Rule(
        "key-in-fours",
        "key",
        ("security", "recovery", "恢复", "安全密钥"),
        _fours,
        needs=Nearby(re.compile("(?:[A-Za-z0-9]{4}[ ]){6}"), 0, _CHARS_OF_FOURS + 20, 30),
    ),
    Rule("disk-recovery", "key", ("bitlocker", "numerical password", "recovery", "blue screen", "bluescreen", "48 digit", "48-digit", "boot screen", "key id", "恢复密钥", "恢復金鑰", "wiederherstell"), walk=sought(_BITLOCKER, behind=_CHARS_OF_DISK, width=60)),
    Rule(
        "backup-codes",
        "code",
        ("backup", "recovery", "scratch", "emergency", "rescue", "恢复", "备用", "备份", "应急", "救援", *SECRET_WORDS.recovery),
        matching(_CODES),
        has_digit=True,
    ),
    Rule(
        "backup-codes-in-series",
        "code",
        ("backup", "recovery", "scratch", "emergency", "rescue", "one-time", "恢复", "备用", "备份", "应急", "救援"),
        _series,
        needs=Nearby(DIGIT, 0, 120),
    ),
    Rule("backup-codes-quoted", "code", tuple(word for word in (*SECRET_WORDS.recovery, *SECRET_WORDS.recovery_of_one) if not word.isascii()), _quoted, needs=Nearby(re.compile('[「『“"]'), 0, 90)),
    Rule("backup-codes-capital", "code", ("backup", "recovery", "scratch", "emergency", "rescue"), _capital_codes),
)  # fmt: skip
"""Keys of vaults and disks, and lists of codes."""

# A single code: "恢复码:R51250", "code de secours : 55713-08264". What it is for may stand between the label and the code, and the code
# on the line below.
_LABELS = (*SECRET_WORDS.recovery, *SECRET_WORDS.recovery_of_one)
_CODE = (
    r"(?:(?=(?:[a-z]{4}[ -]){0,2}[a-z]{0,3}[0-9])(?:[a-z0-9]{4}[ -]){4,11}(?=[a-z]{0,3}[0-9]|[0-9]{0,3}[a-z])[a-z0-9]{4}|[0-9]{3,5}(?:[ -][0-9]{3,5}){1,5}|[0-9]{6,12}|(?=[A-Za-z-]{0,24}[0-9])[A-Za-z0-9]{4,8}(?:-[A-Za-z0-9]{4,8}){1,6}"
    r"|(?=[A-Za-z]{1,14}[0-9]|[0-9]{1,14}[A-Za-z])[A-Za-z0-9]{6,20})"
)
_RECOVERY = re.compile(
    rf"(?:{either(_LABELS)})s?[\"'`*_]{{0,3}}(?:[ ]?[(（][^()（）\n]{{1,40}}[)）]|[ ](?:for|of|to|from|{either(SECRET_WORDS.plain.of)})[ ][^\n:：=]{{1,60}}?)?"
    rf"(?:[ ]?[:：=→][*_]{{0,2}}\s{{0,8}}|[ ](?:is|{either(SECRET_WORDS.plain.says)})[ ]{{1,2}}|[是为為は][ ]?|[는은][ ]|(?<=[^\x00-\x7f])[ ]|[ ](?=[0-9]{{4}}[ ][0-9]{{4}}(?![\w])|(?=[a-z-]{{0,12}}[0-9])[a-z0-9]{{4,8}}-[a-z0-9]{{4,8}}(?![\w.])))[\"'`“「]{{0,2}}"
    rf"(?P<secret>{_CODE})(?![\w%@-]|[./:]\w|[ ][0-9])",
    re.IGNORECASE,
)
# "Google backup codes 还剩 1713 4570": what is left of them, in Chinese, with digits in two groups or two groups of five.
_LEFT = re.compile(
    rf"(?:{either(_LABELS)})s?[ ]?[一-鿿，, ]{{1,16}}?[:：]?[ ]?"
    r"(?P<secret>[0-9]{4}[ ][0-9]{4}|(?=[a-z-]{0,6}[0-9])[0-9a-z]{5}-[0-9a-z]{5})(?![\w%@-]|[./:]\w|[ ][0-9])",
    re.IGNORECASE,
)
# In a name with a number ("prod-keys-2024") one part has digits, in a code several do, or it is in capitals.
_PART_WITH_DIGIT = re.compile("[A-Za-z]*[0-9][A-Za-z0-9]*")
_YEARS = re.compile(r"(?:19|20)[0-9]{2}(?:[ -](?:(?:19|20)[0-9]{2}|[0-9]{1,2}))*")


def _recovery(text: str, at: int) -> Span | None:
    match = _RECOVERY.match(text, at) or _LEFT.match(text, at)
    if match is None or _YEARS.fullmatch(match["secret"]) is not None:
        return None
    said = match["secret"]
    is_name = "-" in said and said != said.upper() and len(_PART_WITH_DIGIT.findall(said)) < 2
    return None if is_name else match.span("secret")


# Six groups of four, which macOS shows once when it encrypts a disk.
_FILEVAULT = r"filevault[^\n]{0,120}?(?P<secret>(?-i:(?=[A-Z-]{0,29}[0-9])(?=[0-9-]{0,29}[A-Z])[A-Z0-9]{4}(?:-[A-Z0-9]{4}){5}))(?![\w-])"


# --- "Left over from the printed sheet is only a8f36-6f43e", "discord gave 10 of these": one of a list of codes

_SPARE = (
    "of these", "left over", "leftover", "printed", "lost the phone", "lost my phone", "new phone", "without the phone", "without my phone", "single use", "single-use",
    "spare code", "one of the codes", "emergency", "discord gave", "github gave", "google gave", "last one of", "剩下", "打印的", "手机丢", "还剩",
)  # fmt: skip
_SPARE_CODE = re.compile(
    r"(?<![\w/.:@#-])(?P<secret>(?=[a-z-]{0,9}[0-9])(?=[0-9-]{0,9}[a-z])(?:[a-z0-9]{4}-[a-z0-9]{4}|[a-f0-9]{5}-[a-f0-9]{5}|[a-z0-9]{5}-[a-z0-9]{5}))(?=[.,;!)]?[ \t]{0,4}(?:\n|\Z)|[,;.)][ ]|[ ][-–—(]|[，。；])"
)
_OF_ACCOUNT = re.compile(
    r"discord|github|gitlab|google|microsoft|dropbox|paypal|proton|account|phone|authenticator|2fa|mfa|two-factor|login|log in|sheet|codes?\b|账号|验证|备用|手机",
    re.IGNORECASE,
)


def _spare(text: str, at: int) -> Span | None:
    match = _SPARE_CODE.search(text, at, at + 130)
    if match is None or match.start() > at + 110 or "\n\n" in text[at : match.start()]:
        return None
    said = match["secret"].split("-")
    # Names with a number have it in one part alone.
    is_drawn = sum(DIGIT.search(part) is not None for part in said) == len(said)
    is_one = is_drawn and _OF_ACCOUNT.search(text, max(0, at - 90), match.start()) is not None
    return match.span("secret") if is_one else None


# The recovery key of an account of Apple.
_OF_APPLE = r"RK(?:-[A-Z0-9]{4}){6}(?![\w-])"


SINGLE_CODES = (
    Rule("recovery-code", "code", _LABELS, _recovery, needs=Nearby(DIGIT, 0, 110)),
    Rule("recovery-key-of-disk", "code", ("filevault",), matching(_FILEVAULT, re.IGNORECASE)),
)
"""Codes behind their label, and keys of disks that macOS encrypted."""
LEFT_OVER = (
    Rule("code-spare", "code", _SPARE, _spare, needs=Nearby(re.compile("[a-z0-9]{4}-[a-z0-9]{4}"), 0, 120, 9)),
)  # fmt: skip
"""One code of a list, beside what is left of it."""
OF_APPLE = (Rule("recovery-key-of-apple", "key", ("RK-",), matching(_OF_APPLE), in_token=True, at_edge=True),)
"""The recovery key of an account of Apple."""
