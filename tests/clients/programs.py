"""The programs of agents: their packages, how they are pointed at the stand-in model, and how they are asked."""

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import msgspec

from tests.clients.install import system
from tests.clients.protocols import MODEL

KEY = "stand-in-key"


class Program(msgspec.Struct, frozen=True):
    """One program."""

    name: str  # as memd-ctl calls it
    title: str
    package: str
    executable: str  # below node_modules
    is_node: bool  # whether node runs it
    ask: Callable[[str, bool], list[str]]  # a prompt; whether in the conversation of before
    configure: Callable[[Path, str], Mapping[str, str]]  # its settings in a home, for a URL; its environment
    listing: tuple[str, ...] = ()  # its own command that lists MCP servers
    connected: str = ""  # what that says then, beside the name of memd
    preset: str | None = None  # of its transcripts
    hooks: bool = False
    notes: bool = True  # whether a hook brings the daily notes
    searches: bool = False  # the model finds tools by a search: no request offers them
    quotes: bool = False  # it puts a prompt of the command line in quotation marks
    masks: bool = False  # it masks secrets itself, in what it prints and keeps
    timeout_s: float = 180.0  # for one answer


def _write(file: Path, value: Any) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(value if isinstance(value, str) else json.dumps(value, indent=2), encoding="utf-8")


def _claude(home: Path, url: str) -> Mapping[str, str]:
    return {
        "ANTHROPIC_BASE_URL": url,
        "ANTHROPIC_API_KEY": KEY,
        "CLAUDE_CODE_DISABLE_NONESSENTIAL_TRAFFIC": "1",
        "DISABLE_AUTOUPDATER": "1",
        "DISABLE_TELEMETRY": "1",
        "DISABLE_ERROR_REPORTING": "1",
    }


def _ask_claude(prompt: str, again: bool) -> list[str]:
    return ["-p", prompt, "--allowedTools", "mcp__memd", *(["--continue"] if again else [])]


def _codex(home: Path, url: str) -> Mapping[str, str]:
    _write(
        home / ".codex" / "config.toml",
        f"""model = "{MODEL}"
model_provider = "standin"
check_for_update_on_startup = false

[analytics]
enabled = false

[features]
plugins = false
apps = false

[model_providers.standin]
name = "stand-in"
base_url = "{url}/v1"
wire_api = "responses"
env_key = "STAND_IN_KEY"
""",
    )
    return {"STAND_IN_KEY": KEY}


def _ask_codex(prompt: str, again: bool) -> list[str]:
    resumed = ["resume", "--last"] if again else []
    # A person trusts the hooks once, in a talk.
    return ["exec", *resumed, "--skip-git-repo-check", "--dangerously-bypass-hook-trust", prompt]


def _gemini(home: Path, url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "gemini-api-key"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False, "enableAutoUpdateNotification": False},
    }
    _write(home / ".gemini" / "settings.json", settings)
    return {"GEMINI_API_KEY": KEY, "GOOGLE_GEMINI_BASE_URL": url, "GEMINI_CLI_TRUST_WORKSPACE": "true"}


def _ask_gemini(prompt: str, again: bool) -> list[str]:
    resumed = ["--resume", "latest"] if again else []
    return ["-m", "gemini-2.5-flash", "--approval-mode", "yolo", *resumed, "-p", prompt]


def _qwen(home: Path, url: str) -> Mapping[str, str]:
    settings = {
        "security": {"auth": {"selectedType": "openai"}},
        "privacy": {"usageStatisticsEnabled": False},
        "telemetry": {"enabled": False},
        "general": {"enableAutoUpdate": False},
        "model": {"name": MODEL},
    }
    _write(home / ".qwen" / "settings.json", settings)
    return {"OPENAI_API_KEY": KEY, "OPENAI_BASE_URL": f"{url}/v1", "OPENAI_MODEL": MODEL}


def _ask_qwen(prompt: str, again: bool) -> list[str]:
    return ["--approval-mode", "yolo", *(["--continue"] if again else []), "-p", prompt]


