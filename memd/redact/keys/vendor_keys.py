"""Finds keys beside a word for a key or the name of their vendor (vendor_forms.toml): alone, their form says too little."""

import re
from bisect import bisect_right
from collections import deque
from collections.abc import Iterator, Mapping
from datetime import date
from functools import cache, cached_property
from itertools import pairwise

import msgspec

from memd.redact.keys.token_formats import compiled, read_rows
from memd.redact.rule import Runs, Span
from memd.redact.values.randomness import is_random, is_scrambled, looks_mixed, looks_random


class VendorForm(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of vendor_forms.toml; the file describes the columns."""

    shape: str
    source: str
    vendors: str
    looked_up: date | None = None


def vendor_forms() -> tuple[VendorForm, ...]:
    """Return all rows."""
    return msgspec.convert(read_rows("vendor_forms"), dict[str, tuple[VendorForm, ...]])["vendors"]


@cache
def _forms_of() -> Mapping[str, tuple[re.Pattern[str], ...]]:
    """Return the forms of each vendor's keys; compiled on first use."""
    found: dict[str, tuple[re.Pattern[str], ...]] = {}
    for row in vendor_forms():
        for vendor in row.vendors.split():
            found[vendor] = (*found.get(vendor, ()), compiled(row.shape))
    return found


@cache
def _any_form() -> re.Pattern[str]:
    """Return a pattern of all forms of vendors' keys; compiled on first use."""
    return compiled("|".join(sorted({f"(?:{row.shape})" for row in vendor_forms()})))


_VALUE = re.compile(
    r"(?<![\w+/.~%-])(?=[A-Za-z_+/-]{0,128}[0-9])[A-Za-z0-9](?:[\w-]{15,127}|[A-Za-z0-9+/]{31,127}={0,2})(?![\w+/~=-])",
    re.ASCII,
)
_ASSIGNS = (":", "=", "：", "=>")
_LENGTH_OF_AWS = 40  # characters of an Amazon secret, which may contain slashes
_VALUE_ENTROPY = 2.5  # bits per character; numbers and zeros have less
_BESIDE_CHARS = 120  # characters before a key in which the vendor and a word for a key are searched
_BEHIND_CHARS = 60
# The end of a clause.
_ENDS = re.compile(r"[\n;。；！？]|[.!?]\s")
_MARK = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]")
_MARK_OR_ITS_END = re.compile(r"\[REDACTED:[a-z0-9-]{1,40}\]|\A[A-Z]{0,8}:?[a-z0-9-]{0,40}\]")
_IS_KEY = re.compile(
    r"(?:(?<!mon)(?<!tur)(?<!hot)keys?|tokens?|secrets?|(?<![a-z])(?:bearer|credentials?|creds?|pat))(?![a-z])"
    r"|密钥|秘钥|密鑰|金鑰|令牌|凭证|凭据|授权码"
    r"|(?P<abroad>schlüssel|clave|(?<![a-z])clé|jeton|chiave|chave|sleutel|klucz|anahtar|belirte|ключ|токен|مفتاح|رمز|توكن"
    r"|khóa|khoá|mã (?=truy)|キー|鍵|トークン|키|토큰|(?<![a-z])[as]k(?=[ ]?[:：=是]|[ ])|(?:secret|access)[ _-]?key(?=[ ]))"
)
# After a word of a language other than English and Chinese: its ending, what it is for, and what announces the value.
_TELLS = re.compile(
    r"\w{0,4}[\"'`*_)]{0,3}(?:(?P<bare>[ ])|(?:[ ][^\W\d_][\w.'’-]{0,20}){0,3}?"
    r"(?:[ ]{0,2}[:：=＝][*_ ]{0,4}|[ ](?:ist|lautet|es|est|è|é|is|to|jest|là|هو|هي|—)[ ]|[ ]?(?:는|은|は|が|是|为)[ ]?))"
    r"[\"'`“„«「\[(（]{0,3}"
)
# "cohere: ..." needs no word for a key if the value is no digest or identifier.
_ASSIGNED = re.compile(
    r"(?P<name>(?<![\w.-])[A-Za-z][\w.-]{1,40})[\"'`]{0,3}\]?[ \t]{0,4}(?:=>|:=|[:=：])[ \t]{0,4}[\"'`]{0,3}\Z",
    re.ASCII,
)
_TRUENAS = re.compile(r"[0-9]{1,4}-[A-Za-z0-9]{64}", re.ASCII)  # the id of a key, and the key
_NOT_BASE64 = re.compile(r"[\w-]+", re.ASCII)
_HEXADECIMAL = re.compile(r"[0-9A-Fa-f-]+")
_DIGEST = re.compile(r"[0-9a-f]{40}|[0-9a-f]{64}")
_UUID_OR_HEXADECIMAL = re.compile(r"[0-9a-f]{8}-(?:[0-9a-f]{4}-){3}[0-9a-f]{12}|[0-9A-Fa-f]{24,128}")
# Characters of a random value of any environment variable.
_LEAST_OF_VARIABLE = 20
_OTHER_KEY = re.compile(
    r"(?:cache|public|primary|foreign|partition|sort|idempotency|object|storage|lookup|hash|ssh|row|group|dedup|join|routing|message|shard)[ _-]?keys?\Z",
    re.IGNORECASE,
)
_CHARS_OF_OTHER_KEY = 20  # the most characters of a match
# Between the word for a key and the key: the owner, and no word for something else.
_BETWEEN = re.compile(
    r"[\s\"'`*_:=>|(\[{,、：＝「“‘（-]*+(?:[A-Za-z0-9]{1,24}[\s\"'`*_:=>(-]{1,8}){0,3}[\s\"'`*_:=>|(\[{：＝「“‘（是为-]{0,12}"
)
_NOT_A_KEY = re.compile(
    r"(?<![A-Za-z])(?:ids?|hash|commit|sha[0-9]*|md5|digest|checksum|etag|revision|version|request|trace|span|uuid|guid|at|by"
    r"|in|on|from|since|see|run|job|build|name|fingerprint|md5sum|limit|count|release|ref|head|branch|tag|image|rev|tree|nonce"
    r"|salt|integrity|digests?|user|username)[\s\"'`*_:=>#(\[-]{0,12}\Z",
    re.IGNORECASE,
)
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+", re.ASCII)
_SAID_OF_IT = re.compile(
    r"[\"'`*_)\];]{0,4}[ \t]{0,4}(?:(?:is|as|for|was|into|in|to|when|where|if|with)[ ]|[(—–=-]|<-|//|\#|\n?(?:that|this|it)(?:['’]s|[ ](?:is|was))[ ]|\n?这?(?:个|就)?是|这|,[ ]|登|填|放|贴|写|设|配|当|作为|做)"
)
# A word for a key with a value directly after it.
_KEY_OF_API = re.compile(
    r"(?:api|access|auth|secret|private|signing|deploy|bearer|personal|service|client)[ _-]?(?:access[ _-]?)?(?:key|token|secret)"
    r"(?:[ ](?:is|was|to|=|->|should[ ]be))?[\s\"'`*_:=(,]{0,6}\Z"
)
_AS_KEY_OF_API = re.compile(
    r"(?:(?:api|access|auth|secret|signing)[ _-]?(?:key|token|secret)|(?<![a-z])as[ ](?:the|our|my|a)[ ](?:key|token|secret))(?![a-z])"
    r"|密钥|秘钥|令牌|凭证|授权码|(?<![a-z])secrets\.(?:toml|ya?ml|json|env)|password manager|keychain",
    re.IGNORECASE,
)
_ONE_CASE = re.compile(
    r"(?=(?:[a-z]{0,9}[0-9]{1,4}(?=[a-z])){4})[0-9a-z]{24,}|(?=(?:[A-Z]{0,9}[0-9]{1,4}(?=[A-Z])){3})[0-9A-Z]{20,}",
    re.ASCII,
)
_ANNOUNCES = re.compile(r"[:：]\s{0,2}[\"'`]?\Z|(?:就?是|为|换成|改成)[ ]?\Z|[ ]to[ ]\Z")
# "the Acme key that we use for maps is ...": for a key with a form that its vendor's keys have.
_SAYS_IS = re.compile(r"(?:(?<![a-z])(?:is|was)(?:[ ]now)?|=)[ ][\"'`]?\Z|(?:就?是|为)[ ]?[\"'`]?\Z")
_CHARS_OF_IS = 12  # the most characters of a match, lookarounds included
_USED_BY = re.compile(
    r"(?:for|in|by|on|that)[ ](?:the|our|my|a|every)[ ](?:[a-z]{1,20}[ ])?(?:job|run|build|page|session|user|channel)(?![a-z])"
)
_ENDS_OF_VARIABLES = ("KEY", "TOKEN", "SECRET", "PAT")
_TO_USE = re.compile(r"(?:(?<![a-z])(?:use|using|try)|用|换成|改成)[ :：]{0,2}[\"'`]?\Z")
_OF_SOMETHING_ELSE = re.compile(
    r"(?<![A-Za-z])(?:ids?|hash|commit|request|trace|span|run|job|build|session|message|call|file|page|channel|thread|user"
    r"|count|usage|number|size|length|limit|version|revision|sha[0-9]{0,3}|md5|digest|checksum|etag|fingerprint)(?![A-Za-z])",
    re.IGNORECASE,
)
_ADDRESS = re.compile(r"0x[0-9A-Fa-f]{40}")  # of an account of Ethereum, which is public
# Prefixes of identifiers that are not secret: messages, tool calls, answers, objects.
_OF_IDENTIFIER = re.compile(
    r"(?:msg|toolu|call|chatcmpl|req|resp|run|step|thread|asst|file|evt|cus|sub|prod|price|pi|ch|in|seti|acct|gid|usr|user|org|proj|sess|item|batch|job|task)[_-]"
)


