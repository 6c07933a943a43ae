"""The demo's workspace and its questions."""

from datetime import date
from pathlib import Path

import pytest

from memd.ctl.demo.workspace import EDIT, EDIT_QUESTION, QUESTIONS, DemoQuestion, notes, write_notes
from memd.search.query import parse
from memd.search.terms import held
from memd.text.tokens import is_mostly_cjk

_LINES = [line for _, text in notes(date(2026, 3, 2)) for line in text.splitlines()]


@pytest.mark.parametrize("question", [one for one in QUESTIONS if one.answer is not None])
def test_one_line_of_the_notes_has_the_answer(question: DemoQuestion) -> None:
    """So a hit that holds it is the right one."""
    assert question.answer is not None
    assert len([line for line in _LINES if question.answer in line]) == 1


def test_other_words_are_other_words() -> None:
    """The questions that are to show what vectors do share no word with the line that answers them."""
    for question in (QUESTIONS[0], QUESTIONS[3]):
        assert question.answer is not None
        line = next(line for line in _LINES if question.answer in line)
        assert held([line], parse(question.text).terms) == set()


def test_what_has_no_answer_has_none() -> None:
    """Not one word of that question stands in any note."""
    assert held(_LINES, parse(QUESTIONS[4].text).terms) == set()


def test_the_edit_is_news() -> None:
    """Before it, nothing answers its question."""
    assert EDIT_QUESTION.answer is not None
    assert EDIT_QUESTION.answer in EDIT
    assert not any(EDIT_QUESTION.answer in line for line in _LINES)


_TODAY = date(2026, 3, 2)


def test_daily_notes_are_of_the_last_days() -> None:
    """Each says its own day, across the end of a month."""
    paths = dict(notes(_TODAY))
    assert list(paths) == [
        "MEMORY.md",
        "USER.md",
        "memory/2026-03-02.md",
        "memory/2026-03-01.md",
        "memory/2026-02-28.md",
        "memory/2026-02-26.md",
        "memory/2026-02-24.md",
        "memory/2026-02-21.md",
    ]
    for path, text in paths.items():
        assert "{" not in text
        if path.startswith("memory/"):
            assert text.startswith(f"# {path[7:-3]}\n")


def test_about_half_of_the_lines_are_chinese() -> None:
    """A line in each language for one in the other, more or less."""
    lines = [line for _, text in notes(_TODAY) for line in text.splitlines() if line.startswith("- ")]
    chinese = sum(map(is_mostly_cjk, lines))
    assert 0.35 < chinese / len(lines) < 0.65


@pytest.mark.parametrize("directory", ["workspace", "deep/workspace"])
def test_they_are_written_as_they_are(tmp_path: Path, directory: str) -> None:
    """And counted."""
    assert write_notes(tmp_path / directory, _TODAY) == len(list((tmp_path / directory).rglob("*.md"))) == 8
    for path, text in notes(_TODAY):
        assert (tmp_path / directory / path).read_text(encoding="utf-8") == text
