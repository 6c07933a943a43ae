"""Texts without secrets that look a little as if they had some."""

from random import Random

LINES: tuple[str, ...] = tuple(
    line
    for line in r"""
commit 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a
fixed in a828e60, see chunk a828e60f1c
e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855  notes.md
sha256:e3b0c44298fc1c149afbf4c8996fb92427ae41e4649b934ca495991b7852b855
cache key: 3f2a1b9c8d7e6f5a4b3c2d1e0f9a8b7c6d5e4f3a
id 550e8400-e29b-41d4-a716-446655440000
max_tokens=2048, temperature=0.2
token count: 4096
token=4096
tokens: 12345678
token usage: 123,456
token_limit: 200000
refresh_token_ttl=86400
忘记密码怎么办
密码重置邮件
密码是什么
密码是必填项
密码是多少？
密码错误，请重新输入
密码长度至少8位
密码是8位数字
密码用 bcrypt 存
密码管理器
密码（可选）：
请输入密码：
密码请联系管理员
我的密码忘了
口令红包
令牌桶
令牌环网络
令牌: 无效
密钥管理
密钥对
密钥: 见 vault
API 密钥从哪里来？
验证码是 6 位数字
验证码收不到
助记词是什么
SECRET_KEY=${SECRET_KEY}
export TOKEN=$VAR
PASSWORD=$(cat /run/secrets/pw)
password = os.environ["X"]
password = os.environ.get("DB_PASSWORD")
apiKey: process.env.X
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
password: "{{ vault_password }}"
password: !vault |
api_key="<your-key>"
api_key = "your-api-key-here"
password: ***
password: ********
password=xxxx
token = "..."
pip install scikit-learn sk-learn
the task-runner of the risk-assessment desk-lamp
sk-circle-fade-dot sk-folding-cube-animation
![x](data:image/png;base64,iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==)
password reset
password protected
password policy: at least 12 characters
password strength: weak
the token is invalid
the token is not valid any more
password is required
password is incorrect, try again
Password is missing!
the password is stored in the vault
the password for the account is the same as before.
my password is getting old.
my password was changed yesterday
passwords are hashed with bcrypt
your password is safe with us
secret: yes
the secret of success is hard work
the secret is out.
secret_manager: gcp
secretName: my-tls-secret
imagePullSecrets: regcred
secretKeyRef: name
token = get_token()
token = request.headers.get("X-Token")
const token = await getToken();
password: str
password?: string
token: Optional[str] = None
token: string;
token=None
token = "abc"
if token == "":
def login(user: str, password: str, token: str | None = None) -> bool:
self.password = password
self.password = config['password']
connect(user=user, password=password)
password = getpass.getpass("Password: ")
password := os.Getenv("X")
password: Field(..., min_length=8)
password: required
"password": "Password is required"
"password": "Enter your password"
"password": "请输入密码"
{"type": "password", "label": "Password"}
<input type="password" name="password" placeholder="Password">
{"token": "string", "token_type": "bearer"}
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
key=lambda x: x
sort_keys=True
primary key: id
key: value
the key is to ask early
api key is missing
your API key is invalid
API key: see vault
api_key = settings.api_key
session_key="agent:main:telegram:group:-909"
results = client.search("x", session_key=key).results
public_key: ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIJx2bXt2v5VQd0E3n5nZ4m1JYx0mJ5m2QW8m5v3n5nZ4 ann@host
monkey: banana, keyboard: qwerty
basic understanding of things
Basic authentication is simple
bearer token required
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer token
Authorization: required
cookie policy
Cookie: yes please
cookies = {}
def seek(self, cookie, whence=0):
https://example.com/path?page=2&sort=asc&lang=en_US
https://example.com/?code=404&key=value
http://localhost:8080/a@b
https://user:***@example.com/x
postgres://user:${PASS}@host/db
postgres://user:{password}@host/db
ssh://git@github.com/x/y.git
git@github.com:x/y.git
mail ann@example.com or mailto:bob@example.com
docker run -p 8080:80 -u 1000:1000 nginx
he says "git add -p" (and the "patch" subcommand of it)
my $pwd = CPAN::anycwd();
<assemblyIdentity version="1.0" publicKeyToken="1fc8b3b9a1e18e3b">
mkdir -p /a/b && ssh -p 22 host
the flags --username and --password are read from the file
--token TOKEN
PWD=/home/ann/src
/run/secrets/db_password
C:\Users\ann\password.txt
_SK_START = b"-----BEGIN OPENSSH PRIVATE KEY-----"
expires=1735689600
2026-03-02T09:02:11Z INFO token expired for user 42
AC/DC and SKU1234, NOTES.md, MTV
version: 1.2.3, apsw="3.54.1.0"
pass: 5 tests, fail: 0
self.last_pass: PassReport | None = None
JWT token expired; CSRF token mismatch
seed phrase is a list of words that lets you recover the wallet if you ever lose the old device at home
""".splitlines()
    if line
)
"""One a line."""

_WORDS = [
    "the",
    "a",
    "we",
    "you",
    "he",
    "she",
    "of",
    "to",
    "in",
    "on",
    "and",
    "then",
    "with",
    "about",
    "agent",
    "memory",
    "note",
    "search",
    "index",
    "daemon",
    "Tuesday",
    "plan",
    "lunch",
    "river",
    "deploy",
    "staging",
    "because",
    "although",
    "yesterday",
    "tomorrow",
    "really",
    "think",
    "know",
    "want",
    "need",
    "could",
    "would",
    "house",
    "garden",
    "music",
    "children",
    "water",
    "question",
    "answer",
    "function",
    "returns",
    "value",
    "file",
    "line",
    "test",
    "green",
    "branch",
    "merge",
    "review",
    "token",
    "key",
    "password",
    "cookie",
    "secret",
]
_HAN = "今天我们在北京开会讨论了记忆索引的密码令牌和密钥管理问题明天再继续说吧"


def chat(rng: Random, lines: int) -> str:
    """Lines of talk, of programs and of logs in two languages, with nothing secret in them."""
    written: list[str] = []
    while len(written) < lines:
        match rng.randrange(12):
            case 0:
                written.append(rng.choice(LINES))
            case 1 | 2 | 3:
                written.append("".join(rng.choices(_HAN, k=rng.randint(5, 60))) + "。")
            case 4 | 5:
                written.append(
                    f"2026-03-{rng.randint(1, 28):02} 09:12:11 INFO pass {rng.randrange(1000)} took {rng.random():.3f} s"
                )
            case 6 | 7:
                written.append(
                    f"    for {rng.choice(_WORDS)}_{rng.randrange(9)} in range({rng.randrange(100)}): total += weights[{rng.randrange(9)}]"
                )
            case _:
                written.append(" ".join(rng.choices(_WORDS, k=rng.randint(4, 30))) + ".")
    return "\n".join(written) + "\n"
