from datetime import UTC

from memd.backends.qmd.transcript_page import TranscriptPage, page
from memd.model import Turn


def test_each_line_knows_the_line_of_the_transcript() -> None:
    """A turn of several lines stands on one of the transcript."""
    turns = [
        Turn("1", "user", 0.0, 2, 2, "where is\nthe safe?"),
        Turn("2", "assistant", None, 5, 6, "in the kitchen"),
    ]
    made = page("abc", turns, UTC)
    assert made.lines == (
        "# Session abc",
        "",
        "1970-01-01 00:00 User: where is",
        "the safe?",
        "",
        "Assistant: in the kitchen",
        "",
    )
    assert made.numbers == (2, 2, 2, 2, 2, 5, 5)
    assert made.number(6) == 5
    assert made.text().endswith("kitchen\n\n")


def test_a_session_without_turns_is_a_page() -> None:
    """It says so."""
    assert "(empty)" in page("abc", [], None).lines


def test_lines_of_a_note_are_their_own() -> None:
    """No numbers are kept for them."""
    assert TranscriptPage(("a", "b")).number(2) == 2
