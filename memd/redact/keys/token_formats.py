"""Finds tokens by their form (token_formats.toml), and hashes of passwords."""

import re
import string
import tomllib
from collections.abc import Mapping, Sequence
from datetime import date
from functools import cache
from importlib import resources

import msgspec

from memd.redact.rule import BREAK, EDGE, WORD, Rule, Span, matching, stem
from memd.redact.values.randomness import is_random, is_scrambled

_LETTERS = string.ascii_letters + string.digits
_SIGNS: Mapping[str, str] = {
    "words": WORD,
    "digits": string.digits,
    "base64": _LETTERS + "+/",
    "client-secret": WORD + ".~",
}
# The most characters of a word before a token without an edge, as after "%3D" or a terminal colour.
_GLUED = 3
# A token's prefix after one of these belongs to a digest.
_DIGESTS = ("sha1-", "sha256=", "sha256:", "sha256-", "sha384-", "sha512-", "md5-", "h1:")
_RUN = re.compile(r"[A-Za-z0-9]{16,}")
# Documentation shows forms with the same character over and over, and keys that end with this word.
_OF_EXAMPLE = re.compile(r"([Xx*.]|(?<![0-9])[0-9])\1{11}|EXAMPLE(?:KEY)?\Z")
_LAST_PART = re.compile(r"[_-]")
_MOST_READ, _MOST_JUDGED = 4_096, 512  # characters of a token
# Limits for broken tokens: characters of the anchor, number of parts, and characters of a part after a complete token.
_LEAST_ANCHOR, _MOST_PARTS, _LEAST_MORE = 4, 8, 12
_ENDS_LINE = ("\r", "\n")
_PIECE = re.compile(r"[\w+/=.~-]{1,512}+", re.ASCII)
# The first part of a broken token, and the beginning of a next one with a digit or a capital.
_BROKEN = rf"{_PIECE.pattern}(?:{BREAK.pattern})(?=[a-z_+/=.~-]{{0,512}}[0-9A-Z])"
_NAME_OF_GROUP = re.compile(r"\(\?P<\w+>")
_GLUED_ENTROPY = 3.0  # bits per character; joined words have fewer, or no digit


