"""MCP clients: where each keeps its servers, and the entry and command by which it starts memd's."""

import json
import os
import sys
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Literal

import msgspec
import tomlkit

from memd.ctl.call import Call
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


def own_command(script: str, module: str) -> list[str]:
    """A console script of this installation; the module that it runs, where the script is not there."""
    # Beside the interpreter, whose own link is not followed: it would lead out of the virtual environment.
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), script)  # noqa: PTH100, PTH118, PTH120  as said
    return [path] if os.access(path, os.X_OK) else [os.path.abspath(sys.executable), "-m", module]  # noqa: PTH100  likewise


def own_flags(call: Call) -> list[str]:
    """What leads a command to this daemon, and to the conversation it is bound to."""
    options = call.options
    named = (
        ("--socket", str(call.places.socket)),
        ("--agent", options.agent),
        ("--session-key", options.session_key),
    )
    return [word for flag, value in named if value is not None for word in (flag, value)]
