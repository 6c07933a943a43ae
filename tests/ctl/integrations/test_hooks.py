"""Hooks of memd in the settings of other programs."""

import json
import shutil
import subprocess
import sys
from importlib import resources
from pathlib import Path

import pytest

from memd.ctl.arguments import HOOK_CLIENTS as NAMES
from memd.ctl.integrations.clients import CLIENTS, place_of
from memd.ctl.integrations.hooks import HOOK_CLIENTS, with_hooks, without_hooks
from memd.ctl.integrations.json_edit import NotEditable
from tests.bounds import shipped
from tests.ctl.conftest import Run

CLAUDE = HOOK_CLIENTS["claude"]
COMMANDS = {
    event: f"/opt/memd/bin/memd-ctl hook {hook} --socket /run/s" for event, hook in CLAUDE.events.items()
}

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
    changed = with_hooks(CLAUDE, OTHERS, COMMANDS)
    hooks = json.loads(changed)["hooks"]
    assert [group["hooks"][0]["command"] for group in hooks["UserPromptSubmit"]] == [
        "other hook user-prompt",
        COMMANDS["UserPromptSubmit"],
    ]
    assert {event: hooks[event][-1]["hooks"][0]["command"] for event in CLAUDE.events} == COMMANDS
    timeout_s = shipped("memd.ctl.integrations.hooks._TIMEOUT_S")
    assert {hooks[event][-1]["hooks"][0]["timeout"] for event in CLAUDE.events} == {timeout_s}
    assert '{ "hooks": [ { "type": "command", "command": "other hook user-prompt" } ] }' in changed
    assert with_hooks(CLAUDE, changed, COMMANDS) == changed
    assert without_hooks(CLAUDE, changed) == OTHERS


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
    changed = json.loads(with_hooks(CLAUDE, text, COMMANDS))["hooks"]["UserPromptSubmit"]
    assert changed == [
        {"matcher": "*", "hooks": [{"x": 1}, {**hook, "command": COMMANDS["UserPromptSubmit"]}]}
    ]
    left = json.loads(without_hooks(CLAUDE, text))["hooks"]
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
    changed = with_hooks(CLAUDE, text, COMMANDS)
    groups = json.loads(changed)["hooks"]["UserPromptSubmit"]
    assert [group["hooks"][0]["command"] for group in groups] == [command, COMMANDS["UserPromptSubmit"]]
    assert json.loads(without_hooks(CLAUDE, changed)) == json.loads(text)


@pytest.mark.parametrize(
    "text", ["[]", '{"hooks": []}', '{"hooks": {"SessionStart": {}}}', "// note\n{}", '{"hooks": 1}']
)
def test_hooks_in_another_form_are_refused(text: str) -> None:
    """Nothing is guessed."""
    with pytest.raises(NotEditable):
        with_hooks(CLAUDE, text, COMMANDS)


@pytest.mark.parametrize("text", ["[]", "5", '["hooks"]'])
def test_out_of_what_is_no_object_nothing_is_taken(text: str) -> None:
    """It is refused: these are no settings of that program."""
    with pytest.raises(NotEditable, match="it holds no object"):
        without_hooks(CLAUDE, text)


@pytest.mark.parametrize("text", ["", "{}", OTHERS, '{"hooks": {"Stop": [5, {"hooks": 5}, {"hooks": [5]}]}}'])
def test_where_nothing_is_of_memd_nothing_is_taken_out(text: str) -> None:
    """The text stays the same, and odd elements are no trouble."""
    assert without_hooks(CLAUDE, text) == text


@pytest.mark.parametrize("text", ["{}\n", '{"model": "opus"}', '{\n  "model": "opus"\n}\n'])
def test_what_only_held_memds_hooks_goes_with_them(text: str) -> None:
    """The settings are as they were before."""
    assert without_hooks(CLAUDE, with_hooks(CLAUDE, text, COMMANDS)) == text


# --- other programs


FILES = {
    "claude": ".claude/settings.json",
    "codex": ".codex/hooks.json",
    "gemini": ".gemini/settings.json",
    "opencode": ".config/opencode/plugins/memd.js",
    "qwen": ".qwen/settings.json",
}


def test_the_command_line_knows_every_program() -> None:
    """Without importing them; each is an MCP client, too, and has the prompt hook."""
    assert list(NAMES) == list(HOOK_CLIENTS)
    assert set(NAMES) <= set(CLIENTS)
    assert all("user-prompt" in client.events.values() for client in HOOK_CLIENTS.values())


@pytest.mark.parametrize("name", NAMES)
def test_the_file_of_a_program(name: str, tmp_path: Path) -> None:
    """Hooks are where that program looks for them."""
    assert place_of(HOOK_CLIENTS[name].files, {}, tmp_path) == tmp_path / FILES[name]
    moved = {"CLAUDE_CONFIG_DIR": "/x", "CODEX_HOME": "/x", "XDG_CONFIG_HOME": "/x", "QWEN_HOME": "/x"}
    environ = {**moved, "GEMINI_CLI_HOME": "/x"}
    assert place_of(HOOK_CLIENTS[name].files, environ, tmp_path).is_relative_to("/x")


