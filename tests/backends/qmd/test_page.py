from datetime import UTC
from pathlib import Path

from memd.backends.qmd.page import IndexedPage, PageReader, transcript_page
from memd.config.settings import Redact, UserRule
from memd.model import Kind, Turn
from memd.runtime.threads import Threads
from tests.backends.qmd.bench import indexing


async def test_a_note_is_read_as_its_agent_may_read_it(tmp_path: Path) -> None:
    """As it is on the disk now, without what is secret; what is gone, linked or no note is nothing."""
    redact = Redact(mode="all", extra=(UserRule(name="word", pattern="swordfish"),))
    async with indexing(tmp_path, "qmd", redact=redact) as bench:
        reading = PageReader(bench.index, bench.rules, Threads(1, "reading"))
        note = bench.write("memory/a.md", "one\r\nswordfish\n")
        assert await reading.page("memory/a.md", Kind.NOTE) == IndexedPage(("one", "[REDACTED:word]"))
        note.unlink()
        assert await reading.page("memory/a.md", Kind.NOTE) is None
        note.symlink_to("/etc/passwd")
        assert await reading.page("memory/a.md", Kind.NOTE) is None
        assert await reading.page("../secret.md", Kind.NOTE) is None


async def test_a_transcript_that_is_not_indexed_has_no_turns(tmp_path: Path) -> None:
    """Its page says so, and holds nothing of the disk."""
    async with indexing(tmp_path, "qmd") as bench:
        reading = PageReader(bench.index, bench.rules, Threads(1, "reading"))
        page = await reading.page("sessions/x/a.jsonl", Kind.SESSION)
        assert page is not None
        assert page.lines[0] == "# Session a"
        assert "(empty)" in page.lines


def test_each_line_knows_the_line_of_the_transcript() -> None:
    """A turn of several lines stands on one of the transcript."""
    turns = [
        Turn("1", "user", 0.0, 2, 2, "where is\nthe safe?"),
        Turn("2", "assistant", None, 5, 6, "in the kitchen"),
    ]
    made = transcript_page("abc", turns, UTC)
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
    assert "(empty)" in transcript_page("abc", [], None).lines


def test_lines_of_a_note_are_their_own() -> None:
    """No numbers are kept for them."""
    assert IndexedPage(("a", "b")).number(2) == 2
