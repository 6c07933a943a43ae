"""Puts faults into the product, one at a time, and tells which of them its tests do not notice.

    python -m tests.mutants --since HEAD~1               # on the lines that changed since a commit
    python -m tests.mutants memd/chunk --sample 40       # 40 places of a package, drawn by --seed
    python -m tests.mutants memd/store/files.py          # all of a file: minutes to hours
    python -m tests.mutants memd/store/files.py:120      # or of a line

The tests are those of the same package (tests/chunk for memd/chunk), and what holds for all of them (tests/golden, and the
list of tests/test_bounds.py). They run once without a fault, to record which of them execute which lines. A fault is tried
with those that execute its line, the shortest first, up to the first that fails; with all where it is not known which do. Tests that something killed tell nothing.
Each fault is tried in a copy of the checkout, several at once (--jobs). Ends with status 1 where a fault was not noticed that is not in equivalent.txt, in which a line has the file, the line as it is and as it would be, and why that is no fault, divided by " | ".
"""

import argparse
import contextlib
import os
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from importlib.util import cache_from_source
from pathlib import Path
from queue import Queue
from random import Random
from types import MappingProxyType
from typing import Any

import msgspec
import pytest

from tests.mutants.faults import Fault, faults
from tests.mutants.recording import CHOSEN, RECORD, Recording, choose

ROOT = Path(__file__).parents[2]
EQUIVALENT = Path(__file__).with_name("equivalent.txt")
# What is made of a corpus, and shipped numbers: of every package.
_OF_ALL = ("tests/golden", "tests/test_bounds.py::test_every_bound_is_as_it_is_written_down")
_LIMIT_S = 900  # for the tests of one fault


class Mutant(msgspec.Struct, frozen=True):
    """A fault of a file."""

    file: str  # from the root of the checkout
    source: str  # of it
    fault: Fault

    @property
    def key(self) -> tuple[str, str, str]:
        """What names it: the file, the line as it is, and as it would be."""
        return (self.file, *self.fault.shown(self.source))


def noticing(file: str, root: Path) -> list[str]:
    """Where the tests of a source file are: all of its package, and what holds for all."""
    path = Path(file)
    parts = ("client", *path.parts[2:]) if path.parts[0] == "client" else path.parts[1:]
    if len(parts) == 1 and path.parts[0] != "client":  # of no package: memd/index_service.py
        named = sorted(str(one.relative_to(root)) for one in (root / "tests").rglob(f"test_{path.stem}*.py"))
        return [one for one in named if Path(one).parent == Path("tests")] or named
    # memd/sources/transcripts is tested by tests/sources, too.
    return [f"tests/{parts[0]}", *(one for one in _OF_ALL if (root / one.partition("::")[0]).exists())]


def equivalents(text: str) -> Mapping[tuple[str, str, str], str]:
    """Why a change is no fault, by file, the line as it is, and the line as it would be."""
    found = {}
    for line in text.splitlines():
        if line and not line.startswith("#"):
            file, old, new, reason = line.split(" | ")
            found[file, old, new] = reason
    return found


def changed(since: str) -> dict[str, set[int] | None]:
    """The lines of each source file that changed since a commit, the working tree included."""
    ran = subprocess.run(
        ["git", "diff", "-U0", since, "--", "memd", "client/memd_client"],
        cwd=ROOT, capture_output=True, text=True, check=True,
    )  # fmt: skip
    found: dict[str, set[int]] = {}
    file = ""
    for line in ran.stdout.splitlines():
        if line.startswith("+++ b/"):
            file = line.removeprefix("+++ b/")
        elif match := re.match(r"@@ -\S+ \+(\d+)(?:,(\d+))? @@", line):
            first, count = int(match[1]), int(match[2] or 1)
            found.setdefault(file, set()).update(range(first, first + count))
    return {file: lines for file, lines in found.items() if file.endswith(".py") and (ROOT / file).exists()}


