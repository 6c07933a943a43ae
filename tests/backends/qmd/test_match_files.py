from pathlib import Path

import pytest

from memd.backends.qmd.collections import NOTES, WantedCollection
from memd.backends.qmd.manifest import ManifestEntry as Exported
from memd.backends.qmd.match_files import by_likeness, directly
from memd.backends.qmd.parse import QmdEntry
from memd.model import Kind, Stamp
from memd.store.files import KnownFile
from memd.text.memory_paths import ExtraDirectory, Root, Workspace

BASE = Path("/state/main.qmd")
ROOTS: tuple[Root, ...] = (Workspace(Path("/w")), ExtraDirectory(Path("/x")))
COLLECTIONS = {
    "notes": WantedCollection("notes", Path("/w/memory"), "**/*.md", NOTES),
    "extra": WantedCollection("extra", Path("/x"), "**/*.md", NOTES),
    "sessions": WantedCollection(
        "sessions", BASE / "sessions", "**/*.md", frozenset({Kind.SESSION}), exported=True
    ),
}


def entry(collection: str | None, file: str | None, docid: str | None = None) -> QmdEntry:
    return QmdEntry(score=1, collection=collection, file=file, docid=docid)


def made_of(file: Path) -> str | None:
    return "sessions/s/1.jsonl" if file == BASE / "sessions/s/1.md" else None


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (entry("notes", "a/My Note.md"), "memory/a/My Note.md"),
        (entry("notes", "/a.md"), "memory/a.md"),
        (
            entry("notes", "cafe\u0301.md"),
            "memory/caf\u00e9.md",
        ),  # as a disk spells it, and as the index does
        (entry("extra", "b.md"), "/x/b.md"),
        (entry(None, "/x/b.md"), "/x/b.md"),
        (entry("sessions", "s/1.md"), "sessions/s/1.jsonl"),
        (entry("sessions", "s/theirs.md"), None),
        (entry("notes", "../MEMORY.md"), None),
        (entry("notes", "a/../../secret.md"), None),
        (entry("notes", ".hidden/a.md"), None),
        (entry("notes", "a.txt"), None),
        (entry("theirs", "a.md"), None),
        (entry(None, "a.md"), None),
        (entry(None, "/etc/passwd"), None),
        (entry("notes", None, "abc123"), None),
    ],
)
def test_a_result_is_one_of_the_agents_files_or_none(given: QmdEntry, name: str | None) -> None:
    """By where it is; nothing outside the roots has a name."""
    assert directly(given, COLLECTIONS, ROOTS, made_of) == name


def known(path: str, kind: Kind = Kind.NOTE, digest: bytes = b"\xab\xc1\x23") -> KnownFile:
    return KnownFile(path, kind, Stamp(1, 1, 1), digest + bytes(29))


@pytest.mark.parametrize(
    ("given", "name"),
    [
        (entry("notes", "my-note-v2.md"), "memory/My Note (v2).md"),
        (entry("notes", "会议-记录.md"), "memory/会议 记录.md"),
        (entry("notes", "twin.md"), None),  # two files may be meant
        (entry("notes", "twin.md", "ffff"), "memory/Twin!.md"),
        (entry("extra", "my-note-v2.md"), None),
        (entry(None, None, "eeee"), "memory/会议 记录.md"),
        (entry(None, None, "abc1"), None),
        (entry("sessions", "s/a-session.md"), "sessions/s/a session.jsonl"),
        (entry(None, None, "5e55"), "sessions/s/a session.jsonl"),
    ],
)
def test_names_that_qmd_has_changed_are_known_again(given: QmdEntry, name: str | None) -> None:
    """If one file alone can be meant; the hash of its content may tell which."""
    files = [
        known("memory/My Note (v2).md"),
        known("memory/会议 记录.md", digest=b"\xee\xee\x00"),
        known("memory/twin.md"),
        known("memory/Twin!.md", digest=b"\xff\xff\x00"),
        known("sessions/s/a session.jsonl", Kind.SESSION),
    ]
    exported = {"sessions/s/a session.jsonl": Exported("sessions/s/A-Session.md", "1", 3, "5e55ab")}
    assert by_likeness(COLLECTIONS, ROOTS, files, exported, BASE)(given) == name