@pytest.mark.parametrize("name", NAMES)
def test_they_are_added_once_and_taken_out(name: str, run: Run, home: Path) -> None:
    """Nothing is left of them."""
    code, out, err = run("hook", "install", "--client", name)
    assert code == 0
    assert f"~/{FILES[name]}" in out
    assert ("/hooks" in err) == (name == "codex")
    text = (home / FILES[name]).read_text(encoding="utf-8")
    hooks = HOOK_CLIENTS[name].events.values()
    assert all(f"hook {hook}" in text or f'"hook", "{hook}"' in text for hook in hooks)
    assert run("hook", "install", "--client", name).out.endswith("needed no change.\n")
    assert (home / FILES[name]).read_text(encoding="utf-8") == text
    assert run("hook", "install", "--client", name, "--print").out == text
    assert run("hook", "uninstall", "--client", name).code == 0
    left = home / FILES[name]
    assert not left.exists() if name == "opencode" else json.loads(left.read_text(encoding="utf-8")) == {}
    assert run("hook", "uninstall", "--client", name).code == 0


def test_gemini_has_other_events_and_milliseconds() -> None:
    """And comments in its settings stay."""
    gemini = HOOK_CLIENTS["gemini"]
    assert "SessionStart" not in gemini.events
    commands = {event: f"memd-ctl hook {hook}" for event, hook in gemini.events.items()}
    text = '{\n  // mine\n  "theme": "x",\n}\n'
    changed = with_hooks(gemini, text, commands)
    assert "// mine" in changed
    (hook,) = json.loads(with_hooks(gemini, "", commands))["hooks"]["BeforeAgent"][0]["hooks"]
    limit_ms = 1000 * shipped("memd.ctl.integrations.hooks._TIMEOUT_S")
    assert hook == {"type": "command", "command": "memd-ctl hook user-prompt", "timeout": limit_ms}
    assert "memd" not in without_hooks(gemini, changed)


@pytest.mark.parametrize("action", ["install", "uninstall"])
def test_a_plugin_of_somebody_else_is_left_alone(action: str, run: Run, home: Path) -> None:
    """It has the same name by chance."""
    file = home / FILES["opencode"]
    file.parent.mkdir(parents=True)
    file.write_text("export const Mine = 1\n", encoding="utf-8")
    code, _, err = run("hook", action, "--client", "opencode")
    assert code == 1
    assert "was left alone" in err
    assert file.read_text(encoding="utf-8") == "export const Mine = 1\n"


_DRIVER = """
const { Memd } = await import(process.argv[2])
const messages = async () => ({ data: JSON.parse(process.argv[3]) })
const hooks = await Memd({ client: { session: { messages } } })
const parts = JSON.parse(process.argv[4])
await hooks["chat.message"]({ sessionID: "ses_1" }, { message: { id: "msg_1" }, parts })
process.stdout.write(JSON.stringify(parts))
"""


@pytest.mark.skipif(shutil.which("node") is None, reason="there is no node")
@pytest.mark.parametrize(
    ("reply", "before", "added"),
    [
        ("{HOOK}", [], ["session-start: who?", "user-prompt: who?"]),
        ("{HOOK}", [{"info": {"role": "assistant"}}], ["user-prompt: who?"]),
        ("nonsense", [], []),
        ("", [], []),
    ],
)
def test_the_plugin_adds_what_the_hooks_say(
    tmp_path: Path, reply: str, before: list[object], added: list[str]
) -> None:
    """As parts that are marked as not said by the user; at the first message the notes, too; whatever a hook does, the message stays."""
    script = tmp_path / "hook.py"
    script.write_text(
        "import json, sys\n"
        "asked = json.load(sys.stdin)\n"
        f"reply = {reply!r}\n"
        "text = f\"{sys.argv[1]}: {asked['prompt']}\"\n"
        'print(json.dumps({"hookSpecificOutput": {"additionalContext": text}}) if reply == "{HOOK}" else reply)\n',
        encoding="utf-8",
    )
    plugin = (
        resources.files("memd.ctl.integrations").joinpath("opencode_plugin.js").read_text(encoding="utf-8")
    )
    hooks = ("session-start", "user-prompt", "pre-compact")
    commands = {hook: [sys.executable, str(script), hook] for hook in hooks}
    file = tmp_path / "memd.mjs"
    file.write_text(
        plugin.replace("const COMMANDS = {}", f"const COMMANDS = {json.dumps(commands)}"), encoding="utf-8"
    )
    driver = tmp_path / "driver.mjs"
    driver.write_text(_DRIVER, encoding="utf-8")
    said = {"id": "prt_1", "type": "text", "text": "who?"}
    command = ["node", str(driver), str(file), json.dumps(before), json.dumps([said])]
    ran = subprocess.run(command, capture_output=True, check=True, text=True)
    first, *more = json.loads(ran.stdout)
    assert first == said
    assert [part["text"] for part in more] == added
    assert all(part["synthetic"] and part["id"] > "prt_1" and part["messageID"] == "msg_1" for part in more)
