"""What a service manager hears from a real daemon, and how fast it obeys."""

import os
import random
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.daemon.contents import contents
from tests.daemon.manager import Manager, managed
from tests.daemon.observed import ends_within_s, spent_s
from tests.daemon.process import Daemon
from tests.wait import until


@pytest.fixture
def manager(daemon: Daemon) -> Iterator[Manager]:
    """The service manager of the daemon."""
    with managed(daemon) as one:
        yield one


def test_tells_its_life_from_ready_to_stopping(daemon: Daemon, manager: Manager) -> None:
    """READY=1 comes once the socket answers, pings come twice in their time, STOPPING=1 comes last."""
    daemon.start(environ={"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": "100000"})
    until(lambda: len(manager.states("WATCHDOG")) >= 3)
    assert manager.answered_when_ready
    assert "READY" in manager.heard[0]
    assert manager.states("READY") == ["1"]
    assert daemon.stop() == 0
    until(lambda: manager.states("STOPPING"))
    assert manager.heard[-1] == {"STOPPING": "1"}
    assert manager.states("STATUS")[-1] == "ready"


def test_a_watchdog_that_is_not_meant_for_it_is_not_fed(daemon: Daemon, manager: Manager) -> None:
    """Without WATCHDOG_USEC, or with one for another process, no ping is sent."""
    environ = {"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": "100000", "WATCHDOG_PID": "1"}
    daemon.start(environ=environ)
    daemon.stop()
    until(lambda: manager.states("STOPPING"))
    assert manager.states("WATCHDOG") == []


def test_a_reload_is_told_from_beginning_to_end(daemon: Daemon, manager: Manager) -> None:
    """SIGHUP: RELOADING=1 with the time, then READY=1 again, for a file that is refused as well."""
    daemon.start(environ={"NOTIFY_SOCKET": str(manager.address)})
    for number, settings in enumerate(["max_file_mb = 1", "no_such_key = 1"], 1):
        daemon.configure(settings)
        daemon.process.send_signal(signal.SIGHUP)
        wait_for(manager, 1 + number)
    assert manager.states("RELOADING") == ["1", "1"]
    assert all(stamp.isdecimal() for stamp in manager.states("MONOTONIC_USEC"))


def wait_for(manager: Manager, times: int) -> None:
    """Wait until the daemon has said so often that it is ready."""
    until(lambda: len(manager.states("READY")) == times)


@pytest.fixture
def program(home: Path) -> Iterator[Daemon]:
    """A daemon whose processor time is known when it has ended."""
    one = Daemon(home, forked=False)
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def heavy(daemon: Daemon) -> None:
    """A workspace that takes many seconds to index."""
    rng = random.Random(9)
    words = [f"word{number}" for number in range(5000)]
    memory = daemon.workspace / "memory"
    for number in range(60):
        text = "\n\n".join(" ".join(rng.choices(words, k=60)) for _ in range(500))
        (memory / f"{number:02}.md").write_text(text)


def test_status_counts_and_a_stop_in_heavy_indexing_is_quick(program: Daemon) -> None:
    """While megabytes are indexed, STATUS tells how far it is; SIGTERM ends it before they are, every file old or new."""
    heavy(program)
    with managed(program) as manager:
        program.start(environ={"NOTIFY_SOCKET": str(manager.address), "WATCHDOG_USEC": "100000"})
        until(lambda: any("indexing main " in status for status in manager.states("STATUS")), 20)
    with program.client() as client:
        until(lambda: client.status().agents["main"].files > 3, 20)
    assert ends_within_s(program) < 2
    indexed = contents(program.state / "agents" / "main.sqlite")
    assert 3 < len(indexed) < 60
    sizes = {len(chunks) for chunks in indexed.values()}
    assert min(sizes) > 100


@pytest.mark.long
def test_one_huge_file_does_not_hold_up_a_stop(program: Daemon) -> None:
    """SIGTERM in the middle of a file of many megabytes: nothing of it is in the index, and it is not cut to its end."""
    program.write("memory/huge.md", "\n" * 15_000_000)
    program.start()
    # It is being cut, which takes longer than a stop may.
    until(lambda: spent_s(program) > 1.5, 20)
    with program.client() as client:
        assert client.status().agents["main"].files == 0
    assert ends_within_s(program) < 2
    assert contents(program.state / "agents" / "main.sqlite") == {}
    assert not program.socket.exists()


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_a_second_signal_does_no_harm(daemon: Daemon, number: signal.Signals) -> None:
    """Impatience ends in the same clean stop."""
    daemon.start()
    for _ in range(3):
        os.kill(daemon.process.pid, number)
    assert daemon.process.wait(60) == 0
    assert not daemon.socket.exists()
