import os
from pathlib import Path

from memd.indexing.changes.recent_files import NEWEST, RecentFiles
from memd.model import FoundFile, Kind, Stamp
from memd.text.memory_paths import ExtraDirectory, Workspace


def found(file: Path) -> FoundFile:
    status = file.stat()
    return FoundFile(file.name, file, Kind.NOTE, Stamp.of(status))


def after_a_pass(glance: RecentFiles, *files: Path, within: frozenset[Path] | None = None) -> None:
    """A pass over everything, or some paths, that met these files."""
    before = glance.look()
    glance.remember([found(file) for file in files], before, within)


def test_sees_an_edit_a_new_note_and_a_new_memory_md(tmp_path: Path) -> None:
    """What an agent writes shows at once: an edited note, a new one, and a MEMORY.md that was not there."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, note)
    assert glance.changed() == []
    note.write_text("one two")
    assert glance.changed() == [note]
    after_a_pass(glance, note)
    (memory / "b.md").write_text("new")
    assert glance.changed() == [memory / "b.md"]
    after_a_pass(glance)
    (tmp_path / "MEMORY.md").write_text("- fact")
    assert glance.changed() == [tmp_path / "MEMORY.md"]


def test_other_files_of_a_workspace_are_none_of_its_business(tmp_path: Path) -> None:
    """What an agent does beside its memory makes no search slower."""
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    (tmp_path / "main.py").write_text("print()")
    assert glance.changed() == []


def test_looks_at_the_newest_of_many(tmp_path: Path) -> None:
    """Of thousands of notes only the newest are looked at, and a deleted one of them shows."""
    files = [tmp_path / f"{number}.md" for number in range(NEWEST + 10)]
    for number, file in enumerate(files):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    glance = RecentFiles([ExtraDirectory(tmp_path)])
    after_a_pass(glance, *files)
    assert glance.changed() == []
    files[0].write_text("an old one that changed")
    assert glance.changed() == []
    files[-1].unlink()
    assert set(glance.changed()) == {files[-1]}


def test_what_is_written_during_a_pass_shows_after_it(tmp_path: Path) -> None:
    """A pass that read a note before it was written, or listed a directory before a note came, hides neither."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, note)
    before, met = glance.look(), found(note)
    note.write_text("one two")
    (memory / "b.md").write_text("new")
    glance.remember([met], before, None)
    assert set(glance.changed()) == {note, memory / "b.md"}


def test_a_pass_over_one_file_hides_no_other(tmp_path: Path) -> None:
    """What a pass was not about looks as it did before."""
    memory = tmp_path / "memory"
    memory.mkdir()
    one, other = memory / "a.md", memory / "b.md"
    for note in (one, other):
        note.write_text("one")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, one, other)
    for note in (one, other):
        note.write_text("one two")
    after_a_pass(glance, one, within=frozenset({one}))
    assert glance.changed() == [other]


def test_a_directory_tells_what_came_went_or_was_replaced(tmp_path: Path) -> None:
    """Of a directory that changed, only the entries that are others now are looked at; no file that is no note."""
    memory = tmp_path / "memory"
    (memory / "sub").mkdir(parents=True)
    old = [memory / f"{number}.md" for number in range(3)]
    for number, file in enumerate(old):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    newest = [memory / "new" / f"{number}.md" for number in range(NEWEST)]
    newest[0].parent.mkdir()
    for file in newest:
        file.write_text("x")
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance, *old, *newest)
    (memory / "picture.png").write_text("x")
    assert glance.changed() == []
    old[0].unlink()
    (memory / "aside").write_text("replaced in one step, as editors do")
    (memory / "aside").rename(old[1])
    (memory / "sub").rename(memory / "moved")
    assert set(glance.changed()) == {old[0], old[1], memory / "sub", memory / "moved"}
    after_a_pass(glance, within=frozenset({old[0], old[1]}))
    assert memory / "moved" in glance.changed()
    after_a_pass(glance, within=frozenset({memory / "sub", memory / "moved", old[0], old[1]}))
    assert glance.changed() == []


def test_a_change_that_leaves_no_trace_has_the_directory_looked_at(tmp_path: Path) -> None:
    """Where a directory changed and its entries did not, a note may have come again under its old number."""
    memory = tmp_path / "memory"
    memory.mkdir()
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    os.utime(memory, ns=(1, 1))
    assert glance.changed() == [memory]
    after_a_pass(glance, within=frozenset({memory}))
    assert glance.changed() == []


def test_what_is_not_the_same_directory_is_looked_at_with_all_below(tmp_path: Path) -> None:
    """A directory that went, or was replaced by another, is looked at itself."""
    memory = tmp_path / "memory"
    memory.mkdir()
    glance = RecentFiles([Workspace(tmp_path)])
    after_a_pass(glance)
    memory.rename(tmp_path / "old")
    assert glance.changed() == [memory]
    memory.mkdir()
    (memory / "a.md").write_text("x")
    assert glance.changed() == [memory]


def test_a_clock_that_was_ahead_hides_nothing(tmp_path: Path) -> None:
    """However many notes are dated in the future, the newest of those written in truth are looked at."""
    now_ns = 1_700_000_000 * 10**9
    files = [tmp_path / f"{number}.md" for number in range(NEWEST + 10)]
    for number, file in enumerate(files):
        file.write_text("x")
        ahead = 0 if number == 0 else 86400 * 10**9
        os.utime(file, ns=(now_ns, now_ns + ahead))
    glance = RecentFiles([ExtraDirectory(tmp_path)], lambda: now_ns)
    after_a_pass(glance, *files)
    files[0].write_text("changed")
    assert glance.changed() == [files[0]]


def test_what_is_deleted_makes_room(tmp_path: Path) -> None:
    """When the newest notes are deleted, others are looked at in their place."""
    files = [tmp_path / f"{number}.md" for number in range(2 * NEWEST)]
    for number, file in enumerate(files):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    glance = RecentFiles([ExtraDirectory(tmp_path)])
    after_a_pass(glance, *files)
    for file in files[NEWEST:]:
        file.unlink()
    after_a_pass(glance, *files[:NEWEST])
    files[0].write_text("changed")
    assert glance.changed() == [files[0]]
