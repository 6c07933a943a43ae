"""What a scan finds, skips, misses and cannot see."""

import os
import resource
import shutil
import socket
import threading
import unicodedata
from collections.abc import Sequence
from pathlib import Path

import pytest

from memd.domain_types import FoundFile, Kind, Stamp
from memd.sources.notes import TooLarge, read_note
from memd.sources.safe_open import (
    FileHeld,
    FileMissing,
    FileUnreadable,
    NoRoot,
    OutsideFence,
    ProcessExhausted,
    SourceError,
    UnexpectedFailure,
)
from memd.sources.scan import scan
from memd.sources.scan_result import BlindReason, MountPoint, Scan, SkipReason, skip_of
from memd.text.memory_paths import ExtraDirectory, Root, SingleFile, Workspace, exclude_of
from tests.bounds import shipped
from tests.otheruser import as_other_user, shared_directory

MAX_BYTES = 1000
NFC = unicodedata.normalize("NFC", "café.md")
NFD = unicodedata.normalize("NFD", "café.md")


@pytest.fixture
def base(tmp_path: Path) -> Path:
    """A directory with an empty workspace ws and an empty vault."""
    base = Path(os.path.realpath(tmp_path))
    (base / "ws" / "memory").mkdir(parents=True)
    (base / "vault").mkdir()
    return base


def write(directory: Path, *names: str) -> None:
    for name in names:
        (directory / name).parent.mkdir(parents=True, exist_ok=True)
        (directory / name).write_text(name)


def look(*roots: Root, within: Sequence[Path] | None = None) -> Scan:
    return scan(roots, max_bytes=MAX_BYTES, within=within)


def test_workspace(base: Path) -> None:
    """A workspace gives its curated files and the Markdown below memory/, in the order of their names."""
    workspace = base / "ws"
    write(
        workspace,
        "USER.md",
        "MEMORY.md",
        "README.md",
        "src/a.md",
        "memory/b.md",
        "memory/a/c.MD",
        "memory/x.txt",
    )
    seen = look(Workspace(workspace))
    assert list(seen.found) == ["MEMORY.md", "USER.md", "memory/a/c.MD", "memory/b.md"]
    assert [file.kind for file in seen.found.values()] == [Kind.CURATED, Kind.CURATED, Kind.NOTE, Kind.NOTE]
    assert not seen.skipped
    assert not seen.blind


def test_found_file(base: Path) -> None:
    """A found file has its name in the index, its place and its stamp."""
    write(base / "ws", "memory/a.md")
    file = base / "ws" / "memory" / "a.md"
    status = file.stat()
    assert look(Workspace(base / "ws")).found == {
        "memory/a.md": FoundFile("memory/a.md", str(file), Kind.NOTE, Stamp.of(status))
    }


def test_both_spellings_of_a_curated_file(base: Path) -> None:
    """MEMORY.md and memory.md are two files where the disk has both, each curated."""
    write(base / "ws", "MEMORY.md", "memory.md")
    kinds = {name: file.kind for name, file in look(Workspace(base / "ws")).found.items()}
    # On a disk that ignores case they are one.
    assert set(kinds) <= {"MEMORY.md", "memory.md"}
    assert set(kinds.values()) == {Kind.CURATED}


def test_extra_paths(base: Path) -> None:
    """Extra paths go by absolute names; what looks like an owner's file there is curated."""
    write(base, "vault/a.md", "vault/deep/er/b.md", "vault/MEMORY.md", "todo.md", "other.md")
    found = look(ExtraDirectory(base / "vault"), SingleFile(base, "todo.md")).found
    assert {name.removeprefix(str(base)): file.kind for name, file in found.items()} == {
        "/todo.md": Kind.NOTE,
        "/vault/MEMORY.md": Kind.CURATED,
        "/vault/a.md": Kind.NOTE,
        "/vault/deep/er/b.md": Kind.NOTE,
    }


def test_what_is_pruned_is_not_counted(base: Path) -> None:
    """Hidden, excluded and foreign directories are left out without a word: nobody expects them."""
    write(
        base / "vault",
        ".obsidian/a.md",
        ".a.md",
        "node_modules/p/README.md",
        "x/.git/a.md",
        "env/pyvenv.cfg",
        "env/lib/python3.14/site-packages/a/LICENSE.md",
        "drafts/a.md",
        "kept.md",
    )
    seen = look(ExtraDirectory(base / "vault", exclude_of(["drafts/"])))
    assert [Path(name).name for name in seen.found] == ["kept.md"]
    assert not seen.skipped


