"""Texts with secrets in them, made at random from the forms that services document, apart from the rules that find them.

    for sample in samples(seed=1): sample.kind, sample.value, sample.text

The values open nothing: each is drawn anew from a generator with a seed.
"""

import base64
import json
import shlex
import string
from collections.abc import Callable, Iterator
from random import Random
from typing import Literal
from urllib.parse import quote

import msgspec

Setting = Literal["chat", "code", "json", "yaml", "shell", "chinese"]
Draw = Callable[[Random], str]

EACH = 20
"""Values of each kind, in each setting."""

LETTERS = string.ascii_letters + string.digits
WIDE = LETTERS + "_-"
CAPITALS = string.ascii_uppercase + string.digits
SMALL = string.ascii_lowercase + string.digits
HEX = "0123456789abcdef"
BASE64 = LETTERS + "+/"


class Sample(msgspec.Struct, frozen=True):
    """A text and the secret in it."""

    kind: str
    setting: Setting
    value: str  # as it stands in the text
    text: str


class Keyed(msgspec.Struct, frozen=True):
    """A secret that only its name tells, as others see it."""

    kind: str
    draw: Draw
    names: tuple[str, ...]  # of keys in files, in small letters with underscores
    english: tuple[str, ...]
    chinese: tuple[str, ...]


def _some(signs: str, least: int, most: int | None = None) -> Draw:
    return lambda rng: "".join(rng.choices(signs, k=rng.randint(least, most or least)))


def _form(*parts: str | Draw | tuple[str, ...]) -> Draw:
    """Parts one after the other; of several texts one is taken."""

    def draw(rng: Random) -> str:
        return "".join(
            part if isinstance(part, str) else rng.choice(part) if isinstance(part, tuple) else part(rng)
            for part in parts
        )

    return draw


def _uuid(rng: Random) -> str:
    digits = "".join(rng.choices(HEX, k=32))
    return "-".join((digits[:8], digits[8:12], digits[12:16], digits[16:20], digits[20:]))


def _base64(least: int, most: int | None = None) -> Draw:
    return lambda rng: base64.b64encode(rng.randbytes(rng.randint(least, most or least))).decode()


def _base64url(data: bytes) -> str:
    return base64.urlsafe_b64encode(data).decode().rstrip("=")


def _jwt(rng: Random) -> str:
    header = json.dumps({"alg": rng.choice(("HS256", "RS256", "ES256")), "typ": "JWT"})
    claims = json.dumps({"sub": str(rng.randrange(10**9)), "iat": 1_700_000_000 + rng.randrange(10**7)})
    return ".".join((_base64url(header.encode()), _base64url(claims.encode()), _base64url(rng.randbytes(32))))


def _discord(rng: Random) -> str:
    user = base64.b64encode(str(rng.randrange(10**17, 10**18)).encode()).decode().rstrip("=")
    return f"{user}.{_some(LETTERS, 6)(rng)}.{_some(WIDE, 27, 38)(rng)}"


def _password(rng: Random) -> str:
    """As a generator of passwords makes them, with the signs that stand in every file as they are."""
    inner = rng.choices(LETTERS + "!@#%^*+_-.", k=rng.randint(8, 20))
    return (
        f"{rng.choice(string.ascii_letters)}{rng.choice(string.digits)}{''.join(inner)}{rng.choice(LETTERS)}"
    )


def _weak_password(rng: Random) -> str:
    """As people make them up."""
    word = rng.choice(
        ("hunter", "dragon", "letmein", "summer", "monkey", "charlie", "woaini", "xiaoming", "qwerty")
    )
    return rng.choice((word, word.title())) + rng.choice(
        (str(rng.randrange(10, 2030)), "!", f"@{rng.randrange(100)}")
    )


