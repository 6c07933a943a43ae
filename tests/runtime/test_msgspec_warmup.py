import subprocess
import sys

import pytest

# What a daemon does when it starts: several threads that meet the same struct for the first time.
_RACE = """
import sys, threading
import msgspec
from memd.runtime.msgspec_warmup import learn_types

sys.setswitchinterval(1e-6)

def meet(kind, start):
    start.wait()
    msgspec.convert({{"a": 1, "b": {{"f0": 1}}}}, kind)

def race(number):
    inner = msgspec.defstruct("Inner", [(f"f{{at}}", int, 0) for at in range(60)], module="{module}")
    outer = msgspec.defstruct("Outer", [("a", int), ("b", inner)], module="{module}")
    learn_types()
    start = threading.Barrier(3)
    threads = [threading.Thread(target=meet, args=(outer, start)) for _ in range(3)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

for number in range(80):
    race(number)
"""


def raced(module: str) -> int:
    """How a process ends whose threads meet structs of a module."""
    command = [sys.executable, "-c", _RACE.format(module=module)]
    return subprocess.run(command, capture_output=True, timeout=120, check=False).returncode


@pytest.mark.parametrize("module", ["memd.sources.transcripts.progress", "memd_client.messages"])
def test_threads_that_first_meet_a_type_at_once_do_not_crash(module: str) -> None:
    """It was known before there were threads."""
    assert raced(module) == 0


def test_what_nothing_can_be_decoded_to_is_passed_over() -> None:
    """A daemon has some such structs, and learns all others."""
    program = "import memd.daemon, memd.runtime.msgspec_warmup; memd.runtime.msgspec_warmup.learn_types()"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)