def test_a_root_below_a_hidden_directory(base: Path) -> None:
    """Only what is hidden below the root is hidden."""
    write(base, ".openclaw/workspace/memory/a.md", ".openclaw/workspace/memory/.x/a.md")
    assert list(look(Workspace(base / ".openclaw" / "workspace")).found) == ["memory/a.md"]


def test_notes_of_a_project_that_is_a_virtual_environment_too(base: Path) -> None:
    """`python -m venv .` makes one of the project itself: its packages are left out, its notes are not."""
    write(base / "vault", "app/pyvenv.cfg", "app/README.md", "app/docs/a.md", "app/bin/python")
    write(base / "vault", "app/lib/python3.14/site-packages/x/README.md")
    seen = look(ExtraDirectory(base / "vault"))
    assert [Path(name).name for name in seen.found] == ["README.md", "a.md"]
    assert (
        look(ExtraDirectory(base / "vault"), within=[base / "vault" / "app" / "docs"]).found.keys()
        < seen.found.keys()
    )


@pytest.mark.parametrize("twin", ["directory", "both"])
def test_two_directories_of_one_name_in_different_unicode_forms(base: Path, twin: str) -> None:
    """Notes of both are found and can be read; of two of the very same name one is, and the other is counted."""
    memory = base / "ws" / "memory"
    write(memory / NFC, "one.md")
    write(memory / NFD, "two.md")
    if twin == "both":
        write(memory / NFC, "same.md", NFD)
        write(memory / NFD, "same.md", NFC)
    root = Workspace(base / "ws")
    for within in (None, [memory / NFC], [memory / NFD], [memory / NFD / "two.md"]):
        seen = look(root, within=within)
        names = {f"memory/{NFC}/{name}" for name in ("one.md", "two.md")}
        names |= {f"memory/{NFC}/{name}" for name in ("same.md", NFC)} if twin == "both" else set()
        assert seen.found.keys() == names
        for found in seen.found.values():
            reading = read_note(found.path, [root], max_bytes=MAX_BYTES, now_ns=0)
            assert reading.stamp == found.stamp
        others = [str(memory / NFD / "same.md"), str(memory / NFD / NFC)] if twin == "both" else []
        assert seen.skipped == dict.fromkeys(others, SkipReason.SAME_NAME)


@pytest.mark.parametrize("asked", [NFC, NFD])
def test_a_dangling_link_of_the_same_name_in_another_unicode_form(base: Path, asked: str) -> None:
    """A look at one of the names tells the same as a look at all: which of them a name means depends on both."""
    memory = base / "ws" / "memory"
    write(memory, NFC)
    (memory / NFD).symlink_to("nowhere")
    whole, part = look(Workspace(base / "ws")), look(Workspace(base / "ws"), within=[memory / asked])
    assert (part.found.keys(), part.skipped) == (whole.found.keys(), whole.skipped)


def test_skipped(base: Path) -> None:
    """What one might expect to be indexed is counted with the reason."""
    memory = base / "ws" / "memory"
    write(base, "elsewhere/a.md", "ws/memory/a.md")
    (memory / "big.md").write_bytes(b"x" * (MAX_BYTES + 1))
    (memory / "limit.md").write_bytes(b"x" * MAX_BYTES)
    (memory / "link.md").symlink_to(base / "elsewhere" / "a.md")
    (memory / "linked").symlink_to(base / "elsewhere")
    (memory / "image.png").symlink_to("nowhere")
    os.mkfifo(memory / "fifo.md")
    os.mkfifo(memory / "fifo")
    (memory / "line\nbreak.md").touch()
    (memory / "tab\tdir").mkdir()
    Path(os.fsdecode(os.fsencode(memory) + b"/latin\xe9.md")).touch()
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(memory / "s.md"))
        seen = look(Workspace(base / "ws"))
    assert set(seen.found) == {"memory/a.md", "memory/limit.md"}
    assert seen.skipped == {
        "memory/big.md": SkipReason.TOO_LARGE,
        "memory/link.md": SkipReason.SYMLINK,
        "memory/linked": SkipReason.SYMLINK,
        "memory/fifo.md": SkipReason.NOT_REGULAR,
        "memory/s.md": SkipReason.NOT_REGULAR,
        "memory/line\nbreak.md": SkipReason.CONTROL,
        "memory/tab\tdir": SkipReason.CONTROL,
        "memory/latin\\xe9.md": SkipReason.NOT_UTF8,
    }


