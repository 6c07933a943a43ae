"""Texts about keys, tokens and passwords, and texts that look like them, in which nothing is secret.

A text is a line, in which ``⏎`` ends a line. ``§h`` is a hash, ``§U`` a UUID, ``§b`` base64, as in ``chance.OF_A_LETTER``.
"""

import random
from collections.abc import Iterator
from typing import Final

from tests.redact.chance import HEX, base64_of, filled, some

_PROSE: Final = """
the VPN PSK is stored in the vault
PSK is short for pre-shared key
which community string does SNMP use?
the password got changed yesterday to something longer
SSID broadcast is off, key rotation is monthly
the WLAN key is on the sticker
the door keypad takes 4 digits
the keypad takes 10000 presses before it fails
the door takes 4200 cycles, then it fails
the gate code #define LOCK 1
call me about the zoom meeting 774812
credenciales: usuario / contraseña
identifiants : nom / prénom
учётные данные: логин / пароль
the disk is encrypted with AES256
protected with SHA256 and a salt
the BitLocker recovery key is in the safe
order 482913-559021 and 339182-774520
提取码在群里
访问码错误
I forgot my password again.
The password is required.
the password is wrong
The password is invalid or has expired.
password is not set
Your password is too short.
the password is too weak, use at least 12 characters
the password must be at least 8 characters long
Password must contain one upper-case letter, one digit and one symbol.
the password is stored in 1Password
the password is in the vault
the password is hashed with bcrypt before it is saved
the password is encrypted at rest
the password is never logged
the password is the same as before
the password is on the sticky note
the password is what everyone forgets
the password is empty by default
the password is optional
the password is case sensitive
the password is correct, but the account is locked
the password is incorrect
password is missing
the password is being reset
the password is shared with the team through the password manager
the password is generated at first start
the password is read from the environment
the password is passed on stdin
the password is checked against a list of leaked ones
the password is changed every 90 days
the password is asked for twice
the password was changed yesterday
the password was leaked last year
the password was rejected
the password has been reset
my password is long and hard to remember
password reset email
password reset link sent
Click the password reset link.
Use a password manager.
change your password every month
enter your password
Enter password:
Password:
password:
Password: (leave blank to keep the current one)
Password: required
Password: none
Password: ********
Password: ••••••••
Password: [hidden]
Password: <your password>
Password: TBD
password: see 1Password
password: ask Ann
password: same as above
password: yes
password: no
password: optional, string
password: must match
password: is required
password: incorrect
password: not set
password: unchanged
passwords: 3 of 5 rotated
password policy: minimum length 12
password length: 16
password strength: weak
password hint: my first dog
password age: 90 days
password field: hidden
password-based encryption
password-less login
passwordless: true
password authentication is disabled
PasswordAuthentication no
PermitEmptyPasswords no
password prompt
the password prompt says: try again
wrong password: try again
Wrong password, try again.
Incorrect password
invalid password
password mismatch
weak passwords are rejected
reset the password for Ann
set a new password
I changed the password to something stronger
I changed the password to a longer one
I changed my password yesterday
we changed the password from a short one to a long one
use the password from the vault
use password authentication
log in with your password
log in with a password or a key
type the password when asked
what is the password for the wifi?
What's the password policy?
who knows the wifi password?
do you have the password?
password? I thought you had it
the password? nobody knows
the door code is on the fridge
the code is in the repository
the code is easy to read
your code is fine
Your code is great, ship it
the code is 80 lines long
the code is 404
error code is 500
exit code: 137
exit code is 1
error code: 10061
status code: 200
zip code: 94103
postal code 100084
country code: 86
area code: 415
promo code: SUMMER
the QR code is on the ticket
the source code is at https://example.com/acme/app
HTTP code: 404
code: 200000
code: E1001
the key is to listen
The key is in the details.
the key is under the mat
the key is missing from the dict
the key is the session id
a key is a tuple of path and line
Key: Value
key: value
key takeaways: ship early
key points: three
key: Ctrl+Shift+P
press any key to continue
keyboard shortcut: Ctrl+K
primary key: id
PRIMARY KEY (id)
foreign key: user_id references users(id)
FOREIGN KEY (user_id) REFERENCES users (id)
the primary key is user_id
the foreign key is order_item_id
the sort key is created_at
the partition key is tenant_id
cache key: user:42:profile
the cache key is user:42:profile
key = f"user:{user_id}"
key: user_id
key=lambda item: item.score
sorted(items, key=lambda x: x[1])
max(scores, key=scores.get)
keys: 12
key: 'name'
React key prop: key={item.id}
the API key is missing
the API key is invalid
The API key is read from OPENAI_API_KEY.
the API key is optional
API key: required
API key: not set
API key: none
api key: missing
API keys are stored in the keychain.
no API key found
you need an API key
get an API key at https://example.com/keys
set your API key in the settings
set OPENAI_API_KEY to use the remote model
OPENAI_API_KEY is not set
OPENAI_API_KEY environment variable
the key is rotated every 90 days
the secret is out
the secret is to add salt
the secret is patience
it is no secret
keep it secret
a secret: I like rain
her secret: practice
Secret Santa: Ann
the secret ingredient is cinnamon
secret sauce: butter
Victoria's Secret
top secret
the token is expired
the token is valid for an hour
the token is refreshed automatically
the token is missing
token expired
Token limit: 4096
token count: 4096
token count is 128000
tokens: 4096
tokens used: 18234
total tokens: 1234567
input tokens: 12,345, output tokens: 678
tokens per second: 45.6
num_tokens=12
max_tokens=2048
max_tokens: 4096
"max_tokens": 4096,
max_new_tokens=512
max_completion_tokens: 16384
n_tokens = 384
prompt_tokens: 812, completion_tokens: 95
"usage": {"prompt_tokens": 812, "completion_tokens": 95, "total_tokens": 907}
cache_read_input_tokens: 102400
token budget: 120000
token overlap: 80
chunk_tokens = 400
the token is a word piece
the next token is "the"
token: <eos>
eos_token: </s>
pad_token_id = 0
bos_token = "<|begin_of_text|>"
eos_token="<|endoftext|>"
tokenizer: o200k_base
tokenizer = AutoTokenizer.from_pretrained("bert-base-uncased")
tokenize=unicode61
token_type: bearer
"token_type": "Bearer"
token_type_ids
token bucket: 100 per minute
token ring
Unexpected token < in JSON at position 0
SyntaxError: Unexpected token: '}'
unexpected token: identifier
syntax error near unexpected token `('
syntax error near unexpected token 'done'
invalid token
Invalid token: expected string
invalid token at line 12
token mismatch
bearer token required
Bearer of bad news
the bearer is authorised
Authorization: required
Authorization: none
Authorization header is missing
Authorization: Bearer <token>
Authorization: Bearer $TOKEN
Authorization: Bearer ${TOKEN}
Authorization: Bearer {token}
Authorization: Bearer YOUR_TOKEN
Authorization: Bearer ...
Authorization: Basic <base64>
authorization_code
grant_type=authorization_code
grant_type=password
WWW-Authenticate: Basic realm="memory"
basic auth is enough
auth: true
auth: basic
auth=None
auth method: password
authentication: publickey
author: Ann Example
Author: Ann Example <ann@example.com>
author=ann
authority: example.com
cookie policy
Cookie: please accept
cookies: chocolate chip
cookie consent
a cookie recipe: 200g flour, 100g sugar
session: 42
session id: missing
session key: agent:main:direct
session_key="agent:main:main"
sessions: 12
signature: def search(query: str) -> list[Hit]
signature: valid
the signature is (self, text: str)
pass: 12, fail: 0
pass: 100%
tests pass: 1234
PASS tests/test_login.py
PASS src/auth/token.test.ts
FAIL src/auth/password.test.ts
pass: true
pass rate: 99.5%
boarding pass
first pass: 3.2 s
second pass took 1200 ms
pass the salt
the pass is steep
mountain pass
pass@1: 0.87
pass@10=0.95
pin the version
PIN the message
pin: v1.2.3
pinned: numpy==1.26.4
PIN pad
pw is short for password
pwd: /home/ann/app
pwd
$ pwd⏎/home/ann/projects2024
PWD=/home/ann/app2
OLDPWD=/home/ann/app1
credentials: include
LoadCredential=OPENAI_API_KEY:%h/.config/memd/openai.key
__complete "username= message= password= scmVersion="
credentials: 'same-origin'
credentials are loaded from ~/.aws/credentials
credentials: ~/.config/gcloud/application_default_credentials.json
login: ann
login: required
login/logout
login with Google
the login is broken
user: ann, role: admin
username: ann42
user name: Ann
admin/settings
admin / editor / viewer
root/usr/bin
ann@example.com
ann@example.com:/srv/app
git@github.com:acme/app.git
ssh ann@10.0.0.5
scp a.txt ann@host:/tmp/a1b2c3
rsync -av src/ ann@host:/srv/app2
otp: disabled
two-factor: enabled
the otp is sent by SMS
verification code sent
verification code: pending
we sent a verification code to your phone
the security code is on the back of the card
license: MIT
License: Apache-2.0
license key: required
seed: 42
seed=1234567
random_state=42
random seed: 20240101
salt to taste
salt: 2 tsp
hash: sha256
the hash is computed over the text
checksum: ok
encryption: AES-256-GCM
encryption key: managed by KMS
cipher: aes-256-cbc
passphrase: none
the passphrase is asked for at boot
the passphrase was lost
the passphrase is correct but the key is not
passphrase: correct passphrase was entered
passphrase for the vault: ask the admin team
the passphrase is four random english words
bcrypt2 is the new password algorithm
KeePass2 is the best password manager
argon2id is our password hash
step2 is the default password prompt
admin/fix-login2 is the branch
docker pull root/app2
cp root/Makefile2 root/build3
the route admin/users2 needs a login
see admin/page2.html before you log in
use admin/fix-login2 to log in
see admin/users-v2 to sign in
ssh root/server-v2 hangs
log in as admin/team.web01
the API-KEY rotation happens every 90 days
an API-KEY header is required
passport number on request
passenger: Ann
compass: north
password_hash VARCHAR(255) NOT NULL
password TEXT NOT NULL
password_reset_tokens
password_confirmation
"password": "string"
"password": null
"password": ""
"password": "<redacted>"
"password": "********"
"password": {"type": "string", "minLength": 8}
"password": true
"token": null
"token": "..."
"secret": "changeme"
Wi-Fi: connected
wifi: 5 GHz, channel 36
SSID: GuestNet
meeting ID: 812 3456 7890
phone: +49 30 1234567
phone: 13800138000
call me at (415) 555-2671
date: 2026-01-31T12:00:00Z
2024-01-15 14:30:00
version 1.2.3-rc.4+build.567
Python 3.12.1
ISBN 978-3-16-148410-0
order number: 4711-0815
order id: 2024123456789
invoice INV-2024-00123
flight LH1234, seat 23A
tracking number: 1Z999AA10123456784
IBAN on request
room 512, building B4
parcel A1B2-C3D4
ticket: PROJ-1234
issue #1234
see RFC 6749 section 4.1.3
CVE-2024-12345
KB5034441
WPA2-PSK
TLS 1.3 with X25519
sk-learn is scikit-learn
sk-SK is the Slovak locale
task-runner
risk-adjusted
ask-me-anything-2024
desk-lamp-model-x2000-deluxe-edition
disk-usage-analyzer-cli-tool-v2
npm_config_registry
npm_lifecycle_event=postinstall
npm_package_version
hf_hub_download
hf_transfer
pypi-publish
xoxo
gsk_announcement
AKIA is the prefix of an access key id
ghp_ is the prefix of a token
tokens that begin with sk- are keys
eyJ is how a JWT begins
-----BEGIN CERTIFICATE-----
-----BEGIN PUBLIC KEY-----
the file begins with -----BEGIN RSA PRIVATE KEY----- as usual
ssh-rsa keys are deprecated
ssh-ed25519 AAAAC3NzaC1lZDI1NTE5AAAAIOMqqnkVzrm0SdG6UOoqKLsabgH5C9okWi0dh2l9GKJl ann@host
key fingerprint is SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDHb4ZZ8q8cBhw8cXc
SHA256:uNiVztksCsDhcc0u9e8BgrJXVGDHb4ZZ8q8cBhw8cXc
The key's randomart image is:
gpg: key 3AA5C34371567BD2: public key imported
Key ID: 4096R/3AA5C34371567BD2
public key: ssh-ed25519
publicKey: "04a3b1"
I love the word 'password' in it
the word "password" has 8 letters
"password" is the most common one
rename password to secret
rename `token` to `access_token`
the field `password` is `null` here
`token` is optional
the `api_key` parameter is `None` by default
move secret handling to its own module
secret scanning found nothing
secrets are in the vault, not in git
no secrets in this file
secret_name: db-credentials
secretName: app-tls
secretKeyRef:⏎  name: db⏎  key: password
existingSecret: my-release-postgresql
password-file: /run/secrets/db
--password-file /run/secrets/db_password
--password-stdin
--password-prompt
--password <password>
--password PASSWORD
--token TOKEN
--token=<token>
  --password TEXT   the password of the database
  -p, --password    ask for a password
  --api-key KEY     the key of the provider (env: MEMD_API_KEY)
  --token           use a token
  --secret NAME     the name of the secret
-p 8080:80
docker run -p 5432:5432 postgres
ssh -p 2222 ann@host
mkdir -p a/b1/c2
cp -p a1 b2
tar -xpf backup2024.tar
mysql -u root -p prod
mysql -u root -p
mysqldump -u root -p prod > dump2024.sql
psql -p 5433 prod
nmap -p 80,443 10.0.0.5
nmap -p1-65535 host
python -m pytest -p no:cacheprovider
ps -p 12345
curl -u ann https://api.example.com
curl -b cookies.txt -c cookies.txt https://app.example.com
curl -A Mozilla/5.0 https://example.com
git push -u origin feature2024
git commit -m "Add token refresh (#1234)"
docker login -u ann
redis-cli -h cache -p 6379
sort -k2,2n
unzip a2024.zip -d out
"""

