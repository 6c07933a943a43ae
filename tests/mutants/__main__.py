"""Puts faults into the product, one at a time, and tells which of them its tests do not notice.

    python -m tests.mutants --since HEAD~1               # on the lines that changed since a commit
    python -m tests.mutants memd/chunk --sample 40       # 40 places of a package, drawn by --seed
    python -m tests.mutants memd/store/files.py          # all of a file
    python -m tests.mutants memd/store/files.py:120      # or of a line

The tests are those of the same package (tests/chunk for memd/chunk), and what holds for all of them (tests/golden, and the
list of tests/test_bounds.py). They run once without a fault, to record which of them execute which lines; with --keep DIRECTORY
only those whose file has changed since the last time. A fault is tried
with those that execute its line, then with those that execute others of its file, or start other processes, the shortest first,
up to the first that fails; with all where it is not known which execute it.
A process loads the tests once, and forks for each fault, whose code takes the place of what is loaded (swap.py); a fault that is no
function's has a process of its own. A test that does not end within a minute fails. The outcome is unknown where the tests do not
end in time all in all or something kills them, and where the test that failed fails without the fault, too.

Each fault is tried in a copy of the checkout, several at once (--jobs). Ends with status 1 where a fault was not noticed that is not
in equivalent.txt, in which a line has the file, the line as it is and as it would be, and why that is no fault, divided by " | ".
"""

import argparse
import re
import signal
import subprocess
import sys
import tempfile
import threading
from collections import Counter
from collections.abc import Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from queue import Queue
from random import Random

from tests.mutants.copies import ROOT, Children, Copy, Mutant, copy_checkout
from tests.mutants.faults import faults
from tests.mutants.recording import KeptRecordings, Recording
from tests.mutants.trials import Ended, Outcome

EQUIVALENT = Path(__file__).with_name("equivalent.txt")
# What is made of a corpus, and shipped numbers: of every package.
_OF_ALL = ("tests/golden", "tests/test_bounds.py::test_every_bound_is_as_it_is_written_down")


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


def changed(since: str) -> dict[str, set[int]]:
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


def main(arguments: Sequence[str]) -> int:
    """Try, and tell; the exit status."""
    parser = argparse.ArgumentParser(
        prog="python -m tests.mutants", description="Which faults do the tests not notice?"
    )
    parser.add_argument("places", nargs="*", metavar="FILE", help="source files, or directories of them")
    parser.add_argument("--since", metavar="COMMIT", help="only on the lines that changed since then")
    parser.add_argument(
        "--sample", type=int, metavar="N", help="so many faults of each place, drawn at random"
    )
    parser.add_argument("--seed", type=int, default=1, metavar="N")
    parser.add_argument("--jobs", type=int, default=2, metavar="N", help="how many at once")
    parser.add_argument("--tests", nargs="+", metavar="PATH", help="instead of those of the package")
    parser.add_argument(
        "--keep", metavar="DIR", type=Path, help="keep what is recorded of tests, for the next time"
    )
    chosen = parser.parse_args(arguments)
    if not chosen.places and chosen.since is None:
        parser.error("name files, or a commit with --since")
    known = equivalents(EQUIVALENT.read_text("utf-8"))
    lines = None if chosen.since is None else changed(chosen.since)
    drawn = {}
    for place in chosen.places or ["memd", "client/memd_client"]:
        mutants = [one for one in _mutants(place, lines) if one.key not in known]
        count = len(mutants) if chosen.sample is None else min(chosen.sample, len(mutants))
        drawn[place] = Random(chosen.seed).sample(mutants, count)
    children = Children()

    def end(*_: object) -> None:
        children.end()
        raise SystemExit(128 + signal.SIGTERM)

    signal.signal(signal.SIGTERM, end)
    every = list(dict.fromkeys(mutant for mutants in drawn.values() for mutant in mutants))
    outcomes = _try_all(every, chosen.jobs, chosen.tests, children, chosen.keep)
    for place, mutants in drawn.items():
        print(_summary(place, [outcomes[mutant] for mutant in mutants]))  # noqa: T201 - the outcome of a program
    return 0 if all(outcome is Outcome.NOTICED for outcome in outcomes.values()) else 1


