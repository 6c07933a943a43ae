"""What a scan finds of transcripts: one file a session, whatever became of it."""

import os
import shutil
import time
import unicodedata
from collections.abc import Callable, Collection, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path
from random import Random
from typing import Any, cast

import pytest

from memd.domain_types import Kind
from memd.sources.scan import scan
from memd.sources.scan_result import MountPoint, Scan, SkipReason
from memd.sources.vanished import kept
from memd.text.memory_paths import ExtraDirectory, Root, SessionPaths, Workspace, exclude_of
from memd.text.transcript_files import Layout
from tests.between import each_moment
from tests.bounds import shipped
from tests.otheruser import as_other_user, shared_directory
from tests.sources.homes import ROLLOUT, UUIDS

CLAUDE = f"sessions/claude-code/{UUIDS[0]}.jsonl"
CODEX = f"sessions/codex/{ROLLOUT}.jsonl"
OPENCLAW = f"sessions/openclaw/{UUIDS[0]}.jsonl"


@pytest.fixture
def base(tmp_path: Path) -> Path:
    return Path(os.path.realpath(tmp_path))


def _root(directory: Path, layout: Layout, **given: Any) -> SessionPaths:
    return SessionPaths(directory, layout, layout, **given)


def _codex(home: Path) -> tuple[SessionPaths, SessionPaths]:
    live = _root(home / "sessions", "codex")
    return live, _root(home / "archived_sessions", "codex", archived=True, expected=False)


def _touch(*files: Path) -> None:
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(str(file))


def _look(*roots: Root, within: Collection[Path] | None = None) -> Scan:
    return scan(roots, max_bytes=10, within=within)


def _gone(known: Iterable[str], seen: Scan) -> set[str]:
    """What is indexed no longer after a scan."""
    names = set(known)
    return {name for name in names - seen.found.keys() if seen.covers(name)} - kept(names, (), seen).keys()


def _files(seen: Scan) -> dict[str, Path]:
    return {name: found.file for name, found in seen.found.items()}


def test_a_transcript_is_found_by_its_session(base: Path) -> None:
    """Its kind is its own, and it may be longer than a note."""
    file = base / "-home-li" / f"{UUIDS[0]}.jsonl"
    _touch(file)
    seen = _look(_root(base, "claude-code"))
    assert _files(seen) == {CLAUDE: file}
    assert seen.found[CLAUDE].kind is Kind.SESSION
    assert seen.found[CLAUDE].stamp.size > 10
    assert not seen.skipped


def _days(base: Path) -> tuple[Path, Path, Path, Path]:
    live = base / "sessions/2026/03/02" / f"{ROLLOUT}.jsonl"
    return (
        live,
        live.with_name(f"{live.name}.zst"),
        base / "archived_sessions" / live.name,
        base / "archived_sessions" / f"{live.name}.zst",
    )


@pytest.mark.parametrize("first", range(4))
def test_one_session_is_one_file(base: Path, first: int) -> None:
    """A live one goes before an archived one, a plain one before a compressed one; the others are counted."""
    files = _days(base)[first:]
    _touch(*files)
    seen = _look(*_codex(base))
    assert _files(seen) == {CODEX: files[0]}
    assert list(seen.skipped.values()) == [SkipReason.SAME_SESSION] * (len(files) - 1)


def test_the_last_archive_goes_before_earlier_ones(base: Path) -> None:
    """And the file in use before any."""
    directory = base / "main" / "sessions"
    resets = [
        directory / f"{UUIDS[0]}.jsonl.reset.2026-03-0{day}T01-02-03.000Z{end}"
        for day, end in ((1, ""), (3, ""), (2, ""), (4, ".zst"))
    ]
    _touch(*resets)
    root = _root(base, "openclaw")
    assert _files(_look(root)) == {OPENCLAW: resets[1]}
    _touch(directory / f"{UUIDS[0]}.jsonl")
    assert _files(_look(root)) == {OPENCLAW: directory / f"{UUIDS[0]}.jsonl"}


