"""Finds secrets at fixed places of settings, code, options of mounts and cookies: "snmp-server community ... RO", "Pwd={...};", "sid: ..."."""

import re

from memd.redact.rule import DIGIT, Find, Nearby, Rule, Span, line_start, sought
from memd.redact.values import randomness, secret_values
from memd.redact.values.fixed_places import in_place
from memd.redact.words.secret_words import SECRET_WORDS, either


def _behind(pattern: str, *, strong: bool = True, given: bool = False, flags: int = re.IGNORECASE) -> Find:
    """Return a Find for the group "secret" of a pattern that begins at the anchor; no reference to a secret is one.

    Args:
        pattern: A regular expression.
        strong: Whether the secret must have letters and digits.
        given: Whether it may be a word instead, since nothing else is in that place.
        flags: Of the pattern.
    """
    compiled = re.compile(pattern, flags | re.ASCII)

    def find(text: str, at: int) -> Span | None:
        match = compiled.match(text, at)
        if match is None or secret_values.is_reference(match["secret"]):
            return None
        if given:
            return match.span("secret") if secret_values.is_given(match["secret"]) else None
        is_one = not strong or secret_values.is_strong(match["secret"])
        return match.span("secret") if is_one else None

    return find


# --- snmp-server community rhubarb7 RO

_COMMUNITY = re.compile(
    r"(?:snmp-server[ ]community|snmp[ ]community|snmp-agent[ ]community[ ](?:read|write)(?:[ ]simple)?|r[ow]community6?)[ \t]{1,4}(?P<secret>[!-~]{4,64})"
    r"(?=[ \t]{1,4}(?:RO|RW|view|default|[0-9]|authorization|ipv4|ipv6|-V)\b|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
# What everybody has, and what stands for a name.
_NO_COMMUNITY = re.compile(
    r"public|private|communit(?:y|ies)|string|name|ro|rw|read(?:only)?|write|test|example|word|-.{0,62}",
    re.IGNORECASE,
)


def _community(text: str, at: int) -> Span | None:
    match = _COMMUNITY.match(text, at)
    if match is None or _NO_COMMUNITY.fullmatch(match["secret"]):
        return None
    said = match["secret"]
    return (
        None if secret_values.is_reference(said) or said.endswith((",", ".", ":")) else match.span("secret")
    )


# --- ks.load(in, "pI2c1rNOVS".toCharArray())

_CHARS = re.compile(r"\"(?P<secret>[^\"\n]{4,64})\"\Z")
_TAKES_PASSWORD = re.compile(
    r"keystore|keymanager|truststore|\.load\(|\.store\(|PBEKeySpec|PasswordAuthentication|PasswordProtection|setPassword|unlock|getKey\(|setKeyEntry|credential|passw|pwd",
    re.IGNORECASE,
)


def _char_array(text: str, at: int) -> Span | None:
    left = max(0, at - 68)
    match = _CHARS.search(text[left:at])
    if match is None or _TAKES_PASSWORD.search(text, max(0, at - 160), left + match.start()) is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) and not secret_values.is_reference(said)
    return (left + match.start("secret"), left + match.end("secret")) if is_one else None


# --- INSERT INTO settings (k, v) VALUES ('smtp_pw', 'Z6as4RRwd0Ceb')

_PAIR_OF_ROW = _behind(
    r"(?:pw|pwd|pass|passwd|password|secret|token|api_?key|access_?key)'[ ]?,[ ]?'(?P<secret>[^'\n]{5,200})'"
)

# --- p=md5('Tangyuan@706640')

_HASHED = re.compile(
    r"(?:md5|sha1|sha2|sha256|sha512|hash|hex_md5|bcrypt|password|crypt|encrypt)\([\"'](?P<secret>[^\"'\n]{5,64})[\"']",
    re.IGNORECASE,
)
_OF_PASSWORD = re.compile(
    rf"(?:(?<![A-Za-z])(?:p|pw|pwd|pass|passwd|password|clave|(?:{either(SECRET_WORDS.passwords)})[a-z]{{0,4}})|密码|密碼|口令)[\"'`]?[ ]?(?:=>?|:|：|是)[ ]?\Z",
    re.IGNORECASE,
)


