"""The signals of the daemon, and its types of msgspec before there are threads."""

import asyncio
import errno
import os
import resource
import signal
import socket
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from types import SimpleNamespace

import pytest
from structlog.testing import capture_logs

from memd.errors import FatalError, MemdError
from memd.runtime.process import (
    LOOKUPS,
    DaemonEventLoop,
    SignalAction,
    Signals,
    bound_stop_time,
    callback_failed,
    ended,
    find_places,
    open_files,
    prepare,
    report_end,
)
from memd.runtime.threads import NoThread
from tests.bounds import shipped

# What a daemon does when it starts: several threads that meet the same struct for the first time.
_RACE = """
import sys, threading
import msgspec
from memd.runtime.process import learn_types

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


@pytest.mark.parametrize("module", ["memd.sources.transcripts.read_position", "memd_client.messages"])
def test_threads_that_first_meet_a_type_at_once_do_not_crash(module: str) -> None:
    """It was known before there were threads."""
    assert raced(module) == 0


def test_no_garbage_is_looked_for_in_what_was_imported() -> None:
    """Neither while a daemon imports its modules, nor afterwards; and in what comes then it is."""
    program = (
        "import gc, sys; gc.disable(); import memd.daemon; from memd.runtime.process import COLLECT, prepare; prepare()\n"
        "print(gc.isenabled(), any(one is vars(memd.daemon) for one in gc.get_objects()), gc.get_freeze_count() > 10_000)\n"
        "print(gc.get_threshold() == COLLECT, sys.getswitchinterval())"
    )
    printed = subprocess.run([sys.executable, "-c", program], timeout=60, check=True, stdout=subprocess.PIPE)
    switch_s = str(shipped("memd.runtime.process.SWITCH_S")).encode()
    assert printed.stdout.split() == [b"True", b"False", b"True", b"True", switch_s]


def test_what_nothing_can_be_decoded_to_is_passed_over() -> None:
    """A daemon has some such structs, and learns all others."""
    program = "import memd.daemon, memd.runtime.process; memd.runtime.process.learn_types()"
    subprocess.run([sys.executable, "-c", program], timeout=60, check=True)


MOST_FILES = shipped("memd.runtime.process.OPEN_FILES")
NO_LIMIT = resource.RLIM_INFINITY


@pytest.mark.parametrize(
    ("before", "after"),
    [
        ((1024, NO_LIMIT), (MOST_FILES, NO_LIMIT)),
        ((1024, MOST_FILES + 1), (MOST_FILES, MOST_FILES + 1)),
        ((1024, 4096), (4096, 4096)),
        ((MOST_FILES + 1, NO_LIMIT), (MOST_FILES + 1, NO_LIMIT)),
        ((NO_LIMIT, NO_LIMIT), (NO_LIMIT, NO_LIMIT)),
    ],
)
def test_as_many_files_may_be_open_as_are_needed(
    monkeypatch: pytest.MonkeyPatch, before: tuple[int, int], after: tuple[int, int]
) -> None:
    """Never fewer than before; where there is no limit, memd counts on as many as it would ask for."""
    limits = {resource.RLIMIT_NOFILE: before, resource.RLIMIT_CORE: (NO_LIMIT, NO_LIMIT)}
    monkeypatch.setattr("memd.runtime.process.resource.getrlimit", limits.__getitem__)
    monkeypatch.setattr("memd.runtime.process.resource.setrlimit", limits.__setitem__)
    mask = os.umask(0o022)
    try:
        prepare()
    finally:
        after_mask = os.umask(mask)
    assert after_mask == 0o077, "what memd writes is for its user alone"
    assert limits == {resource.RLIMIT_NOFILE: after, resource.RLIMIT_CORE: (0, NO_LIMIT)}
    assert open_files() == (MOST_FILES if after[0] == NO_LIMIT else after[0])


_LEAVES = """
import atexit, sys, threading
from memd.runtime.process import exit_now

class Stream:
    def flush(self):
        raise OSError("the disk is full")

atexit.register(print, "Python's own end")
threading.Thread(target=threading.Event().wait).start()
print("said before")
sys.stderr = Stream()
exit_now(3)
"""


def test_a_process_leaves_whatever_its_threads_are_at() -> None:
    """With its status, and with all that it said: Python's own end would wait for threads, or break them off in C++."""
    buffered = os.environ | {"PYTHONUNBUFFERED": ""}
    ran = subprocess.run(
        [sys.executable, "-c", _LEAVES], env=buffered, capture_output=True, timeout=60, check=False
    )
    assert (ran.returncode, ran.stdout, ran.stderr) == (3, b"said before\n", b"")


