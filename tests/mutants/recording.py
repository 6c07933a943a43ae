"""Which tests execute which lines, and how long each test takes: so that a fault is tried with the right tests first.

This module is also the plugin of pytest that records it (with RECORD in the environment), and that runs chosen tests alone, in
their order, or all but them (with CHOSEN).
"""

import ast
import json
import os
import time
from collections.abc import Generator, Mapping, Sequence
from functools import cache
from pathlib import Path

import pytest

RECORD = "MEMD_MUTANTS_RECORD"  # a file that coverage writes; beside it the seconds of each test
CHOSEN = "MEMD_MUTANTS_CHOSEN"  # a file that choose() wrote


class Recording:
    """What was recorded of the tests in one copy of the checkout."""

    def __init__(self, file: Path, root: Path) -> None:
        from coverage import CoverageData  # noqa: PLC0415 - only who tries faults needs it

        self._root = root
        self._data = CoverageData(str(file))
        self._data.read()
        self.seconds: Mapping[str, float] = json.loads(_seconds(file).read_text("utf-8"))
        self._contexts = cache(self._read)

    def tests(self, file: str, source: str, line: int) -> tuple[list[str], bool]:
        """The tests that execute the statement of a line, the shortest first, and whether these are all.

        Of a statement at the top of a module or a class, those that execute any line of the file are the first of all.
        What is computed once and kept is laid to the first test that asked for it.
        """
        contexts = self._contexts(str(self._root / file))
        lines = _executed_with(ast.parse(source), line)
        found = {context for one in lines or contexts for context in contexts.get(one, ())}
        tests = (test for test in self.seconds if test in found or test.partition("::")[0] in found)
        are_all = (
            lines is not None and bool(found) and "" not in found
        )  # else an import or another process may execute it
        return sorted(tests, key=lambda test: self.seconds[test]), are_all

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


def choose(file: Path, tests: Sequence[str], *, others: bool) -> None:
    """Write what a run with CHOSEN runs: these tests in this order, or all others."""
    file.write_text(json.dumps({"tests": tests, "others": others}), "utf-8")


class _Recorder:
    def __init__(self, file: Path) -> None:
        from coverage import Coverage  # noqa: PLC0415 - as above

        self._file = file
        self._seconds: dict[str, float] = {}
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
            self._coverage.switch_context("")

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
        _seconds(self._file).write_text(json.dumps(self._seconds), "utf-8")


class _Chooser:
    def __init__(self, file: Path) -> None:
        chosen = json.loads(file.read_text("utf-8"))
        self._places = {test: place for place, test in enumerate(chosen["tests"])}
        self._others: bool = chosen["others"]

    @pytest.hookimpl(trylast=True)
    def pytest_collection_modifyitems(self, items: list[pytest.Item]) -> None:
        if self._others:
            items[:] = [item for item in items if item.nodeid not in self._places]
        else:
            known = (item for item in items if item.nodeid in self._places)
            items[:] = sorted(known, key=lambda item: self._places[item.nodeid])


def _seconds(file: Path) -> Path:
    return file.with_suffix(".seconds.json")


def pytest_configure(config: pytest.Config) -> None:
    """Do what the environment says."""
    for name, plugin in ((RECORD, _Recorder), (CHOSEN, _Chooser)):
        # Tests that run pytest themselves do not record, or choose, again.
        if file := os.environ.pop(name, None):
            config.pluginmanager.register(plugin(Path(file)))
