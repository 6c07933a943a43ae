"""A table of somebody else's TOML."""

import tomllib

import pytest

from memd.ctl.jsonedit import NotEditable
from memd.ctl.tomlentry import with_table, without_table

WAY = ("mcp_servers", "memd")
VALUES = {"command": "/usr/bin/memd-mcp", "args": ["--socket", '/run/"é"']}

KEPT = 'model = "o5"   # the good one\n\n[mcp_servers.other]\ncommand = "x"\n\n# [mcp_servers.memd]\n'


def test_a_table_is_added_at_the_end() -> None:
    """Everything before stays, byte by byte; again it changes nothing, and out of it nothing is left."""
    changed = with_table(KEPT, WAY, VALUES)
    assert changed == (
        KEPT + '\n[mcp_servers.memd]\ncommand = "/usr/bin/memd-mcp"\nargs = ["--socket", "/run/\\"é\\""]\n'
    )
    assert with_table(changed, WAY, VALUES) == changed
    assert without_table(changed, WAY) == KEPT


@pytest.mark.parametrize(
    "text",
    [
        "",
        "a = 1",
        "a = 1\r\n",
        "mcp_servers = {}\n",
        'mcp_servers = { other = { command = "x" } }\n',
        'mcp_servers.other.command = "x"\n',
        '[mcp_servers]\nother = { command = "x" }\n[z]\n',
        '[mcp_servers.memd]\ncommand = "old"\nenv = { A = "b" } # mine\n\n[z]\nb = 1\n',
        '[mcp_servers.memd]\ncommand = "old"\n[mcp_servers.memd.env]\nA = "b"\n',
    ],
)
def test_whatever_form_the_tables_have(text: str) -> None:
    """The values are set, what others hold is kept, and it can be taken out again."""
    before = tomllib.loads(text)
    changed = with_table(text, WAY, VALUES)
    after = tomllib.loads(changed)
    mine = before.get("mcp_servers", {}).get("memd", {})
    assert after["mcp_servers"]["memd"] == {**mine, **VALUES}
    assert with_table(changed, WAY, VALUES) == changed
    assert ("\r\n" in changed) == ("\r\n" in text)
    del after["mcp_servers"]["memd"]
    out = tomllib.loads(without_table(changed, WAY))
    assert out == after or out == {name: value for name, value in after.items() if value != {}}


@pytest.mark.parametrize("text", ["a = ", "mcp_servers = 1", "[mcp_servers]\nmemd = 1\n", "\ufeff[a]\n"])
def test_what_is_not_such_toml_is_refused(text: str) -> None:
    """Broken, or with something else in the place."""
    with pytest.raises(NotEditable):
        with_table(text, WAY, VALUES)


def test_what_is_not_there_need_not_be_taken_out() -> None:
    """The text stays the same."""
    assert without_table(KEPT, WAY) == KEPT
