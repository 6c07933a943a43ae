"""memd's hooks among those of others."""

import json

import pytest

from memd.ctl.integrations.claude_hooks import EVENTS, with_hooks, without_hooks
from memd.ctl.integrations.json_edit import NotEditable

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
