"""What a conversation tells some turns after it asked for it."""

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        (
            "user: what's the code for the garage?\nassistant: I don't have it.\nuser: it's 5518, save it please",
            "5518",
        ),
        ("A: pin of the card?\nB: which one\nA: the blue one\nB: 7741", "7741"),
        ("user: remember my alarm code\nassistant: sure, what is it?\nuser: 44071", "44071"),
        (
            "User: what's the staging db password again?\nAssistant: not stored, tell me\nUser: Tr4mp0line_x",
            "Tr4mp0line_x",
        ),
        ("A: 门禁密码多少?\nB: 等下我看看\nB: 6620#", "6620"),
        ("小明: 取件码多少\n妈妈: 等等\n妈妈: 773820", "773820"),
        ("Tom: Passwort vom NAS?\nAnn: gleich\nAnn: Kranich_774", "Kranich_774"),
        ("ana: ¿contraseña del correo?\nluis: espera\nluis: Mariposa_1987", "Mariposa_1987"),
    ],
)
def test_an_answer_that_comes_turns_later_goes(text: str, secret: str) -> None:
    """Alone in its turn, or behind what an answer begins with."""
    assert secret not in _REDACTOR.redact(text).text


@table(
    "text",
    [
        "user: what's the code for the garage?\nassistant: see the wiki\nuser: thanks",
        "user: what's the meeting room?\nassistant: I think 4.12\nuser: 4412",
        "user: pin of the board?\nassistant: it is 4\nuser: 4412 ohm",
        "user: remember my alarm code\nassistant: sure, 44071\nuser: 44072",
        "user: how long is the password?\nassistant: 12 digits\nuser: Version_2024x",
        "user: password policy?\nassistant: in the wiki\nuser: Version_2024x",
        "user: I changed the password\nassistant: fine\nuser: Version_2024x",
        "user: pin of the card?\nassistant: no\nuser: 2024",
    ],
)
def test_what_only_comes_turns_later_stays(text: str) -> None:
    """Where nobody asked for a secret, where the answer was given, and where more is said."""
    assert "[REDACTED" not in _REDACTOR.redact(text).text.rpartition("\n")[2]
