"""Tables, files and talk in which the place says what is secret, not what stands right before it."""

import base64
import random

import pytest

from memd.config.settings import Redact
from memd.redact.redactor import Redactor
from tests.redact.chance import ALNUM, plain, some, symbols
from tests.table import table

_REDACTOR = Redactor(Redact())

_PLACES = {
    "aligned table": "SERVICE     USER     PASSWORD\ngrafana     admin    §\njenkins     ops      ¤\n\nthe end",
    "aligned table with a ruler": "Service      Username    Password\n-----------  ----------  ----------\ngrafana      admin       §\njenkins      ops         ¤",
    "aligned table, first column": "PASSWORD         HOST\n§     10.0.0.1\n¤     10.0.0.2",
    "table of a terminal": "+------+-------------------+\n| user | password          |\n+------+-------------------+\n| ann  | § |\n| bob  | ¤ |\n+------+-------------------+",
    "table of boxes": "│ user │ password │\n├──────┼──────────┤\n│ ann  │ § │\n│ bob  │ ¤ │",
    "HTML table": "<table><tr><th>Site</th><th>Password</th></tr><tr><td>wiki</td><td>§</td></tr><tr><td>b</td><td>¤</td></tr></table>",
    "HTML table on lines": "<tr>\n  <th>User</th>\n  <th>Password</th>\n</tr>\n<tr>\n  <td>ann</td>\n  <td>§</td>\n</tr>\n<tr>\n  <td>bob</td>\n  <td>¤</td>\n</tr>",
    "HTML pair": "<tr><td>Password</td><td>§</td></tr>\n<dt>Password</dt><dd>¤</dd>",
    "CSV": "id,name,host,db_password\n1,orders,10.0.3.4,§\n2,billing,10.0.3.5,¤",
    "CSV, quoted": '"user","password"\n"ann","§"\n"bob","¤"',
    "CSV, semicolons": "user;password;role\nann;§;admin\nbob;¤;guest",
    "CSV, Chinese": "系统,账号,密码\nOA,zhang,§\n财务,li,¤",
    "table, other languages": "| Benutzer | Passwort |\n|---|---|\n| ann | § |\n| bob | ¤ |",
    "table, Chinese": "| 系统 | 账号 | 密码 |\n|---|---|---|\n| OA | zhang | § |\n| 财务 | li | ¤ |",
    "SQL insert": "INSERT INTO users (id, email, password) VALUES (3, 'kim@example.com', '§'), (4, 'bo@example.com', '¤');",
    "SQL insert on lines": "insert into `accounts`\n  (`name`, `api_token`, `on`)\nvalues\n  ('kim', '§', 1),\n  ('bo', '¤', 0);",
    "SQL role": "ALTER USER app WITH PASSWORD '§';\nCREATE ROLE rep LOGIN PASSWORD '¤';",
    "XML attribute": '<datasource user-name="orders" password="§"/>\n<user name="a" pwd=\'¤\' />',
    "XML attribute, apart": '<property name="hibernate.connection.password">§</property>\n<entry key="db.password" value="¤"/>',
    "XML attribute, before its name": '<property value="§" name="password"/>\n<param value=\'¤\' id="db.password">',
    "XML element on lines": "<password>\n  §\n</password>\n<dbPassword>\n\t¤\n</dbPassword>",
    "HTML, bold": "<b>Password:</b> §\n<p><strong>Password</strong>: ¤</p>",
    "HTML, code": "<li><strong>Password</strong>: <code>§</code></li>\n<li>Password: <span class='v'>¤</span></li>",
    "table, short heading": "| host | user | pw |\n|---|---|---|\n| a | ann | § |\n| b | bob | ¤ |",
    "wpa_passphrase": "wpa_passphrase Birchwood § | tee a\nwpa_passphrase 'My Home' ¤",
    "wpa_supplicant": 'network={\n    ssid="Birchwood"\n    psk="§"\n}\nnetwork={\n ssid="b"\n psk="¤"\n}',
    "netrc": "machine api.example.com\n  login kim@example.com\n  password §\nmachine b.example.com login bo password ¤",
    "pgpass": "db.example.com:5432:orders:app:§\nlocalhost:*:*:postgres:¤",
    "pgpass, echoed": "echo \"db.example.com:5432:orders:app:§\" >> ~/.pgpass\necho '*:*:*:app:¤' > ~/.pgpass",
    "pgpass, other ports": "db.example.com:5433:*:app:§\nredshift.example.com:5439:dw:etl:¤",
    "nmcli": "nmcli con modify home wifi-sec.psk §\nnmcli con mod b 802-11-wireless-security.psk ¤",
    "npm": "//npm.pkg.example.com/:_authToken=§\n//b.example.com/:_password=¤",
    "rabbitmqctl": "rabbitmqctl change_password guest §\nrabbitmqctl add_user bo ¤",
    "htpasswd": "htpasswd -b /etc/nginx/.htpasswd kim §\nhtpasswd -nb bo ¤",
    "a blank line between": "The password:\n\n§\n\nand the token:\n\n¤\n",
    "a fence below": "Password:\n\n```\n§\n```\n密码：\n\n¤\n",
    "shown once": "Your new password is shown once:\n\n    §\n\nStore it now. 密码我发你：\n\n¤\n",
    "works, the password": "§ works, the root password on the new box\n¤ still works, that's the wifi password",
    "is the one": "tried three, § is the one that works as the admin password\nit was ¤ - the old root password",
    "a pair of credentials": "basic auth for staging: acme / §\nlogin for the wiki → bo / ¤",
    "a list of credentials": "URL: https://portal.example\nLogin: kim\nPass: §\n\nUsername: bo\nPassphrase: ¤",
    "steps": '1. open the portal 2. username kim 3. password § 4. click "Export"\nuser bo, then pw ¤ and go',
    "host in brackets": "ssh deploy@build-03 (pw §)\nssh bo@b (password: ¤)",
    "asked before": "User: what's the wifi password at the cabin?\nAssistant: §\n\nQ: 测试环境密码多少？\nA: ¤",
    "asked for, two lines below": "Please use the following password to proceed to installation:\n\n§\n\nYour temporary password for today is below:\n¤\n",
    "asked before, quoted": "> what's the sudo password again?\n§\n\n问：密码是多少？\n答：¤",
}


