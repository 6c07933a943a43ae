"""Finds keys that have no form of their own where a sentence or a setting tells them: digits, bytes, values of variables, of devices, halves."""

import re
from typing import Final

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_start, matching
from memd.redact.values import secret_candidates, secret_values
from memd.redact.values.fixed_places import in_place
from memd.redact.words.secret_words import SECRET_WORDS, either

# The purpose of a key: "the key" alone may be one of a cache, a table or a keyboard.
_WHOSE: Final = re.compile(
    rf"(?:(?<![A-Za-z])(?:{either(SECRET_WORDS.keys.secret)})[ _-]?|(?<![A-Za-z])(?:{either(SECRET_WORDS.keys.owned)})[ ]|[一-鿿][ ]?)\Z",
    re.IGNORECASE,
)
_CHARS_OF_WHOSE: Final = 14
_WORD: Final = re.compile(r"(?:key|token|secret)(?![A-Za-z_])|密钥|秘钥|密鑰|私钥|私鑰|令牌", re.IGNORECASE)
# The text between the word and its value has no end of a sentence, no number and no word for something else.
_TOLD: Final = re.compile(
    r"(?P<between>[^.\n;!?。；！？0-9]{0,60}?)"
    r"(?:(?<![A-Za-z])(?:is|was|be|to|now|hex|with)[ ]|[:：=，,][ ]?|[用填是为成了个下你][ ]?|->[ ]|→[ ]?)[ ]{0,2}[\"'`“「]?"
    r"(?P<secret>(?=[a-f]{0,32}[0-9])(?=[0-9]{0,32}[a-f])[0-9a-f]{16,128}|[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[a-z]{2,6}[_-][0-9a-f]{16,64})(?![\w/=-]|\.\w)",
    re.IGNORECASE | re.ASCII,
)
_SOMETHING_ELSE: Final = re.compile(
    rf"(?<![A-Za-z])(?:{either(SECRET_WORDS.keys.others)})(?![A-Za-z])|{either(SECRET_WORDS.keys.others_in_chinese)}",
    re.IGNORECASE,
)
# In a Chinese sentence about a key, the value follows the verb directly.
_TOLD_IN_CHINESE: Final = re.compile(
    r"[ ]?[一-鿿]{0,4}(?:用|填|是|换成|改成|给你|发你|填这个|用这个|：)[ :：]{0,2}[\"'`“「]?"
)
_OF_SOMETHING_ELSE: Final = re.compile(rf"(?:{_SOMETHING_ELSE.pattern})[ _-]?\Z", re.IGNORECASE)
_DIGITS: Final = Nearby(re.compile(r"[0-9A-Fa-f]{8}[0-9A-Fa-f-]{8}"), 0, 90, 16)


def _hexadecimal(text: str, at: int) -> Span | None:
    """Return a key of hexadecimal digits or a UUID behind a word that says what it opens or signs."""
    word = _WORD.match(text, at)
    if word is None:
        return None
    before = text[max(0, at - _CHARS_OF_WHOSE) : at]
    match = _TOLD.match(text, word.end())
    if match is None or (
        word[0].isascii()
        and _WHOSE.search(before) is None
        and _TOLD_IN_CHINESE.fullmatch(text, word.end(), match.start("secret")) is None
    ):
        return None
    if _SOMETHING_ELSE.search(match["between"]) or _OF_SOMETHING_ELSE.search(before):
        return None
    return match.span("secret")


# "clé secrète 830e4250-...": behind a label in another language, what it is for and a verb may stand between.
_SECRET_ABROAD: Final = re.compile(
    rf"(?:{either(SECRET_WORDS.keys.secret_abroad)})[\"'`*_]{{0,2}}(?P<between>[^.\n;!?。；0-9]{{0,30}}?)[ :：=はは는은「«\"'`“]"
    r"(?P<secret>(?=[a-f-]{0,36}[0-9])(?=[0-9-]{0,36}[a-f])(?:[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9a-f]{32,64}))(?![\w/=-]|\.\w)",
    re.IGNORECASE,
)


