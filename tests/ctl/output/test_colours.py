"""When there are colours."""

import pytest

from memd.ctl.output import colours


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted", "chosen"),
    [
        ({}, True, True, colours.ansi),
        ({"NO_COLOR": ""}, True, True, colours.ansi),  # the convention asks for a value
        ({"NO_COLOR": "1"}, True, True, colours.plain),
        ({"TERM": "dumb"}, True, True, colours.plain),
        ({}, True, False, colours.plain),
        ({}, False, True, colours.plain),
    ],
)
def test_colours_need_a_terminal_that_wants_them(
    environ: dict[str, str], *, terminal: bool, wanted: bool, chosen: colours.Paint
) -> None:
    """A pipe, NO_COLOR, --no-color and a dumb terminal each do without."""
    assert colours.choose(environ, terminal=terminal, wanted=wanted) is chosen


def test_a_look_is_taken_back_at_the_end() -> None:
    """What follows is not painted too; nothing at all is not painted."""
    assert colours.ansi("x", "red") == "\x1b[31mx\x1b[0m"
    assert colours.ansi("", "red") == ""
    assert colours.plain("x", "red") == "x"
