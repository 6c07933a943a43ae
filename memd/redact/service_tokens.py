"""Tokens of services that agents and their owners talk to, by the prefix that each service gives its own."""

import string

from memd.redact.rule import TokenFormat

# What stands before a prefix must not be a part of the same word: "task-runner" holds "sk-" and is none of these. An
# escaped line end or tab before it is no part of it, though it ends in a letter.
_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

MODELS = (
    TokenFormat("anthropic-key", ("sk-ant-",), _EDGE + r"sk-ant-[\w-]{16,}+"),
    TokenFormat("openrouter-key", ("sk-or-",), _EDGE + r"sk-or-[\w-]{16,}+"),
    TokenFormat(
        "openai-key",
        ("sk-", "sess-"),
        _EDGE
        + r"(?:sk-(?:proj|svcacct|service|admin|None)-[\w-]{16,}+"
        # Many services have taken over the form. A digit tells it from the name of a class or a package.
        + r"|sk-(?=[A-Za-z]{0,120}[0-9]|[A-Za-z]{48}(?![A-Za-z]))[A-Za-z0-9]{16,}+[\w-]*+"
        + r"|sk-[a-z0-9]{1,10}-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_]{16,}+[\w-]*+"
        + r"|sess-[A-Za-z0-9]{32,}+)",
    ),
    TokenFormat("groq-key", ("gsk_",), _EDGE + r"gsk_[A-Za-z0-9]{20,}+"),
    TokenFormat("xai-key", ("xai-",), _EDGE + r"xai-[\w-]{20,}+"),
    TokenFormat("perplexity-key", ("pplx-",), _EDGE + r"pplx-[\w-]{20,}+"),
    TokenFormat("replicate-token", ("r8_",), _EDGE + r"r8_[\w-]{20,}+"),
    TokenFormat("huggingface-token", ("hf_", "api_org_"), _EDGE + r"(?:hf|api_org)_[A-Za-z0-9]{20,}+"),
    TokenFormat("fireworks-key", ("fw_",), _EDGE + r"fw_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{20,}+"),
    TokenFormat("tavily-key", ("tvly-",), _EDGE + r"tvly-[\w-]{16,}+"),
    TokenFormat("firecrawl-key", ("fc-",), _EDGE + r"fc-[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat("cerebras-key", ("csk-",), _EDGE + r"csk-[a-z0-9]{20,}+"),
    TokenFormat("nvidia-key", ("nvapi-",), _EDGE + r"nvapi-[\w-]{20,}+"),
    TokenFormat(
        "voyage-key",
        ("pa-", "al-"),
        _EDGE + r"(?:pa|al)-(?=[A-Za-z_-]{0,30}[0-9])(?=[0-9a-z_-]{0,40}[A-Z])[\w-]{40,}+",
    ),
    TokenFormat("langsmith-key", ("lsv2_",), _EDGE + r"lsv2_(?:pt|sk)_[0-9a-f]{20,}+[\w-]*+"),
    TokenFormat("jina-key", ("jina_",), _EDGE + r"jina_[\w-]{20,}+"),
    TokenFormat("elevenlabs-key", ("sk_",), _EDGE + r"sk_[0-9a-f]{32,}+"),
    TokenFormat("pinecone-key", ("pcsk_",), _EDGE + r"pcsk_[\w-]{20,}+"),
    TokenFormat("e2b-key", ("e2b_",), _EDGE + r"e2b_[0-9a-f]{20,}+"),
    TokenFormat("composio-key", ("ak_",), _EDGE + r"ak_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9_-]{18,}+"),
    TokenFormat("exa-key", ("exa_",), _EDGE + r"exa_(?=[A-Za-z]{0,20}[0-9])[\w-]{18,}+"),
    TokenFormat("mem0-key", ("m0-",), _EDGE + r"m0-(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{30,}+"),
)

CODE = (
    TokenFormat(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        _EDGE + r"(?:gh[pousr]_[A-Za-z0-9_.-]{20,}+|github_pat_[A-Za-z0-9_]{20,}+)",
    ),
    TokenFormat(
        "gitlab-token",
        (
            "glpat-",
            "gldt-",
            "glrt-",
            "glrtr-",
            "glcbt-",
            "glptt-",
            "glft-",
            "glimt-",
            "glagent-",
            "glsoat-",
            "gloas-",
            "glffct-",
            "glwt-",
            "GR1348941",
            "_gitlab_session=",
        ),
        _EDGE
        + r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|oas|ffct|wt)-[\w.-]{12,}+|GR1348941[\w-]{12,}+"
        + r"|_gitlab_session=(?P<secret>[0-9a-z]{32}))",
    ),
    TokenFormat("bitbucket-token", ("ATBB", "BBDC-"), _EDGE + r"(?:ATBB[A-Za-z0-9]{24,}+|BBDC-[\w-]{24,}+)"),
    TokenFormat(
        "atlassian-token",
        ("ATATT3", "ATCTT3", "ATSTT3"),
        _EDGE + r"AT[ACS]TT3[\w=-]{20,}+",
    ),
    TokenFormat("npm-token", ("npm_",), _EDGE + r"npm_[A-Za-z0-9]{30,}+"),
    TokenFormat("pypi-token", ("pypi-",), _EDGE + r"pypi-Ag[\w-]{30,}+"),
    TokenFormat("rubygems-key", ("rubygems_",), _EDGE + r"rubygems_[0-9a-f]{40,}+"),
    TokenFormat("crates-token", ("cio",), _EDGE + r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    TokenFormat("nuget-key", ("oy2",), _EDGE + r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    TokenFormat("docker-token", ("dckr_pat_", "dckr_oat_"), _EDGE + r"dckr_[po]at_[\w-]{16,}+"),
    TokenFormat("circleci-token", ("CCIPAT_", "CCIPRJ_"), _EDGE + r"CCIP(?:AT|RJ)_[\w-]{16,}+"),
    TokenFormat("buildkite-token", ("bkua_",), _EDGE + r"bkua_[0-9a-f]{30,}+"),
    TokenFormat("sonar-token", ("sqp_", "squ_", "sqa_"), _EDGE + r"sq[pua]_[0-9a-f]{40}(?![0-9A-Za-z])"),
    TokenFormat(
        "sourcegraph-token", ("sgp_",), _EDGE + r"sgp_(?:[A-Za-z0-9]{1,16}_)?[0-9a-f]{40}(?![0-9A-Za-z])"
    ),
    TokenFormat("postman-key", ("PMAK-",), _EDGE + r"PMAK-[0-9a-f]{20,}+(?:-[0-9a-f]{20,}+)?"),
    TokenFormat("sentry-token", ("sntrys_", "sntryu_"), _EDGE + r"sntry[su]_[\w+/=-]{30,}+"),
    TokenFormat("figma-token", ("figd_",), _EDGE + r"figd_[\w-]{20,}+"),
    TokenFormat("linear-key", ("lin_api_", "lin_oauth_"), _EDGE + r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}+"),
    TokenFormat(
        "notion-token", ("ntn_", "secret_"), _EDGE + r"(?:ntn_[A-Za-z0-9]{30,}+|secret_[A-Za-z0-9]{40,}+)"
    ),
    TokenFormat("airtable-token", ("pat",), _EDGE + r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}(?![0-9A-Za-z])"),
    TokenFormat("clojars-token", ("CLOJARS_",), _EDGE + r"CLOJARS_[0-9a-f]{40,}+"),
    TokenFormat("dropbox-token", ("sl.",), _EDGE + r"sl\.(?=[\w-]{0,60}[0-9])[\w-]{100,}+"),
    TokenFormat("jfrog-key", ("AKCp",), _EDGE + r"AKCp[A-Za-z0-9]{60,}+"),
    TokenFormat("contentful-token", ("CFPAT-",), _EDGE + r"CFPAT-[\w-]{30,}+"),
    TokenFormat("typeform-token", ("tfp_",), _EDGE + r"tfp_[\w.=-]{40,}+"),
    TokenFormat("prefect-key", ("pnu_", "pnb_"), _EDGE + r"pn[ub]_[A-Za-z0-9]{30,}+"),
    TokenFormat("readme-key", ("rdme_",), _EDGE + r"rdme_[a-z0-9]{40,}+"),
    TokenFormat("asana-token", ("/1",), r"[0-2]/1[0-9]{12,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}", before=2),
)

TALK = (
    TokenFormat(
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"),
        _EDGE + r"(?:xox[a-z](?:\.xox[bp])?-[\w%+/=-]{10,}+|xapp-[\w-]{10,}+)",
    ),
    TokenFormat(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[\w/-]{16,}+)",
    ),
    TokenFormat(
        "discord-webhook",
        ("/api/webhooks/", "/api/v"),
        r"/api/(?:v[0-9]{1,2}/)?webhooks/(?P<secret>[0-9]{15,22}/[\w-]{40,}+)",
    ),
    TokenFormat(
        "teams-webhook",
        (".webhook.office.com/", "outlook.office.com/webhook"),
        r"(?:\.webhook\.office\.com|outlook\.office\.com)/webhook(?:b2)?/(?P<secret>[\w@/-]{36,}+)",
    ),
    TokenFormat(
        "feishu-webhook",
        ("/open-apis/bot/",),
        r"/open-apis/bot/(?:v2/)?hook/(?P<secret>[\w-]{16,}+)",
    ),
    TokenFormat(
        "dingtalk-webhook",
        ("oapi.dingtalk.com/", "api.dingtalk.com/"),
        r"o?api\.dingtalk\.com/robot/[\w/]{1,40}\?(?:[\w=-]{1,80}&){0,3}access_token=(?P<secret>[\w-]{16,}+)",
    ),
    TokenFormat("dingtalk-secret", ("SEC",), _EDGE + r"SEC[0-9a-f]{64}(?![0-9A-Za-z])"),
    TokenFormat(
        "wecom-webhook",
        ("qyapi.weixin.qq.com/",),
        r"qyapi\.weixin\.qq\.com/cgi-bin/webhook/[\w/]{1,40}\?(?:[\w=-]{1,80}&){0,3}key=(?P<secret>[\w-]{16,}+)",
    ),
    # It begins with a number in base64, which is why the first letters are few.
    TokenFormat(
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"(?:(?<![\w.-])|(?<=\\[nrt]))[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{25,}+",
    ),
    TokenFormat("discord-mfa-token", ("mfa.",), _EDGE + r"mfa\.[\w-]{60,}+"),
    TokenFormat("telegram-token", (":AA",), r"[0-9]{6,12}:AA[\w-]{30,}+", before=13, signs=string.digits),
    TokenFormat("twilio-sid", ("SK", "AC"), _EDGE + r"(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat("sendgrid-key", ("SG.",), _EDGE + r"SG\.[\w-]{16,64}\.[\w-]{16,}+"),
    TokenFormat("mailgun-key", ("key-",), _EDGE + r"key-[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat("mailchimp-key", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])", before=33),
    TokenFormat("brevo-key", ("xkeysib-", "xsmtpsib-"), _EDGE + r"x(?:key|smtp)sib-[0-9a-f]{32,}+[\w-]*+"),
    TokenFormat(
        "resend-key", ("re_",), _EDGE + r"re_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{8,40}_[A-Za-z0-9]{16,}+"
    ),
    TokenFormat("hubspot-token", ("pat-",), _EDGE + r"pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}-[0-9a-f-]{20,}+"),
    TokenFormat("line-notify", ("lnt_",), _EDGE + r"lnt_[A-Za-z0-9]{30,}+"),
)

SHOPS = (
    TokenFormat(
        "stripe-key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
        _EDGE + r"(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/=]{16,}+)",
    ),
    TokenFormat(
        "square-token",
        ("sq0atp-", "sq0csp-", "EAAA"),
        _EDGE + r"(?:sq0[a-z]{3}-[\w-]{20,}+|EAAA[\w-]{56,}+)",
    ),
    TokenFormat(
        "shopify-token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        _EDGE + r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}+",
    ),
    TokenFormat(
        "paypal-token",
        ("access_token$production$", "access_token$sandbox$"),
        r"access_token\$(?:production|sandbox)\$(?P<secret>[0-9a-z]{16}\$[0-9a-f]{32})",
    ),
    TokenFormat("easypost-key", ("EZAK", "EZTK"), _EDGE + r"EZ[AT]K[A-Za-z0-9]{50,}+"),
    TokenFormat("flutterwave-key", ("FLWSECK",), _EDGE + r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,}+(?:-X)?"),
    TokenFormat("shippo-token", ("shippo_",), _EDGE + r"shippo_(?:live|test)_[0-9a-f]{32,}+"),
    TokenFormat("duffel-token", ("duffel_",), _EDGE + r"duffel_(?:live|test)_[\w-]{30,}+"),
    TokenFormat("facebook-token", ("EAA",), _EDGE + r"EAA(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{60,}+"),
)