def _secret_abroad(text: str, at: int) -> Span | None:
    """Return a key of hexadecimal digits or a UUID behind a label for secret keys in another language."""
    match = _SECRET_ABROAD.match(text, at)
    return None if match is None or _SOMETHING_ELSE.search(match["between"]) else match.span("secret")


_BYTE: Final = r"(?:0x[0-9A-Fa-f]{1,2}|[0-9]{1,3})"
_OF_BYTES: Final = re.compile(
    rf"(?:key|密钥)[\"']?(?:\[[0-9]{{0,3}}\])?(?:[^\n\[{{0-9]{{0,24}})[\[{{]\s{{0,8}}(?P<first>{_BYTE})(?:\s{{0,8}},\s{{0,16}}{_BYTE}){{15,31}}\s{{0,8}},?\s{{0,8}}[\]}}]",
    re.IGNORECASE,
)
_BYTES_OF_KEYS: Final = frozenset({16, 24, 32})
_LEAST_DIFFERENT: Final = 8  # different bytes in a random key, at least
_BYTE_VALUES: Final = 256
_LISTED: Final = Nearby(re.compile(r"[\[{]\s{0,8}[0-9]{1,3}(?:x|\s{0,8},)"), 0, 40, 24, has_digit=True)


def _of_bytes(text: str, at: int) -> Span | None:
    """Return a key that is written as a list of its bytes, with its brackets."""
    match = _OF_BYTES.match(text, at)
    if match is None:
        return None
    begin = text.rindex("{" if "{" in text[at : match.start("first")] else "[", at, match.start("first"))
    said = re.findall(r"0x[0-9A-Fa-f]{1,2}|[0-9]{1,3}", text[begin : match.end()])
    values = [int(byte, 16 if byte.startswith("0x") else 10) for byte in said]
    is_one = (
        len(values) in _BYTES_OF_KEYS
        and max(values) < _BYTE_VALUES
        and len(set(values)) >= _LEAST_DIFFERENT
        and values != sorted(values)
    )
    return (begin, match.end()) if is_one else None


# Bytes in hexadecimal with blanks or colons between, as a device prints them. A fingerprint looks the same.
_PRINTED_BYTES: Final = re.compile(
    r"key[\"']?(?P<between>[^\n0-9]{0,24}?[:=：是为][ ]{0,3})(?P<secret>(?:[0-9A-Fa-f]{2}[ :]){15,31}[0-9A-Fa-f]{2})(?![\w:])",
    re.IGNORECASE,
)
_PRINTED: Final = Nearby(re.compile(r"[0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :][0-9A-Fa-f]{2}[ :]"), 0, 40, 9)


def _of_printed_bytes(text: str, at: int) -> Span | None:
    match = _PRINTED_BYTES.match(text, at)
    if (
        match is None
        or _SOMETHING_ELSE.search(match["between"])
        or _OF_SOMETHING_ELSE.search(text[max(0, at - _CHARS_OF_WHOSE) : at])
    ):
        return None
    return match.span("secret")


# A secret in base64, whose padding tells it from a path or a word.
_IN_BASE64: Final = re.compile(
    r"(?:secret|token|password|passwort|key)(?![a-z])[^\n.;:]{0,24}base64[^\n.;:]{0,16}[:：=]?[ ]{1,2}[\"'`]?(?P<secret>[A-Za-z0-9+/]{14,400}={1,2})(?![\w+/=])",
    re.IGNORECASE,
)


def _in_base64(text: str, at: int) -> Span | None:
    match = _IN_BASE64.match(text, at)
    return None if match is None else match.span("secret")


_OF_CIPHER: Final = re.compile(
    r"openssl[ ]enc[ ][^\n|;]{0,160}?[ ]-K[ ][\"']?(?P<secret>[0-9A-Fa-f]{16,64})(?!\w)"
)


def _of_cipher(text: str, at: int) -> Span | None:
    match = _OF_CIPHER.match(text, at)
    return None if match is None else match.span("secret")


