import asyncio
import json
import os
import time
from datetime import UTC
from pathlib import Path

import msgspec
import pytest

from memd.backends.qmd import own_files
from memd.backends.qmd.export import (
    SAVED_AFTER,
    Export,
    ExportSource,
    IndexedPage,
    Manifest,
    ManifestEntry,
    PageReader,
    plan_export,
    read_manifest,
    safe_name,
    transcript_page,
)
from memd.backends.qmd.installation import QmdPlaces
from memd.backends.qmd.process import QmdFailed
from memd.config.settings import Redact, SessionSettings, UserRule
from memd.domain_types import Kind, Turn
from memd.runtime.threads import Threads
from tests.backends.qmd.bench import SECRET, Bench, indexing, transcript
from tests.bounds import shipped


def source(name: str, state: str = "1", directory: str = "sessions/s") -> ExportSource:
    return ExportSource(directory, name, state)


def test_only_what_changed_is_written() -> None:
    """What is the same stays, also after a restart; what is gone is deleted."""
    before = Manifest(
        {
            "a": ManifestEntry("sessions/s/a.md", "1", 5),
            "b": ManifestEntry("sessions/s/b.md", "1", 5),
            "c": ManifestEntry("sessions/s/c.md", "1", 5),
        },
        "r",
    )
    sizes = {"sessions/s/a.md": 5, "sessions/s/b.md": 5, "sessions/s/c.md": 5}
    work = plan_export(
        read_manifest(msgspec.json.encode(before)),
        {"a": source("a"), "b": source("b", "2")},
        rules="r",
        sizes=sizes,
    )
    assert set(work.keep) == {"a"}
    assert work.write == {"b": ManifestEntry("sessions/s/b.md", "1", 5)}
    assert set(work.delete) == {"c"}


def test_what_somebody_took_away_or_changed_is_written_again() -> None:
    """And everything, when the rules of redaction are others."""
    before = Manifest(
        {"a": ManifestEntry("sessions/s/a.md", "1", 5), "b": ManifestEntry("sessions/s/b.md", "1", 5)}, "r"
    )
    wanted = {"a": source("a"), "b": source("b")}
    assert set(plan_export(before, wanted, rules="r", sizes={"sessions/s/b.md": 6}).write) == {"a", "b"}
    sizes = {"sessions/s/a.md": 5, "sessions/s/b.md": 5}
    assert set(plan_export(before, wanted, rules="r", sizes=sizes).write) == set()
    assert set(plan_export(before, wanted, rules="other", sizes=sizes).write) == {"a", "b"}


def test_a_file_of_somebody_else_keeps_its_name() -> None:
    """Ours gets another; where capitals do not count, too."""
    work = plan_export(Manifest(), {"a": source("a")}, rules="", sizes={"sessions/s/A.md": 3})
    [entry] = work.write.values()
    assert entry.file.casefold() != "sessions/s/a.md"
    assert not work.delete


def test_a_name_of_ours_that_somebody_else_took_is_made_longer() -> None:
    """Until it is nobody's: nothing of others is written over."""
    taken = {"sessions/s/a.md": 3}
    for _ in range(3):
        [entry] = plan_export(Manifest(), {"a": source("a")}, rules="", sizes=taken).write.values()
        assert entry.file not in taken
        assert entry.file.startswith("sessions/s/a-")
        taken[entry.file] = 3
    assert len({len(name) for name in taken}) == 4


def test_two_sources_never_share_a_file() -> None:
    """However alike their names are."""
    wanted = {"1": source("x/y"), "2": source("x:y"), "3": source("X-Y"), "4": source("x-y"), "5": source("")}
    files = [
        entry.file.casefold() for entry in plan_export(Manifest(), wanted, rules="", sizes={}).write.values()
    ]
    assert len(set(files)) == 5
    assert all(file.startswith("sessions/s/") and file.count("/") == 2 for file in files)


def test_a_source_that_moves_is_deleted_where_it_was() -> None:
    """A note that became a curated one, for instance."""
    before = Manifest({"a": ManifestEntry("notes/a.md", "1", 5)}, "")
    work = plan_export(before, {"a": source("a", directory="curated")}, rules="", sizes={"notes/a.md": 5})
    assert work.write["a"].file == "curated/a.md"
    assert work.delete["a"].file == "notes/a.md"


def test_a_manifest_of_an_earlier_life_is_read() -> None:
    """Its number changes only with what it says: else all files are written once more."""
    files = {"memory/a.md": ManifestEntry("notes/a.md")}
    assert read_manifest(b'{"files":{"memory/a.md":{"file":"notes/a.md"}},"version":1}') == Manifest(files)


def test_a_manifest_that_makes_no_sense_names_no_file() -> None:
    """Nothing is deleted on its account: not above the directory, not memd's own."""
    assert read_manifest(b"") == read_manifest(b"{") == read_manifest(b"[]") == Manifest()
    assert read_manifest(b'{"files": {}, "version": 99}') == Manifest()
    evil = Manifest(
        {
            str(n): ManifestEntry(file)
            for n, file in enumerate(["../x.md", "/etc/x", "a/.memd", "x", "a//b", "a/\0"])
        }
    )
    assert read_manifest(msgspec.json.encode(evil)).files == {}


