"""Labels, places and shapes of values that no table of another test has, and what looks like them and is harmless."""

import pytest

from memd.config.settings import Redact
from memd.redact.places import scored_context
from memd.redact.redactor import Redactor
from memd.redact.rule import Covered
from tests.bounds import shipped

_REDACTOR = Redactor(Redact())


@pytest.mark.parametrize(
    ("text", "secret"),
    [
        # a word and a number, where a variable in capitals has it
        ("SESSION_SECRET=Harbor.204\n", "Harbor.204"),
        # words with a dot, in an INI file, where nothing is an expression
        ("[smtp]\nserver=mail.shelf.example\n# of the shop\npwd=oldMill.stream\n", "oldMill.stream"),
        # the key of an encrypted disk
        ('FileVault is on now. It showed "QX7J-N96H-GY3E-65EV-O7PB-9OVH" once', "QX7J-N96H-GY3E-65EV-O7PB-9OVH"),
        # below a label that says how to change it; an equals sign in what is drawn by chance
        ("Password for the kibana user (change with `bin/reset -u kibana`):\n  kXqWvRbtYzPn=aB7xQ2m", "kXqWvRbtYzPn"),
        # arguments of commands
        ("mstsc /v:10.0.0.9 /u:ann /p:'Copper.harbor31'", "Copper.harbor31"),
        ("mc alias set shelf http://10.0.0.5:9000 kPq81vLmZ02 w8XkQ2vN4mTz7RbL", "w8XkQ2vN4mTz7RbL"),
        ("snmp-agent community read Moss!2208", "Moss!2208"),
        # a code, and how long it is valid
        ("您的校验码是 448120,5分钟内有效", "448120"),
        # a network, in a file of settings
        ('network = "Cellar_5G", key = "Fennel$barn42"', "Fennel$barn42"),
        ("暗号化キー: 9f31bc04ade77", "9f31bc04ade77"),
        # the number of an account, and its key
        ('Client("AC0f9e8d7c6b5a49382716051423324156", "b7d04c2f9a1e4d83b05c6e7f18293a4b")', "b7d04c2f9a1e4d83b05c6e7f18293a4b"),
        # who logs in, and a word drawn by chance, alone on a line
        ("server: 10.0.3.4\nroot k7TqXx2mPw9Z\n", "k7TqXx2mPw9Z"),
        ("- admin r4Tz!9kQw2\n", "r4Tz!9kQw2"),
        # the number behind "code", near a lock
        ("the shed: key safe beside the gate, code 8813.", "8813"),
        # columns and keys that are named in other languages
        ("| Sitio | Usuario | Contraseña |\n|---|---|---|\n| banco | 44 | 58Naranja*! |", "58Naranja*!"),
        ("site;identifiant;mot de passe\nimpots;77812;PlageSoleil31\n", "PlageSoleil31"),
        ("| サービス | ID | パスワード |\n|---|---|---|\n| 図書館 | 5521 | Kaede.Maple83 |", "Kaede.Maple83"),
        ('utilisateur: boutique\nmot_de_passe: "PlageSoleil31"', "PlageSoleil31"),
        # lists of recovery codes in other languages
        ("Wiederherstellungscodes Mailkonto\n4417 9032\n6628 1175", "6628 1175"),
        ("銀行のバックアップコード\n4417 9032\n6628 1175", "4417 9032"),
        ("коды восстановления почты:\n4417 9032\n6628 1175", "4417 9032"),
        # a cookie as an object of a list of headers
        ('{"name": "Cookie", "value": "SID=9F31BC04ADE77A20; lang=en"}', "9F31BC04ADE77A20"),
        # a literal that a program hashes
        ('$pass = md5("Quarry!817");', "Quarry!817"),
        # codes of things in Korean, Russian, Portuguese, Polish
        ("현관 비밀번호 7716*\n다음", "7716"),
        ("Пин-код карты банка 3371, не забудь", "3371"),
        ("Senha do cadeado: 8806", "8806"),
        ("Domofon: kod 7140", "7140"),
        # a further code of the same length in a line
        ("Girokarte PIN 7716, Kreditkarte 3371", "3371"),
        ("キャッシュカード暗証番号 7716、住基カード用 3371", "3371"),
        # credentials as a pair, or beside what names them
        ("the htpasswd for the docs site: docs:bramble-71", "bramble-71"),
        ("smbclient //nas/share -U 'OFFICE\\kim%thistle5521'", "thistle5521"),
        ("ossutil config -i LTAI5tKq8vLmZ02xXw7RbPqa -k w8XkQ2vN4mTz7RbLkT4v9QpZ2mXw8R", "w8XkQ2vN4mTz7RbLkT4v9QpZ2mXw8R"),
        ('os.environ["SHELF_SK"] = "w8XkQ2vN4mTz7RbLkT4v9QpZ2mXw8RbL"', "w8XkQ2vN4mTz7RbLkT4v9QpZ2mXw8RbL"),
        ("hook:\n  sign: w8XkQ2vN4mTz7RbLkT4v9Q\n", "w8XkQ2vN4mTz7RbLkT4v9Q"),
        ("hostname core1\nenable password FennelBarn\n", "FennelBarn"),
        ("Store wallet code: 4RT8K-M2XQ9-BB7LC", "4RT8K-M2XQ9-BB7LC"),
        ("https://calendar.google.com/calendar/ical/a%40b.c/private-9f31bc04ade77a209f31bc04ade77a20/basic.ics", "9f31bc04ade77a209f31bc04ade77a20"),
        ("das Secret ist in base64: azdUcVh4Mm1QdzlaYlJ0UQ== bitte", "azdUcVh4Mm1QdzlaYlJ0UQ=="),
        # words with hyphens where a variable in capitals has them; letters without a meaning
        ("SESSION_SECRET=velvet-cactus-orbit-harvest\n", "velvet-cactus-orbit-harvest"),
        ("密码跟以前一样,xqzvwpkjtr", "xqzvwpkjtr"),
        ("账号 test02 密码 xqzvwpkj", "xqzvwpkj"),
        # without encryption, what follows is a value
        ("它是明文,现在用的是 Tulip#2094", "Tulip#2094"),
    ],
)  # fmt: skip
def test_a_secret_goes(text: str, secret: str) -> None:
    """Each is told by its place or its label."""
    assert secret not in _REDACTOR.redact(text).text