PREFIXED: dict[str, Draw] = {
    "openai legacy": _form("sk-", _some(LETTERS, 20), "T3BlbkFJ", _some(LETTERS, 20)),
    "openai project": _form("sk-proj-", _some(WIDE, 74), "T3BlbkFJ", _some(WIDE, 74)),
    "openai service account": _form("sk-svcacct-", _some(WIDE, 58), "T3BlbkFJ", _some(WIDE, 58)),
    "deepseek": _form("sk-", _some(HEX, 31), "7"),
    "anthropic": _form("sk-ant-api03-", _some(WIDE, 93), "AA"),
    "anthropic oauth": _form("sk-ant-oat01-", _some(WIDE, 93), "AA"),
    "openrouter": _form("sk-or-v1-", _some(HEX, 64)),
    "groq": _form("gsk_", _some(LETTERS, 52)),
    "xai": _form("xai-", _some(LETTERS, 80)),
    "perplexity": _form("pplx-", _some(LETTERS, 48)),
    "replicate": _form("r8_", _some(LETTERS, 37)),
    "hugging face": _form("hf_", _some(string.ascii_letters, 34)),
    "tavily": _form("tvly-", _some(LETTERS, 32)),
    "github classic": _form(("ghp_", "gho_", "ghu_", "ghs_", "ghr_"), _some(LETTERS, 36)),
    "github fine-grained": _form("github_pat_", _some(LETTERS, 22), "_", _some(LETTERS, 59)),
    "gitlab": _form(
        ("glpat-", "gldt-", "glrt-", "glptt-", "glagent-", "glsoat-", "glcbt-", "glft-"), _some(WIDE, 20)
    ),
    "npm": _form("npm_", _some(LETTERS, 36)),
    "pypi": _form("pypi-AgEIcHlwaS5vcmc", _some(WIDE, 150)),
    "docker": _form("dckr_pat_", _some(WIDE, 27)),
    "circleci": _form("CCIPAT_", _some(LETTERS, 22), "_", _some(HEX, 40)),
    "atlassian": _form("ATATT3xFfGF0", _some(WIDE, 171), "=", _some(CAPITALS, 8)),
    "aws id": _form(("AKIA", "ASIA"), _some(string.ascii_uppercase + "234567", 16)),
    "google api": _form("AIza", _some(WIDE, 35)),
    "google oauth": _form("ya29.a0", _some(WIDE, 160)),
    "google refresh": _form("1//0", _some(WIDE, 90)),
    "google client secret": _form("GOCSPX-", _some(WIDE, 28)),
    "aliyun id": _form("LTAI5t", _some(LETTERS, 18)),
    "tencent id": _form("AKID", _some(LETTERS, 32)),
    "digitalocean": _form(("dop_v1_", "doo_v1_", "dor_v1_"), _some(HEX, 64)),
    "doppler": _form("dp.pt.", _some(LETTERS, 43)),
    "databricks": _form("dapi", _some(HEX, 32)),
    "grafana cloud": _form("glc_", _base64(60)),
    "grafana service account": _form("glsa_", _some(LETTERS, 32), "_", _some(HEX, 8)),
    "hubspot": _form("pat-na1-", _uuid),
    "fly": _form("fm2_", _base64(150)),
    "netlify": _form("nfp_", _some(LETTERS, 36)),
    "heroku": _form("HRKU-AA", _some(WIDE, 58)),
    "vault": _form("hvs.", _some(WIDE, 90)),
    "tailscale": _form("tskey-auth-", _some(LETTERS, 17), "-", _some(LETTERS, 32)),
    "slack bot": _form(
        "xoxb-", _some(string.digits, 12), "-", _some(string.digits, 13), "-", _some(LETTERS, 24)
    ),
    "slack user": _form(
        "xoxp-", _some(string.digits, 12), "-", _some(string.digits, 12), "-", _some(HEX, 32)
    ),
    "slack app": _form("xapp-1-A", _some(CAPITALS, 10), "-", _some(string.digits, 13), "-", _some(HEX, 64)),
    "discord bot": _discord,
    "stripe": _form(("sk_live_", "sk_test_", "rk_live_"), _some(LETTERS, 24, 99)),
    "stripe webhook": _form("whsec_", _some(LETTERS, 32)),
    "shopify": _form("shpat_", _some(HEX, 32)),
    "twilio key": _form("SK", _some(HEX, 32)),
    "twilio account": _form("AC", _some(HEX, 32)),
    "sendgrid": _form("SG.", _some(WIDE, 22), ".", _some(WIDE, 43)),
    "telegram": _form(_some("123456789", 9, 10), ":AA", _some(WIDE, 33)),
    "jwt": _jwt,
    "linear": _form("lin_api_", _some(LETTERS, 40)),
    "notion": _form("ntn_", _some(LETTERS, 46)),
    "postman": _form("PMAK-", _some(HEX, 24), "-", _some(HEX, 34)),
}
"""Secrets that their own form gives away, wherever they stand."""