_CHINESE: Final = """
忘记密码怎么办
忘记密码怎么办？点击重置。
密码重置邮件
密码重置邮件已发送
密码错误
密码错误，请重试
密码不能为空
密码长度至少8位
密码必须包含字母和数字
密码强度：弱
密码提示：我的小狗
密码是什么？
密码是必填项
密码是加密存储的
密码是否正确
密码是不是过期了
密码是明文的，不安全
密码是对的
密码是错的
密码是空的
密码为空
密码为必填
密码：无
密码：未设置
密码：必填
密码：******
密码：请咨询管理员
密码：见保险箱
密码：保存在 1Password 里
密码由管理员设置
密码已过期
密码已重置
密码已经修改了
密码改了
密码改成什么了？
密码改成强一点的
修改密码
密码学是一门有趣的学科
密码管理器
请输入密码
请输入密码：
输入密码
两次密码不一致
我的密码太弱了
你的密码告诉我
密码不要告诉别人
密码本
账号密码登录
用户名/密码登录方式
账号和密码分开发
用户名：ann
账号：ann@example.com
口令太短
口令红包
军训口令是立正
密钥管理服务
密钥长度 2048
密钥长度：256位
密钥轮换周期为90天
密钥是成对的
密钥对：公钥和私钥
密钥交换协议
密钥存放在 KMS 中
令牌桶算法
令牌已过期
令牌有效期：2小时
令牌是有时效的
访问令牌过期了怎么办
验证码错误
验证码已发送
验证码登录
验证码5分钟内有效
验证码为6位数字
验证码是图片形式的
token数量：4096
token 数：128000
token 数是 4096
token是什么
token是模型处理的最小单位
token 上限 8192
最大 token 为 4096
最多 400 个 token
每个token的价格
token过期了
token 用量：123456
secret是什么意思
API密钥在哪里申请
API key是必填的
请配置 API 密钥
wifi密码多少
wifi密码忘了
提取码在群里
解压密码在文件名里
电话：13800138000
手机号 13800138000
邮编：100084
订单号：2024123456789012
身份证号码
快递单号 SF1234567890123
版本：v1.2.3
日期：2026-01-31
编号A12345678
代码：600519
股票代码 000001
错误码：10061
状态码是404
错误代码 0x80070005
车牌号京A12345
房间密码锁坏了
秘密花园
这是一个秘密
秘密是分享的
他的秘密：早起
钥匙在门口
关键是坚持
关键：先写测试
关键词：密码学、密钥、令牌
主键：id
主键是 user_id
外键：order_id
键值：name
快捷键：Ctrl+Shift+P
学号 2021012345
"""

