"""A table of somebody else's TOML."""

import tomllib

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from memd.ctl.integrations.json_edit import NotEditable
from memd.ctl.integrations.toml_edit import with_values, without_table

WAY = ("mcp_servers", "memd")
VALUES = {"command": "/usr/bin/memd-mcp", "args": ["--socket", '/run/"é"']}

KEPT = 'model = "o5"   # the good one\n\n[mcp_servers.other]\ncommand = "x"\n\n# [mcp_servers.memd]\n'


def test_a_table_is_added_at_the_end() -> None:
    """Everything before stays, byte by byte; again it changes nothing, and out of it nothing is left."""
    changed = with_values(KEPT, WAY, VALUES)
    assert changed == (
        KEPT + '\n[mcp_servers.memd]\ncommand = "/usr/bin/memd-mcp"\nargs = ["--socket", "/run/\\"é\\""]\n'
    )
    assert with_values(changed, WAY, VALUES) == changed
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
    changed = with_values(text, WAY, VALUES)
    after = tomllib.loads(changed)
    mine = before.get("mcp_servers", {}).get("memd", {})
    assert after["mcp_servers"]["memd"] == {**mine, **VALUES}
    assert with_values(changed, WAY, VALUES) == changed
    assert ("\r\n" in changed) == ("\r\n" in text)
    del after["mcp_servers"]["memd"]
    out = tomllib.loads(without_table(changed, WAY))
    assert out == after or out == {name: value for name, value in after.items() if value != {}}


@pytest.mark.parametrize("text", ["a = ", "mcp_servers = 1", "[mcp_servers]\nmemd = 1\n", "\ufeff[a]\n"])
def test_what_is_not_such_toml_is_refused(text: str) -> None:
    """Broken, or with something else in the place."""
    with pytest.raises(NotEditable):
        with_values(text, WAY, VALUES)


def test_a_value_is_put_below_the_comment_that_tells_its_default() -> None:
    """Also where that is the last line before another table, which has one like it."""
    text = "[mcp_servers.memd]\nargs = []\n# command = 'x'\n[z]\n# command = 'y'\n"
    assert with_values(text, WAY, {"command": "m"}) == text.replace("'x'\n", "'x'\ncommand = \"m\"\n")


def test_what_is_not_there_need_not_be_taken_out() -> None:
    """The text stays the same."""
    assert without_table(KEPT, WAY) == KEPT


_LINES = st.lists(
    st.sampled_from(
        [
            "",
            "# ask Bob before you change the next one",
            "  # set in",
            "[profiles.work]",
            "[mcp_servers.other]",
            'model = "o3"  # why',
            "args = [",
        ]
    ),
    max_size=6,
)


@given(
    before=_LINES,
    after=_LINES,
    own=st.sampled_from(
        ["", "env = {}\n", '# mine\nenv = { A = "b" }\n', '[mcp_servers.memd.env]\nA = "b"\n']
    ),
)
def test_what_a_person_has_written_around_the_table_stays(
    before: list[str], after: list[str], own: str
) -> None:
    """Every line of it, also comments between memd's last key and the next header."""
    head, tail = "\n".join([*before, ""]), "\n".join([*after, ""])
    table = with_values("", WAY, VALUES)
    text = f"{head}\n{table}{own}\n{tail}"
    try:
        tomllib.loads(text)
        tomllib.loads(head)
    except tomllib.TOMLDecodeError:
        assume(False)
    # A key that follows without a header of its own is one of memd's table.
    first = next((line for line in after if line.strip() and not line.lstrip().startswith("#")), "[")
    assume(first.startswith("["))
    left = without_table(text, WAY)
    assert [line for line in left.split("\n") if line.strip()] == [
        line for line in (*before, *after) if line.strip()
    ]


def test_where_a_comment_would_go_it_is_left_to_the_person() -> None:
    """In a form that only a parser finds its way in."""
    text = "mcp_servers = { memd = { command = 'x' } } # mine\n# and this\n"
    assert "# and this" in without_table(text, WAY)
