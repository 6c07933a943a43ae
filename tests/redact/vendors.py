"""Tokens in the shapes that their vendors document, in places where people leave them."""

import random
from collections.abc import Iterator
from typing import Final

from tests.redact.chance import HEX, UPPER, armoured, base64_of, filled, jwt, shaped, some

# Literal text, and classes with a count. One line a token: a name, then its shape.
_SHAPES: Final = """
openai-old          sk-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}
openai-project      sk-proj-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}
openai-project-48   sk-proj-[A-Za-z0-9]{20}T3BlbkFJ[A-Za-z0-9]{20}
openai-service      sk-svcacct-[A-Za-z0-9_-]{74}T3BlbkFJ[A-Za-z0-9_-]{74}
openai-admin        sk-admin-[A-Za-z0-9_-]{58}T3BlbkFJ[A-Za-z0-9_-]{58}
anthropic-api       sk-ant-api03-[A-Za-z0-9_-]{93}AA
anthropic-admin     sk-ant-admin01-[A-Za-z0-9_-]{93}AA
anthropic-oauth     sk-ant-oat01-[A-Za-z0-9_-]{93}AA
anthropic-refresh   sk-ant-ort01-[A-Za-z0-9_-]{93}AA
openrouter          sk-or-v1-[a-f0-9]{64}
deepseek            sk-[a-f0-9]{32}
moonshot            sk-[A-Za-z0-9]{48}
github-classic      ghp_[A-Za-z0-9]{36}
github-oauth        gho_[A-Za-z0-9]{36}
github-user         ghu_[A-Za-z0-9]{36}
github-server       ghs_[A-Za-z0-9]{36}
github-refresh      ghr_[A-Za-z0-9]{76}
github-fine         github_pat_[A-Za-z0-9]{22}_[A-Za-z0-9]{59}
gitlab-personal     glpat-[A-Za-z0-9_-]{20}
gitlab-routable     glpat-[A-Za-z0-9_-]{27}.[0-9a-z]{2}.[0-9a-z]{9}
gitlab-deploy       gldt-[A-Za-z0-9_-]{20}
gitlab-runner       glrt-[A-Za-z0-9_-]{20}
gitlab-runner-new   glrt-t1_[A-Za-z0-9_-]{20}
gitlab-job          glcbt-[0-9a-f]{2}_[A-Za-z0-9_-]{20}
gitlab-trigger      glptt-[a-f0-9]{40}
gitlab-feed         glft-[A-Za-z0-9_-]{20}
gitlab-mail         glimt-[A-Za-z0-9_-]{25}
gitlab-agent        glagent-[A-Za-z0-9_-]{50}
gitlab-oauth        gloas-[a-f0-9]{64}
gitlab-scim         glsoat-[A-Za-z0-9_-]{20}
aws-key             AKIA[A-Z2-7]{16}
aws-temporary       ASIA[A-Z2-7]{16}
aws-bedrock         ABSK[A-Za-z0-9+/]{109,120}=
google-api          AIza[A-Za-z0-9_-]{35}
google-oauth        ya29.[A-Za-z0-9_-]{120,180}
google-oauth-a0     ya29.a0[A-Za-z0-9_-]{160,200}
google-client       GOCSPX-[A-Za-z0-9_-]{28}
google-refresh      1//0[A-Za-z0-9_-]{90,100}
azure-client        [A-Za-z0-9]{3}8Q~[A-Za-z0-9_.~-]{33}z
azure-devops        [A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}
slack-bot           xoxb-[0-9]{12}-[0-9]{13}-[A-Za-z0-9]{24}
slack-user          xoxp-[0-9]{12}-[0-9]{12}-[0-9]{13}-[a-f0-9]{32}
slack-browser       xoxc-[0-9]{12}-[0-9]{12}-[0-9]{13}-[a-f0-9]{64}
slack-cookie        xoxd-[A-Za-z0-9%]{120,160}
slack-config        xoxe.xoxp-1-[A-Za-z0-9]{146,166}
slack-refresh       xoxe-1-[A-Za-z0-9]{146}
slack-old           xoxs-[0-9]{10}-[0-9]{10}-[0-9]{10}-[a-f0-9]{10}
slack-app           xapp-1-A[A-Z0-9]{10}-[0-9]{13}-[a-f0-9]{64}
slack-webhook       https://hooks.slack.com/services/T[A-Z0-9]{8,10}/B[A-Z0-9]{8,10}/[A-Za-z0-9]{24}
slack-workflow      https://hooks.slack.com/workflows/T[A-Z0-9]{8}/A[A-Z0-9]{8}/[0-9]{18}/[A-Za-z0-9]{24}
slack-trigger       https://hooks.slack.com/triggers/T[A-Z0-9]{8}/[0-9]{13}/[a-f0-9]{32}
discord-bot         MT[A-Za-z0-9]{24}.[A-Za-z0-9_-]{6}.[A-Za-z0-9_-]{38}
discord-bot-old     ND[A-Za-z0-9]{22}.[A-Za-z0-9_-]{6}.[A-Za-z0-9_-]{27}
discord-webhook     https://discord.com/api/webhooks/[0-9]{18,19}/[A-Za-z0-9_-]{68}
discord-webhook-old https://canary.discordapp.com/api/webhooks/[0-9]{18}/[A-Za-z0-9_-]{68}
teams-webhook       https://acme.webhook.office.com/webhookb2/[0-9a-f]{8}-1234-4abc-8def-[0-9a-f]{12}@[0-9a-f]{8}-1234-4abc-8def-[0-9a-f]{12}/IncomingWebhook/[a-f0-9]{32}/[0-9a-f]{8}-1234-4abc-8def-[0-9a-f]{12}
stripe-live         sk_live_[A-Za-z0-9]{24}
stripe-live-new     sk_live_51[A-Za-z0-9]{97}
stripe-test         sk_test_51[A-Za-z0-9]{97}
stripe-restricted   rk_live_51[A-Za-z0-9]{97}
stripe-restricted-t rk_test_[A-Za-z0-9]{24}
stripe-webhook      whsec_[A-Za-z0-9]{32}
twilio-key          SK[a-f0-9]{32}
twilio-account      AC[a-f0-9]{32}
sendgrid            SG.[A-Za-z0-9_-]{22}.[A-Za-z0-9_-]{43}
npm                 npm_[A-Za-z0-9]{36}
pypi                pypi-AgEIcHlwaS5vcmc[A-Za-z0-9_-]{140,170}
pypi-test           pypi-AgENdGVzdC5weXBpLm9yZw[A-Za-z0-9_-]{140}
huggingface         hf_[A-Za-z]{34}
huggingface-mixed   hf_[A-Za-z0-9]{34}
groq                gsk_[A-Za-z0-9]{52}
xai                 xai-[A-Za-z0-9]{80}
perplexity          pplx-[A-Za-z0-9]{48}
replicate           r8_[A-Za-z0-9]{37}
telegram            [0-9]{8,10}:AA[A-Za-z0-9_-]{33}
digitalocean        dop_v1_[a-f0-9]{64}
digitalocean-oauth  doo_v1_[a-f0-9]{64}
digitalocean-ref    dor_v1_[a-f0-9]{64}
doppler             dp.pt.[A-Za-z0-9]{43}
doppler-service     dp.st.prd.[A-Za-z0-9]{43}
docker              dckr_pat_[A-Za-z0-9_-]{27}
docker-org          dckr_oat_[A-Za-z0-9_-]{32}
circleci            CCIPAT_[A-Za-z0-9]{22}_[a-f0-9]{40}
databricks          dapi[a-f0-9]{32}
databricks-dash     dapi[a-f0-9]{32}-2
grafana-cloud       glc_eyJvIjoi[A-Za-z0-9+/]{80,120}==
grafana-service     glsa_[A-Za-z0-9]{32}_[a-f0-9]{8}
netlify             nfp_[A-Za-z0-9]{36}
atlassian           ATATT3xFfGF0[A-Za-z0-9_-]{170}=[A-F0-9]{8}
hubspot             pat-na1-[a-f0-9]{8}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{4}-[a-f0-9]{12}
fly                 FlyV1 fm2_[A-Za-z0-9+/]{150}=,fm2_[A-Za-z0-9+/]{150}==
tavily              tvly-[A-Za-z0-9]{32}
tavily-dev          tvly-dev-[A-Za-z0-9]{32}
fireworks           fw_[A-Za-z0-9]{24}
linear              lin_api_[A-Za-z0-9]{40}
linear-oauth        lin_oauth_[a-f0-9]{64}
notion              secret_[A-Za-z0-9]{43}
notion-new          ntn_[0-9]{11}[A-Za-z0-9]{35}
figma               figd_[A-Za-z0-9_-]{40}
postman             PMAK-[a-f0-9]{24}-[a-f0-9]{34}
mailgun             key-[a-f0-9]{32}
mailchimp           [a-f0-9]{32}-us12
shopify-admin       shpat_[a-f0-9]{32}
shopify-shared      shpss_[a-f0-9]{32}
shopify-custom      shpca_[a-f0-9]{32}
shopify-private     shppa_[a-f0-9]{32}
square              sq0atp-[A-Za-z0-9_-]{22}
square-secret       sq0csp-[A-Za-z0-9_-]{43}
newrelic            NRAK-[A-Z0-9]{27}
sentry-org          sntrys_eyJpYXQiOj[A-Za-z0-9+/]{120}=_[A-Za-z0-9+/]{43}
sentry-user         sntryu_[a-f0-9]{64}
planetscale         pscale_tkn_[A-Za-z0-9_-]{43}
planetscale-pw      pscale_pw_[A-Za-z0-9_-]{43}
supabase            sbp_[a-f0-9]{40}
supabase-secret     sb_secret_[A-Za-z0-9_-]{22}_[A-Za-z0-9_-]{8}
vault-service       hvs.[A-Za-z0-9_-]{92}
vault-batch         hvb.AAAAAQ[A-Za-z0-9_-]{140}
terraform-cloud     [A-Za-z0-9]{14}.atlasv1.[A-Za-z0-9]{67}
pulumi              pul-[a-f0-9]{40}
age                 AGE-SECRET-KEY-1[QPZRY9X8GF2TVDW0S3JN54KHCE6MUA7L]{58}
rubygems            rubygems_[a-f0-9]{48}
nuget               oy2[a-z2-7]{43}
crates              cio[A-Za-z0-9]{32}
clojars             CLOJARS_[a-f0-9]{60}
dropbox             sl.B[A-Za-z0-9_-]{135}
airtable            pat[A-Za-z0-9]{14}.[a-f0-9]{64}
heroku              HRKU-AA[A-Za-z0-9_-]{58}
vercel-blob         vercel_blob_rw_[A-Za-z0-9]{16}_[A-Za-z0-9]{30}
aliyun              LTAI5t[A-Za-z0-9]{18}
aliyun-old          LTAI[A-Za-z0-9]{12}
tencent             AKID[A-Za-z0-9]{32}
baidu               bce-v3/ALTAK-[A-Za-z0-9]{21}/[a-f0-9]{40}
volcengine          AKLT[A-Za-z0-9]{43}
feishu-webhook      https://open.feishu.cn/open-apis/bot/v2/hook/[a-f0-9]{8}-1234-4abc-8def-[a-f0-9]{12}
lark-webhook        https://open.larksuite.com/open-apis/bot/v2/hook/[a-f0-9]{8}-1234-4abc-8def-[a-f0-9]{12}
dingtalk-webhook    https://oapi.dingtalk.com/robot/send?access_token=[a-f0-9]{64}
dingtalk-sign       SEC[a-f0-9]{64}
wecom-webhook       https://qyapi.weixin.qq.com/cgi-bin/webhook/send?key=[a-f0-9]{8}-1234-4abc-8def-[a-f0-9]{12}
langsmith           lsv2_pt_[a-f0-9]{32}_[a-f0-9]{10}
pinecone            pcsk_[A-Za-z0-9]{6}_[A-Za-z0-9]{63}
cerebras            csk-[a-z0-9]{48}
nvidia              nvapi-[A-Za-z0-9_-]{64}
jina                jina_[a-f0-9]{32}[A-Za-z0-9_-]{28}
voyage              pa-[A-Za-z0-9_-]{43}
elevenlabs          sk_[a-f0-9]{48}
sourcegraph         sgp_[a-f0-9]{16}_[a-f0-9]{40}
sonar-user          squ_[a-f0-9]{40}
sonar-project       sqp_[a-f0-9]{40}
jfrog               AKCp[A-Za-z0-9]{69}
facebook            EAACEdEose0cBA[A-Za-z0-9]{150}
dynatrace           dt0c01.[A-Z2-7]{24}.[A-Z2-7]{64}
contentful          CFPAT-[A-Za-z0-9_-]{43}
easypost            EZAK[A-Za-z0-9]{54}
flutterwave         FLWSECK_TEST-[a-h0-9]{32}-X
typeform            tfp_[A-Za-z0-9_.=-]{59}
buildkite           bkua_[a-f0-9]{40}
prefect             pnu_[A-Za-z0-9]{36}
readme              rdme_[a-z0-9]{70}
brevo               xkeysib-[a-f0-9]{64}-[A-Za-z0-9]{16}
shippo              shippo_live_[a-f0-9]{40}
tailscale           tskey-auth-k[A-Za-z0-9]{10}CNTRL-[A-Za-z0-9]{32}
onepassword         ops_eyJ[A-Za-z0-9_-]{250,300}
duffel              duffel_live_[A-Za-z0-9_-]{43}
"""

