"""Each bug of OpenClaw's memory has tests that are there."""

import re
from pathlib import Path

TESTS = Path(__file__).parent
_ROW = re.compile(r"\| (\d+) \| ([^|]+) \| (#[\d #]+|src) \| ([^|]+) \|")
_TEST = re.compile(r"`([\w/]+\.py)::(test_\w+)`")
BUGS = 30


def test_each_bug_has_tests_that_are_there() -> None:
    """A test that is renamed is renamed in the table, too."""
    page = (TESTS / "OPENCLAW.md").read_text("utf-8")
    rows = [found.groups() for line in page.splitlines() if (found := _ROW.fullmatch(line))]
    assert [int(number) for number, *_ in rows] == list(range(1, BUGS + 1))
    named = {number: _TEST.findall(tests) for number, _, _, tests in rows}
    assert [number for number, tests in named.items() if not tests] == []
    gone = [
        (file, test)
        for tests in named.values()
        for file, test in tests
        if not re.search(rf"^(async )?def {test}\(", _source(file), re.MULTILINE)
    ]
    assert gone == []


def _source(file: str) -> str:
    place = TESTS / file
    return place.read_text("utf-8") if place.exists() else ""
