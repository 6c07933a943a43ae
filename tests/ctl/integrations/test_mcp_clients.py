"""MCP clients and the entries for them."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memd.ctl.arguments import MCP_CLIENTS
from memd.ctl.integrations.mcp_clients import claude_settings, client_of, entry, own_command, snippet

HOME = Path("/home/ada")


@pytest.mark.parametrize(
    ("name", "environ", "file"),
    [
        ("claude", {}, "/home/ada/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "/etc/claude"}, "/etc/claude/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": ""}, "/home/ada/.claude.json"),
        ("claude", {"CLAUDE_CONFIG_DIR": "~/c"}, "/home/ada/c/.claude.json"),
        ("codex", {}, "/home/ada/.codex/config.toml"),
        ("codex", {"CODEX_HOME": "/x"}, "/x/config.toml"),
        ("cursor", {}, "/home/ada/.cursor/mcp.json"),
        ("gemini", {}, "/home/ada/.gemini/settings.json"),
        ("gemini", {"GEMINI_CLI_HOME": "/x"}, "/x/.gemini/settings.json"),
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
    assert client_of(name, environ, HOME).file == Path(file)


def test_an_openclaw_that_still_has_its_old_name_is_found(tmp_path: Path) -> None:
    """Where there is no other, as memd's presets find it."""
    (tmp_path / ".clawdbot").mkdir()
    assert client_of("openclaw", {}, tmp_path).file == tmp_path / ".clawdbot" / "openclaw.json"
    (tmp_path / ".openclaw").mkdir()
    assert client_of("openclaw", {}, tmp_path).file == tmp_path / ".openclaw" / "openclaw.json"


def test_the_settings_of_claude_code_are_another_file() -> None:
    """Hooks are not where servers are."""
    assert claude_settings({}, HOME) == HOME / ".claude" / "settings.json"
    assert claude_settings({"CLAUDE_CONFIG_DIR": "/x"}, HOME) == Path("/x/settings.json")


@pytest.mark.parametrize("name", MCP_CLIENTS)
def test_an_entry_can_be_pasted(name: str) -> None:
    """It is in the form of the file, and starts the command."""
    client = client_of(name, {}, HOME)
    text = snippet(client, entry(client, ["/bin/memd-mcp", "--socket", "/run/s"]))
    told = tomllib.loads(text) if client.file.suffix == ".toml" else json.loads(text)
    for key in client.way:
        told = told[key]
    assert (told["command"], told["args"]) == ("/bin/memd-mcp", ["--socket", "/run/s"])
    assert told.get("type") == ("stdio" if name == "claude" else None)


def test_another_client_is_not_known() -> None:
    """The command line has refused it before."""
    with pytest.raises(ValueError, match="emacs"):
        client_of("emacs", {}, HOME)


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
