"""What holds for every file of the tests."""

import ast
from collections.abc import Iterator
from pathlib import Path

_TESTS = Path(__file__).parent
_RUNS_TESTS = _TESTS / "faults" / "fuzz.py"  # it takes tests as they are, to run them for longer


def _imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, and what it takes from them, as they might be modules too."""
    for node in ast.walk(ast.parse(file.read_text(encoding="utf-8"))):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom) and node.module is not None:
            yield node.module
            yield from (f"{node.module}.{alias.name}" for alias in node.names)


def test_nothing_is_imported_from_a_module_of_tests() -> None:
    """What several of them need has a module of its own, so that a test can be moved, and be run alone."""
    files = [file for file in _TESTS.rglob("*.py") if "__pycache__" not in file.parts]
    assert Path(__file__) in files
    modules = {
        ".".join(file.relative_to(_TESTS.parent).with_suffix("").parts)
        for file in files
        if file.name.startswith("test_")
    }
    assert "tests.test_conventions" in modules
    assert _RUNS_TESTS in files
    files.remove(_RUNS_TESTS)
    found = [f"{file}: {name}" for file in files for name in _imported(file) if name in modules]
    assert found == []
