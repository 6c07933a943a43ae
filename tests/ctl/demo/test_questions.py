"""What the demo asks."""

from datetime import date

import pytest

from memd.ctl.demo.questions import EDIT, EDIT_QUESTION, QUESTIONS, DemoQuestion
from memd.ctl.demo.workspace import notes
from memd.search.query import parse
from memd.search.terms import held

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
