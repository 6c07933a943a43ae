"""What may be opened: files below a root, by a way without symlinks."""

import errno
import fcntl
import os
import resource
import shutil
import signal
import socket
import stat
import unicodedata
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from memd.sources import safe_open
from memd.sources.safe_open import (
    FileHeld,
    FileMissing,
    FileUnreadable,
    NoRoot,
    OutsideFence,
    ProcessExhausted,
    SourceError,
    directory_inside,
    is_mount_point,
    open_inside,
    refusal,
    root_opened,
)
from tests.between import each_moment
from tests.descriptors import open_descriptors
from tests.otheruser import as_other_user, shared_directory

NFC = unicodedata.normalize("NFC", "café.md")
NFD = unicodedata.normalize("NFD", "café.md")


@pytest.fixture
def root(tmp_path: Path) -> Path:
    """A root with memory/a.md, beside a secret."""
    root = Path(os.path.realpath(tmp_path)) / "root"
    (root / "memory" / "sub").mkdir(parents=True)
    (root / "memory" / "a.md").write_text("inside")
    (root / "memory" / "sub" / "b.md").write_text("inside")
    outside = root.parent / "outside"
    outside.mkdir()
    (outside / "a.md").write_text("secret")
    (outside / "b.md").write_text("secret")
    return root


def read(root: Path, *parts: str) -> str:
    descriptor = open_inside(root, parts)
    with os.fdopen(descriptor, encoding="utf-8") as file:
        return file.read()


def test_opens_a_file(root: Path) -> None:
    """A regular file below the root is opened."""
    assert read(root, "memory", "a.md") == "inside"
    assert read(root, "memory", "sub", "b.md") == "inside"


@pytest.mark.parametrize(
    "parts",
    [
        (),
        ("",),
        (".",),
        ("..",),
        ("memory", "..", "memory", "a.md"),
        ("..", "outside", "a.md"),
        ("memory", "", "a.md"),
        ("memory", ".", "a.md"),
        ("memory/a.md",),
        ("/etc/passwd",),
        ("memory", "a.md\0"),
        ("memory", "\ud800.md"),
    ],
)
def test_refuses_what_is_no_path_below(root: Path, parts: tuple[str, ...]) -> None:
    """Parts that could lead elsewhere are refused before anything is opened."""
    with pytest.raises(OutsideFence):
        open_inside(root, parts)


@pytest.mark.parametrize(
    "parts", [("memory", "none.md"), ("none", "a.md"), ("memory", "x" * 300), ("memory", "é" * 20)]
)
def test_what_is_not_there_is_missing(root: Path, parts: tuple[str, ...]) -> None:
    """Nothing by this name is missing."""
    with pytest.raises(FileMissing):
        open_inside(root, parts)


def test_a_root_that_is_not_there_is_missing(root: Path) -> None:
    """Files of a root that went away are missing, and may be where it is."""
    with pytest.raises(NoRoot):
        open_inside(root / "gone", ("a.md",))


def test_refuses_a_symlinked_file(root: Path) -> None:
    """A symlink in place of the file is not followed, wherever it leads."""
    (root / "memory" / "out.md").symlink_to(root.parent / "outside" / "a.md")
    (root / "memory" / "in.md").symlink_to("a.md")
    (root / "memory" / "dangling.md").symlink_to("nowhere")
    for name in ("out.md", "in.md", "dangling.md"):
        with pytest.raises(OutsideFence):
            open_inside(root, ("memory", name))


def test_refuses_a_symlinked_directory(root: Path) -> None:
    """A symlink on the way is not followed, at any level."""
    (root / "memory" / "link").symlink_to(root.parent / "outside")
    (root / "linked").symlink_to("memory")
    for parts in (("memory", "link", "a.md"), ("linked", "a.md"), ("linked", "sub", "b.md")):
        with pytest.raises(OutsideFence):
            open_inside(root, parts)


def test_refuses_a_symlink_above_the_root(root: Path) -> None:
    """A root moved behind a symlink after it was configured is not followed."""
    moved = root.parent / "moved"
    root.rename(moved)
    root.symlink_to(moved)
    with pytest.raises(NoRoot):
        open_inside(root, ("memory", "a.md"))


def test_the_way_to_a_root_is_told_by_what_was_opened(root: Path) -> None:
    """Each directory on it, as far as it leads, from the top; the root of all is no part of it."""
    passed: list[tuple[Path, int]] = []

    def passing(place: Path, opened: int) -> None:
        passed.append((place, os.fstat(opened).st_ino))

    expected = [(place, place.stat().st_ino) for place in reversed((root, *root.parents[:-1]))]
    with root_opened(root, passing):
        assert passed == expected
    passed.clear()
    with pytest.raises(NoRoot), root_opened(root / "gone" / "too", passing):
        pass
    assert passed == expected


