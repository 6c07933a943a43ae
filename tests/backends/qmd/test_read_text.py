from pathlib import Path

from memd.backends.qmd.read_text import IndexedText
from memd.backends.qmd.transcript_page import TranscriptPage
from memd.config.settings import Redact, UserRule
from memd.model import Kind
from memd.runtime.threads import Threads
from tests.backends.qmd.bench import indexing


async def test_a_note_is_read_as_its_agent_may_read_it(tmp_path: Path) -> None:
    """As it is on the disk now, without what is secret; what is gone, linked or no note is nothing."""
    redact = Redact(mode="all", extra=(UserRule(name="word", pattern="swordfish"),))
    async with indexing(tmp_path, "qmd", redact=redact) as bench:
        reading = IndexedText(bench.index, bench.treatment, Threads(1, "reading"))
        note = bench.write("memory/a.md", "one\r\nswordfish\n")
        assert await reading.page("memory/a.md", Kind.NOTE) == TranscriptPage(("one", "[REDACTED:word]"))
        note.unlink()
        assert await reading.page("memory/a.md", Kind.NOTE) is None
        note.symlink_to("/etc/passwd")
        assert await reading.page("memory/a.md", Kind.NOTE) is None
        assert await reading.page("../secret.md", Kind.NOTE) is None


async def test_a_transcript_that_is_not_indexed_has_no_turns(tmp_path: Path) -> None:
    """Its page says so, and holds nothing of the disk."""
    async with indexing(tmp_path, "qmd") as bench:
        reading = IndexedText(bench.index, bench.treatment, Threads(1, "reading"))
        page = await reading.page("sessions/x/a.jsonl", Kind.SESSION)
        assert page is not None
        assert page.lines[0] == "# Session a"
        assert "(empty)" in page.lines
