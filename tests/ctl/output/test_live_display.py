"""A page and a bar while something works."""

import io
import threading

import pytest

from memd.ctl.output.live_display import Stage, page_text, show_progress
from memd.ctl.output.screen import Screen
from tests.wait import until


@pytest.mark.parametrize(
    ("text", "rows", "lines"),
    [
        ("a", 3, ["a"]),
        ("a\nb\nc", 3, ["a", "b", "c"]),
        ("a\nb\nc\nd", 3, ["a", "b", "... 2 lines more"]),
        ("a\nb", 1, ["... 2 lines more"]),
    ],
)
def test_a_page_is_no_longer_than_the_terminal(text: str, rows: int, lines: list[str]) -> None:
    """It is drawn from the top over what was there, and what is left of that is cleared."""
    drawn = page_text(text, rows)
    assert drawn.startswith("\x1b[H")
    assert drawn.endswith("\x1b[K\x1b[J")
    assert drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").replace("\x1b[K", "").split("\r\n") == lines


class _Terminal(io.StringIO):
    def isatty(self) -> bool:
        return True


def _screen(err: io.StringIO) -> Screen:
    return Screen(io.StringIO(), err, {}, wants_color=False, json=False)


def test_off_a_terminal_nothing_is_drawn() -> None:
    """The work is done where it was asked for, and nobody looks."""
    err = io.StringIO()
    where = show_progress(_screen(err), threading.current_thread, lambda: pytest.fail("nobody looks"))
    assert where is threading.current_thread()
    assert err.getvalue() == ""


def test_a_bar_shows_how_far_the_work_is() -> None:
    """It is taken away at the end."""
    err = _Terminal()
    looked = threading.Event()

    def work() -> str:
        assert looked.wait(20)
        return "done"

    def look() -> Stage:
        # The bar draws what it was told before.
        if "Reading" in err.getvalue():
            looked.set()
        return Stage("Reading notes", done=3, total=4, remark="3 of 4")

    assert show_progress(_screen(err), work, look) == "done"
    assert "Reading notes" in err.getvalue()
    assert "3 of 4" in err.getvalue()
    assert err.getvalue().endswith("\x1b[1A\x1b[2K")  # one line up, and that line empty


def test_a_look_that_fails_leaves_the_bar_as_it_was() -> None:
    """The daemon may be too busy to say how far it is."""
    err = _Terminal()
    looks: list[None] = []

    def work() -> None:
        until(lambda: len(looks) >= 2)

    assert show_progress(_screen(err), work, lambda: looks.append(None)) is None
    assert "Asking memd" in err.getvalue()


def test_what_the_work_raises_comes_out() -> None:
    """Whether a bar was drawn or not."""

    def work() -> None:
        raise ValueError("no")

    for err in (_Terminal(), io.StringIO()):
        with pytest.raises(ValueError, match="no"):
            show_progress(_screen(err), work, lambda: None)