def test_a_safe_name_is_part_of_a_path_everywhere() -> None:
    """Letters of any script stay."""
    assert safe_name("../a b:c") == "a-b-c"
    assert safe_name("会议") == "会议"
    assert safe_name("...") == "unnamed"
    most = shipped("memd.backends.qmd.export._MOST_CHARS")
    assert [len(safe_name("x" * count)) for count in (most, most + 1, 900)] == [most] * 3


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


SOURCES = ("memory", "sessions")


def exporting(bench: Bench, *, notes: bool = False, rules: str = "1", session_days: int = 0) -> Export:
    threads = Threads(1, "exporting")
    bench.directory.mkdir(mode=0o700, exist_ok=True)
    reading = PageReader(bench.index, bench.rules, threads)
    return Export(
        QmdPlaces(bench.directory), reading, threads, rules=rules, notes=notes, session_days=session_days
    )


def exported(bench: Bench) -> dict[str, Path]:
    return {file.relative_to(bench.directory).as_posix(): file for file in bench.directory.rglob("*.md")}


def stamps(bench: Bench) -> dict[str, int]:
    return {name: file.stat().st_ino for name, file in exported(bench).items()}


async def test_transcripts_become_redacted_pages(tmp_path: Path) -> None:
    """Each its own file, for its user alone; what was secret in them is on no disk but where it was."""
    transcript(tmp_path / "talks", "one", "where is the safe?", f"in the kitchen, the key is {SECRET}")
    transcript(tmp_path / "talks", "two", "hello")
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        export = exporting(bench)
        await export.bring(await bench.index.known())
        found = exported(bench)
        assert set(found) == {"sessions/talks/one.md", "sessions/talks/two.md"}
        text = found["sessions/talks/one.md"].read_text()
        assert "# Session one\n\n" in text
        assert "User: where is the safe?" in text
        assert "[REDACTED" in text
        assert SECRET not in text
        assert {file.stat().st_mode & 0o777 for file in found.values()} == {0o600}
        assert found["sessions/talks/one.md"].parent.stat().st_mode & 0o777 == 0o700
        assert export.made_of(found["sessions/talks/two.md"]) == "sessions/talks/two.jsonl"


async def test_only_what_has_changed_is_written_again(tmp_path: Path) -> None:
    """Also in the next life of the daemon; what is gone goes."""
    talks = tmp_path / "talks"
    for name in ("a", "b", "c"):
        transcript(talks, name, "hello")
    sessions = SessionSettings(paths=(talks,))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        await exporting(bench).bring(await bench.index.known())
        before = stamps(bench)
        transcript(talks, "a", "hello", "and goodbye")
        (talks / "c.jsonl").unlink()
        await bench.settle()
        await exporting(bench).bring(await bench.index.known())
        after = stamps(bench)
        assert after["sessions/talks/b.md"] == before["sessions/talks/b.md"]
        assert after["sessions/talks/a.md"] != before["sessions/talks/a.md"]
        assert "sessions/talks/c.md" not in after
        await exporting(bench, rules="others").bring(await bench.index.known())
        assert stamps(bench)["sessions/talks/b.md"] != before["sessions/talks/b.md"]


async def test_what_memd_did_not_write_is_left_alone(tmp_path: Path) -> None:
    """Neither overwritten nor deleted, and counted."""
    transcript(tmp_path / "talks", "a", "hello")
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        theirs = bench.directory / "sessions" / "talks" / "a.md"
        theirs.parent.mkdir(parents=True)
        theirs.write_text("theirs")
        other = bench.directory / "sessions" / "diary.md"
        other.write_text("theirs too")
        await bench.settle()
        export = exporting(bench)
        await export.bring(await bench.index.known())
        assert export.left_alone == 2
        assert len(export.files) == 1
        (tmp_path / "talks" / "a.jsonl").unlink()
        await bench.settle()
        await export.bring(await bench.index.known())
        assert set(exported(bench).values()) == {theirs, other}
        assert (theirs.read_text(), other.read_text()) == ("theirs", "theirs too")


async def test_what_a_killed_daemon_wrote_is_memds_own(tmp_path: Path) -> None:
    """The manifest names a file before it is written, so the next life finds no stranger."""
    transcript(tmp_path / "talks", "a", "hello")
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        await exporting(bench).bring(await bench.index.known())
        manifest = bench.directory / "exported.json"
        told = json.loads(manifest.read_text())
        for entry in told["files"].values():
            entry["state"] = ""
        manifest.write_text(json.dumps(told))
        export = exporting(bench)
        await export.bring(await bench.index.known())
        assert export.left_alone == 0
        assert set(exported(bench)) == {"sessions/talks/a.md"}


