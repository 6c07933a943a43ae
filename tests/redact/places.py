"""Where passwords stand: in sentences, programs, settings, commands and logs.

A place is a template. ``§`` and a letter is a value of one class, see ``chance.OF_A_LETTER``: ``p`` letters and digits,
``s`` with symbols, ``m`` symbols that need quotes, ``w`` a word with digits, ``d`` a word alone, ``l`` letters without
meaning, ``k`` a long key, ``h`` hexadecimal, ``b`` base64, ``n`` six digits, ``t`` four words, ``z`` Chinese characters
with digits, ``u`` letters beyond ASCII, ``f`` full-width, ``U`` a UUID. A place is a line, in which ``⏎`` ends a line.
"""

import random
from collections.abc import Iterator
from typing import Final

from tests.redact.chance import filled

_ENGLISH: Final = """
the VPN PSK is §p
pre-shared key for the tunnel is §p
snmp community string: §p
the root pw got changed yesterday to §s
the admin password was reset this morning to §p
new wifi at the office: SSID harbour-5G, key §p
the WLAN is called Kranich, the key is §p
the door keypad takes §n#
gate code #§n
our duress code is §n
your one time code is §n
zoom pwd §n
the Teams meeting, passcode §n
Zugangsdaten: ann / §s
Anmeldedaten für den Shop: ann / §s
identifiants : ann / §s
credenciales: ann / §s
inloggegevens: ann / §s
dane logowania: ann / §s
учётные данные: ann / §s
ログイン情報: ann / §s
로그인 정보: ann / §s
the password is §p
The password is §s
the password is §w.
my password is §w, don't tell anyone
password is "§t"
the password is `§s`
the new password is: §p
password - §p
password = §p
Password: §s
password: §w
password:§p
PASSWORD: §p
Passwort: §p
contraseña: §p
mot de passe : §p
пароль: §p
パスワード: §p
パスワードは§pです
pw is §w
pw: §w
pwd: §s
PW=§p
pass: §w
pass is §w
the passcode is §n
passcode: §n
the PIN is §n
passphrase: §t
passphrase for the backup disk: §t
passphrase: §t, do not lose it
§p is the root password
§w is our wifi password, by the way
"§s" is the admin password for staging
ssh root/§w and look
use root/§p to log in
API-KEY §h
X-API-KEY §h
passphrase is "§t"
The passphrase for the key is §s
the login is admin / §w
login: admin / §w
login admin/§w
credentials: admin:§p
creds are admin / §p
creds: root/§s
user: admin, password: §s
user=admin password=§s host=db
username: ann⏎password: §s
user admin, pass §w
log in as admin with password §s
log in with admin and §s as the password
you can log in using the password §p
use password §p for root
use the password "§s" for the router
the password for the staging database is §s
the password of the router is §w
the admin password is §s
the root password was §p before
our wifi password is §w
wifi password: §w
wifi: GuestNet / §w
Wi-Fi key: §p
the WPA key is §p
I changed the password to §s
I changed my password from §s to §s
set the password to §w please
reset password to `§s`
password set to §s
password has been changed to §s
the password should be §s
the password will be §p
the password's §p
password was §p
it's §s (the password)
here's the password: §s
here is the password: `§s`
here is the password:⏎§s
The password:⏎⏎```⏎§s⏎```
Password below:⏎§p
My API key is §k
the api key is §k, keep it safe
the API key: §k
here is my api key §k
api key = §k
access token: §k
the access token is §k
my token is §k
token is §k
token: §k
Token = §h
the token is `§h`
bearer token: §k
refresh token: §k
client secret: §k
the client secret is §k
the secret is §k
secret: §p
secret key: §k
the secret key is §h
the signing secret is §h
the encryption key is §b
encryption key: §h
the private key is §h
the recovery code is §p
recovery codes: §p
verification code: §n
your verification code is §n
Your code is §n
OTP: §n
the one-time code is §n
2FA secret: §k
MFA seed: §k
license key: §p-§p-§p
secret access key: §b
connection string password: §s
Password (root): §s
Password for ann: §s
Password for user "ann": §s
[sudo] password for ann: §s
root@db's password: §s
ann's password is §s
the db pass is §w
db password = §s
DB Password: §s
the password is: "§m"
password="§m"
the password is §u
password: §u
password: §f
the password is "§u"
Password\t§s
Password   §s
password → §s
password => §s
password -> §s
password ⇒ §s
Password ................ §s
* password: §s
- password: §s
1. Password: §s
- **Password:** §s
- **Password**: §s
**Password:** `§s`
**Password**: `§s`
**Password:** **§s**
__Password:__ §s
*Password*: *§s*
_password_ is _§p_
`password`: `§s`
`password` is `§s`
"password" is "§s"
the `DB_PASSWORD` is `§s`
the password is **§s**
the password is ***§p***
password is ~§p~
> password: §s
> the password is §s
### Password: §s
| password | §s |
| Password | `§s` |
| **Password** | §s |
| user | admin | password | §s |
|password|§p|
| `DB_PASSWORD` | `§s` | the database |
| key | value |⏎|---|---|⏎| db_password | §s |
| user | password |⏎|------|----------|⏎| ann  | §s |
name,password⏎ann,§p
user\tpassword⏎ann\t§p
the password is §p\u200b
the pass\u200bword is §p
password\u200b: §p
password: \u200b§p
password\u00a0: §p
password\u202f: §p
password\u2009=\u2009§p
password\u202a: §p
pass\u2066word: §p
password\ufe0f: §p
Le mot de passe\u202f: §p
The password is\u2002§p
\u0130stanbul. Пароль: §p
CONTRASEÑA: §p
Contrasen\u0303a: §p
пароль \u2014 §p
ﾊﾟｽﾜｰﾄﾞ: §p
password\uff1a§p
password\uff1d§p
ｐａｓｓｗｏｒｄ：§p
Ｐａｓｓｗｏｒｄ： §p
password is §p\u3002
password is \u201c§s\u201d
password is \u2018§p\u2019
password: \u300c§s\u300d
password: \u00ab§p\u00bb
PASSWORD IS §s
the PassWord Is §s
did you get the password? It is §s
What is the password? §s
Q: password? A: §s
"what's the password?" "§s"
password? §s
enter §s as password
type §s when it asks for the password
§s is the password
§p is my password
`§s` is the password for prod
the account is ann@example.com and the password is §s
email: ann@example.com password: §s
email ann@example.com pw §w
ann@example.com / §s
ann@example.com:§p
ssh root@10.0.0.5 (password §s)
ssh root@10.0.0.5 password: §s
it is protected with a password (§s)
the zip password is §w
unzip password: §w
Zoom passcode: §n
Meeting ID: 812 3456 7890 Passcode: §p
door code: §n
gate code is §n
my PIN: §n
security code: §n
bank password is §s
my gmail password is §s and my github one is the same
password1: §s, password2: §s
old password: §s
new password: §s
old password §s, new password §s
admin:§p@10.0.0.5
password §s
passwd §s
password is §n
password: §n
the password is §l
password: §l
secret: §l
token: §l
secret=§l
the key is §l
api_key=§l
token is §l
passwd=§l
the password is §d
password: §d
password=§d
pw is §d
the password is §d and the user is bob
pwd: §d
DB_PASSWORD=§d
"password": "§d"
--password §d
密码是§d
"""

