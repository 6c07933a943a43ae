"""What holds for every file of the tests."""

import ast
import re
from collections.abc import Iterator
from functools import cache
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

import memd.store

_TESTS = Path(__file__).parent
_RUNS_TESTS = _TESTS / "faults" / "fuzz.py"  # it takes tests as they are, to run them for longer
# What can have a finding at all: to parse every file takes five seconds.
_IMPORT = re.compile(r"^[ \t]*(?:from|import)\b(?:[^\n(]|\([^)]*\))*$", re.MULTILINE)
_LONG_STRING = re.compile(
    r"""(?:[=(,\[{]|return)\s*[a-zA-Z]{0,2}(?:\"{3}|'{3})"""
)  # a program, which may import, too
_NAME = re.compile(r"\bmemd(?:_client)?(?:\.[A-Za-z_]\w*)+")


@cache
def _text(file: Path) -> str:
    return file.read_text(encoding="utf-8")


def _imported(file: Path) -> Iterator[str]:
    """The modules that a file imports, and what it takes from them, as they might be modules too."""
    if not any("test_" in statement for statement in _IMPORT.findall(_text(file))):
        return
    for node in ast.walk(ast.parse(_text(file))):
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
    assert modules & set(_imported(_RUNS_TESTS)), "imports of tests are not found any more"
    found = [f"{file}: {name}" for file in files for name in _imported(file) if name in modules]
    assert found == []


def _named(file: Path) -> Iterator[str]:
    """The modules of memd, and what is in them, that strings of a file name: programs, and what is replaced for a test."""
    text = _text(file)
    if not _LONG_STRING.search(text) and not _NAME.search(_IMPORT.sub("", text)):
        return
    for node in ast.walk(ast.parse(text)):
        if isinstance(node, ast.Constant) and isinstance(node.value, str):
            yield from _NAME.findall(node.value)


def _is_there(name: str) -> bool:
    """Whether a dotted name is a module, or something in one. That of no package may be a file, such as memd.lock."""
    package, first, *others = name.split(".")
    if find_spec(f"{package}.{first}") is None:
        return True
    found = import_module(f"{package}.{first}")
    for other in others:
        if not hasattr(found, other):
            try:
                import_module(f"{found.__name__}.{other}")
            except (ImportError, AttributeError):
                return False
        found = getattr(found, other)
    return True


def test_what_strings_name_of_memd_is_there() -> None:
    """No type checker looks into them: what was renamed since would be replaced, or not be loaded, for nothing."""
    assert _is_there("memd.store.index.Index.open")
    assert not _is_there(f"{memd.store.__name__}.no_such_module")
    named = {(name, file) for file in _TESTS.rglob("*.py") for name in _named(file)}
    assert len(named) > 100
    assert sorted({f"{file}: {name}" for name, file in named if not _is_there(name)}) == []
