import pytest

from memd.backends.qmd.errors import last_words, plain
from tests.bounds import shipped


@pytest.mark.parametrize(
    ("said", "words"),
    [
        ("", ""),
        ("\n \n", ""),
        ("one\ntwo\n", "two"),
        ("Error: no such model\nHint: run doctor\n", "Error: no such model"),
        (
            "file:///x/store.js:46\n  throw new Error('x')\n  ^\n\nError: it broke\n    at run (file:///x)\n\nNode.js v22.1.0\n",
            "Error: it broke",
        ),
        ("\x1b[31mfailed\x1b[0m \x1b[?25lhere\r\n", "failed here"),
        ("\x1b]0;title\x07a\x00b\u202ec error", "a b c error"),
        ("error " + "x" * 900, "error " + "x" * 194),
    ],
)
def test_the_line_that_tells_what_went_wrong_is_repeated(said: str, words: str) -> None:
    """The last line that speaks of trouble, as plain text of at most 200 characters."""
    assert last_words(said) == words


def test_lines_that_quote_a_question_are_not_repeated() -> None:
    """Programs print what they were asked; memory never enters a message."""
    said = "Error: cannot expand 'Where is the SAFE?'\nsomething else\n"
    assert last_words(said, ("where", "safe")) == "something else"
    assert last_words("Error about safe", ("safe",)) == ""


def test_a_plain_line_is_one_line() -> None:
    """Whatever would move a cursor is gone."""
    assert plain("a\tb\x9b\x7f\u2028c") == "a b c"


def test_what_is_repeated_has_an_end() -> None:
    """One line, and so much of it."""
    most = shipped("memd.backends.qmd.errors._MOST_CHARS")
    for count in (most - 6, most - 5):
        assert last_words("Error " + "x" * count) == "Error " + "x" * (most - 6)


def test_a_line_that_many_others_follow_is_not_looked_for() -> None:
    """The last ones are read."""
    most = shipped("memd.backends.qmd.errors._MOST_LINES")
    for others, told in ((most - 1, "Error: x"), (most, "ok")):
        assert last_words("\n".join(["Error: x", *["ok"] * others])) == told