_CHINESE: Final = """
密码：§p
密码:§p
密码: §s
密码 §s
密码为：§p
密码为§s
密码是§s
密码是：§s
密码是 §w
密码就是§w
密码应该是§w
我的密码是§s，不要告诉别人
数据库密码是§s。
数据库的密码：§s
root 密码：§s
管理员密码为 §s
初始密码§p
初始密码：§n
默认密码是§w
新密码：§s
旧密码：§s 新密码：§s
密码改成 §w 了
密码改成了§s
密码改为§s
密码已改为：§s
密码已经修改为 §s
密码换成§s了
把密码设置为§s
密码设为§s
密码设成 §s
密码重置为§s
密码从§s改成§s
账号 admin 密码 §w
账号：admin 密码：§s
账号admin，密码§s
账号:admin 密码:§s
帐号：admin，密码：§s
账号密码：admin/§s
账号密码是 admin / §s
账号密码：admin §s
用户名/密码: ann/§s
用户名/密码：ann / §s
用户名：ann⏎密码：§s
用户名 ann 密码 §s
用户名是 ann，密码是 §s
登录名：ann，登录密码：§s
登录密码是§s
口令是§s
口令：§s
口令为§p
访问口令：§p
共享口令 §p
暗号是§p
密钥：§k
密钥如下：§k
密钥如下⏎§k
密钥是§k
密钥为 §k
秘钥：§k
秘钥是§k
私钥：§h
私钥是 §h
API密钥：§k
API 密钥是 §k
API key是§k
apikey是§k
令牌：§k
令牌「§k」
令牌是§k
令牌为§k
访问令牌：§k
token是§k
token 是 §k
token：§k
Token为§k
Token如下：§k
secret是§k
appSecret：§h
AppKey：§k
wifi密码§p
wifi密码：§w
wifi密码是§w
WiFi 密码：§w
无线密码：§w
验证码 §n
验证码：§n
验证码是§n
您的验证码是§n，5分钟内有效
验证码为§n
动态码：§n
短信验证码§n
提取码：§p
提取码: §p
解压密码：§w
支付密码：§n
支付密码是§n
锁屏密码 §n
门锁密码是§n
银行卡密码§n
开机密码：§w
管理密码【§s】
密码【§s】
密码「§s」
密码“§s”
密码是“§s”
密码是『§s』
密码（§s）
密码(§s)
密码是`§s`
**密码**：`§s`
**密码：** §s
**密码：**§s
- 密码：§s
| 密码 | §s |
| 数据库密码 | `§s` |
| 账号 | 密码 |⏎|---|---|⏎| ann | §s |
密码=§s
密码 = §s
密码＝§p
密码→§s
密码：§z
密码是§z
密码：“§z”
密码：§u
密码：§f
密码是§f
密码，§s
密码 : §s
密码 ： §s
密 码：§s
密\u200b码：§p
密码：\u200b§p
密码\u3000：\u3000§p
密码\u2009§p
密码：⏎§s
密码：\u3000§s
密码在这里：§s
密码给你：§s
密码发你：§s
密码告诉你：§s
你用这个密码：§s
这个是密码：§s
这是密码§s
§s 是密码
§s这个密码
用密码 §s 登录
用§s作为密码
请用密码§s登录后台
登录后台用admin，密码§s
ssh密码是§s
服务器密码：§s
MySQL 密码 §s
redis密码：§s
密码：§l
口令：§l
密钥：§l
令牌是§l
密碼：§s
密碼是§s
通行密碼：§s
金鑰：§k
權杖：§k
帳號 ann 密碼 §s
비밀번호: §s
비밀번호는 §s 입니다
暗証番号：§n
認証コードは§nです
"""