# §v is the token. These take it as it is.
_PLACES: Final = (
    "§v",
    "here it is: §v",
    "use §v for the deploy, please",
    "I pasted `§v` into the settings.",
    "the old one was §v.",
    "(§v)",
    '"§v"',
    "API_KEY=§v",
    'export API_KEY="§v"',
    '{"api_key": "§v", "region": "eu"}',
    "api_key: §v",
    "我的密钥是§v，请保管好",
    "令牌：§v。",
    'client = Client(api_key="§v")',
    "curl -H 'Authorization: Bearer §v' https://api.example.com/v1/me",
    "| staging | §v | ann |",
    '{\\"key\\": \\"§v\\"}',
    "**key**: **§v**",
    "<key>§v</key>",
    "got 401 with §v, what now?",
)

_ALGORITHMS: Final = (
    ("HS256", 32),
    ("HS512", 64),
    ("RS256", 256),
    ("ES256", 64),
    ("EdDSA", 64),
    ("PS384", 256),
)


def tokens() -> Iterator[tuple[str, str]]:
    """The name of each token, and its shape."""
    for line in _SHAPES.strip().splitlines():
        name, _, shape = line.partition(" ")
        yield name, shape.strip()


def token(shape: str, rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A token somewhere, and the token."""
    value = shaped(shape, rng)
    places: tuple[str, ...] = _PLACES
    if " " in value:
        places = ("§v", 'API_KEY="§v"', "the deploy token is §v")
    return rng.choice(places).replace("§v", value), (value,)


def web_token(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A JSON web token of any algorithm, sometimes with a key id, sometimes encrypted."""
    algorithm, size = rng.choice(_ALGORITHMS)
    header = {"alg": algorithm, "typ": "JWT"} | ({"kid": some(rng, HEX, 12)} if rng.random() < 0.3 else {})
    value = jwt(rng, header, size)
    if rng.random() < 0.2:
        value = "eyJhbGciOiJSU0EtT0FFUCIsImVuYyI6IkEyNTZHQ00ifQ." + ".".join(
            base64_of(rng, part).rstrip("=").replace("+", "-").replace("/", "_") for part in (256, 12, 80, 16)
        )
    return rng.choice(_PLACES).replace("§v", value), (value,)


def block(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A private key in one of its armours, whole or cut, indented, quoted or on one line."""
    kind, size, headers = rng.choice(
        [
            ("RSA PRIVATE KEY", 1190, ""),
            (
                "RSA PRIVATE KEY",
                1190,
                f"Proc-Type: 4,ENCRYPTED\nDEK-Info: AES-128-CBC,{some(rng, UPPER, 32)}\n\n",
            ),
            ("EC PRIVATE KEY", 121, ""),
            ("DSA PRIVATE KEY", 450, ""),
            ("PRIVATE KEY", 1217, ""),
            ("ENCRYPTED PRIVATE KEY", 1300, ""),
            ("OPENSSH PRIVATE KEY", 400, ""),
            ("PGP PRIVATE KEY BLOCK", 900, "Version: GnuPG v2.0.22 (GNU/Linux)\nComment: ann\n\n"),
            ("PGP PRIVATE KEY BLOCK", 900, "\n"),
        ]
    )
    text, lines = armoured(rng, kind, size, headers=headers)
    if kind.startswith("PGP"):
        head, _, tail = text.rpartition("\n-----END")
        text = f"{head}\n={base64_of(rng, 3)}\n-----END{tail}"
    secrets = tuple(lines)
    match rng.randrange(9):
        case 0:
            return f"The key:\n```\n{text}\n```\nkeep it", secrets
        case 1:
            cut = text[: rng.randint(max(len(text) // 3, 160), len(text) - 40)]
            return cut, tuple(line for line in secrets if line in cut)
        case 2:
            return "key: |\n" + "\n".join("  " + line for line in text.splitlines()) + "\nnext: 1", secrets
        case 3:
            return "\n".join("> " + line for line in text.splitlines()), secrets
        case 4:
            joined = text.replace("\n", "\\n")
            return f'{{"type": "service_account", "private_key": "{joined}\\n", "client_id": "1"}}', secrets
        case 5:
            joined = text.replace("\n", "\\\\n")
            return f'{{"arguments": "{{\\"private_key\\": \\"{joined}\\\\n\\"}}"}}', secrets
        case 6:
            return " ".join(text.split("\n")), secrets
        case 7:
            return text.replace("\n", "\r\n") + "\r\n", secrets
        case _:
            return "\n".join(f'  "{line}\\n" +' for line in text.splitlines()), secrets


def putty(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A key file of PuTTY."""
    private = [base64_of(rng, 48) for _ in range(rng.randint(2, 14))]
    public = "\n".join(base64_of(rng, 48) for _ in range(3))
    mac = some(rng, HEX, 64)
    return (
        f"PuTTY-User-Key-File-{rng.choice('23')}: ssh-rsa\nEncryption: none\nComment: rsa-key-20240101\nPublic-Lines: 3\n{public}\n"
        f"Private-Lines: {len(private)}\n" + "\n".join(private) + f"\nPrivate-MAC: {mac}\n",
        tuple(private),
    )


def service_account(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """The key file of a Google service account, as a file, on one line or escaped in a string."""
    text, lines = armoured(rng, "PRIVATE KEY", 1217)
    key, identity = text.replace("\n", "\\n") + "\\n", some(rng, HEX, 40)
    fields = [
        '"type": "service_account"',
        '"project_id": "acme-prod"',
        f'"private_key_id": "{identity}"',
        f'"private_key": "{key}"',
        '"client_email": "deploy@acme-prod.iam.gserviceaccount.com"',
        '"token_uri": "https://oauth2.googleapis.com/token"',
    ]
    match rng.randrange(3):
        case 0:
            return "{\n  " + ",\n  ".join(fields) + "\n}", tuple(lines)
        case 1:
            return "GOOGLE_CREDENTIALS='{" + ", ".join(fields) + "}'", tuple(lines)
        case _:
            inner = "{" + ",".join(fields) + "}"
            return '{"content": "' + inner.replace("\\", "\\\\").replace('"', '\\"') + '"}', tuple(lines)


def key_by_name(rng: random.Random) -> tuple[str, tuple[str, ...]]:
    """A cloud's secret key, which only the name beside it tells."""
    secret = base64_of(rng, 30)
    session = "FwoGZXIvYXdz" + base64_of(rng, 210)
    account, shared = base64_of(rng, 64), base64_of(rng, 32)
    signature = base64_of(rng, 32).replace("+", "%2B").replace("/", "%2F").replace("=", "%3D")
    text, values = rng.choice(
        [
            (
                f"[default]\naws_access_key_id = x\naws_secret_access_key = {secret}\naws_session_token = {session}\n",
                (secret, session),
            ),
            (f"export AWS_SECRET_ACCESS_KEY={secret}\nexport AWS_SESSION_TOKEN={session}", (secret, session)),
            (
                f'{{"Credentials": {{"SecretAccessKey": "{secret}", "SessionToken": "{session}", "Expiration": "2026-01-01T00:00:00Z"}}}}',
                (secret, session),
            ),
            (f"AWS Secret Access Key [None]: {secret}\nDefault region name [None]: eu-west-1", (secret,)),
            (f"aws configure set aws_secret_access_key {secret}", (secret,)),
            (f"AWS 的 SecretKey 是 {secret}，别外传", (secret,)),
            (
                f"DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={account};EndpointSuffix=core.windows.net",
                (account,),
            ),
            (
                f'"AzureWebJobsStorage": "DefaultEndpointsProtocol=https;AccountName=acme;AccountKey={account}"',
                (account,),
            ),
            (
                f"Endpoint=sb://acme.servicebus.windows.net/;SharedAccessKeyName=Root;SharedAccessKey={shared}",
                (shared,),
            ),
            (f"HostName=acme.azure-devices.net;DeviceId=d1;SharedAccessKey={shared}", (shared,)),
            (f"AccountEndpoint=https://acme.documents.azure.com:443/;AccountKey={account};", (account,)),
            (
                f"https://acme.blob.core.windows.net/c/f.txt?sv=2022-11-02&se=2026-01-01&sr=b&sp=r&sig={signature}",
                (signature,),
            ),
            (f"SharedAccessSignature sr=acme&sig={signature}&se=1700000000&skn=Root", (signature,)),
            *_small(rng),
        ]
    )
    return text, values


def _small(rng: random.Random) -> Iterator[tuple[str, tuple[str, ...]]]:
    """Other clouds."""
    for template in (
        "ALIBABA_CLOUD_ACCESS_KEY_SECRET=§k",
        'accessKeySecret: "§k"',
        "AccessKey Secret：§k",
        "TENCENTCLOUD_SECRET_KEY=§k",
        '"SecretKey": "§k"',
        "qiniu.Auth(ak, sk)  # secret_key=§k",
        "TWILIO_AUTH_TOKEN=§h",
        "DD_API_KEY=§h",
        "CLOUDFLARE_API_TOKEN=§k",
        "VERCEL_TOKEN=§k",
        "ZHIPUAI_API_KEY=§h.§k",
        "wandb login §h",
        "MISTRAL_API_KEY=§k",
        "AZURE_OPENAI_API_KEY=§h",
        "X-Amz-Signature=§h",
        "https://b.s3.amazonaws.com/f?X-Amz-Algorithm=AWS4-HMAC-SHA256&X-Amz-Expires=900&X-Amz-Signature=§h",
        "微信 AppSecret：§h",
        "appsecret=§h",
        "[Interface]\nPrivateKey = §b\nAddress = 10.0.0.2/24",
        "PresharedKey = §b",
        "ngrok config add-authtoken §k",
    ):
        yield filled(template, rng)
