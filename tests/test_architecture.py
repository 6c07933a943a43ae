"""memd/ARCHITECTURE.md and memd/DECISIONS.md name what there is, and nothing else."""

import re
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PAGE = (_ROOT / "memd" / "ARCHITECTURE.md").read_text(encoding="utf-8")
_DECISIONS = (_ROOT / "memd" / "DECISIONS.md").read_text(encoding="utf-8")


def test_the_map_has_each_package_once() -> None:
    """Packages and modules directly below memd/, and no others."""
    table = _PAGE.partition("\n## The map\n")[2].partition("\n## ")[0]
    mapped = re.findall(r"^\| `(\w+)` \|", table, re.MULTILINE)
    there = {
        entry.stem
        for entry in (_ROOT / "memd").iterdir()
        if entry.suffix == ".py" or (entry / "__init__.py").is_file()
    } - {"__init__"}
    assert len(mapped) == len(set(mapped))
    assert set(mapped) == there


def test_each_path_that_is_named_exists() -> None:
    """Files and folders, below memd/ or below the repository; a folder ends with a slash."""
    named = re.findall(r"`([\w/.]+/(?:[\w.]+\.\w+)?)`", f"{_PAGE}{_DECISIONS}")
    assert len(named) > 100
    gone = [name for name in named if not any((folder / name).exists() for folder in (_ROOT / "memd", _ROOT))]
    assert gone == []


def test_a_newcomer_can_read_it_at_once() -> None:
    """Decisions and what was measured have a page of their own."""
    assert len(_PAGE.splitlines()) <= 150
