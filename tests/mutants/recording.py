"""Which tests execute which lines, and how long each test takes: so that a fault is tried with the right tests first.

This module is also the plugin of pytest that records it (with RECORD in the environment).
"""

import ast
import hashlib
import os
import sys
import time
from collections.abc import Collection, Generator, Mapping, Sequence
from functools import cache
from pathlib import Path

import msgspec
import pytest

RECORD = "MEMD_MUTANTS_RECORD"  # a file that coverage writes; beside it the seconds of each test
# A test starts another process, in which nothing sees what is executed: audit events of Python, and that of tests/daemon/forked.py.
_STARTS = frozenset({"subprocess.Popen", "os.posix_spawn", "os.fork", "tests.daemon.forked"})
_IMPORT = ""  # what is executed before the first test
_BETWEEN = "-"  # what threads that tests have left execute after them


class Executing(msgspec.Struct, frozen=True):
    """Which tests are to be run for a line."""

    tests: Sequence[
        str
    ]  # those that execute it, the shortest first; after them, those that execute others of its file
    are_all: bool  # else an import or another process may execute it
    at_import: bool  # it is executed while modules are loaded: what it computed then stays


class _Part:
    """What one run recorded, or that of some of its files of tests."""

    def __init__(self, file: Path, tested: Collection[str] | None = None) -> None:
        from coverage import CoverageData  # noqa: PLC0415 - only who tries faults needs it

        self._tested = tested
        self._data = CoverageData(str(file))
        self._data.read()
        told = _Told.read(file)
        self._root = told.root
        self._sources = told.sources
        self.seconds = {test: took for test, took in told.seconds.items() if self._is_of(test)}
        self.failed = [test for test in told.failed if self._is_of(test)]
        self.elsewhere = {context for context in told.elsewhere if self._is_of(context)}

    def _is_of(self, context: str) -> bool:
        return self._tested is None or context in self._tested or context.partition("::")[0] in self._tested

    def contexts(self, file: str) -> Mapping[int, Sequence[str]]:
        by_line: Mapping[int, Sequence[str]] = self._data.contexts_by_lineno(f"{self._root}/{file}")
        return {
            line: [one for one in contexts if one in {_IMPORT, _BETWEEN} or self._is_of(one)]
            for line, contexts in by_line.items()
        }

    def is_of_source(self, file: str, source: str) -> bool:
        return self._sources.get(file) == _digest(source.encode())


class Recording:
    """What was recorded of the tests, in one run or in several."""

    def __init__(self, parts: Sequence[_Part]) -> None:
        self._parts = parts
        self.seconds = {test: took for part in parts for test, took in part.seconds.items()}  # if it passed
        self.failed = [test for part in parts for test in part.failed]
        self._by_time = sorted(self.seconds, key=lambda test: self.seconds[test])
        self._contexts = cache(self._read)

    def executing(self, file: str, source: str, line: int) -> Executing:
        """The tests that execute the statement of a line.

        Of what is executed while modules are loaded, those that execute any line of the file are the first of all.
        What is computed once and kept is laid to the first test that asked for it. And what a coroutine executes after it
        caught an exception, coverage does not see in Python 3.11: so the other tests of the file follow in any case, and with them
        those that may execute it in another process, such as one of another user.
        """
        lines = _executed_with(ast.parse(source), line)
        found: set[str] = set()
        every: set[str] = set()
        for part, contexts in zip(self._parts, self._contexts(file), strict=True):
            of_part = {context for one in contexts.values() for context in one}
            every |= of_part | part.elsewhere
            if part.is_of_source(file, source):
                found.update(context for one in lines or () for context in contexts.get(one, ()))
            else:  # its lines were others
                found |= of_part - {_IMPORT}
        at_import = lines is None or _IMPORT in found
        first = [] if at_import else self._of(found)
        then = self._of(every - found)
        tests = list(dict.fromkeys([*first, *then]))
        return Executing(tests, bool(first), at_import)

    def _of(self, contexts: Collection[str]) -> list[str]:
        """The tests of some contexts, the shortest first."""
        return [test for test in self._by_time if test in contexts or test.partition("::")[0] in contexts]

    def others(self, tests: Collection[str]) -> list[str]:
        """All tests but these, the shortest first."""
        known = frozenset(tests)
        return [test for test in self._by_time if test not in known]

    def _read(self, file: str) -> Sequence[Mapping[int, Sequence[str]]]:
        return [part.contexts(file) for part in self._parts]


def is_recorded(file: Path) -> bool:
    """Whether a run came to its end, and wrote what it recorded."""
    return file.with_suffix(".json").exists()


