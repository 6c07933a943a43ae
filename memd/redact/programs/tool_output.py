"""Finds secrets at fixed positions in the output of tools, devices and exports: 'Key Content : ...'."""

import re

from memd.redact.rule import Find, Nearby, Rule, Span, matching
from memd.redact.values import secret_values


def _at(written: str, *, strong: bool = False) -> Find:
    """Return a Find for the group "secret" of a pattern; references to secrets are left out.

    Args:
        written: The pattern.
        strong: Whether the secret must have letters and digits, since a word may be at that position.
    """
    pattern = re.compile(written, re.IGNORECASE)

    def find(text: str, at: int) -> Span | None:
        match = pattern.match(text, at)
        if match is None or secret_values.is_reference(match["secret"]):
            return None
        if strong:
            return secret_values.strong_span(text, *match.span("secret"))
        return match.span("secret")

    return find


def _shown(text: str, at: int) -> Span | None:
    """Return the literal that a console of a language prints below a call for a password."""
    match = _SHOWN.match(text, at)
    return match.span("secret") if match is not None and secret_values.is_given(match["secret"]) else None


_SHOWN = re.compile(
    r"(?:get_?pass(?:word)?\([^\n]{0,160}\)|[\w.]{0,20}(?:pass(?:word|wd)|pwd)[\"']\])[ \t]{0,4}\n[ \t]{0,4}(?:=>[ ]|Out\[[0-9]{1,4}\]:[ ])?(?P<quote>[\"'])(?P<secret>[^\s\"']{4,128})(?P=quote)[ \t]{0,4}(?=\n|\Z)",
    re.IGNORECASE,
)
_WIFI_LABELS = (
    "key content",
    "关键内容",
    "schlüsselinhalt",
    "contenu de la clé",
    "contenido de la clave",
    "contenuto chiave",
)
_BYTE = r"\s{0,20}(?:0x)?[0-9a-f]{1,3}"
# redis-cli shows the address of its server, or that there is none, before what is typed.
_REDIS = re.compile(
    r"(?:\A|\n|[ \t`])(?:[\w.-]{1,60}:[0-9]{2,5}|redis[^\s>]{0,60}|not connected)(?:\[[0-9]{1,2}\])?\Z"
)
_AUTH = re.compile(
    r"> auth[ ]{1,2}(?:[\w.@-]{1,40}[ ]{1,2})?(?P<quote>[\"'])?(?P<secret>(?(quote)[^\"'\n]{4,200}|[^\s\"']{4,200}))(?(quote)[\"'])[ \t]{0,4}(?=\n|\Z|`)",
    re.IGNORECASE,
)


def _at_redis(text: str, at: int) -> Span | None:
    match = _AUTH.match(text, at)
    if match is None or _REDIS.search(text, max(0, at - 66), at) is None:
        return None
    return None if secret_values.is_reference(match["secret"]) else match.span("secret")


_CRACKED = re.compile(r"key found![ ]?\[[ ]?(?P<secret>[^\]\n]{5,120}?)[ ]?\]", re.IGNORECASE)


