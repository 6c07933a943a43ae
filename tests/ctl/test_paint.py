"""When there are colours."""

import pytest

from memd.ctl import paint


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted", "chosen"),
    [
        ({}, True, True, paint.ansi),
        ({"NO_COLOR": ""}, True, True, paint.ansi),  # the convention asks for a value
        ({"NO_COLOR": "1"}, True, True, paint.plain),
        ({"TERM": "dumb"}, True, True, paint.plain),
        ({}, True, False, paint.plain),
        ({}, False, True, paint.plain),
    ],
)
def test_colours_need_a_terminal_that_wants_them(
    environ: dict[str, str], *, terminal: bool, wanted: bool, chosen: paint.Paint
) -> None:
    """A pipe, NO_COLOR, --no-color and a dumb terminal each do without."""
    assert paint.choose(environ, terminal=terminal, wanted=wanted) is chosen


def test_a_look_is_taken_back_at_the_end() -> None:
    """What follows is not painted too; nothing at all is not painted."""
    assert paint.ansi("x", "red") == "\x1b[31mx\x1b[0m"
    assert paint.ansi("", "red") == ""
    assert paint.plain("x", "red") == "x"