class KeptRecordings:
    """Recordings in a directory. One holds for a file of tests until that file, or what its package shares, changes.

    What else it depends on is not looked at: a recording only says with which tests a fault is tried.
    """

    def __init__(self, directory: Path, root: Path) -> None:
        """Keep recordings.

        Args:
            directory: Where they lie, or are to lie.
            root: Of the checkout that has the tests.
        """
        directory.mkdir(parents=True, exist_ok=True)
        self._directory = directory
        self._root = root
        self._tests = cache(self._tests_of)

    def new(self) -> Path:
        """Where another one may be written."""
        return self._directory / f"{time.time_ns()}"

    def missing(self, places: Sequence[str]) -> list[str]:
        """The tests among some, file by file, of which there is no recording."""
        held = self._held(places)
        return [test for test in self._tests(tuple(places)) if test not in held]

    def of(self, places: Sequence[str], just: Path | None) -> Recording:
        """All that is known of some tests.

        Args:
            places: Files of tests, or directories of them, or tests.
            just: What was recorded just now of those that were missing: it counts even if some failed.
        """
        by_file: dict[Path, list[str]] = {}
        for test, file in self._held(places).items():
            if file != just:
                by_file.setdefault(file, []).append(test)
        parts = [_Part(file, frozenset(tests)) for file, tests in by_file.items()]
        return Recording(parts if just is None else [*parts, _Part(just)])

    def _held(self, places: Sequence[str]) -> Mapping[str, Path]:
        """The latest recording of each of some tests, if all of its file passed in it."""
        digests = self._tests(tuple(places))
        held: dict[str, Path] = {}
        for file in sorted(self._directory.glob("*.json")):
            told = _Told.read(file)
            failed = {test.partition("::")[0] for test in told.failed}
            held |= {
                test: file.with_suffix("")
                for test, digest in told.tests.items()
                if digests.get(test) == digest and test.partition("::")[0] not in failed
            }
        return held

    def _tests_of(self, places: Sequence[str]) -> Mapping[str, str]:
        return tests_of(places, self._root)


def tests_of(places: Sequence[str], root: Path) -> Mapping[str, str]:
    """The files of tests, or single tests, that some places name, each with a digest of what it is and shares."""
    found = {}
    for place in places:
        path = root / place.partition("::")[0]
        for file in [path] if path.is_file() else sorted(path.rglob("test_*.py")):
            name = file.relative_to(root).as_posix()
            shared = [one for one in sorted(file.parent.glob("*.py")) if not one.name.startswith("test_")]
            test = place if "::" in place else name
            found[test] = _digest(b"".join(one.read_bytes() for one in [file, *shared]))
    return found


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()


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
    def __init__(self, file: Path, root: Path, places: Sequence[str]) -> None:
        from coverage import Coverage  # noqa: PLC0415 - as above

        self._file = file
        self._root = root
        self._places = places
        self._seconds: dict[str, float] = {}
        self._failed: set[str] = set()
        self._test = ""
        self._context = _IMPORT
        self._elsewhere: set[str] = set()
        self._coverage = Coverage(str(file), source=["memd", "memd_client"], config_file=False)
        # Some tests need nothing of the client, or only a part that executes nothing; a warning would be an error.
        self._coverage.set_option("run:disable_warnings", ["module-not-imported", "module-not-measured"])
        self._coverage.start()
        sys.addaudithook(self._hear)

    def _hear(self, event: str, _: tuple[object, ...]) -> None:
        if event in _STARTS:
            self._elsewhere.add(self._context)

    def _switch(self, context: str) -> None:
        self._context = context
        self._coverage.switch_context(context)

    @pytest.hookimpl(wrapper=True, tryfirst=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Generator[None, object, object]:
        self._test = item.nodeid
        self._switch(self._test)
        began = time.monotonic()
        try:
            return (yield)
        finally:
            self._seconds[item.nodeid] = time.monotonic() - began
            self._switch(_BETWEEN)

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self._failed.add(report.nodeid)

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: pytest.FixtureDef[object]) -> Generator[None, object, object]:
        """What is made for many tests is laid to all of their file."""
        if fixturedef.scope == "function":
            return (yield)
        self._switch(self._test.partition("::")[0])
        try:
            return (yield)
        finally:
            self._switch(self._test)

    def pytest_sessionfinish(self) -> None:
        self._coverage.stop()
        self._coverage.save()
        passed = {test: took for test, took in self._seconds.items() if test not in self._failed}
        sources = {
            one.relative_to(self._root).as_posix(): _digest(one.read_bytes())
            for package in ("memd", "client/memd_client", "memd_client")
            for one in (self._root / package).rglob("*.py")
        }
        told = _Told(
            passed,
            sorted(self._failed),
            str(self._root),
            tests_of(self._places, self._root),
            sources,
            sorted(self._elsewhere),
        )
        told.write(self._file)


class _Told(msgspec.Struct, frozen=True):
    """What is written beside the data of coverage."""

    seconds: Mapping[str, float]  # of each test that passed
    failed: Sequence[str]
    root: str  # of the checkout that was recorded
    tests: Mapping[str, str]  # digest of each file of tests
    sources: Mapping[str, str]  # and of each source
    elsewhere: Sequence[str] = ()  # the tests that started other processes, or files whose fixtures did

    @classmethod
    def read(cls, file: Path) -> "_Told":
        return msgspec.json.decode(file.with_suffix(".json").read_bytes(), type=cls)

    def write(self, file: Path) -> None:
        file.with_suffix(".json").write_bytes(msgspec.json.encode(self))


def pytest_configure(config: pytest.Config) -> None:
    """Record, if the environment says so."""
    # Tests that run pytest themselves do not record again.
    if file := os.environ.pop(RECORD, None):
        config.pluginmanager.register(_Recorder(Path(file), config.rootpath, config.args))
