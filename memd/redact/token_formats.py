"""Tokens that their own form gives away, by the prefix that each service gives its own."""

import string

from memd.redact.rule import TokenFormat

TOKEN_FORMATS = (
    # --- models and their tools
    TokenFormat("anthropic-key", ("sk-ant-",), r"sk-ant-[\w-]{16,}+"),
    TokenFormat("openrouter-key", ("sk-or-",), r"sk-or-[\w-]{16,}+"),
    TokenFormat(
        "openai-key",
        ("sk-", "sess-"),
        r"(?:sk-(?:proj|svcacct|service|admin|None)-[\w-]{16,}+"
        # Many services have taken over the form. A digit tells it from the name of a class or a package.
        r"|sk-(?=[A-Za-z]{0,120}[0-9]|[A-Za-z]{48}(?![A-Za-z]))[A-Za-z0-9]{16,}+[\w-]*+"
        r"|sk-[a-z0-9]{1,10}-(?=[A-Za-z_-]{0,40}[0-9])[A-Za-z0-9_]{16,}+[\w-]*+"
        r"|sess-[A-Za-z0-9]{32,}+)",
    ),
    TokenFormat("groq-key", ("gsk_",), r"gsk_[A-Za-z0-9]{20,}+"),
    TokenFormat("xai-key", ("xai-",), r"xai-[\w-]{20,}+"),
    TokenFormat("perplexity-key", ("pplx-",), r"pplx-[\w-]{20,}+"),
    TokenFormat("replicate-token", ("r8_",), r"r8_[\w-]{20,}+"),
    TokenFormat("huggingface-token", ("hf_", "api_org_"), r"(?:hf|api_org)_[A-Za-z0-9]{20,}+"),
    TokenFormat("fireworks-key", ("fw_",), r"fw_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{20,}+"),
    TokenFormat("tavily-key", ("tvly-",), r"tvly-[\w-]{16,}+"),
    TokenFormat("firecrawl-key", ("fc-",), r"fc-[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat("cerebras-key", ("csk-",), r"csk-[a-z0-9]{20,}+"),
    TokenFormat("nvidia-key", ("nvapi-",), r"nvapi-[\w-]{20,}+"),
    TokenFormat(
        "voyage-key",
        ("pa-", "al-"),
        r"(?:pa|al)-(?=[A-Za-z_-]{0,30}[0-9])(?=[0-9a-z_-]{0,40}[A-Z])[\w-]{40,}+",
    ),
    TokenFormat("langsmith-key", ("lsv2_",), r"lsv2_(?:pt|sk)_[0-9a-f]{20,}+[\w-]*+"),
    TokenFormat("jina-key", ("jina_",), r"jina_[\w-]{20,}+"),
    TokenFormat("elevenlabs-key", ("sk_",), r"sk_[0-9a-f]{32,}+"),
    TokenFormat("pinecone-key", ("pcsk_",), r"pcsk_[\w-]{20,}+"),
    TokenFormat("e2b-key", ("e2b_",), r"e2b_[0-9a-f]{20,}+"),
    TokenFormat("composio-key", ("ak_",), r"ak_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9_-]{18,}+"),
    TokenFormat("exa-key", ("exa_",), r"exa_(?=[A-Za-z]{0,20}[0-9])[\w-]{18,}+"),
    TokenFormat("mem0-key", ("m0-",), r"m0-(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{30,}+"),
    # --- code and where it is kept
    TokenFormat(
        "github-token",
        ("ghp_", "gho_", "ghu_", "ghs_", "ghr_", "github_pat_"),
        r"(?:gh[pousr]_[A-Za-z0-9_.-]{20,}+|github_pat_[A-Za-z0-9_]{20,}+)",
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
        r"(?:gl(?:pat|dt|rt|rtr|cbt|ptt|ft|imt|agent|soat|oas|ffct|wt)-[\w.-]{12,}+|GR1348941[\w-]{12,}+"
        r"|_gitlab_session=(?P<secret>[0-9a-z]{32}))",
    ),
    TokenFormat("bitbucket-token", ("ATBB", "BBDC-"), r"(?:ATBB[A-Za-z0-9]{24,}+|BBDC-[\w-]{24,}+)"),
    TokenFormat(
        "atlassian-token",
        ("ATATT3", "ATCTT3", "ATSTT3"),
        r"AT[ACS]TT3[\w=-]{20,}+",
    ),
    TokenFormat("npm-token", ("npm_",), r"npm_[A-Za-z0-9]{30,}+"),
    TokenFormat("pypi-token", ("pypi-",), r"pypi-Ag[\w-]{30,}+"),
    TokenFormat("rubygems-key", ("rubygems_",), r"rubygems_[0-9a-f]{40,}+"),
    TokenFormat("crates-token", ("cio",), r"cio[A-Za-z0-9]{32}(?![A-Za-z0-9])"),
    TokenFormat("nuget-key", ("oy2",), r"oy2[a-z0-9]{43}(?![A-Za-z0-9])"),
    TokenFormat("docker-token", ("dckr_pat_", "dckr_oat_"), r"dckr_[po]at_[\w-]{16,}+"),
    TokenFormat("circleci-token", ("CCIPAT_", "CCIPRJ_"), r"CCIP(?:AT|RJ)_[\w-]{16,}+"),
    TokenFormat("buildkite-token", ("bkua_",), r"bkua_[0-9a-f]{30,}+"),
    TokenFormat("sonar-token", ("sqp_", "squ_", "sqa_"), r"sq[pua]_[0-9a-f]{40}(?![0-9A-Za-z])"),
    TokenFormat("sourcegraph-token", ("sgp_",), r"sgp_(?:[A-Za-z0-9]{1,16}_)?[0-9a-f]{40}(?![0-9A-Za-z])"),
    TokenFormat("postman-key", ("PMAK-",), r"PMAK-[0-9a-f]{20,}+(?:-[0-9a-f]{20,}+)?"),
    TokenFormat("sentry-token", ("sntrys_", "sntryu_"), r"sntry[su]_[\w+/=-]{30,}+"),
    TokenFormat("figma-token", ("figd_",), r"figd_[\w-]{20,}+"),
    TokenFormat("linear-key", ("lin_api_", "lin_oauth_"), r"lin_(?:api|oauth)_[A-Za-z0-9]{20,}+"),
    TokenFormat("notion-token", ("ntn_", "secret_"), r"(?:ntn_[A-Za-z0-9]{30,}+|secret_[A-Za-z0-9]{40,}+)"),
    TokenFormat("airtable-token", ("pat",), r"pat[A-Za-z0-9]{14}\.[0-9a-f]{64}(?![0-9A-Za-z])"),
    TokenFormat("clojars-token", ("CLOJARS_",), r"CLOJARS_[0-9a-f]{40,}+"),
    TokenFormat("dropbox-token", ("sl.",), r"sl\.(?=[\w-]{0,60}[0-9])[\w-]{100,}+"),
    TokenFormat("jfrog-key", ("AKCp",), r"AKCp[A-Za-z0-9]{60,}+"),
    TokenFormat("contentful-token", ("CFPAT-",), r"CFPAT-[\w-]{30,}+"),
    TokenFormat("typeform-token", ("tfp_",), r"tfp_[\w.=-]{40,}+"),
    TokenFormat("prefect-key", ("pnu_", "pnb_"), r"pn[ub]_[A-Za-z0-9]{30,}+"),
    TokenFormat("readme-key", ("rdme_",), r"rdme_[a-z0-9]{40,}+"),
    TokenFormat(
        "asana-token", ("/1",), r"[0-2]/1[0-9]{12,20}(?:/[0-9]{13,20})?:[0-9a-f]{32}", before=2, edge=False
    ),
    # --- messengers and mail
    TokenFormat(
        "slack-token",
        ("xoxb-", "xoxp-", "xoxa-", "xoxr-", "xoxs-", "xoxo-", "xoxc-", "xoxd-", "xoxe-", "xoxe.", "xapp-"),
        r"(?:xox[a-z](?:\.xox[bp])?-[\w%+/=-]{10,}+|xapp-[\w-]{10,}+)",
    ),
    TokenFormat(
        "slack-webhook",
        ("hooks.slack.com/",),
        r"hooks\.slack\.com/(?P<secret>(?:services|workflows|triggers)/[\w/-]{16,}+)",
        edge=False,
    ),
    TokenFormat(
        "discord-webhook",
        ("/api/webhooks/", "/api/v"),
        r"/api/(?:v[0-9]{1,2}/)?webhooks/(?P<secret>[0-9]{15,22}/[\w-]{40,}+)",
        edge=False,
    ),
    TokenFormat(
        "teams-webhook",
        (".webhook.office.com/", "outlook.office.com/webhook"),
        r"(?:\.webhook\.office\.com|outlook\.office\.com)/webhook(?:b2)?/(?P<secret>[\w@/-]{36,}+)",
        edge=False,
    ),
    TokenFormat(
        "feishu-webhook",
        ("/open-apis/bot/",),
        r"/open-apis/bot/(?:v2/)?hook/(?P<secret>[\w-]{16,}+)",
        edge=False,
    ),
    TokenFormat(
        "dingtalk-webhook",
        ("oapi.dingtalk.com/", "api.dingtalk.com/"),
        r"o?api\.dingtalk\.com/robot/[\w/]{1,40}\?(?:[\w=-]{1,80}&){0,3}access_token=(?P<secret>[\w-]{16,}+)",
        edge=False,
    ),
    TokenFormat("dingtalk-secret", ("SEC",), r"SEC[0-9a-f]{64}(?![0-9A-Za-z])"),
    TokenFormat(
        "wecom-webhook",
        ("qyapi.weixin.qq.com/",),
        r"qyapi\.weixin\.qq\.com/cgi-bin/webhook/[\w/]{1,40}\?(?:[\w=-]{1,80}&){0,3}key=(?P<secret>[\w-]{16,}+)",
        edge=False,
    ),
    # It begins with a number in base64, which is why the first letters are few.
    TokenFormat(
        "discord-token",
        ("MT", "Mj", "Mz", "ND", "NT", "Nj", "Nz", "OD", "OT"),
        r"(?:(?<![\w.-])|(?<=\\[nrt]))[MNO][\w-]{22,28}\.[\w-]{6}\.[\w-]{25,}+",
        edge=False,
    ),
    TokenFormat("discord-mfa-token", ("mfa.",), r"mfa\.[\w-]{60,}+"),
    TokenFormat(
        "telegram-token", (":AA",), r"[0-9]{6,12}:AA[\w-]{30,}+", before=13, signs=string.digits, edge=False
    ),
    TokenFormat("twilio-sid", ("SK", "AC"), r"(?:SK|AC)[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat("sendgrid-key", ("SG.",), r"SG\.[\w-]{16,64}\.[\w-]{16,}+"),
    TokenFormat("mailgun-key", ("key-",), r"key-[0-9a-f]{32}(?![0-9A-Za-z])"),
    TokenFormat(
        "mailchimp-key", ("-us",), r"[0-9a-f]{32}-us[0-9]{1,2}(?![0-9A-Za-z])", before=33, edge=False
    ),
    TokenFormat("brevo-key", ("xkeysib-", "xsmtpsib-"), r"x(?:key|smtp)sib-[0-9a-f]{32,}+[\w-]*+"),
    TokenFormat("resend-key", ("re_",), r"re_(?=[A-Za-z]{0,20}[0-9])[A-Za-z0-9]{8,40}_[A-Za-z0-9]{16,}+"),
    TokenFormat("hubspot-token", ("pat-",), r"pat-(?:na|eu|ap)[0-9]-[0-9a-f]{8}-[0-9a-f-]{20,}+"),
    TokenFormat("line-notify", ("lnt_",), r"lnt_[A-Za-z0-9]{30,}+"),
    # --- payment and shops
    TokenFormat(
        "stripe-key",
        ("sk_live_", "sk_test_", "rk_live_", "rk_test_", "whsec_"),
        r"(?:(?:sk|rk)_(?:live|test)_[A-Za-z0-9]{10,}+|whsec_[A-Za-z0-9+/=]{16,}+)",
    ),
    TokenFormat(
        "square-token",
        ("sq0atp-", "sq0csp-", "EAAA"),
        r"(?:sq0[a-z]{3}-[\w-]{20,}+|EAAA[\w-]{56,}+)",
    ),
    TokenFormat(
        "shopify-token",
        ("shpat_", "shpca_", "shppa_", "shpss_"),
        r"shp(?:at|ca|pa|ss)_[0-9a-fA-F]{32,}+",
    ),
    TokenFormat(
        "paypal-token",
        ("access_token$production$", "access_token$sandbox$"),
        r"access_token\$(?:production|sandbox)\$(?P<secret>[0-9a-z]{16}\$[0-9a-f]{32})",
        edge=False,
    ),
    TokenFormat("easypost-key", ("EZAK", "EZTK"), r"EZ[AT]K[A-Za-z0-9]{50,}+"),
    TokenFormat("flutterwave-key", ("FLWSECK",), r"FLWSECK(?:_TEST)?-[0-9a-zA-Z]{12,}+(?:-X)?"),
    TokenFormat("shippo-token", ("shippo_",), r"shippo_(?:live|test)_[0-9a-f]{32,}+"),
    TokenFormat("duffel-token", ("duffel_",), r"duffel_(?:live|test)_[\w-]{30,}+"),
    TokenFormat("facebook-token", ("EAA",), r"EAA(?=[A-Za-z]{0,30}[0-9])[A-Za-z0-9]{60,}+"),
    # --- clouds, and what runs in them
    TokenFormat(
        "aws-key-id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    TokenFormat(
        "aws-bedrock-key",
        ("ABSK", "bedrock-api-key-"),
        r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/=]{60,}+",
    ),
    TokenFormat(
        "google-key",
        ("AIza", "ya29.", "GOCSPX-", "1//0", "AQ.Ab"),
        r"(?:AIza[\w-]{30,}+|ya29\.[\w./-]{16,}+|GOCSPX-[\w-]{16,}+|1//0[\w-]{20,}+|AQ\.Ab[\w-]{20,}+)",
    ),
    TokenFormat(
        "azure-key",
        (
            "AccountKey",
            "SharedAccessKey",
            "accountkey",
            "sharedaccesskey",
            "ACCOUNTKEY",
            "SharedAccessSignature",
        ),
        r"(?:(?i:AccountKey|SharedAccessKey)|SharedAccessSignature)=(?P<secret>[A-Za-z0-9+/=%&._-]{16,}+)",
        edge=False,
    ),
    # The secret of an application holds this in its fourth place and after.
    TokenFormat(
        "azure-client-secret", ("7Q~", "8Q~"), r"[\w-]{3}[78]Q~[\w.~-]{31,34}(?![\w~-])", before=4, edge=False
    ),
    TokenFormat(
        "azure-devops-token",
        ("AZDO",),
        r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])",
        before=77,
        edge=False,
    ),
    TokenFormat("aliyun-key-id", ("LTAI",), r"LTAI[A-Za-z0-9]{12,}+"),
    TokenFormat("aliyun-sts-token", ("STS.",), r"STS\.[A-Za-z0-9]{16,}+"),
    TokenFormat("tencent-key-id", ("AKID",), r"AKID[A-Za-z0-9]{28,}+"),
    TokenFormat("baidu-key", ("bce-v3/",), r"bce-v3/ALTAK-[\w-]{10,40}/[0-9a-f]{32,}+"),
    TokenFormat("volcengine-key-id", ("AKLT",), r"AKLT[A-Za-z0-9_-]{20,}+={0,2}"),
    TokenFormat("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), r"do[opr]_v1_[0-9a-f]{32,}+"),
    TokenFormat("heroku-key", ("HRKU-",), r"HRKU-[\w-]{30,}+"),
    TokenFormat(
        "fly-token",
        ("FlyV1", "fm1r_", "fm1a_", "fm2_", "fo1_"),
        r"(?:FlyV1 )?(?:fm[12][ar]?|fo1)_[\w+/=,-]{20,}+",
    ),
    TokenFormat("netlify-token", ("nfp_", "nfo_", "nfu_", "nfc_", "nfb_"), r"nf[poucb]_[A-Za-z0-9]{20,}+"),
    TokenFormat(
        "vercel-token",
        ("vcp_", "vci_", "vca_", "vcr_", "vck_", "vercel_blob_rw_"),
        r"(?:vc[piark]_[A-Za-z0-9]{20,}+|vercel_blob_rw_[A-Za-z0-9_]{20,}+)",
    ),
    TokenFormat("render-key", ("rnd_",), r"rnd_[A-Za-z0-9]{20,}+"),
    TokenFormat("cloudflare-key", ("v1.0-",), r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+"),
    TokenFormat("supabase-key", ("sbp_", "sb_secret_"), r"(?:sbp_[0-9a-f]{32,}+|sb_secret_[\w-]{16,}+)"),
    TokenFormat("neon-key", ("napi_",), r"napi_[a-z0-9]{30,}+"),
    TokenFormat("planetscale-token", ("pscale_",), r"pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}+"),
    TokenFormat("doppler-token", ("dp.",), r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}+"),
    TokenFormat("vault-token", ("hvs.", "hvb.", "hvr."), r"hv[sbr]\.[\w-]{20,}+"),
    TokenFormat(
        "terraform-token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}+", before=15, edge=False
    ),
    TokenFormat("pulumi-token", ("pul-",), r"pul-[0-9a-f]{40}(?![0-9A-Za-z])"),
    TokenFormat(
        "databricks-token",
        ("dapi", "dkea", "dose"),
        r"d(?:api|kea|ose)[0-9a-f]{32}(?:-[0-9])?(?![0-9A-Za-z])",
    ),
    TokenFormat("grafana-token", ("glc_", "glsa_"), r"(?:glc_[\w+/=]{20,}+|glsa_[A-Za-z0-9]{20,}+[\w]*+)"),
    TokenFormat("grafana-key", ("eyJrIjoi",), r"eyJrIjoi[A-Za-z0-9+/=_-]{30,}+"),
    TokenFormat("datadog-key", ("ddapp_", "ddapi_"), r"dda(?:pp|pi)_[A-Za-z0-9]{20,}+"),
    TokenFormat("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), r"NR(?:AK|JS|II)-[\w-]{16,}+"),
    TokenFormat("dynatrace-token", ("dt0",), r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{32,}+"),
    TokenFormat("posthog-key", ("phx_", "phs_"), r"ph[xs]_[A-Za-z0-9]{30,}+"),
    TokenFormat(
        "onepassword-token",
        ("ops_eyJ", "A3-"),
        r"(?:ops_eyJ[\w-]{50,}+|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,4}[A-Z0-9]{5,11})",
    ),
    TokenFormat("age-key", ("AGE-SECRET-KEY-1",), r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    TokenFormat("tailscale-key", ("tskey-",), r"tskey-[\w-]{16,}+"),
    TokenFormat("ngrok-key", ("ngrok_",), r"ngrok_[\w-]{30,}+"),
    TokenFormat(
        "jwt",
        ("eyJ",),
        r"eyJ[\w-]{8,1024}\.(?:eyJ[\w-]{6,}+(?:\.[\w-]*+){0,3}|[\w-]{0,1024}\.[\w-]{10,1024}\.[\w-]{10,}+(?:\.[\w-]*+)?)",
    ),
)
