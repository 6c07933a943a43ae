"""Lists of secrets under a name that says so."""

import random
from collections.abc import Callable

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.chance import ALNUM, filled, plain, some
from tests.table import table

_REDACTOR = Redactor(Redact())

_PASSWORDS = """
passwords: ["§p", "§p", "§p"]
passwords = ['§s', '§p']
"passwords": [⏎  "§p",⏎  "§s"⏎]
passwords:⏎  - §p⏎  - "§s"⏎  - §p  # the old one
DEFAULT_PASSWORDS = ("§p", "§p")
passwords: list[str] = ["§p", "§p"]
passwords := []string{"§p", "§p"}
var passwords = new String[] {"§p", "§p"};
List<String> passwords = List.of("§p", "§p");
let passwords = vec!["§p".to_string(), "§p".to_string()];
@passwords = ("§p", "§p");
passwords: §p, §p
the passwords are §p and §p
our passwords are now §p, §p and §p.
密码列表: ["§p", "§p"]
密码分别是 §p 和 §p
"""
_KEYS = """
tokens:⏎  - §§⏎  - §§
api_keys = ["§§", "§§"]
API_KEYS: [§§, §§]
"secrets": ["§§", "§§"]
"""


def _lines(listing: str) -> list[str]:
    return [line.replace("⏎", "\n") for line in listing.strip("\n").split("\n")]


@table("template", _lines(_PASSWORDS))
def test_each_password_of_a_list_goes(template: str) -> None:
    """In programs, settings and sentences."""
    for number in range(5):
        text, secrets = filled(template, random.Random(f"{template}/{number}"))
        redacted = _REDACTOR.redact(text).text
        assert [secret for secret in secrets if secret in redacted] == [], text


@pytest.mark.parametrize("template", _lines(_KEYS))
def test_each_key_of_a_list_goes(template: str) -> None:
    """Where chance has drawn it."""
    rng = random.Random(template)
    keys = [some(rng, ALNUM, 32) for _ in range(2)]
    text = template
    for key in keys:
        text = text.replace("§§", key, 1)
    redacted = _REDACTOR.redact(text).text
    assert [key for key in keys if key in redacted] == []


@pytest.mark.parametrize(
    "text",
    [
        "passwords: min 8 chars, 1 digit",
        "passwords: 8-16 characters",
        "passwords: sha256, bcrypt, Argon2id",
        'passwords = ["correct", "wrong"]',
        "passwords are hashed with bcrypt and salted",
        'tokens = ["hello", "world2020", "##ing"]',
        'keys = ["name1", "age2", "utf8"]',
        "secrets: [DB_PASSWORD, API_KEY2]",
        "secrets:\n  - db_password\n  - api_key_2",
        "tokens: 4096, 8192",
        "keys: [3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a]",
        'passwords = [os.environ["PW_1"], os.environ["PW_2"]]',
        "passwords:\n  - ${PW_1}\n  - ${PW_2}",
        "密码有 8 位，密码都是随机的",
    ],
)
def test_what_such_a_list_says_of_secrets_stays(text: str) -> None:
    """Rules for passwords, names of secrets, references to them, digests."""
    assert _REDACTOR.redact(text).text == text


def test_public_keys_stay() -> None:
    """Though chance has drawn them."""
    key = some(random.Random(1), ALNUM, 44)
    for name in ("public_keys", "ssh-keys"):
        assert _REDACTOR.redact(f'{name}: ["{key}"]').text == f'{name}: ["{key}"]'


@pytest.mark.parametrize(
    "item", [lambda rng: f'"{plain(rng)}", ', lambda rng: '"keys", ', lambda rng: 'passwords: ["']
)
def test_a_long_list_is_walked_once(item: Callable[[random.Random], str]) -> None:
    """And ends somewhere: what comes far behind its name is no item any more."""
    rng = random.Random(2)
    text = "passwords = [" + "".join(item(rng) for _ in range(3_000))
    assert _REDACTOR.redact(text + "the end").text.endswith("the end")
