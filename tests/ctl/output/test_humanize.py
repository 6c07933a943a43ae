"""Durations, counts, sizes, paths and columns in words."""

from pathlib import Path

import pytest

from memd.ctl.output import humanize
from memd.ctl.output.humanize import fitted, width, wrapped
from tests.table import table


@table(
    ("seconds", "said"),
    [
        (-1.0, "0 ms"),
        (0.0, "0 ms"),
        (0.0042, "4 ms"),
        (0.35, "0.35 s"),
        (2.0, "2 s"),
        (9.94, "9.9 s"),
        (12.3, "12 s"),
        (59.4, "59 s"),
        (59.6, "1 min"),
        (180.0, "3 min"),
        (3_599.0, "1 h"),
        (7_500.0, "2 h 5 min"),
        (86_399.0, "1 d"),
        (93_600.0, "1 d 2 h"),
        (8_640_000.0, "100 d"),
    ],
)
def test_a_duration_has_the_units_that_matter(seconds: float, said: str) -> None:
    """Neither seconds of a day nor the minutes of a week."""
    assert humanize.duration(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [
        (0.0, "a few seconds"),
        (4.9, "a few seconds"),
        (6.0, "about 10 seconds"),
        (38.0, "about 40 seconds"),
        (57.0, "about 1 minute"),
        (170.0, "about 3 minutes"),
        (7_200.0, "about 2 hours"),
        (260_000.0, "about 3 days"),
    ],
)
def test_an_estimate_pretends_no_precision(seconds: float, said: str) -> None:
    """What is only roughly known is said roughly."""
    assert humanize.estimate(seconds) == said


@pytest.mark.parametrize(
    ("seconds", "said"),
    [(-30.0, "just now"), (1.0, "just now"), (12.0, "12 s ago"), (3_700.0, "1 h 2 min ago")],
)
def test_past_is_said_as_ago(seconds: float, said: str) -> None:
    """A clock that was set back makes it just now."""
    assert humanize.ago(seconds) == said


def test_numbers_agree_with_what_they_count() -> None:
    """One is singular, everything else plural, thousands are set apart."""
    assert [humanize.counted(n, "file") for n in (0, 1, 1830)] == ["0 files", "1 file", "1,830 files"]
    assert [humanize.size(n) for n in (1, 999, 12_400_000, 3_000_000_000)] == [
        "1 byte",
        "999 bytes",
        "12.4 MB",
        "3.0 GB",
    ]


@pytest.mark.parametrize(
    ("path", "home", "said"),
    [
        ("/home/ann/notes", "/home/ann", "~/notes"),
        ("/home/ann", "/home/ann", "~"),
        ("/home/anna/notes", "/home/ann", "/home/anna/notes"),
        ("/etc", "/", "/etc"),
    ],
)
def test_the_home_directory_is_a_tilde(path: str, home: str, said: str) -> None:
    """But for a home that is the root, which would hide everything."""
    assert humanize.shown(path, Path(home)) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("plain\ttext\n", "plain\ttext\n"),
        ("花生 café", "花生 café"),
        ("\x1b]0;title\x07", "\\x1b]0;title\\x07"),
        ("a\rb", "a\\rb"),
        ("\x9b31m", "\\x9b31m"),
        ("safe\u202egnp.exe", "safe\\u202egnp.exe"),
        ("soft\u00adhyphen", "soft\u00adhyphen"),
    ],
)
def test_what_commands_a_terminal_is_spelled_out(text: str, said: str) -> None:
    """A note may hold anything; printing it must not."""
    assert humanize.visible(text) == said


def test_a_path_is_read_as_it_is_printed() -> None:
    """No other sequence is read: it may be the name."""
    for letter in map(chr, (*range(0x202A, 0x202F), *range(0x2066, 0x206A))):
        path = f"memory/{letter}gnp.md"
        assert humanize.as_printed(humanize.visible(path)) == path
    for path in ("memory/花.md", r"a\b\u0041\x1b\r.md", r"\u2029\u206a\u200f.md"):
        assert humanize.as_printed(path) == path


def test_a_text_of_several_lines_fits_in_one() -> None:
    """Empty lines are left out, and full stops before a semicolon."""
    assert humanize.one_line("first\n\n  second \n") == "first; second"
    assert humanize.one_line("No key is set.\nSet one.\n") == "No key is set; Set one."
    assert humanize.one_line(" \n") == ""


@pytest.mark.parametrize(
    ("names", "said"), [(["a"], "a"), (["a", "b"], "a and b"), (["a", "b", "c"], "a, b and c")]
)
def test_names_are_listed_as_in_a_sentence(names: list[str], said: str) -> None:
    """With the last one set apart."""
    assert humanize.listed(names) == said


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("It is gone. Install it.", "It is gone. Install it"),
        ("is it there?", "is it there?"),
        ("a\nb.", "a; b"),
    ],
)
def test_a_sentence_stands_in_another_without_its_full_stop(text: str, said: str) -> None:
    """Which would otherwise be followed by a second one, or by a semicolon."""
    assert humanize.clause(text) == said


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