@pytest.mark.parametrize("address", ["/", "/" + "x" * 200])
def test_a_path_that_no_socket_can_have_is_told_before_the_start(address: str, tmp_path: Path) -> None:
    """With the status of a wrong configuration, and what to do."""
    with pytest.raises(FatalError, match="Set MEMD_SOCKET") as refused:
        find_places(None, tmp_path, Path(address))
    assert refused.value.exit_code == 78


def test_so_many_names_are_looked_up_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """More wait for those: a resolver that does not answer takes no more threads."""
    begun, may_end, asked = threading.Semaphore(0), threading.Event(), list[object]()

    def slowly(*what: object) -> list[object]:
        asked.append(what)
        begun.release()
        may_end.wait(60)
        return []

    async def look_up() -> None:
        loop = asyncio.get_running_loop()
        lookups = [asyncio.create_task(loop.getaddrinfo("localhost", 80)) for _ in range(LOOKUPS + 1)]
        await asyncio.to_thread(lambda: [begun.acquire(timeout=60) for _ in range(LOOKUPS)])
        assert not begun.acquire(blocking=False)
        may_end.set()
        assert await asyncio.gather(*lookups) == [[]] * len(lookups)

    monkeypatch.setattr(socket, "getaddrinfo", slowly)
    with asyncio.Runner(loop_factory=DaemonEventLoop) as runner:
        runner.run(look_up())
    assert asked == [("localhost", 80, 0, 0, 0, 0)] * (LOOKUPS + 1)


@pytest.mark.parametrize(
    ("message", "logged"),
    [
        ("Exception in callback f('my password') at x.py:1", "Exception in callback f"),
        (
            "Future exception was never retrieved\nfuture: <Future my password>",
            "Future exception was never retrieved",
        ),
        ("Task was destroyed but it is pending!", "Task was destroyed but it is pending!"),
    ],
)
async def test_what_the_event_loop_reports_is_logged_without_values(message: str, logged: str) -> None:
    """Its message ends in the arguments of a call, or in a result, which may be memory."""
    failure = ValueError("no")
    with capture_logs() as logs:
        callback_failed(asyncio.get_running_loop(), {"message": message, "exception": failure})
    assert logs == [
        {"event": "daemon.callback_failed", "log_level": "error", "what": logged, "exc_info": failure}
    ]


@pytest.mark.parametrize(
    ("action", "expected"), [(SignalAction.STOP, "ended with 0"), (SignalAction.RESTART, "begun anew")]
)
def test_a_daemon_that_does_not_stop_in_its_time_ends_or_begins_anew(
    monkeypatch: pytest.MonkeyPatch, action: SignalAction, expected: str
) -> None:
    """As it was told to, whatever its threads are at."""
    did, deadlines = list[str](), list[SimpleNamespace]()

    def timer(seconds: float, end: Callable[[], None]) -> SimpleNamespace:
        deadlines.append(SimpleNamespace(seconds=seconds, start=end, daemon=False))
        return deadlines[-1]

    monkeypatch.setattr("memd.runtime.process.threading.Timer", timer)
    monkeypatch.setattr("memd.runtime.process.run_anew", lambda: did.append("begun anew"))
    monkeypatch.setattr("memd.runtime.process.os._exit", lambda status: did.append(f"ended with {status}"))
    bound_stop_time(action)
    assert did == [expected]
    assert [(one.seconds, one.daemon) for one in deadlines] == [
        (shipped("memd.runtime.process.STOP_S"), True)
    ]