_CODE: Final = """
t("password") || "Password"
os.environ.get("DB_PASSWORD") or ""
os.environ.get("DB_PASSWORD") or "changeme"
getenv("DB_PASSWORD") ?: "your-password"
password: str = Field(default="")
password = models.CharField(max_length=128, default=None)
env.get("PASSWORD_FIELD").unwrap_or("password")
describe("password") { "must be set" }
$t("password") ?? "Enter your password"
password: string
password: string;
password?: string
password: str
password: str | None = None
password: Optional[str] = None
password: SecretStr
password: String,
password: &str
password = None
password = ""
password = ''
password = input("Password: ")
password = input("Password: ").strip()
password = input("请输入密码：").strip()
token = (prompt("token: ") or "").trim()
const secret = (await ask("secret: ")).trim();
puts ask("passphrase: ")&.chomp
password = getpass.getpass()
password = getpass("Password: ")
password = os.environ["DB_PASSWORD"]
password = os.environ.get("DB_PASSWORD")
password = os.getenv("DB_PASSWORD")
password=os.getenv("DB_PASSWORD", "")
password = config.password
password = config["password"]
password = settings.DB_PASSWORD
password = request.form["password"]
password = args.password
password = self.password
password = read_password()
password = secrets.token_urlsafe(32)
password = generate_password(length=16)
password = hash_password(password)
password == confirm_password
password=password
password=db_password
password = new_password
password, salt = stored.split("$")
if password is None:
if not password:
if len(password) < 8:
if password != confirm:
def check(password: str) -> bool:
def set_password(self, password):
def login(username: str, password: str) -> Token:
raise ValueError("password is required")
raise ValueError("password too short")
"password": os.environ["DB_PASSWORD"],
"password": password,
{"password": password}
{ password: hashedPassword }
{password: "string"}
password: z.string().min(8)
password: Joi.string().required()
password: { type: String, required: true }
password = models.CharField(max_length=128)
password = Column(String(255), nullable=False)
password = PasswordField("Password", validators=[DataRequired()])
password = serializers.CharField(write_only=True)
<input type="password" name="password" placeholder="Password">
<input type="password" autocomplete="current-password" />
<label for="password">Password</label>
<PasswordInput value={password} onChange={setPassword} />
const password = document.getElementById("password").value;
const [password, setPassword] = useState("");
const { password } = req.body;
const token = await getToken();
const token = req.headers.authorization?.split(" ")[1];
const token = localStorage.getItem("token");
const token = jwt.sign({ id: user.id }, process.env.JWT_SECRET);
const token = useSelector(selectToken);
let token = String::new();
let token = env::var("TOKEN").unwrap();
let token = next_token(&mut lexer);
token := os.Getenv("TOKEN")
token := lexer.NextToken()
token = next(tokens)
token = self.tokens[self.pos]
token = tokenizer.decode(ids)
token = tokens.pop()
token.type == TokenType.IDENTIFIER
token: Token
token: Token = lexer.next()
tokens: list[Token]
tokens = text.split()
for token in tokens:
token = match.group(0)
Token = namedtuple("Token", "kind value")
TOKEN_RE = re.compile(r"[a-z]+")
TOKEN_URL = "https://auth.example.com/oauth2/token"
token_url: https://auth.example.com/oauth2/token
TOKEN_TTL = 3600
TOKEN_EXPIRY_SECONDS=86400
token_expires_in: 1209600
PASSWORD_RESET_TIMEOUT = 259200
PASSWORD_MIN_LENGTH=12
PASSWORD_HASHERS = ["django.contrib.auth.hashers.Argon2PasswordHasher"]
AUTH_PASSWORD_VALIDATORS = [
DEFAULT_PASSWORD_FIELD = "password"
API_KEY_HEADER = "X-API-Key"
api_key_env = "OPENAI_API_KEY"
api_key_file = "/run/secrets/openai"
api_key = ""
api_key: str = ""
apiKey: process.env.OPENAI_API_KEY
apiKey: import.meta.env.VITE_API_KEY,
apiKey={apiKey}
key = "name"
key = keys[0]
key = (path, line)
key: str
key: K, value: V
secret = vault.read("secret/db")
secret: Secret
SECRET_KEY=${SECRET_KEY}
SECRET_KEY = os.environ["SECRET_KEY"]
SECRET_KEY = env("SECRET_KEY")
SECRET_KEY: ${{ secrets.SECRET_KEY }}
DB_PASSWORD=$DB_PASSWORD
DB_PASSWORD=${DB_PASSWORD}
DB_PASSWORD=${DB_PASSWORD:-}
DB_PASSWORD=${DB_PASSWORD:?not set}
DB_PASSWORD=$(cat /run/secrets/db)
DB_PASSWORD=$(pass show db/prod)
DB_PASSWORD=`cat /run/secrets/db`
DB_PASSWORD=%DB_PASSWORD%
DB_PASSWORD=<password>
DB_PASSWORD=<your-password>
DB_PASSWORD=your_password
DB_PASSWORD=your-password-here
DB_PASSWORD=YOUR_PASSWORD_HERE
DB_PASSWORD=changeme
DB_PASSWORD=change-me
DB_PASSWORD=xxxxxxxx
DB_PASSWORD=XXXXXXXX
DB_PASSWORD=********
DB_PASSWORD=...
DB_PASSWORD=
DB_PASSWORD=""
DB_PASSWORD={{ db_password }}
DB_PASSWORD={{.Values.db.password}}
DB_PASSWORD=@@DB_PASSWORD@@
DB_PASSWORD=[password]
DB_PASSWORD_FILE=/run/secrets/db_password
password: ${DB_PASSWORD}
password: {{ .Values.password | quote }}
password: "{{ vault_db_password }}"
password: !vault |
password: !Ref DBPassword
password: !secret db_password
password: ENC[AES256_GCM,data:aGk=,type:str]
password: env:DB_PASSWORD
password: vault:secret/data/db#password
password: ref+vault://secret/db#password
password: op://prod/db/password
password = var.db_password
password = data.vault_generic_secret.db.data["password"]
password = random_password.db.result
password = "${var.db_password}"
password = local.db_password
token = "${{ secrets.GITHUB_TOKEN }}"
token: ${{ github.token }}
GITHUB_TOKEN: ${{ secrets.GITHUB_TOKEN }}
with: { token: "${{ secrets.PAT }}" }
permissions:⏎  id-token: write
//registry.npmjs.org/:_authToken=${NPM_TOKEN}
postgres://user:password@localhost/db
postgres://USER:PASSWORD@HOST:5432/DB
postgres://${DB_USER}:${DB_PASSWORD}@db/prod
postgres://user:<password>@host/db
mysql://{user}:{password}@{host}/{db}
redis://localhost:6379/0
https://user:pass@example.com
https://example.com/path?id=123456&page=2
https://example.com/users/5f8d0d55b54764421b7156d9
https://example.com/watch?v=dQw4w9WgXcQ
https://example.com/d/1BxiMVs0XRA5nFMdKvBdBZjgmUUqptlbs74OgvE2upms/edit
https://example.com/a?utm_source=mail&utm_campaign=spring2024
https://example.com/search?q=password+reset
https://example.com/oauth?response_type=token&client_id=app
https://example.com/reset-password?step=2
https://registry.npmjs.org/lodash/-/lodash-4.17.21.tgz
https://example.com:8080/a@b
curl -H "Authorization: Bearer $TOKEN" https://api.example.com
curl -H "X-Api-Key: $API_KEY" https://api.example.com
curl -u "$USER:$PASSWORD" https://api.example.com
curl -u user:password https://api.example.com
mysql -u root -p"$MYSQL_ROOT_PASSWORD"
sshpass -e ssh ann@host
sshpass -p "$PASS" ssh ann@host
echo "$PASSWORD" | docker login -u ann --password-stdin
export TOKEN=$(gh auth token)
export PATH="$HOME/.local/bin:$PATH"
def test_password_is_hashed_before_it_is_stored():
def test_token_expires_after_3600_seconds():
it("rejects a token signed with another key", async () => {
test_login.py::test_wrong_password[user1-404] PASSED
class PasswordResetTokenGenerator:
from django.contrib.auth.tokens import default_token_generator
import { getToken } from "next-auth/jwt";
import secrets
from secrets import token_hex
secrets.token_hex(16)
SELECT password FROM users WHERE id = 1;
SELECT id, password_hash, api_key FROM users;
CREATE TABLE users (id INT, password VARCHAR(255));
ALTER TABLE users ADD COLUMN api_token TEXT;
ALTER USER ann WITH PASSWORD :password;
UPDATE users SET password = $1 WHERE id = $2
UPDATE users SET password = ? WHERE id = ?
INSERT INTO users (name, password) VALUES (?, ?)
IDENTIFIED BY ?
user.set_password(new_password)
user.check_password(password)
setPassword(event.target.value)
setPassword("")
login(username, password)
login("ann", password)
auth=(user, password)
auth=("user", os.environ["PASS"])
.password(passwordEncoder.encode(password))
log.info("password changed for %s", user)
print("Password:", end="")
print(f"token={token}")
logger.debug("token: %s", token)
"password: %s"
f"password={password!r}"
password=*** user=ida host=db.lan
const password = generatePassword({ length: 20, symbols: true })
`token=${token}`
"token=" + token
case "password":
case Token.PASSWORD:
match token.kind:
password.length >= 8
password.strip()
password.encode("utf-8")
token.value
token[1:]
key in cache
key not in seen
keys = sorted(d)
cache_key = hashlib.sha256(text.encode()).hexdigest()
key=cache_key
keyframes: 24
keyword: search
key_size=2048
keyLength: 256
keyCode === 13
event.key === "Enter"
hotkey: "ctrl+shift+f12"
apiVersion: v1
kind: Secret
type: Opaque
name: db-secret
tokens_per_minute: 90000
rate_limit_tokens = 100000
private: true
private key path: ~/.ssh/id_ed25519
private_key_path = "/etc/ssl/private/server.key"
ssl_certificate_key /etc/nginx/ssl/server.key;
IdentityFile ~/.ssh/id_rsa_work2
KeyPath=C:\\Keys\\server1.pem
cookie: { secure: true, httpOnly: true }
cookies: dict[str, str]
Set-Cookie: theme=dark; Path=/
session.cookie.name
csrf_token()
{% csrf_token %}
{{ csrf_token() }}
<meta name="csrf-token" content="{{ csrf_token() }}">
Content-Type: application/json
Content-Length: 12345
ETag: "33a64df551425fcc55e4d42a148795d9f25f89d4"
X-Request-Id: §U
X-Trace-Id: §h
traceparent: 00-4bf92f3577b34da6a3ce929d0e0e4736-00f067aa0ba902b7-01
request_id=§U
"id": "§U"
session_id: §U
sessionId=§U
trace_id=§h
commit §h
commit: §h
Merge §h into main
git checkout §h
revert "Add token refresh"⏎⏎This reverts commit §h.
sha256:§h
image: postgres@sha256:§h
digest: sha256:§h
§h  memd-1.0.tar.gz
§h *dist/app.whl
md5: §h
sha1: §h
"sha256": "§h",
hash = "§h"
content_hash: §h
checksum = "§h"
--hash=sha256:§h
"integrity": "sha512-§b"
integrity="sha384-§b" crossorigin="anonymous"
golang.org/x/net v0.17.0 h1:pVaXccu2ozPjCXewfr1S7xza/zcXTity9cCdXQYSjIM=
golang.org/x/net v0.17.0/go.mod h1:NxSsAGuq816PNPmqtQdLE42eU2Fs7NoRIZrHJAlaCOE=
github.com/golang-jwt/jwt/v5 v5.2.0 h1:d/ix8ftRUorsN+5eMIlF4T6J8CAt9rch3My2winC1Jw=
github.com/zalando/go-keyring v0.2.3 h1:v9CUu9phlABObO4LPWycf+zwMG7nlbb3t/B5wa97yms=
checksum = "e4a5b6c7d8e9f0a1b2c3d4e5f60718293a4b5c6d7e8f901a2b3c4d5e6f708192"
resolved "https://registry.yarnpkg.com/jsonwebtoken/-/jsonwebtoken-9.0.2.tgz#65ff91f4abef1784697d40952bb1998c504caaf3"
jsonwebtoken@^9.0.2:
js-tokens "^3.0.0 || ^4.0.0"
tokenizers==0.15.2
python-jose[cryptography]==3.3.0
uuid: §U
urn:uuid:§U
PARTUUID=3f2504e0-02
/dev/disk/by-uuid/§U
![logo](data:image/png;base64,§b§b§b)
src="data:image/svg+xml;base64,§b§b"
url(data:font/woff2;base64,§b§b)
Co-authored-by: Ann Example <ann@example.com>
Signed-off-by: Ann Example <ann@example.com>
Change-Id: I§h
Reviewed-by: Bob
    at verifyToken (/srv/app/dist/auth.js:42:13)
  File "/srv/app/auth/token.py", line 42, in verify
TokenExpiredError: jwt expired
JsonWebTokenError: invalid signature
KeyError: 'password'
KeyError: 'api_key_2024'
AttributeError: 'NoneType' object has no attribute 'token'
error[E0425]: cannot find value `token` in this scope
401 Unauthorized: bad credentials
fatal: Authentication failed for 'https://github.com/acme/app.git/'
remote: Invalid username or password.
Permission denied (publickey,password).
FATAL: password authentication failed for user "postgres"
Access denied for user 'root'@'localhost' (using password: YES)
ERROR 1045 (28000): Access denied for user 'ann'@'10.0.0.5' (using password: NO)
[sudo] password for ann:
ann@host's password:
Enter passphrase for key '/home/ann/.ssh/id_ed25519':
Enter PEM pass phrase:
!function(e,t){"object"==typeof exports?module.exports=t():e.token=t()}(this,function(){var e={key:"k",pw:1};return e});
var t=this.token,n=t.key||t.password,r=n?n.length:0;e.password=n;return{token:r,key:t}
.password-input{color:#a1b2c3;background:url(/img/key-12345678.png)}
#token { color: #ff8800; }
const COLORS = { primary: "#1a2b3c", key: "#aabbcc" };
model = "text-embedding-3-small"
model: claude-3-5-sonnet-20241022
gpt-4o-mini-2024-07-18
region=eu-central-1
arn:aws:iam::123456789012:role/deploy
arn:aws:secretsmanager:eu-west-1:123456789012:secret:prod/db-AbCdEf
i-0abcd1234ef567890
ami-0abcdef1234567890
vpc-1a2b3c4d5e6f7a8b9
subnet-§h
projects/acme-prod/secrets/db-password/versions/3
projects/acme/locations/global/keyRings/r/cryptoKeys/k1
eyJ0eXAi
0x7ffee4b8c9a0
0xdeadbeef
MAC 3c:22:fb:1a:2b:3c
2001:0db8:85a3:0000:0000:8a2e:0370:7334
lat 52.520008, lon 13.404954
BTC, ETH and USDT
3.141592653589793
1e-9
[REDACTED:password]
password: [REDACTED:password]
token=[REDACTED:github]
"""