def test_a_partial_scan_of_a_name_that_is_not_utf8(base: Path) -> None:
    """It is counted, and the scan is about no name that the store could not be asked for."""
    memory = base / "ws" / "memory"
    write(memory, "a.md")
    odd, inner = (
        Path(os.fsdecode(os.fsencode(memory) + name)) for name in (b"/latin\xe9.md", b"/d\xe9/b.md")
    )
    odd.touch()
    inner.parent.mkdir()
    seen = look(Workspace(base / "ws"), within=[odd, inner, inner.parent, memory / "a.md"])
    assert set(seen.found) == {"memory/a.md"}
    assert seen.skipped == {"memory/latin\\xe9.md": SkipReason.NOT_UTF8, "memory/d\\xe9": SkipReason.NOT_UTF8}
    assert seen.looked == frozenset({"memory/a.md"})
    vault = inner.parent
    assert look(ExtraDirectory(vault), within=[vault / "c.md"]).looked == frozenset()


def test_a_file_that_is_no_markdown(base: Path) -> None:
    """An extra file that is not Markdown is counted: a person named it."""
    write(base, "notes.txt")
    assert look(SingleFile(base, "notes.txt")).skipped == {str(base / "notes.txt"): SkipReason.NOT_MARKDOWN}


def test_memory_as_a_symlink(base: Path) -> None:
    """The directory memory/ itself must not be a symlink."""
    write(base, "elsewhere/a.md")
    (base / "ws" / "memory").rmdir()
    (base / "ws" / "memory").symlink_to(base / "elsewhere")
    seen = look(Workspace(base / "ws"))
    assert not seen.found
    assert seen.skipped == {"memory": SkipReason.SYMLINK}


def test_a_directory_called_like_a_note(base: Path) -> None:
    """A directory whose name ends in .md is a directory."""
    write(base / "ws", "memory/topic.md/a.md")
    assert list(look(Workspace(base / "ws")).found) == ["memory/topic.md/a.md"]


def test_overlapping_roots(base: Path) -> None:
    """A file that two roots hold is found once; the workspace names it."""
    write(base, "ws/MEMORY.md", "ws/memory/sub/a.md", "ws/README.md", "b.md")
    workspace = base / "ws"
    seen = look(
        ExtraDirectory(base),
        Workspace(workspace),
        ExtraDirectory(workspace / "memory" / "sub"),
        SingleFile(base, "b.md"),
    )
    assert list(seen.found) == [
        str(base / "b.md"),
        str(workspace / "README.md"),
        "MEMORY.md",
        "memory/sub/a.md",
    ]
    assert not seen.skipped


def test_hard_links(base: Path) -> None:
    """A file with several names goes by the first of them; the others are counted."""
    write(base / "ws", "memory/b.md")
    for name in ("memory/a.md", "memory/c/d.md"):
        (base / "ws" / name).parent.mkdir(exist_ok=True)
        (base / "ws" / name).hardlink_to(base / "ws" / "memory" / "b.md")
    (base / "vault" / "0.md").hardlink_to(base / "ws" / "memory" / "b.md")
    seen = look(ExtraDirectory(base / "vault"), Workspace(base / "ws"))
    assert list(seen.found) == ["memory/a.md"]
    assert set(seen.skipped.values()) == {SkipReason.SAME_FILE}
    assert len(seen.skipped) == 3


def test_a_partial_scan_knows_hard_links(base: Path) -> None:
    """A partial scan that meets a file with several names looks everywhere, and finds the same one."""
    write(base / "ws", "memory/a.md")
    (base / "ws" / "memory" / "b.md").hardlink_to(base / "ws" / "memory" / "a.md")
    seen = look(Workspace(base / "ws"), within=[base / "ws" / "memory" / "b.md"])
    assert list(seen.found) == ["memory/a.md"]
    assert seen.looked is None


