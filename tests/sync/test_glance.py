from pathlib import Path

from memd.model import FoundFile, Kind, Stamp
from memd.paths import Tree, Workspace
from memd.sync.glance import NEWEST, Glance


def found(file: Path) -> FoundFile:
    status = file.stat()
    return FoundFile(file.name, file, Kind.NOTE, Stamp(status.st_size, status.st_mtime_ns, status.st_ino))


def test_sees_an_edit_a_new_note_and_a_new_memory_md(tmp_path: Path) -> None:
    """What an agent writes shows at once: an edited note, a new one, and a MEMORY.md that was not there."""
    memory = tmp_path / "memory"
    memory.mkdir()
    note = memory / "a.md"
    note.write_text("one")
    glance = Glance([Workspace(tmp_path)])
    glance.remember([found(note)])
    assert glance.changed() == []
    note.write_text("one two")
    assert glance.changed() == [note]
    glance.remember([found(note)])
    (memory / "b.md").write_text("new")
    assert glance.changed() == [memory]
    glance.remember([])
    (tmp_path / "MEMORY.md").write_text("- fact")
    assert glance.changed() == [tmp_path / "MEMORY.md"]


def test_other_files_of_a_workspace_are_none_of_its_business(tmp_path: Path) -> None:
    """What an agent does beside its memory makes no search slower."""
    glance = Glance([Workspace(tmp_path)])
    glance.remember([])
    (tmp_path / "main.py").write_text("print()")
    assert glance.changed() == []


def test_looks_at_the_newest_of_many(tmp_path: Path) -> None:
    """Of thousands of notes only the newest are looked at, and a deleted one of them shows."""
    files = []
    for number in range(NEWEST + 10):
        file = tmp_path / f"{number}.md"
        file.write_text("x")
        files.append(FoundFile(file.name, file, Kind.NOTE, Stamp(1, number, 1)))
    glance = Glance([Tree(tmp_path)])
    glance.remember(files)
    files[0].file.write_text("an old one that changed")
    assert glance.changed() == []
    files[-1].file.unlink()
    assert set(glance.changed()) == {files[-1].file, tmp_path}
