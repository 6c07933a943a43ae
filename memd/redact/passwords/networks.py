"""Finds the word that a card or a note for guests has for a network: 'Internet "Green House" / "driftwood"', "Wi-Fi: Harbour" and "Code: driftwood" below."""

import re

from memd.redact.rule import Nearby, Rule, Span
from memd.redact.values import secret_values
from memd.redact.words.secret_words import SECRET_WORDS, either

# A passphrase of a network has eight characters at least.
_QUOTED_NETWORK = re.compile(
    r"(?:wi-?fi|wlan|internet)(?:[ ]\w{1,16})?[ ]?:?[ ][\"“„](?P<name>[^\"“”\n]{1,32})[\"”“][ ]?[/|][ ]?[\"“„](?P<secret>[^\s\"“”]{8,63})[\"”“](?=[.,;!)]|[ \t]{0,4}(?:\n|\Z))",
    re.IGNORECASE,
)
_LABELLED_NETWORK = re.compile(
    r"(?:(?P<wifi>wi-?fi|wlan|ssid)|network|misafir[ ]ağı|kablosuz[ ]ağ|réseau|rede|rete|red|netz(?:werk)?|sieć|сеть|verkko|nätverk|netværk|netwerk)(?:[ ](?:name|guests?|gäste|invités|ospiti|invitados|goście))?[ ]?[:：][ ]{0,2}(?P<name>[^\n/|:,;]{1,32}?)(?:[ ]?[/|][ ]|[ ][–-][ ]|[,;][ ]|[ \t]{0,4}\n[ \t>*•-]{0,8})"
    rf"(?:(?(wifi)(?:code|kode|kod|koodi|key)(?=[ ]?:[ ]{{0,3}}(?-i:[a-z]))|(?!))|password|pass|pw|pwd|clave|{either(SECRET_WORDS.passwords)})[ ]?[:：][ ]{{0,3}}(?P<secret>[^\W\d_]{{8,63}})[.]?[ \t]{{0,4}}(?=\n|\Z)",
    re.IGNORECASE,
)


# What is to be done for it: "clave: preguntar".
_TO_DO = (
    "preguntar",
    "solicitar",
    "pedir",
    "consultar",
    "perguntar",
    "demander",
    "chiedere",
    "domandare",
    "fragen",
    "vragen",
    "zapytać",
)


def _of_card(text: str, at: int) -> Span | None:
    """Return the word that a card names for a network."""
    quoted = _QUOTED_NETWORK.match(text, at)
    if quoted is not None:
        return None if secret_values.is_reference(quoted["secret"]) else quoted.span("secret")
    match = None if text[at - 1 : at].isalpha() else _LABELLED_NETWORK.match(text, at)
    if match is None:
        return None
    said = match["secret"].lower()
    is_one = (
        secret_values.may_be_plain(said)
        and not secret_values.is_participle(said)
        and not said.endswith(_TO_DO)
    )
    return match.span("secret") if is_one else None


RULES = (
    Rule(
        "network-of-card",
        "password",
        ("wifi", "wi-fi", "wlan", "internet", "ssid", "network", "misafir ağı", "kablosuz ağ", "réseau", "rede", "rete", "red:", "netz", "sieć", "сеть", "verkko", "nätverk", "netværk", "netwerk"),
        _of_card,
        needs=Nearby(re.compile("[:：/|,–-][ ]"), 0, 90, 2),
    ),
)  # fmt: skip