# A variable in capitals, and a verb that sets it: "OPENAI_KEY is now ...", "把 DB_PASSWORD 改成 ...".
_VARIABLE: Final = re.compile(
    r"(?<![A-Z0-9_-])(?P<name>[A-Z][A-Z0-9]{1,20}(?:_[A-Z0-9]{1,20}){1,5})[\"'`]?[ ]?"
    rf"(?:(?<= )(?:{either(SECRET_WORDS.keys.sets)})[ ]|(?:{either(SECRET_WORDS.keys.sets_in_chinese)}))[ ]?[\"'`“「]?(?P<secret>[!-~]{{8,200}})"
)
_ENDS_OF_SECRETS: Final = ("_KEY", "_TOKEN", "_SECRET", "_PASSWORD", "_PASS", "_PWD", "_PASSWD")
_NOT_SECRET: Final = ("PUBLIC_", "_ID_", "PRIMARY_", "CACHE_", "FOREIGN_")
_CHARS_OF_NAME: Final = 48


def _variable(text: str, at: int) -> Span | None:
    """Return the value that a sentence gives to a variable whose name says that it is secret."""
    if not text[at + 1 : at + 2].isupper():
        return None
    left = max(0, at - _CHARS_OF_NAME)
    begin = left + len(text[left:at].rstrip("ABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_"))
    match = _VARIABLE.match(text, begin)
    if (
        match is None
        or not match["name"].endswith(_ENDS_OF_SECRETS)
        or any(part in f"{match['name']}_" for part in _NOT_SECRET)
    ):
        return None
    said = match["secret"].rstrip(".,;:)\"'`!?")
    if not secret_values.is_strong(said) or secret_values.is_statement(said):
        return None
    return match.start("secret"), match.start("secret") + len(said)


# --- "hue bridge username Zt6RkqY1b-5Vw...", "tuya local_key = 7f3bd0a91c4e2865": keys of devices of a house

_OF_HOUSE = re.compile(
    r"(?:(?:hue|bridge)[^\n]{0,30}?user(?:name)?|local_?[ ]?key|miio[ ]token|(?:xiaomi|miot|roborock|vacuum|yeelight)[^\n]{0,20}?token|(?:z-?wave|zigbee|thread|s0|s2)[^\n]{0,16}?(?:network[ ])?key)"
    r"[\"']?[ ]?[:=]?[ ]{0,2}[\"']?(?P<secret>(?=[A-Za-z-]{0,30}[0-9])[A-Za-z0-9-]{40}|[0-9a-f]{32}|[0-9a-f]{16}|(?:0x[0-9a-f]{2},[ ]?){15}0x[0-9a-f]{2}|(?:[0-9a-f]{2}[ :]){15}[0-9a-f]{2})(?![\w-])",
    re.IGNORECASE,
)


def _of_house(text: str, at: int) -> Span | None:
    match = None if text[at - 1 : at].isalpha() else _OF_HOUSE.match(text, at)
    return None if match is None else match.span("secret")


# --- KEY FOUND! [ 6d:75:64:6c ], unlock seq: 0xDE 0x17 0x90 0x4C

_BYTES = re.compile(
    r"(?:unlock|pairing|dongle|secret|auth|arming|disarm|access|challenge|response|key)[^\n:=]{0,24}(?:seq(?:uence)?|bytes|code|key|frame|payload)?[^\n:=]{0,10}[:=][ ]?[{\[(]?(?P<secret>(?:0x[0-9a-f]{2}[ ,]{1,2}){3,31}0x[0-9a-f]{2})(?![ ,]{1,2}0x)",
    re.IGNORECASE,
)


# --- const IV = CryptoJS.enc.Utf8.parse('0vhT7mZq2LcXw8Ed'), beside the key of the cipher

_VECTOR = re.compile(
    r"iv[\"']?[ ]?(?:[:=]|=>)[ ]?(?:new[ ])?(?:[\w.]{1,40}\([ ]?)?[bB]?[\"'](?P<secret>(?=[A-Za-z]{0,40}[0-9])(?=[0-9]{0,40}[A-Za-z])[A-Za-z0-9]{16}|[0-9a-f]{32})[\"']",
    re.IGNORECASE | re.ASCII,
)
_ENCRYPTS = re.compile(r"(?<![a-z])(?:aes|des3?|sm4|3des)(?![a-z])|crypt|cipher", re.IGNORECASE)