KEYED = (
    Keyed(
        "password",
        _password,
        ("password", "db_password", "smtp_password", "admin_passwd", "redis_pwd", "keystore_passphrase"),
        ("password", "passphrase", "passcode"),
        ("密码", "口令", "数据库密码", "登录口令", "密碼"),
    ),
    Keyed(
        "weak password",
        _weak_password,
        ("password", "db_password", "smtp_password", "ftp_passwd"),
        ("password",),
        ("密码", "口令", "邮箱密码"),
    ),
    Keyed(
        "aws secret",
        _some(BASE64, 40),
        ("aws_secret_access_key", "secret_access_key"),
        ("secret access key", "AWS secret key"),
        ("AWS 密钥", "秘钥"),
    ),
    Keyed(
        "aliyun secret",
        _form(_some(LETTERS, 28), _some(string.digits, 2)),
        ("access_key_secret", "aliyun_access_key_secret"),
        ("access key secret",),
        ("阿里云密钥", "访问密钥"),
    ),
    Keyed(
        "tencent secret",
        _form(_some(LETTERS, 30), _some(string.digits, 2)),
        ("secret_key", "tencentcloud_secret_key"),
        ("secret key",),
        ("腾讯云密钥",),
    ),
    Keyed(
        "token",
        _form(_some(LETTERS, 30), _some(string.digits, 2)),
        ("access_token", "auth_token", "refresh_token", "bot_token"),
        ("access token", "API token"),
        ("令牌", "访问令牌"),
    ),
    Keyed(
        "api key",
        _form(_some(HEX, 30), "a7"),
        ("api_key", "x_api_key", "service_api_key"),
        ("API key", "api key"),
        ("API 密钥", "接口密钥"),
    ),
    Keyed("client secret", _uuid, ("client_secret", "app_secret"), ("client secret",), ("应用密钥",)),
    Keyed(
        "encryption key", _base64(32), ("encryption_key", "master_key"), ("encryption key",), ("加密密钥",)
    ),
)
"""Secrets that only their name tells."""

_TALK = (
    "use {} for the deploy",
    "here you go: {}",
    "I put `{}` into the settings, please check.",
    "({})",
    "Is {} still valid?\nIt was made in March.",
)
_CODE = (
    'client = Client("{}")',
    "const client = new Client('{}');",
    "    return connect(host, `{}`)",
    'let key = "{}"; // for the tests',
)
_TALK_CHINESE = ("用这个{}就行", "我刚申请的：{}，别发给别人。", "“{}”这个还能用吗？", "令牌是{}。")

_KEYED_TALK = (
    "my {name} is {value}",
    "The {name} is {value}.",
    "{name}: {value}",
    "the {name} for the staging server is {value}, tell nobody",
    "**{name}:** `{value}`",
)
_KEYED_CHINESE = (
    "{name}是{value}",
    "{name}：{value}",
    "{name}:{value}，别忘了",
    "我的{name}是 {value}。",
    "{name}为「{value}」",
    "{name}改成了“{value}”，记一下",
    "{name} = {value}",
)


