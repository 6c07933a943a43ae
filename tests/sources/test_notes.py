"""From bytes on the disk to documents."""

import codecs
import errno
import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import given

from memd.config.settings import Redact
from memd.domain_types import NOT_UTF8, Document, Kind, Stamp
from memd.redact.redactor import Redactor
from memd.sources.notes import TooLarge, lines_of, read_note, reliable_stamp
from memd.sources.safe_open import FileMissing, FileUnreadable, OutsideFence, ProcessExhausted, SourceError
from memd.text.memory_paths import ExtraDirectory, Root, SingleFile, Workspace
from memd_client.note_encoding import decode_note
from tests.awkward import markdown as awkward
from tests.bounds import shipped
from tests.otheruser import as_other_user, shared_directory

TICK_NS, COARSE_TICK_NS = (
    shipped("memd.sources.notes._TICK_NS"),
    shipped("memd.sources.notes._COARSE_TICK_NS"),
)
SECOND_NS = shipped("memd.sources.notes._SECOND_NS")
LATER_NS = 4_000_000_000_000_000_000
MAX_BYTES = 1 << 20


@pytest.fixture
def workspace(tmp_path: Path) -> Path:
    workspace = Path(os.path.realpath(tmp_path)) / "ws"
    (workspace / "memory").mkdir(parents=True)
    return workspace


@pytest.mark.parametrize(
    ("raw", "lines", "is_lossy"),
    [
        (b"", (), False),
        (b"plain", ("plain",), False),
        ("日记 café".encode(), ("日记 café",), False),
        (codecs.BOM_UTF8 + b"marked", ("marked",), False),
        (codecs.BOM_UTF8, (), False),
        (codecs.BOM_UTF16_LE + "日记".encode("utf-16-le"), ("日记",), False),
        (codecs.BOM_UTF16_BE + "日记".encode("utf-16-be"), ("日记",), False),
        (codecs.BOM_UTF16_LE + b"a\0\x3d", ("a\ufffd",), True),
        (codecs.BOM_UTF16_LE + b"\x3d\xd8a\0", ("\ufffda",), True),
        ("# 日记\r\n我们的时间\r\n".encode("gbk"), ("# 日记", "我们的时间"), False),
        (b"caf\xe9!", ("caf\ufffd!",), True),
        (b"\xed\xa0\x80", ("\ufffd\ufffd\ufffd",), True),
        (b"\xe6\x97", ("\ufffd",), True),
        (b"a\0b\0\0\n\0", ("ab",), False),
    ],
)
def test_text_comes_out_of_any_bytes(
    workspace: Path, raw: bytes, lines: tuple[str, ...], *, is_lossy: bool
) -> None:
    """Marks and NUL characters are gone, what is invalid is replaced, and that is counted."""
    (workspace / "memory" / "a.md").write_bytes(raw)
    for redactor in (None, _REDACTOR):
        reading = read_note(
            "memory/a.md", [Workspace(workspace)], max_bytes=MAX_BYTES, now_ns=LATER_NS, redactor=redactor
        )
        assert reading.document.lines == lines
        assert reading.tally == ({NOT_UTF8: 1} if is_lossy else {})


_REDACTOR = Redactor(Redact())


@given(awkward.FILES)
def test_any_file_is_lines_of_text(raw: bytes) -> None:
    """Whatever was written, in whatever encoding: lines without ends, valid Unicode, as many of them after redaction."""
    lines = lines_of(decode_note(raw).text.replace("\0", ""))
    text = "\n".join(lines)
    text.encode()
    assert not {"\r", "\0"} & set(text)
    assert text.count("\n") + bool(lines) == len(lines)
    assert len(text) <= len(raw)
    assert lines_of(f"{text}\n" if lines else "") == lines
    once = _REDACTOR.redact(text)
    assert once.text.count("\n") == text.count("\n")
    assert _REDACTOR.redact(once.text).text == once.text
    assert (once.text == text) == (not once.counts)


@pytest.mark.parametrize(
    ("text", "lines"),
    [
        ("", ()),
        ("\n", ("",)),
        ("\r\n", ("",)),
        ("a", ("a",)),
        ("a\n", ("a",)),
        ("a\n\n", ("a", "")),
        ("\na", ("", "a")),
        ("a\r\nb\rc\nd", ("a", "b", "c", "d")),
        ("a\r\n\r\nb", ("a", "", "b")),
        ("a\n\rb", ("a", "", "b")),
        ("a\r\rb\r", ("a", "", "b")),
        ("a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i", ("a\x0bb\x0cc\x1cd\x1de\x1ef\x85g\u2028h\u2029i",)),
    ],
)
def test_lines(text: str, lines: tuple[str, ...]) -> None:
    """Lines are those an editor numbers."""
    assert lines_of(text) == lines


