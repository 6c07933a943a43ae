"""Compiles what tests import, each worker its share, so that not each of them compiles everything in a new clone.

Modules of tests are left to pytest, which rewrites their `assert`s, and has no public function for that.
"""

import importlib.util
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("memd", "client/memd_client", "tests")


def sources(root: Path = _ROOT) -> Iterator[Path]:
    """Yield every module of the project that tests may import and pytest leaves as it is, in the same order for all workers."""
    for package in _PACKAGES:
        yield from (file for file in sorted((root / package).rglob("*.py")) if not _is_rewritten(file))


def compile_share(number: int, workers: int, root: Path = _ROOT) -> int:
    """Compile every file of one share that has no bytecode yet.

    A file that was changed since it was compiled is compiled by whoever imports it, as always.

    Args:
        number: Of the share, from 0.
        workers: How many shares there are.
        root: The directory of the project.

    Returns:
        How many files were compiled.
    """
    if sys.dont_write_bytecode:
        return 0
    missing = [file for file in list(sources(root))[number::workers] if not bytecode_of(file).exists()]
    for file in missing:
        _compile(file)
    return len(missing)


def bytecode_of(file: Path) -> Path:
    """Return where Python keeps the bytecode of a module."""
    return Path(importlib.util.cache_from_source(str(file)))


def _is_rewritten(file: Path) -> bool:
    return file.name.startswith("test_") or file.name == "conftest.py"


def _compile(file: Path) -> None:
    """Compile one file; what cannot be compiled, or written, is told by its import."""
    try:
        py_compile.compile(str(file), doraise=True, quiet=2)
    except (OSError, SyntaxError, ValueError, py_compile.PyCompileError):
        return