def _hashed(text: str, at: int) -> Span | None:
    match = _HASHED.match(text, at)
    if match is None or _OF_PASSWORD.search(text, max(0, at - 20), at) is None:
        return None
    said = match["secret"]
    is_one = secret_values.is_strong(said) and not secret_values.is_reference(said)
    return match.span("secret") if is_one else None


# --- UPDATE settings SET value = 'Kvist(44)' WHERE name = 'smtp_password'

_SET_BY_NAME = re.compile(
    r"set[ ][\w.`\"\[\]]{1,40}[ ]?=[ ]?'(?P<secret>[^'\n]{4,200})'[ ](?:,[^\n']{0,80})?where[ ][\w.`\"\[\]]{1,40}[ ]?=[ ]?'[\w.-]{0,40}(?:pw|pwd|pass|passwd|password|secret|token|api_?key)'",
    re.IGNORECASE,
)


def _set_by_name(text: str, at: int) -> Span | None:
    match = _SET_BY_NAME.match(text, at)
    if match is None or not secret_values.is_given(match["secret"]):
        return None
    said = match["secret"]
    return match.span("secret") if secret_values.is_strong(said) or secret_values.has_symbol(said) else None


# --- cookies and numbers of sessions, by the names that sites give them

_NAMES_OF_COOKIES = (
    "sessionid", "sessionid_ss", "sid_tt", "sid_guard", "z_c0", "bduss", "stoken", "ptoken", "li_at", "auth_token", "phpsessid", "jsessionid", "web_session", "sso_sid",
    "connect.sid", "_session_id", "sessdata", "pt_key", "sub=_2a", "x-session-id", "xoxd", "__secure-next-auth.session-token", "__secure-1psid",
)  # fmt: skip
_OF_SESSION = re.compile(
    r"(?<![A-Za-z0-9])(?:sessionid(?:_ss)?|sid_(?:tt|guard)|z_c0|bduss(?:_bfess)?|[sp]token|li_at|auth_token|phpsessid|jsessionid|web_session|sso_sid|connect\.sid|_session_id|sessdata|pt_key|x-session-id|xoxd|__secure-next-auth\.session-token|__secure-1psid(?:ts|cc)?)"
    r"[\"'`]?[ ]?(?:=|:|：|是|is)[ ]?[\"'`]?(?P<secret>[\w%|:/.+=*-]{16,900})",
    re.IGNORECASE | re.ASCII,
)
_UUID = re.compile("[0-9A-Fa-f]{8}(?:-[0-9A-Fa-f]{4}){3}-[0-9A-Fa-f]{12}")
_LOGIN_OF_WEIBO = re.compile(r"sub=(?P<secret>_2A[\w%.-]{30,200})", re.IGNORECASE | re.ASCII)


def _of_session(text: str, at: int) -> Span | None:
    match = _OF_SESSION.match(text, at) or _LOGIN_OF_WEIBO.match(text, at)
    if match is None:
        return None
    said = match["secret"].rstrip(".:")
    is_one = DIGIT.search(said) is not None and not secret_values.is_reference(said)
    # A number of a session in a log is a UUID, or short.
    is_drawn = (
        _UUID.fullmatch(said) is None
        and not randomness.looks_like_words(said)
        and re.search("[A-Za-z]", said) is not None
    )
    return (match.start("secret"), match.start("secret") + len(said)) if is_one and is_drawn else None


# --- sessão do userbot: RgIPha-tGjcY...: what a client of a messenger keeps to be logged in

