import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.mutants.__main__ import ROOT
from tests.mutants.recording import CHOSEN, RECORD, Recording, choose

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
    _run(made, {RECORD: str(made / "record")})
    return made


def _run(checkout: Path, environ: dict[str, str]) -> str:
    ran = subprocess.run(
        [sys.executable, "-m", "pytest", "-v", "-c", os.devnull, "--rootdir", ".", "-p", "tests.mutants.recording", "."],
        cwd=checkout, env=os.environ | {"PYTHONPATH": f"{checkout}{os.pathsep}{ROOT}"} | environ,
        capture_output=True, text=True, check=True,
    )  # fmt: skip
    return ran.stdout


@pytest.mark.parametrize(
    ("text", "expected", "are_all"),
    [
        ("number // 2\n", ["down"], True),
        ("        up\n", ["down", "up", "slow"], True),
        ("(number + 1)", ["up", "slow"], True),
        ("[LIMIT]", ["down", "shared", "slow", "up"], True),
        ("return 0", [], False),
        ("LIMIT = 3", ["down", "shared", "slow", "up"], False),
    ],
)
def test_the_tests_that_execute_a_line(checkout: Path, text: str, expected: list[str], are_all: bool) -> None:
    """All of a file for what its fixture executes for all, and for what a module executes while it is imported."""
    line = _SOURCE[: _SOURCE.rindex(text)].count("\n") + 1
    found, told = Recording(checkout / "record", checkout).tests("memd_client/numbers.py", _SOURCE, line)
    assert told is are_all
    assert sorted(found) == sorted(f"test_numbers.py::test_{name}" for name in expected)
    assert "slow" not in expected or found[-1] == "test_numbers.py::test_slow"


@pytest.mark.parametrize(
    ("others", "expected"), [(False, ["test_up", "test_slow"]), (True, ["test_down", "test_shared"])]
)
def test_chosen_tests_run_in_their_order_or_all_others(
    checkout: Path, tmp_path: Path, others: bool, expected: list[str]
) -> None:
    choose(tmp_path / "chosen", ["test_numbers.py::test_up", "test_numbers.py::test_slow"], others=others)
    lines = _run(checkout, {CHOSEN: str(tmp_path / "chosen")}).splitlines()
    assert [line.split()[0].partition("::")[2] for line in lines if "PASSED" in line] == expected
