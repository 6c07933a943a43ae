"""Cards for guests, and answers that cite a note: what stands on the line below."""

from typing import Final

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR: Final = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        ("Wi-Fi: HarbourGuest\nCode: driftwood\nBreakfast 8 to 10", "driftwood"),
        ("WLAN: Moorhof\nKennwort: heidekraut\n", "heidekraut"),
        ("SSID: Casa_Luz\n- clave: girasoles\n", "girasoles"),
        ("— Какой пинкод у карты мамы?\n— 4417, он записан.", "4417"),
        ('user: what is my portal password?\nbot: In your notes it says "Wolf.Heron4".', "Wolf.Heron4"),
        ("Utente: qual è la password del portale?\nAssistente: Nelle note c'è \"Airone.Cenere4\".", "Airone.Cenere4"),
        ('kullanıcı: banka şifrem neydi?\nasistan: Notlarınızda "deniz_feneri73" yazıyor.', "deniz_feneri73"),
        ("ann: whats the vpn pw again\nbo: changed it monday, its now Reeds_1n_Fog\nann: ty", "Reeds_1n_Fog"),
    ],
)  # fmt: skip
def test_what_is_on_the_line_below_goes(text: str, secret: str) -> None:
    """And nothing beside it."""
    redacted = _REDACTOR.redact(text).text
    before, _, after = text.partition(secret)
    assert secret not in redacted
    assert redacted.startswith(before)
    assert redacted.endswith(after)


@table(
    "text",
    [
        "Wi-Fi: connected\nPassword: required",
        "Network: mainnet\nKey: ethereum",
        "Wi-Fi: Guest\nCode: displayed",
        "network: bridge\npassword: encrypted",
        "— Сколько стоит?\n— 7250, дорого",
        "whats the password policy\nits 12chars now",
        'what does the doc say about passwords?\nIt says "min8chars" is too short',
        'what\'s the password field called?\nIn the form it is "user_pw1"',
        'which branch has the login fix?\nIt says "release-2.4"',
        'what does the code say?\nIt says "x1y"',
    ],
)
def test_what_only_looks_like_it_stays(text: str) -> None:
    """States, rules for passwords, prices."""
    assert _REDACTOR.redact(text).text == text