_SESSIONS = ("session:", "session：", "session=", "session =", "session is", "session string", "session_string", "string session", "string_session", "session for", "session file", "sessão", "sesión", "sessione", "sitzung", "сесси", "会话", "會話", "セッション", "세션", "userbot", "pyrogram", "telethon")  # fmt: skip
_LONG = re.compile(r"(?<![\w+/=.-])(?P<secret>[A-Za-z0-9_-]{120,1200}={0,2})(?![\w+/-])", re.ASCII)


def _session_text(text: str, at: int) -> Span | None:
    match = _LONG.search(text, at, at + 1300)
    if match is None or match.start() > at + 80 or "\n\n" in text[at : match.start()]:
        return None
    return match.span("secret") if randomness.looks_random(match["secret"]) else None


# --- "tacacs-server key Kolibri9vlucht", "pre-shared-key ascii-text ...": lines of routers, switches and access points

_OF_DEVICE = re.compile(
    r"(?:enable[ ](?:secret|password)|(?:tacacs|radius)(?:-server|[ ]server)?(?:[ ]host[ ]\S{1,60})?(?:[ ]auth-port[ ][0-9]{1,5}|[ ]acct-port[ ][0-9]{1,5}){0,2}[ ](?:key|secret)|crypto[ ]isakmp[ ]key|pre-shared-(?:key|secret)(?:[ ](?:ascii-text|local|remote|hexadecimal|cipher|simple))?"
    r"|wpa-psk[ ]ascii|security[ ]wpa[ ]psk[ ]set-key[ ]ascii|key-string|authentication-key|message-digest-key[ ][0-9]{1,3}[ ]md5|neighbor[ ]\S{3,40}[ ]password|chap[ ]password|pap[ ]sent-username[ ]\S{1,40}[ ]password|ntp[ ]authentication-key[ ][0-9]{1,5}[ ]md5|set[ ]password|set[ ]psksecret|set[ ]secret|standby[ ][0-9]{1,3}[ ]authentication|wpa2?-pass(?:phrase|word)|shared-secret|(?:snmpwalk|snmpget|snmpset|snmpbulkwalk)[ ][^\n]{0,40}?-c)"
    r"(?:[ ][05789])?[ ]{1,4}[\"']?(?P<secret>[^\s\"'<>|;]{6,80})[\"']?(?=[ \t]{1,4}(?:address|timeout|retransmit|[0-9]{1,3}\.|[a-z0-9.-]{1,40}[ \t]{0,4}(?:\n|\Z))|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)


# In quotes behind the kind of the key, it may be words.
_OF_DEVICE_IN_QUOTES = re.compile(
    r"(?:pre-shared-(?:key|secret)[ ](?:ascii-text|local|remote)|(?:authentication|privacy)-(?:md5|sha|des|aes128|3des)[ ](?:authentication|privacy)-password|plain-text-password-value|(?:radius|tacacs)-?(?:plus-)?server[ ]\S{3,60}[ ]secret)[ ]\"(?P<secret>[^\"\n$]{4,80})\"",
    re.IGNORECASE,
)


def _of_device(text: str, at: int) -> Span | None:
    if text[at - 1 : at].isalnum():
        return None
    quoted = _OF_DEVICE_IN_QUOTES.match(text, at)
    if quoted is not None:
        return quoted.span("secret") if secret_values.is_given(quoted["secret"]) else None
    match = _OF_DEVICE.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    return match.span("secret") if secret_values.is_strong(match["secret"]) else None


# --- createUser mon SHA "heron_reed" AES "otter_moss", snmp-server user mon ops v3 auth sha heron_reed

_OF_SNMP_USER = re.compile(
    r"(?<![\w-])(?:MD5|SHA(?:-?(?:224|256|384|512))?|DES|3DES|AES(?:[ -]?(?:128|192|256))?)[ ]{1,4}\"?(?P<secret>(?!(?:auth|priv|access|AES|DES|SHA|MD5)\b)[^\s\"'<>]{8,64})\"?(?=[ \t]|\n|\Z)",
    re.IGNORECASE,
)

# --- sv_password "lighthouse", option key 'pine_needle': a line of settings that is a name and a value in quotes

_LINE_OF_SETTING = re.compile(
    r"(?:pass(?:word|wd|phrase)?|psk|sae_password|(?<=option[ ])(?:key|key[1-4]|pincode))[ \t]{1,16}(?P<quote>[\"'])(?P<secret>[^\s\"'$]{4,80})(?P=quote)[ \t]{0,4};?[ \t]{0,4}(?=\r?\n|\Z|//|[#;])",
    re.IGNORECASE,
)
_BEGINS_SETTING = re.compile(
    r"[ \t]{0,24}(?:[-*][ ])?(?:(?:option|set|seta|sets|con)[ ])?(?!(?:require|invalid|wrong|the|a)_)(?:[\w.-]{1,40}[_.-])?\Z",
    re.IGNORECASE,
)


def _in_line_of_setting(text: str, at: int) -> Span | None:
    match = _LINE_OF_SETTING.match(text, at)
    if match is None or _BEGINS_SETTING.fullmatch(text, line_start(text, at, 70), at) is None:
        return None
    return match.span("secret") if secret_values.is_given(match["secret"]) else None


# --- service: alarm_control_panel.alarm_disarm, and below it code: "8802"

_CODE_OF_ALARM = re.compile(
    r"(?<![\w.-])codes?[\"']?:[ ]{0,2}(?:\n[ \t]{1,12}-[ ])?[\"']?(?P<secret>[0-9]{4,10}|[0-9A-Za-z]{0,8}[0-9][0-9A-Za-z#*]{3,12})[\"']?[ \t]{0,4}(?=\n|\Z|[,}#])"
)


# --- <entry name="adminPw">Kolibri9vlucht</entry>

_ELEMENT = re.compile(
    r"(?:pw|pwd|pass|passwd|password|secret|token|api_?key|psk)[\"'][^<>\n]{0,40}>(?P<secret>[^<>\s]{6,200})</",
    re.IGNORECASE,
)


def _element(text: str, at: int) -> Span | None:
    match = _ELEMENT.match(text, at)
    if match is None or secret_values.is_reference(match["secret"]):
        return None
    is_named = re.search(r"<[\w:.-]{1,30}[ ][^<>\n]{0,60}\Z", text[max(0, at - 90) : at]) is not None
    return match.span("secret") if is_named and secret_values.is_strong(match["secret"]) else None


# --- wireless.default_radio0.key='Kolibri9vlucht'

_WIRELESS = _behind(
    r"(?:wireless\.[\w@\[\].-]{1,60}\.(?:key[1-4]?|sae_password|wpa_psk|(?:auth|acct|priv_key)_(?:secret|pwd)|password)[ ]?=)[ ]?['\"]?(?P<secret>(?!s:)[^\s'\"]{8,63})(?=['\"]?\s|['\"]?\Z)",
    strong=False,
)

# --- auth: { user: 'ann@example.org', pass: 'KXWQVRTZ...' }: sixteen letters without a digit, as mail providers issue them

_MAIL_LETTERS = re.compile(
    r"pass(?:word)?['\"]?[ ]?(?:[:=]|=>)[ ]?['\"](?P<secret>[A-Z]{16}|[a-z]{16})['\"]", re.ASCII
)


def _of_mail(text: str, at: int) -> Span | None:
    match = _MAIL_LETTERS.match(text, at)
    is_one = match is not None and randomness.is_jumble(match["secret"].lower())
    is_one = is_one and "abcd" not in text[at : at + 40].lower()
    return match.span("secret") if match is not None and is_one else None


# --- {type: vless, uuid: ...}: the number is all that a node of a proxy asks for

_NODE = re.compile(
    rf"(?:uuid|(?<=[\"'])id)[\"']?[ ]?[:=][ ]?[\"']?(?P<secret>{_UUID.pattern})(?![\w-])",
    re.IGNORECASE,
)
_OF_NODE = re.compile(
    r"\b(?:vmess|vless|tuic|vnext|v2ray|xray)\b|alter_?id|xtls-rprx|\"flow\"[ ]?:", re.IGNORECASE
)


def _node(text: str, at: int) -> Span | None:
    match = _NODE.match(text, at)
    if match is None or _OF_NODE.search(text, max(0, at - 240), match.end() + 160) is None:
        return None
    return match.span("secret")


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


RULES = (
    Rule("wireless-key", "password", ("wireless.",), _WIRELESS),
    Rule("mail-letters", "password", ("pass",), _of_mail, needs=Nearby(re.compile("[\"'](?:[A-Z]{16}|[a-z]{16})[\"']"), 0, 20, 18)),
    Rule("node-of-proxy", "token", ("uuid", 'id"', "id'"), _node, needs=Nearby(re.compile("[0-9A-Fa-f]{8}-"), 0, 24, 9)),
    Rule("snmp-community-set", "password", ("snmp-server community", "snmp community", "snmp-agent community", "rocommunity", "rwcommunity"), _community),
    Rule(
        "odbc-password",
        "password",
        ("pwd={", "password={"),
        _behind(r"(?:pwd|password)=\{(?P<secret>[^{}\n]{4,120})\}"),
        needs=Nearby(re.compile("(?i:uid|server|driver|database|user|dsn)"), 160, 160, 8),
    ),
    Rule("char-array", "password", (".tochararray()",), _char_array),
    Rule(
        "salt-of-site",
        "key",
        ("auth_key'", "secure_auth_key'", "logged_in_key'", "nonce_key'", "auth_salt'", "logged_in_salt'", "nonce_salt'"),
        _behind(r"[a-z_]{8,15}'[ ]{0,12},[ ]{0,12}'(?P<secret>(?=[^'\n]{0,90}[0-9])[^'\n]{32,128})'", strong=False),
    ),
    Rule(
        "password-in-row",
        "password",
        ("pw'", "pwd'", "pass'", "passwd'", "password'", "secret'", "token'", "api_key'", "apikey'", "access_key'"),
        _PAIR_OF_ROW,
        needs=Nearby(re.compile(r"(?i:values|update\s|replace\s|insert\s|settings|options|config)"), 240, 0, 8),
    ),
    Rule("password-hashed-here", "password", ("md5(", "sha1(", "sha2(", "sha256(", "sha512(", "hash(", "bcrypt(", "password(", "crypt("), _hashed),
    Rule("password-set-by-name", "password", ("set ",), _set_by_name, needs=Nearby(re.compile("(?i:where)[ ]"), 0, 340, 6)),
    Rule("password-of-erlang", "password", ('pass, <<"', 'pass,<<"', 'password, <<"', 'passwd, <<"', 'password,<<"', 'secret, <<"'), _behind(r"[a-z]{4,8}[ ]?,[ ]?<<\"(?P<secret>[^\"\n]{4,120})\"", given=True)),
    Rule("password-of-snmp-user", "password", ("createuser ", " v3 auth "), walk=sought(_OF_SNMP_USER, behind=160, width=100, is_one=secret_values.is_given)),
    Rule("line-of-setting", "password", ("pass", "psk", "option key"), lambda text, at: _in_line_of_setting(text, at + 7 if text.startswith("option ", at) else at), needs=Nearby(re.compile("[\"'][ \t]{0,4};?[ \t]{0,4}(?:\n|\\Z|[/#;])"), 0, 140, 12)),
    Rule("password-of-phone", "password", ("<p2>", "<p34>", "<p196>", "<p406>", "<p506>", "<p606>"), _behind(r"<p[0-9]{1,3}>(?P<secret>[^<>\s]{4,64})</p")),
    Rule("code-of-alarm", "code", ("alarm_disarm", "alarm_arm", "alarm_control_panel", "lock.unlock", "lock.lock"), walk=sought(_CODE_OF_ALARM, behind=240, width=60)),
    Rule("session-of-site", "cookie", _NAMES_OF_COOKIES, _of_session, needs=Nearby(DIGIT, 0, 90)),
    Rule("session-text", "token", _SESSIONS, _session_text, needs=Nearby(re.compile(r"[\w-]{120}", re.ASCII), 0, 80, 120)),
    Rule("api-hash", "key", ("api_hash", "app_hash"), _behind(r"(?:api|app)_hash[\"']?[ ]?[:=][ ]?[\"']?(?P<secret>[0-9a-f]{32})(?![0-9a-f])")),
)  # fmt: skip
"""Settings of networks, lines of databases and code, and sessions."""
DEVICES_AND_GAMES = (
    Rule(
        "device-line",
        "password",
        ("enable secret", "enable password", "tacacs", "radius", "crypto isakmp key", "pre-shared-", "wpa-psk", "key-string", "authentication-key", "message-digest-key", "neighbor ", "chap password", "pap sent-username", "set password", "set psksecret", "set secret", "standby ", "wpa-pass", "wpa2-pass", "shared-secret", "snmpwalk", "snmpget", "snmpset", "snmpbulkwalk"),
        _of_device,
    ),
    Rule("element-named", "password", ('pw"', 'pwd"', 'pass"', 'passwd"', 'password"', 'secret"', 'token"', 'api_key"', 'apikey"', 'psk"', "pw'", "password'"), _element, needs=Nearby(re.compile(">"), 0, 60)),
    Rule("keystore-password", "password", ("storepassword ", "keypassword ", "storepass ", "keypass "), _behind(r"(?:store|key)pass(?:word)?[ ][\"']?(?P<secret>[^\s\"']{6,64})")),
    Rule("rcon-password", "password", ("rcon",), _behind(r"rcon[ _.]?(?:password|pw|pass)?[\"']?[ ]?(?:[:=]|is)[ ]?[\"']?(?P<secret>[^\s\"']{6,64})")),
    Rule("stream-key-said", "key", ("stream key", "streamkey", "stream_key", "推流密钥", "串流密钥"), _behind(r"(?:stream[ _]?key|[推串]流密钥)(?:[ ]is)?[ ]?[:=：]?[ ]?[\"']?(?P<secret>[a-z0-9]{4}(?:-[a-z0-9]{4}){3,4}|(?=[A-Za-z_-]{0,40}[0-9])[\w-]{20,80})(?![\w-])")),
    Rule("esim-code", "code", ("lpa:1$",), _behind(r"lpa:1\$[\w.-]{4,80}\$(?P<secret>[A-Z0-9-]{6,64})")),
    Rule("salt-named", "key", ("hash_salt'", "blowfish_secret'", "secret_salt'", "cookie_secret'", "app_secret'"), _behind(r"[a-z_]{8,18}'\]?[ ]?(?:=>?|,)[ ]?'(?P<secret>[^'\n]{16,128})'"), needs=Nearby(DIGIT, 0, 60)),
)  # fmt: skip
"""Lines of devices, elements and settings by their names."""
MOUNTS = (
    Rule("mount-option", "password", ("pass=", "password=", "passwd=", "pwd=", "pw="), _mounted, needs=Nearby(re.compile(","), 90, 80)),
)  # fmt: skip
"""Options of a mount."""
PPP = (Rule("ppp-secret", "password", ('* "', '*\t"'), _of_ppp),)
"""Lines of users of PPP."""
COOKIES_BY_NAME = (
    Rule("session-cookie", "cookie", ("sessdata=", "bili_jct="), in_place(r"[a-z_]{8}=(?P<secret>[\w%*.,-]{16,200})")),
)  # fmt: skip
"""Cookies that one site names so."""
