"""Finds codes and keys that somebody got by message, by post or with a device: "just got 61 08 93, put it in quick", "PAC is QWX 448201"."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, line_start, matching
from memd.redact.values import secret_candidates, secret_values
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


# A code that moves a number to another company in Britain, and the recovery key of an account of Apple.
_PORTING = r"(?-i:S?TAC|PAC|pac)(?![a-z])[^\n]{0,50}?(?<![\w-])(?P<secret>(?!USD|EUR|GBP|CAD|AUD|CHF|INR|JPY)(?-i:[A-Z]{3})[ -]?[0-9]{6})(?![\w-])"
_OF_APPLE = r"RK(?:-[A-Z0-9]{4}){6}(?![\w-])"
# A part of a secret that was split: "Shamir share 2 of 3: 2-8f1cc09b7e4d20aa51".
_SHARE = r"(?:shamir|ssss|slip-?39)[^\n:]{0,60}[:=][ ]?(?P<secret>(?:[0-9]{1,2}-)?(?=[a-f]{0,40}[0-9])(?=[0-9]{0,40}[a-f])[0-9a-f]{12,200})(?![\w-])"
# The digits on the back of a card.
_ON_BACK = re.compile(
    r"(?:(?:digits|code)[ ]on[ ]the[ ]back|security[ ]digits)[^\n0-9]{0,70}?(?:is|are|was|were|it['’]?s|:|=|-|–)[ ]{1,2}(?P<secret>[0-9]{3,4})(?=[.,;)!](?![0-9])|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
# A code behind the picture of a key or a lock.
_BEHIND_PICTURE = re.compile(
    r"[🔑🔐🔒🔓🗝][^\w\n]{0,8}(?P<secret>[!-~]{4,40}?)(?=[.,;!)]?[ \t]{0,4}(?:\n|\Z))"
)
_UNLOCKS = re.compile(
    r"unlock(?:s|[ ](?:code|pin|number))?[ ]?[=:][ ]?(?P<secret>[0-9]{4,8})(?<!00)(?=[.,;)](?![0-9])|[ \t]{0,4}(?:\n|\Z)|[ ]and[ ])",
    re.IGNORECASE,
)


# "🔑 TypeScript5", "🔒 closed 2024-05-01"
_NUMBERED_NAME = re.compile(r"[A-Za-z]+[0-9.]+|[A-Z]+-[0-9]+|[0-9]{4}-[0-9-]+")


def _behind_picture(text: str, at: int) -> Span | None:
    match = _BEHIND_PICTURE.match(text, at)
    if match is None:
        return None
    said = match["secret"]
    if secret_candidates.is_year(said) or _NUMBERED_NAME.fullmatch(said) is not None:
        return None
    return (
        match.span("secret")
        if secret_candidates.is_typed_code(said) or secret_candidates.password_alone(said, 0) is not None
        else None
    )


# --- on the label of a device: "Acc. key ZK3M8PW2", "Wireless Kcy  a9F3cTx6dLmp"

_OF_DEVICES = ("acc", "acc.", "access", "network", "netw", "netw.", "ntwk", "net", "wlan", "wireless", "wifi", "wi-fi", "wpa", "wpa2", "router", "hub", "box", "dongle", "device")  # fmt: skip
_LABELS = ("key", "kcy", "k3y", "pwd", "passwd", "passw0rd", "passcode")
_ON_LABEL = re.compile(
    rf"(?<![A-Za-z])(?:{either(_OF_DEVICES)})[ ](?:{either(_LABELS)})(?:[ ]?[:=]|[ ]is)?[ \t]{{1,6}}(?P<secret>(?=[A-Za-z]{{0,25}}[0-9])(?=[0-9]{{0,25}}[A-Za-z])[A-Za-z0-9]{{8,26}})(?![\w.-])",
    re.IGNORECASE | re.ASCII,
)


def _on_label(text: str, at: int) -> Span | None:
    match = _ON_LABEL.match(text, at)
    if match is None or secret_candidates.names_thing(match["secret"]):
        return None
    digits = len(DIGIT.findall(match["secret"]))
    return match.span("secret") if 1 < digits < len(match["secret"]) - 1 else None


# --- groups of four of a password that a program drew: "jotted: wN4t hh0E zzK1"

_FOURS = re.compile(r"(?<![\w-])(?P<secret>[A-Za-z0-9]{4}(?:[ ][A-Za-z0-9]{4}){2,7})(?![\w-])", re.ASCII)
_MIXED = re.compile(
    r"(?=[A-Za-z]{0,3}[0-9])(?=[0-9]{0,3}[A-Za-z])[A-Za-z0-9]{4}|[a-z]{1,3}[A-Z][A-Za-z]{0,2}"
)


_IS_TOLD = re.compile(r"(?:[:=]|[ ](?:is|was))[ ]{1,3}[\"'“]?\Z")


def _in_fours(text: str, at: int) -> Span | None:
    end = line_end(text, at, 90)
    for match in _FOURS.finditer(text, at, end):
        groups = match["secret"].split()
        if (
            _IS_TOLD.search(text[at : match.start()])
            and re.search("[a-z]", match["secret"])
            and 2 * len([group for group in groups if _MIXED.fullmatch(group)]) > len(groups)
        ):
            return match.span("secret")
    return None


# --- of a lock with buttons: "locker room is now C-2580-X"

_OF_BUTTONS = re.compile(
    r"(?:locker|door|gate|keypad|shutter|lock|digicode|interphone|immeuble|portail)s?(?![a-z])(?![^\n]{0,30}(?:type|model|size|drawing|plan))[^\n]{0,40}?(?:[ ](?:is|now|to|it['’]?s|code|with|est|c['’]est)|[ ]?:)[ ]{1,2}(?P<secret>(?-i:[A-Z]-?[0-9]{3,5}-?[XYZ]|[AB][0-9]{4,5}[AB]))(?![\w-])",
    re.IGNORECASE,
)

# A message that a device obeys: "text 'WHERE bluewhale12' to 07700 900412".
_TEXTED = re.compile(
    r"(?:text|sms|message|send)(?:[ ]the[ ]word|[ ]it)?[ ][\"'“‘](?:[A-Za-z#*]{2,12}[ ,]{1,2})?(?P<secret>[!-~]{4,32}?)[\"'”’][ ](?:to|on)[ ](?:[\w'’]{1,12}[ ]){0,3}\+?[0-9][0-9 ]{8}",
    re.IGNORECASE,
)


def _texted(text: str, at: int) -> Span | None:
    match = _TEXTED.match(text, at)
    is_one = match is not None and DIGIT.search(match["secret"]) is not None
    return match.span("secret") if match is not None and is_one else None


# The secret half of a pair: "pub: pk_9920 / priv: PV-zq0L-77-mxx", "client thing (the long one) 7vQ~xLm0".
_HALF = re.compile(
    r"(?<![\w.-])(?:priv(?:ate)?(?:[ ](?:half|part|bit|one))?[ ]?[:=]|(?:the[ ])?(?:long|secret)[ ](?:one|half|bit|thing)[)]?[ ]?[:=]?)[ ]{1,2}(?P<secret>[!-~]{8,200}?)(?=[.,;!)]?(?:\s|\Z))",
    re.IGNORECASE,
)


_OTHER_HALF = re.compile(r"(?<![a-z])(?:pub|public|client|pair|key|api|app)(?![a-z])", re.IGNORECASE)


def _half(text: str, at: int) -> Span | None:
    match = _HALF.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]) or "/" in match["secret"]:
        return None
    left = line_start(text, at, 70)
    if _OTHER_HALF.search(text, left, at) is None:
        return None
    found = secret_candidates.password(match["secret"], match.start("secret"))
    return (found.start, found.end) if found is not None and found.grade == "sure" else None


RULES = (
    Rule("code-received", "code", _WORDS.received, _sent, needs=Nearby(DIGIT, 70, 110)),
    Rule("code-in-groups", "code", _WORDS.grouped, _grouped, needs=Nearby(re.compile("[0-9A-Z]{2}[ -][0-9A-Z]{2}"), 0, 90, 6)),
    Rule("code-of-porting", "code", ("pac", "stac"), matching(_PORTING, re.IGNORECASE), needs=Nearby(re.compile("[A-Z]{3}[ -]?[0-9]{6}"), 0, 60, 10, has_digit=True)),
    Rule("recovery-key-of-apple", "key", ("RK-",), matching(_OF_APPLE), in_token=True, at_edge=True),
    Rule("share-of-secret", "key", ("shamir", "ssss", "slip39", "slip-39"), matching(_SHARE, re.IGNORECASE), needs=Nearby(re.compile("[0-9a-f]{12}"), 0, 100, 13), has_digit=True),
    Rule("code-on-back", "code", ("digits on the back", "code on the back", "security digits"), matching(_ON_BACK), needs=Nearby(DIGIT, 0, 100)),
    Rule("code-behind-picture", "code", ("🔑", "🔐", "🔒", "🔓", "🗝"), _behind_picture),
    Rule("code-that-unlocks", "code", ("unlock",), matching(_UNLOCKS), needs=Nearby(re.compile("[=:]"), 0, 22), has_digit=True),
    Rule("key-on-label", "password", tuple(f"{what} {label}" for what in _OF_DEVICES for label in _LABELS), _on_label, needs=Nearby(re.compile("[A-Za-z][0-9]|[0-9][A-Za-z]"), 0, 60, 2, has_digit=True)),
    Rule("password-in-fours", "password", _WORDS.fours, _in_fours, needs=Nearby(re.compile("[A-Za-z0-9]{4} [A-Za-z0-9]{4} [A-Za-z0-9]{4}"), 0, 80, 14)),
    Rule("code-of-buttons", "code", ("locker", "door", "gate", "keypad", "shutter", "lock", "digicode", "interphone", "immeuble", "portail"), matching(_OF_BUTTONS), needs=Nearby(re.compile("[A-Z]-?[0-9]{3}"), 0, 60, 5, has_digit=True)),
    Rule("word-texted", "password", ("text '", 'text "', "text “", "text ‘", "sms '", 'sms "', "send '", 'send "'), _texted),
    Rule("secret-half", "key", ("priv", "long one", "secret half", "secret one", "long bit", "long half", "secret bit"), _half, needs=Nearby(DIGIT, 0, 60)),
)  # fmt: skip
