"""What a password is called in other languages than English and Chinese."""

import random

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.chance import plain

_REDACTOR = Redactor(Redact())


@pytest.mark.parametrize(
    "template",
    [
        "Das Kennwort für den Router ist §",
        "Das Passwort lautet §.",
        "Zugangscode: §",
        "La contraseña es §",
        "la clave del wifi: §",
        "Mi contraseña nueva: §",
        "Le mot de passe du serveur est §",
        "Mot de passe : §",
        "la parola d'ordine è §",
        "La password è §",
        "A senha do wifi é §",
        "palavra-passe: §",
        "het wachtwoord is §",
        "Wachtwoord voor de NAS: §",
        "Hasło do serwera to §",
        "hasło: §",
        "Şifre: §",
        "ŞİFRE: §",
        "yeni parola: §",
        "Пароль от wifi: §",
        "пароль §",
        "пароль — §",
        "كلمة المرور هي §",
        "كلمة السر: §",
        "Mật khẩu là §",
        "mật khẩu wifi: §",
        "パスワードは § です",
        "パスワード：§",
        "暗証番号は「§」です",
        "비밀번호는 § 입니다",
        "암호: §",
    ],
)
def test_a_password_goes_in_every_language(template: str) -> None:
    """With what it is for, and without."""
    for number in range(10):
        value = plain(random.Random(f"{template}/{number}"))
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@pytest.mark.parametrize(
    "text",
    [
        "Passwort vergessen? Klicken Sie hier.",
        "Passwort: mindestens 12 Zeichen",
        "La contraseña es obligatoria",
        "la clave es entender 3 cosas",
        "clave: valor1",
        "Le mot de passe est stocké en sha256",
        "parola: 3 lettere",
        "senha: obrigatória",
        "wachtwoord: 2026-02-09",
        "Hasło musi mieć 8 znaków",
        "Şifre: en az 8 karakter",
        "Пароль: не менее 8 символов",
        "كلمة المرور: 8 أحرف على الأقل",
        "Mật khẩu: ít nhất 8 ký tự",
        "パスワードは8文字以上",
        "비밀번호는 8자 이상",
    ],
)
def test_what_is_said_of_passwords_stays(text: str) -> None:
    """Rules for them, and forms."""
    assert _REDACTOR.redact(text).text == text
