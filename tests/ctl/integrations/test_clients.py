"""Entries and hooks of memd in the settings of other programs."""

import json
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from memd.ctl.arguments import MCP_CLIENTS
from memd.ctl.integrations.clients import (
    EVENTS,
    claude_settings,
    client_of,
    entry,
    entry_snippet,
    own_command,
    with_hooks,
    without_hooks,
)
from memd.ctl.integrations.json_edit import NotEditable
from tests.bounds import shipped

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
    text = entry_snippet(client, entry(client, ["/bin/memd-mcp", "--socket", "/run/s"]))
    told = tomllib.loads(text) if client.file.suffix == ".toml" else json.loads(text)
    for key in client.way:
        told = told[key]
    command = told["command"] if name == "opencode" else [told["command"], *told["args"]]
    assert command == ["/bin/memd-mcp", "--socket", "/run/s"]
    assert told.get("type") == {"claude": "stdio", "opencode": "local"}.get(name)


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


COMMANDS = {event: f"/opt/memd/bin/memd-ctl hook {hook} --socket /run/s" for event, hook in EVENTS.items()}

OTHERS = """{
  "model": "opus",
  "hooks": {
    "UserPromptSubmit": [
      { "hooks": [ { "type": "command", "command": "other hook user-prompt" } ] }
    ],
    "Stop": []
  }
}
"""


def test_hooks_are_added_to_those_of_others() -> None:
    """Which stay as they are; again it changes nothing, and out of it nothing is left."""
    changed = with_hooks(OTHERS, COMMANDS)
    hooks = json.loads(changed)["hooks"]
    assert [group["hooks"][0]["command"] for group in hooks["UserPromptSubmit"]] == [
        "other hook user-prompt",
        COMMANDS["UserPromptSubmit"],
    ]
    assert {event: hooks[event][-1]["hooks"][0]["command"] for event in EVENTS} == COMMANDS
    timeout_s = shipped("memd.ctl.integrations.clients._TIMEOUT_S")
    assert {hooks[event][-1]["hooks"][0]["timeout"] for event in EVENTS} == {timeout_s}
    assert '{ "hooks": [ { "type": "command", "command": "other hook user-prompt" } ] }' in changed
    assert with_hooks(changed, COMMANDS) == changed
    assert without_hooks(changed) == OTHERS


@pytest.mark.parametrize(
    "old",
    [
        "/usr/bin/memd-ctl hook user-prompt",
        "memd-ctl --agent work hook user-prompt --sessions",
        "'/home/a b/memd-ctl' hook user-prompt",
        "/usr/bin/python -m memd.ctl hook user-prompt",
    ],
)
def test_an_older_hook_of_memd_is_replaced(old: str) -> None:
    """Where it stands, with what a person has set for it."""
    hook = {"type": "command", "command": old, "timeout": 9}
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"matcher": "*", "hooks": [{"x": 1}, hook]}]}})
    changed = json.loads(with_hooks(text, COMMANDS))["hooks"]["UserPromptSubmit"]
    assert changed == [
        {"matcher": "*", "hooks": [{"x": 1}, {**hook, "command": COMMANDS["UserPromptSubmit"]}]}
    ]
    left = json.loads(without_hooks(text))["hooks"]
    assert left == {"UserPromptSubmit": [{"matcher": "*", "hooks": [{"x": 1}]}]}


@pytest.mark.parametrize(
    "command",
    [
        "~/bin/log-prompt.sh; memd-ctl hook user-prompt --agent work",
        "memd-ctl hook user-prompt | tee /tmp/log",
        "memd-ctl hook user-prompt\n~/bin/log-prompt.sh",
        "memd-ctl hook user-prompt $(cat ~/options)",
        "git -C ~/src/memd-ctl hook run pre-push",
        "memd-ctl hook install",
        "memd-ctl sync",
        "nice memd-ctl hook user-prompt",
        "memd-ctl hook 'user-prompt",
        "",
    ],
)
def test_a_command_that_a_person_has_put_together_is_left_alone(command: str) -> None:
    """Memd's own is added beside it, and taken out without it."""
    hook = {"type": "command", "command": command}
    text = json.dumps({"hooks": {"UserPromptSubmit": [{"hooks": [hook]}]}})
    changed = with_hooks(text, COMMANDS)
    groups = json.loads(changed)["hooks"]["UserPromptSubmit"]
    assert [group["hooks"][0]["command"] for group in groups] == [command, COMMANDS["UserPromptSubmit"]]
    assert json.loads(without_hooks(changed)) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["[]", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', "// note\n{}", '{"hooks": 1}']
)
def test_hooks_in_another_form_are_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(NotEditable):
        with_hooks(text, COMMANDS)


@pytest.mark.parametrize("text", ["", "{}", OTHERS, '{"hooks": {"Stop": [5, {"hooks": 5}, {"hooks": [5]}]}}'])
def test_where_nothing_is_of_memd_nothing_is_taken_out(text: str) -> None:
    """The text stays the same, and odd elements are no trouble."""
    assert without_hooks(text) == text


@pytest.mark.parametrize("text", ["{}\n", '{"model": "opus"}', '{\n  "model": "opus"\n}\n'])
def test_what_only_held_memds_hooks_goes_with_them(text: str) -> None:
    """The settings are as they were before."""
    assert without_hooks(with_hooks(text, COMMANDS)) == text