def keys_by_name(text: str, lowered: str, runs: Runs) -> Iterator[tuple[Span, str]]:
    """Yield each key that a word for one identifies, with its kind; the vendor or a label is before it.

    Args:
        text: The text.
        lowered: The text in lower case, with marks blanked out.
        runs: The runs of its parts to search.
    """
    words = _KeyWords(lowered)
    judged: dict[str, _Judged] = {}
    for value in _VALUE.finditer(runs.text):
        at = runs.place(value.start())
        if _VALUE.match(text, at) is None:  # the end of something longer
            continue
        said = value[0]
        look = judged.get(said)
        if look is None:
            look = judged[said] = _judge(said)
        kind = "truenas-key" if look.is_truenas else _kind_of(text, at, look, lowered, words)
        if kind is not None:
            yield (at, at + len(said)), kind


class _Judged(msgspec.Struct, frozen=True, dict=True):
    """The classification of a value, independent of its context."""

    said: str
    is_truenas: bool
    is_chance: bool  # it is random, and has no prefix of an identifier
    is_digits: bool  # it is a UUID or hexadecimal
    is_plain: bool  # it has no base64 symbols
    is_random: bool

    @cached_property
    def has_form(self) -> bool:
        """Whether the keys of a vendor have its form."""
        return _any_form().fullmatch(self.said) is not None


