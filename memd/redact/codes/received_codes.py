"""Finds codes and keys that somebody got by message, by post or with a device: "just got 61 08 93, put it in quick", "PAC is QWX 448201"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start, matching
from memd.redact.values import secret_candidates
from memd.redact.values.code_numbers import is_counted
from memd.redact.words.secret_words import SECRET_WORDS, either

_WORDS = SECRET_WORDS.received_codes


# --- by message: "o gov.br mandou 61 08 93 por sms, coloca aí rápido"

_SENT = re.compile(
    r"(?<![\w.,:/#+=€$£-])(?P<secret>[0-9]{4,8}(?=[.,;:!?)\n]|\Z|[ ](?:por|per|par|via|by|on|в|на|anh|em|chị|mình|and|e|y|et|und|i|en|to|для|in|here|now|aqui|aquí|as|type|enter|put)\b|[ ][–—-])|[0-9]{3}[ -][0-9]{3}|[0-9]{2}(?:[ -][0-9]{2}){2}|[0-9]{4}[ -][0-9]{4})(?![\w%€$£]|[.,:/-][0-9]|[ ](?:users|people|euro|eur|usd|km|kg|lines|reais|руб|zł|lira|min|years|metros)\b)"
)
_RECEIVED = re.compile(rf"(?<![^\W\d_])(?:{either(_WORDS.received)})", re.IGNORECASE)
_TYPE_IT = re.compile(rf"(?<![^\W\d_])(?:{either(_WORDS.type_it)})", re.IGNORECASE)


_TYPE_ENGLISH = re.compile(r"(?<![a-z])(?:type|enter|punch|put)[ ]it[ ](?:in|before)", re.IGNORECASE)


# Between the verb and the number nothing stands that it could be a number of.
_NUMBER_OF = re.compile(
    r"ticket|(?<![a-z])order|score|parcel|invoice|jira|in[ ](?:the|my)[ ](?:log|sheet|report|folder|deck)",
    re.IGNORECASE,
)
_THEN_SENT = re.compile(
    rf"(?:[ ](?:me|us|you|the|a|one|code|kod|kode|código|код|mã|here|aqui|aquí|through|in|from[ ][a-z]{{3,8}}|by[ ]text|just[ ]now|OTP|TAN))*[ ]?[:,–—-]?[ ]{{0,2}}{_SENT.pattern}",
    re.IGNORECASE,
)
_ENDS_SENT = re.compile(
    r"[.,;:!?)\n]|\Z|[ ](?:por|per|par|via|by|on|в|на|em|and[ ]|to[ ]|for[ ]|here|now|aqui|aquí|anh|em|type|enter|put)\b|[ ][–—-]"
)


def _sent(text: str, at: int) -> Span | None:
    if text[at - 1 : at].isalpha():
        return None
    cue = _RECEIVED.match(text, at)
    begin, end = line_start(text, at, 70), line_end(text, at, 110)
    match = None if cue is None else _THEN_SENT.match(text, cue.end(), end)
    if match is None or _ENDS_SENT.match(text, match.end()) is None:
        return None
    said = match["secret"]
    if said.endswith("00") or secret_candidates.is_year(said) or is_counted(said):
        return None
    # Amounts have fewer digits, too.
    types = _TYPE_IT if len(said) >= 6 else _TYPE_ENGLISH
    if _NUMBER_OF.search(text, begin, end) is not None:
        return None
    is_typed = types.search(text, begin, match.start("secret")) or types.search(text, match.end(), end)
    return match.span("secret") if is_typed else None


# --- in groups: "agent activation arrived by post: 6TGK-V02M-QX9L", "Matter pairing 3497 011 2332"

_LETTERED = r"(?=[A-Z-]{0,30}[0-9])(?=[0-9-]{0,30}[A-Z])[A-Z0-9]{2,5}(?:-[A-Z0-9]{4,5}){2,7}"
_GROUPED = re.compile(
    rf"(?:{either(_WORDS.grouped)})(?![a-z])(?P<between>[^\n]{{0,70}}?)(?<![\w.,:/#+=-])(?P<secret>(?-i:{_LETTERED})|[0-9]{{4}}[ -][0-9]{{3}}[ -][0-9]{{4}}|[0-9]{{3}}-[0-9]{{2}}-[0-9]{{3}}|[0-9]{{4,5}}[ -][0-9]{{4,5}}(?:[ -][0-9]{{4,5}}){{0,4}})(?![\w%]|[.,:/-][0-9]|[ -][0-9])",
    re.IGNORECASE,
)
_OTHER = re.compile(rf"(?<![a-z])(?:{either(_WORDS.others)})", re.IGNORECASE)


_YEARS = re.compile(r"(?:19|20)[0-9]{2}[ -](?:19|20)[0-9]{2}")
# Digits alone follow these, and groups with letters have one of each in at least two.
_OF_DIGITS = re.compile(
    r"pairing|set-?up code|homekit|(?:rescue|recovery|backup|emergency|one-time|activation) code|recovery key",
    re.IGNORECASE,
)
_TELLS_DIGITS = re.compile(
    r"(?:[ ]?[:=–—-]?[ ]{0,2})|[^\n]{0,60}?(?:[ ](?:is|was|code|pairing)|[:=])[ ]{1,2}", re.IGNORECASE
)
_MIXED_GROUP = re.compile(r"(?<![A-Z0-9])(?=[A-Z]{0,4}[0-9])(?=[0-9]{0,4}[A-Z])[A-Z0-9]{3,5}(?![A-Z0-9])")
_NAMES_THING = re.compile(r"[ ]of[ ](?:conduct|practice)|review|[#:]?[ ]?[A-Z]{2,9}-\Z")


def _grouped(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _GROUPED.match(text, at)
    if (
        match is None
        or _OTHER.search(match["between"])
        or _OTHER.search(text, max(0, at - 24), at)
        or _YEARS.fullmatch(match["secret"])
        or _NAMES_THING.search(match["between"])
    ):
        return None
    is_one = (
        len(_MIXED_GROUP.findall(match["secret"])) >= 2
        if re.search("[A-Z]", match["secret"])
        else _OF_DIGITS.match(text, at) is not None
        and _TELLS_DIGITS.fullmatch(match["between"]) is not None
        and not match["secret"].endswith("00")
    )
    return match.span("secret") if is_one else None


# A code that moves a number to another company in Britain.
_PORTING = r"(?-i:S?TAC|PAC|pac)(?![a-z])[^\n]{0,50}?(?<![\w-])(?P<secret>(?!USD|EUR|GBP|CAD|AUD|CHF|INR|JPY)(?-i:[A-Z]{3})[ -]?[0-9]{6})(?![\w-])"

RULES = (
    Rule("code-received", "code", _WORDS.received, _sent, needs=Nearby(DIGIT, 70, 110)),
    Rule("code-in-groups", "code", _WORDS.grouped, _grouped, needs=Nearby(re.compile("[0-9A-Z]{2}[ -][0-9A-Z]{2}"), 0, 90, 6)),
    Rule("code-of-porting", "code", ("pac", "stac"), matching(_PORTING, re.IGNORECASE), needs=Nearby(re.compile("[A-Z]{3}[ -]?[0-9]{6}"), 0, 60, 10, has_digit=True)),
)  # fmt: skip
"""Codes that came, those in groups, and those that move a number."""