def texts(times: int = 3) -> Iterator[str]:
    """Every harmless text; one that holds something drawn by chance, so many times."""
    for listing in (_PROSE, _CHINESE, _CODE):
        for line in listing.strip("\n").split("\n"):
            template = line.replace("⏎", "\n")
            for number in range(times if "§" in template else 1):
                yield filled(template, random.Random(f"{template}/{number}"))[0]
    rng = random.Random("files")
    for _ in range(times):
        yield from (
            _log(rng),
            _checksums(rng),
            _package_lock(rng),
            _cargo_lock(rng),
            _image(rng),
            _table(rng),
        )


def _log(rng: random.Random) -> str:
    """What ``git log`` prints."""
    return "\n".join(
        f"commit {some(rng, HEX, 40)}\nAuthor: Ann <ann@example.com>\nDate:   Sat Nov 21 10:00:00 2026 +0000\n\n"
        f"    Rotate the token of the password store\n\n{some(rng, HEX, 7)}..{some(rng, HEX, 7)}  main -> main"
        for _ in range(5)
    )


def _checksums(rng: random.Random) -> str:
    """What ``sha256sum`` prints, of files with telling names."""
    names = ("password.txt", "token.py", "secret.yaml", "id_rsa.pub", "api_key.go")
    return "\n".join(f"{some(rng, HEX, 64)}  src/{name}" for name in names)


