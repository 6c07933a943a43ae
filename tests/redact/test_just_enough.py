"""Values that are just long, mixed or near enough to be secrets, and those that just are not."""

import base64
import re

from memd.config.settings import Redact, UserRule
from memd.redact.redactor import Redactor
from memd.redact.rule import AnchorIndex, Covered, Nearby
from tests.bounds import shipped
from tests.table import table

_REDACTOR = Redactor(Redact())
_OF_PERSONS = Redactor(Redact(kinds=("payment-card",)))


@table(
    ("text", "secret"),
    [
        ("Authorization: Bearer abcdefghijklmnopqrst", "abcdefghijklmnopqrst"),
        ("bearer qWeRtYuIoPaSdFgHjKlZxCvB", "qWeRtYuIoPaSdFgHjKlZxCvB"),
        ("https://x.example/cb?hash=a1b2c3d4e5f6g7h8", "a1b2c3d4e5f6g7h8"),
        ("    Key Content            : abcdefg", "abcdefg"),
        ("ann@example.org -> Kxt12abc", "Kxt12abc"),
        ("log in as guest with Kestr55elwood", "Kestr55elwood"),
        ('the zip password is "the quick brown otter"', "the quick brown otter"),
        ("password%3D%0DKestrel!55x", "Kestrel!55x"),
        ("user,password\nann,Kestrel!55x\n", "Kestrel!55x"),
        ("recovery key: 77a1b-9c2d4", "77a1b-9c2d4"),
        (  # one group is misread: eleven does not divide it
            "bitlocker: 998347-800012-455083-564255-302479-359333-645956-393111",
            "998347-800012-455083-564255-302479-359333-645956-393111",
        ),
        ("the PIN is four seven one nine", "four seven one nine"),
        ("code de la carte bleue 4417", "4417"),
        ("SESSION_KEY is now users_2024x", "users_2024x"),
        ("la clave gato_77x", "gato_77x"),
        ("pass di gato_77x", "gato_77x"),
        ("cottage router admin password\nMariposa_1987", "Mariposa_1987"),
        ("cognome da nubile: Anna Maria Rossi", "Anna Maria Rossi"),
        ("A: what's the pin?\nB: which one?\nA: the blue one\nB: let me look\nA: 7741", "7741"),
        (
            "key: [7, 1, 3, 9, 200, 14, 77, 5, 7, 1, 3, 9, 200, 14, 77, 5]",
            "[7, 1, 3, 9, 200, 14, 77, 5, 7, 1, 3, 9, 200, 14, 77, 5]",
        ),
    ],
)
def test_what_is_just_enough_goes(text: str, secret: str) -> None:
    """The shortest, the least mixed, the farthest."""
    assert re.sub(r"\[REDACTED:[a-z-]+\]", "", _REDACTOR.redact(text).text) == text.replace(secret, "")


@table(
    "text",
    [
        "Authorization: Bearer abcdefghijklmnopqrs",  # nineteen letters
        "bearer qWeRtYuIoPaSdFgHjKlZxCv",  # twenty-three
        "https://x.example/cb?code=abc123def456x",  # thirteen
        "ann@example.org -> Kxt12ab",  # seven
        "ann@example.org, Room12B",
        "log in as guest with Kestr5elwood",  # one digit
        "signed in with kestrelW5ood yesterday",
        'the zip password is "the quick brown"',  # two words that no sentence has
        'NAS password is "in the red barn"',
        *(
            f"https://ann:{said}@example.org/"
            for said in ("pass", "passwd", "password", "pw", "pwd", "secret")
        ),
        "| Door | Door code |\n|---|---|\n| side | 2024 |",  # a year
        "recovery key: prod-keys-2024x",  # one part with digits
        'partition keys: "aB3dE5fG7hJ9kL1mN2"',
        "SESSION_CACHE_KEY is now users_2024x",
        "key: [7, 1, 3, 9, 200, 14, 77, 7, 1, 3, 9, 200, 14, 77, 7, 1]",  # seven different bytes
        "key: [1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16]",  # in order
        "Authorization: aB1aB1aB1aB1aB1aB1",  # three different signs
        "Authorization: aB1cD2eF3aB1cD2eF3aB1",  # nine
        "логин анна, пароль Zvezda",  # two words in a sentence
        "the password is rain and the user is bob",  # four letters
        "ドアの番号は2951",  # of a door, not of a safe
        "bitlocker: 998347-800012-455083-564255-302479-359333-645956",  # seven groups
    ],
)
def test_what_is_not_quite_enough_stays(text: str) -> None:
    """One letter, digit, word or sign less, and what has a secret's form by chance."""
    assert _REDACTOR.redact(text).text == text


