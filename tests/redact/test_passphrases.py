"""Passphrases of words."""

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor

_REDACTOR = Redactor(Redact())


@pytest.mark.parametrize(
    "text",
    [
        "Die Passphrase des Archivs ist §, danach neu starten",
        "Le mot de passe du disque est §.",
        "容器 D:\\old.hc 密码 §",
        "密码是 §，别忘了",
        "пароль от диска: §",
        "the password of the vault is now §",
        'password: "§"',
    ],
)
@pytest.mark.parametrize("words", ["velvet cactus orbit harvest", "lizard-saddle-tunnel-olive-marble"])
def test_words_as_wallets_draw_them_go(text: str, words: str) -> None:
    """Behind a label in any language."""
    assert words not in _REDACTOR.redact(text.replace("§", words)).text


@pytest.mark.parametrize(
    "text",
    [
        "Das Passwort ist leider nicht mehr gueltig, bitte neu setzen",
        "the password is not needed for local access",
        "the password is shared among several different teams",
        "密码 reset flow design review",
        "密码 hashing library comparison table",
        "le mot de passe est trop long pour nous",
    ],
)
def test_a_sentence_stays(text: str) -> None:
    """It has words that no wallet draws."""
    assert _REDACTOR.redact(text).text == text