def samples(seed: int) -> Iterator[Sample]:
    """Every kind, EACH values in each setting; the same for the same seed."""
    rng = Random(seed)
    for kind, draw in PREFIXED.items():
        for _ in range(EACH):
            yield from _prefixed(kind, draw, rng)
    for keyed in KEYED:
        for _ in range(EACH):
            yield from _keyed(keyed, rng)
    for kind, write in SHAPED.items():
        for _ in range(EACH):
            for setting, value, text in write(rng):
                yield Sample(kind, setting, value, text)


def _prefixed(kind: str, draw: Draw, rng: Random) -> Iterator[Sample]:
    def sample(setting: Setting, value: str, text: str) -> Sample:
        return Sample(kind, setting, value, text)

    value = draw(rng)
    yield sample("chat", value, rng.choice(_TALK).format(value))
    value = draw(rng)
    yield sample("code", value, rng.choice(_CODE).format(value))
    value = draw(rng)
    document = json.dumps(
        {"id": rng.randrange(1000), "value": value, "on": True}, indent=rng.choice((None, 2))
    )
    yield sample(
        "json", value, document if rng.random() < 0.5 else json.dumps({"body": f"{document}\n{value}"})
    )
    value = draw(rng)
    yield sample("yaml", value, f"service:\n  name: web\n  value: {value}\n  replicas: 2\n")
    value = draw(rng)
    yield sample(
        "shell", value, rng.choice(("export X={}\nrun", "tool {} --fast", "echo '{}' | tool -")).format(value)
    )
    value = draw(rng)
    yield sample("chinese", value, rng.choice(_TALK_CHINESE).format(value))


def _keyed(keyed: Keyed, rng: Random) -> Iterator[Sample]:
    def sample(setting: Setting, value: str, text: str) -> Sample:
        return Sample(keyed.kind, setting, value, text)

    value, name = keyed.draw(rng), rng.choice(keyed.names)
    yield sample("chat", value, rng.choice(_KEYED_TALK).format(name=rng.choice(keyed.english), value=value))
    value, name = keyed.draw(rng), rng.choice(keyed.names)
    camel = name.split("_")[0] + "".join(part.title() for part in name.split("_")[1:])
    code = (
        f'{name} = "{value}"',
        f"const {camel} = '{value}';",
        f'os.environ["{name.upper()}"] = "{value}"',
        f'getenv("{name.upper()}", "{value}")',
        f'Client(user="ann", {name}="{value}", retries=3)',
        f'{name}: str = "{value}"',
        f"{{ {camel}: '{value}', port: 5432 }}",
    )
    yield sample("code", value, rng.choice(code))
    value, name = keyed.draw(rng), rng.choice(keyed.names)
    document = json.dumps({"user": "ann", name: value, "port": 5432}, indent=rng.choice((None, 2)))
    yield sample("json", value, document if rng.random() < 0.5 else json.dumps(document))
    value, name = keyed.draw(rng), rng.choice(keyed.names)
    dashed = rng.choice((name, name.replace("_", "-"), name.replace("_", ".")))
    yaml = (
        f"database:\n  user: ann\n  {dashed}: {value}\n  port: 5432\n",
        f'{dashed}: "{value}"',
        f"- {dashed}: '{value}'  # for now\n",
        f"[database]\n{name} = {value}\nport = 5432\n",
        f"{name.upper()}: {value}",
    )
    yield sample("yaml", value, rng.choice(yaml))
    value, name = keyed.draw(rng), rng.choice(keyed.names)
    shell = (
        f"export {name.upper()}={shlex.quote(value)}",
        f"{name.upper()}={value} ./run.sh --fast",
        f"tool --{name.replace('_', '-')} {shlex.quote(value)} --port 5432",
        f"tool --{name.replace('_', '-')}={value}",
        f'docker run -e {name.upper()}="{value}" image',
        f"ENV {name.upper()} {value}",
        f"PORT=5432\n{name.upper()}={value}\nDEBUG=1\n",
        f"set {name.upper()}={value}\r\n",
    )
    yield sample("shell", value, rng.choice(shell))
    value = keyed.draw(rng)
    yield sample(
        "chinese", value, rng.choice(_KEYED_CHINESE).format(name=rng.choice(keyed.chinese), value=value)
    )