def _judge(said: str) -> _Judged:
    return _Judged(
        said,
        _TRUENAS.fullmatch(said) is not None and is_scrambled(said),
        _is_chance(said),
        _UUID_OR_HEXADECIMAL.fullmatch(said) is not None,
        _NOT_BASE64.fullmatch(said) is not None,
        is_random(said, _VALUE_ENTROPY),
    )


class _KeyWords:
    """The words for keys in a text, each part of which is searched at most once.

    Args:
        lowered: The text in lower case.
    """

    def __init__(self, lowered: str) -> None:
        self._lowered = lowered
        self._found: list[re.Match[str]] = []
        self._ends: list[int] = []
        self._searched = 0

    def last_before(self, at: int) -> re.Match[str] | None:
        """Return the last word for a key within _BESIDE_CHARS before a place."""
        first = max(0, at - _BESIDE_CHARS)
        if self._searched < at:
            for found in _IS_KEY.finditer(self._lowered, max(first, self._searched), at):
                self._found.append(found)
                self._ends.append(found.end())
            self._searched = at
        number = bisect_right(self._ends, at) - 1
        if number < 0 or self._found[number].start() < first:
            return None
        return self._found[number]


def _kind_of(text: str, at: int, look: _Judged, lowered: str, words: _KeyWords) -> str | None:
    """Return the kind of the key at a place; None if nothing identifies it."""
    said, is_chance, is_digits = look.said, look.is_chance, look.is_digits
    key = words.last_before(at)
    if key is not None and _is_labelled(lowered, key, at, said):
        return "key"
    if not look.is_plain:
        return None
    assigned = _assigned(text, at)
    if (
        assigned is not None
        and (_HEXADECIMAL.fullmatch(said) is None or assigned.isupper())
        and _NOT_A_KEY.search(assigned) is None
    ):
        is_variable = (
            assigned.isupper() and len(said) >= _LEAST_OF_VARIABLE and _OTHER_KEY.search(assigned) is None
        )
        if is_variable and (is_chance or (is_digits and assigned.endswith(_ENDS_OF_VARIABLES))):
            return "key"
        kind = _vendor_in(assigned, look)
        if kind is not None or assigned.isupper():
            return kind
    if key is not None and _leads_to(text, key, at):
        is_other = key[0] == "tokens" or _OF_SOMETHING_ELSE.search(lowered, key.end(), at) is not None
        if (is_chance and not is_other) or (is_digits and _KEY_OF_API.search(lowered, at - _NAMED, at)):
            return "key"
        # If a text names it as a vendor's key, it may have a form that the table does not have yet.
        return _vendor_before(text, key, at, look, is_any=is_digits or is_chance)
    if (is_chance and _TO_USE.search(lowered, max(0, at - 10), at)) or (
        key is not None and _is_announced(lowered, key, at, is_chance=is_chance, is_digits=is_digits)
    ):
        return "key"
    kind = _kind_behind(text, at + len(said), look)
    if kind is None and key is not None and _says_is(lowered, key, at):
        kind = _vendor_before(text, key, at, look)
    return kind


