import shutil
import signal
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import psutil
import pytest

from tests.mutants.copies import ROOT, Children, Copy, Mutant
from tests.mutants.faults import Fault
from tests.mutants.recording import KeptRecordings, Recording
from tests.mutants.trials import Ended, Outcome
from tests.wait import until

pytestmark = pytest.mark.long  # a tool of developers, which is slow: each test starts others

_SOURCE = """\
LIMIT = 3
SMALL = [n for n in range(9) if n < LIMIT]
if LIMIT > 8:
    raise ValueError

def halves(number, *, up=True):
    if up:
        return (number + 1) // 2
    return number // 2

def rest(number):
    while number >= LIMIT:
        number -= LIMIT
    return number

def started():
    import subprocess
    return subprocess.Popen(["sleep", "99"], start_new_session=True).pid

def unused():
    return 0

def status():
    return 5
"""
_TESTS = """\
from pathlib import Path
from memd import numbers
from tests.otheruser import as_other_user

def test_halves():
    assert not Path(__file__).with_name("broken").exists()
    assert numbers.halves(3) == 2

def test_rest():
    assert numbers.rest(7) == 1

def test_small():
    assert len(numbers.SMALL) == 3

def test_started():
    pid = numbers.started()
    with Path(__file__).with_name("pids").open("a") as pids:
        print(pid, file=pids)
    assert pid

def test_status():
    assert numbers.status()

def test_elsewhere():
    assert as_other_user("memd.numbers", "status") == 5
"""
# Coverage sees nothing of what the other process executes.
_OTHER_USER = """\
import importlib
import os

def as_other_user(module, function):
    if (pid := os.fork()) == 0:
        os._exit(getattr(importlib.import_module(module), function)())
    return os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1])
"""
_PLACES = ("tests/numbers",)


@pytest.fixture(scope="module")
def checkout(tmp_path_factory: pytest.TempPathFactory) -> Path:
    made = tmp_path_factory.mktemp("checkout")
    for name, text in {
        "pyproject.toml": "[tool.pytest.ini_options]\nfaulthandler_exit_on_timeout = true\n",
        "memd/__init__.py": "",
        "memd/numbers.py": _SOURCE,
        "tests/__init__.py": "",
        "tests/otheruser.py": _OTHER_USER,
        "tests/numbers/test_numbers.py": _TESTS,
    }.items():
        (made / name).parent.mkdir(exist_ok=True, parents=True)
        (made / name).write_text(text, "utf-8")
    shutil.copytree(ROOT / "tests" / "mutants", made / "tests" / "mutants")
    return made


@pytest.fixture(scope="module")
def children() -> Children:
    return Children()


@pytest.fixture(scope="module")
def copy(checkout: Path, children: Children) -> Iterator[Copy]:
    copy = Copy(checkout, children, patience_s=60, test_s=3, process_s=6)
    yield copy
    copy.end()


@pytest.fixture(scope="module")
def recording(checkout: Path, copy: Copy) -> Recording:
    kept = KeptRecordings(checkout / "recordings", checkout)
    copy.record(kept.missing(_PLACES), file := kept.new())
    return kept.of(_PLACES, file)


def _mutant(old: str, new: str) -> Mutant:
    start = _SOURCE.index(old)
    return Mutant(
        "memd/numbers.py", _SOURCE, Fault(start, start + len(old), new, _SOURCE[:start].count("\n") + 1)
    )