Shaped = Iterator[tuple[Setting, str, str]]


def _block(rng: Random, label: str) -> tuple[list[str], str]:
    """The lines of a private key, and one of them that is in its middle."""
    width = 70 if "OPENSSH" in label else 64
    body = "".join(rng.choices(BASE64, k=width * rng.randint(5, 24) + rng.randint(20, width - 4)))
    lines = [body[at : at + width] for at in range(0, len(body), width)]
    lines[-1] += "=="
    return [f"-----BEGIN {label}-----", *lines, f"-----END {label}-----"], rng.choice(lines[1:-1])


_LABELS = ("PRIVATE KEY", "RSA PRIVATE KEY", "EC PRIVATE KEY", "OPENSSH PRIVATE KEY", "ENCRYPTED PRIVATE KEY")


def _private_key(rng: Random) -> Shaped:
    lines, value = _block(rng, rng.choice(_LABELS))
    yield "chat", value, "\n".join(("this is my key:", *lines, "keep it safe"))
    lines, value = _block(rng, rng.choice(_LABELS))
    yield "code", value, 'KEY = """\n' + "\n".join(lines) + '\n"""\n'
    lines, value = _block(rng, "PRIVATE KEY")
    account = {"type": "service_account", "private_key": "\n".join(lines) + "\n", "client_id": "1"}
    yield (
        "json",
        value,
        json.dumps(account) if rng.random() < 0.5 else json.dumps({"body": json.dumps(account)}),
    )
    lines, value = _block(rng, rng.choice(_LABELS))
    yield "yaml", value, "tls:\n  key: |\n" + "\n".join(f"    {line}" for line in lines) + "\nport: 1\n"
    lines, value = _block(rng, rng.choice(_LABELS))
    yield "shell", value, "cat > ~/.ssh/id <<EOF\n" + "\n".join(lines) + "\nEOF\n"
    lines, value = _block(rng, "PGP PRIVATE KEY BLOCK")
    lines[1:1] = ["Version: GnuPG v2", ""]
    yield "chinese", value, "这是我的私钥：\n" + "\n".join(f"> {line}" for line in lines) + "\n收好"


def _cut_private_key(rng: Random) -> Shaped:
    """Keys whose end is missing; the value is the last line that is left."""
    for setting in ("chat", "shell"):
        lines, _ = _block(rng, rng.choice(_LABELS))
        kept = lines[: rng.randint(3, len(lines) - 1)]
        kept[-1] = kept[-1][: rng.randint(24, 64)]
        yield setting, kept[-1], "$ head key.pem\n" + "\n".join(kept)
    lines, _ = _block(rng, "PRIVATE KEY")
    kept = lines[: rng.randint(3, len(lines) - 1)]
    written = json.dumps({"private_key": "\n".join(kept)})[:-2]
    yield "json", kept[-1], written
    lines, _ = _block(rng, rng.choice(_LABELS))
    yield "chat", lines[-2][-30:], "\n".join(lines[2:])


def _headers(rng: Random) -> Shaped:
    token = _some(LETTERS, 24, 60)
    value = token(rng)
    yield "chat", value, f"I sent Authorization: Bearer {value} and got 401"
    value = token(rng)
    yield "code", value, f'headers = {{"Authorization": "Bearer {value}", "Accept": "*/*"}}'
    value = token(rng)
    yield "json", value, json.dumps(json.dumps({"headers": {"authorization": f"token {value}"}}))
    value = base64.b64encode(f"ann:{_password(rng)}".encode()).decode()
    yield "yaml", value, f"headers:\n  Authorization: Basic {value}\n"
    value = _some(LETTERS, 32)(rng) + "7"
    name = rng.choice(("X-Api-Key", "x-api-key", "X-Auth-Token", "PRIVATE-TOKEN", "X-Goog-Api-Key"))
    yield "shell", value, f"curl -H '{name}: {value}' https://api.example.com/v1/things"
    value = token(rng)
    yield "chinese", value, f"请求头加上 Authorization: Bearer {value}，就可以了"


