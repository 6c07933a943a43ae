"""Finds credentials in HTTP headers, in any notation: those of the standard, and those that an application names itself."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, matching
from memd.redact.values import randomness, secret_values

_SCHEMES = r"(?P<scheme>bearer|basic|token|digest|apikey|api-key|bot|key|negotiate|ntlm|oauth|hawk|ssws|signature|aws4-hmac-sha256|discordbot)"
_AUTHORIZATION = re.compile(
    rf"""authorization\\{{0,7}}["'`*_]{{0,3}}\]?[ \t]{{0,8}}(?:=>|[:=,：|])[*_]{{0,3}}[ \t]{{0,8}}(?:[bfru]{{1,2}}(?=["'\\]))?\\{{0,7}}["'`]?
    (?:{_SCHEMES}[ \t]{{1,8}}(?:token[ =])?)?""",
    re.IGNORECASE | re.VERBOSE | re.ASCII,
)
_SIGNED = frozenset({"digest", "signature", "aws4-hmac-sha256", "oauth", "hawk"})
_REST = re.compile(r"(?:[^\n'`\\]{1,64}+|\\(?!\\{0,6}[\"'nr])){1,64}")
_MOST_JUDGED = 512  # characters of a value without a known scheme
_CREDENTIAL = re.compile(r"[\w.~+/=|:!@#%^*-]{4,16384}+", re.ASCII)
_REFERENCE = re.compile(r"[$<{%*]|(?:your|my|xxx|\.\.\.|token\b|<)", re.IGNORECASE)


def _authorization(text: str, at: int) -> Span | None:
    head = _AUTHORIZATION.match(text, at)
    if head is None:
        return None
    start = head.end()
    scheme = (head["scheme"] or "").lower()
    if _REFERENCE.match(text, start):
        return None
    if scheme in _SIGNED:
        rest = _REST.match(text, start)
        return None if rest is None or "=" not in rest[0] else (start, start + len(rest[0].rstrip(' \t,;"')))
    # The length is bounded, since an endless value would be read again at each header in it.
    found = _CREDENTIAL.match(text, start, len(text) if scheme else start + _MOST_JUDGED)
    if found is not None and found.end() == start + _MOST_JUDGED and randomness.looks_random(found[0]):
        found = _CREDENTIAL.match(text, start)
    if found is None:
        return None
    value = found[0].rstrip(".,;:!*")
    if value.startswith("[REDACTED") or not value:
        return None
    is_one = _is_credential(value) if scheme else randomness.looks_random(value[:_MOST_JUDGED])
    return (start, start + len(value)) if is_one else None


def _is_credential(value: str) -> bool:
    """Return whether a value is a credential: it has a digit or capitals inside, or is too long for a word."""
    return len(value) >= 4 and (
        any(map(str.isdigit, value))
        or len(value) >= 20
        or "=" in value
        or (len(value) >= 6 and any(map(str.isupper, value[1:])) and any(map(str.islower, value)))
    )


_BEARER = re.compile(r"(?<![A-Za-z])bearer(?:[ \t]{1,4}|%20|\+)(?:token[ :]{1,2})?", re.IGNORECASE)


def _bearer(text: str, at: int) -> Span | None:
    head = _BEARER.match(text, at)
    found = None if head is None else _CREDENTIAL.match(text, head.end())
    if found is None:
        return None
    value = found[0].rstrip(".,;:!*")
    if (
        len(value) < 8
        or not (any(map(str.isdigit, value)) or len(value) >= 24)
        or randomness.looks_like_words(value)
        or "://" in value
    ):
        return None
    return found.start(), found.start() + len(value)


_COOKIE = re.compile(
    r"""(?:set-)?cookies?\\{0,7}["'`*_]{0,3}\]?[ \t]{0,8}(?:,\s{0,8}\\{0,7}["']value\\{0,7}["'][ ]?:|=>|[:=：]|(?<=["'`]),)[*_]{0,3}[ \t]{0,8}(?P<quote>\\{0,7}["'`])?(?=[\w.$!%&+-]{1,100}="?[^\s;"'`])""",
    re.IGNORECASE | re.ASCII,
)
_COOKIE_FLAG = re.compile(
    r"""(?<=[\s"'`])(?:-b|--cookie)[ =]{1,2}(?P<quote>\\{0,7}["'`])?(?=[\w.$!%&+-]{1,100}="?[^\s;"'`])""",
    re.ASCII,
)
# RFC 6265 lets a value stand in double quotes.
_PAIRS = re.compile(
    r"""[\w.$!%&+-]{1,100}=(?:"[^\s;"'`\\,]{1,8192}+"|[^\s;"'`\\,]{0,8192}+)(?:;[ ]?[\w.$!%&+-]{1,100}(?:=(?:"[^\s;"'`\\]{1,8192}+"|[^\s;"'`\\]{0,8192}+))?(?:,? ?[0-9]{2}[ -][\w :-]{4,24})?){0,200}""",
    re.ASCII,
)


# What a cookie keeps of its user's choices, and what a server says of a cookie.
_PREFERENCE = re.compile(
    r";[ ]?(?:path|max-age|expires|domain|version|priority|samesite|(?:[a-z]{2,10}[_-])?(?:theme|lang|language|locale|tz|time_?zone|font_?size|width|height|screen|resolution"
    r"|currency|country|region|units?|view|sort|columns|sidebar|volume|zoom|consent|banner|per_?page))=[^;]{0,40}(?=;|\Z)",
    re.IGNORECASE,
)


def _cookie(text: str, at: int) -> Span | None:
    head = _COOKIE.match(text, at) or _COOKIE_FLAG.match(text, at) or _COOKIE_FLAG.match(text, max(0, at - 2))
    pairs = None if head is None else _PAIRS.match(text, head.end())
    if pairs is None or re.fullmatch(
        r"[\w.-]{1,100}=(?:\[REDACTED\S*|[$<{]\S*|\w{0,3}|true|false|None|null)", pairs[0]
    ):
        return None
    # Cookies such as a theme or a language are not secret.
    if re.search(r"=(?=[^;]{0,40}[0-9%])[^;]{4}|=[^;\[]{16}", _PREFERENCE.sub(";", f";{pairs[0]}")) is None:
        return None
    return pairs.span()


# --- -H 'X-Fathom-Key: fth.live.9QmZ02.rLxV7'

_HEADER = re.compile(
    r"(?:key|token|secret|auth|password|passcode)\\{0,3}[\"']?[ ]?(?::|=>|,)[ ]{0,3}\\{0,3}[\"']?(?P<secret>[\w.~+/=|!@#^*-]{6,200})(?=\\{0,3}[\"'`\s,;)}]|\Z)",
    re.IGNORECASE | re.ASCII,
)
_NAME_OF_HEADER = re.compile(r"(?<![\w-])x-(?:[a-z0-9]{1,20}-){0,4}\Z", re.IGNORECASE)
_NO_HEADER = re.compile(
    r"(?:idempotency|cache|partition|routing|sort|object|public|request|trace|surrogate|sec|hot)-\Z",
    re.IGNORECASE,
)


def _in_header(text: str, at: int) -> Span | None:
    name = _NAME_OF_HEADER.search(text[max(0, at - 60) : at])
    match = None if name is None or _NO_HEADER.search(name[0]) else _HEADER.match(text, at)
    if match is None:
        return None
    said = match["secret"].rstrip(".,")
    is_one = (
        DIGIT.search(said) is not None
        and re.search("[A-Za-z]", said) is not None
        and not secret_values.is_reference(said)
        and not randomness.looks_like_words(said)
    )
    return (match.start("secret"), match.start("secret") + len(said)) if is_one else None


RULES = (
    Rule("authorization", "authorization", ("authorization",), _authorization, skips_prose=True),
    Rule("bearer", "authorization", ("bearer",), _bearer),
    Rule(
        "ssws",
        "authorization",
        ("ssws ",),
        matching(r"(?<![A-Za-z])SSWS[ ](?P<secret>[\w-]{30,64}(?![\w-]))"),
    ),
    # A base64 value; words such as in "basic understanding" have no digit and no padding.
    Rule(
        "basic",
        "authorization",
        ("basic ",),
        matching(
            r"(?<![A-Za-z])(?i:basic)[ ](?P<secret>(?=[A-Za-z+/]{0,60}[0-9=])(?=[a-z0-9+/=]{0,60}[A-Z])[A-Za-z0-9+/]{8,}={0,2})"
        ),
    ),
    Rule("cookie", "cookie", ("cookie", "-b "), _cookie, skips_prose=True),
)
"""Each header, and the schemes of Authorization where they stand alone."""
OWN_HEADERS = (
    Rule("header-named", "token", tuple(f"-{word}" for word in ("key", "token", "secret", "auth", "password", "passcode")), lambda text, at: _in_header(text, at + 1), needs=Nearby(re.compile("[xX]-"), 60, 0, 2)),
)  # fmt: skip
"""Headers that an application names itself."""
