import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import msgspec
import pytest

from memd.providers.local import bundled_model, worker
from memd.providers.local.protocol import Embedded, Passages, Ready, WorkerFrameReader, encode
from memd.providers.local.provider import COMMAND
from tests.bounds import shipped
from tests.providers import standin
from tests.providers.processes import has_ended
from tests.wait import until

Process = subprocess.Popen[bytes]


@pytest.fixture
def real() -> Iterator[Process]:
    """The real worker, in a session of its own."""
    yield from _running(COMMAND)


@pytest.fixture
def scripted() -> Iterator[Process]:
    """The scripted worker."""
    yield from _running(standin.COMMAND)


def _running(command: tuple[str, ...]) -> Iterator[Process]:
    with subprocess.Popen(
        command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0, start_new_session=True
    ) as process:
        yield process
        process.kill()


def receive(process: Process) -> Ready | Embedded:
    """The next message of a worker."""
    assert process.stdout is not None
    reader = WorkerFrameReader()
    while data := process.stdout.read(65_536):
        for body in reader.feed(data):
            message: Ready | Embedded = msgspec.msgpack.decode(body, type=Ready | Embedded)
            return message
    raise AssertionError("the worker closed its stdout")


def send(process: Process, data: bytes) -> None:
    assert process.stdin is not None
    process.stdin.write(data)


def hang_up(process: Process) -> None:
    assert process.stdin is not None
    process.stdin.close()


def test_it_greets_and_answers(real: Process) -> None:
    """The worker says what it has loaded, then gives a vector for a text under the text's id."""
    assert receive(real) == Ready(bundled_model.find().version, bundled_model.DIMENSIONS)
    send(real, encode(Passages(41, ["a note"])))
    answer = receive(real)
    assert isinstance(answer, Embedded)
    assert answer.id == 41
    assert len(answer.vectors) == 4 * bundled_model.DIMENSIONS


@pytest.mark.long
def test_it_runs_at_low_priority(real: Process) -> None:
    """Other processes go first, those of other sessions too, and the kernel takes the worker when memory is short."""
    receive(real)
    assert os.getpriority(os.PRIO_PROCESS, real.pid) == min(
        19, os.getpriority(os.PRIO_PROCESS, 0) + worker.NICE
    )
    if sys.platform == "linux":
        assert Path(f"/proc/{real.pid}/oom_score_adj").read_text().strip() == "500"
        # Only where the kernel schedules by session is there such a file.
        assert all(
            str(worker.NICE) in file.read_text() for file in Path(f"/proc/{real.pid}").glob("autogroup")
        )


if sys.platform == "linux":

    def test_it_reads_when_nobody_else_does(real: Process) -> None:
        """The kernel has all its threads, those of the engine included, in the idle class of the disk's order."""
        receive(real)
        send(real, encode(Passages(1, ["a note"])))
        receive(real)
        threads = [entry.name for entry in Path(f"/proc/{real.pid}/task").iterdir()]
        told = subprocess.run(["ionice", "-p", *threads], capture_output=True, text=True, check=True)
        assert (len(threads) > 1, set(told.stdout.split())) == (True, {"idle"})


def test_it_ends_in_the_middle_of_a_text_when_stdin_does(real: Process) -> None:
    """A daemon that is gone leaves no worker computing."""
    receive(real)
    send(real, encode(Passages(1, ["word " * 1600])))  # some seconds' work
    hang_up(real)
    assert real.wait(timeout=60) == 0
    assert real.stdout is not None
    assert real.stdout.read() == b""


if sys.platform == "linux":

    def test_the_kernel_ends_it_with_its_parent(tmp_path: Path) -> None:
        """A worker whose stdin somebody else keeps open ends with the daemon all the same."""
        code = (
            "import pathlib, subprocess, sys\n"
            "child = subprocess.Popen(sys.argv[2:])\n"
            "pathlib.Path(sys.argv[1]).write_text(str(child.pid))\n"
            "child.wait()\n"
        )
        parent = (sys.executable, "-c", code, str(tmp_path / "pid"), *standin.COMMAND)
        for daemon in _running(parent):
            receive(daemon)
            pid = int(until((tmp_path / "pid").read_text))
            daemon.kill()
            until(partial(has_ended, pid))


def test_nonsense_on_stdin_ends_it(scripted: Process) -> None:
    """A worker that does not understand its daemon ends with an error."""
    receive(scripted)
    send(scripted, b"\0\0\0\x01\xc1")
    assert scripted.wait(timeout=20) == 1


def test_an_interrupt_from_the_terminal_is_left_to_the_daemon(scripted: Process) -> None:
    """Ctrl-C does not end the worker behind the daemon's back."""
    receive(scripted)
    scripted.send_signal(signal.SIGINT)
    send(scripted, encode(Passages(1, ["still here"])))
    assert isinstance(receive(scripted), Embedded)


def test_prints_do_not_reach_the_daemon(scripted: Process) -> None:
    """What a library writes to stdout is no part of the answers."""
    receive(scripted)
    send(scripted, encode(Passages(1, ["print"])))
    answer = receive(scripted)
    assert isinstance(answer, Embedded)
    assert answer.vectors == standin.vector_of("print").tobytes()


def test_the_engine_gets_some_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    """One for each core, at most what still helps."""
    most = shipped("memd.providers.local.worker.MAX_THREADS")
    monkeypatch.setattr(sys, "platform", "linux")
    for cores, threads in ((1, 1), (most, most), (most + 1, most)):
        monkeypatch.setattr(os, "sched_getaffinity", lambda _, cores=cores: set(range(cores)), raising=False)
        assert worker.engine_threads() == threads