def test_where_no_thread_can_watch_the_stop_the_system_ends_the_process(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """By a signal that nothing handles."""
    did = list[tuple[object, ...]]()

    def no_thread(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    monkeypatch.setattr("memd.runtime.process.threading.Timer.start", no_thread)
    monkeypatch.setattr("memd.runtime.process.signal.signal", lambda *what: did.append(what))
    monkeypatch.setattr("memd.runtime.process.signal.setitimer", lambda *what: did.append(what))
    bound_stop_time(SignalAction.STOP)
    monkeypatch.undo()
    stop_s = shipped("memd.runtime.process.STOP_S")
    assert did == [(signal.SIGALRM, signal.SIG_DFL), (signal.ITIMER_REAL, stop_s)]


def test_a_name_that_no_thread_can_look_up_is_a_failure_of_the_network(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """It may be tried again, as any other."""

    async def no_thread(*_: object) -> None:
        raise NoThread("too many threads are running")

    async def look_up() -> None:
        with pytest.raises(OSError, match="too many threads") as raised:
            await asyncio.get_running_loop().getaddrinfo("localhost", 80)
        assert raised.value.errno == errno.EAGAIN

    monkeypatch.setattr("memd.runtime.process.Threads.run", no_thread)
    with asyncio.Runner(loop_factory=DaemonEventLoop) as runner:
        runner.run(look_up())


async def test_wishes_come_in_their_order() -> None:
    """SIGHUP asks for a reload, SIGTERM and SIGINT for the end."""
    signals = Signals(asyncio.get_running_loop())
    for number, wish in (
        (signal.SIGHUP, SignalAction.RELOAD),
        (signal.SIGTERM, SignalAction.STOP),
        (signal.SIGINT, SignalAction.STOP),
    ):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(60):
            assert await signals.next() is wish


async def test_a_stop_is_heard_before_anybody_asks() -> None:
    """What is to happen at once on a stop happens at once, and not on a reload; several reloads are one."""
    heard: list[SignalAction] = []
    stopping = asyncio.Event()

    def on_stop(action: SignalAction) -> None:
        heard.append(action)
        stopping.set()

    signals = Signals(asyncio.get_running_loop(), on_stop)
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
        os.kill(os.getpid(), number)
    async with asyncio.timeout(60):
        await stopping.wait()
        assert heard == [SignalAction.STOP]
        assert await signals.next() is SignalAction.STOP


def test_a_restart_is_the_service_managers_where_there_is_one() -> None:
    """It sees a status of its own; to stop and to reload are memd's in any case."""
    for action in SignalAction:
        assert ended(action, is_managed=False) is action
        if action is not SignalAction.RESTART:
            assert ended(action, is_managed=True) is action
    with pytest.raises(FatalError, match="another version of memd") as raised:
        ended(SignalAction.RESTART, is_managed=True)
    assert raised.value.exit_code == os.EX_UNAVAILABLE


BUG = ValueError("nobody foresaw this")
BUSY, TROUBLE = FatalError("another daemon runs", exit_code=75), MemdError("the disk is full")


@pytest.mark.parametrize(
    ("failure", "status", "said"),
    [
        (BUSY, 75, "memd: another daemon runs\n"),
        (TROUBLE, 70, "memd: the disk is full\n"),
        (BUG, 70, ""),
        (BaseExceptionGroup("", [TROUBLE]), 70, "memd: the disk is full\n"),
        (BaseExceptionGroup("", [BUG, BaseExceptionGroup("", [BUSY])]), 75, "memd: another daemon runs\n"),
        (BaseExceptionGroup("", [TROUBLE, BUG]), 70, ""),
        (BaseExceptionGroup("", [BUG]), 70, ""),
    ],
)
def test_why_a_daemon_ends_is_told_in_one_line_or_with_where_it_failed(
    capsys: pytest.CaptureFixture[str], failure: BaseException, status: int, said: str
) -> None:
    """Whatever else failed with it; what nobody foresaw is in the log."""
    with capture_logs() as logs:
        assert report_end(failure) == status
    assert capsys.readouterr().err == said
    assert [one["exc_info"] for one in logs if one["event"] == "daemon.failed"] == [failure] * (not said)


def test_what_is_not_said_of_the_places_is_where_it_is_usually(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A socket lies with the state that is named; each place is absolute, wherever memd is started."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setenv("MEMD_STATE_DIR", "/usual")
    monkeypatch.delenv("MEMD_SOCKET", raising=False)
    usual = find_places(None, None, None)
    assert (usual.config, usual.state) == (None, Path("/usual"))
    named = find_places(Path("c.toml"), Path("mine"), Path("s"))
    assert named.state == tmp_path / "mine"
    assert (named.config, named.socket) == (Path("c.toml"), tmp_path / "s")
    with pytest.raises(FatalError) as raised:
        find_places(None, None, Path("s" * 200))
    assert raised.value.exit_code == 78
