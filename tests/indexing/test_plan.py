from pathlib import Path

import msgspec
import pytest

from memd.domain_types import FoundFile, Kind, Stamp
from memd.indexing.plan import EVENT_BYTES, GROUP_BYTES, GROUP_FILES, PassPlan, groups, plan
from memd.sources.scan_result import BlindReason, Scan
from memd.store.files import KnownFile
from memd.text.memory_paths import ExtraDirectory, Workspace, exclude_of

EXCLUDE = exclude_of(["private/"])
ROOTS = (Workspace(Path("/w"), EXCLUDE), ExtraDirectory(Path("/mnt/vault"), EXCLUDE))


def found(path: str, mtime_ns: int = 5, kind: Kind = Kind.NOTE) -> FoundFile:
    return FoundFile(path, f"/w/{path}", kind, Stamp(1, mtime_ns, 1))


def known(path: str, mtime_ns: int = 5, kind: Kind = Kind.NOTE) -> KnownFile:
    return KnownFile(path, kind, Stamp(1, mtime_ns, 1), b"h")


def made(
    index: list[KnownFile], disk: list[FoundFile], *, blind: tuple[str, ...] = (), force: bool = False
) -> PassPlan:
    scan = Scan(
        found={file.path: file for file in disk},
        skipped={},
        blind=dict.fromkeys(blind, BlindReason.ABSENT),
        mounts=frozenset(),
        looked=None,
    )
    return plan({file.path: file for file in index}, (), scan, ROOTS, force=force)


def test_reads_what_is_new_or_changed_and_removes_what_is_gone() -> None:
    """Stamps decide what is read; what the disk no longer has is removed."""
    work = made(
        [known("memory/same.md"), known("memory/changed.md"), known("memory/gone.md")],
        [found("memory/same.md"), found("memory/changed.md", 6), found("memory/new.md")],
    )
    assert {file.path for file in work.read} == {"memory/changed.md", "memory/new.md"}
    assert work.remove == ("memory/gone.md",)


def test_notes_and_transcripts_are_told_apart() -> None:
    """Each in their order, the newest first: notes are read before the oldest transcript."""
    talk = [found(f"sessions/a/{number}.jsonl", number, Kind.SESSION) for number in (7, 9, 8)]
    work = made([], [*talk, found("memory/a.md", 1), found("MEMORY.md", 0, Kind.CURATED)])
    assert [file.path for file in work.notes] == ["MEMORY.md", "memory/a.md"]
    assert [file.stamp.mtime_ns for file in work.sessions] == [9, 8, 7]
    assert {*work.notes, *work.sessions} == {*work.read}


def test_force_reads_everything() -> None:
    """With force, no stamp keeps a file from being read."""
    work = made([known("memory/same.md")], [found("memory/same.md")], force=True)
    assert [file.path for file in work.read] == ["memory/same.md"]


def test_what_is_told_to_have_changed_is_read() -> None:
    """A file that was marked is read though its stamp is the same: it can be set back."""
    same = [found("memory/same.md"), found("memory/other.md")]
    scan = Scan({file.path: file for file in same}, {}, {}, frozenset(), frozenset({"memory"}))
    index = {file.path: known(file.path) for file in same}
    work = plan(index, (), scan, ROOTS, marked=frozenset({same[0].file, Path("/w/memory")}), force=False)
    assert work == PassPlan((same[0],), (), {})


def test_memory_md_comes_first_then_the_newest() -> None:
    """What an agent asks for most is searchable first."""
    work = made(
        [], [found("memory/old.md", 1), found("MEMORY.md", 0, Kind.CURATED), found("memory/new.md", 9)]
    )
    assert [file.path for file in work.read] == ["MEMORY.md", "memory/new.md", "memory/old.md"]


@pytest.mark.parametrize("blind", [("memory",), ("",)])
def test_where_the_scan_was_blind_nothing_is_removed(blind: tuple[str, ...]) -> None:
    """A directory that could not be looked into keeps its files in the index."""
    work = made([known("memory/a.md")], [found("MEMORY.md")], blind=blind)
    assert work.remove == ()


def test_what_cannot_be_looked_at_is_kept_and_told() -> None:
    """A workspace that is not there deletes nothing, one that is empty deletes everything; by force both do."""
    assert made([known("memory/a.md")], []).remove == ("memory/a.md",)
    away = made([known("memory/a.md")], [], blind=("",))
    assert (away.remove, dict(away.kept)) == ((), {"memory/a.md": BlindReason.ABSENT})
    assert made([known("memory/a.md")], [], blind=("",), force=True).remove == ("memory/a.md",)


@pytest.mark.parametrize(
    ("sizes", "lengths"),
    [
        ([], []),
        ([5], [1]),
        ([1] * (2 * GROUP_FILES + 1), [GROUP_FILES, GROUP_FILES, 1]),
        ([GROUP_BYTES + 1, 1, 1], [1, 2]),
        ([1, GROUP_BYTES, 1], [1, 1, 1]),
        ([GROUP_BYTES, GROUP_BYTES - 1, 1, 1], [1, 2, 1]),
        ([GROUP_BYTES // 2, GROUP_BYTES // 2, 1], [2, 1]),
    ],
)
def test_files_are_taken_in_by_groups(sizes: list[int], lengths: list[int]) -> None:
    """In the same order, so many and so many bytes at once; a larger file alone."""
    files = [
        msgspec.structs.replace(found(f"memory/{n}.md"), stamp=Stamp(size, 1, n))
        for n, size in enumerate(sizes)
    ]
    made = list(groups(files))
    assert [len(group) for group in made] == lengths
    assert [file for group in made for file in group] == files


def test_sessions_in_a_database_are_taken_in_by_their_events() -> None:
    """Their size is told in events; one with many is taken in alone."""
    most = GROUP_BYTES // EVENT_BYTES
    sizes = [most // 2, most // 2, 1, 2 * most, 1]
    read = [
        FoundFile(f"sessions/openclaw/{n}.jsonl", "/db", Kind.SESSION, Stamp(size, 5, 1), str(n))
        for n, size in enumerate(sizes)
    ]
    assert [len(group) for group in groups(read)] == [2, 1, 1, 1]


def test_a_session_in_a_database_is_read_by_its_stamp_alone() -> None:
    """The database is marked whenever anything is written to it, and a session's stamp is made of what it holds."""
    file = Path("/db")
    one = FoundFile("sessions/openclaw/a.jsonl", str(file), Kind.SESSION, Stamp(3, 5, 1), "a")
    seen = Scan(
        found={one.path: one},
        skipped={},
        blind={},
        mounts=frozenset(),
        looked=frozenset({"sessions/openclaw"}),
    )
    held = KnownFile(one.path, Kind.SESSION, one.stamp, b"hash")
    assert plan({one.path: held}, (), seen, ROOTS, marked={file}, force=False).read == ()
    moved = msgspec.structs.replace(held, stamp=Stamp(3, 5, 2))
    assert plan({one.path: moved}, (), seen, ROOTS, marked={file}, force=False).read == (one,)


def test_a_root_that_is_missing_keeps_no_note_that_is_excluded_now() -> None:
    """Nor one of a kind that it does not admit; transcripts do not tell by their names."""
    stays = ["/mnt/vault/a.md", "MEMORY.md", "memory/a.md", "sessions/chats/a.jsonl"]
    goes = ["/mnt/vault/private/a.md", "a.md", "memory/private/a.md"]
    work = made([known(path) for path in (*stays, *goes)], [], blind=("", "/mnt/vault", "sessions/chats"))
    assert sorted(work.kept) == stays
    assert list(work.remove) == goes
