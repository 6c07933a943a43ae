"""Finds credentials in URLs, and in addresses of databases, streams, proxies and panels."""

import re
import string

from memd.redact.rule import Rule, Span, matching, stem
from memd.redact.values import randomness
from memd.redact.values.fixed_places import in_place, with_digit

_USERINFO = re.compile(
    r"""://(?:(?P<user>[^\s/@:"'<>`\\?\#]{0,200}):(?P<password>[^\s/@"'<>`]{1,300}(?:@[^\s/@"'<>`,)]{0,100}(?=@))?)@(?=[\w.\[$%{-])
    |(?P<alone>[\w.~%-]{16,300})(?::x-oauth-basic)?@(?=[\w.\[-]))""",
    re.VERBOSE,
)
# The password of a database may be unescaped and contain slashes.
_DATABASE = re.compile(
    r"""://(?P<user>[^\s/@:"'<>`\\]{0,100}):(?P<password>[^\s@"'<>`]{1,200}(?:@[^\s/@"'<>`,)]{0,100}(?=@))?)@(?=[\w.\[-]{1,253}(?::[0-9]{1,5})?(?:[/,?\s"'`]|\Z))"""
)
_LONGEST = 620  # characters of a name and a password
_WEB = ("http", "https", "ws", "wss", "git+https", "svn+http")
_REFERENCE = re.compile(r"\$|\{|%[({]|<|\*{2,}|[xX]{3,}\Z|\.{3}|\[")
_SHOWN = frozenset({"pass", "passwd", "password", "pw", "pwd", "secret"})  # passwords in examples
_SCHEME = string.ascii_letters + string.digits + "+.-"


def _userinfo(text: str, at: int) -> Span | None:
    if text.find("@", at, at + _LONGEST) < 0:
        return None
    scheme = stem(text, at, 24, _SCHEME).lower()
    match = _USERINFO.match(text, at)
    if match is None and scheme and scheme not in _WEB:
        match = _DATABASE.match(text, at)
    if match is None:
        return None
    if match["password"] is not None:
        said = match["password"]
        return None if _REFERENCE.match(said) or said.lower() in _SHOWN else match.span("password")
    alone = match["alone"]
    return (
        match.span("alone")
        if randomness.looks_random(alone) or re.fullmatch(r"[0-9a-f]{24,}", alone)
        else None
    )


_ASKED = (
    "token", "key", "sig", "signature", "code", "auth", "secret", "credential", "password", "passwd",
    "pwd", "jwt", "ticket", "assertion", "session", "hmac", "sign", "hash", "appid", "pass", "mima",
)  # fmt: skip
_NAMES = tuple(f"{written}=" for name in _ASKED for written in (name, name.title(), name.upper()))
_QUERY = re.compile(r"(?P<name>[a-z]{2,12})=(?P<secret>[^\s&#\"'<>`\\()\[\]{},;|]{4,16384})", re.IGNORECASE)
_BEGINS_CODE = ("(", "{")  # behind the name of a function
_IN_NAME = string.ascii_letters + string.digits + "_-.%[]"
_SHORT = frozenset({"password", "passwd", "pwd", "secret"})
_PASSED = frozenset({"pass", "mima"})  # these are passwords if they have a digit
_NO_PASS = ("by", "com", "tres", "sur", "multi", "under", "over", "high", "low", "band")  # compass
_STRICT = frozenset({"code", "session", "hash", "ticket", "auth", "sign", "appid"})