def test_unicode_forms(base: Path) -> None:
    """The index name is NFC, the file keeps the name of the disk."""
    write(base / "ws", f"memory/{NFD}")
    seen = look(Workspace(base / "ws"))
    assert list(seen.found) == [f"memory/{NFC}"]
    assert seen.found[f"memory/{NFC}"].file.name == NFD


@pytest.mark.parametrize("within", [None, NFC, NFD])
def test_two_unicode_forms_of_one_name(base: Path, within: str | None) -> None:
    """Where the disk has a name in two forms, the composed one is indexed, however the scan comes to it."""
    memory = base / "ws" / "memory"
    write(memory, NFC, NFD)
    seen = look(Workspace(base / "ws"), within=None if within is None else [memory / within])
    assert [file.file.name for file in seen.found.values()] == [NFC]
    assert list(seen.skipped.values()) == [SkipReason.SAME_NAME]


def test_a_partial_scan_of_a_name_in_one_form_looks_nowhere_else(base: Path) -> None:
    """A name beyond ASCII is looked at by itself, where the disk has no other spelling of it for another file."""
    write(base / "ws" / "memory", NFD, "other.md")
    seen = look(Workspace(base / "ws"), within=[base / "ws" / "memory" / NFC])
    assert [file.file.name for file in seen.found.values()] == [NFD]
    assert seen.looked == frozenset({f"memory/{NFC}"})


@pytest.mark.parametrize(
    ("trouble", "skip"),
    [
        (TooLarge("a", "b"), SkipReason.TOO_LARGE),
        (OutsideFence("a", "b"), SkipReason.NOT_REGULAR),
        (FileUnreadable("a", "b"), SkipReason.UNREADABLE),
    ],
)
def test_what_cannot_be_read_is_counted_like_what_a_scan_skips(
    trouble: SourceError, skip: SkipReason
) -> None:
    """There is one word for each reason, whoever meets it."""
    assert skip_of(trouble) is skip


def test_missing_roots(base: Path) -> None:
    """A root that is not there is missing, and nothing is said about its files."""
    write(base, "ws/memory/a.md")
    seen = look(
        Workspace(base / "none"),
        ExtraDirectory(base / "away"),
        SingleFile(base / "off", "a.md"),
        ExtraDirectory(base / "ws"),
    )
    away = ["", str(base / "away"), str(base / "off" / "a.md")]
    assert seen.blind == dict.fromkeys(away, BlindReason.ABSENT)
    assert len(seen.found) == 1


def test_a_root_that_is_no_directory_is_missing(base: Path) -> None:
    """A file or a symlink where the root was is not the root."""
    write(base, "file")
    (base / "link").symlink_to(base / "vault")
    away = [str(base / "file"), str(base / "link")]
    assert look(ExtraDirectory(base / "file"), ExtraDirectory(base / "link")).blind == dict.fromkeys(
        away, BlindReason.ABSENT
    )


def test_a_root_with_an_unsound_name(base: Path) -> None:
    """A root whose own path no index name can hold is counted, not indexed."""
    write(base / "tab\there", "a.md")
    seen = look(ExtraDirectory(base / "tab\there"))
    assert not seen.found
    assert seen.skipped == {str(base / "tab\there"): SkipReason.CONTROL}


