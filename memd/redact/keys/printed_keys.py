"""Finds keys that are printed on a label or a receipt: of licences, games and vouchers, and the network key of a router."""

import re

from memd.redact.rule import DIGIT, Nearby, Rule, Span, line_end, matching
from memd.redact.values import secret_candidates
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


# --- "humble bundle leftover for Sam: VDBXM-LR5XY-32ISQ": keys of games

_GAME_KEY = re.compile(
    r"(?<![\w-])(?P<secret>(?=[A-Z-]{0,17}[0-9])(?=[0-9-]{0,17}[A-Z])[A-Z0-9]{5}(?:-[A-Z0-9]{5}){2,4})(?![\w-])"
)


def _of_game(text: str, at: int) -> Span | None:
    match = _GAME_KEY.search(text, at, line_end(text, at, 120))
    return None if match is None else match.span("secret")


# --- on the label of a router: "hinten am Router: 22880499425417305413", "Pour la box, c'est B4AA42B81074A6E3A0112A152B"

_BOXES = ("wlan", "wifi", "wi-fi", "router", "routeur", "fritz", "livebox", "freebox", "bbox", "la box", "modem", "speedport", "easybox", "easy box", "路由", "ルーター", "роутер", "вайфай")  # fmt: skip
_ON_LABEL = re.compile(
    r"(?:[:：=]|(?:c['’]est|is|it['’]?s|ist|lautet|es|è|é|est|это)(?=[ ]))[ ]{1,2}[\"'“`]?(?P<secret>[0-9]{16,20}|(?=[A-F]{0,25}[0-9])(?=[0-9]{0,25}[A-F])(?:[0-9A-F]{26}|[0-9A-F]{20}|[0-9A-F]{16}))(?![\w-]|[ ][a-z])"
)
_NUMBER_OF_DEVICE = re.compile(
    r"s/?n\b|serial|imei|iccid|\bmac\b|model|serien|série|serie|account|customer|contract|kunden|client|vertrag|contrat|序列号|серийн|order|tracking|ref",
    re.IGNORECASE,
)


def _on_label(text: str, at: int) -> Span | None:
    match = _ON_LABEL.search(text, at, line_end(text, at, 130))
    if match is None or _NUMBER_OF_DEVICE.search(text, max(at - 30, 0), match.start()) is not None:
        return None
    return match.span("secret") if len(set(match["secret"])) > 5 else None


# --- on the label of a device: "Acc. key ZK3M8PW2", "Wireless Kcy  a9F3cTx6dLmp"

_OF_DEVICES = ("acc", "acc.", "access", "network", "netw", "netw.", "ntwk", "net", "wlan", "wireless", "wifi", "wi-fi", "wpa", "wpa2", "router", "hub", "box", "dongle", "device")  # fmt: skip
_LABELS = ("key", "kcy", "k3y", "pwd", "passwd", "passw0rd", "passcode")
_ON_LABEL_OF_DEVICE = re.compile(
    rf"(?<![A-Za-z])(?:{either(_OF_DEVICES)})[ ](?:{either(_LABELS)})(?:[ ]?[:=]|[ ]is)?[ \t]{{1,6}}(?P<secret>(?=[A-Za-z]{{0,25}}[0-9])(?=[0-9]{{0,25}}[A-Za-z])[A-Za-z0-9]{{8,26}})(?![\w.-])",
    re.IGNORECASE | re.ASCII,
)


def _on_label_of_device(text: str, at: int) -> Span | None:
    match = _ON_LABEL_OF_DEVICE.match(text, at)
    if match is None or secret_candidates.names_thing(match["secret"]):
        return None
    digits = len(DIGIT.findall(match["secret"]))
    return match.span("secret") if 1 < digits < len(match["secret"]) - 1 else None


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
KEYS_OF_GAMES = (
    Rule("key-of-game", "key", ("humble", "steam", "gog", "epic games", "bundle", "office 20", "office:", "windows 1", "windows:", "parallels", "vmware", "kaspersky", "norton", "redeem", "game key", "cd key", "cd-key", "leftover", "spare key", "兑换", "激活"), _of_game, needs=Nearby(re.compile("[A-Z0-9]{5}-[A-Z0-9]{5}-"), 0, 120, 12)),
)  # fmt: skip
"""Keys in groups, beside the shop or the program."""
KEYS_OF_ROUTERS = (
    Rule("key-of-router", "password", _BOXES, _on_label, needs=Nearby(re.compile("[0-9A-F]{16}"), 0, 130, 16)),
)  # fmt: skip
"""A network key that nothing names, beside the router."""
ON_LABEL = (
    Rule("key-on-label", "password", tuple(f"{what} {label}" for what in _OF_DEVICES for label in _LABELS), _on_label_of_device, needs=Nearby(re.compile("[A-Za-z][0-9]|[0-9][A-Za-z]"), 0, 60, 2, has_digit=True)),
)  # fmt: skip
"""Keys on the label of a device, whose label may be read wrongly."""
