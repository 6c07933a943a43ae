import asyncio
import json
import os
import time
from pathlib import Path

import pytest

from memd.backends.qmd import own_files
from memd.backends.qmd.errors import QmdFailed
from memd.backends.qmd.export import Export
from memd.backends.qmd.installation import QmdPlaces
from memd.backends.qmd.page import PageReader
from memd.config.settings import Redact, SessionSettings, UserRule
from memd.runtime.threads import Threads
from tests.backends.qmd.bench import SECRET, Bench, indexing, transcript

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


async def test_a_kill_has_a_hundred_files_written_again_at_most(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is in the manifest after every hundred files, whose content a later life then knows."""
    for number in range(201):
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
    assert unknown == [*range(100), *range(100), 0]


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
