"""The MCP clients: the file of each, and the entry in it."""

import subprocess
import sys
from pathlib import Path

import pytest

from memd.ctl.arguments import MCP_CLIENTS
from memd.ctl.integrations.clients import (
    CLIENTS,
    command_of,
    file_of,
    kept_values,
    own_command,
    values_of,
)
from memd.ctl.integrations.entry_edit import entry_alone, entry_in

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("name", "environ", "file"),
    [
        ("amp", {}, "/home/ada/.config/amp/settings.json"),
        ("amp", {"AMP_SETTINGS_FILE": "/x/a.json"}, "/x/a.json"),
        ("claude-desktop", {}, "/home/ada/.config/Claude/claude_desktop_config.json"),
        ("cline", {}, "/home/ada/.cline/data/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_DATA_DIR": "/x"}, "/x/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_DIR": "/x"}, "/x/data/settings/cline_mcp_settings.json"),
        ("cline", {"CLINE_MCP_SETTINGS_PATH": "/x/m.json", "CLINE_DIR": "/y"}, "/x/m.json"),
        ("copilot", {}, "/home/ada/.copilot/mcp-config.json"),
        ("copilot", {"COPILOT_HOME": "/x"}, "/x/mcp-config.json"),
        ("goose", {}, "/home/ada/.config/goose/config.yaml"),
        ("goose", {"XDG_CONFIG_HOME": "/x"}, "/x/goose/config.yaml"),
        ("vscode", {}, "/home/ada/.config/Code/User/mcp.json"),
        ("windsurf", {}, "/home/ada/.codeium/windsurf/mcp_config.json"),
        ("zed", {}, "/home/ada/.config/zed/settings.json"),
        ("claude", {}, "/home/ada/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/etc/claude"}, "/etc/claude/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": ""}, "/home/ada/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "~/c"}, "/home/ada/c/.claude.json"),
        ("codex", {}, "/home/ada/.codex/config.toml"),
        ("codex", {"CODEX_HOME": "/x"}, "/x/config.toml"),
        ("cursor", {}, "/home/ada/.cursor/mcp.json"),
        ("gemini", {}, "/home/ada/.gemini/settings.json"),
        ("gemini", {"GEMINI_CLI_HOME": "/x"}, "/x/.gemini/settings.json"),
        ("opencode", {}, "/home/ada/.config/opencode/opencode.json"),
        ("opencode", {"XDG_CONFIG_HOME": "/x"}, "/x/opencode/opencode.json"),
        ("qwen", {}, "/home/ada/.qwen/settings.json"),
        ("qwen", {"QWEN_HOME": "/x"}, "/x/settings.json"),
        ("openclaw", {}, "/home/ada/.openclaw/openclaw.json"),
        ("openclaw", {"OPENCLAW_STATE_DIR": "/x"}, "/x/openclaw.json"),
        ("openclaw", {"OPENCLAW_PROFILE": "work"}, "/home/ada/.openclaw-work/openclaw.json"),
        ("openclaw", {"OPENCLAW_PROFILE": "default"}, "/home/ada/.openclaw/openclaw.json"),
        ("openclaw", {"CLAWDBOT_STATE_DIR": "/x"}, "/x/openclaw.json"),
        ("openclaw", {"OPENCLAW_STATE_DIR": "/x", "OPENCLAW_CONFIG_PATH": "/y.json"}, "/y.json"),
    ],
)
def test_the_file_of_a_client(name: str, environ: dict[str, str], file: str) -> None:
    """That of its user, where the client's own variables do not move it."""
    assert file_of(CLIENTS[name], environ, HOME, "linux") == Path(file)


def test_an_openclaw_that_still_has_its_old_name_is_found(tmp_path: Path) -> None:
    """Where there is no other, as memd's presets find it."""
    (tmp_path / ".clawdbot").mkdir()
    assert file_of(CLIENTS["openclaw"], {}, tmp_path) == tmp_path / ".clawdbot" / "openclaw.json"
    (tmp_path / ".openclaw").mkdir()
    assert file_of(CLIENTS["openclaw"], {}, tmp_path) == tmp_path / ".openclaw" / "openclaw.json"