def test_of_two_forms_of_a_directory_the_composed_one_goes_first(base: Path) -> None:
    """Even where the other one was written to last."""
    composed, decomposed = (
        base / unicodedata.normalize(form, "-é") / f"{UUIDS[0]}.jsonl" for form in ("NFC", "NFD")
    )
    _touch(composed, decomposed)
    for newer in (composed, decomposed):
        later = time.time_ns() + 10**9
        os.utime(newer, ns=(later, later))
        assert _files(_look(_root(base, "claude-code"))) == {CLAUDE: composed}


def test_the_directory_of_its_day_goes_before_others(base: Path) -> None:
    """A rollout may have been copied elsewhere."""
    files = [base / "sessions" / day / f"{ROLLOUT}.jsonl" for day in ("", "2026/01/01", "2026/03/02")]
    _touch(*files)
    assert _files(_look(*_codex(base))) == {CODEX: files[2]}


def _compress(base: Path) -> list[Path]:
    plain, packed, *_ = _days(base)
    _touch(packed)
    plain.unlink()
    return [plain, packed]


def _delete_plain(base: Path) -> list[Path]:
    plain, packed, *_ = _days(base)
    _touch(packed)
    _look(*_codex(base))
    plain.unlink()
    return [plain]


def _archive(base: Path) -> list[Path]:
    plain, _, archived, _ = _days(base)
    archived.parent.mkdir()
    plain.rename(archived)
    return [plain]  # the event of the new place may come later


def _restore(base: Path) -> list[Path]:
    _archive(base)
    plain, _, archived, _ = _days(base)
    archived.rename(plain)
    return [plain]


def _grow(base: Path) -> list[Path]:
    plain, packed, *_ = _days(base)
    _touch(packed)
    plain.write_text("more")
    return [plain]


def _copy(base: Path) -> list[Path]:
    plain, *_ = _days(base)
    copy = base / "sessions/2026/01/01" / plain.name
    _touch(copy)
    return [copy]


def _delete(base: Path) -> list[Path]:
    plain, *_ = _days(base)
    plain.unlink()
    return [plain]


def _delete_the_day(base: Path) -> list[Path]:
    shutil.rmtree(base / "sessions/2026/03")
    return [base / "sessions/2026/03"]


def _new_day(base: Path) -> list[Path]:
    _touch(base / "sessions/2027/01/01/rollout-2027-01-01T00-00-00-x.jsonl")
    return [base / "sessions/2027"]


def _link(base: Path) -> list[Path]:
    plain, *_ = _days(base)
    plain.rename(base / "x")
    plain.symlink_to(base / "x")
    return [plain]


@pytest.mark.parametrize(
    "change",
    [_compress, _delete_plain, _archive, _restore, _grow, _copy, _delete, _delete_the_day, _new_day, _link],
)
def test_a_partial_scan_comes_to_what_a_whole_one_does(
    base: Path, change: Callable[[Path], list[Path]]
) -> None:
    """Whatever happened to one file: what the partial scan says of the names that it covers is right."""
    roots = _codex(base)
    _touch(_days(base)[0])
    before = _look(*roots)
    partly = _look(*roots, within=change(base))
    wholly = _look(*roots)
    known = {**_files(before), **_files(partly)}
    for name in _gone(before.found, partly):
        known.pop(name, None)
    assert known == _files(wholly)
    assert all(partly.covers(name) for name in partly.found)


def _copies_of_claude_code(base: Path) -> tuple[list[SessionPaths], list[Path]]:
    projects = ("-home-u-app", "-home-u-work-app", "-a")
    return [_root(base, "claude-code")], [base / project / f"{UUIDS[0]}.jsonl" for project in projects]


def _copies_of_openclaw(base: Path) -> tuple[list[SessionPaths], list[Path]]:
    homes = (".openclaw", ".openclaw-backup", ".clawdbot")
    roots = [SessionPaths(base / home / "agents", "openclaw", "openclaw") for home in homes]
    return roots, [root.directory / "main" / "sessions" / f"{UUIDS[0]}.jsonl" for root in roots]