_SETTINGS: Final = """
DB_PASSWORD=§s
DB_PASSWORD="§m"
DB_PASSWORD='§m'
DB_PASSWORD = §s
export DB_PASSWORD=§s
export DB_PASSWORD="§t"
declare -x DB_PASSWORD="§s"
readonly DB_PASSWORD='§s'
local password="§s"
DB_PASS=§s
DB_PWD=§s
DBPASSWORD=§s
MYSQL_ROOT_PASSWORD=§s
PGPASSWORD=§s psql -h db -U ann
PGPASSWORD='§m' pg_dump prod
REDISCLI_AUTH=§p redis-cli
MYSQL_PWD=§p mysql
SSHPASS=§s sshpass -e ssh ann@db
SECRET_KEY=§k
SECRET_KEY_BASE=§h
JWT_SECRET=§k
APP_KEY=base64:§b
ENCRYPTION_KEY=§b
SESSION_SECRET=§p
WEBHOOK_SECRET=§h
CLIENT_SECRET=§k
NEXTAUTH_SECRET=§b
GITHUB_TOKEN=§h
API_TOKEN=§k
AUTH_TOKEN=§U
ACCESS_TOKEN=§k
REFRESH_TOKEN=§k
SMTP_PASS=§s
MAIL_PASSWORD=§s
BASIC_AUTH=ann:§p
PRIVATE_KEY=0x§h
API_KEY=§U
RAILS_MASTER_KEY=§h
set -x DB_PASSWORD §s
set -gx API_TOKEN §k
set -Ux API_TOKEN "§k"
setenv DB_PASSWORD §s
set DB_PASSWORD=§s
set "DB_PASSWORD=§s"
setx API_TOKEN §k
setx API_TOKEN "§k" /M
$env:DB_PASSWORD = "§s"
$env:API_TOKEN='§k'
$Env:DB_PASSWORD="§s"
[Environment]::SetEnvironmentVariable("API_TOKEN", "§k", "User")
$password = ConvertTo-SecureString "§s" -AsPlainText -Force
$cred = New-Object PSCredential("ann", (ConvertTo-SecureString '§s' -AsPlainText -Force))
ENV DB_PASSWORD=§s
ENV DB_PASSWORD §s
ENV DB_USER=ann DB_PASSWORD=§s
ARG NPM_TOKEN=§U
docker run -e MYSQL_ROOT_PASSWORD=§s mysql
docker run --env DB_PASSWORD=§s -d app
docker run -e "DB_PASSWORD=§s" app
docker login -u ann -p §s registry.example.com
docker login --username ann --password §s
echo §s | docker login -u ann --password-stdin
kubectl create secret generic db --from-literal=password=§s
kubectl create secret generic db --from-literal=password='§m'
helm install app --set db.password=§s
helm upgrade app . --set auth.rootPassword=§s,auth.user=ann
Environment=DB_PASSWORD=§s
Environment="DB_PASSWORD=§s"
Environment="DB_USER=ann" "DB_PASSWORD=§s"
DB_PASSWORD := §s
DB_PASSWORD ?= §s
export DB_PASSWORD := §s
    password = "§m"
db_password = "§m"
password = '''§m'''
variable "db_password" { default = "§s" }
db_password : "§s"
password: §s
password: "§m"
password: '§m'
  password: §s # for staging
password: &pw §s
ansible_password: §s
ansible_ssh_pass: "§m"
ansible_become_pass='§m'
db1 ansible_host=10.0.0.5 ansible_user=ann ansible_ssh_pass=§s
vault_db_password: §s
spring.datasource.password=§s
spring.datasource.password: §s
spring:⏎  datasource:⏎    username: ann⏎    password: §s
db.password = §s
db.password=§s
jdbc.password:§s
quarkus.datasource.password=§s
<password>§s</password>
<Password>§s</Password>
<ns:password>§s</ns:password>
<password><![CDATA[§m]]></password>
<password type="plain">§s</password>
<property name="password" value="§s"/>
<property name="password">§s</property>
<add key="ApiSecret" value="§k" />
<entry key="db.password">§s</entry>
<string name="api_key">§k</string>
<user name="ann" password="§s"/>
<bean p:password="§s"/>
<server><id>r</id><username>ann</username><password>§s</password></server>
<input type="password" name="pw" value="§s">
<input name="csrf_token" type="hidden" value="§k">
<meta name="csrf-token" content="§k">
<key>password</key>⏎<string>§s</string>
{"password": "§m"}
{"password":"§s"}
{"user": "ann", "password": "§m", "port": 5432}
{"pass": "§s"}
{"db": {"auth": {"secret": "§s"}}}
{"token": "§k"}
{"access_token":"§k","token_type":"bearer","expires_in":3600}
{"refreshToken": "§k"}
{"apiKey": "§U"}
{"clientSecret":"§k"}
{"api-key": "§k"}
{"x-api-key": "§k"}
{"key": "DB_PASSWORD", "value": "§s"}
{"name": "DB_PASSWORD", "value": "§s"}
- name: DB_PASSWORD⏎  value: §s
- name: DB_PASSWORD⏎  value: "§m"
- key: API_TOKEN⏎  value: '§k'
{\\"password\\": \\"§s\\"}
{\\"password\\":\\"§p\\",\\"user\\":\\"ann\\"}
{\\\\\\"password\\\\\\": \\\\\\"§p\\\\\\"}
"{'password': '§s'}"
{"body": "{\\"token\\": \\"§k\\"}"}
{"command": "export DB_PASSWORD=§s\\nmake"}
{"command": "PGPASSWORD='§s' psql"}
{"text": "the password is §p\\nthanks"}
password: |⏎  §s
password: >-⏎  §s
password: |-⏎    §s⏎next: 1
secret: >⏎  §k
{"auths": {"https://index.docker.io/v1/": {"auth": "§b"}}}
"auth": "§b"
"identitytoken": "§k"
    token: §k
    client-key-data: §b
    password: §s
  - name: ann⏎    user:⏎      token: §k
machine api.example.com login ann password §s
machine api.example.com⏎  login ann⏎  password §s
machine github.com login ann password §k
default login anonymous password §s
db.example.com:5432:prod:ann:§p
*:*:*:postgres:§p
localhost:5432:*:ann:§p
//registry.npmjs.org/:_authToken=§U
//npm.example.com/:_password="§b"
_auth=§b
npm config set //registry.npmjs.org/:_authToken §U
index-url = https://ann:§p@pypi.example.com/simple
extra-index-url=https://__token__:§k@gitlab.example.com/api/v4/projects/1/packages/pypi/simple
[pypi]⏎username = ann⏎password = §s
[client]⏎user=ann⏎password=§s
requirepass §p
masterauth §p
auth_pass §p
bind-address=0.0.0.0 password=§s
server=db;uid=ann;pwd=§s;database=prod
Server=db;User Id=ann;Password=§s;
"Server=db;Database=prod;User Id=ann;Password=§s;Encrypt=true"
Data Source=db;Initial Catalog=prod;User ID=ann;Password="§m";
host=db port=5432 user=ann password=§s dbname=prod
jdbc:mysql://db:3306/prod?user=ann&password=§p
jdbc:sqlserver://db;user=ann;password=§p;
jdbc:oracle:thin:ann/§p@db:1521:prod
jdbc:postgresql://ann:§p@db/prod
postgres://ann:§p@db.example.com:5432/prod
postgresql+asyncpg://ann:§p@db/prod
mysql://root:§p@127.0.0.1/prod
mysql+pymysql://root:§p@db/prod?charset=utf8
mongodb+srv://ann:§p@cluster0.abcde.mongodb.net/prod
mongodb://ann:§p@a:27017,b:27017/prod?replicaSet=r
redis://:§p@cache:6379/0
rediss://default:§p@cache:6379
amqp://ann:§p@mq:5672/vhost
amqps://ann:§p@mq
ftp://ann:§p@files.example.com/a
sftp://ann:§s@files.example.com/a
smtp://ann%40example.com:§p@mail:587
https://ann:§p@git.example.com/acme/app.git
git clone https://ann:§p@git.example.com/acme/app.git
git clone https://§k@github.com/acme/app.git
git clone https://oauth2:§k@gitlab.com/acme/app.git
git remote set-url origin https://x-access-token:§k@github.com/acme/app
https://§h@sentry.io/42
clickhouse://default:§p@ch:9000
ldap://cn=admin:§p@ldap
http://ann:§p@proxy:3128
export HTTPS_PROXY=http://ann:§p@proxy:3128
DATABASE_URL=postgres://ann:§p@db/prod
DATABASE_URL="mysql://root:§p%21@db/prod"
postgres://ann:a§p%40b@db/prod
postgres://ann:§p@x@db/prod
https://api.example.com/v1?api_key=§k
https://api.example.com/v1?token=§p&page=2
https://api.example.com/v1?page=2&access_token=§k
https://api.example.com/cb#access_token=§k&expires_in=3600
https://api.example.com/cb?code=§k&state=7
https://api.example.com/v1?key=§k
https://maps.example.com/js?key=§k&callback=init
https://b.example.com/f?Signature=§b&Expires=1700000000
https://u.example.com/login?user=ann&password=§p
https://u.example.com/reset?reset_token=§h
https://api.example.com/v1?apikey=§h&q=rain
https://api.example.com/?client_id=ann&client_secret=§k&grant_type=client_credentials
grant_type=password&username=ann&password=§p
client_id=ann&client_secret=§k
username=ann&password=§p&submit=1
"""