@table("place", _PLACES)
def test_a_password_goes_from_its_place(place: str) -> None:
    """Both of them, and as many lines stay."""
    left = []
    for number in range(10):
        rng = random.Random(f"{place}/{number}")
        values = [rng.choice((plain, symbols))(rng), plain(rng)]
        if "SQL" in place or "HTML" in place:
            values = [plain(rng), plain(rng)]
        text = _PLACES[place].replace("§", values[0]).replace("¤", values[1])
        redacted = _REDACTOR.redact(text).text
        assert redacted.count("\n") == text.count("\n")
        left += [(value, redacted) for value in values if value in redacted]
    assert left == []


def _base64(text: str) -> str:
    return base64.b64encode(text.encode()).decode()


@pytest.mark.parametrize(
    "template",
    [
        "apiVersion: v1\nkind: Secret\nmetadata:\n  name: orders-db\ntype: Opaque\ndata:\n  username: YXBw\n  password: §\n",
        "kind: Secret\ndata:\n  DB_URL: §\n  tls.key: §\n",
        '{"kind": "Secret", "apiVersion": "v1", "data": {"dsn": "§"}}',
        '{"auths": {"ghcr.io": {"auth": "§"}}}',
        "_auth = §\nemail = kim@example.com",
        "//registry.example.com/:_auth=§",
        "Authorization: Basic §",
    ],
)
def test_base64_of_a_password_goes_where_it_stands(template: str) -> None:
    """In a Secret of Kubernetes every value is one."""
    for number in range(10):
        value = _base64(f"kim:{plain(random.Random(f'{template}/{number}'))}")
        assert value not in _REDACTOR.redact(template.replace("§", value)).text


@table(
    ("template", "value"),
    [
        ("google app password for the printer: §", "abzq wkfp ttmu ocxe"),
        ("The app-specific password Apple gave me is §, only for mail", "qkzt-vwpa-jmrx-bdhc"),
        ("app password §", "abzq wkfp ttmu ocxe"),
        ("应用专用密码：§", "abzq wkfp ttmu ocxe"),
        ("App-Passwort: §", "abzq wkfp ttmu ocxe"),
        ("mail pass is § now", "abzq wkfp ttmu ocxe"),
        ("Vault passphrase: §", "crimson walrus eats seven stale bagels"),
        ("backup passphrase is § (borg, repo on the nas)", "orbit-pickle-sandal-quartz"),
        ('the pass phrase "§" opens it', "seven blue llamas"),
        (
            "Seed words, in order: §. Keep them offline!",
            "ocean velvet drama pupil tornado harvest slogan acid lunar canoe mirror fetch",
        ),
        ("助记词：§", "ocean velvet drama pupil tornado harvest slogan acid lunar canoe mirror fetch"),
        ("My passphrase is §.", "violet anchor quiet harbor"),
        ("口令短语：§", "violet anchor quiet harbor"),
        ("the safe combination is §, left right left", "17-32-08"),
        ("license key: §", "KX7Q-99PL-ZM2T-4RWD-B8NC"),
    ],
)
def test_words_and_groups_go_behind_their_label(template: str, value: str) -> None:
    """Passwords of four times four letters, passphrases, seed phrases, groups."""
    assert value not in _REDACTOR.redact(template.replace("§", value)).text