class Children:
    """Programs that run just now, with all that they start: none outlives this one."""

    def __init__(self) -> None:
        self._running: set[subprocess.Popen[bytes]] = set()
        self._has_ended = False

    def run(self, command: Sequence[str], limit_s: float, **how: Any) -> int | None:
        """How a program ended, negative by a signal; None: not within its time, and it was killed."""
        if self._has_ended:
            raise SystemExit("ended")
        started = subprocess.Popen(
            command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, start_new_session=True, **how
        )
        self._running.add(started)
        try:
            return started.wait(limit_s)
        except subprocess.TimeoutExpired:
            return None
        finally:
            _kill(started)
            started.wait()
            self._running.discard(started)

    @property
    def count(self) -> int:
        """How many run."""
        return len(self._running)

    def end(self) -> None:
        """Kill all that run, and start no more."""
        self._has_ended = True
        for one in list(self._running):
            _kill(one)


def _kill(started: subprocess.Popen[bytes]) -> None:
    with contextlib.suppress(ProcessLookupError):
        os.killpg(started.pid, signal.SIGKILL)


class Copy:
    """A copy of the checkout, in which one fault at a time is tried."""

    def __init__(self, directory: Path, children: Children) -> None:
        self._directory = directory
        self._children = children
        listed = subprocess.run(
            ["git", "ls-files", "-co", "--exclude-standard"],
            cwd=ROOT,
            capture_output=True,
            text=True,
            check=True,
        )
        for name in listed.stdout.splitlines():
            if (ROOT / name).is_file():
                (directory / name).parent.mkdir(parents=True, exist_ok=True)
                shutil.copy2(ROOT / name, directory / name)

    def is_noticed(self, mutant: Mutant, tests: Sequence[str], recording: Recording) -> bool | None:
        """Whether a test fails with this fault; None: the tests were killed, so that it is not known."""
        file = self._directory / mutant.file
        self._write(file, mutant.fault.applied(mutant.source))
        try:
            return self._fails_in_turn(mutant, tests, recording)
        finally:
            self._write(file, mutant.source)

    def _fails_in_turn(self, mutant: Mutant, tests: Sequence[str], recording: Recording) -> bool | None:
        """Whether one of the tests that execute the line fails, or of all where it is not known which do."""
        first, are_all = recording.tests(mutant.file, mutant.source, mutant.fault.line)
        chosen = self._directory.with_suffix(".chosen")
        choose(chosen, first, others=False)
        seconds = [recording.seconds[test] for test in first]
        files = dict.fromkeys(test.partition("::")[0] for test in first)
        if first:
            fails = self._fails(list(files), {CHOSEN: str(chosen)}, limit_s=20 + 10 * max(seconds))
            if fails is not False:
                return fails
        if are_all:
            return False
        choose(chosen, first, others=True)
        return self._fails(tests, {CHOSEN: str(chosen)})

    def record(self, tests: Sequence[str], file: Path) -> Recording:
        """Run the tests without a fault; they must pass, else each fault would seem to be noticed."""
        if self._fails(tests, {RECORD: str(file)}) is not False:
            raise SystemExit(f"without a fault these tests fail already: pytest -x {' '.join(tests)}")
        return Recording(file, self._directory)

    def _write(self, file: Path, source: str) -> None:
        file.write_text(source, "utf-8")
        # Bytecode of one fault would pass for that of the next one, of the same second and size.
        Path(cache_from_source(str(file))).unlink(missing_ok=True)

    def _fails(
        self, tests: Sequence[str], environ: Mapping[str, str] = MappingProxyType({}), limit_s: float = 120
    ) -> bool | None:
        """Whether one of these tests fails here, or does not end; None: something killed them."""
        paths = os.pathsep.join((str(self._directory), str(self._directory / "client")))
        command = [
            sys.executable,
            "-m",
            "pytest",
            "-n",
            "0",
            "-x",
            "-p",
            "no:cacheprovider",
            "-p",
            Recording.__module__,
            "--timeout",
            str(min(120, limit_s)),
            "-m",
            "not long",
            *tests,
        ]
        environ = os.environ | {"PYTHONPATH": paths, **environ}
        status = self._children.run(command, _LIMIT_S, cwd=self._directory, env=environ)
        if status is not None and status < 0:
            return None
        return status not in {pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED}