@pytest.mark.parametrize("copies", [_copies_of_claude_code, _copies_of_openclaw])
@pytest.mark.parametrize("seed", range(5))
def test_the_copy_that_is_written_to_is_the_one_that_counts(
    base: Path, copies: Callable[[Path], tuple[list[SessionPaths], list[Path]]], seed: int
) -> None:
    """Wherever a person copied it to, as a backup or to go on elsewhere: whichever grows, what came is found."""
    roots, files = copies(base)
    rng, clock = Random(seed), 1_700_000_000
    _touch(*files)
    for file in files:
        os.utime(file, (clock, clock))
    for _ in range(30):
        grown = rng.choice(files)
        clock += rng.choice([0, 1, 60])
        with grown.open("a") as more:
            more.write("more")
        os.utime(grown, (clock + 1, clock + 1))
        clock += 1
        assert list(_files(_look(*roots)).values()) == [grown]
        assert list(_files(_look(*roots, within=[grown])).values()) == [grown]


def test_a_copy_that_only_is_there_is_passed_by(base: Path) -> None:
    """It is counted, and a session that is archived gives way to a live file however old that is."""
    roots, files = _copies_of_openclaw(base)
    _touch(*files)
    os.utime(files[1], (1, 1))
    os.utime(files[2], (2, 2))
    seen = _look(*roots)
    assert _files(seen) == {OPENCLAW: files[0]}
    assert list(seen.skipped.values()) == [SkipReason.SAME_SESSION] * 2
    files[0].rename(files[0].with_name(f"{files[0].name}.reset.2026-03-02T01-02-03.000Z"))
    assert _files(_look(*roots)) == {OPENCLAW: files[2]}


def test_a_transcript_that_grows_costs_a_look_at_it_alone(base: Path) -> None:
    """Others are not even listed: a scan that is about one says nothing of them."""
    _touch(*(base / "-a" / f"{uuid}.jsonl" for uuid in UUIDS))
    seen = _look(_root(base, "claude-code"), within=[base / "-a" / f"{UUIDS[0]}.jsonl"])
    assert list(seen.found) == [CLAUDE]
    assert seen.looked == frozenset({CLAUDE})


@pytest.mark.parametrize(
    "edited", ["-a/memory/MEMORY.md", "-a/memory", "-a/memory/deep/a.md", "-a/x.txt", "-a/memory/none.md"]
)
def test_a_note_below_a_root_of_transcripts_costs_no_look_at_them(base: Path, edited: str) -> None:
    """Claude Code keeps notes between its transcripts: a scan that is about one says nothing of these."""
    _touch(base / "-a" / f"{UUIDS[0]}.jsonl", base / "-a/memory/MEMORY.md", base / "-a/x.txt")
    seen = _look(_root(base, "claude-code"), within=[base / edited])
    assert (list(seen.found), seen.looked) == ([], frozenset())
    whole = _look(_root(base, "claude-code"), within=[base / "-a"])
    assert list(whole.found) == [CLAUDE]


def test_a_partial_scan_of_notes_leaves_transcripts_alone(base: Path) -> None:
    """And the other way about: the workspace does not stand for sessions/."""
    _touch(base / "t" / "-a" / f"{UUIDS[0]}.jsonl", base / "w" / "memory" / "a.md")
    roots = (Workspace(base / "w"), _root(base / "t", "claude-code"))
    notes = _look(*roots, within=[base / "w"])
    assert list(notes.found) == []  # the note is too large here
    assert not notes.covers(CLAUDE)
    assert "memory/a.md" not in _gone([CLAUDE, "memory/a.md"], _look(*roots, within=[base / "t"]))


def test_archives_that_are_not_there_hide_nothing(base: Path) -> None:
    """A transcript that was deleted is gone, although nothing was ever archived."""
    plain, *_ = _days(base)
    _touch(plain, base / "sessions" / "2026" / "rest")
    before = _look(*_codex(base))
    plain.unlink()
    seen = _look(*_codex(base))
    assert _gone(before.found, seen) == {CODEX}


