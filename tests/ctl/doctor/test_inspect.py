"""Asking an inspection in a process of its own."""

import os
import sys
import time

import pytest

from memd.ctl.doctor.inspect import InspectionAnswer, ask, command_for
from memd.inspection.facts import Disk, Engine, InspectionEnd, InspectionRequest

_QUESTION = InspectionRequest(config=None, home="/", state="/nowhere", patience_s=5.0, now=0.0)
_DISK = '{"fact":"disk","kind":"ext4","point":"/","is_remote":false}'
_SAY = f"""print('{{"fact":"begun"}}'); print('{_DISK}', flush=True);"""


def _asked(script: str, patience_s: float = 30.0) -> InspectionAnswer:
    return ask([sys.executable, "-c", f"import os, sys, time; {script}"], _QUESTION, os.environ, patience_s)


def test_what_it_finds_comes_back() -> None:
    """Of the real one, as values."""
    answer = ask(command_for("engine"), _QUESTION, os.environ, 30.0)
    assert answer.trouble is None
    [engine] = answer.of(Engine)
    assert engine.keywords is None


@pytest.mark.parametrize(
    ("script", "trouble"),
    [
        ("os.kill(os.getpid(), 4)", "was ended by SIGILL"),
        ("import no_such_module", "cannot be tried: No module named 'no_such_module'"),
        ("raise ValueError('what a note says')", "failed with ValueError"),
        ("sys.exit(3)", "ended with exit status 3"),
    ],
)
def test_how_it_ended_is_told(script: str, trouble: str) -> None:
    """With what it had found by then, and without what an error says that may hold anything."""
    answer = _asked(_SAY + script)
    assert answer.trouble == trouble
    assert [fact.kind for fact in answer.of(Disk)] == ["ext4"]


def test_one_that_hangs_is_ended() -> None:
    """What it had found by then is there."""
    began = time.monotonic()
    answer = _asked(_SAY + "time.sleep(60)", patience_s=1.0)
    assert answer.trouble == "gave no answer within 1 s"
    assert answer.of(Disk)
    assert time.monotonic() - began < 20


def test_the_end_is_what_it_says_and_not_when_it_ends() -> None:
    """A process with a thread on a dead disk cannot be ended, but has said all it will."""
    answer = _asked(_SAY + """print('{"fact":"end"}', flush=True); time.sleep(60)""", patience_s=50.0)
    assert answer.trouble is None
    assert answer.of(InspectionEnd)
