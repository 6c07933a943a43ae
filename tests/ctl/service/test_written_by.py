"""Who wrote a file."""

import pytest

from memd.ctl.service.written_by import author, marked

_TEXT = "[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/true\n"


@pytest.mark.parametrize(("opening", "closing", "line"), [("# ", "", 0), ("<!-- ", " -->", 2), ("# ", "", 5)])
def test_a_text_tells_that_memd_wrote_it(opening: str, closing: str, line: int) -> None:
    """By a comment in the place that is wanted; the other lines are as they were."""
    text = marked(_TEXT, opening=opening, closing=closing, line=line)
    lines = text.splitlines()
    mark = lines.pop(line)
    assert mark.startswith(f"{opening}Written by memd-ctl service install")
    assert mark.endswith(closing)
    assert "\n".join(lines) + "\n" == _TEXT
    assert author(text) == "memd"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("true", "false"),
        lambda text: text + "\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("# Written", "## Written") + "#",
    ],
)
def test_any_change_is_noticed(change: object) -> None:
    """Were it a blank."""
    assert callable(change)
    assert author(change(marked(_TEXT))) == "edited"


@pytest.mark.parametrize(
    "text", ["", _TEXT, "# Written by memd-ctl service install; sha256 of the other lines: 00\n"]
)
def test_what_has_no_mark_is_from_somebody_else(text: str) -> None:
    """Half a mark is none."""
    assert author(text) == "other"