@pytest.mark.parametrize(
    "text",
    [
        # the name of a resource
        "arn:aws:secretsmanager:eu-west-3:120034005600:secret:shop/db/token-8xTqPz",
        "urn:service:password:k7TqXx2mPw9Z",
        # values of documentation
        "GITHUB_TOKEN=ghp_xxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxxx",
        "STRIPE_KEY=sk_live_000000000000000000000000",
        "the page shows AKIAI44QH8DHBEXAMPLE as an identifier",
        # a function, and a colour
        "for(var i in n)r[i]=n[i];e.password=function(t){return t}",
        ":root { --accent: #3fa1b7; --pass: #417cf2; --token: #0a1b2c3d; }",
        # a label in the place of a value
        '{"password": "Mot de passe", "confirm": "Passwort"}',
        "usuario = TU_USUARIO\ncontraseña = TU_CONTRASEÑA",
        # an address that is public
        "send 0.2 ETH: 0x3f9e8d7c6b5a493827160514233241567a8b9c0d",
        # what else is called so: a list, a switch, a configuration in words
        "SESSION_SECRET=replace-with-something-long",
        "enable password protection\n",
        "enable password LoginForm in the settings",
        "密码 manager",
        "密码管理器,bitwarden",
        "Kreditkarte 2024, PIN folgt",
        # a number that is called another code, and a price
        "the portal answered with status code 5003.",
        "门禁系统验证码是 120,000 元",
        # who logs in, and a word of a language or of a table
        "root Filesystem2024\n",
        "admin pts/0 Mar12\n",
        # attributes of something, in a program
        "config = [\n    smtp,\n]\npassword=smtp.relay\n",
        # a call with the identifier of an account, and a name
        'Client("0f9e8d7c6b5a49382716051423324156", "production")',
    ],
)
def test_what_is_harmless_stays(text: str) -> None:
    """However near a label or a shape."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize("more", [0, 1])
def test_so_many_signs_are_a_word(more: int) -> None:
    """What is longer is a token, a path or data: none of its parts is a password."""
    word = ("kT4v9QpZ2mXw8RbL" * 9)[: shipped("memd.redact.places.scored_context._LONGEST_WORD") + more]
    text = f"log in with {word}\nit works"
    walk = scored_context.RULES[0].walk
    assert walk is not None
    assert [text[slice(*span)] for span in walk(text, [0], Covered(()))] == ([] if more else [word])