def test_reads_a_note(workspace: Path) -> None:
    """A note comes with its lines, the hash of its bytes and its stamp."""
    raw = codecs.BOM_UTF8 + "# Tag\r\n日记\r\n".encode()
    file = workspace / "memory" / "a.md"
    file.write_bytes(raw)
    status = file.stat()
    reading = read_note("memory/a.md", [Workspace(workspace)], max_bytes=MAX_BYTES, now_ns=LATER_NS)
    assert reading.document == Document("memory/a.md", Kind.NOTE, ("# Tag", "日记"))
    assert reading.sha256 == hashlib.sha256(raw).digest()
    assert reading.stamp == Stamp.of(status)


def test_reads_from_every_root(workspace: Path) -> None:
    """Names of extra paths lead to their files."""
    (workspace / "MEMORY.md").write_text("curated")
    vault = workspace.parent / "vault"
    vault.mkdir()
    (vault / "a.md").write_text("in a tree")
    (workspace.parent / "todo.md").write_text("alone")
    roots: list[Root] = [Workspace(workspace), ExtraDirectory(vault), SingleFile(workspace.parent, "todo.md")]
    names = ("MEMORY.md", str(vault / "a.md"), str(workspace.parent / "todo.md"))
    readings = [read_note(name, roots, max_bytes=MAX_BYTES, now_ns=LATER_NS).document for name in names]
    assert [reading.lines for reading in readings] == [("curated",), ("in a tree",), ("alone",)]
    assert [reading.kind for reading in readings] == [Kind.CURATED, Kind.NOTE, Kind.NOTE]


@pytest.mark.parametrize(
    "name", ["memory/none.md", "README.md", "../secret.md", "memory/../../secret.md", "/etc/a.md", ""]
)
def test_missing(workspace: Path, name: str) -> None:
    """What is not there and what may not be read look the same."""
    (workspace / "README.md").touch()
    (workspace.parent / "secret.md").touch()
    with pytest.raises(FileMissing):
        read_note(name, [Workspace(workspace)], max_bytes=MAX_BYTES, now_ns=LATER_NS)


def test_refuses_a_symlink(workspace: Path) -> None:
    """A symlink is no note."""
    (workspace / "memory" / "a.md").symlink_to("/etc/hosts")
    with pytest.raises(OutsideFence):
        read_note("memory/a.md", [Workspace(workspace)], max_bytes=MAX_BYTES, now_ns=LATER_NS)


def test_too_large(workspace: Path) -> None:
    """A file of exactly the size that is allowed is read; one more byte is too much."""
    file = workspace / "memory" / "a.md"
    file.write_bytes(b"x" * 100)
    assert read_note("memory/a.md", [Workspace(workspace)], max_bytes=100, now_ns=LATER_NS).stamp.size == 100
    with pytest.raises(TooLarge):
        read_note("memory/a.md", [Workspace(workspace)], max_bytes=99, now_ns=LATER_NS)


@pytest.mark.parametrize(("code", "error"), [(errno.EIO, FileUnreadable), (errno.ENOMEM, ProcessExhausted)])
def test_a_disk_that_fails_while_a_note_is_read_is_told(
    workspace: Path, monkeypatch: pytest.MonkeyPatch, code: int, error: type[Exception]
) -> None:
    """As an error of the one file, with its path, or of the process."""
    (workspace / "memory" / "a.md").write_bytes(b"x" * 100)

    def failing(descriptor: int, most: int) -> bytes:
        raise OSError(code, os.strerror(code))

    monkeypatch.setattr(os, "read", failing)
    with pytest.raises(error, match=os.strerror(code)) as raised:
        read_note("memory/a.md", [Workspace(workspace)], max_bytes=100, now_ns=LATER_NS)
    assert error is ProcessExhausted or "memory/a.md" in str(raised.value)


@pytest.mark.parametrize("grown", [1, 4 << 20])
def test_growing_past_the_limit(workspace: Path, monkeypatch: pytest.MonkeyPatch, grown: int) -> None:
    """A file that grows after it was looked at, or with every byte that is read, is never taken beyond the limit."""
    file = workspace / "memory" / "a.md"
    file.write_bytes(b"x" * 100)
    read, given = os.read, 0

    def growing(descriptor: int, most: int) -> bytes:
        nonlocal given
        if given < 64 << 20:
            with file.open("ab") as log:
                log.write(b"x" * grown)
        piece = read(descriptor, most)
        given += len(piece)
        return piece

    monkeypatch.setattr(os, "read", growing)
    with pytest.raises(TooLarge):
        read_note("memory/a.md", [Workspace(workspace)], max_bytes=100, now_ns=LATER_NS)
    assert given <= shipped("memd.sources.notes._PIECE_BYTES")