RULES = (
    Rule("redis-auth-typed", "password", ("> auth ",), _at_redis),
    Rule(
        "wifi-key-shown",
        "password",
        _WIFI_LABELS,
        _at(rf"(?:{'|'.join(_WIFI_LABELS)})[ \t]{{0,20}}[:：][ ]{{0,3}}(?P<secret>[^\s][^\n]{{6,62}}?)[ \t\r]{{0,8}}(?=\n|\Z)"),
    ),
    Rule(
        "wifi-key-printed",
        "password",
        ("无线网络密钥", "无线密钥", "wifi密钥"),
        _at(r"(?:无线网络|无线|wifi)密钥[ ]?[:：][ ]?(?P<secret>[!-~]{8,63})"),
    ),
    Rule("wifi-key-set", "password", ('psk="',), _at(r'psk="(?P<secret>[^"\n]{8,63})"')),
    Rule(
        "password-entry",
        "password",
        ("<key>password</key>",),
        _at(r"<key>password</key>\s{0,40}<value[^<>\n]{0,80}>(?P<secret>[^<>\n]{4,400})</value>"),
    ),
    Rule(
        "password-shown",
        "password",
        ("get_password(", "getpassword(", "getpass(", "password']", 'password"]', "passwd']", "pwd']"),
        _shown,
        needs=Nearby(re.compile(r"\n"), 0, 180),
    ),
    Rule("machine-key", "key", ('validationkey="', 'decryptionkey="'), _at(r'[a-z]{10}key="(?P<secret>[0-9a-f]{32,256})[",]')),
    Rule("session-cookie", "cookie", ("sessdata=", "bili_jct="), _at(r"[a-z_]{8}=(?P<secret>[\w%*.,-]{16,200})")),
    Rule(
        "key-in-bytes",
        "key",
        ("key: [", "key = [", "key=[", 'key": [', 'key":['),
        _at(rf'key"?[ ]?[:=][ ]?(?P<secret>\[(?:{_BYTE},){{15,63}}{_BYTE},?\s{{0,20}}\])'),
    ),
    Rule("server-auth-named", "password", ("auth default ",), _at(r"auth[ ]default[ ](?P<secret>[!-~]{8,128})", strong=True)),
    Rule(
        "password-made",
        "password",
        ("new value: ",),
        _at(r"new value:[ ](?P<secret>[\w+*=.-]{16,40})(?=\s|\Z)"),
        needs=Nearby(re.compile("password", re.IGNORECASE), 120, 0, 8),
    ),
    Rule("database-login", "password", ("disql ",), _at(r"disql[ ][\"']?[\w$]{1,40}/(?P<quote>(?:\\?[\"']){1,3})?(?P<secret>(?(quote)[^\s\"'\\]{4,64}|[^\s@\"'/\\]{4,64}))(?=(?:\\?[\"']){1,3}|@|\s|\Z)")),
    Rule(
        "key-passphrase",
        "password",
        ("ssh-keygen",),
        _at(r"ssh-keygen\b[^\n|;&]{0,120}?[ ]-[NP][ ](?P<quote>[\"'])(?P<secret>[^\"'\n$]{4,100})(?P=quote)"),
    ),
    Rule(
        "disk-passphrase",
        "password",
        ("echo ", "printf "),
        _at(r"(?:echo[ ](?:-n[ ])?|printf[ ])(?P<quote>[\"'])(?P<secret>[^\"'\n$]{4,100})(?P=quote)[ ]?\|[ ]?(?:sudo[ ])?cryptsetup\b"),
        needs=Nearby(re.compile("cryptsetup"), 0, 140, 10),
    ),
    Rule(
        "switch-cipher",
        "password",
        ("irreversible-cipher ", "community write cipher ", "community read cipher "),
        _at(r"[a-z -]{10,17}cipher[ ](?P<secret>[!-~]{8,128})", strong=True),
    ),
    Rule("proxy-address", "url-password", ("ss://",), _at(r"(?<![a-z])ss://(?P<secret>[\w+/-]{16,200}={0,2})(?=[@#]|\s|\Z)")),
    Rule("calendar-address", "url-token", ("/private-",), _at(r"/private-(?P<secret>[0-9a-f]{32})(?=/basic\.ics)")),
    Rule("node-address", "url-token", (".alchemy.com/v2/",), _at(r"\.alchemy\.com/v2/(?P<secret>[\w-]{24,48})(?![\w-])")),
    Rule(
        "panel-path",
        "url-token",
        ("面板地址", "面板入口", "安全入口", "访问路径"),
        _at(r"[面安访][板全问][地入路][址口径][ ]?[:：]?[ ]?`?(?:https?://[^\s/]{4,80})?/(?P<secret>(?=[a-z]{0,31}[0-9])[a-z0-9]{6,32})/?`?(?=[\s，。,]|\Z)"),
    ),
    Rule("zhipu-key", "key", ("智谱", "zhipu"), _at(r"(?:智谱|zhipu)[^\n]{0,40}?(?<![\w.])(?P<secret>[0-9a-f]{32}\.[a-z0-9]{16})(?!\w)")),
    Rule(
        "password-mistyped",
        "password",
        ("passwrod", "passowrd", "pasword", "passwod", "passsword"),
        _at(r"pass?s?w?(?:rod|owrd|word|wod|od)(?:[ ](?:for|to|of)(?:[ ][\w.-]{1,20}){1,4}?)?(?:[ ]is|[ ]?[:=])[ ][\"'`]?(?P<secret>[!-~]{6,64})", strong=True),
    ),
)  # fmt: skip
"""The output and the input of tools, devices and exports."""
CRACKED = (Rule("key-cracked", "password", ("key found!",), matching(_CRACKED)),)
"""What a program prints that has found a password."""
