"""What a secret is called, in fifteen languages: passwords, tokens, keys, numbers and codes."""

import random
import re
from collections.abc import Collection

import msgspec
import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from memd.redact.words.secret_words import SECRET_WORDS, either
from tests.redact.chance import ALNUM, plain, some
from tests.table import table

_REDACTOR = Redactor(Redact())

_TOKENS = """
de: API-Schlüssel: § | Der API-Schlüssel lautet § | Zugriffstoken: § | Das Token ist § | geheimer Schlüssel: § | Zugangsschlüssel: §
es: clave de API: § | La clave API es § | clave secreta: § | token de acceso: § | el token es § | clave de acceso: §
fr: clé API : § | La clé d'API est § | clé secrète : § | jeton d'accès : § | le jeton est § | clé d'accès: §
it: chiave API: § | La chiave API è § | chiave segreta: § | token di accesso: § | il token è § | chiave di accesso: §
pt: chave de API: § | A chave da API é § | chave secreta: § | token de acesso: § | o token é § | chave de acesso: §
nl: API-sleutel: § | De API-sleutel is § | geheime sleutel: § | toegangstoken: § | het token is § | toegangssleutel: §
pl: klucz API: § | Klucz API to § | tajny klucz: § | token dostępu: § | token to § | klucz dostępu: §
tr: API anahtarı: § | API anahtarım § | gizli anahtar: § | erişim belirteci: § | erişim anahtarı: § | token: §
ru: ключ API: § | API-ключ: § | секретный ключ: § | токен доступа: § | токен § | Ключ доступа — §
ar: مفتاح API: § | مفتاح الواجهة هو § | المفتاح السري: § | رمز الوصول: § | التوكن: § | مفتاح الوصول: §
vi: khóa API: § | Khóa API là § | khóa bí mật: § | mã truy cập: § | token là § | khoá truy cập: §
ja: APIキー：§ | APIキーは§です | 秘密鍵: § | シークレットキー: § | アクセストークン：§ | トークンは§です
ko: API 키: § | API 키는 § 입니다 | 비밀 키: § | 액세스 토큰: § | 토큰은 § 이에요 | 시크릿 키: §
"""
_CODES = """
de: Die PIN ist § | PIN: § | Bestätigungscode: § | Dein Code lautet § | Sicherheitscode: §
es: El PIN es § | código de verificación: § | tu código es § | código de seguridad: § | clave dinámica: §
fr: Le code PIN est § | code de vérification : § | votre code est § | code de sécurité : § | code de confirmation: §
it: Il PIN è § | codice di verifica: § | il tuo codice è § | codice di sicurezza: § | codice OTP: §
pt: O PIN é § | código de verificação: § | seu código é § | código de segurança: § | código de confirmação: §
nl: De pincode is § | verificatiecode: § | je code is § | beveiligingscode: § | bevestigingscode: §
pl: PIN to § | kod weryfikacyjny: § | Twój kod to § | kod PIN: § | kod bezpieczeństwa: §
tr: PIN kodu: § | doğrulama kodu: § | doğrulama kodunuz: § | güvenlik kodu: § | onay kodunuz §
ru: PIN-код: § | код подтверждения: § | ваш код: § | пин-код § | код безопасности: §
ar: رمز التحقق: § | رمز التحقق الخاص بك هو § | الرقم السري: § | رمز PIN: § | رمز الأمان: §
vi: mã PIN: § | mã xác nhận: § | mã xác minh của bạn là § | mã OTP: § | mã bảo mật: §
ja: 認証コード：§ | 確認コードは§です | 暗証番号: § | PINコード：§ | ワンタイムパスワード: §
ko: 인증번호: § | 인증번호 [§] | 확인 코드: § | PIN 번호: § | 보안 코드는 §
zh: 验证码 § | 校验码：§ | 动态码是§ | 安全码：§ | 取款密码：§ | 动态口令 § | 取件码：§
en: verification code: § | your code is § | PIN is § | security code: § | one-time code: § | disarm code § | passcode §
"""
_PASSWORDS = """
de: WLAN-Passwort: § | Das WLAN-Passwort der Wohnung lautet § | Passwort für den Server: § | Kennwort § | Passphrase: § | PW: §
es: la contraseña del wifi es § | clave del wifi: § | contraseña § | usuario: ana, clave: § | pass del router: §
fr: mdp : § | mot de passe du wifi c'est § | le mdp est § | identifiant : jean / mdp : § | phrase secrète : §
it: la password del wifi è § | pw: § | parola d'accesso: § | password di root: § | utente: ana, password: §
pt: senha do wi-fi: § | a senha é § | palavra-passe do router: § | usuário: ana, senha: § | senha §
nl: wachtwoord van de router is § | wifi-wachtwoord: § | het wachtwoord voor de server is § | wachtwoord §
pl: hasło do wifi: § | hasło to § | haslo: § | login: ana, hasło: § | hasło §
tr: wifi şifresi: § | şifremiz § | parola: § | kullanıcı adı: ana şifre: § | şifre §
ru: пароль от вайфая: § | логин ана, пароль § | пароль - § | мой пароль: § | пароль: §
ar: كلمة مرور الواي فاي هي § | كلمة المرور: § | كلمة السر هي § | الباسورد: § | كلمة مرور الشبكة: §
vi: mật khẩu wifi là § | mật khẩu: § | pass wifi: § | mật khẩu §
ja: Wi-Fiのパスワードは § です | パスワード: § | パスは§です | パスワード「§」 | 管理者パスワードは§
ko: 와이파이 비밀번호는 § 이에요 | 비번: § | 비밀번호: § | 비번은 § | 암호는 § 입니다
"""