@pytest.mark.parametrize(
    ("mtime_ns", "age_ns", "kept"),
    [
        (1_000_000_001, TICK_NS, False),
        (1_000_000_001, TICK_NS + 1, True),
        (1_000_000_001, -TICK_NS, False),
        (1_000_000_001, -COARSE_TICK_NS, False),
        (1_000_000_001, -COARSE_TICK_NS - 1, True),
        (1_000_000_001, -86_400_000_000_000, True),
        (5 * SECOND_NS, COARSE_TICK_NS, False),
        (5 * SECOND_NS, COARSE_TICK_NS + 1, True),
    ],
    ids=[
        "fresh",
        "old",
        "ahead",
        "written meanwhile",
        "far ahead",
        "a day ahead",
        "fresh in seconds",
        "old in seconds",
    ],
)
def test_settled(mtime_ns: int, age_ns: int, kept: bool) -> None:
    """A stamp counts only when the next write must change it: by the tick of the clock that stamps the file."""
    long_ago = 1 - 10**18
    for written_ns, changed_ns in ((mtime_ns, 0), (mtime_ns, mtime_ns), (long_ago, mtime_ns)):
        stamp = Stamp(size=1, mtime_ns=written_ns, inode=2, ctime_ns=changed_ns)
        assert (reliable_stamp(stamp, mtime_ns + age_ns) == stamp) is kept


def test_a_write_in_the_same_tick_is_not_missed(workspace: Path) -> None:
    """Of a file read in the moment it was written, no later stamp is equal."""
    file = workspace / "memory" / "a.md"
    file.write_text("old")
    written_ns = file.stat().st_mtime_ns
    reading = read_note("memory/a.md", [Workspace(workspace)], max_bytes=MAX_BYTES, now_ns=written_ns + 1)
    file.write_text("new")
    os.utime(file, ns=(written_ns, written_ns))
    status = file.stat()
    assert reading.stamp != Stamp.of(status)


def read_by_other_user(workspace: str) -> str:
    try:
        read_note("memory/a.md", [Workspace(Path(workspace))], max_bytes=MAX_BYTES, now_ns=LATER_NS)
    except SourceError as failure:
        return type(failure).__name__
    return "read"


def test_unreadable() -> None:
    """A file that the user may not read is there, but unreadable."""
    with shared_directory() as workspace:
        (workspace / "memory").mkdir()
        file = workspace / "memory" / "a.md"
        file.write_text("closed")
        assert as_other_user(__name__, read_by_other_user.__name__, str(workspace)) == "read"
        file.chmod(0)
        assert as_other_user(__name__, read_by_other_user.__name__, str(workspace)) == "FileUnreadable"


def test_what_is_secret_in_a_note_is_taken_out_by_its_lines(workspace: Path) -> None:
    """And counted by its kind; an empty note stays empty, and without redaction all is as it is."""
    key = "sk-proj-" + "Ab3" * 16
    note = workspace / "memory" / "a.md"
    note.write_text(f"one\nthe key is {key}\nthree\n")
    roots: list[Root] = [Workspace(workspace)]

    def read(redactor: Redactor | None) -> tuple[tuple[str, ...], dict[str, int]]:
        reading = read_note("memory/a.md", roots, max_bytes=MAX_BYTES, now_ns=LATER_NS, redactor=redactor)
        return tuple(reading.document.lines), dict(reading.tally)

    lines, tally = read(Redactor(Redact(mode="all")))
    assert (lines[0], len(lines), lines[2]) == ("one", 3, "three")
    assert key not in lines[1]
    assert sum(tally.values()) == 1
    assert all(kind.startswith("redacted.") for kind in tally)
    assert read(None) == (("one", f"the key is {key}", "three"), {})
    note.write_bytes(b"")
    assert read(Redactor(Redact(mode="all"))) == read(None) == ((), {})


def test_a_note_that_is_just_as_large_as_it_may_be_is_read(workspace: Path) -> None:
    """One more byte is too large."""
    note = workspace / "memory" / "a.md"
    for size in (10, 11):
        note.write_bytes(b"x" * size)
        if size > 10:
            with pytest.raises(TooLarge, match="larger than 10 bytes"):
                read_note("memory/a.md", [Workspace(workspace)], max_bytes=10, now_ns=LATER_NS)
        else:
            reading = read_note("memory/a.md", [Workspace(workspace)], max_bytes=10, now_ns=LATER_NS)
            assert list(reading.document.lines) == ["x" * 10]
