"""Finds keys that are printed on a label or a receipt: of licences and vouchers, and the network key of a router."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, matching
from memd.redact.words.secret_words import either

# Groups of capitals and digits, of licences, vouchers and encrypted disks.
_GROUPS = re.compile(
    r"(?:key|/ipk|licen[cs]e|serial|activation|product|voucher|coupon|gift card|(?:wallet|gift|redeem|redemption) code|recovery code|序列号|激活码|注册码|授权码|卡密|兑换码|产品密钥|恢复代?码)(?:[^\n]{0,60}+\n)?[^\n]{0,60}?"
    r"(?<![A-Za-z0-9_-])(?P<secret>(?=[A-Z-]{0,40}[0-9])(?:(?:[A-Z]{2}-)?[A-Z0-9]{4,8}(?:-[A-Z0-9]{4,8}){3,8}|[A-Z0-9]{5}(?:-[A-Z0-9]{5}){2}))(?![\w-])",
    re.IGNORECASE,
)
_UUID = re.compile(r"[0-9A-F]{8}-(?:[0-9A-F]{4}-){3}")


def _groups(text: str, at: int) -> Span | None:
    match = _GROUPS.match(text, at)
    if match is None or match["secret"] != match["secret"].upper() or _UUID.match(match["secret"]):
        return None
    return match.span("secret")


# The digits that a router has on its label: WLAN-Netzwerkschlüssel (WPA2) 5519 2038 4471 9026 3318
_OF_NETWORK = (
    "netzwerkschlüssel", "wlan-schlüssel", "wlan schlüssel", "wlan-key", "wlan key", "wpa2", "wpa-psk", "wpa psk", "wpa key", "wpa-key", "wifi key", "wi-fi key",
    "wifi-key", "security key", "network key", "clé wifi", "clé du wifi", "clé wi-fi", "clé du wi-fi", "clé wpa", "clé de sécurité", "clave wpa", "clave wifi", "clave de red", "chiave wifi", "chiave wpa",
    "网络密钥", "無線キー", "暗号化キー", "무선 키",
)  # fmt: skip
_NETWORK_KEY = re.compile(
    rf"(?:{either(_OF_NETWORK)})[^\n0-9]{{0,16}}(?:[(（][^()（）\n]{{1,12}}[)）])?[^\n0-9]{{0,40}}?(?<![\w.,/-])(?P<secret>[0-9]{{4}}(?:[ ][0-9]{{4}}){{3,4}}|[0-9]{{16,24}}|(?-i:(?=[A-Z-]{{0,28}}[0-9])[A-Z0-9]{{4}}(?:-[A-Z0-9]{{4}}){{2,5}})|(?-i:(?=[A-F]{{0,19}}[0-9])(?=[0-9]{{0,19}}[A-F])[0-9A-F]{{16,26}}))(?![\w-]|[ ][0-9])",
    re.IGNORECASE,
)

LICENCE_KEYS = (
    Rule(
        "key-groups",
        "key",
        ("key", "/ipk", "licen", "serial", "activation", "product", "voucher", "wallet code", "gift code", "redeem", "recovery code", "序列号", "激活码", "注册码", "授权码", "卡密", "兑换码", "恢复"),
        _groups,
        needs=Nearby(re.compile("-[A-Z0-9]{4,8}-"), 0, 140, 10),
    ),
)  # fmt: skip
"""Keys in groups."""
NETWORK_KEYS = (
    Rule("network-key-digits", "password", _OF_NETWORK, matching(_NETWORK_KEY), needs=Nearby(DIGIT, 0, 60)),
)
"""What a router has on its label."""
