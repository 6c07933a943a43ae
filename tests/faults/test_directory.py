from pathlib import Path
from random import Random

import pytest

from tests.faults.directory import after, carry_out, draw, is_note, on_disk


@pytest.mark.parametrize("seed", range(6))
def test_the_model_says_what_is_on_the_disk(tmp_path: Path, seed: int) -> None:
    """After any changes, the disk holds what the model does."""
    rng = Random(seed)
    files: dict[str, bytes] = {}
    for _ in range(60):
        change = draw(rng, files)
        carry_out(change, tmp_path)
        files = after(files, change)
        assert on_disk(tmp_path) == files


def test_the_same_seed_draws_the_same_changes() -> None:
    """A run can be repeated from its seed."""
    one, other = Random(5), Random(5)
    files: dict[str, bytes] = {}
    for _ in range(100):
        change = draw(one, files)
        assert draw(other, files) == change
        files = after(files, change)


def test_every_kind_of_change_is_drawn() -> None:
    """Edits, touches, moves and removals of files and directories all happen."""
    rng = Random(1)
    files: dict[str, bytes] = {}
    seen = set()
    for _ in range(400):
        change = draw(rng, files)
        seen.add((type(change).__name__, change.path in files))
        files = after(files, change)
    of_files = {"Write", "Replace", "Append", "Insert", "Truncate", "Touch", "Move", "Remove"}
    assert seen >= {(name, True) for name in of_files} | {
        ("Write", False),
        ("Move", False),
        ("Remove", False),
    }


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("MEMORY.md", True),
        ("memory/a/b/Zürich notes.MD", True),
        ("memory/list.txt", False),
        ("memory/.hidden/0.md", False),
        ("memory/.draft.md", False),
        ("other.md", False),
    ],
)
def test_notes_are_told_from_other_files(path: str, *, expected: bool) -> None:
    """Markdown below memory is memory, but for what is hidden; so are the curated files."""
    assert is_note(path) is expected