def _vector(text: str, at: int) -> Span | None:
    before = text[at - 1 : at]
    is_inside = before.isalnum() and not (text[at].isupper() and before.islower())
    match = None if is_inside else _VECTOR.match(text, at)
    if match is None or _ENCRYPTS.search(text, max(0, at - 200), match.end() + 160) is None:
        return None
    has_key = _KEY_BESIDE.search(text, max(0, at - 200), match.end() + 160) is not None
    return match.span("secret") if has_key else None


_KEY_BESIDE = re.compile(
    r"key[\"']?[ ]?(?:[:=]|=>)[ ]?(?:new[ ])?(?:[\w.]{1,40}\([ ]?)?[bB]?[\"']", re.IGNORECASE
)
# A part of a secret that was split: "Shamir share 2 of 3: 2-8f1cc09b7e4d20aa51".
_SHARE = r"(?:shamir|ssss|slip-?39)[^\n:]{0,60}[:=][ ]?(?P<secret>(?:[0-9]{1,2}-)?(?=[a-f]{0,40}[0-9])(?=[0-9]{0,40}[a-f])[0-9a-f]{12,200})(?![\w-])"


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
    Rule(
        "key-hexadecimal-told",
        "key",
        ("key", "token", "secret", "密钥", "秘钥", "密鑰", "私钥", "私鑰", "令牌"),
        _hexadecimal,
        needs=_DIGITS,
    ),
    Rule("key-secret-abroad", "key", SECRET_WORDS.keys.secret_abroad, _secret_abroad, needs=_DIGITS),
    Rule("key-of-bytes", "key", ("key", "密钥"), _of_bytes, needs=_LISTED),
    Rule("key-of-printed-bytes", "key", ("key",), _of_printed_bytes, needs=_PRINTED),
    Rule(
        "key-in-base64",
        "key",
        ("secret", "token", "password", "passwort", "key"),
        _in_base64,
        needs=Nearby(re.compile("base64", re.IGNORECASE), 0, 40, 6, has_digit=True),
    ),
    Rule("key-of-cipher", "key", ("openssl enc",), _of_cipher),
    Rule("variable-told", "key", ("_key", "_token", "_secret", "_pass", "_pwd"), _variable),
)
"""Keys that only their sentence tells."""
OF_DEVICES = (
    Rule("key-of-house", "key", ("hue", "bridge", "local_key", "localkey", "local key", "miio token", "xiaomi", "miot", "roborock", "vacuum", "yeelight", "z-wave", "zwave", "zigbee", "thread", "s0 key", "s2 key"), _of_house, needs=Nearby(re.compile("[0-9A-Fa-f]{2}"), 0, 70, 2)),
)  # fmt: skip
"""Keys of devices in a house."""
VECTORS = (
    Rule("vector-of-cipher", "key", ("iv=", "iv =", "iv:", "iv :", 'iv"', "iv'"), _vector, needs=Nearby(re.compile("[\"'][A-Za-z0-9]{16}"), 0, 60, 17)),
)  # fmt: skip
"""What is set beside the key of a cipher."""
OF_DONGLES = (
    Rule("bytes-of-key", "key", ("unlock", "pairing", "dongle", "disarm", "challenge"), matching(_BYTES), needs=Nearby(re.compile("0x"), 0, 60, 2, has_digit=True)),
)  # fmt: skip
"""Bytes that unlock something."""
BESIDE_VENDOR = (
    Rule("zhipu-key", "key", ("智谱", "zhipu"), in_place(r"(?:智谱|zhipu)[^\n]{0,40}?(?<![\w.])(?P<secret>[0-9a-f]{32}\.[a-z0-9]{16})(?!\w)")),
)  # fmt: skip
"""Keys beside the name of their vendor."""
SHARES = (
    Rule("share-of-secret", "key", ("shamir", "ssss", "slip39", "slip-39"), matching(_SHARE, re.IGNORECASE), needs=Nearby(re.compile("[0-9a-f]{12}"), 0, 100, 13), has_digit=True),
)  # fmt: skip
"""Parts of a secret that was split."""
HALVES = (
    Rule("secret-half", "key", ("priv", "long one", "secret half", "secret one", "long bit", "long half", "secret bit"), _half, needs=Nearby(DIGIT, 0, 60)),
)  # fmt: skip
"""The secret half of a pair."""
