"""Compiles what tests import, each worker its share, so that not each of them compiles everything in a new clone.

To compile memd, its client and the tests, whose `assert`s pytest rewrites, takes 15 to 25 s of the processor.
"""

import importlib.util
import py_compile
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest
from _pytest.assertion.rewrite import (
    PYC_TAIL,
    _rewrite_test,
    _write_pyc,
    assertstate_key,
    get_cache_dir,
    try_makedirs,
)

_ROOT = Path(__file__).parents[1]
_PACKAGES = ("memd", "client/memd_client", "tests")


def sources(root: Path = _ROOT) -> Iterator[Path]:
    """Yield every module of the project that tests may import, in an order that is the same for all workers."""
    for package in _PACKAGES:
        yield from sorted((root / package).rglob("*.py"))


def compile_share(config: pytest.Config, number: int, workers: int, root: Path = _ROOT) -> int:
    """Compile every file of one share that has no bytecode yet.

    A file that was changed since it was compiled is compiled by whoever imports it, as always.

    Args:
        config: Of this run; its settings tell how asserts are rewritten.
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
        _compile(file, config)
    return len(missing)


def bytecode_of(file: Path) -> Path:
    """Return where the bytecode of a module lies: that of tests beside the usual place."""
    if _is_rewritten(file):
        return Path(get_cache_dir(file) / f"{file.stem}{PYC_TAIL}")
    return Path(importlib.util.cache_from_source(str(file)))


def _is_rewritten(file: Path) -> bool:
    """Whether pytest rewrites the asserts of a module: those of other modules stay as they are."""
    return file.name.startswith("test_") or file.name == "conftest.py"


def _compile(file: Path, config: pytest.Config) -> None:
    """Compile one file; what cannot be compiled, or written, is told by its import."""
    try:
        if _is_rewritten(file):
            if try_makedirs(bytecode_of(file).parent):
                source_hash, code = _rewrite_test(file, config)
                _write_pyc(config.stash[assertstate_key], code, source_hash, bytecode_of(file))
        else:
            py_compile.compile(str(file), doraise=True, quiet=2)
    except (OSError, SyntaxError, ValueError, py_compile.PyCompileError):
        return