@table(
    ("number", "goes"),
    [
        ("6666666666666", False),  # one digit alone, whose checksum is right
        ("44444444444444444", False),
        ("6304000000000012344", True),  # nineteen digits
        ("5012345678908", True),  # thirteen
    ],
)
def test_a_card_has_thirteen_to_nineteen_digits_of_more_than_one_kind(number: str, *, goes: bool) -> None:
    """Numbers that machines count with are often one digit over and over."""
    assert (_OF_PERSONS.redact(f"card {number}").text == "card [REDACTED:payment-card]") is goes


@table(
    ("first", "lines", "last"),
    [
        ("-----BEGIN RSA PRIVATE " + "KEY-----\n", 5 * ["aB3dE5fG7hJ9kL1m"], ""),  # sixteen signs a line
        ("", ["MC4CAQAwBQYDK2VwBCIEIH" + 2 * "aB3dE5fG7hJ9kL1mN2pQ4"], ""),  # sixty-four signs, of Ed25519
        ("", 2 * ["aB3dE5fG7hJ9kL1mN2pQ+rS6tU8vW0xYz2aB4cD6eF8aB3dE5fG7hJ9kL1mN2pQ4"], "ab=="),
    ],
)
def test_the_narrowest_and_the_shortest_keys_go(first: str, lines: list[str], last: str) -> None:
    """With their first line, by how they begin, and by two whole lines of their middle."""
    text = first + "\n".join([*lines, last]).rstrip("\n")
    assert _REDACTOR.redact(text).text == "[REDACTED:private-key]" + "\n" * text.count("\n")


def test_base64_with_a_sign_too_many_is_decoded() -> None:
    """A sign that is glued to it encodes nothing."""
    written = base64.b64encode(b"the password is Kestrel!55x and it works!!").decode()
    assert "=" not in written
    assert _REDACTOR.redact(f"{written}Z").text == "[REDACTED:password]"


def test_secrets_side_by_side_stay_two() -> None:
    """Only those that share a sign become one."""
    both = Redactor(Redact(extra=(UserRule(name="one", pattern="aa"), UserRule(name="two", pattern="bb"))))
    assert both.redact("aabb").text == "[REDACTED:one][REDACTED:two]"


def test_a_part_has_a_span_that_ends_with_it() -> None:
    """And none that ends behind it."""
    covered = Covered([(2, 5)])
    assert covered.has(2, 5)
    assert not covered.has(2, 6)
    assert not covered.has(1, 5)


def test_a_match_at_the_farthest_place_is_near() -> None:
    """On both sides, and one place farther is not."""
    behind, before = Nearby(re.compile("x"), 0, 3), Nearby(re.compile("x"), 3, 0)
    assert behind.beside([0], "abcx") == [0]
    assert behind.beside([0], "abcdx") == []
    assert before.beside([3], "xbca") == [3]
    assert before.beside([4], "xbcda") == []


def test_an_anchor_that_begins_with_the_last_sign_of_a_piece_is_found() -> None:
    """Pieces share what the longest anchor needs."""
    piece = int(shipped("memd.redact.rule._PIECE"))
    assert AnchorIndex(("abc", "q")).places("x" * (piece - 1) + "abc") == {"abc": [piece - 1]}
