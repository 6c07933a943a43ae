import pytest

from memd.ctl.output.live_page import page


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
    drawn = page(text, rows)
    assert drawn.startswith("\x1b[H")
    assert drawn.endswith("\x1b[K\x1b[J")
    assert drawn.removeprefix("\x1b[H").removesuffix("\x1b[J").replace("\x1b[K", "").split("\r\n") == lines