@pytest.mark.rows(5)
@pytest.mark.parametrize(
    ("old", "new", "outcome", "test"),
    [
        ("number + 1", "number - 1", Outcome.NOTICED, "halves"),
        ("number // 2\n", "number * 2\n", Outcome.MISSED, ""),  # no test executes it: all are tried
        ("number >= LIMIT", "number > LIMIT", Outcome.MISSED, ""),  # 7 does not tell
        ("number -= LIMIT", "pass", Outcome.NOTICED, "rest"),  # it never ends
        ("number -= LIMIT", "input(open('/dev/zero').read)", Outcome.NOTICED, "rest"),
        (
            "number -= LIMIT",
            "(__import__('signal').pthread_sigmask(0, [14]), __import__('time').sleep(999))",
            Outcome.NOTICED,
            "rest",
        ),  # nor so; asleep, since to print what a running thread executes may crash
        ("number -= LIMIT", "__import__('os').kill(0, 9)", Outcome.UNKNOWN, "rest"),
        # What is executed once, while modules are loaded.
        ("up=True", "up=False", Outcome.NOTICED, "halves"),
        ("n < LIMIT", "n <= LIMIT", Outcome.NOTICED, "small"),
        ("LIMIT = 3", "LIMIT = 9", Outcome.NOTICED, ""),  # it cannot be imported
        ("LIMIT > 8", "LIMIT >= 8", Outcome.MISSED, ""),
        ("return 0", "return 1", Outcome.MISSED, ""),
        ("return 5", "return 6", Outcome.NOTICED, "elsewhere"),  # another test executes it here, which passes
    ],
)
def test_how_the_tests_end_with_a_fault(
    copy: Copy, recording: Recording, checkout: Path, old: str, new: str, outcome: Outcome, test: str
) -> None:
    """One that some test notices, be it that the test never ends, one that none does, and one with which something kills them."""
    ended = copy.ended(_mutant(old, new), _PLACES, recording)
    assert ended == Ended(outcome, f"tests/numbers/test_numbers.py::test_{test}" if test else "")
    assert (checkout / "memd" / "numbers.py").read_text("utf-8") == _SOURCE


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a process that lost its parent is nobody's")
def test_what_a_test_started_ends_with_it(copy: Copy, recording: Recording, checkout: Path) -> None:
    pids = checkout / "tests" / "numbers" / "pids"
    pids.unlink()
    assert copy.ended(_mutant('"99"', '"98"'), _PLACES, recording).outcome is Outcome.MISSED
    assert [psutil.pid_exists(int(pid)) for pid in pids.read_text("utf-8").split()] == [False]


def test_a_failure_that_the_fault_did_not_cause_tells_nothing(
    copy: Copy, recording: Recording, checkout: Path
) -> None:
    """Such as one of a machine that is too busy."""
    broken = checkout / "tests" / "numbers" / "broken"
    broken.touch()
    ended = copy.ended(_mutant("number + 1", "number - 1"), _PLACES, recording)
    broken.unlink()
    assert ended == Ended(Outcome.UNKNOWN, "tests/numbers/test_numbers.py::test_halves")


def test_a_run_that_ends_before_it_has_recorded_anything_is_told(checkout: Path, tmp_path: Path) -> None:
    """As pytest ends its process where a test hangs: with the status of tests that have failed."""
    hanging = checkout / "tests" / "numbers" / "test_hanging.py"
    hanging.write_text("import os\n\ndef test_hanging():\n    os._exit(1)\n", "utf-8")
    try:
        with pytest.raises(SystemExit, match=r"do not end \(1\): pytest tests/numbers/test_hanging.py"):
            Copy(checkout, Children()).record(["tests/numbers/test_hanging.py"], tmp_path / "recorded")
    finally:
        hanging.unlink()


def test_how_a_program_ended_is_told_and_what_it_started_ends_with_it() -> None:
    """By itself, by a signal, or not in its time; who is told to end starts no more."""
    children = Children()
    assert children.run(["sh", "-c", "exit 3"], 20) == 3
    assert children.run(["sh", "-c", "kill -SEGV $$"], 20) == -signal.SIGSEGV
    assert children.run(["sh", "-c", "sleep 99 & wait"], 0.01) is None
    with ThreadPoolExecutor(1) as pool:
        running = pool.submit(children.run, ["sh", "-c", "echo; sleep 99 & wait"], 60)
        until(lambda: children.count)
        children.end()
        assert running.result(20) == -signal.SIGKILL
    assert children.count == 0
    with pytest.raises(SystemExit):
        children.run(["true"], 20)