def test_a_home_that_is_not_there_keeps_its_transcripts(base: Path) -> None:
    """Its disk may not be mounted; a home that is there and has nothing in it was emptied."""
    assert not _gone([CODEX], _look(*_codex(base)))
    assert _gone([CLAUDE], _look(_root(base, "claude-code"))) == {CLAUDE}


def test_a_disk_that_was_unmounted_keeps_its_transcripts(base: Path) -> None:
    """Names of transcripts do not tell their directories, so a mount point below a label stands for all of it."""
    root = _root(base, "claude-code")
    _touch(base / "-b" / f"{UUIDS[1]}.jsonl")
    seen = _look(root)
    assert list(kept([CLAUDE], [MountPoint(str(base / "-a"), "sessions/claude-code")], seen)) == [CLAUDE]
    assert _gone([CLAUDE], seen) == {CLAUDE}


def test_subagents_are_left_out_by_place(base: Path) -> None:
    """Unless they are wanted."""
    inner = base / "-a" / UUIDS[0] / "subagents" / "agent-x.jsonl"
    _touch(inner, inner.with_name("journal.jsonl"), base / "-a" / "agent-y.jsonl")
    assert not _look(_root(base, "claude-code")).found
    assert list(_look(_root(base, "claude-code", subagents=True)).found) == [
        f"sessions/claude-code/{UUIDS[0]}/agent-x.jsonl",
        "sessions/claude-code/agent-y.jsonl",
    ]


def test_symlinks_are_not_followed(base: Path) -> None:
    """Neither to a transcript nor to a directory of some; both are counted."""
    _touch(base / "elsewhere" / "a.jsonl")
    root = base / "root"
    (root / "-a").mkdir(parents=True)
    (root / "-b").symlink_to(base / "elsewhere")
    (root / "-a" / f"{UUIDS[0]}.jsonl").symlink_to(base / "elsewhere" / "a.jsonl")
    os.mkfifo(root / "-a" / "b.jsonl")
    seen = _look(_root(root, "claude-code"))
    assert not seen.found
    assert sorted(seen.skipped.values()) == [SkipReason.NOT_REGULAR, SkipReason.SYMLINK, SkipReason.SYMLINK]
    assert all(seen.covers(name) for name in seen.skipped)


def test_names_that_nobody_could_cite(base: Path) -> None:
    """Names are in NFC; those with control characters or without encoding are counted."""
    for name in (b"cafe\xcc\x81.jsonl", b"a\nb.jsonl", b"\xff.jsonl"):
        Path(os.fsdecode(os.fsencode(base) + b"/" + name)).write_text("")
    seen = _look(SessionPaths(base, "x", "plain"))
    assert list(seen.found) == ["sessions/x/café.jsonl"]
    assert sorted(seen.skipped.values()) == [SkipReason.CONTROL, SkipReason.NOT_UTF8]


def test_one_file_in_two_ways_is_found_once(base: Path) -> None:
    """A preset and a path may lead to the same transcripts."""
    file = base / "-a" / f"{UUIDS[0]}.jsonl"
    _touch(file)
    roots = (_root(base, "claude-code"), SessionPaths(base / "-a", "mine", "plain"))
    assert _files(_look(*roots)) == {CLAUDE: file}
    assert not _look(*roots).skipped
    assert _files(_look(*roots, within=[file])) == {CLAUDE: file}


def test_one_transcript_alone(base: Path) -> None:
    """A path may name a file; one that is no transcript is counted."""
    _touch(base / "a.jsonl", base / "b.jsonl", base / "c.txt")
    assert list(_look(SessionPaths(base, "x", "plain", file="a.jsonl")).found) == ["sessions/x/a.jsonl"]
    seen = _look(SessionPaths(base, "x", "plain", file="c.txt"))
    assert list(seen.skipped.values()) == [SkipReason.NOT_TRANSCRIPT]
    both = [
        SessionPaths(base, "x", "plain", file="a.jsonl"),
        SessionPaths(base, "x", "plain", file="b.jsonl"),
    ]
    assert list(_look(*both, within=[base / "b.jsonl"]).found) == ["sessions/x/b.jsonl"]


