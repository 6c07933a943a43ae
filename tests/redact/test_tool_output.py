"""Places that a tool, a device or an export has for a secret."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        ("    Key Content            : 73631000292908793501\n", "73631000292908793501"),
        ("    关键内容            : taoyuan_XI870", "taoyuan_XI870"),
        ("默认无线网络密钥: lgqnbqrm", "lgqnbqrm"),
        ('    psk="18344101599640431014"', "18344101599640431014"),
        (
            '<Key>Password</Key><Value ProtectInMemory="True">ZEX289sX-TW9ThAx</Value>',
            "ZEX289sX-TW9ThAx",
        ),
        (
            '<machineKey validationKey="87928053B7622EFDA83661CC5D65771C" />',
            "87928053B7622EFDA83661CC5D65771C",
        ),
        (
            "cookie: SESSDATA=2edb1913%2C1765430012%2C62ce0%2A61; bili_jct=1",
            "2edb1913%2C1765430012%2C62ce0%2A61",
        ),
        (
            "network_key: [141, 223, 30, 192, 135, 122, 194, 105, 235, 69, 158, 229, 170, 52, 247, 120]",
            "141, 223",
        ),
        ("6379> AUTH default 4hnUvtSyyasSQwoblnDZ", "4hnUvtSyyasSQwoblnDZ"),
        (
            "Password for the [elastic] user was reset.\nNew value: MCJokkiY34uWLD-Iwv+Q",
            "MCJokkiY34uWLD-Iwv+Q",
        ),
        ("local-user ann password irreversible-cipher Rl4cFZ_nWP0", "Rl4cFZ_nWP0"),
        ("snmp-agent community write cipher e_1ibVKHIu", "e_1ibVKHIu"),
        ("username ann privilege 15 password 0 Ch4mois!peak", "Ch4mois!peak"),
        ("智谱的：ffa81fe5a09c72ba93151c215726a8ad.JALSTYOH0jQgcILe", "JALSTYOH0jQgcILe"),
        ("teh passwrod for the vpn is Cinder-cone8 sorry", "Cinder-cone8"),
    ],
)
def test_what_stands_there_goes(text: str, secret: str) -> None:
    """Whole, and what says what it is stays."""
    redacted = _REDACTOR.redact(text).text
    assert secret not in redacted
    assert redacted.startswith(text[:4])


@pytest.mark.parametrize(
    "text",
    [
        "    Security key           : Present\n    Key Content            : \n",
        "Key content is what the page explains.",
        'psk="${WIFI_PSK}"',
        "<Key>UserName</Key><Value>admin</Value>",
        '<machineKey validationKey="AutoGenerate,IsolateApps" />',
        "sort_key: [1, 2, 3]",
        "the setting changed\nNew value: enabled-for-all-users",
        "AUTH default is not set",
        "the pasword for the vpn is wrong",
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    """References, settings, and sentences about such places."""
    assert _REDACTOR.redact(text).text == text