def test_refuses_a_file_in_place_of_a_directory(root: Path) -> None:
    """A file on the way leads nowhere."""
    with pytest.raises(OutsideFence):
        open_inside(root, ("memory", "a.md", "a.md"))


def test_refuses_what_is_not_regular(root: Path) -> None:
    """A directory, a FIFO or a socket is no note; none of them blocks."""
    (root / "memory" / "dir.md").mkdir()
    os.mkfifo(root / "memory" / "fifo.md")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "memory" / "socket.md"))
        for name in ("dir.md", "fifo.md", "socket.md"):
            with pytest.raises(OutsideFence):
                open_inside(root, ("memory", name))


def test_what_is_not_regular_is_not_even_opened(root: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """To open a device, or a FIFO that somebody waits on, is an act in itself."""
    os.mkfifo(root / "memory" / "fifo.md")
    opened: list[str] = []
    real_open = os.open

    def counted(path: str, flags: int, **how: int) -> int:
        opened.append(path)
        return real_open(path, flags, **how)

    monkeypatch.setattr(os, "open", counted)
    with pytest.raises(OutsideFence):
        open_inside(root, ("memory", "fifo.md"))
    assert opened[-1] == "memory"
    open_inside(root, ("memory", "a.md"))
    assert opened[-1] == "a.md"


def test_finds_another_unicode_form(root: Path) -> None:
    """A name in NFC opens the file whose name the disk keeps decomposed, in directories as well."""
    (root / NFD).mkdir()
    (root / NFD / NFD).write_text("decomposed")
    assert read(root, NFC, NFC) == "decomposed"
    (root / NFD / NFC).write_text("composed")
    assert read(root, NFC, NFC) == "composed"


def test_leaves_no_descriptor_open(root: Path) -> None:
    """Whether it opens or refuses, nothing else stays open."""
    (root / "memory" / "link").symlink_to(root.parent / "outside")
    before = open_descriptors()
    for parts in (("memory", "link", "a.md"), ("memory", "none.md"), ("none", "a.md"), ("memory", "sub")):
        with pytest.raises(SourceError):
            open_inside(root, parts)
    os.close(open_inside(root, ("memory", "a.md")))
    assert open_descriptors() == before


def test_descriptors_run_out(root: Path) -> None:
    """A process without descriptors says so: it must not look as if the files were gone."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    lowest_free = os.dup(0)
    os.close(lowest_free)
    resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free + 1, hard))
    try:
        with pytest.raises(ProcessExhausted):
            open_inside(root, ("memory", "sub", "b.md"))
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))


@pytest.mark.parametrize(
    ("number", "error"),
    [
        (errno.ENOENT, FileMissing),
        (errno.ELOOP, OutsideFence),
        (errno.EACCES, FileUnreadable),
        (errno.EIO, FileUnreadable),
        (errno.ESTALE, FileUnreadable),
        (errno.EMFILE, ProcessExhausted),
    ],
)
def test_refusal(number: int, error: type[Exception]) -> None:
    """A failed call says what can be done about it."""
    assert type(refusal(OSError(number, "no"), "memory/a.md")) is error


def opened_by_other_user(path: str) -> str:
    root = Path(path)
    outcomes = []
    for parts in (("a.md",), ("closed.md",), ("closed", "a.md"), ("passage", "a.md")):
        try:
            outcomes.append(read(root, *parts))
        except SourceError as failure:
            outcomes.append(type(failure).__name__)
    return " ".join(outcomes)


def test_permissions() -> None:
    """What the user may not read is unreadable; a directory need not be listable to be passed through."""
    with shared_directory() as root:
        for name in ("closed", "passage"):
            (root / name).mkdir()
            (root / name / "a.md").write_text("passed")
        (root / "a.md").write_text("open")
        (root / "closed.md").write_text("closed")
        (root / "closed.md").chmod(0)
        (root / "closed").chmod(0)
        (root / "passage").chmod(0o711)
        seen = as_other_user(__name__, opened_by_other_user.__name__, str(root))
    assert seen == "open FileUnreadable FileUnreadable passed"


def _link_instead(place: Path, target: Path) -> None:
    place.rename(place.with_name("aside"))
    place.symlink_to(target)


def _fifo_instead(place: Path, target: Path) -> None:
    place.unlink()
    os.mkfifo(place)


def _file_instead(place: Path, target: Path) -> None:
    place.rename(place.with_name("aside"))
    place.write_text("another")


_SWAPPED = [
    ("memory/sub", "outside", ("memory", "sub", "b.md")),
    ("memory", "outside", ("memory", "a.md")),
    (".", "outside", ("a.md",)),
    ("memory/a.md", "outside/a.md", ("memory", "a.md")),
    (f"memory/{NFC}", "outside/a.md", ("memory", NFC)),
]


@pytest.mark.parametrize(
    ("act", "swapped", "target", "parts"),
    [
        *((act, *swapped) for act in (_link_instead, _file_instead) for swapped in _SWAPPED),
        *((_fifo_instead, *swapped) for swapped in _SWAPPED[3:]),
    ],
)
def test_a_swap_at_any_moment_never_escapes(
    tmp_path: Path, act: Callable[[Path, Path], None], swapped: str, target: str, parts: tuple[str, ...]
) -> None:
    """Whatever turns into something else before whichever call: what is opened is a regular file of the root, or nothing."""
    base = Path(os.path.realpath(tmp_path))
    root, outside = base / "root", base / "outside"
    told: set[str] = set()

    def set_up() -> None:
        shutil.rmtree(root, ignore_errors=True)
        root.unlink(missing_ok=True)
        shutil.rmtree(base / "aside", ignore_errors=True)
        shutil.rmtree(outside, ignore_errors=True)
        for directory, text in (
            (root / "memory", "inside"),
            (root / "memory" / "sub", "inside"),
            (root, "inside"),
            (outside, "secret"),
        ):
            directory.mkdir(parents=True, exist_ok=True)
            for name in ("a.md", "b.md", NFC):
                (directory / name).write_text(text)

    def open_and_read() -> None:
        try:
            descriptor = open_inside(root, parts)
        except SourceError as failure:
            told.add(type(failure).__name__)
            return
        assert stat.S_ISREG(os.fstat(descriptor).st_mode)
        with os.fdopen(descriptor, encoding="utf-8") as file:
            told.add(file.read())

    before = open_descriptors()
    assert each_moment(open_and_read, set_up, lambda: act(root / swapped, base / target)) > 4
    assert open_descriptors() == before
    assert "inside" in told
    assert told <= {"inside", "another", "Missing", "NoRoot", "OutsideFence"}
    assert act is not _link_instead or ("NoRoot" if swapped == "." else "OutsideFence") in told


def test_on_disk_prefers_the_name_itself(root: Path) -> None:
    """An ASCII name is taken as it is; one that is nowhere is given back."""
    descriptor = os.open(root / "memory", os.O_RDONLY)
    try:
        assert safe_open.on_disk(descriptor, "a.md") == "a.md"
        assert safe_open.on_disk(descriptor, NFC) == NFC
    finally:
        os.close(descriptor)


def test_a_file_that_another_program_holds(tmp_path: Path) -> None:
    """A lease is that file's trouble: the process has not run out of anything."""
    note = tmp_path / "a.md"
    note.write_text("x")
    before = signal.signal(signal.SIGIO, signal.SIG_IGN)
    descriptor = os.open(note, os.O_RDWR)
    try:
        fcntl.fcntl(descriptor, fcntl.F_SETLEASE, fcntl.F_WRLCK)
        with pytest.raises(FileHeld):
            open_inside(Path(os.path.realpath(tmp_path)), ("a.md",))
    finally:
        os.close(descriptor)
        signal.signal(signal.SIGIO, before)


def test_a_mount_point_is_told_by_its_device_where_the_system_says_no_more(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A directory on the disk of the one above is none; of one that may not be entered nothing is found anyway."""
    for system in (
        None,
        lambda *_: -1,
        lambda *_: 0,
    ):  # none; one that fails; one that knows no such attribute
        monkeypatch.setattr("memd.sources.safe_open.statx", system)
        for path, is_mounted in ((tmp_path, False), (Path("/proc"), True)):
            descriptor = os.open(path, os.O_RDONLY)
            try:
                assert is_mount_point(descriptor) is is_mounted
            finally:
                os.close(descriptor)
    monkeypatch.setattr("memd.sources.safe_open.statx", None)
    descriptor = os.open("/proc", os.O_RDONLY)
    look = os.stat

    def refused(path: object, **how: Any) -> os.stat_result:
        if path == "..":
            raise PermissionError
        return look(path, **how)  # type: ignore[arg-type]  # whatever it was called with

    try:
        monkeypatch.setattr(os, "stat", refused)
        assert not is_mount_point(descriptor)
    finally:
        os.close(descriptor)


@pytest.mark.parametrize("parts", [("..",), ("a", ".."), ("",), ("a/b",), (".",)])
def test_a_directory_is_opened_by_plain_names_alone(root: Path, parts: tuple[str, ...]) -> None:
    """Nothing else is a path below a root."""
    with pytest.raises(OutsideFence, match="not a path below the root"), directory_inside(root, parts):
        pass