def _says_is(lowered: str, key: re.Match[str], at: int) -> bool:
    """Return whether a sentence says what a key is after what it is used for: "the Acme key for the nightly job is ..."."""
    begins = key.end()
    if (
        at - begins > _BEHIND_CHARS
        or key[0] == "tokens"
        or _SAYS_IS.search(lowered, max(begins, at - _CHARS_OF_IS), at) is None
        or _ENDS.search(lowered, begins, at) is not None
    ):
        return False
    return _OF_SOMETHING_ELSE.search(_USED_BY.sub("", lowered[begins:at])) is None


def _vendor_before(
    text: str, key: re.Match[str], at: int, look: _Judged, *, is_any: bool = False
) -> str | None:
    """Return the kind for a vendor that is named before a key, in the clause of the word for a key."""
    beside = text[max(0, at - _BESIDE_CHARS) : at]
    if "]" in beside:
        # The kind in a mark of an earlier find says nothing about its neighbours.
        beside = _MARK_OR_ITS_END.sub(_blank, beside)
    ended = _last(_ENDS, beside[: key.start() - at])
    return _vendor_in(beside[ended.end() if ended else 0 :], look, is_any=is_any)


_NAMED = 60  # characters of a name and its separator


def _assigned(text: str, at: int) -> str | None:
    """Return the name that a value is assigned to."""
    if not text[max(0, at - 8) : at].rstrip(" \t\"'`").endswith(_ASSIGNS):
        return None
    assigned = _ASSIGNED.search(text, max(0, at - _NAMED), at)
    return None if assigned is None else assigned["name"]


def _blank(match: re.Match[str]) -> str:
    return "\0" * len(match[0])