def _package_lock(rng: random.Random) -> str:
    """A piece of ``package-lock.json``."""
    return ",\n".join(
        f'"node_modules/{name}": {{\n  "version": "4.0.{rng.randint(0, 30)}",\n'
        f'  "resolved": "https://registry.npmjs.org/{name}/-/{name}-4.0.0.tgz",\n  "integrity": "sha512-{base64_of(rng, 64)}",\n'
        '  "license": "MIT"\n}'
        for name in ("js-tokens", "csrf-token", "password-prompt", "@octokit/auth-token", "keyv")
    )


def _cargo_lock(rng: random.Random) -> str:
    """A piece of ``Cargo.lock``."""
    return "\n\n".join(
        f'[[package]]\nname = "{name}"\nversion = "1.0.{rng.randint(0, 30)}"\nsource = "registry+https://github.com/rust-lang/crates.io-index"\n'
        f'checksum = "{some(rng, HEX, 64)}"'
        for name in ("secrecy", "rpassword", "tokenizers", "keyring")
    )


def _image(rng: random.Random) -> str:
    """An image inside Markdown."""
    return f"The key to the map:\n![map](data:image/png;base64,{base64_of(rng, 900)})\n"


def _table(rng: random.Random) -> str:
    """A table of what models read."""
    rows = "\n".join(
        f"| run-{some(rng, HEX, 6)} | {rng.randint(1000, 999_999)} | {rng.random():.3f} |" for _ in range(6)
    )
    return f"| run | tokens | score |\n|---|---|---|\n{rows}"
