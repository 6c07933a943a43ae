"""An entry of a foreign file, whatever its syntax."""

from typing import Any

import pytest

from memd.ctl.integrations.entry_edit import Syntax, entry_alone, entry_in, with_entry, without_entry
from memd.ctl.integrations.json_edit import NotEditable
from tests.table import table

WAY = ("extensions", "memd")
VALUES = {"name": "memd", "enabled": True, "cmd": "/m", "args": ["--socket", "/run/é x: #1"], "envs": {}}


@pytest.mark.parametrize("syntax", ["json", "jsonc", "toml", "yaml"])
def test_an_entry_is_added_changed_and_taken_out(syntax: Syntax) -> None:
    """What is beside it is none of it."""
    text = entry_alone(syntax, ("extensions", "other"), {"cmd": "x"})
    assert entry_in(syntax, text, WAY) is None
    changed = with_entry(syntax, text, WAY, VALUES)
    assert entry_in(syntax, changed, WAY) == VALUES
    assert with_entry(syntax, changed, WAY, VALUES) == changed
    again = with_entry(syntax, changed, WAY, {"cmd": "/n", "args": []})
    assert entry_in(syntax, again, WAY) == {**VALUES, "cmd": "/n", "args": []}
    assert entry_in(syntax, again, ("extensions", "other")) == {"cmd": "x"}
    assert without_entry(syntax, again, WAY) == text
    assert without_entry(syntax, text, WAY) == text
    assert without_entry(syntax, "", WAY) == ""


@table(
    ("syntax", "text"),
    [
        ("json", '{"extensions": {"memd": []}}'),
        ("json", '// c\n{"extensions": {}}'),
        ("jsonc", '{"extensions": {"memd": 1}}'),
        ("toml", "[extensions]\nmemd = 1\n"),
        ("toml", "extensions = "),
        ("yaml", "extensions:\n  memd: 1\n"),
        ("yaml", "{extensions: {}}\n"),
        ("yaml", "extensions: {a: {b: 1}}\n"),
        ("yaml", "extensions:\n- a\n"),
        ("yaml", "extensions:\n\tmemd:\n"),
        ("yaml", "extensions:\n  a: 1\nextensions:\n  b: 1\n"),
        ("yaml", "extensions:\n  memd:\n    a: 1\n  memd:\n    a: 2\n"),
        ("yaml", "extensions: &x\n  a: 1\n"),
        ("yaml", "extensions:\n  ? a\n  : b\n"),
        ("yaml", "--- !!map\nextensions:\n"),
        ("yaml", "a: 1\n---\nb: 1\n"),
        ("yaml", "extensions:\n    a: 1\n  b: 1\n"),
        ("yaml", "just words\n"),
    ],
)
def test_what_is_written_otherwise_is_refused(syntax: Syntax, text: str) -> None:
    """Broken, of another form, or with something else in the place."""
    with pytest.raises(NotEditable):
        with_entry(syntax, text, WAY, VALUES)


GOOSE = """# my settings
GOOSE_PROVIDER: openai
extensions:
  developer:
    enabled: true
    name: developer   # x
    available_tools:
    - shell
    description: >
      memd:
        is not here

  # about the next one
  memory:
    type: builtin

# the end
slash_commands:
- command: a
  recipe_path: b
"""

ADDED = '  memd:\n    cmd: "/m"\n    args: ["a"]\n'


def test_the_rest_of_yaml_stays() -> None:
    """Line by line; the entry comes last."""
    changed = with_entry("yaml", GOOSE, WAY, {"cmd": "/m", "args": ["a"]})
    assert changed == GOOSE.replace("    type: builtin\n", f"    type: builtin\n{ADDED}")
    assert without_entry("yaml", changed, WAY) == GOOSE


@pytest.mark.parametrize(
    ("text", "changed"),
    [
        ("", f"extensions:\n{ADDED}"),
        ("A: 1", f"A: 1\nextensions:\n{ADDED}"),
        ("---\nA: 1\n", f"---\nA: 1\nextensions:\n{ADDED}"),
        ("extensions: {}\nA: 1\n", f"extensions:\n{ADDED}A: 1\n"),
        ("extensions:\nA: 1\n", f"extensions:\n{ADDED}A: 1\n"),
        ("extensions: # none\n", f"extensions: # none\n{ADDED}"),
        (
            "extensions:\n    a:\n        x: 1\n",
            'extensions:\n    a:\n        x: 1\n    memd:\n      cmd: "/m"\n      args: ["a"]\n',
        ),
        ("A: |\n  memd:\n    cmd: x\n", f"A: |\n  memd:\n    cmd: x\nextensions:\n{ADDED}"),
    ],
)
def test_yaml_of_other_forms(text: str, changed: str) -> None:
    """Empty, without the key, or with another indentation."""
    assert with_entry("yaml", text, WAY, {"cmd": "/m", "args": ["a"]}) == changed


def test_yaml_as_another_program_writes_it_is_read() -> None:
    """Plain words, lists below their key; what a person has added stays where the command changes."""
    text = "extensions:\r\n  memd:\r\n    enabled: false\r\n    cmd: /old # mine\r\n    args:\r\n    - --socket\r\n    - '/it''s'\r\n    mine: ~\r\n"
    told: dict[str, Any] = {"enabled": False, "cmd": "/old", "args": ["--socket", "/it's"], "mine": None}
    assert entry_in("yaml", text, WAY) == told
    changed = with_entry("yaml", text, WAY, {"args": ["a"], "timeout": 5, "cmd": "/m"})
    assert entry_in("yaml", changed, WAY) == {**told, "args": ["a"], "cmd": "/m", "timeout": 5}
    assert changed.count("\r\n") == changed.count("\n")
    assert with_entry("yaml", text, WAY, {"cmd": "/old"}) == text


def test_a_key_with_a_comment_outlives_its_only_entry() -> None:
    """The comment is a person's."""
    text = "extensions:\n  # what I use\n"
    assert without_entry("yaml", with_entry("yaml", text, WAY, VALUES), WAY) == text