def main(arguments: Sequence[str]) -> int:
    """Try, and tell; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Which faults do the tests not notice?"
    )
    parser.add_argument("places", nargs="*", metavar="FILE", help="source files, or directories of them")
    parser.add_argument("--since", metavar="COMMIT", help="only on the lines that changed since then")
    parser.add_argument("--sample", type=int, metavar="N", help="so many faults, drawn at random")
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at once")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="instead of those of the package")
    chosen = parser.parse_args(arguments)
    if not chosen.places and chosen.since is None:
        parser.error("name files, or a commit with --since")
    places = _lines(chosen.places)
    if chosen.since is not None:
        lines = changed(chosen.since)
        places = {file: lines[file] for file in places or lines if file in lines}
    mutants = [mutant for file in sorted(places) for mutant in _mutants(file, places[file])]
    known = equivalents(EQUIVALENT.read_text("utf-8"))
    mutants = [mutant for mutant in mutants if mutant.key not in known]
    if chosen.sample is not None:
        mutants = Random(chosen.seed).sample(mutants, min(chosen.sample, len(mutants)))
    children = Children()

    def end(*_: object) -> None:
        children.end()
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    outcomes = _try_all(mutants, chosen.jobs, chosen.tests, children)
    unknown = f", {outcomes[None]} not known" if outcomes[None] else ""
    print(f"{len(mutants)} faults, {outcomes[True]} noticed{unknown}")  # noqa: T201 - the outcome of a program
    return 0 if outcomes[True] == len(mutants) else 1


def _try_all(
    mutants: Sequence[Mutant], jobs: int, tests: Sequence[str] | None, children: Children
) -> Counter[bool | None]:
    """Try each; how many some test noticed, how many none did, and of how many that is not known: None."""
    told = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="memd-mutants-") as scratch, ThreadPoolExecutor(jobs) as pool:
        # Some tests run as another user, who has to read it, too.
        Path(scratch).chmod(0o755)
        copies: Queue[Copy] = Queue()
        for number in range(jobs):
            copies.put(Copy(Path(scratch, str(number)), children))
        of_file = {mutant.file: tuple(tests or noticing(mutant.file, ROOT)) for mutant in mutants}

        def recorded(places: tuple[str, ...]) -> Recording:
            copy = copies.get()
            try:
                return copy.record(places, Path(scratch, "-".join(places).replace("/", ".")[:200]))
            finally:
                copies.put(copy)

        every = sorted(set(of_file.values()))
        recordings = dict(zip(every, pool.map(recorded, every), strict=True))

        def outcome(mutant: Mutant) -> bool | None:
            copy = copies.get()
            places = of_file[mutant.file]
            try:
                noticed = copy.is_noticed(mutant, places, recordings[places])
            finally:
                copies.put(copy)
            with told:
                _, old, new = mutant.key
                word = {True: "noticed", False: "MISSED ", None: "unknown"}[noticed]
                print(f"{word} {mutant.file}:{mutant.fault.line}: {old}  ->  {new}", flush=True)  # noqa: T201 - likewise
            return noticed

        return Counter(pool.map(outcome, mutants))


def _lines(places: Sequence[str]) -> dict[str, set[int] | None]:
    """The source files that are meant, and which of their lines: None for all."""
    found: dict[str, set[int] | None] = {}
    for place in places:
        name, _, line = place.partition(":")
        path = (ROOT / name).resolve()
        every = [path] if path.is_file() else sorted(path.rglob("*.py"))
        if not every:
            raise SystemExit(f"there is no Python at {place}")
        for file in every:
            lines = found.setdefault(str(file.relative_to(ROOT)), {int(line)} if line else None)
            if lines is not None and line:
                lines.add(int(line))
    return found


def _mutants(file: str, lines: set[int] | None) -> list[Mutant]:
    source = (ROOT / file).read_text("utf-8")
    every = (Mutant(file, source, fault) for fault in faults(source))
    return [mutant for mutant in every if lines is None or mutant.fault.line in lines]


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
