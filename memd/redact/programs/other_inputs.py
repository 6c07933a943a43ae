"""Finds secrets that are given to programs in other ways than by a flag for passwords: here-strings, options of mounts, headers, scenarios of tests."""

import base64
import re

from memd.redact.rule import DIGIT, Find, Nearby, Rule, Span, line_end, line_start, matching, stem
from memd.redact.values import randomness, secret_candidates, secret_values

_VALUE = (
    r"(?P<quote>[\"'])(?P<quoted>[^\"'\n$]{4,120})(?P=quote)|(?P<bare>[^\s\"'|<>;&$-][^\s\"'|<>;&$]{3,120})"
)


def _of_group(match: re.Match[str]) -> tuple[str, Span]:
    group = "bare" if match["quoted"] is None else "quoted"
    return match[group], match.span(group)


# --- cryptsetup luksOpen /dev/sdb2 bak <<< 'thirteen grey herons'

_HERE = re.compile(rf"<<<[ ]?(?:{_VALUE})")
_READS = re.compile(
    r"cryptsetup|sudo[ ]-S|gpg2?[ ]|passwd|ssh-add|ssh-keygen|keepassxc-cli|veracrypt|kinit|smbclient|borg|restic|zfs[ ]load-key|luks|--pass(?:word|phrase)|7z[ ]|age[ ]-|docker[ ]login",
    re.IGNORECASE,
)


def _here(text: str, at: int) -> Span | None:
    match = _HERE.match(text, at)
    if match is None:
        return None
    said, span = _of_group(match)
    left = line_start(text, at, 160)
    is_one = _READS.search(text, left, at) is not None and not secret_values.is_reference(said)
    return span if is_one else None


# --- relay --hmac stoatweasel12, tnl run --tok=AAAE.p9.7qZ

_FLAG = re.compile(
    rf"--(?:hmac|tok|authkey|pw|passw|passwort|join-key|join-token|enrol?l?-(?:key|token)|psk|admin-pass|rpcpassword|rpc-secret)[ =](?:{_VALUE})(?=\s|\Z|[\"'`,;)])",
    re.IGNORECASE,
)


def _flagged(text: str, at: int) -> Span | None:
    match = _FLAG.match(text, at)
    if match is None:
        return None
    said, span = _of_group(match)
    is_one = (
        DIGIT.search(said) is not None
        and not said.startswith(("/", ".", "~"))
        and secret_values.is_strong(said)
    )
    return span if is_one and not secret_candidates.names_thing(said) else None


# --- //nas/vid /mnt/v cifs user=tv,pass=lanternfish,vers=3

_OPTION = re.compile(
    r"(?<=[\s,])(?:pass|password|passwd|pwd|pw)=(?P<secret>[^\s,=\"'$<{(\[]{4,64})(?=,[a-z_]{2,20}(?:=|,|\s)|\s|\Z)",
    re.IGNORECASE,
)
_OPTIONS_BEFORE = re.compile(
    r"(?<![\w.-])(?:user|username|domain|dom|vers|uid|gid|rw|ro|sec|guest|noauto|credentials)(?:=[^\s,]{0,40})?,(?:[\w=.-]{1,40},){0,6}\Z",
    re.IGNORECASE,
)
_OPTIONS_BEHIND = re.compile(
    r",(?:[\w=.-]{1,40},){0,4}(?:user|username|domain|vers|uid|gid|sec|rw|ro)(?:=|,|\s)", re.IGNORECASE
)


def _mounted(text: str, at: int) -> Span | None:
    match = _OPTION.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    is_one = _OPTIONS_BEFORE.search(text[max(0, at - 90) : at]) is not None or (
        _OPTIONS_BEHIND.match(text, match.end()) is not None
        and re.search(r"cifs|mount|smb|davfs|sshfs|//", text[max(0, at - 90) : at]) is not None
    )
    return match.span("secret") if is_one else None


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


# --- setItem('auth','zz_91.kk0.TTq') in a console of a browser, and a name and a value in a recording of requests