@pytest.mark.long
async def test_a_kill_has_a_hundred_files_written_again_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is in the manifest after every hundred files, whose content a later life then knows."""
    for number in range(2 * SAVED_AFTER + 1):
        transcript(tmp_path / "talks", str(number), "hello")
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    put = own_files.put
    unknown: list[int] = []  # files that the manifest does not know yet, as each is written

    def watched(base: Path, name: str, data: bytes) -> None:
        if name.endswith(".md"):
            told = json.loads((base / "exported.json").read_text())["files"].values()
            unknown.append(sum((base / entry["file"]).exists() and not entry["state"] for entry in told))
        put(base, name, data)

    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        monkeypatch.setattr(own_files, "put", watched)
        await exporting(bench).bring(await bench.index.known())
    assert unknown == [*range(SAVED_AFTER), *range(SAVED_AFTER), 0]


async def test_old_sessions_are_not_exported(tmp_path: Path) -> None:
    """One that gets too old is taken out; its transcript stays."""
    old = transcript(tmp_path / "talks", "old", "hello")
    transcript(tmp_path / "talks", "new", "hello")
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        await exporting(bench, session_days=30).bring(await bench.index.known())
        assert len(exported(bench)) == 2
        before = time.time() - 31 * 86_400
        os.utime(old, (before, before))
        await asyncio.sleep(0.05)  # so that no second write could leave the stamp as it is
        await bench.settle()
        await exporting(bench, session_days=30).bring(await bench.index.known())
        assert set(exported(bench)) == {"sessions/talks/new.md"}
        assert old.exists()


async def test_a_session_is_old_after_so_many_days_of_so_many_seconds(tmp_path: Path) -> None:
    """Of a transcript alone; one from the future is not."""
    talk = transcript(tmp_path / "talks", "one", "hello")
    os.utime(talk, (time.time() - 86_400,) * 2)
    await asyncio.sleep(0.05)  # the time of what changed a moment ago is not known yet
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        bench.write("memory/a.md", "hello")
        await bench.settle()
        known = {one.kind: one for one in (await bench.index.known()).values()}
        export, session = exporting(bench, session_days=30), known[Kind.SESSION]
        changed = session.stamp.mtime_ns / 1e9
        over = changed + 30 * shipped("memd.backends.qmd.export._DAY_S")
        assert [export.is_over(session, now) for now in (changed - 1, over - 1, over + 1)] == [
            False,
            False,
            True,
        ]
        assert not export.is_over(known[Kind.NOTE], over + 1)


async def test_notes_are_copied_where_all_is_redacted(tmp_path: Path) -> None:
    """Curated ones apart from the others; line for line."""
    redact = Redact(mode="all", extra=(UserRule(name="code", pattern=r"swordfish"),))
    async with indexing(tmp_path, "qmd", redact=redact) as bench:
        bench.write("MEMORY.md", "one\nthe word is swordfish\nthree\n")
        bench.write("memory/a b/c.md", "plain\n")
        await bench.settle()
        export = exporting(bench, notes=True)
        await export.bring(await bench.index.known())
        found = exported(bench)
        assert {name.rpartition("/")[0] for name in found} == {"curated", "notes"}
        assert (
            bench.directory / "curated" / "MEMORY.md"
        ).read_text() == "one\nthe word is [REDACTED:code]\nthree\n"
        assert {export.made_of(file) for file in found.values()} == {"MEMORY.md", "memory/a b/c.md"}


async def test_a_note_that_cannot_be_read_any_more_has_no_copy(tmp_path: Path) -> None:
    """Neither an empty one nor that of before; the others are copied, and it is once it can be read."""
    async with indexing(tmp_path, "qmd", redact=Redact(mode="all")) as bench:
        for name in ("a", "b", "c"):
            bench.write(f"memory/{name}.md", "one\n")
        await bench.settle()
        export = exporting(bench, notes=True)
        await export.bring(await bench.index.known())
        for name in ("a", "b", "c"):
            bench.write(f"memory/{name}.md", f"{name} two\n")
        await bench.settle()
        known = await bench.index.known()
        (bench.workspace / "memory" / "b.md").unlink()
        await export.bring(known)
        assert set(exported(bench)) == {"notes/memory-a.md", "notes/memory-c.md"}
        assert set(export.files) == {"memory/a.md", "memory/c.md"}
        bench.write("memory/b.md", "b two\n")
        await export.bring(known)
        assert exported(bench)["notes/memory-b.md"].read_text() == "b two\n"


async def test_a_link_in_the_way_is_not_followed(tmp_path: Path) -> None:
    """Nothing is written where it leads."""
    transcript(tmp_path / "talks", "a", "hello")
    (tmp_path / "elsewhere").mkdir()
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with indexing(tmp_path, "qmd", sources=SOURCES, sessions=sessions) as bench:
        await bench.settle()
        export = exporting(bench)
        (bench.directory / "sessions").symlink_to(tmp_path / "elsewhere")
        with pytest.raises(QmdFailed, match="sessions"):
            await export.bring(await bench.index.known())
        assert not list((tmp_path / "elsewhere").iterdir())
