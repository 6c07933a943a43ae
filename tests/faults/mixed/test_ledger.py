import pytest

from tests.faults.mixed.ledger import Ledger, Place, Standing

NOTE = Place("main", "memory/a.md")
TALK = Place("main", "sessions/codex/a.jsonl")


def ledger_of(place: Place, *, stands: bool = True, known: bool = False) -> tuple[Ledger, Standing]:
    """A ledger with a word, and how it is with it."""
    ledger = Ledger()
    ledger.stands("heron", place, waits=place == TALK)
    if not stands:
        ledger.goes("heron")
    [one] = ledger.now()
    if known:
        ledger.confirm(one)
        [one] = ledger.now()
    return ledger, one


@pytest.mark.parametrize(
    ("place", "stands", "known", "shown", "stale", "expected"),
    [
        (NOTE, True, False, True, False, None),
        (NOTE, True, False, False, False, "is not found"),
        (NOTE, True, False, False, True, None),  # it says that it may be behind
        (NOTE, True, True, False, True, "a daemon had said otherwise"),
        (NOTE, False, False, True, False, "is in no file"),
        (NOTE, False, False, True, True, None),
        (NOTE, False, True, True, True, "a daemon had said otherwise"),
        (NOTE, False, False, False, False, None),
        (TALK, True, False, False, False, None),  # it is not due
        (TALK, True, True, False, False, "is not found"),
        (TALK, False, True, True, False, "is in no file"),
    ],
)
def test_an_answer_is_held_against_the_files_and_against_earlier_answers(
    place: Place, *, stands: bool, known: bool, shown: bool, stale: bool, expected: str | None
) -> None:
    """What is not called stale is true, and what was once true stays so while the file does."""
    ledger, one = ledger_of(place, stands=stands, known=known)
    fault = ledger.judge(one, shown=shown, stale=stale)
    assert (fault is None) if expected is None else (fault is not None and expected in fault)


@pytest.mark.parametrize(
    ("shown", "stale", "known"), [(True, False, True), (True, True, True), (False, True, False)]
)
def test_what_an_answer_shows_is_known(*, shown: bool, stale: bool, known: bool) -> None:
    """It is asked of every later answer."""
    ledger, one = ledger_of(NOTE)
    assert ledger.judge(one, shown=shown, stale=stale) is None
    assert ledger.now()[0].is_known is known


def test_what_changed_since_the_question_is_not_judged() -> None:
    """The answer may be of before or of after."""
    ledger, one = ledger_of(NOTE, known=True)
    ledger.goes("heron")
    assert ledger.judge(one, shown=False, stale=False) is None
    ledger, one = ledger_of(NOTE, known=True)
    ledger.touch("heron")
    assert ledger.judge(one, shown=False, stale=False) is None
    assert not ledger.now()[0].is_known


def test_the_newest_word_is_last() -> None:
    """A word that was written again counts as new; one that stands where it did stays as it was."""
    ledger, one = ledger_of(NOTE, known=True)
    ledger.stands("egret", NOTE)
    ledger.stands("heron", NOTE)
    assert [each.word for each in ledger.now()] == ["heron", "egret"]
    assert ledger.now()[0] == one
    ledger.stands("heron", TALK)
    assert [each.word for each in ledger.now()] == ["egret", "heron"]
