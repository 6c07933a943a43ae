"""Finds links that let in whoever has them: to log in once, to a share, to the nodes of a proxy, to a group."""

import re

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import randomness

_HEX = re.compile("[0-9a-f]{24,}")
# --- https://app.example.ai/magic-link#abb2c5df...: what is opened once, or by who was invited

_ONCE = re.compile(
    r"/(?:magic[-_]?links?|magic|sign[-_]?in|log[-_]?in|one[-_]?time|passwordless|(?:reset|set|forgot|change|new)[-_]?pass(?:word)?|reset|verify|verification|verify[-_]?e?mail|confirm|activate|invite|invites|invitation|accept[-_]?invite|join|onboard|sso|otl|recover|unlock|secret|onetimesecret|private)"
    r"(?:[/#?]{1,2}|[?#](?:[\w-]{1,20}=[\w%@.-]{0,60}&){0,4}[\w-]{1,20}=)(?P<secret>[\w.~-]{20,600})(?![\w/])",
    re.IGNORECASE | re.ASCII,
)
# --- https://photos.example.cn/share/iZ5VG8C-jMS3...

_SHARED = re.compile(
    r"/(?:share|shared|shares|sharing|s|guest)(?:/#|/|#/|\?(?:key|t|id)=)(?P<secret>[\w-]{22,120})(?![\w/]|\.\w)",
    re.IGNORECASE | re.ASCII,
)
# --- https://nodes.example.com/link/rhCRrA0MP1I48zXY?clash=1

_NODES = re.compile(
    r"/(?:link|sub|subs|subscribe|subscription|s|getsub|modules/servers/\w{1,20})/(?P<secret>[\w-]{10,120})(?=[?/](?:clash|sub|mu|list|target|flag|surge|v2ray|ssr?|singbox|sing-box|type|client)\b)",
    re.IGNORECASE | re.ASCII,
)
# --- https://chat.whatsapp.com/..., https://t.me/+...

_GROUP = re.compile(
    r"(?:chat\.whatsapp\.com/(?:invite/)?|t\.me/(?:\+|joinchat/))(?P<secret>[\w-]{16,32})(?![\w/-])", re.ASCII
)


def _is_drawn(said: str) -> bool:
    return (
        _HEX.fullmatch(said) is not None
        or randomness.looks_random(said)
        or (randomness.mixes(said) and randomness.is_scrambled(said))
    )


def _lets_in(text: str, at: int) -> Span | None:
    """Return the part of a link that nobody can guess; the anchor is the beginning of its path."""
    match = _ONCE.match(text, at) or _NODES.match(text, at) or _SHARED.match(text, at)
    if match is None:
        return None
    said = match["secret"].rstrip(".~-_")
    left = text[max(0, at - 100) : at]
    if "://" not in left or " " in left[left.rfind("://") :]:
        return None
    return (match.start("secret"), match.start("secret") + len(said)) if _is_drawn(said) else None


def _to_group(text: str, at: int) -> Span | None:
    match = _GROUP.match(text, at)
    is_one = match is not None and (
        randomness.mixes(match["secret"]) or randomness.looks_mixed(match["secret"])
    )
    return match.span("secret") if match is not None and is_one else None


_PATHS = (
    "/magic", "/sign", "/log", "/one", "/passwordless", "/reset", "/set", "/forgot", "/change", "/new", "/verif", "/confirm", "/activate", "/invit", "/accept", "/join", "/onboard", "/sso", "/otl", "/recover", "/unlock", "/secret", "/private",
    "/share", "/sharing", "/s/", "/guest", "/link/", "/sub", "/getsub/", "/modules/servers/",
)  # fmt: skip
_LONG = Nearby(re.compile(r"[\w-]{10}", re.ASCII), 0, 90, 10)

RULES = (
    Rule("link-that-lets-in", "url-token", _PATHS, _lets_in, needs=_LONG),
    Rule("link-to-group", "url-token", ("chat.whatsapp.com/", "t.me/+", "t.me/joinchat/"), _to_group),
)
"""Links by their path, and those to groups."""
