"""The notes of the demo."""

from datetime import date
from pathlib import Path

import pytest

from memd.ctl.demo.workspace import notes, write
from memd.text.tokens import is_mostly_cjk

_TODAY = date(2026, 3, 2)


def test_daily_notes_are_of_the_last_days() -> None:
    """Each says its own day, across the end of a month."""
    paths = dict(notes(_TODAY))
    assert list(paths) == [
        "MEMORY.md",
        "USER.md",
        "memory/2026-03-02.md",
        "memory/2026-03-01.md",
        "memory/2026-02-28.md",
        "memory/2026-02-26.md",
        "memory/2026-02-24.md",
        "memory/2026-02-21.md",
    ]
    for path, text in paths.items():
        assert "{" not in text
        if path.startswith("memory/"):
            assert text.startswith(f"# {path[7:-3]}\n")


def test_about_half_of_the_lines_are_chinese() -> None:
    """A line in each language for one in the other, more or less."""
    lines = [line for _, text in notes(_TODAY) for line in text.splitlines() if line.startswith("- ")]
    chinese = sum(map(is_mostly_cjk, lines))
    assert 0.35 < chinese / len(lines) < 0.65


@pytest.mark.parametrize("directory", ["workspace", "deep/workspace"])
def test_they_are_written_as_they_are(tmp_path: Path, directory: str) -> None:
    """And counted."""
    assert write(tmp_path / directory, _TODAY) == len(list((tmp_path / directory).rglob("*.md"))) == 8
    for path, text in notes(_TODAY):
        assert (tmp_path / directory / path).read_text(encoding="utf-8") == text