def test_backup_codes_go_from_their_list() -> None:
    """One a line, or several."""
    rng = random.Random(7)
    codes = [f"{some(rng, '0123456789abcdef', 5)}-{some(rng, '0123456789abcdef', 5)}" for _ in range(4)]
    for text in (
        "backup codes for github:\n" + "\n".join(codes),
        "Recovery codes:\n" + "  ".join(codes),
        "恢复码：\n" + "\n".join(codes),
    ):
        redacted = _REDACTOR.redact(text).text
        assert not [code for code in codes if code in redacted], redacted


def test_a_key_goes_after_what_asked_for_it() -> None:
    """In the next line of the talk."""
    key = some(random.Random(3), ALNUM, 40)
    for text in (
        f"User: paste your API key please\nAssistant: {key}",
        f"> can you send me the token?\n{key}\n",
    ):
        assert key not in _REDACTOR.redact(text).text


@table(
    "text",
    [
        "NAME      READY   STATUS    TOKEN\napi-7d4   1/1     Running   expired\nweb-88b   1/1     Running   valid",
        "password  policy\nlength    12 signs\nage       90 days",
        "INSERT INTO users (id, name, password_hash) VALUES (3, 'kim', NULL);",
        "INSERT INTO settings (password, length) VALUES (DEFAULT, 12);",
        "<table><tr><th>Password</th><th>Policy</th></tr><tr><td>length</td><td>12 signs</td></tr></table>",
        "kind: ConfigMap\ndata:\n  motd: aGVsbG8gd29ybGQgaGVsbG8=\n",
        "what's the wifi password?\nno idea, ask Ann2 tomorrow",
        "what is the password policy?\nv2.1.3",
        "密码是多少？\n不知道",
        "the door works, the password of it is unknown",
        "commit 3f2a1b9 works, the password reset is fixed",
        "step3 works, the password form does not",
        "Password:\n\nmust have 12 signs and a digit",
        "Token:\n\n## Section2",
        "app password: four groups of four letters",
        "the passphrase is a list of words",
        "the combination is 3 of 5",
        "Host        Port   Key\n10.0.0.1    5432   primary\n10.0.0.2    5433   replica",
        "keys;values\na1;b2",
    ],
)
def test_what_only_looks_like_a_place_stays(text: str) -> None:
    """States, policies, hashes, sentences."""
    assert _REDACTOR.redact(text).text == text


@pytest.mark.parametrize(
    ("asked", "said", "left"),
    [
        ("what's the wifi password at the cabin?", "snowdrift1987", "[REDACTED:password]"),
        ("and the PIN for the door?\n", "4831", "[REDACTED:password]"),
        ("Kannst du mir das Passwort sagen?", "`Birne77`.", "`[REDACTED:password]`."),
        ("测试环境密码多少？", "是 Test1qaz", "是 [REDACTED:password]"),
        ("what's the wifi password?", "it's snowdrift1987", "it's [REDACTED:password]"),
        ("what's the wifi password?", "no idea", "no idea"),
        ("what's the wifi password?", "ask Ann2 when she is back", "ask Ann2 when she is back"),
        ("what is the password policy?", "length12", "length12"),
        ("I changed the password.", "snowdrift1987", "snowdrift1987"),
        ("", "snowdrift1987", "snowdrift1987"),
    ],
)
def test_a_turn_is_looked_at_as_the_answer_to_the_one_before(asked: str, said: str, left: str) -> None:
    """Where that asks for a password at its end, and it says nothing else."""
    assert _REDACTOR.redact(said, asked).text == left
    assert Redactor(Redact(allow=("snowdrift1987",))).redact("snowdrift1987", asked).counts == {}