def _query(text: str, at: int) -> Span | None:
    """Return the value of a query parameter, unless the text is a sentence about parameters."""
    name = stem(text, at, 40, _IN_NAME)
    opener = text[at - len(name) - 1 : at - len(name)] if at > len(name) else ""
    if opener not in {"?", "&", "#", ";"} and not name.lower().startswith("x-amz-"):
        return None
    match = _QUERY.match(text, at)
    if match is None:
        return None
    if text.startswith(_BEGINS_CODE, match.end()):
        return None
    value = match["secret"].rstrip(".,;:!?*，。")
    kind = match["name"].lower()
    if kind == "pass" and name.lower().endswith(_NO_PASS):
        return None
    if _REFERENCE.match(value) or not value or "%24%7B" in value[:6]:
        return None
    if kind not in _SHORT:
        least = 16 if kind in _STRICT else 6
        if len(value) < least or not (any(map(str.isdigit, value)) or randomness.looks_mixed(value)):
            return None
        if randomness.looks_like_words(value) and not (kind in _PASSED and randomness.has_digit(value)):
            return None
    return match.start("secret"), match.start("secret") + len(value)


_BEFORE_PROTOCOL = re.compile(r"(?<![\w.-])[\w.-]{1,60}:(?P<secret>[^\s:\"'`]{3,200})\Z", re.ASCII)


def _before_protocol(text: str, at: int) -> Span | None:
    left = max(0, at - 262)
    match = _BEFORE_PROTOCOL.search(text[left:at])
    if match is None or _REFERENCE.match(match["secret"]) or match["secret"].lower() in _SHOWN:
        return None
    return left + match.start("secret"), left + match.end("secret")


# --- rtmp://ingest.pond.example/app/pond-7q7q-l0l0-xmas

_STREAM = re.compile(
    r"rtmps?://[\w.:-]{3,80}/[\w.-]{1,40}/(?:[\w.-]{1,40}/)?(?P<secret>[\w-]{8,80})(?![\w./-])",
    re.IGNORECASE | re.ASCII,
)


RULES = (
    Rule("url-userinfo", "url-password", ("://",), _userinfo),
    Rule("url-query", "url-token", _NAMES, _query, in_token=True),
    # Data source names of Go have no scheme: app:hunter2@tcp(db:3306)/shop
    Rule("database-address", "url-password", ("@tcp(", "@unix(", "@udp(", "@cloudsql("), _before_protocol),
    Rule(
        "oracle-url",
        "url-password",
        ("jdbc:oracle:",),
        matching(r"jdbc:oracle:[a-z0-9]{1,8}:[^\s/@]{1,100}/(?P<secret>[^\s/@]{1,200})@", re.IGNORECASE),
        in_token=True,
    ),
    # Parameters of signed storage URLs. Only all of them together grant access.
    Rule(
        "azure-signature",
        "url-token",
        ("sig%3D", "sig%3d"),
        matching(r"sig%3D(?P<secret>[\w%+/=-]{20,}+)", re.IGNORECASE),
        in_token=True,
    ),
)
"""Userinfo, parameters, and the ways of their own that some databases have."""
STREAMS = (Rule("stream-key", "token", ("rtmp://", "rtmps://"), with_digit(_STREAM)),)
"""Addresses to which a stream is sent."""
ADDRESSES = (
    Rule("proxy-address", "url-password", ("ss://",), in_place(r"(?<![a-z])ss://(?P<secret>[\w+/-]{16,200}={0,2})(?=[@#]|\s|\Z)")),
    Rule("calendar-address", "url-token", ("/private-",), in_place(r"/private-(?P<secret>[0-9a-f]{32})(?=/basic\.ics)")),
    Rule("node-address", "url-token", (".alchemy.com/v2/",), in_place(r"\.alchemy\.com/v2/(?P<secret>[\w-]{24,48})(?![\w-])")),
    Rule(
        "panel-path",
        "url-token",
        ("面板地址", "面板入口", "安全入口", "访问路径"),
        in_place(r"[面安访][板全问][地入路][址口径][ ]?[:：]?[ ]?`?(?:https?://[^\s/]{4,80})?/(?P<secret>(?=[a-z]{0,31}[0-9])[a-z0-9]{6,32})/?`?(?=[\s，。,]|\Z)"),
    ),
)  # fmt: skip
"""Addresses of proxies, calendars, nodes and panels."""