class TokenFormat(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A row of token_formats.toml; the file describes the columns."""

    kind: str
    vendor: str
    anchors: tuple[str, ...]
    shape: str
    source: str
    looked_up: date | None = None
    before: int = 0
    signs: str = "words"
    entropy: float = 0.0
    scrambled: bool = False
    glued: bool = False
    edge: bool = True

    @property
    def is_strict(self) -> bool:
        """Whether a broken token is recognised by its form alone: no word begins with its anchor."""
        return not (
            self.before or self.entropy or not self.edge or min(map(len, self.anchors)) < _LEAST_ANCHOR
        )

    @property
    def begins(self) -> tuple[str, ...]:
        """Patterns without named groups, one of which matches at the anchor of each token; none if it may begin before."""
        if self.before:
            return ()
        shape = _NAME_OF_GROUP.sub("(?:", self.shape)
        return (shape, _BROKEN) if self.is_strict else (shape,)

    def find_broken(self, text: str, at: int) -> Span | None:
        """Return a token broken by line ends, emphasis or quotes, as far as each part looks like one of a token."""
        whole = self.find(text, at)
        if whole is None:
            if EDGE.match(text, at) is None or text.endswith(_DIGESTS, max(0, at - 8), at):
                return None
        elif BREAK.match(text, whole[1]) is None:
            return whole
        # After a complete token, only lines as in a key continue it, not a word of the next line.
        joined, begin, shape, end = "", at, compiled(self.shape), at
        for number in range(_MOST_PARTS):
            part = _PIECE.match(text, begin)
            if part is None or (number and not _looks_cut(part[0])):
                break
            # Quoted-printable mail ends a broken line with "=".
            said = (
                part[0][:-1]
                if part[0].endswith("=") and text[part.end() : part.end() + 1] in _ENDS_LINE
                else part[0]
            )
            if number and whole is not None and not (len(said) >= _LEAST_MORE and said.isalnum()):
                break
            joined += said
            if number and is_random(joined, _GLUED_ENTROPY) and shape.fullmatch(joined) is not None:
                end = part.end()
            gap = BREAK.match(text, part.end())
            if gap is None:
                break
            begin = gap.end()
        return (at, end) if end > at else whole

    def find(self, text: str, at: int) -> Span | None:
        """Return the token with an anchor at a place."""
        start = at - len(stem(text, at, self.before, _SIGNS[self.signs])) if self.before else at
        if self.signs == "base64" and 0 < start == at - self.before and text[start - 1] in _SIGNS["base64"]:
            return None  # the middle of something longer, such as an image
        is_glued = self.edge and EDGE.match(text, start) is None
        if is_glued and not (self.glued and len(stem(text, start, _GLUED + 1, _LETTERS)) <= _GLUED):
            return None
        if text.endswith(_DIGESTS, max(0, start - 8), start):
            return None
        # The length is bounded, since an endless token would be read again at each of its anchors.
        shape, limit = compiled(self.shape), start + _MOST_READ
        match = shape.match(text, start, limit)
        if match is None and self.before:
            # The character before it may belong to an escaped line end or a diff marker.
            match = shape.match(text, start + 1, limit)
        if match is None or match.end() <= at:
            return None
        # In a shape with alternatives, the group may belong to another one.
        named = "secret" in match.re.groupindex and match.start("secret") >= 0
        span = match.span("secret" if named else 0)
        said = text[span[0] : min(span[1], span[0] + _MOST_JUDGED)]
        if _OF_EXAMPLE.search(said) is not None:
            return None
        if is_glued and not any(is_random(run, _GLUED_ENTROPY) for run in _RUN.findall(said)):
            return None
        if self.entropy and not is_random(said, self.entropy):
            return None
        if self.scrambled and not is_scrambled(_LAST_PART.split(said)[-1]):
            return None
        whole = shape.match(text, match.start()) if match.end() == limit else None
        return span if whole is None else whole.span("secret" if named else 0)


def where_one_begins(patterns: str, places: Sequence[int], text: str) -> list[int]:
    """Return those of some places at which one of the patterns of `TokenFormat.begins`, joined by bars, matches."""
    match = compiled(patterns).match
    return [at for at in places if match(text, at, at + _MOST_READ)]


@cache
def compiled(shape: str) -> re.Pattern[str]:
    """Compile a shape on first use, since most texts need none."""
    return re.compile(shape, re.ASCII)


def _looks_cut(part: str) -> bool:
    """Return whether the part behind a break is one of a token, and not a word or a date."""
    has_both = any(map(str.isupper, part[1:])) and any(map(str.islower, part))
    if any(map(str.isdigit, part)):
        return has_both or (any(map(str.isalpha, part)) and "-" not in part and "." not in part)
    return has_both


def read_rows(name: str) -> object:
    """Return the content of a file of forms, without its suffix `.toml`."""
    return tomllib.loads(resources.files(__package__).joinpath(f"{name}.toml").read_text("utf-8"))


TOKEN_FORMATS = msgspec.convert(read_rows("token_formats"), dict[str, tuple[TokenFormat, ...]])["formats"]

_APPLICATION = re.compile(
    r"(?<![\w.-])[0-9]{13,17}(?:\||%7[Cc])(?=[A-Za-z_-]{0,30}[0-9])(?=[a-z0-9_-]{0,30}[A-Z])[\w-]{27,32}(?![\w-])",
    re.ASCII,
)


def _of_application(text: str, at: int) -> Span | None:
    match = _APPLICATION.match(text, at + 1 - len(stem(text, at + 1, 18, string.digits)))
    return None if match is None or match.end() <= at else match.span()


# crypt(3) hashes and the like, from which passwords can be guessed.
_HASH = (
    r"\$(?:2[abxy]\$[0-9]{2}\$[./A-Za-z0-9]{53}|(?:apr1|1)\$[./A-Za-z0-9]{1,8}\$[./A-Za-z0-9]{22}|5\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{43}"
    r"|6\$(?:rounds=[0-9]{1,9}\$)?[./A-Za-z0-9]{1,16}\$[./A-Za-z0-9]{86}|(?:7|y|gy)\$[./A-Za-z0-9]{1,32}\$[./A-Za-z0-9]{1,86}\$[./A-Za-z0-9]{43}"
    r"|(?:argon2(?:id?|d))\$(?:v=[0-9]{1,3}\$)?[mtp=0-9,]{5,40}\$[+/A-Za-z0-9]{8,200}\$[+/A-Za-z0-9]{16,200}={0,2}"
    r"|[89]\$[./A-Za-z0-9]{14}\$[./A-Za-z0-9]{43}"
    r"|scrypt\$[a-z0-9=,]{3,40}\$[+/=A-Za-z0-9]{8,200}\$[+/=A-Za-z0-9]{16,200})(?![./A-Za-z0-9])"
)

# Salt, stored key and server key, as PostgreSQL stores them.
_SCRAM = (
    r"SCRAM-SHA-(?:1|256|512)\$[0-9]{1,7}:[A-Za-z0-9+/=]{8,64}\$[A-Za-z0-9+/=]{20,100}:[A-Za-z0-9+/=]{20,100}"
)
# What a Kerberos server sends, encrypted with a password: its name in tools that guess it, the user, a checksum and the data.
_KERBEROS = r"\$krb5(?:asrep|tgs)\$(?:[0-9]{2}\$)?\S{0,300}?[0-9a-f]{24,32}\$[0-9a-f]{64,}+"
TOKENS = tuple(
    Rule(
        row.kind,
        row.kind,
        row.anchors,
        row.find_broken if row.is_strict else row.find,
        in_token=True,
        at_edge=row.edge and not row.before and not row.glued,
        begins=row.begins,
    )
    for row in TOKEN_FORMATS
)
"""A rule for each row."""
# The id and secret of an application, which together are an access token.
APPLICATION = Rule(
    "facebook-app-token",
    "facebook-token",
    tuple(f"{digit}{bar}" for digit in string.digits for bar in ("|", "%7c")),
    _of_application,
)
HASHES = (
    Rule("password-hash-scram", "password-hash", ("scram-sha-",), matching(_SCRAM)),
    Rule("password-hash-kerberos", "password-hash", ("$krb5asrep$", "$krb5tgs$"), matching(_KERBEROS)),
    Rule(
        "password-hash",
        "password-hash",
        ("$8$", "$9$", "$2a$", "$2b$", "$2x$", "$2y$", "$apr1$", "$1$", "$5$", "$6$", "$7$", "$y$", "$gy$", "$argon2", "$scrypt$"),
        matching(_HASH),
    ),
)  # fmt: skip
"""Hashes of passwords."""