def test_globs_are_matched_below_the_root(base: Path) -> None:
    """What is excluded is not there."""
    _touch(base / "-a" / f"{UUIDS[0]}.jsonl", base / "-b" / f"{UUIDS[1]}.jsonl")
    assert list(_look(_root(base, "claude-code", exclude=exclude_of(["-b/**"]))).found) == [CLAUDE]


def test_a_tree_with_a_way_holds_notes_below_it_alone(base: Path) -> None:
    """Not beside it."""
    _touch(base / "projects" / "-a" / "memory" / "b.md", base / "projects" / "-a" / "c.md", base / "d.md")
    seen = scan([ExtraDirectory(base, way=("projects", "*", "memory"))], max_bytes=1000)
    assert list(seen.found) == [f"{base}/projects/-a/memory/b.md"]


def seen_by_other_user(home: str) -> list[list[str]]:
    """What a user who may not look into every directory finds, counts and misses."""
    seen = _look(_root(Path(home), "claude-code"))
    return [list(seen.found), list(map(str, seen.skipped.values())), list(_gone([CLAUDE], seen))]


def test_a_closed_directory_keeps_what_was_indexed() -> None:
    """It is counted, and nothing of its label is gone."""
    with shared_directory() as home:
        _touch(home / "-a" / f"{UUIDS[0]}.jsonl", home / "-b" / f"{UUIDS[1]}.jsonl")
        (home / "-a").chmod(0)
        found, skipped, missed = as_other_user(__name__, seen_by_other_user.__name__, str(home))
    assert found == [f"sessions/claude-code/{UUIDS[1]}.jsonl"]
    assert skipped == ["unreadable"]
    assert not missed


def test_thousands_of_sessions_are_looked_at_by_stat_alone(base: Path) -> None:
    """Ten thousand in one directory take a moment, and an event on one of them nothing."""
    directory = base / "-a"
    directory.mkdir()
    for number in range(10_000):
        os.close(
            os.open(f"{directory}/019dec85-7a1c-7d2e-9f00-{number:012x}.jsonl", os.O_CREAT | os.O_WRONLY)
        )
    root = _root(base, "claude-code")
    began = time.process_time()
    assert len(_look(root).found) == 10_000
    assert time.process_time() - began < 2
    began = time.process_time()
    for _ in range(100):
        _look(root, within=[directory / f"{UUIDS[0]}.jsonl"])
    assert time.process_time() - began < 1


PLACES = {
    "claude-code": ["-a/{}.jsonl", "-b/{}.jsonl", "-b/{}.jsonl.zst"],
    "openclaw": [
        "main/sessions/{}.jsonl",
        "main/sessions/{}.jsonl.reset.2026-03-02T01-02-03.000Z",
        "main/sessions/{}.jsonl.reset.2026-03-03T01-02-03.000Z.zst",
        "main/sessions/{}.jsonl.deleted.2026-03-02T01-02-03.000Z",
        "main/sessions/cold/{}.jsonl.zst",
        "work/sessions/{}.jsonl",
    ],
    "gemini": ["9f/chats/{}.jsonl", "8e/chats/{}.jsonl", "9f/chats/{}.jsonl.tmp-7"],
    "codex": [
        "2026/03/02/rollout-2026-03-02T01-02-03-{}.jsonl",
        "2026/03/02/rollout-2026-03-02T01-02-03-{}.jsonl.zst",
        "rollout-2026-03-02T01-02-03-{}.jsonl",
    ],
}


