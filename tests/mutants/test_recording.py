import os
import subprocess
import sys
from pathlib import Path

import msgspec
import pytest

from tests.mutants.copies import ROOT
from tests.mutants.recording import RECORD, KeptRecordings, Recording

pytestmark = pytest.mark.long  # a tool of developers, which is slow: each test starts others

_SOURCE = """\
LIMIT = 3

def halves(number, *, up):
    if (
        up
    ):
        return (number + 1) // 2
    return number // 2

def opened():
    return [LIMIT]

def never():
    return 0

def made():
    return 4

MADE = made()
"""
_TESTS = """\
import time
import pytest
from memd_client import numbers

@pytest.fixture(scope="module")
def shared():
    return numbers.opened()

def test_slow():
    time.sleep(0.2)
    assert numbers.halves(3, up=True) == 2

def test_up():
    assert numbers.halves(5, up=True) == 3

def test_down():
    assert numbers.halves(5, up=False) == 2

def test_shared(shared):
    assert shared

def test_wrong():
    assert numbers.LIMIT == 4
"""


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("checkout")
    for name, text in {
        "memd_client/__init__.py": "",
        "memd_client/numbers.py": _SOURCE,
        "test_numbers.py": _TESTS,
    }.items():
        (made / name).parent.mkdir(exist_ok=True)
        (made / name).write_text(text, "utf-8")
    (made / "recordings").mkdir()
    environ = os.environ | {"PYTHONPATH": f"{made}{os.pathsep}{ROOT}", RECORD: str(made / "recordings" / "1")}
    command = (
        sys.executable,
        "-m",
        "pytest",
        "-c",
        os.devnull,
        "--rootdir",
        ".",
        "-p",
        "tests.mutants.recording",
        ".",
    )
    assert subprocess.run(command, cwd=made, env=environ, capture_output=True, check=False).returncode == 1
    return made


def _recorded(checkout: Path) -> Recording:
    return KeptRecordings(checkout / "recordings", checkout).of(["."], checkout / "recordings" / "1")


@pytest.mark.rows(3)
@pytest.mark.parametrize(
    ("text", "expected", "are_all", "at_import"),
    [
        ("number // 2\n", ["down"], True, False),
        ("        up\n", ["down", "up", "slow"], True, False),
        ("(number + 1)", ["up", "slow"], True, False),
        ("[LIMIT]", ["down", "shared", "slow", "up"], True, False),
        ("return 0", ["down", "shared", "slow", "up"], False, False),
        ("return 4", ["down", "shared", "slow", "up"], False, True),
        ("LIMIT = 3", ["down", "shared", "slow", "up"], False, True),
    ],
)
def test_the_tests_that_execute_a_line(
    checkout: Path, text: str, expected: list[str], are_all: bool, at_import: bool
) -> None:
    """First of all; all of a file for what its fixture executes for all, and for what a module executes while it is imported."""
    line = _SOURCE[: _SOURCE.rindex(text)].count("\n") + 1
    recording = _recorded(checkout)
    found = recording.executing("memd_client/numbers.py", _SOURCE, line)
    assert (found.are_all, found.at_import) == (are_all, at_import)
    first = found.tests[: len(expected)]
    assert sorted(first) == sorted(f"test_numbers.py::test_{name}" for name in expected)
    assert "slow" not in expected or first[-1] == "test_numbers.py::test_slow"
    assert sorted([*found.tests, *recording.others(found.tests)]) == sorted(recording.seconds)


def test_what_fails_without_a_fault_is_left_out(checkout: Path) -> None:
    recording = _recorded(checkout)
    assert recording.failed == ["test_numbers.py::test_wrong"]
    assert "test_numbers.py::test_wrong" not in recording.seconds


def _told(checkout: Path, tmp_path: Path, **others: object) -> KeptRecordings:
    """The recording as it would be if what it tells of its run were something else."""
    for name in ("1", "1.json"):
        (tmp_path / name).write_bytes((checkout / "recordings" / name).read_bytes())
    told = msgspec.json.decode((tmp_path / "1.json").read_bytes())
    (tmp_path / "1.json").write_bytes(msgspec.json.encode(told | others))
    return KeptRecordings(tmp_path, checkout)


def test_a_recording_holds_until_the_file_of_tests_changes(checkout: Path, tmp_path: Path) -> None:
    """Where one of its tests failed, not even until then: it may pass the next time."""
    assert KeptRecordings(tmp_path / "none", checkout).missing(["."]) == ["test_numbers.py"]
    assert _told(checkout, tmp_path).missing(["."]) == ["test_numbers.py"]
    kept = _told(checkout, tmp_path, failed=[])
    assert kept.missing(["."]) == []
    assert "test_numbers.py::test_up" in kept.of(["."], None).seconds
    assert _told(checkout, tmp_path, failed=[], tests={"test_numbers.py": "other"}).missing(["."]) == [
        "test_numbers.py"
    ]


def test_of_a_source_that_has_changed_all_tests_are_tried_that_executed_any_of_it(
    checkout: Path, tmp_path: Path
) -> None:
    """Its lines were others when they were recorded."""
    kept = _told(checkout, tmp_path, failed=[]).of(["."], None)
    line = _SOURCE[: _SOURCE.index("(number + 1)")].count("\n") + 1
    same = kept.executing("memd_client/numbers.py", _SOURCE, line)
    moved = kept.executing("memd_client/numbers.py", f"\n{_SOURCE}", line + 1)
    assert (len(moved.tests), moved.are_all, moved.at_import) == (4, True, False)
    names = [[test.partition("::")[2] for test in found.tests] for found in (same, moved)]
    assert [one.index("test_slow") for one in names] == [1, 3]
