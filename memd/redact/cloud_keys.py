"""Keys of clouds, and of what runs in them, by the prefix or the form that each has."""

from memd.redact.rule import Token

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

CLOUDS = (
    Token(
        "aws-key-id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _EDGE + r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    Token(
        "aws-bedrock-key",
        ("ABSK", "bedrock-api-key-"),
        _EDGE + r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/=]{60,}+",
    ),
    Token(
        "google-key",
        ("AIza", "ya29.", "GOCSPX-", "1//0", "AQ.Ab"),
        _EDGE
        + r"(?:AIza[\w-]{30,}+|ya29\.[\w./-]{16,}+|GOCSPX-[\w-]{16,}+|1//0[\w-]{20,}+|AQ\.Ab[\w-]{20,}+)",
    ),
    Token(
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
    ),
    # The secret of an application holds this in its fourth place and after.
    Token(
        "azure-client-secret",
        ("7Q~", "8Q~"),
        r"[\w-]{3}[78]Q~[\w.~-]{31,34}(?![\w~-])",
        before=4,
    ),
    Token("azure-devops-token", ("AZDO",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", before=77),
    Token("aliyun-key-id", ("LTAI",), _EDGE + r"LTAI[A-Za-z0-9]{12,}+"),
    Token("aliyun-sts-token", ("STS.",), _EDGE + r"STS\.[A-Za-z0-9]{16,}+"),
    Token("tencent-key-id", ("AKID",), _EDGE + r"AKID[A-Za-z0-9]{28,}+"),
    Token("baidu-key", ("bce-v3/",), _EDGE + r"bce-v3/ALTAK-[\w-]{10,40}/[0-9a-f]{32,}+"),
    Token("volcengine-key-id", ("AKLT",), _EDGE + r"AKLT[A-Za-z0-9_-]{20,}+={0,2}"),
    Token("digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), _EDGE + r"do[opr]_v1_[0-9a-f]{32,}+"),
    Token("heroku-key", ("HRKU-",), _EDGE + r"HRKU-[\w-]{30,}+"),
    Token(
        "fly-token",
        ("FlyV1", "fm1r_", "fm1a_", "fm2_", "fo1_"),
        _EDGE + r"(?:FlyV1 )?(?:fm[12][ar]?|fo1)_[\w+/=,-]{20,}+",
    ),
    Token("netlify-token", ("nfp_", "nfo_", "nfu_", "nfc_", "nfb_"), _EDGE + r"nf[poucb]_[A-Za-z0-9]{20,}+"),
    Token(
        "vercel-token",
        ("vcp_", "vci_", "vca_", "vcr_", "vck_", "vercel_blob_rw_"),
        _EDGE + r"(?:vc[piark]_[A-Za-z0-9]{20,}+|vercel_blob_rw_[A-Za-z0-9_]{20,}+)",
    ),
    Token("render-key", ("rnd_",), _EDGE + r"rnd_[A-Za-z0-9]{20,}+"),
    Token("cloudflare-key", ("v1.0-",), _EDGE + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+"),
    Token("supabase-key", ("sbp_", "sb_secret_"), _EDGE + r"(?:sbp_[0-9a-f]{32,}+|sb_secret_[\w-]{16,}+)"),
    Token("neon-key", ("napi_",), _EDGE + r"napi_[a-z0-9]{30,}+"),
    Token("planetscale-token", ("pscale_",), _EDGE + r"pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}+"),
    Token("doppler-token", ("dp.",), _EDGE + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}+"),
    Token("vault-token", ("hvs.", "hvb.", "hvr."), _EDGE + r"hv[sbr]\.[\w-]{20,}+"),
    Token("terraform-token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}+", before=15),
    Token("pulumi-token", ("pul-",), _EDGE + r"pul-[0-9a-f]{40}(?![0-9A-Za-z])"),
    Token(
        "databricks-token",
        ("dapi", "dkea", "dose"),
        _EDGE + r"d(?:api|kea|ose)[0-9a-f]{32}(?:-[0-9])?(?![0-9A-Za-z])",
    ),
    Token("grafana-token", ("glc_", "glsa_"), _EDGE + r"(?:glc_[\w+/=]{20,}+|glsa_[A-Za-z0-9]{20,}+[\w]*+)"),
    Token("grafana-key", ("eyJrIjoi",), _EDGE + r"eyJrIjoi[A-Za-z0-9+/=_-]{30,}+"),
    Token("datadog-key", ("ddapp_", "ddapi_"), _EDGE + r"dda(?:pp|pi)_[A-Za-z0-9]{20,}+"),
    Token("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), _EDGE + r"NR(?:AK|JS|II)-[\w-]{16,}+"),
    Token("dynatrace-token", ("dt0",), _EDGE + r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{32,}+"),
    Token("posthog-key", ("phx_", "phs_"), _EDGE + r"ph[xs]_[A-Za-z0-9]{30,}+"),
    Token(
        "onepassword-token",
        ("ops_eyJ", "A3-"),
        _EDGE + r"(?:ops_eyJ[\w-]{50,}+|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,4}[A-Z0-9]{5,11})",
    ),
    Token("age-key", ("AGE-SECRET-KEY-1",), _EDGE + r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    Token("tailscale-key", ("tskey-",), _EDGE + r"tskey-[\w-]{16,}+"),
    Token("ngrok-key", ("ngrok_",), _EDGE + r"ngrok_[\w-]{30,}+"),
    Token(
        "jwt",
        ("eyJ",),
        _EDGE
        + r"eyJ[\w-]{8,1024}\.(?:eyJ[\w-]{6,}+(?:\.[\w-]*+){0,3}|[\w-]{0,1024}\.[\w-]{10,1024}\.[\w-]{10,}+(?:\.[\w-]*+)?)",
    ),
)
