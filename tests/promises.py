"""Writes the test results of each promise into tests/PROMISES.md.

    pytest --junit-xml=FILE
    python -m tests.promises FILE

The last column of a promise begins with how many tests passed; what a person wrote after that stays. Ends with status 1
where a test of a promise did not pass, or a promise has none.
"""

import re
import sys
import xml.etree.ElementTree as ET
from collections.abc import Mapping, Sequence
from pathlib import Path

import msgspec

ROOT = Path(__file__).parents[1]
PROMISES = ROOT / "tests" / "PROMISES.md"
_HEAD = "| promise | test | last measured |"
_RESULT = re.compile(r"\d[\d,]* passed(; )?")
_PLACE = re.compile(r"`([\w/.]+(?:\.py|/))`")


class Promise(msgspec.Struct, frozen=True):
    """One row of the table."""

    text: str
    tests: tuple[str, ...]  # files and directories, below tests/
    held_by: str  # the column that names them
    measured: str
    line: str  # all of it, as it stands in the table


def promises(page: str) -> list[Promise]:
    """Yield the promises of a page in order; headings within the table are skipped.

    Raises:
        ValueError: there is no table of promises, or one of its lines has not three columns.
    """
    _, head, rest = page.partition(f"{_HEAD}\n")
    if not head:
        raise ValueError(f"there is no line {_HEAD!r}")
    found = []
    for line in rest.splitlines()[1:]:
        if not line.startswith("|"):
            break
        cells = [cell.strip() for cell in line.strip().strip("|").split(" |")]
        if len(cells) != 3:
            raise ValueError(f"not three columns: {line}")
        text, held_by, measured = cells
        if not text.startswith("**"):
            found.append(Promise(text, tuple(_PLACE.findall(held_by)), held_by, measured, line))
    return found


class Outcome(msgspec.Struct, frozen=True):
    """The results of the tests of one file."""

    passed: int = 0
    others: tuple[str, ...] = ()  # that failed, or did not run


def outcomes(report: str) -> dict[str, Outcome]:
    """Return the results by file below tests/, from JUnit XML."""
    by_file: dict[str, Outcome] = {}
    for case in ET.fromstring(report).iter("testcase"):
        # A class within a file would add to the name, but there are none.
        place = case.attrib["classname"].removeprefix("tests.").replace(".", "/") + ".py"
        so_far = by_file.get(place, Outcome())
        if any(one.tag in {"failure", "error", "skipped"} for one in case):
            by_file[place] = msgspec.structs.replace(so_far, others=(*so_far.others, case.attrib["name"]))
        else:
            by_file[place] = msgspec.structs.replace(so_far, passed=so_far.passed + 1)
    return by_file


def written(page: str, by_file: Mapping[str, Outcome]) -> str:
    """Return the page with the number of passed tests of each promise.

    Raises:
        ValueError: one of them did not, or there is none.
    """
    for promise in promises(page):
        number = 0
        for place, outcome in by_file.items():
            if not any(_is_in(place, named) for named in promise.tests):
                continue
            if outcome.others:
                raise ValueError(f"{place}: {', '.join(outcome.others)} did not pass")
            number += outcome.passed
        if not number:
            raise ValueError(f"no test passed for: {promise.text}")
        said = _RESULT.sub("", promise.measured, count=1)
        measured = f"{number:,} passed" + (f"; {said}" if said else "")
        page = page.replace(promise.line, f"| {promise.text} | {promise.held_by} | {measured} |")
    return page


def _is_in(file: str, named: str) -> bool:
    return file == named or (named.endswith("/") and file.startswith(named))


def main(arguments: Sequence[str]) -> int:
    """Read a report, and write the page."""
    [report] = arguments
    try:
        page = written(PROMISES.read_text("utf-8"), outcomes(Path(report).read_text("utf-8")))
    except ValueError as trouble:
        sys.stderr.write(f"{trouble}\n")
        return 1
    PROMISES.write_text(page, encoding="utf-8")
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