def _cookies(rng: Random) -> Shaped:
    token = _some(LETTERS + "%.-_", 24, 80)
    value = "a" + token(rng) + "z"
    yield "chat", value, f"Set-Cookie: session={value}; Path=/; HttpOnly; Secure; SameSite=Lax"
    value = "a" + token(rng) + "z"
    yield "code", value, f'requests.get(url, headers={{"Cookie": "theme=dark; sid={value}"}})'
    value = "a" + token(rng) + "z"
    yield "json", value, json.dumps({"cookie": f"a=1; connect.sid={value}"})
    value = "a" + token(rng) + "z"
    yield "shell", value, f"curl 'https://x.example.com/' -H 'Cookie: lang=en; auth={value}' --compressed"
    value = "a" + token(rng) + "z"
    yield "chinese", value, f"把这个带上 Cookie: JSESSIONID={value}"


def _addresses(rng: Random) -> Shaped:
    schemes = (
        "postgres",
        "postgresql+asyncpg",
        "mysql",
        "mongodb+srv",
        "redis",
        "rediss",
        "amqp",
        "amqps",
        "mssql",
        "ftp",
        "smtp",
    )
    for setting, write in (
        ("chat", "connect to {} please"),
        ("code", 'engine = create_engine("{}")'),
        ("json", '{{"url": "{}"}}'),
        ("yaml", "database_url: {}\n"),
        ("shell", "export DATABASE_URL={}\n"),
        ("chinese", "数据库地址是 {}，试试"),
    ):
        value = quote(_password(rng), safe="")
        address = f"{rng.choice(schemes)}://{rng.choice(('ann', 'root', ''))}:{value}@db.example.com:5432/app?ssl=true"
        yield setting, value, write.format(address)  # type: ignore[misc]
    value = quote(_password(rng), safe="")
    yield "shell", value, f"git clone https://ann:{value}@git.example.com/ann/notes.git"
    value = _password(rng)
    yield (
        "yaml",
        value,
        f"url: jdbc:mysql://db.example.com:3306/app?user=root&password={quote(value)}&ssl=true".replace(
            quote(value), value
        ),
    )
    value = _password(rng)
    yield "code", value, f'"Server=db;Database=app;User Id=sa;Password={value};Encrypt=True"'


def _queries(rng: Random) -> Shaped:
    for setting, write in (
        ("chat", "open {} and tell me"),
        ("code", 'fetch("{}")'),
        ("json", '{{"next": "{}"}}'),
        ("shell", "curl '{}'"),
        ("chinese", "打开{}，看看"),
    ):
        value = _some(LETTERS, 20, 64)(rng) + "4x"
        name = rng.choice(
            ("token", "access_token", "api_key", "key", "sig", "signature", "X-Amz-Signature", "code")
        )
        yield setting, value, write.format(f"https://api.example.com/v1/a?page=2&{name}={value}&lang=en")  # type: ignore[misc]
    value = quote(base64.b64encode(rng.randbytes(32)).decode(), safe="")
    yield (
        "yaml",
        value,
        f"blob: https://x.blob.core.windows.net/c/f?sv=2024-11-04&sr=b&sig={value}&se=2030-01-01\n",
    )