_STORED = re.compile(
    r"(?:setitem|set_cookie|setcookie|cookies?\.set|storage\.set|sessionstorage\.set)\([ ]?[\"'][\w.:-]{0,30}(?:auth|token|session|sess|sid|jwt|key|pass|secret|cred|csrf)[\w.:-]{0,20}[\"'][ ]?,[ ]?[\"'](?P<secret>[^\"'\n\s$]{6,400})[\"']",
    re.IGNORECASE,
)
_VALUE_OF_NAME = re.compile(
    r"name\\{0,3}[\"'][ ]?:[ ]?\\{0,3}[\"'][\w.:-]{0,40}(?:auth|session|sess|sid|token|secret|api-?key|apikey|csrf|passw)[\w.:-]{0,20}\\{0,3}[\"'][ ]?,\s{0,12}\\{0,3}[\"']value\\{0,3}[\"'][ ]?:[ ]?\\{0,3}[\"'](?P<secret>[^\"'\n\s\\$<{]{6,400})(?=\\{0,3}[\"'])",
    re.IGNORECASE,
)


# A word with a number or a date is the name of something: "oauth2", "stream-01", "Session-2024".
_NAMED = re.compile(
    r"[A-Za-z]+(?:[-_][a-z]+)?[-_]?v?[0-9]{1,4}(?:-[0-9]{1,4}){0,2}[a-z]{0,3}|[0-9]{1,4}[A-Za-z]{1,8}",
    re.ASCII,
)


_NAMES_OTHER = re.compile(r"author|timeout|length|type|method|count|keyb|passenger", re.IGNORECASE)


def _has_digit(pattern: re.Pattern[str]) -> Find:
    """Return a Find for the group "secret" of a pattern, if it has a letter and a digit and is neither a name nor a reference."""

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        is_one = (
            match is not None
            and DIGIT.search(match["secret"]) is not None
            and re.search("[A-Za-z]", match["secret"]) is not None
            and _NAMED.fullmatch(match["secret"]) is None
            and _NAMES_OTHER.search(text, at, match.start("secret")) is None
            and not secret_values.is_reference(match["secret"])
        )
        return match.span("secret") if match is not None and is_one else None

    return find


# --- rtmp://ingest.pond.example/app/pond-7q7q-l0l0-xmas

_STREAM = re.compile(
    r"rtmps?://[\w.:-]{3,80}/[\w.-]{1,40}/(?:[\w.-]{1,40}/)?(?P<secret>[\w-]{8,80})(?![\w./-])",
    re.IGNORECASE | re.ASCII,
)

# --- "bthomehub" * "pontoon" *

_OF_PPP = re.compile(
    r"[\"']?[\w.@+-]{1,64}[\"']?[ \t]{1,8}\*[ \t]{1,8}\"(?P<secret>[^\"\n]{3,64})\"[ \t]{1,8}(?:\*|[0-9.]{7,15})(?=\s|\Z)"
)
_SPEAKS_OF_PPP = re.compile(r"ppp|chap|pap|pptp|l2tp|secrets|dsl|broadband", re.IGNORECASE)


def _of_ppp(text: str, at: int) -> Span | None:
    left = max(0, at - 66)
    start = max(text.rfind("\n", left, at) + 1, text.rfind(" ", left, at - 1) + 1, left)
    match = _OF_PPP.match(text, start)
    if match is None or match.start("secret") < at:
        return None
    return match.span("secret") if _SPEAKS_OF_PPP.search(text, max(0, at - 200), at) is not None else None


# --- KEY FOUND! [ 6d:75:64:6c ], unlock seq: 0xDE 0x17 0x90 0x4C

_BYTES = re.compile(
    r"(?:unlock|pairing|dongle|secret|auth|arming|disarm|access|challenge|response|key)[^\n:=]{0,24}(?:seq(?:uence)?|bytes|code|key|frame|payload)?[^\n:=]{0,10}[:=][ ]?[{\[(]?(?P<secret>(?:0x[0-9a-f]{2}[ ,]{1,2}){3,31}0x[0-9a-f]{2})(?![ ,]{1,2}0x)",
    re.IGNORECASE,
)
_CRACKED = re.compile(r"key found![ ]?\[[ ]?(?P<secret>[^\]\n]{5,120}?)[ ]?\]", re.IGNORECASE)

