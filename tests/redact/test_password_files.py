"""Files that keep a user and a password a line."""

from typing import Final

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR: Final = Redactor(Redact())


@table(
    ("text", "secrets"),
    [
        ("#cloud-config\nchpasswd:\n  expire: false\n  list: |\n    root:Heron_on_ice\n    ops:reed-warbler\n", ["Heron_on_ice", "reed-warbler"]),
        ("sudo chpasswd <<EOF\nann:driftwood\nbo:kelp4forest\nEOF\n", ["driftwood", "kelp4forest"]),
        ('# davfs2 secrets\nhttps://cloud.example.org/dav  ann  "nine geese in flight"\n/media/dav bo driftwood\n', ["nine geese in flight", "driftwood"]),
        ("# /etc/openvpn/auth.txt\nann7\nBern5tein.Ufer\n", ["Bern5tein.Ufer"]),
        ("$ cat login.conf\nann\nBern5teinUfer\n", ["Bern5teinUfer"]),
        ("realm=turn.example.org\nuse-auth-secret\nuser=guest:b1rchtwig\n", ["b1rchtwig"]),
        ("# passwd.client\n*.example.cz:klub@example.cz:sok0lovka\n", ["sok0lovka"]),
        ("# sasl_passwd\n[smtp.example.org]:587 orders@example.org:driftwood\n", ["driftwood"]),
        (">>> import keyring\n>>> keyring.get_password('jira', 'ann')\n'reed_warbler'\n>>> ", ["reed_warbler"]),
        ('- service: alarm_control_panel.alarm_disarm\n  data:\n    code: "880219"\n', ["880219"]),
        ("Device\tExt\tVoicemail PIN\nHall\t201\t60419\nDesk\t202\t77136\n", ["60419", "77136"]),
        ("Gerät | Zugang | Passwort\nTor | admin | reiher7\nDVR | admin | 9schilf\n", ["reiher7", "9schilf"]),
    ],
)  # fmt: skip
def test_a_password_goes_from_its_line(text: str, secrets: list[str]) -> None:
    """Of each user; the users and the rest stay."""
    redacted = _REDACTOR.redact(text).text
    expected = text
    for secret in secrets:
        expected = expected.replace(secret, "#")
    assert redacted.replace("[REDACTED:password]", "#").replace("[REDACTED:code]", "#") == expected


@table(
    "text",
    [
        "chpasswd reads pairs:\n  user_name:password\n",
        "chpasswd:\n  expire: false\n  users:\n    - name: ann\n",
        "echo | chpasswd\nlocalhost:8080\nroot:x:0:0\n",
        "chpasswd:\n  list: |\n    root:RANDOM\n    ann:$PASS\n",
        "davfs2 mounts\nhttps://cloud.example.org/dav /media/dav davfs rw 0 0\n",
        "davfs2\nhttps://example.org  user  password\n",
        "see login.txt\nfirst\nsecond line of it\n",
        "# auth.txt\nusername\npassword\n",
        "user=1000:1000\n",
        "user=node18:node18\n",
        "user=www-data:www-data\n",
        "git clone git@example.org:team/repo7\n",
        "example.org:ann@example.org:password\n",
        ">>> getpass.getpass()\nPassword: \n'x'\n",
        ">>> keyring.get_password('a', 'b')\n>>> ",
        "- service: light.turn_on\n  data:\n    code: 880219\n",
        "alarm_control_panel: the code: arm\n",
        "alarm_control_panel:\n  code_arm_required: false\n  code_format: number\n",
        "Board\tGPIO pin\tName\nA\t1024\tx\n",
        "Home | Login | Password\nforgot | it | here\n",
        "a | b | password\nand so on | what the | password is for v2.1.3\n",
    ],
)
def test_what_only_looks_like_such_a_file_stays(text: str) -> None:
    """Examples, ports, mounts, identifiers."""
    assert _REDACTOR.redact(text).text == text