@pytest.mark.parametrize(
    ("name", "file"),
    [
        ("claude-desktop", "Library/Application Support/Claude/claude_desktop_config.json"),
        ("vscode", "Library/Application Support/Code/User/mcp.json"),
        ("zed", ".config/zed/settings.json"),
        ("goose", ".config/goose/config.yaml"),
    ],
)
def test_on_a_mac_some_are_elsewhere(name: str, file: str) -> None:
    """As the programs have it; XDG_CONFIG_HOME moves none of those."""
    environ = {} if name == "goose" else {"XDG_CONFIG_HOME": "/x"}
    assert file_of(CLIENTS[name], environ, HOME, "darwin") == HOME / file


@pytest.mark.parametrize(("name", "other"), [("opencode", "opencode.jsonc"), ("amp", "settings.jsonc")])
def test_a_file_by_its_other_name_is_taken_where_it_is_there(tmp_path: Path, name: str, other: str) -> None:
    """Unless the usual one is there, too."""
    usual = file_of(CLIENTS[name], {}, tmp_path)
    usual.parent.mkdir(parents=True)
    usual.with_name(other).touch()
    assert file_of(CLIENTS[name], {}, tmp_path) == usual.with_name(other)
    usual.touch()
    assert file_of(CLIENTS[name], {}, tmp_path) == usual


COMMAND = ["/bin/memd-mcp", "--socket", "/run/s"]


@pytest.mark.parametrize("name", MCP_CLIENTS)
@pytest.mark.parametrize("trust", [False, True])
def test_an_entry_can_be_pasted(name: str, trust: bool) -> None:
    """It is in the syntax of the file, and starts the command."""
    client = CLIENTS[name]
    values = values_of(client, COMMAND, trust=trust)
    found = entry_in(client.syntax, entry_alone(client.syntax, client.way, values), client.way)
    assert found == values
    assert command_of(client, values) == COMMAND
    assert set(client.trusted or ()).issubset(found) == (trust or not client.trusted)


def test_the_command_line_knows_every_client() -> None:
    """Without importing them, in their order."""
    assert list(MCP_CLIENTS) == list(CLIENTS)


@pytest.mark.parametrize(
    ("name", "old", "kept"),
    [
        ("goose", {"enabled": False, "cmd": "old"}, {"enabled": False}),
        ("copilot", {"tools": ["memory_get"], "command": "old"}, {"tools": ["memory_get"]}),
        ("cline", {"transport": {"command": "old"}, "disabled": True}, {"disabled": True}),
    ],
)
def test_of_an_entry_that_is_there_only_what_starts_memd_is_set(
    name: str, old: dict[str, object], kept: dict[str, object]
) -> None:
    """And what it does not have."""
    client = CLIENTS[name]
    after = {**old, **kept_values(client, COMMAND, old, trust=False)}
    assert {key: after[key] for key in kept} == kept
    assert command_of(client, after) == COMMAND
    assert set(values_of(client, COMMAND)) <= set(after)


@pytest.mark.parametrize(
    ("name", "entry", "command"),
    [
        ("cline", {"command": "a", "args": ["b"]}, ["a", "b"]),
        ("opencode", {"command": ["a", "b"]}, ["a", "b"]),
        ("claude", {"command": "a"}, ["a"]),
        ("claude", {"url": "https://example.org"}, []),
        ("claude", {"command": 5}, []),
    ],
)
def test_the_command_of_an_entry(name: str, entry: dict[str, object], command: list[str]) -> None:
    """As it stands there; one of another kind has none."""
    assert command_of(CLIENTS[name], entry) == command


@pytest.mark.parametrize(("script", "module"), [("memd-mcp", "memd_client.mcp"), ("memd-ctl", "memd.ctl")])
def test_a_script_is_named_by_its_absolute_path(script: str, module: str) -> None:
    """It is there, and runs without a PATH."""
    command = own_command(script, module)
    assert command == [str(Path(sys.executable).with_name(script))]
    ran = subprocess.run([*command, "--version"], capture_output=True, text=True, check=True, env={}, cwd="/")
    assert ran.stdout.startswith(script)


@pytest.mark.parametrize("module", ["memd_client.mcp", "memd.ctl"])
def test_without_the_script_it_is_the_module(module: str) -> None:
    """As in a directory of packages that has no bin."""
    command = own_command("no-such-script", module)
    assert Path(command[0]).is_absolute()
    assert command[1:] == ["-m", module]
    subprocess.run([*command, "--version"], capture_output=True, check=True, cwd="/")
