"""Passwords in sentences about logging in."""

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        ("Log in as admin with LX9dg2DYy5^0", "LX9dg2DYy5^0"),
        ("RDP into 10.2.0.7 with Administrator:Lz9!mZhJJD", "Lz9!mZhJJD"),
        ("staging -> qa@acme.io -> Purpl3258", "Purpl3258"),
        ("for the demo account it's demo@acme.io, Sr9lJkU@*OgS", "Sr9lJkU@*OgS"),
        ("测试环境登录：test01/Lantern_Maple20", "Lantern_Maple20"),
        ('Just type "walnut-ginger-50" when it asks for the sudo password.', "walnut-ginger-50"),
        ("tried ginger-canyon-47 for the printer and it works", "ginger-canyon-47"),
        ("1Password master: tiger-monkey-cobalt-harbor", "tiger-monkey-cobalt-harbor"),
        ("登录后台就用 Copper33!lamp ，别外传", "Copper33!lamp"),
        ("we unlock the drive with harbor cobalt meadow timber", "harbor cobalt meadow timber"),
        ("wifi: Birkenweg / apfelmus mit zimt", "apfelmus mit zimt"),
        ("guests: Haus-Gast / willkommen22", "willkommen22"),
        ("QR: WIFI:T:WPA;S:Casa;P:sardinha2024;H:false;;", "sardinha2024"),
        ("WLAN-Netzwerkschlüssel (WPA2): 1882 0553 9779 2639 5575", "1882 0553 9779 2639 5575"),
        ('"metrics" "7PdCCFqwP3yEZjn"', "7PdCCFqwP3yEZjn"),
        ("Amazon - tomk@example.org - Laterne_33x", "Laterne_33x"),
        (
            "you can use our login marlies@example.org, password Dackel&Schnauzer but only today",
            "Dackel&Schnauzer",
        ),
        ("You unlock it with harbor cobalt meadow timber", "harbor cobalt meadow timber"),
    ],
)
def test_passwords_go(text: str, secret: str) -> None:
    """Those that no word right before them names."""
    redacted = _REDACTOR.redact(text).text
    assert redacted == text.replace(secret, "[REDACTED:password]")


@table(
    "text",
    [
        "log in with GitHub or with Python3.12",
        "sign in with react@18.2.0 pinned",
        "the login page of ann@example.org, Room 214",
        "the admin of C++17 and of F#12 logs in",
        "User2#getName24 is called when one logs in",
        "root:x:0:0:root:/root:/bin/bash",
        "admin/UserList22.vue has the login form",
        "password manager 1Password8 for iOS17",
        "tried python3-venv for the build and it works",
        "use npm@10.2.4 to log in to the registry",
        "_ZNKSt10filesystem4path13has_root_nameEv@@GLIBCXX_3.4.26",
        "wifi: 2.4 GHz / 5 GHz",
        "Wifi: slow / fast",
        '"name" "value"',
        "see Ann - ann@example.org - tomorrow",
        'type "yes" when it asks for the password',
    ],
)
def test_other_words_stay(text: str) -> None:
    """Versions, addresses, methods, files and symbols of libraries."""
    assert _REDACTOR.redact(text).text == text
