"""What stands on the line below its label."""

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.table import table

_REDACTOR = Redactor(Redact())


@table(
    ("text", "secret"),
    [
        ("Contraseña del correo\nMariposa_1987", "Mariposa_1987"),
        ("parola chiave dell'archivio\nMontagna_Azzurra_12", "Montagna_Azzurra_12"),
        ("Wi-Fi password\nBlueHeron-4471\n\nback on Monday", "BlueHeron-4471"),
        ("root password\n\n  z8Kq!vvP2\n", "z8Kq!vvP2"),
        ("- Passwort für den Drucker\n- Sommer#2021", "Sommer#2021"),
        ("## Password for the NAS\n```\nBlueHeron-4471\n```", "BlueHeron-4471"),
        ("mot de passe du wifi\nLavande-2019", "Lavande-2019"),
        ("解压密码\nwww.diaocha2022", "www.diaocha2022"),
        ("路由器后台密码\nGuang@7788", "Guang@7788"),
        ("와이파이 비밀번호\nhello!8282", "hello!8282"),
        ("Wi-Fiのパスワード\nSakura_0423", "Sakura_0423"),
        ("пароль от ноутбука\nZima_2021", "Zima_2021"),
        ("The password is on the next line, do not forward:\nmarble.fox381", "marble.fox381"),
        ("password on the next line:\npenguin_Lamp22", "penguin_Lamp22"),
        ("The password for the NAS is below.\nKx7-Mandarine44", "Kx7-Mandarine44"),
        ("账号密码见下一行：\nlvcha.wang882", "lvcha.wang882"),
        ("密码写在下面一行，看完删掉：\nxiaomao@2039", "xiaomao@2039"),
        ("密码在下面：\nduck7#pond", "duck7#pond"),
        ("Le mot de passe est à la ligne suivante :\ngrenouille.88k", "grenouille.88k"),
        ("La contraseña está en la línea de abajo:\n\n> gato.verde55", "gato.verde55"),
        ("пароль на следующей строке\n`zima.belka19`", "zima.belka19"),
        ("Q: what's the admin pass for the label printer?\nA: cantaloupe9", "cantaloupe9"),
        ("助手：请输入 sudo 密码\n用户：mengqiyuan_shanshui", "mengqiyuan_shanshui"),
        ("Gate code:\n4831", "4831"),
        ("PIN:\n7702", "7702"),
        ("Türcode\n4831#", "4831#"),
        ("门禁码:\n778120", "778120"),
        ("Recovery code for my Google account in case I get locked out:\n4821 9037", "4821 9037"),
        ("Phrase secrète du coffre KeePass :\ntrois canards jaunes sous la pluie", "trois canards jaunes"),
        ("| Door | Door code |\n|---|---|\n| side | 4471 |", "4471"),
        ("| 门 | 门禁码 |\n|---|---|\n| 北 | 7781 |", "7781"),
        ("name,pin\nann,4412\n", "4412"),
        (
            "seed: "
            + (words := "ribbon velvet orphan dune glimpse acid tunnel mercy oxygen fabric pencil want"),
            words,
        ),
    ],
)
def test_a_value_below_its_label_goes(text: str, secret: str) -> None:
    """In several languages, in lists, headings, fences and tables; the number of lines is kept."""
    redacted = _REDACTOR.redact(text).text
    assert secret not in redacted
    assert redacted.count("\n") == text.count("\n")


@table(
    "text",
    [
        "Password manager\nBitwarden_2024 trial",
        "Forgot password\nUser_2024x",
        "Change password\nVersion_12.04",
        "Reset password for Ann\nTicket_4012",
        "Password policy\nrotate every 90 days",
        "Passwort ändern\nIntel_8080x",
        "Passwort vergessen\nRaum_4012",
        "Contraseña\nobligatoria",
        "Mot de passe oublié\nMariposa_1987",
        "the password\nJIRA-4012",
        "no password\nsample_2024.csv",
        "修改密码\nVersion_2024",
        "忘记密码\nUser_2024",
        "パスワードを忘れた\nVersion_2024",
        "비밀번호 변경\nVersion_2024",
        "пароль\nсмотри в сейфе",
        "password must contain the characters below:\n!@#$%^&*",
        "See the password policy below:\nminLength:12",
        "The password requirements are listed below:\n- 8 characters",
        "Enter the password below:\n<password>",
        "The password is given below:\n$DB_PASSWORD",
        "The password is on the next line:\nbcrypt",
        "The build id is on the next line:\nmarble.fox381",
        "The password is further down, below.\nmarble.fox381",
        "密码规则如下：\n至少8位",
        "忘记密码的步骤如下：\nstep1.html",
        "Passwort vergessen? Siehe unten:\nreset.html",
        "Change the password as shown below:\npasswd.sh --user1",
        "the pwd command prints the line below:\n/home/ann/src2",
        "the admin pass expired?\nno",
        "请输入密码\nbase64_encode_data",
        "请输入密码\nmodule_chaining",
        "密码框在这里\nmengqiyuan_shanshui",
        "Gate code:\nask Tom",
        "PIN:\n2024",
        "PIN\n13",
        "door code\nnone yet",
        "Recovery code:\nprinted on paper",
        "Passphrase:\nsee the wiki for the rules",
        "| Door | Width |\n|---|---|\n| side | 4471 |",
        "| pin | signal |\n|---|---|\n| 13 | GND |",
        "name,pin\nann,yes\n",
        "| Area code | City |\n|---|---|\n| 4471 | Oslo |",
    ],
)
def test_what_only_stands_below_a_label_stays(text: str) -> None:
    """Headings, statements, tickets, files, years, and columns of other numbers."""
    assert _REDACTOR.redact(text).text == text