def _summary(place: str, outcomes: Sequence[Outcome]) -> str:
    counts = Counter(outcomes)
    unknown = f", {counts[Outcome.UNKNOWN]} unknown" if counts[Outcome.UNKNOWN] else ""
    known = len(outcomes) - counts[Outcome.UNKNOWN]
    share = f" ({100 * counts[Outcome.NOTICED] // known} %)" if known else ""
    return f"{place}: {len(outcomes)} faults{unknown}, {counts[Outcome.NOTICED]} of {known} noticed{share}"


def _try_all(
    mutants: Sequence[Mutant], jobs: int, tests: Sequence[str] | None, children: Children, keep: Path | None
) -> Mapping[Mutant, Outcome]:
    """Try each; a line for each is printed."""
    told = threading.Lock()
    with tempfile.TemporaryDirectory(prefix="memd-mutants-") as scratch, ThreadPoolExecutor(jobs) as pool:
        # Some tests run as another user, who has to read it, too.
        Path(scratch).chmod(0o755)
        copies: Queue[Copy] = Queue()
        for number in range(jobs):
            directory = Path(scratch, str(number))
            copy_checkout(directory)
            copies.put(Copy(directory, children))
        of_file = {mutant.file: tuple(tests or noticing(mutant.file, ROOT)) for mutant in mutants}

        kept = KeptRecordings((keep or Path(scratch, "recordings")).resolve(), ROOT)

        def recorded(places: tuple[str, ...]) -> Recording:
            file = None
            if missing := kept.missing(places):
                copy, file = copies.get(), kept.new()
                try:
                    copy.record(missing, file)
                finally:
                    copies.put(copy)
            recording = kept.of(places, file)
            for test in recording.failed:
                print(f"left out, as it fails without a fault: {test}", flush=True)  # noqa: T201 - likewise
            return recording

        # The first are tried while the last are recorded.
        recordings = {tested: pool.submit(recorded, tested) for tested in sorted(set(of_file.values()))}

        def outcome(mutant: Mutant) -> Outcome:
            places = of_file[mutant.file]
            recording = recordings[places].result()
            copy = copies.get()
            try:
                ended = copy.ended(mutant, places, recording)
            finally:
                copies.put(copy)
            with told:
                print(_line(mutant, ended), flush=True)  # noqa: T201 - likewise
            return ended.outcome

        in_turn = sorted(
            mutants, key=lambda mutant: of_file[mutant.file]
        )  # a copy has the tests of one package loaded
        try:
            return dict(zip(in_turn, pool.map(outcome, in_turn), strict=True))
        finally:
            while not copies.empty():
                copies.get().end()


def _line(mutant: Mutant, ended: Ended) -> str:
    _, old, new = mutant.key
    by = f"  ({ended.test})" if ended.test else ""
    return f"{ended.outcome:7} {mutant.file}:{mutant.fault.line}: {old}  ->  {new}{by}"


def _mutants(place: str, changed_lines: Mapping[str, set[int]] | None) -> list[Mutant]:
    """The faults of a file, a directory of them, or of a line, as FILE:LINE; all, or those of the lines that changed."""
    name, _, line = place.partition(":")
    path = (ROOT / name).resolve()
    files = [path] if path.is_file() else sorted(path.rglob("*.py"))
    if not files:
        raise SystemExit(f"there is no Python at {place}")
    found = []
    for each in files:
        file = str(each.relative_to(ROOT))
        lines = None if changed_lines is None else changed_lines.get(file, set())
        source = each.read_text("utf-8")
        found += [
            Mutant(file, source, fault)
            for fault in faults(source)
            if (not line or fault.line == int(line)) and (lines is None or fault.line in lines)
        ]
    return found


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