def _templates(written: str) -> list[str]:
    return [
        one.strip() for line in written.strip().splitlines() for one in line.split(": ", 1)[1].split(" | ")
    ]


@table("template", _templates(_TOKENS))
def test_a_key_or_token_goes_behind_its_label(template: str) -> None:
    """Of letters and digits, as issuers make them."""
    for number in range(5):
        value = f"k7{some(random.Random(f'{template}/{number}'), ALNUM, 24, 40)}"
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@table("template", _templates(_CODES))
def test_a_code_goes_behind_its_label(template: str) -> None:
    """Numbers that somebody types once, or at a door."""
    for number in range(5):
        value = some(random.Random(f"{template}/{number}"), "123456789", 6)
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@table("template", _templates(_PASSWORDS))
def test_a_password_goes_behind_its_label(template: str) -> None:
    """With what it is for, and without."""
    for number in range(5):
        value = plain(random.Random(f"{template}/{number}"))
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@table(
    "text",
    [
        "Der API-Schlüssel fehlt noch",
        "API-Schlüssel: siehe Tresor",
        "Der Schlüssel liegt unter der Matte",
        "das Token ist abgelaufen seit 2026",
        "Fehlercode: 500123",
        "Der Code ist 120 Zeilen lang",
        "PLZ: 10115, Vorwahl 030123",
        "la clave de API es obligatoria",
        "la clave está en leer 3 libros",
        "código postal: 280013",
        "código de error: 404123",
        "la clé API est invalide",
        "code postal : 75001",
        "code d'erreur : 500123",
        "la chiave API non è valida",
        "codice fiscale mancante",
        "codice di errore: 404123",
        "a chave de API expirou em 2025",
        "código fonte: 120000 linhas",
        "de API-sleutel ontbreekt",
        "postcode: 1012",
        "klucz API wygasł w 2025",
        "kod pocztowy: 001234",
        "kod błędu: 404123",
        "API anahtarı geçersiz",
        "posta kodu: 341234",
        "ключ API недействителен",
        "код ошибки: 500123",
        "почтовый код: 101000",
        "ключ к успеху в 2026 году",
        "مفتاح API غير صالح",
        "رمز الخطأ: 404123",
        "khóa API không hợp lệ",
        "mã lỗi: 404123",
        "mã bưu điện: 700000",
        "APIキーは無効です",
        "エラーコード：404123",
        "郵便番号: 1000001",
        "API 키는 만료되었습니다",
        "우편번호: 100001",
        "오류 코드: 404123",
        "错误码：404123",
        "邮政编码：100084",
        "zip code: 941032",
        "error code: 404123",
        "the PIN pad has 123456 keys",
    ],
)
def test_what_is_said_of_keys_and_codes_stays(text: str) -> None:
    """States, errors and addresses."""
    assert _REDACTOR.redact(text).text == text


@table(
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
def test_a_password_goes_in_a_sentence_of_its_language(template: str) -> None:
    """With what it is for, and without."""
    for number in range(10):
        value = plain(random.Random(f"{template}/{number}"))
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@table(
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


@pytest.mark.parametrize(
    "template",
    [
        "Der geheime Schlüssel ist §",
        "clave secreta: §",
        "clé secrète : §",
        "a chave secreta é §",
        "tajny klucz to §",
        "секретный ключ: §",
        "シークレットキー：§",
        "시크릿 키는 § 입니다",
    ],
)
def test_a_key_of_base64_goes_behind_its_label(template: str) -> None:
    """Though it has the signs of a path."""
    for value in (
        "wJa4rXUtnF3MI/K7MD9NG/bPx+fiCYzK8mQ2vT5x",
        "q8W1/eR2tY3uI4oP5aS6dF7gH8jK9lZ0xC1vB2nM",
        "Qw3/Er4+Ty5Ui6Op7As8Df9Gh0Jk1Lz2Xc3Vb4Nm5Qa6=",
    ):
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@pytest.mark.parametrize(
    "text",
    [
        "clave: src/api2/keys/handlers/clave2/index1",
        "ключ: docs/Guide3/Chapter12/Section4/KeysOfAll9",
        "der Schlüssel ist in /srv/App2/config/Prod1/keys/Ring77abc",
    ],
)
def test_a_path_behind_a_label_stays(text: str) -> None:
    """It has slashes as keys of base64 have."""
    assert _REDACTOR.redact(text).text == text


def test_one_pattern_has_all_words_and_the_longest_that_matches_first() -> None:
    """What begins alike is written once in it, so that the first character rules out most."""
    lists: list[Collection[str]] = [
        SECRET_WORDS.passwords,
        *(words for words in msgspec.structs.astuple(SECRET_WORDS.context) if words),
        ("a", "ab", "abc", "b", "a.b", "ä"),
        ("one",),
    ]
    for words in lists:
        ordered = sorted(set(words), key=len, reverse=True)
        plain_pattern = "|".join(map(re.escape, ordered))
        for flags in (re.NOFLAG, re.IGNORECASE):
            one_by_one, at_once = re.compile(plain_pattern, flags), re.compile(either(words), flags)
            for word in ordered:
                for text in (
                    word,
                    word.upper(),
                    f"{word}s",
                    f"{word}{ordered[0]}",
                    word[:-1],
                    f"{word[:-1]}ß",
                ):
                    expected, found = one_by_one.match(text), at_once.match(text)
                    assert (found and found.span()) == (expected and expected.span()), text
                    assert bool(at_once.fullmatch(text)) is bool(one_by_one.fullmatch(text)), text


def test_words_that_begin_alike_are_one_alternative() -> None:
    """Behind a name, each of a hundred words of all languages was tried at each of forty places."""
    assert either(["pass", "password", "passwort", "clave"]) == "pass(?:wor(?:d|t)|)|clave"
