import pytest

from memd.ctl.output.cell_width import fitted, width, wrapped


@pytest.mark.parametrize(
    ("text", "cells"),
    [
        ("", 0),
        ("abc", 3),
        ("旅行", 4),
        ("e\u0301", 1),
        ("ｗｉｄｅ", 8),
        ("카페", 4),
        ("a\u200db", 2),
        ("🐈", 2),
    ],
)
def test_cells_are_those_of_a_terminal(text: str, cells: int) -> None:
    """CJK, full-width letters and emoji take two, marks none."""
    assert width(text) == cells


@pytest.mark.parametrize(
    ("text", "cells", "expected"),
    [
        ("memory/a.md", 11, "memory/a.md"),
        ("memory/travel.md", 10, "mem…vel.md"),
        ("旅行/北京的笔记.md", 12, "旅…的笔记.md"),
        ("旅行", 1, "…"),
    ],
)
def test_what_is_too_wide_loses_its_middle(text: str, cells: int, expected: str) -> None:
    """The end stays longer than the beginning, for that is where names differ."""
    assert fitted(text, cells) == expected
    assert width(fitted(text, cells)) <= cells


def test_lines_break_between_words() -> None:
    """No line is wider than there is room, but for a word that is."""
    assert list(wrapped(["数据", "据库", "a", "long-long-word"], 11)) == ["数据  据库", "a", "long-long-word"]
    assert list(wrapped([], 10)) == []