def _is_announced(lowered: str, key: re.Match[str], at: int, *, is_chance: bool, is_digits: bool) -> bool:
    """Return whether the sentence announces a key before it: "the new key just came in: ..."."""
    begins = key.end()
    if at - begins > _BEHIND_CHARS or not (is_chance or is_digits) or key[0] == "tokens":
        return False
    announces = _ANNOUNCES.search(lowered, max(begins, at - 8), at) is not None
    return (
        (announces or (is_chance and _NOT_A_KEY.search(lowered, begins, at) is None))
        and _ENDS.search(lowered, begins, at) is None
        and _OF_SOMETHING_ELSE.search(lowered, begins, at) is None
        and _OTHER_KEY.search(lowered, max(0, at - _BESIDE_CHARS, begins - _CHARS_OF_OTHER_KEY), begins)
        is None
    )


def _kind_behind(text: str, end: int, look: _Judged) -> str | None:
    """Return the kind of a key that the rest of its sentence identifies."""
    said_of_it = _SAID_OF_IT.match(text, end)
    clause = "" if said_of_it is None else _clause(text, end, said_of_it.end())
    word = _IS_KEY.search(clause.lower()) if clause else None
    if word is None:
        return None
    is_told = (look.is_chance and word[0] != "tokens") or (
        look.is_digits and _AS_KEY_OF_API.search(clause) is not None
    )
    if is_told and _OF_SOMETHING_ELSE.search(clause) is None:
        return "key"
    return _vendor_in(clause, look)


def _is_chance(said: str) -> bool:
    is_one = is_scrambled(said) or (
        _ONE_CASE.fullmatch(said) is not None and _HEXADECIMAL.fullmatch(said) is None
    )
    return is_one and _OF_IDENTIFIER.match(said) is None and _ADDRESS.fullmatch(said) is None


def _vendor_in(beside: str, look: _Judged, *, is_any: bool = False) -> str | None:
    """Return the kind for a vendor named beside a key, if its keys have that form, or in any form."""
    if not look.is_random or not (is_any or look.has_form):
        return None
    said = look.said
    parts = [part.lower() for part in _PART.findall(_VALUE.sub(" ", _MARK.sub(" ", beside)))]
    named = {
        *parts,
        *map("".join, pairwise(parts)),
        *map("".join, zip(parts, parts[1:], parts[2:], strict=False)),
    }
    forms = _forms_of()
    named &= forms.keys()
    vendor = min(
        (name for name in named if is_any or any(form.fullmatch(said) for form in forms[name])), default=None
    )
    return None if vendor is None else f"{vendor}-key"


def _is_labelled(lowered: str, key: re.Match[str], at: int, said: str) -> bool:
    """Return whether a word of another language, or "token" in such a text, announces a key."""
    if not (key["abroad"] or key[0] == "token"):
        return False
    tells = _TELLS.fullmatch(lowered, key.end(), at)
    if tells is None:
        return False
    if _NOT_BASE64.fullmatch(said) is None:
        # Paths contain slashes too.
        return (
            key["abroad"] is not None
            and looks_random(said)
            and ("+" in said or said.endswith("=") or len(said) == _LENGTH_OF_AWS)
        )
    if looks_random(said) or looks_mixed(said):
        return True
    return (
        key["abroad"] is not None
        and tells["bare"] is None
        and _DIGEST.fullmatch(said) is None
        and is_random(said, _VALUE_ENTROPY)
    )


def _leads_to(text: str, key: re.Match[str], at: int) -> bool:
    """Return whether a word for a key refers to what follows, and not to an attribute such as its id."""
    end = key.end()
    return (
        _BETWEEN.fullmatch(text, end, at) is not None
        and _NOT_A_KEY.search(text, end, at) is None
        and _OTHER_KEY.search(text, max(0, at - _BESIDE_CHARS, end - _CHARS_OF_OTHER_KEY), end) is None
    )


def _clause(text: str, at: int, begun: int) -> str:
    """Return the text from a place to the end of its clause."""
    behind = text[at : at + _BEHIND_CHARS]
    ending = _ENDS.search(behind, begun - at)
    return behind if ending is None else behind[: ending.start()]


def _last(pattern: re.Pattern[str], text: str) -> re.Match[str] | None:
    found = deque(pattern.finditer(text), maxlen=1)
    return found[0] if found else None