_COMMANDS: Final = """
psexec \\\\10.0.0.7 -u ops -p §s cmd
curl -X POST https://api.example.com/token \\⏎-u ann:§p
CC_TEST_REPORTER_ID: §h
sonar-scanner -Dsonar.login=§h
$sonarLogin = "§h"
curl -u ann:§s https://api.example.com
curl -uann:§p https://api.example.com
curl --user ann:§p https://api.example.com
curl --user 'ann:§m' https://api.example.com
curl -u "ann:§s" -X POST https://api.example.com
curl -u :§p https://api.example.com
curl -x http://ann:§p@proxy:3128 https://example.com
curl --proxy-user ann:§p https://example.com
curl -H "Authorization: Bearer §k" https://api.example.com
curl -H 'Authorization: token §k' https://api.github.com
curl -H "Authorization: Basic §b" https://api.example.com
curl -H 'X-Api-Key: §k' https://api.example.com
curl -H "PRIVATE-TOKEN: §k" https://gitlab.com/api/v4
curl -H "X-Auth-Token: §k" https://api.example.com
curl -H 'api-key: §h' https://api.example.com
curl -b "session=§k" https://app.example.com
curl --cookie 'sid=§k; theme=dark' https://app.example.com
curl -d 'password=§p&user=ann' https://app.example.com
curl -d '{"password":"§s"}' https://app.example.com
curl --data-urlencode "token=§k" https://app.example.com
curl -F token=§k https://app.example.com
curl --oauth2-bearer §k https://app.example.com
wget --password=§s https://app.example.com
wget --http-password §s https://app.example.com
wget --user=ann --password='§m' ftp://files
http -a ann:§p https://app.example.com
http POST app.example.com password=§s
xh -a ann:§p app.example.com
mysql -u root -p§p prod
mysql -uroot -p§p
mysql -u root -p'§m' prod
mysql -u root -p"§s" prod
mysql -h db -u root --password=§s prod
mysql --user=root --password='§m'
mysqldump -uroot -p§p prod > dump.sql
mysqladmin -u root -p§p status
mariadb -u root -p§p
psql "host=db password=§s user=ann"
psql postgresql://ann:§p@db/prod
redis-cli -a §p ping
redis-cli -h cache -a '§m' ping
redis-cli --pass §p
redis-cli -u redis://:§p@cache
redis> AUTH §p
mongo -u ann -p §p prod
mongosh --username ann --password §p
mongodump -u ann -p '§m'
mongosh "mongodb://ann:§p@db"
sshpass -p §s ssh ann@db
sshpass -p '§m' scp a db:
sshpass -p"§s" ssh ann@db
sshpass -p§p ssh ann@db
sqlcmd -S db -U sa -P §s
sqlcmd -S db -U sa -P '§m' -Q "select 1"
sqlplus ann/§p@db
sqlplus system/§p
bcp t out f -U sa -P §s
ldapsearch -D cn=admin -w §s -b dc=x
ldapsearch -x -D "cn=admin" -w '§m'
smbclient //nas/share -U ann%§p
mount -t cifs //nas/share /mnt -o username=ann,password=§p
net use Z: \\\\nas\\share §s /user:ann
net user ann §s /add
echo "ann:§s" | chpasswd
echo 'root:§m' | sudo chpasswd
echo §s | sudo -S apt update
echo "§s" | sudo -S reboot
echo '§m' | passwd --stdin ann
useradd -p §p ann
htpasswd -b .htpasswd ann §s
htpasswd -cb .htpasswd ann §s
openssl enc -aes-256-cbc -k §s -in a
openssl enc -aes-256-cbc -pass pass:§s -in a
openssl rsa -in k.pem -passin pass:§p
openssl pkcs12 -export -passout pass:'§m'
gpg --batch --passphrase §s -c a
gpg --passphrase '§t' -d a.gpg
7z x a.7z -p§p
7z a -p'§m' a.7z dir
unzip -P §s a.zip
zip -P §s a.zip a
unrar x -p§p a.rar
zip --password §s a.zip a
keytool -storepass §s -keypass §s -list
keytool -list -storepass '§m'
ansible-playbook site.yml -e "db_password=§s"
ansible-playbook -e '{"db_password": "§s"}' site.yml
terraform apply -var="db_password=§s"
terraform apply -var 'token=§k'
az login --service-principal -u app -p §s --tenant t
az sql server create --admin-password §s
aws rds modify-db-instance --master-user-password §s
gcloud sql users set-password ann --password=§s
gh auth login --with-token <<< §k
gh secret set TOKEN --body "§k"
gh secret set TOKEN -b §k
glab auth login --token §k
vault login §k
vault kv put secret/db password=§s
vault write auth/userpass/login/ann password='§m'
npm login --_authToken=§U
npm publish --otp=§n
twine upload -u ann -p §s dist/*
twine upload --password §s dist/*
huggingface-cli login --token §k
heroku config:set DB_PASSWORD=§s
fly secrets set DB_PASSWORD=§s
flyctl secrets set TOKEN="§k"
wrangler secret put TOKEN <<< §k
vercel --token §k
vercel --token=§k
sentry-cli --auth-token §k releases list
restic -r s3:x --password-command 'echo §s'
nmcli dev wifi connect Home password §s
nmcli dev wifi connect Home password '§m'
wpa_passphrase Home §s
iwconfig wlan0 key s:§p
psk="§s"
#psk="§s"
app --password §s
app --password=§s
app --password "§m"
app --password='§m'
app --passwd §s
app --pass §s
app --db-password §s run
app --api-key §k
app --api-key=§k
app --apikey §k
app --token §k
app --token=§k --verbose
app --auth-token "§k"
app --secret §s
app --client-secret=§k
app --access-token §k
app --secret-key §k
app -password §s
app -token=§k
app /password:§s
app /p:§s /user:ann
runas /user:ann "app --password §s"
plink -pw §s ann@db
pscp -pw '§m' a db:
rdesktop -u ann -p §s db
xfreerdp /u:ann /p:§s /v:db
xfreerdp /u:ann '/p:§s' /v:db
vncpasswd <<< §s
lftp -u ann,§p files
ftp -u ann:§p files
ncftp -u ann -p §p files
snmpwalk -v3 -A §s -X §s db
ipmitool -U admin -P §s chassis status
impala-shell -l -u ann --ldap_password_cmd="echo -n §s"
cqlsh -u ann -p §s db
influx -username ann -password §s
clickhouse-client --password §s
cockroach sql --url postgresql://ann:§p@db
rabbitmqctl add_user ann §s
rabbitmqctl change_password ann '§m'
CREATE USER ann WITH PASSWORD '§m';
CREATE USER 'ann'@'%' IDENTIFIED BY '§m';
ALTER USER ann PASSWORD '§m';
ALTER USER ann WITH ENCRYPTED PASSWORD '§m';
ALTER USER 'root'@'localhost' IDENTIFIED WITH mysql_native_password BY '§m';
SET PASSWORD FOR ann = PASSWORD('§m');
GRANT ALL ON *.* TO 'ann'@'%' IDENTIFIED BY '§s';
CREATE LOGIN ann WITH PASSWORD = N'§m';
INSERT INTO settings (k, v) VALUES ('smtp_password', '§m');
UPDATE users SET password = '§m' WHERE id = 1;
UPDATE users SET password='§m', name='ann';
CREATE ROLE ann LOGIN PASSWORD '§s';
CONFIG SET requirepass §p
db.createUser({user: "ann", pwd: "§m", roles: []})
"""

