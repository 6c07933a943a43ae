"""Which tests execute which lines, and how long each test takes: so that a fault is tried with the right tests first.

This module is also the plugin of pytest that records it (with RECORD in the environment).
"""

import ast
import json
import os
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

RECORD = "MEMD_MUTANTS_RECORD"  # a file that coverage writes; beside it the seconds of each test
_IMPORT = ""  # what is executed before the first test
_BETWEEN = "-"  # what threads that tests have left execute after them


class Executing(msgspec.Struct, frozen=True):
    """Which tests are to be run for a line."""

    tests: Sequence[
        str
    ]  # those that execute it, the shortest first; after them, those that execute others of its file
    are_all: bool  # else an import or another process may execute it
    at_import: bool  # it is executed while modules are loaded: what it computed then stays


class Recording:
    """What was recorded of the tests in one copy of the checkout."""

    def __init__(self, file: Path, root: Path) -> None:
        from coverage import CoverageData  # noqa: PLC0415 - only who tries faults needs it

        self._root = root
        self._data = CoverageData(str(file))
        self._data.read()
        self.seconds: Mapping[str, float]  # of each test that passed
        self.failed: Sequence[str]
        self.seconds, self.failed = json.loads(_seconds(file).read_text("utf-8"))
        self._by_time = sorted(self.seconds, key=lambda test: self.seconds[test])
        self._contexts = cache(self._read)

    def executing(self, file: str, source: str, line: int) -> Executing:
        """The tests that execute the statement of a line.

        Of what is executed while modules are loaded, those that execute any line of the file are the first of all.
        What is computed once and kept is laid to the first test that asked for it. And what a coroutine executes after it
        caught an exception, coverage does not see in Python 3.11: so the other tests of the file follow in any case.
        """
        contexts = self._contexts(str(self._root / file))
        lines = _executed_with(ast.parse(source), line)
        found = {context for one in lines or () for context in contexts.get(one, ())}
        at_import = lines is None or _IMPORT in found
        first = [] if at_import else self._of(found)
        then = self._of({context for every in contexts.values() for context in every} - found)
        tests = list(dict.fromkeys([*first, *then]))
        return Executing(tests, bool(first), at_import)

    def _of(self, contexts: Collection[str]) -> list[str]:
        """The tests of some contexts, the shortest first."""
        return [test for test in self._by_time if test in contexts or test.partition("::")[0] in contexts]

    def others(self, tests: Collection[str]) -> list[str]:
        """All tests but these, the shortest first."""
        known = frozenset(tests)
        return [test for test in self._by_time if test not in known]

    def _read(self, file: str) -> Mapping[int, Sequence[str]]:
        contexts: Mapping[int, Sequence[str]] = self._data.contexts_by_lineno(file)
        return contexts


def _executed_with(tree: ast.AST, line: int) -> range | None:
    """The lines of the innermost statement around a line, without its block; None outside of functions."""
    found: range | None = None
    inside = False
    nodes = [(tree, False)]
    while nodes:
        node, in_function = nodes.pop()
        if isinstance(node, ast.stmt) and node.lineno <= line <= (node.end_lineno or 0):
            body: list[ast.stmt] = getattr(node, "body", [])
            last = node.end_lineno or 0
            if body and line < body[0].lineno:
                last = max(node.lineno, body[0].lineno - 1)
            found, inside = range(node.lineno, last + 1), in_function
        in_function = in_function or isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef)
        nodes.extend(
            (child, in_function)
            for child in ast.iter_child_nodes(node)
            if getattr(child, "lineno", line) <= line <= getattr(child, "end_lineno", line)
        )
    return found if inside else None


class _Recorder:
    def __init__(self, file: Path) -> None:
        from coverage import Coverage  # noqa: PLC0415 - as above

        self._file = file
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._test = ""
        self._coverage = Coverage(str(file), source=["memd", "memd_client"], config_file=False)
        # Some tests need nothing of the client; a warning would be an error.
        self._coverage.set_option("run:disable_warnings", ["module-not-imported"])
        self._coverage.start()

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = item.nodeid
        self._coverage.switch_context(self._test)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.monotonic() - began
            self._coverage.switch_context(_BETWEEN)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """What is made for many tests is laid to all of their file."""
        if fixturedef.scope == "function":
            return (yield)
        self._coverage.switch_context(self._test.partition("::")[0])
        try:
            return (yield)
        finally:
            self._coverage.switch_context(self._test)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        passed = {test: took for test, took in self._seconds.items() if test not in self._failed}
        _seconds(self._file).write_text(json.dumps([passed, sorted(self._failed)]), "utf-8")


def _seconds(file: Path) -> Path:
    return file.with_suffix(".seconds.json")


def pytest_configure(config: pytest.Config) -> None:
    """Record, if the environment says so."""
    # Tests that run pytest themselves do not record again.
    if file := os.environ.pop(RECORD, None):
        config.pluginmanager.register(_Recorder(Path(file)))
