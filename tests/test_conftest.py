"""What every test is run with, tried on a run of pytest of its own."""

import importlib
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

_ROOT = Path(__file__).parents[1]

_WAITS = """
import subprocess, sys, threading

def test_hanging():
    threading.Thread(target=threading.Event().wait, name="beside", daemon=True).start()
    threading.Event().wait()

def test_tidying():
    with subprocess.Popen([sys.executable, "-c", "import time; time.sleep(4)"]):
        threading.Event().wait()

def test_ending():
    pass
"""

_TAKES_LONG = """
import time

import pytest

@pytest.mark.timeout(30)
def test_taking_long():
    time.sleep(1)

@pytest.mark.timeout(1)
def test_taking_too_long():
    while True:
        try:
            time.sleep(9)
        except BaseException:
            pass
"""

_INTERRUPTS = """
import signal, subprocess, sys

def test_a_child_can_be_interrupted():
    child = subprocess.Popen(
        [sys.executable, "-c", "import time; print(flush=True); time.sleep(5)"], stdout=-1, stderr=-1
    )
    child.stdout.readline()
    child.send_signal(signal.SIGINT)
    assert b"KeyboardInterrupt" in child.communicate(timeout=60)[1]
"""

_ROWS = """
import pytest

@pytest.mark.rows(2)
@pytest.mark.parametrize("row", "abcde")
def test_rows(row):
    assert row in "ab"
"""


def _pytest(directory: Path, test: str, *options: str, before: str = "") -> tuple[int, str]:
    """The exit status of pytest with this project's settings on a file of tests, and all that it writes."""
    file = directory / "test_tried.py"
    file.write_text(test)
    options = (
        "-c",
        str(_ROOT / "pyproject.toml"),
        "-p",
        "tests.conftest",
        "-p",
        "no:cacheprovider",
        *options,
    )
    command = [sys.executable, "-m", "pytest", "--rootdir", str(directory), *options, str(file)]
    environment = {key: value for key, value in os.environ.items() if not key.startswith("PYTEST")}
    done = subprocess.run(
        ["sh", "-c", f'{before} exec "$@"', "sh", *command],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        check=False,
        timeout=60,
        env=environment,
        cwd=_ROOT,
    )
    return done.returncode, done.stdout


WORKERS = [
    pytest.param(["-n", "0"], marks=pytest.mark.long, id="alone"),
    pytest.param(["-n", "1"], id="in a worker"),  # as the tests are run
]


@pytest.mark.parametrize("workers", WORKERS)
def test_a_test_that_waits_without_end_fails_with_the_stacks_of_its_threads(
    tmp_path: Path, workers: list[str]
) -> None:
    """And the others are run."""
    code, told = _pytest(tmp_path, _WAITS, *workers, "-k", "hanging or ending", "-o", "timeout=0.5")
    assert code == 1, told
    assert re.search(r"Failed: Timeout \(>0.5s\)", told), told
    assert "Stack of beside" in told
    assert "1 failed, 1 passed" in told


@pytest.mark.long
def test_one_that_waits_again_ends_with_its_process(tmp_path: Path) -> None:
    """Waiting for a child is what cleaning up after a failure often is; another worker runs the others."""
    limits = ("-o", "timeout=0.5", "-o", "faulthandler_timeout=1.5")
    code, told = _pytest(tmp_path, _WAITS, "-n", "1", "-k", "tidying or ending", *limits)
    assert code == 1, told
    assert re.search(r"worker 'gw0' crashed while running .*test_tidying", told)
    assert re.search(r'Timeout \(0:00:01.500000\)!\n(.*\n)+.*subprocess.py", line \d+ in _try_wait', told), (
        told
    )
    assert "1 failed, 1 passed" in told


@pytest.mark.long
def test_a_test_with_a_longer_limit_has_its_process_longer(tmp_path: Path) -> None:
    """Its process ends as much later as it may take longer: here after 45 seconds, and the other after 1.5."""
    limits = ("-n", "1", "-o", "timeout=0.5", "-o", "faulthandler_timeout=0.75")
    code, told = _pytest(tmp_path, _TAKES_LONG, *limits)
    assert code == 1, told
    assert re.search(r"worker 'gw0' crashed while running .*test_taking_too_long", told)
    assert "Timeout (0:00:01.500000)!" in told
    assert "1 failed, 1 passed" in told


def test_every_test_has_these_limits(pytestconfig: pytest.Config) -> None:
    """As pyproject.toml has them; the second is for what the first does not end."""
    assert 0 < float(pytestconfig.getini("timeout")) < float(pytestconfig.getini("faulthandler_timeout"))
    assert pytestconfig.getini("faulthandler_exit_on_timeout")


@pytest.mark.long
@pytest.mark.parametrize("workers", WORKERS)
def test_in_the_background_a_child_can_be_interrupted(tmp_path: Path, workers: list[str]) -> None:
    """`pytest &` is run with SIGINT ignored, and whoever is started so goes on ignoring it."""
    code, told = _pytest(tmp_path, _INTERRUPTS, *workers, before="trap '' INT;")
    assert code == 0, told


@pytest.mark.long
def test_rows_behind_the_first_are_long(tmp_path: Path) -> None:
    """A run without a choice of its own makes nothing of them, any other choice is made among all."""
    code, told = _pytest(tmp_path, _ROWS, "-n", "0")
    assert code == 0, told
    assert "2 passed in" in told
    code, told = _pytest(tmp_path, _ROWS, "-n", "0", "-m", "long")
    assert code == 1, told
    assert "3 failed, 2 deselected" in told


def test_what_a_test_tries_does_not_depend_on_which_modules_are_loaded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Hypothesis would try their constants, and find in one order of tests what it does not find in another."""

    def tried() -> list[int]:
        seen: list[int] = []

        @settings(max_examples=500, derandomize=True, database=None)
        @given(st.integers())
        def look(number: int) -> None:
            seen.append(number)

        look()
        return seen

    before = tried()
    (tmp_path / "loaded_later.py").write_text(f"MANY = {list(range(7_000_001, 7_000_101))}\n", "utf-8")
    monkeypatch.syspath_prepend(tmp_path)
    monkeypatch.setitem(sys.modules, "loaded_later", importlib.import_module("loaded_later"))
    assert tried() == before