_PROGRAMS: Final = """
os.environ.get("DB_PASSWORD") or "§s"
os.getenv('REDIS_PASSWORD') or '§s'
getenv("DB_PASSWORD") ?: "§s"
val pw = System.getenv("DB_PASSWORD") ?: "§s"
ENV.fetch("DB_PASSWORD") { "§s" }
Environment.GetEnvironmentVariable("DB_PASSWORD") ?? "§s"
std::env::var("DB_PASSWORD").unwrap_or("§p".into())
std::env::var("DB_PASSWORD").unwrap_or_else(|_| "§p".to_string())
Optional.ofNullable(System.getenv("DB_PASSWORD")).orElse("§p")
config.get("password", fallback="§s")
password: str = Field(default="§s")
password = models.CharField(max_length=64, default="§s")
password: Mapped[str] = mapped_column(default="§s")
new NetworkCredential("ann@example.com", "§p")
password = "§m"
password = '§m'
password: str = "§m"
PASSWORD: Final = "§m"
PASSWORD: Final[str] = "§m"
password: Optional[str] = "§s"
self.password = "§m"
self._token = "§k"
config["password"] = "§m"
config['db']['password'] = '§m'
os.environ["DB_PASSWORD"] = "§m"
os.environ.setdefault("API_TOKEN", "§k")
os.getenv("DB_PASSWORD", "§m")
os.environ.get('DB_PASSWORD', '§m')
process.env.DB_PASSWORD = "§m"
process.env.DB_PASSWORD || "§s"
const token = process.env.TOKEN ?? '§k';
connect(host="db", password="§m")
connect(user='ann', passwd='§m')
dict(password="§m")
{"user": "ann", "password": "§m"}
{'user': 'ann', 'password': '§m'}
{user: "ann", password: "§m"}
{ user: 'ann', pass: '§m' },
auth=("ann", "§m")
auth=('ann', '§s')
requests.get(url, auth=("ann", "§m"))
requests.get(url, auth=HTTPBasicAuth("ann", "§m"))
headers = {"Authorization": "Bearer §k"}
headers = {"Authorization": f"Bearer §k"}
headers={'X-API-Key': '§k'}
headers: { Authorization: `Bearer §k` }
password = f"§s"
password = r"§m"
password = b"§m"
token = u'§k'
const password = "§m";
const password = `§m`;
let password: string = "§m";
const password: string = '§m'
var apiKey = '§k'
export const API_KEY = "§k";
private readonly apiKey: string = "§k";
static final String PASSWORD = "§m";
private static final String API_KEY = "§k";
String password = "§m";
public string Password { get; set; } = "§m";
string password = @"§m";
var password = $"§s";
password := "§m"
var password string = "§m"
const apiKey = "§k"
Password: "§m",
cfg.Password = "§m"
let password = "§m";
let password: &str = "§m";
const API_KEY: &str = "§k";
static TOKEN: &'static str = "§k";
password: "§m".to_string(),
let token = String::from("§k");
$password = "§m";
$password = '§m';
define('DB_PASSWORD', '§m');
define("AUTH_KEY", "§m");
'password' => '§m',
"password" => "§m"
:password => "§m"
password: '§m', user: 'ann'
:password "§m"
(setq password "§m")
(def password "§m")
password <- "§m"
my $password = '§m';
our $api_key = "§k";
local password = "§m"
password = [[§s]]
val password = "§m"
val password: String = "§m"
let password: String = "§m"
var password: String? = "§m"
#define PASSWORD "§m"
char *password = "§m";
const char password[] = "§m";
std::string password{"§m"};
std::string password("§m");
setPassword("§m")
.setPassword("§m")
.password("§m")
user.set_password("§m")
ds.setPassword('§m');
withPassword("§s")
login("ann", "§s")
client.login("ann@example.com", "§s")
smtp.login('ann@example.com', '§m')
new NetworkCredential("ann", "§m")
DriverManager.getConnection(url, "ann", "§m")
mysqli_connect("db", "ann", "§m", "prod")
psycopg2.connect("dbname=prod user=ann password=§s")
create_engine("postgresql://ann:§p@db/prod")
redis.Redis(host="cache", password="§m")
openai.api_key = "§k"
OpenAI(api_key="§k")
new OpenAI({ apiKey: "§k" })
jwt.encode(claims, "§k", algorithm="HS256")
jwt.sign(payload, '§k')
app.secret_key = "§m"
app.config["SECRET_KEY"] = "§m"
SECRET_KEY = 'django-insecure-§k'
SECRET_KEY = "§m"
hmac.new(b"§p", body, sha256)
if password == "§m":
if (password === '§s') {
assert token == "§k"
password !== "§s"
password = input() or "§s"
password = args.password or "§m"
@Value("${db.password:§s}")
${DB_PASSWORD:-§s}
DB_PASSWORD=${DB_PASSWORD:-§s}
${DB_PASSWORD:=§s}
{{ db_password | default('§s') }}
data-api-key="§k"
<Client apiKey="§k" />
<Client apiKey={"§k"} />
v-bind:token="'§k'"
password="§p\\"§p"
password='§p\\'§p'
password="§p\\\\§p"
password = ("§s")
password = (⏎    "§m"⏎)
password = \\⏎    "§m"
password =⏎  "§s"
const password =⏎  '§m';
api_key=\"\"\"§k\"\"\"
password="§p"§p"
password: 'it''§p'
"""