# --- echo c3F1aWRJbmsx | base64 -d   # that's the grafana admin

_ENCODED = re.compile(
    r"(?:echo|printf)[ ](?:-n[ ])?[\"']?(?P<secret>[A-Za-z0-9+/]{8,400}={0,2})[\"']?[ ]?\|[ ]?base64[ ](?:-d|-D|--decode)",
    re.ASCII,
)
_SAYS_SECRET = re.compile(r"pass|admin|secret|cred|wi-?fi|root|pw", re.IGNORECASE)


def _encoded(text: str, at: int) -> Span | None:
    match = _ENCODED.match(text, at)
    if match is None:
        return None
    is_called = _SAYS_SECRET.search(
        text, match.end(), line_end(text, match.end(), 80)
    ) or _SAYS_SECRET.search(text, line_start(text, at, 80), at)
    return match.span("secret") if is_called and _decodes(match["secret"]) else None


def _decodes(said: str) -> bool:
    """Return whether base64 encodes visible characters."""
    try:
        plain = base64.b64decode(said + "=" * (-len(said) % 4))
    except ValueError:
        return False
    return all(32 <= byte < 127 or byte in b"\r\n" for byte in plain)


# --- a shell that got what was meant for a prompt: "pi@attic's password:" and "bash: gooseberry_Fool9: command not found"

_MISSED = re.compile(
    r"pass(?:word|phrase|code)[^\n]{0,60}:[ \t]{0,4}\n(?:[^\n]{0,80}\n){0,3}?[^\n]{0,40}[$#%>❯][ ](?P<typed>\S{4,64})\n(?:-?bash|-?zsh|sh|fish|ksh|dash):[^\n]{0,40}?(?P=typed):?[ ]\Z",
    re.IGNORECASE,
)
_CHARS_OF_MISSED = 400


def _missed(text: str, at: int) -> Span | None:
    """Return what was typed, with the message of the shell up to it."""
    left = max(0, at - _CHARS_OF_MISSED)
    match = _MISSED.search(text[left:at])
    return None if match is None else (left + match.start("typed"), left + len(match.string.rstrip(": ")))


# --- When I enter "amy" and "Nutmeg+Grater5"

_ENTERED = re.compile(
    r"(?:enters?|types?|fills?(?:[ ]in)?|submits?|logs?[ ]in[ ](?:as|with)|signs?[ ]in[ ](?:as|with)|credentials|login[ ]with|logging[ ]in[ ](?:as|with))[ ](?:the[ ])?(?:user(?:name)?[ ]|e-?mail[ ])?[\"'“](?=[^\"'“”\n]{0,40}[A-Za-z])[^\"'“”\n]{1,60}[\"'”](?:[ ](?:and|with|/|,)|,)(?:[ ](?:the[ ])?pass(?:word|code))?[ ][\"'“](?=[^\s\"'“”]{0,60}[A-Za-z])(?P<secret>[^\s\"'“”]{5,64})[\"'”]",
    re.IGNORECASE,
)


_OF_LOGIN = re.compile(r"log[ -]?in|sign[ -]?in|logging[ ]in|password|user[ ]?name|credential", re.IGNORECASE)


def _entered(text: str, at: int) -> Span | None:
    match = _ENTERED.match(text, at)
    end = 0 if match is None else text.find("\n", match.end(), match.end() + 60)
    left = line_start(text, at, 60)
    is_one = (
        match is not None
        and DIGIT.search(match["secret"]) is not None
        and (
            _OF_LOGIN.search(text, left, match.start("secret"))
            or _OF_LOGIN.search(text, match.end(), match.end() + 60 if end < 0 else end)
        )
    )
    return (
        match.span("secret")
        if match is not None and is_one and not secret_values.is_reference(match["secret"])
        else None
    )


