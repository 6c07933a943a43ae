"""Finds secrets at fixed positions in the output of tools, devices and exports: 'Key Content : ...'."""

import re

from memd.redact.rule import Nearby, Rule, Span, matching
from memd.redact.values import secret_values
from memd.redact.values.fixed_places import in_place


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
        in_place(rf"(?:{'|'.join(_WIFI_LABELS)})[ \t]{{0,20}}[:：][ ]{{0,3}}(?P<secret>[^\s][^\n]{{6,62}}?)[ \t\r]{{0,8}}(?=\n|\Z)"),
    ),
    Rule(
        "wifi-key-printed",
        "password",
        ("无线网络密钥", "无线密钥", "wifi密钥"),
        in_place(r"(?:无线网络|无线|wifi)密钥[ ]?[:：][ ]?(?P<secret>[!-~]{8,63})"),
    ),
    Rule("wifi-key-set", "password", ('psk="',), in_place(r'psk="(?P<secret>[^"\n]{8,63})"')),
    Rule(
        "password-entry",
        "password",
        ("<key>password</key>",),
        in_place(r"<key>password</key>\s{0,40}<value[^<>\n]{0,80}>(?P<secret>[^<>\n]{4,400})</value>"),
    ),
    Rule(
        "password-shown",
        "password",
        ("get_password(", "getpassword(", "getpass(", "password']", 'password"]', "passwd']", "pwd']"),
        _shown,
        needs=Nearby(re.compile(r"\n"), 0, 180),
    ),
    Rule("machine-key", "key", ('validationkey="', 'decryptionkey="'), in_place(r'[a-z]{10}key="(?P<secret>[0-9a-f]{32,256})[",]')),
)  # fmt: skip
"""What consoles print, devices show and exports have."""
KEYS_AND_PASSWORDS_MADE = (
    Rule(
        "key-in-bytes",
        "key",
        ("key: [", "key = [", "key=[", 'key": [', 'key":['),
        in_place(rf'key"?[ ]?[:=][ ]?(?P<secret>\[(?:{_BYTE},){{15,63}}{_BYTE},?\s{{0,20}}\])'),
    ),
    Rule("server-auth-named", "password", ("auth default ",), in_place(r"auth[ ]default[ ](?P<secret>[!-~]{8,128})", strong=True)),
    Rule(
        "password-made",
        "password",
        ("new value: ",),
        in_place(r"new value:[ ](?P<secret>[\w+*=.-]{16,40})(?=\s|\Z)"),
        needs=Nearby(re.compile("password", re.IGNORECASE), 120, 0, 8),
    ),
)  # fmt: skip
"""What is printed when it is made or set."""
CIPHERS = (
    Rule(
        "switch-cipher",
        "password",
        ("irreversible-cipher ", "community write cipher ", "community read cipher "),
        in_place(r"[a-z -]{10,17}cipher[ ](?P<secret>[!-~]{8,128})", strong=True),
    ),
)
"""What a switch shows."""
CRACKED = (Rule("key-cracked", "password", ("key found!",), matching(_CRACKED)),)
"""What a program prints that has found a password."""