@pytest.mark.rows(2)
@pytest.mark.parametrize("seed", range(6))
def test_partial_scans_keep_up_with_a_day_of_changes(base: Path, seed: int) -> None:
    """Files are made, written, moved, packed and deleted at random; what is known is what a whole scan finds."""
    rng = Random(seed)
    archive = _root(base / "archive", "codex", archived=True, expected=False)
    roots = (*(_root(base / layout, cast("Layout", layout)) for layout in PLACES), archive)
    files = [
        base / layout / pattern.format(uuid)
        for layout, patterns in PLACES.items()
        for pattern in patterns
        for uuid in (*UUIDS[:2], "daily")
    ]
    files += [base / "archive" / file.name for file in files if file.parent == base / "codex"]
    for file in files:
        file.parent.mkdir(parents=True, exist_ok=True)
    known: dict[str, Path] = {}
    for _ in range(80):
        events = set()
        for _ in range(rng.randint(1, 3)):
            file = rng.choice(files)
            events.add(file)
            if not file.exists():
                file.write_text(str(rng.random()))
            elif rng.random() < 0.4:
                file.unlink()
            else:
                other = rng.choice(
                    [one for one in files if one.is_relative_to(base / file.relative_to(base).parts[0])]
                )
                events.add(other)
                file.rename(other)
        seen = _look(*roots, within=events)
        for name in _gone(known, seen):
            del known[name]
        known.update(_files(seen))
        wholly = _look(*roots)
        assert known == _files(wholly)


@pytest.mark.parametrize("within", [None, 0, 1])
@pytest.mark.parametrize("old", [0, 1])
@pytest.mark.parametrize("step", ["the new name comes", "the old name goes", "both at once"])
def test_a_session_whose_file_takes_another_name_meanwhile(
    base: Path, within: int | None, old: int, step: str
) -> None:
    """Packed or unpacked at any moment of a scan, it is found under one name or the other, or kept."""
    files = [base / "-a" / f"{UUIDS[0]}.jsonl{end}" for end in ("", ".zst")]
    before, after = files[old], files[1 - old]
    wanted = None if within is None else {files[within]}

    def set_up() -> None:
        after.unlink(missing_ok=True)
        _touch(before, *([after] if step == "the old name goes" else []))

    def change() -> None:
        match step:
            case "the new name comes":
                _touch(after)
            case "the old name goes":
                before.unlink()
            case _:
                before.rename(after)

    def look() -> None:
        assert CLAUDE not in _gone([CLAUDE], _look(_root(base, "claude-code"), within=wanted))

    assert each_moment(look, set_up, change) > 4


LOOKS = shipped("memd.sources.scan._LOOKS")


@pytest.mark.parametrize("listings", [1, 2, LOOKS - 1, LOOKS, LOOKS + 2])
def test_a_session_whose_file_takes_another_name_at_each_listing(
    base: Path, monkeypatch: pytest.MonkeyPatch, listings: int
) -> None:
    """However often: it never counts as deleted, and one that is deleted in between does."""
    plain, packed = base / "-a" / f"{UUIDS[0]}.jsonl", base / "-a" / f"{UUIDS[0]}.jsonl.zst"
    other = base / "-a" / f"{UUIDS[1]}.jsonl"
    _touch(plain, other)
    real, left = os.scandir, [listings]

    @contextmanager
    def listed(place: int) -> Iterator[Iterator["os.DirEntry[str]"]]:
        with real(place) as entries:
            there = list(entries)
        if left[0] and any(entry.name == other.name or entry.name.startswith(plain.name) for entry in there):
            left[0] -= 1
            other.unlink(missing_ok=True)
            old, new = (plain, packed) if plain.exists() else (packed, plain)
            old.rename(new)
        yield iter(there)

    monkeypatch.setattr("memd.sources.scan.os.scandir", listed)
    seen = _look(_root(base, "claude-code"))
    deleted = f"sessions/claude-code/{UUIDS[1]}.jsonl"
    assert _gone([CLAUDE, deleted], seen) == {deleted}
    assert (CLAUDE in seen.found) == (listings < LOOKS)