# --- find_element(By.ID, "mm").send_keys("..."), page.fill("#mima", "..."): what is typed into a field for passwords

_FIELD = re.compile(
    r"[\"'#=\[.](?:(?:[a-z0-9]{1,16}[_-]|dl|yh|xs|user|login)?(?:mm|kl)|[a-z0-9_-]{0,16}(?:mima|kouling|psw|psd|pswd|upass))[\"'\]]{1,4}"
    r"(?:[ ]?\){1,2}\.(?:clear\(\)\.)?(?:send_?keys|fill|type|val|set_?value|set_?text|input|press_?sequentially)\([ ]?|[ ]?,[ ]?)[\"'](?P<secret>[^\s\"'\n]{5,64})[\"'][ ]?\)",
    re.IGNORECASE | re.ASCII,
)
_TYPES = re.compile(r"(?:find|locat|query|element|fill|type|send|input|\$)\w{0,24}[.(]", re.IGNORECASE)


def _typed_into(text: str, at: int) -> Span | None:
    begin = at - len(stem(text, at, 20)) - 1
    match = _FIELD.match(text, begin) if begin >= 0 else None
    if match is None or _TYPES.search(text, line_start(text, at, 80), at) is None:
        return None
    said = match["secret"]
    is_date = DIGIT.match(said) is not None and not said.isdecimal() and re.search("[A-Za-z]", said) is None
    is_one = not is_date and (DIGIT.search(said) is not None or secret_values.has_symbol(said))
    return match.span("secret") if is_one and not secret_values.is_reference(said) else None


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

RULES = (
    Rule("typed-into-field", "password", ('mm"', "mm'", 'kl"', "kl'", 'psd"', "psd'", "pswd", "upass", "mima", "kouling"), _typed_into, needs=Nearby(re.compile(r"[(,][ ]?[\"']"), 0, 60, 3)),
    Rule("vector-of-cipher", "key", ("iv=", "iv =", "iv:", "iv :", 'iv"', "iv'"), _vector, needs=Nearby(re.compile("[\"'][A-Za-z0-9]{16}"), 0, 60, 17)),
    Rule("here-string", "password", ("<<<",), _here),
    Rule("flag-of-secret", "token", ("--",), _flagged, needs=Nearby(re.compile("[a-z][ =]"), 0, 24, 2)),
    Rule("mount-option", "password", ("pass=", "password=", "passwd=", "pwd=", "pw="), _mounted, needs=Nearby(re.compile(","), 90, 80)),
    Rule("header-named", "token", tuple(f"-{word}" for word in ("key", "token", "secret", "auth", "password", "passcode")), lambda text, at: _in_header(text, at + 1), needs=Nearby(re.compile("[xX]-"), 60, 0, 2)),
    Rule("stored-value", "token", ("setitem(", "set_cookie(", "setcookie(", "cookies.set(", "cookie.set(", "storage.set("), _has_digit(_STORED)),
    Rule("value-of-name", "token", ('name":', "name':", 'name\\":'), _has_digit(_VALUE_OF_NAME), needs=Nearby(re.compile("value"), 0, 100, 5)),
    Rule("stream-key", "token", ("rtmp://", "rtmps://"), _has_digit(_STREAM)),
    Rule("ppp-secret", "password", ('* "', '*\t"'), _of_ppp),
    Rule("bytes-of-key", "key", ("unlock", "pairing", "dongle", "disarm", "challenge"), matching(_BYTES), needs=Nearby(re.compile("0x"), 0, 60, 2, has_digit=True)),
    Rule("key-cracked", "password", ("key found!",), matching(_CRACKED)),
    Rule("encoded-secret", "password", ("echo ", "printf "), _encoded, needs=Nearby(re.compile("base64"), 0, 440, 6, has_digit=True)),
    Rule("typed-too-late", "password", ("command not found", "unknown command"), _missed),
    Rule("entered-in-scenario", "password", ("enter", "type", "fill", "submit", "in as", "in with", "credentials", "login with"), _entered, needs=Nearby(re.compile("[\"“']"), 0, 30)),
)  # fmt: skip