def test_mount_points(base: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Those above a root, at it and below it are told with what lies below them, by a partial scan too."""
    write(base, "ws/memory/sub/a.md", "vault/a.md")
    mounted = {(base / place).stat().st_ino for place in ("", "ws/memory", "ws/memory/sub", "vault")}
    for module in ("safe_open", "scan"):
        monkeypatch.setattr(
            f"memd.sources.{module}.is_mount_point", lambda opened: os.fstat(opened).st_ino in mounted
        )
    roots = Workspace(base / "ws"), ExtraDirectory(base / "vault")
    of_workspace = {
        MountPoint(str(base), ""),
        MountPoint(str(base / "ws" / "memory"), "memory"),
        MountPoint(str(base / "ws" / "memory" / "sub"), "memory/sub"),
    }
    of_vault = {MountPoint(str(place), str(base / "vault")) for place in (base, base / "vault")}
    assert look(*roots).mounts == of_workspace | of_vault
    assert look(*roots, within=[base / "ws" / "memory" / "sub" / "b.md"]).mounts == of_workspace


@pytest.mark.parametrize(
    ("within", "found", "looked"),
    [
        (["ws/memory/a.md"], ["memory/a.md"], {"memory/a.md"}),
        (["ws/memory/gone.md"], [], {"memory/gone.md"}),
        (["ws/memory/sub"], ["memory/sub/b.md", "memory/sub/deep/c.md"], {"memory/sub"}),
        (
            ["ws/memory/sub", "ws/memory/sub/b.md"],
            ["memory/sub/b.md", "memory/sub/deep/c.md"],
            {"memory/sub"},
        ),
        (["ws/MEMORY.md", "ws/README.md"], ["MEMORY.md"], {"MEMORY.md", "README.md"}),
        (["ws/memory/.git/a.md"], [], {"memory/.git/a.md"}),
        (["ws/memory/env/a.md"], [], {"memory/env/a.md"}),
        (["ws/memory/env"], [], {"memory/env"}),
        (["ws/src/a.md"], [], {"src/a.md"}),
        (["elsewhere/a.md"], [], set()),
        (["ws"], ["MEMORY.md", "memory/a.md", "memory/sub/b.md", "memory/sub/deep/c.md"], {""}),
        (["."], ["MEMORY.md", "memory/a.md", "memory/sub/b.md", "memory/sub/deep/c.md"], {""}),
    ],
)
def test_partial_scans(base: Path, within: list[str], found: list[str], looked: set[str]) -> None:
    """A partial scan sees what a full one would see at these places, and says where it looked."""
    write(
        base / "ws",
        "MEMORY.md",
        "README.md",
        "src/a.md",
        "memory/a.md",
        "memory/sub/b.md",
        "memory/sub/deep/c.md",
        "memory/.git/a.md",
        "memory/venv/a.md",
    )
    write(base, "elsewhere/a.md")
    seen = look(Workspace(base / "ws"), within=[base / path for path in within])
    assert list(seen.found) == found
    assert seen.looked == frozenset(looked)


def test_a_partial_scan_of_overlapping_roots(base: Path) -> None:
    """A changed file that two roots hold is looked at under both names, and found under the workspace's."""
    write(base / "ws", "memory/a.md")
    file = base / "ws" / "memory" / "a.md"
    seen = look(Workspace(base / "ws"), ExtraDirectory(base / "ws" / "memory"), within=[file])
    assert list(seen.found) == ["memory/a.md"]
    assert seen.looked == frozenset({"memory/a.md", str(file)})


def test_covers(base: Path) -> None:
    """A full scan is about every name, also those of roots that are configured no longer."""
    assert look(Workspace(base / "ws")).covers("/once/configured/a.md")
    partial = look(Workspace(base / "ws"), within=[base / "ws" / "memory" / "sub"])
    assert partial.covers("memory/sub/a.md")
    assert not partial.covers("memory/subway.md")


def test_deep_trees(base: Path) -> None:
    """A tree deeper than anybody writes is left, not fallen into."""
    deep = base / "vault"
    for _ in range(80):
        deep /= "d"
        deep.mkdir()
        (deep / "a.md").touch()
    seen = look(ExtraDirectory(base / "vault"))
    assert len(seen.found) == shipped("memd.text.memory_paths._MAX_DEPTH") - 1
    assert list(seen.skipped.values()) == [SkipReason.TOO_DEEP]


def test_a_path_that_is_too_long_to_be_watched(base: Path) -> None:
    """It is left as a deep one is, and counted: nobody would notice what is written there."""
    directory = base / "vault"
    above = os.open(directory, os.O_RDONLY)
    for _ in range(20):
        os.mkdir("d" * 250, dir_fd=above)
        os.close(os.open("a.md", os.O_WRONLY | os.O_CREAT, dir_fd=above))
        inner = os.open("d" * 250, os.O_RDONLY, dir_fd=above)
        os.close(above)
        above = inner
    os.close(above)
    seen = look(ExtraDirectory(directory))
    longest = max(len(str(found.file.parent)) for found in seen.found.values())
    assert 0 <= shipped("memd.text.memory_paths._MAX_BYTES") - longest <= 250
    assert list(seen.skipped.values()) == [SkipReason.TOO_DEEP]


def seen_by_other_user(directory: str, *within: str) -> dict[str, list[str]]:
    base = Path(directory)
    places = [base / path for path in within] if within else None
    seen = look(Workspace(base / "ws"), ExtraDirectory(base / "vault"), within=places)
    return {
        "found": [name.removeprefix(directory) for name in seen.found],
        "skipped": [f"{name.removeprefix(directory)}: {why}" for name, why in seen.skipped.items()],
        "blind": sorted(f"{name.removeprefix(directory)}: {why}" for name, why in seen.blind.items()),
    }


def test_unreadable_directories() -> None:
    """The scan is blind where it may not look, and says so; everything else is found."""
    with shared_directory() as base:
        write(base, "ws/MEMORY.md", "ws/memory/closed/a.md", "ws/memory/open/a.md", "ws/memory/listed/a.md")
        write(base, "vault/a.md")
        (base / "ws" / "memory" / "closed").chmod(0)
        (base / "ws" / "memory" / "listed").chmod(0o644)
        (base / "vault").chmod(0)
        seen = as_other_user(__name__, seen_by_other_user.__name__, str(base))
        part = as_other_user(__name__, seen_by_other_user.__name__, str(base), "ws/memory/closed/a.md")
        # Whoever may pass a directory without listing it still gets what lies below a known name.
        (base / "ws").chmod(0o711)
        passed = as_other_user(__name__, seen_by_other_user.__name__, str(base), "ws/memory/open")
    assert seen["found"] == ["MEMORY.md", "memory/open/a.md"]
    assert seen["skipped"] == [
        "/vault: unreadable",
        "memory/closed: unreadable",
        "memory/listed/a.md: unreadable",
    ]
    closed = BlindReason.CLOSED
    assert seen["blind"] == [f"/vault: {closed}", f"memory/closed: {closed}", f"memory/listed/a.md: {closed}"]
    assert part["found"] == []
    assert part["blind"] == [f"memory/closed: {closed}"]
    assert passed["found"] == ["memory/open/a.md"]


def test_descriptors_run_out(base: Path) -> None:
    """Without descriptors there is no scan, rather than one that misses everything."""
    write(base, "vault/a/b/c/d.md")
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    try:
        for more in range(1, 5):
            resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + more, hard))
            with pytest.raises(ProcessExhausted):
                look(ExtraDirectory(base / "vault"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


def test_a_swap_during_the_scan_never_escapes(base: Path) -> None:
    """While a directory turns into a symlink and back, nothing outside is found."""
    write(base, "ws/memory/sub/a.md", "outside/secret.md")
    place, aside, link = base / "ws" / "memory" / "sub", base / "aside", base / "link"
    link.symlink_to(base / "outside")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            place.rename(aside)
            link.rename(place)
            place.rename(link)
            aside.rename(place)

    thread = threading.Thread(target=swap)
    thread.start()
    outcomes = set()
    try:
        for _ in range(20_000):
            outcomes.add(tuple(look(Workspace(base / "ws")).found))
            if len(outcomes) == 2:
                break
    finally:
        stop.set()
        thread.join()
    assert outcomes == {("memory/sub/a.md",), ()}


def test_a_tree_that_is_deleted_meanwhile(base: Path) -> None:
    """Files that vanish during the scan are not found, and nothing is wrong."""
    vault = base / "vault"

    def build_and_delete() -> None:
        for _ in range(20):
            write(vault, *(f"d{n}/a.md" for n in range(30)))
            shutil.rmtree(vault / "d1", ignore_errors=True)
            for n in range(30):
                shutil.rmtree(vault / f"d{n}", ignore_errors=True)

    thread = threading.Thread(target=build_and_delete)
    thread.start()
    try:
        while thread.is_alive():
            seen = look(ExtraDirectory(vault))
            assert not seen.skipped
            assert not seen.blind
    finally:
        thread.join()


@pytest.mark.parametrize(
    ("trouble", "why"),
    [
        (TooLarge("a", "large"), SkipReason.TOO_LARGE),
        (FileMissing("a", "gone"), SkipReason.WENT),
        (NoRoot("a", "gone"), SkipReason.WENT),
        (FileHeld("a", "held"), SkipReason.HELD),
        (UnexpectedFailure("a", "KeyError"), SkipReason.FAILED),
        (OutsideFence("a", "a link"), SkipReason.NOT_REGULAR),
        (FileUnreadable("a", "closed"), SkipReason.UNREADABLE),
    ],
)
def test_why_a_file_is_not_indexed_is_told_by_what_happened(trouble: SourceError, why: SkipReason) -> None:
    """Whatever it is."""
    assert skip_of(trouble) is why
