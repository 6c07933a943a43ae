"""The question of a command line."""

import pytest

from memd.ctl import arguments
from memd.ctl.commands.search import question_of
from memd.ctl.failures import UsageError


def test_all_options_reach_the_question() -> None:
    """Several words are one question."""
    argv = [
        "search",
        "which",
        "database?",
        "-n",
        "3",
        "--min-score",
        "0.5",
        "--source",
        "memory",
        "--now",
        "2026-02-09",
    ]
    assert question_of(arguments.parse([*argv, "--agent", "a", "--session-key", "agent:a:main"])) == {
        "query": "which database?",
        "max_results": 3,
        "min_score": 0.5,
        "source": "memory",
        "agent": "a",
        "session_key": "agent:a:main",
        "now": "2026-02-09",
    }


@pytest.mark.parametrize("words", [[""], ["  ", "\t"]])
def test_nothing_is_no_question(words: list[str]) -> None:
    """It is refused here: the daemon need not be asked."""
    with pytest.raises(UsageError, match="empty"):
        question_of(arguments.parse(["search", *words]))
