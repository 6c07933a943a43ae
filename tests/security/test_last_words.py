"""What memd says when it fails itself: where, and nothing of what it worked on."""

import json
import resource
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest

from memd.ctl.__main__ import main
from memd_client import RequestFailed
from tests.daemon.process import Daemon
from tests.wait import until

SECRET = "porcupine"


@pytest.fixture
def cores() -> Iterator[int]:
    """Child processes may leave cores as large as this system allows."""
    before = resource.getrlimit(resource.RLIMIT_CORE)
    resource.setrlimit(resource.RLIMIT_CORE, (before[1], before[1]))
    yield before[1]
    resource.setrlimit(resource.RLIMIT_CORE, before)


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon that fails when it is told to; not started yet, and ended after the test."""
    one = Daemon(home, entry="tests.security.failing")
    one.write("MEMORY.md", f"The vault opens with the word {SECRET}.\n")
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def events(daemon: Daemon) -> dict[str, str]:
    """What was logged with an exception: the event, or the place of it, and the exception."""
    logged = [json.loads(line) for line in daemon.printed().splitlines() if line.startswith("{")]
    return {one.get("place", one["event"]): one["exception"] for one in logged if "exception" in one}


def test_no_failure_tells_what_it_was_about(daemon: Daemon) -> None:
    """In a request, a callback, a task, a thread and an object that goes: type and place are logged, and the daemon lives."""
    with daemon.start(), daemon.client() as client:
        client.sync()
        for way in ("callback", "task", "thread", "object"):
            client.search(f"{way} {SECRET}")
        with pytest.raises(RequestFailed) as failed:
            client.search(f"handler {SECRET}")
        assert failed.value.code == "internal"
        assert SECRET not in str(failed.value)
        # A task is told of when it is collected.
        until(lambda: client.search("vault").results and len(events(daemon)) >= 4, 20)
        assert SECRET.encode() not in msgspec.json.encode(client.status())
        assert daemon.stop() == 0
    told = events(daemon)
    assert SECRET not in daemon.printed()
    assert f"KeyError: <{len('handler ' + SECRET)} characters>" in told["server.request_failed"]
    assert "direct cause" in told["server.request_failed"]
    assert "in parse" in told["server.request_failed"]
    assert f"ValueError: <{len('thread ' + SECRET)} characters>" in told["thread"]
    assert f"ValueError: <{len('object ' + SECRET)} characters>" in told["object"]
    assert "daemon.callback_failed" in told


def test_the_end_of_the_daemon_tells_nothing_either(daemon: Daemon, cores: int) -> None:
    """What nobody can mend ends the process with status 70, and its last words are of programs only.

    It leaves no core, with its memory, nor does what it has started; whoever wants one may raise the limit.
    """
    with daemon.start():
        assert resource.prlimit(daemon.process.pid, resource.RLIMIT_CORE) == (0, cores)
        daemon.write("memory/crash.md", f"A crash about {SECRET}.\n")
        assert daemon.process.wait(60) == 70
    assert SECRET not in daemon.printed()
    [account] = [one for name, one in events(daemon).items() if name == "daemon.failed"]
    assert "LookupError: <" in account
    assert "failing.py" in account


@pytest.mark.parametrize(("argv", "status"), [(["status"], 1), (["hook", "user-prompt"], 0)])
def test_a_bug_of_memd_ctl_quotes_nothing(
    monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str], argv: list[str], status: int
) -> None:
    """Its stderr may be the log of the agent that runs it; a hook ends well all the same."""

    def run(_: object) -> None:
        raise ValueError(SECRET.upper())

    monkeypatch.setattr(f"memd.ctl.commands.{argv[0]}.run_{argv[0]}", run)
    assert main(argv) == status
    told = capfd.readouterr()
    assert told.out == ""
    assert SECRET.upper() not in told.err
    assert f"ValueError: <{len(SECRET)} characters>" in told.err
