"""The known MCP clients: where each stores its settings, the entry that starts memd's server, and other requirements."""

import os
import sys
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import msgspec

from memd.ctl.integrations.entry_edit import Syntax
from memd.ctl.invocation import Invocation
from memd.sources.agent_homes import HomePlaces, openclaw_homes

SERVER = "memd"
"""The name that the server has with its clients."""

_OPENCLAW = "%OPENCLAW"  # OpenClaw's home, which depends on several variables


class McpClient(msgspec.Struct, frozen=True, kw_only=True):
    """A program that starts MCP servers."""

    name: str  # on the command line
    title: str
    # The user's files; the first one without a variable, or whose variable is set, is used.
    files: tuple[str, ...]
    on_mac: tuple[str, ...] | None = None  # the same for macOS, if it differs
    or_else: tuple[str, ...] = ()  # other names of that file, used if they exist
    syntax: Syntax = "json"
    key: tuple[str, ...] = ("mcpServers",)  # keys that lead to its servers
    constant: Mapping[str, Any] = {}  # fields of an entry besides the command
    command: str = "command"  # key of the command
    args: str | None = "args"  # key of the arguments; None: they follow the command in one list
    below: str | None = None  # key of an object in the entry that contains all this
    # Fields of an entry whose tools are called without asking the user.
    trusted: Mapping[str, Any] | None = None
    needs: str = ""  # what else the user has to do before the tools can be used
    program: str | None = None  # name of its program
    listing: tuple[str, ...] = ()  # arguments with which it lists its servers
    is_tried: bool = True  # whether the listing starts them; otherwise it only says that they are configured
    connected: str = ""  # regular expression for what the listing says after the name of a working server

    @property
    def way(self) -> tuple[str, ...]:
        """The keys that lead to memd's entry."""
        return (*self.key, SERVER)


_TOOLS = ("memory_search", "memory_get", "memory_status")

CLIENTS: Mapping[str, McpClient] = {
    client.name: client
    for client in (
        McpClient(
            name="amp",
            title="Amp",
            files=("$AMP_SETTINGS_FILE", "~/.config/amp/settings.json"),
            or_else=("settings.jsonc",),
            syntax="jsonc",
            key=("amp.mcpServers",),
            program="amp",
            listing=("mcp", "list"),
            is_tried=False,
            connected=r"\s",
        ),
        McpClient(
            name="claude",
            title="Claude Code",
            files=("$CLAUDE_CONFIG_DIR/.claude.json", "~/.claude.json"),
            constant={"type": "stdio"},
            program="claude",
            listing=("mcp", "list"),
            connected=r":.*\bConnected",
        ),
        McpClient(
            name="claude-desktop",
            title="Claude Desktop",
            files=(
                "$XDG_CONFIG_HOME/Claude/claude_desktop_config.json",
                "~/.config/Claude/claude_desktop_config.json",
            ),
            on_mac=("~/Library/Application Support/Claude/claude_desktop_config.json",),
        ),
        McpClient(
            name="cline",
            title="Cline",
            files=(
                "$CLINE_MCP_SETTINGS_PATH",
                "$CLINE_DATA_DIR/settings/cline_mcp_settings.json",
                "$CLINE_DIR/data/settings/cline_mcp_settings.json",
                "~/.cline/data/settings/cline_mcp_settings.json",
            ),
            constant={"type": "stdio"},
            below="transport",
            trusted={"autoApprove": list(_TOOLS)},
            program="cline",
        ),
        McpClient(
            name="codex",
            title="Codex",
            files=("$CODEX_HOME/config.toml", "~/.codex/config.toml"),
            syntax="toml",
            key=("mcp_servers",),
            program="codex",
            listing=("mcp", "list"),
            is_tried=False,
            connected=r"\s.*\benabled",
        ),
        McpClient(
            name="copilot",
            title="Copilot CLI",
            files=("$COPILOT_HOME/mcp-config.json", "~/.copilot/mcp-config.json"),
            syntax="jsonc",
            constant={"type": "local", "tools": ["*"]},
            program="copilot",
            listing=("mcp", "list"),
            is_tried=False,
            connected=r" \(local\)(?!.*disabled)",
        ),
        McpClient(
            name="cursor",
            title="Cursor",
            files=("~/.cursor/mcp.json",),
            program="cursor-agent",
            listing=("mcp", "list"),
            connected=r":.*\b(?:ready|connected)",
        ),
        McpClient(
            name="gemini",
            title="Gemini CLI",
            files=("$GEMINI_CLI_HOME/.gemini/settings.json", "~/.gemini/settings.json"),
            syntax="jsonc",
            trusted={"trust": True},
            needs="It has the tools only in folders that it trusts (it asks, or /permissions), and outside of a talk, with -p,"
            " only after --trust.",
            program="gemini",
            listing=("mcp", "list"),
            connected=r":.*\bConnected",
        ),
        McpClient(
            name="goose",
            title="goose",
            files=("$XDG_CONFIG_HOME/goose/config.yaml", "~/.config/goose/config.yaml"),
            syntax="yaml",
            key=("extensions",),
            constant={"name": SERVER, "type": "stdio", "enabled": True, "envs": {}, "timeout": 60},
            command="cmd",
            program="goose",
        ),
        McpClient(
            name="openclaw",
            title="OpenClaw",
            files=("$OPENCLAW_CONFIG_PATH", f"{_OPENCLAW}/openclaw.json"),
            syntax="jsonc",
            key=("mcp", "servers"),
            needs="It names only its own memory_search to the model, which finds memd's tools by a search for tools; its own is"
            ' gone with plugins.slots.memory = "none".',
            program="openclaw",
            listing=("mcp", "probe"),
            connected=r".*\b[1-9]\d* tools?\b",
        ),
        McpClient(
            name="opencode",
            title="opencode",
            files=("$XDG_CONFIG_HOME/opencode/opencode.json", "~/.config/opencode/opencode.json"),
            or_else=("opencode.jsonc",),
            syntax="jsonc",
            key=("mcp",),
            constant={"type": "local"},
            args=None,
            program="opencode",
            listing=("mcp", "list"),
            connected=r"\s+connected",
        ),
        McpClient(
            name="qwen",
            title="Qwen Code",
            files=("$QWEN_HOME/settings.json", "~/.qwen/settings.json"),
            syntax="jsonc",
            trusted={"trust": True},
            program="qwen",
            listing=("mcp", "list"),
            connected=r":.*\bConnected",
        ),
        McpClient(
            name="vscode",
            title="VS Code",
            files=("$XDG_CONFIG_HOME/Code/User/mcp.json", "~/.config/Code/User/mcp.json"),
            on_mac=("~/Library/Application Support/Code/User/mcp.json",),
            syntax="jsonc",
            key=("servers",),
            constant={"type": "stdio"},
            program="code",
        ),
        McpClient(
            name="windsurf",
            title="Windsurf",
            files=("~/.codeium/windsurf/mcp_config.json",),
            program="windsurf",
        ),
        McpClient(
            name="zed",
            title="Zed",
            files=("$XDG_CONFIG_HOME/zed/settings.json", "~/.config/zed/settings.json"),
            on_mac=("~/.config/zed/settings.json",),
            syntax="jsonc",
            key=("context_servers",),
            program="zed",
        ),
    )
}
"""Every client, by its name."""