def _forms(rng: Random) -> Shaped:
    value = _password(rng).replace("+", "x").replace("%", "x")
    yield (
        "shell",
        value,
        f"curl -d 'grant_type=password&username=ann&password={value}' https://x.example.com/token",
    )
    value = _password(rng)
    yield "shell", value, f"curl -u ann:{value} https://x.example.com/"
    value = _password(rng)
    yield (
        "shell",
        value,
        rng.choice(
            (
                f"mysql -uroot -p'{value}' app",
                f"mysql -u root -p{value} app",
                f"sshpass -p {value} ssh ann@host",
            )
        ),
    )
    value = _password(rng)
    yield "code", value, f"CREATE USER ann IDENTIFIED BY '{value}';"


def _webhooks(rng: Random) -> Shaped:
    value = f"T{_some(CAPITALS, 10)(rng)}/B{_some(CAPITALS, 10)(rng)}/{_some(LETTERS, 24)(rng)}"
    yield "shell", value, f"curl -X POST https://hooks.slack.com/services/{value} -d @x.json"
    value = f"{rng.randrange(10**17, 10**18)}/{_some(WIDE, 68)(rng)}"
    yield "code", value, f'post("https://discord.com/api/webhooks/{value}", text)'
    value = _uuid(rng)
    yield "chinese", value, f"飞书机器人地址 https://open.feishu.cn/open-apis/bot/v2/hook/{value} 发一条试试"
    value = _some(HEX, 64)(rng)
    yield "yaml", value, f"hook: https://oapi.dingtalk.com/robot/send?access_token={value}\n"
    value = _uuid(rng)
    yield "json", value, json.dumps({"url": f"https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key={value}"})
    value = f"{rng.randrange(10**9, 10**10)}:AA{_some(WIDE, 33)(rng)}"
    yield "chat", value, f"https://api.telegram.org/bot{value}/sendMessage?chat_id=1"


def _azure(rng: Random) -> Shaped:
    value = _base64(64)(rng)
    yield (
        "code",
        value,
        f'"DefaultEndpointsProtocol=https;AccountName=notes;AccountKey={value};EndpointSuffix=core.windows.net"',
    )
    value = _base64(32)(rng)
    yield (
        "yaml",
        value,
        f"bus: Endpoint=sb://x.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={value}\n",
    )


def _codes(rng: Random) -> Shaped:
    value = str(rng.randrange(100_000, 1_000_000))
    yield (
        "chinese",
        value,
        rng.choice(("验证码：{}", "验证码是{}，五分钟内有效", "【银行】您的验证码:{}")).format(value),
    )
    value = str(rng.randrange(100_000, 1_000_000))
    yield (
        "chat",
        value,
        rng.choice(("your verification code is {}", "PIN: {}", "login code: {}")).format(value),
    )


_SEEDS = [
    "abandon",
    "ability",
    "able",
    "about",
    "above",
    "absent",
    "absorb",
    "abstract",
    "absurd",
    "abuse",
    "access",
    "accident",
    "acid",
    "acoustic",
    "acquire",
    "across",
    "act",
    "action",
    "actor",
    "actress",
    "actual",
    "adapt",
    "add",
    "addict",
    "address",
    "adjust",
    "admit",
    "adult",
    "advance",
    "advice",
    "aerobic",
    "affair",
    "zebra",
    "zone",
    "zoo",
]


def _phrases(rng: Random) -> Shaped:
    for setting, write in (
        ("chat", "my seed phrase is {}"),
        ("chinese", "助记词：{}"),
        ("yaml", 'mnemonic: "{}"\n'),
    ):
        value = " ".join(rng.choices(_SEEDS, k=rng.choice((12, 24))))
        yield setting, value, write.format(value)  # type: ignore[misc]


SHAPED: dict[str, Callable[[Random], Shaped]] = {
    "private key": _private_key,
    "private key cut short": _cut_private_key,
    "header": _headers,
    "cookie": _cookies,
    "address with a password": _addresses,
    "signed address": _queries,
    "form": _forms,
    "webhook": _webhooks,
    "azure": _azure,
    "code": _codes,
    "seed phrase": _phrases,
}
"""Secrets that the text around them tells."""
