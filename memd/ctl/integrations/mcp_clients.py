"""Where each MCP client keeps the servers of its user, and how an entry looks there."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import tomlkit

from memd.sources.agent_homes import HomePlaces, openclaw_homes

SERVER = "memd"
"""The name that the server has with its clients."""


class McpClient(msgspec.Struct, frozen=True):
    """A program that starts MCP servers."""

    title: str
    file: Path
    way: tuple[str, ...]  # to the entry, in the file
    format: Literal["json", "toml"] = "json"
    says_type: bool = False  # whether an entry names its transport


def client_of(name: str, environ: Mapping[str, str], home: Path) -> McpClient:
    """A client that can be named on the command line, with the file of its user scope.

    Args:
        name: The client.
        environ: The environment of the process: each client has a variable that moves its files.
        home: The home directory of the user.
    """
    match name:
        case "claude":
            directory = _named(environ, "CLAUDE_CONFIG_DIR", home) or home
            return McpClient(
                "Claude Code", directory / ".claude.json", ("mcpServers", SERVER), says_type=True
            )
        case "codex":
            directory = _named(environ, "CODEX_HOME", home) or home / ".codex"
            return McpClient("Codex", directory / "config.toml", ("mcp_servers", SERVER), "toml")
        case "cursor":
            return McpClient("Cursor", home / ".cursor" / "mcp.json", ("mcpServers", SERVER))
        case "gemini":
            directory = (_named(environ, "GEMINI_CLI_HOME", home) or home) / ".gemini"
            return McpClient("Gemini CLI", directory / "settings.json", ("mcpServers", SERVER))
        case "openclaw":
            file = _named(environ, "OPENCLAW_CONFIG_PATH", home) or _openclaw(environ, home) / "openclaw.json"
            return McpClient("OpenClaw", file, ("mcp", "servers", SERVER))
        case _:
            raise ValueError(name)


def claude_settings(environ: Mapping[str, str], home: Path) -> Path:
    """Where Claude Code keeps the hooks of its user."""
    directory = _named(environ, "CLAUDE_CONFIG_DIR", home) or home / ".claude"
    return directory / "settings.json"


def entry(client: McpClient, command: list[str]) -> dict[str, Any]:
    """The entry that has the client start a command."""
    told: dict[str, Any] = {"command": command[0], "args": command[1:]}
    return {"type": "stdio", **told} if client.says_type else told


def snippet(client: McpClient, values: Mapping[str, Any]) -> str:
    """The entry as a file would have it that holds nothing else."""
    whole: Any = dict(values)
    for key in reversed(client.way):
        whole = {key: whole}
    if client.format == "toml":
        return tomlkit.dumps(whole)
    return f"{json.dumps(whole, indent=2, ensure_ascii=False)}\n"


def _openclaw(environ: Mapping[str, str], home: Path) -> Path:
    """The home of the OpenClaw that is in use; of a profile that is named, also where it is not there yet."""
    first, *others = openclaw_homes(HomePlaces(environ, home))
    is_meant = environ.get("OPENCLAW_PROFILE", "") not in {"", "default"} or not others
    return first if is_meant else next((one for one in (first, *others) if one.is_dir()), first)


def _named(environ: Mapping[str, str], variable: str, home: Path) -> Path | None:
    value = environ.get(variable)
    if not value:
        return None
    return home / value[2:].lstrip("/") if value.startswith("~/") else Path(value)