def file_of(client: McpClient, environ: Mapping[str, str], home: Path, platform: str = sys.platform) -> Path:
    """Return the file with the client's servers, whether it exists or not.

    Args:
        client: A program that starts MCP servers.
        environ: The environment: most clients have a variable that moves their files.
        home: The user's home directory.
        platform: A value of sys.platform.
    """
    is_mac = platform == "darwin" and client.on_mac is not None
    file = place_of((client.on_mac or ()) if is_mac else client.files, environ, home)
    others = [file.with_name(name) for name in client.or_else]
    return next((other for other in others if other.is_file() and not file.is_file()), file)


def place_of(places: Sequence[str], environ: Mapping[str, str], home: Path) -> Path:
    """Return the first path that has no variable, or whose variable is set."""
    for place in places:
        first, _, rest = place.partition("/")
        if first.startswith("$"):
            named = environ.get(first[1:])
            if not named:
                continue
            start = home / named[2:].lstrip("/") if named.startswith("~/") else Path(named)
        else:
            start = home if first == "~" else _openclaw(environ, home)
        return start / rest if rest else start
    raise ValueError(places)


def values_of(client: McpClient, command: list[str], *, trust: bool = False) -> dict[str, Any]:
    """Return the fields of the client's entry that starts a command."""
    return {**_started_by(client, command), **(client.trusted or {} if trust else {})}


def kept_values(
    client: McpClient, command: list[str], old: Mapping[str, Any], *, trust: bool
) -> dict[str, Any]:
    """Return the fields to set in an existing entry; other fields that the user has changed stay."""
    fresh = values_of(client, command, trust=trust)
    ours = {client.below or client.command, client.args, *(client.trusted or {} if trust else {})}
    return {key: value for key, value in fresh.items() if key in ours or key not in old}


def command_of(client: McpClient, entry: Mapping[str, Any]) -> list[str]:
    """Return the command that an entry starts; empty if it has none."""
    found = entry.get(client.below) if client.below else entry
    fields = found if isinstance(found, dict) else entry  # older entries of Cline lack the object
    command, args = fields.get(client.command), fields.get(client.args or "")
    words = [
        *(command if isinstance(command, list) else [command]),
        *(args if isinstance(args, list) else []),
    ]
    return words if all(isinstance(word, str) for word in words) else []


def _started_by(client: McpClient, command: list[str]) -> dict[str, Any]:
    fields = {**client.constant}
    if client.args is None:
        fields[client.command] = command
    else:
        fields |= {client.command: command[0], client.args: command[1:]}
    return {client.below: fields} if client.below else fields


def _openclaw(environ: Mapping[str, str], home: Path) -> Path:
    """Return the home of the OpenClaw in use; that of a named profile even if it does not exist yet."""
    first, *others = openclaw_homes(HomePlaces(environ, home))
    is_meant = environ.get("OPENCLAW_PROFILE", "") not in {"", "default"} or not others
    return first if is_meant else next((one for one in (first, *others) if one.is_dir()), first)


def own_command(script: str, module: str) -> list[str]:
    """Return the command of a console script of this installation, or of its module if the script is missing."""
    # Beside the interpreter; its own symlink is not followed, as that would lead out of the virtual
    # environment.
    path = os.path.join(os.path.dirname(os.path.abspath(sys.executable)), script)  # noqa: PTH100, PTH118, PTH120  as said
    return [path] if os.access(path, os.X_OK) else [os.path.abspath(sys.executable), "-m", module]  # noqa: PTH100  likewise


def own_flags(invocation: Invocation) -> list[str]:
    """Return the flags that lead a command to this daemon, and to the conversation that it is bound to."""
    options = invocation.options
    named = (
        ("--socket", str(invocation.places.socket)),
        ("--agent", options.agent),
        ("--session-key", options.session_key),
    )
    return [word for flag, value in named if value is not None for word in (flag, value)]