_TRAFFIC: Final = """
Authorization: Bearer §k
Authorization: Basic §b
Authorization: token §k
Authorization: Token token="§k"
Authorization: Digest username="ann", realm="x", nonce="§h", response="§h"
Authorization: ApiKey §k
Authorization: Bot §k
Authorization: SSWS §k
Authorization: AWS4-HMAC-SHA256 Credential=x/20260101/eu/s3/aws4_request, SignedHeaders=host, Signature=§h
authorization: §k
"Authorization": "Bearer §k"
'authorization': 'Basic §b'
Proxy-Authorization: Basic §b
> Authorization: Bearer §k
< Set-Cookie: session=§k; Path=/; HttpOnly
Set-Cookie: sid=§h; Secure
Cookie: session=§k
Cookie: theme=dark; sessionid=§h; csrftoken=§k
"cookie": "sid=§k; lang=en"
Cookie: sid="§k"; lang=en
Cookie: lang=en; sid="§k"
document.cookie = "session=§k"
X-Api-Key: §k
x-api-key: §U
x-goog-api-key: §k
Ocp-Apim-Subscription-Key: §h
X-Auth-Token: §k
X-Vault-Token: §k
X-CSRF-Token: §k
X-Amz-Security-Token: §b
apikey: §k
PRIVATE-TOKEN: §k
JOB-TOKEN: §k
DD-API-KEY: §h
POST /login HTTP/1.1⏎Host: app.example.com⏎Content-Type: application/x-www-form-urlencoded⏎⏎username=ann&password=§p
GET /v1?token=§k HTTP/1.1
level=info msg=login user=ann token=§k
level=info password=§s
time="2026-01-01" level=debug msg="auth" token="§k"
2026-01-01 12:00:00 INFO login password=§s user=ann
2026-01-01T12:00:00Z DEBUG [auth] token: §k
[DEBUG] password: §s
{"level":"info","token":"§k","msg":"ok"}
INFO auth - Using token §k
using api key §k
using password §s
Generated password: §s
A temporary password is generated for root@localhost: §s
Initial admin password: §s
Please use the following password to proceed to installation: §h
Default admin password is §s
Your new API key is: §k
Your token: §k
Token created: §k
export TOKEN=§k
+ curl -H 'Authorization: Bearer §k'
Enter password: §s
Password:⏎§s
Login with username admin and password §s
Access denied for user 'ann' using password '§s'
invalid token §k
Invalid API key: §k
Incorrect API key provided: §k.
token §k has expired
The token "§k" is invalid
Traceback: ValueError: bad password '§s'
HTTP 401 {"error":"invalid_token","token":"§k"}
USER ann⏎PASS §s
AUTH PLAIN §b
Unseal Key 2: §h
Recovery Key 1: §h
vault operator unseal §h
{"method": "auth.login_with_api_key", "params": ["8-§k"]}
AUTH LOGIN §b
a001 LOGIN ann §s
"""


def places() -> Iterator[tuple[str, str]]:
    """The name of the group of each place, and the place."""
    for group, listing in (
        ("english", _ENGLISH),
        ("chinese", _CHINESE),
        ("settings", _SETTINGS),
        ("commands", _COMMANDS),
        ("programs", _PROGRAMS),
        ("traffic", _TRAFFIC),
    ):
        for template in listing.strip("\n").split("\n"):
            yield group, template.replace("⏎", "\n")


def placed(template: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A place with its values, and them."""
    return filled(template, rng)