def _opencode(home: Path, url: str) -> Mapping[str, str]:
    settings = {
        "autoupdate": False,
        "share": "disabled",
        "model": f"standin/{MODEL}",
        "small_model": f"standin/{MODEL}",
        "enabled_providers": ["standin"],
        "provider": {
            "standin": {
                "npm": "@ai-sdk/openai-compatible",
                "name": "stand-in",
                "options": {"baseURL": f"{url}/v1", "apiKey": KEY},
                "models": {MODEL: {"name": MODEL}},
            }
        },
    }
    _write(home / ".config" / "opencode" / "opencode.json", settings)
    return dict.fromkeys(
        (
            "OPENCODE_DISABLE_AUTOUPDATE",
            "OPENCODE_DISABLE_MODELS_FETCH",
            "OPENCODE_DISABLE_DEFAULT_PLUGINS",
            "OPENCODE_DISABLE_LSP_DOWNLOAD",
        ),
        "1",
    )


def _ask_opencode(prompt: str, again: bool) -> list[str]:
    return ["run", *(["--continue"] if again else []), prompt]


def _copilot(home: Path, url: str) -> Mapping[str, str]:
    return {
        "COPILOT_PROVIDER_BASE_URL": f"{url}/v1",
        "COPILOT_PROVIDER_API_KEY": KEY,
        "COPILOT_MODEL": MODEL,
        "COPILOT_OFFLINE": "true",
    }


def _ask_copilot(prompt: str, again: bool) -> list[str]:
    return ["--allow-all-tools", *(["--continue"] if again else []), "-p", prompt]


def _openclaw(home: Path, url: str) -> Mapping[str, str]:
    model = {
        "id": MODEL,
        "name": MODEL,
        "reasoning": False,
        "input": ["text"],
        "contextWindow": 200_000,
        "maxTokens": 8192,
        "cost": dict.fromkeys(("input", "output", "cacheRead", "cacheWrite"), 0),
    }
    provider = {"baseUrl": f"{url}/v1", "apiKey": KEY, "api": "openai-completions", "models": [model]}
    settings = {
        "models": {"mode": "merge", "providers": {"standin": provider}},
        "agents": {"defaults": {"model": {"primary": f"standin/{MODEL}"}, "skipBootstrap": True}},
        "update": {"checkOnStart": False},
    }
    _write(home / ".openclaw" / "openclaw.json", settings)
    return {}


def _ask_openclaw(prompt: str, again: bool) -> list[str]:
    return ["agent", "--local", "--agent", "main", "-m", prompt]


PROGRAMS: Mapping[str, Program] = {
    each.name: each
    for each in (
        Program(
            "claude",
            "Claude Code",
            "@anthropic-ai/claude-code",
            f"@anthropic-ai/claude-code-{system()}/claude",
            False,
            _ask_claude,
            _claude,
            ("mcp", "list"),
            "Connected",
            "claude-code",
            hooks=True,
        ),
        Program(
            "codex",
            "Codex",
            "@openai/codex",
            "@openai/codex/bin/codex.js",
            True,
            _ask_codex,
            _codex,
            ("mcp", "list"),
            "enabled",
            "codex",
            hooks=True,
        ),
        Program(
            "gemini",
            "Gemini CLI",
            "@google/gemini-cli",
            "@google/gemini-cli/bundle/gemini.js",
            True,
            _ask_gemini,
            _gemini,
            ("mcp", "list"),
            "Connected",
            "gemini",
            hooks=True,
            notes=False,
        ),
        Program(
            "qwen",
            "Qwen Code",
            "@qwen-code/qwen-code",
            "@qwen-code/qwen-code/cli-entry.js",
            True,
            _ask_qwen,
            _qwen,
            ("mcp", "list"),
            "Connected",
            "qwen",
            hooks=True,
        ),
        Program(
            "opencode",
            "opencode",
            "opencode-ai",
            f"opencode-{system()}/bin/opencode",
            False,
            _ask_opencode,
            _opencode,
            ("mcp", "list"),
            "connected",
            "opencode",
            hooks=True,
            quotes=True,
        ),
        Program(
            "copilot",
            "Copilot CLI",
            "@github/copilot",
            f"@github/copilot-{system()}/copilot",
            False,
            _ask_copilot,
            _copilot,
            ("mcp", "list"),
            r"\(local\)",
            "copilot",
        ),
        Program(
            "openclaw",
            "OpenClaw",
            "openclaw",
            "openclaw/openclaw.mjs",
            True,
            _ask_openclaw,
            _openclaw,
            ("mcp", "probe"),
            r"\b3 tools",
            "openclaw",
            searches=True,
            masks=True,
            timeout_s=600.0,
        ),
    )
}
