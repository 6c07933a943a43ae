import os
from pathlib import Path

from memd.model import FoundFile, Kind, Stamp
from memd.paths import Tree, Workspace
from memd.sync.glance import NEWEST, Glance


def found(file: Path) -> FoundFile:
    status = file.stat()
    return FoundFile(file.name, file, Kind.NOTE, Stamp(status.st_size, status.st_mtime_ns, status.st_ino))


def after_a_pass(glance: Glance, *files: Path, within: frozenset[Path] | None = None) -> None:
    """A pass over everything, or some paths, that met these files."""
    before = glance.look()
    glance.remember([found(file) for file in files], before, within)


def test_sees_an_edit_a_new_note_and_a_new_memory_md(tmp_path: Path) -> None:
    """What an agent writes shows at once: an edited note, a new one, and a MEMORY.md that was not there."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = Glance([Workspace(tmp_path)])
    after_a_pass(glance, note)
    assert glance.changed() == []
    note.write_text("one two")
    assert glance.changed() == [note]
    after_a_pass(glance, note)
    (memory / "b.md").write_text("new")
    assert glance.changed() == [memory]
    after_a_pass(glance)
    (tmp_path / "MEMORY.md").write_text("- fact")
    assert glance.changed() == [tmp_path / "MEMORY.md"]


def test_other_files_of_a_workspace_are_none_of_its_business(tmp_path: Path) -> None:
    """What an agent does beside its memory makes no search slower."""
    glance = Glance([Workspace(tmp_path)])
    after_a_pass(glance)
    (tmp_path / "main.py").write_text("print()")
    assert glance.changed() == []


def test_looks_at_the_newest_of_many(tmp_path: Path) -> None:
    """Of thousands of notes only the newest are looked at, and a deleted one of them shows."""
    files = [tmp_path / f"{number}.md" for number in range(NEWEST + 10)]
    for number, file in enumerate(files):
        file.write_text("x")
        os.utime(file, ns=(number, number))
    glance = Glance([Tree(tmp_path)])
    after_a_pass(glance, *files)
    assert glance.changed() == []
    files[0].write_text("an old one that changed")
    assert glance.changed() == []
    files[-1].unlink()
    assert set(glance.changed()) == {files[-1], tmp_path}


def test_what_is_written_during_a_pass_shows_after_it(tmp_path: Path) -> None:
    """A pass that read a note before it was written, or listed a directory before a note came, hides neither."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = Glance([Workspace(tmp_path)])
    after_a_pass(glance, note)
    before, met = glance.look(), found(note)
    note.write_text("one two")
    (memory / "b.md").write_text("new")
    glance.remember([met], before, None)
    assert set(glance.changed()) == {note, memory}


def test_a_pass_over_one_file_hides_no_other(tmp_path: Path) -> None:
    """What a pass was not about looks as it did before."""
    memory = tmp_path / "memory"
    memory.mkdir()
    one, other = memory / "a.md", memory / "b.md"
    for note in (one, other):
        note.write_text("one")
    glance = Glance([Workspace(tmp_path)])
    after_a_pass(glance, one, other)
    for note in (one, other):
        note.write_text("one two")
    after_a_pass(glance, one, within=frozenset({one}))
    assert glance.changed() == [other]
