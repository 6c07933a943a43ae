"""Keys of clouds, and of what runs in them, by the prefix or the form that each has."""

from memd.redact.rule import TokenFormat

_EDGE = r"(?:(?<![A-Za-z0-9])|(?<=\\[nrt]))"

CLOUDS = (
    TokenFormat(
        "aws-key-id",
        ("AKIA", "ASIA", "ABIA", "ACCA"),
        _EDGE + r"A(?:KIA|SIA|BIA|CCA)[A-Z0-9]{16}(?![A-Za-z0-9])",
    ),
    TokenFormat(
        "aws-bedrock-key",
        ("ABSK", "bedrock-api-key-"),
        _EDGE + r"(?:ABSK|bedrock-api-key-)[A-Za-z0-9+/=]{60,}+",
    ),
    TokenFormat(
        "google-key",
        ("AIza", "ya29.", "GOCSPX-", "1//0", "AQ.Ab"),
        _EDGE
        + r"(?:AIza[\w-]{30,}+|ya29\.[\w./-]{16,}+|GOCSPX-[\w-]{16,}+|1//0[\w-]{20,}+|AQ\.Ab[\w-]{20,}+)",
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
    ),
    # The secret of an application holds this in its fourth place and after.
    TokenFormat(
        "azure-client-secret",
        ("7Q~", "8Q~"),
        r"[\w-]{3}[78]Q~[\w.~-]{31,34}(?![\w~-])",
        before=4,
    ),
    TokenFormat(
        "azure-devops-token", ("AZDO",), r"[A-Za-z0-9]{76}AZDO[A-Za-z0-9]{4}(?![A-Za-z0-9])", before=77
    ),
    TokenFormat("aliyun-key-id", ("LTAI",), _EDGE + r"LTAI[A-Za-z0-9]{12,}+"),
    TokenFormat("aliyun-sts-token", ("STS.",), _EDGE + r"STS\.[A-Za-z0-9]{16,}+"),
    TokenFormat("tencent-key-id", ("AKID",), _EDGE + r"AKID[A-Za-z0-9]{28,}+"),
    TokenFormat("baidu-key", ("bce-v3/",), _EDGE + r"bce-v3/ALTAK-[\w-]{10,40}/[0-9a-f]{32,}+"),
    TokenFormat("volcengine-key-id", ("AKLT",), _EDGE + r"AKLT[A-Za-z0-9_-]{20,}+={0,2}"),
    TokenFormat(
        "digitalocean-token", ("dop_v1_", "doo_v1_", "dor_v1_"), _EDGE + r"do[opr]_v1_[0-9a-f]{32,}+"
    ),
    TokenFormat("heroku-key", ("HRKU-",), _EDGE + r"HRKU-[\w-]{30,}+"),
    TokenFormat(
        "fly-token",
        ("FlyV1", "fm1r_", "fm1a_", "fm2_", "fo1_"),
        _EDGE + r"(?:FlyV1 )?(?:fm[12][ar]?|fo1)_[\w+/=,-]{20,}+",
    ),
    TokenFormat(
        "netlify-token", ("nfp_", "nfo_", "nfu_", "nfc_", "nfb_"), _EDGE + r"nf[poucb]_[A-Za-z0-9]{20,}+"
    ),
    TokenFormat(
        "vercel-token",
        ("vcp_", "vci_", "vca_", "vcr_", "vck_", "vercel_blob_rw_"),
        _EDGE + r"(?:vc[piark]_[A-Za-z0-9]{20,}+|vercel_blob_rw_[A-Za-z0-9_]{20,}+)",
    ),
    TokenFormat("render-key", ("rnd_",), _EDGE + r"rnd_[A-Za-z0-9]{20,}+"),
    TokenFormat("cloudflare-key", ("v1.0-",), _EDGE + r"v1\.0-[0-9a-f]{24}-[0-9a-f]{100,}+"),
    TokenFormat(
        "supabase-key", ("sbp_", "sb_secret_"), _EDGE + r"(?:sbp_[0-9a-f]{32,}+|sb_secret_[\w-]{16,}+)"
    ),
    TokenFormat("neon-key", ("napi_",), _EDGE + r"napi_[a-z0-9]{30,}+"),
    TokenFormat("planetscale-token", ("pscale_",), _EDGE + r"pscale_(?:tkn|pw|oauth)_[\w=.-]{20,}+"),
    TokenFormat("doppler-token", ("dp.",), _EDGE + r"dp\.(?:pt|st|ct|sa|scim|audit)\.[\w.-]{20,}+"),
    TokenFormat("vault-token", ("hvs.", "hvb.", "hvr."), _EDGE + r"hv[sbr]\.[\w-]{20,}+"),
    TokenFormat("terraform-token", (".atlasv1.",), r"[A-Za-z0-9]{14}\.atlasv1\.[\w=-]{40,}+", before=15),
    TokenFormat("pulumi-token", ("pul-",), _EDGE + r"pul-[0-9a-f]{40}(?![0-9A-Za-z])"),
    TokenFormat(
        "databricks-token",
        ("dapi", "dkea", "dose"),
        _EDGE + r"d(?:api|kea|ose)[0-9a-f]{32}(?:-[0-9])?(?![0-9A-Za-z])",
    ),
    TokenFormat(
        "grafana-token", ("glc_", "glsa_"), _EDGE + r"(?:glc_[\w+/=]{20,}+|glsa_[A-Za-z0-9]{20,}+[\w]*+)"
    ),
    TokenFormat("grafana-key", ("eyJrIjoi",), _EDGE + r"eyJrIjoi[A-Za-z0-9+/=_-]{30,}+"),
    TokenFormat("datadog-key", ("ddapp_", "ddapi_"), _EDGE + r"dda(?:pp|pi)_[A-Za-z0-9]{20,}+"),
    TokenFormat("newrelic-key", ("NRAK-", "NRJS-", "NRII-"), _EDGE + r"NR(?:AK|JS|II)-[\w-]{16,}+"),
    TokenFormat("dynatrace-token", ("dt0",), _EDGE + r"dt0[a-z][0-9]{2}\.[A-Z0-9]{24}\.[A-Z0-9]{32,}+"),
    TokenFormat("posthog-key", ("phx_", "phs_"), _EDGE + r"ph[xs]_[A-Za-z0-9]{30,}+"),
    TokenFormat(
        "onepassword-token",
        ("ops_eyJ", "A3-"),
        _EDGE + r"(?:ops_eyJ[\w-]{50,}+|A3-[A-Z0-9]{6}-(?:[A-Z0-9]{5,11}-){3,4}[A-Z0-9]{5,11})",
    ),
    TokenFormat("age-key", ("AGE-SECRET-KEY-1",), _EDGE + r"AGE-SECRET-KEY-1[A-Z0-9]{40,}+"),
    TokenFormat("tailscale-key", ("tskey-",), _EDGE + r"tskey-[\w-]{16,}+"),
    TokenFormat("ngrok-key", ("ngrok_",), _EDGE + r"ngrok_[\w-]{30,}+"),
    TokenFormat(
        "jwt",
        ("eyJ",),
        _EDGE
        + r"eyJ[\w-]{8,1024}\.(?:eyJ[\w-]{6,}+(?:\.[\w-]*+){0,3}|[\w-]{0,1024}\.[\w-]{10,1024}\.[\w-]{10,}+(?:\.[\w-]*+)?)",
    ),
)
