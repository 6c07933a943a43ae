"""Whether the daemon runs, answers, and is the one that should."""

import os
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from memd import VERSION
from memd.config.reload import digest
from memd.config.settings import AgentSettings, Config, DaemonSettings
from memd.ctl.doctor import daemon
from memd.ctl.doctor.daemon import DaemonProcesses, check
from memd.ctl.doctor.socket import SocketAnswer
from memd_client.errors import ConnectionLost, DaemonNotRunning, MemdClientError, ProtocolMismatch, TimedOut
from memd_client.messages import PROTOCOL, Memory, StatusReport
from tests.bounds import shipped
from tests.ctl.answers import agent, status
from tests.ctl.doctor.context import CONTEXT, by_name
from tests.table import table

_NOW = 1_000_000.0
_FILE = Path("/home/ann/.config/memd/config.toml")
_CONFIG = Config(
    daemon=DaemonSettings(), agents={"main": AgentSettings(workspace=Path("/home/ann/notes"))}, file=_FILE
)
_PROCESS = DaemonProcesses(
    state_holder=4711, socket_holder=4711, others=(4711,), interpreters={4711: "/venv/bin/python"}
)


def _report(**changed: Any) -> StatusReport:
    said = {"version": VERSION, "protocol": PROTOCOL, "config_digest": digest(_CONFIG)}
    return status(agent(sources=["memory"]), **(said | changed))


def _bad(
    answer: SocketAnswer | None, process: DaemonProcesses = _PROCESS, config: Config | None = _CONFIG
) -> set[str]:
    found = by_name(check(answer, process, config, CONTEXT, now=_NOW, executable="/venv/bin/python"))
    assert list(found) == [
        "daemon.process",
        "daemon.version",
        "daemon.config",
        "daemon.health",
        "daemon.sole",
    ]
    return {name.removeprefix("daemon.") for name, one in found.items() if not one.ok}


@pytest.mark.parametrize(
    ("changed", "bad"),
    [
        ({}, set()),
        ({"version": "0.0.9"}, {"version"}),
        ({"protocol": PROTOCOL + 1}, {"version"}),
        ({"config": "/etc/other.toml"}, {"config"}),
        ({"config": None}, {"config"}),
        ({"config_error": "config.toml:1: nonsense"}, {"config"}),
        ({"pid": 1}, set()),  # in a container, seen from its host
        ({"memory": Memory(daemon_mb=90)}, set()),
        ({"config_waiting": ["agents.main.scope.default"]}, {"config"}),
        ({"config_digest": ""}, set()),  # of an older daemon
        ({"memory": Memory(daemon_mb=90, trouble="too much")}, {"health"}),
    ],
)
def test_a_daemon_that_answers_is_compared_with_this_client(changed: dict[str, Any], bad: set[str]) -> None:
    """Its version, its configuration, and that it is the one that keeps the state directory."""
    assert _bad(SocketAnswer(report=_report(**changed))) == bad


_COUNTS_FROM = _NOW - 11_520 + shipped("memd.ctl.doctor.daemon._START_TOLERANCE_S")


@pytest.mark.parametrize(
    ("code_at", "ok"),
    [
        (0.0, True),
        (_NOW - 11_520, True),
        (_COUNTS_FROM, True),
        (_COUNTS_FROM + 0.01, False),
        (_NOW - 11_000, False),
        (_NOW + 500, True),
    ],
)
def test_a_daemon_older_than_its_code_is_told(code_at: float, *, ok: bool) -> None:
    """It was started 11,520 s ago, give or take the time it needs to load. Code from the future tells nothing."""
    process = msgspec.structs.replace(_PROCESS, code_at=code_at)
    assert _bad(SocketAnswer(report=_report()), process) == (set() if ok else {"version"})


def test_a_daemon_of_another_installation_of_the_same_version_is_named() -> None:
    """That is no fault."""
    process = msgspec.structs.replace(_PROCESS, interpreters={4711: "/old/bin/python"})
    found = check(
        SocketAnswer(report=_report()), process, _CONFIG, CONTEXT, now=_NOW, executable="/venv/bin/python"
    )
    assert "/old/bin/python" in found[1].detail
    assert found[1].ok


def _others(settings: msgspec.Struct) -> Iterator[tuple[str, msgspec.Struct]]:
    """The settings with one of them changed, for each."""
    for name in settings.__struct_fields__:
        value = getattr(settings, name)
        if isinstance(value, msgspec.Struct):
            for below, other in _others(value):
                yield f"{name}.{below}", msgspec.structs.replace(settings, **{name: other})
        else:
            # Of whatever type: what the file says is compared, and not whether it could be said.
            yield name, msgspec.structs.replace(settings, **{name: "another value"})


@table(("name", "settings"), [*_others(AgentSettings(workspace=Path("/home/ann/notes")))])
def test_a_configuration_that_was_not_read_again_is_told(name: str, settings: AgentSettings) -> None:
    """Whatever of it is another."""
    config = msgspec.structs.replace(_CONFIG, agents={"main": settings})
    assert _bad(SocketAnswer(report=_report()), config=config) == {"config"}, name


def test_what_waits_is_named_with_the_command_that_brings_it_into_force() -> None:
    """A person changed it, or an agent that may write the file."""
    report = _report(config_waiting=["agents.main.scope.default", "agents.main.provider"])
    found = check(
        SocketAnswer(report=report), _PROCESS, _CONFIG, CONTEXT, now=_NOW, executable="/venv/bin/python"
    )
    assert "agents.main.scope.default, agents.main.provider" in found[2].detail
    assert "reload" in (found[2].fix or "")


@pytest.mark.parametrize("name", ["python", "python3", "python3.11"])
def test_one_installation_has_several_names(name: str) -> None:
    """A service is started under another than a console script."""
    process = msgspec.structs.replace(_PROCESS, interpreters={4711: f"/venv/bin/{name}"})
    found = check(
        SocketAnswer(report=_report()), process, _CONFIG, CONTEXT, now=_NOW, executable="/venv/bin/python"
    )
    assert "another installation" not in found[1].detail


def test_a_daemon_that_cannot_be_seen_from_here_is_no_second_one() -> None:
    """It runs in a container whose state directory and socket are shared."""
    process = DaemonProcesses(is_state_held=True, others=())
    assert _bad(SocketAnswer(report=_report(pid=1)), process) == set()


def test_a_daemon_is_not_said_to_be_elsewhere_where_that_is_not_known(tmp_path: Path) -> None:
    """On a busy machine, what the system knows may come too late."""
    places = msgspec.structs.replace(CONTEXT.places, state=tmp_path)
    context = msgspec.structs.replace(CONTEXT, places=places)
    found = by_name(check(SocketAnswer(report=_report()), None, _CONFIG, context, now=_NOW, executable="x"))
    assert all(one.ok for one in found.values())
    assert found["daemon.sole"].detail.startswith("not checked")


def test_a_configuration_that_is_wrong_is_told_elsewhere() -> None:
    """The daemon goes on with the one it has."""
    assert _bad(SocketAnswer(report=_report()), config=None) == set()


@pytest.mark.parametrize(
    ("error", "holder", "bad", "says"),
    [
        (DaemonNotRunning("/s"), None, {"process"}, "does not run"),
        (DaemonNotRunning("/s"), 4711, {"process"}, "runs (pid 4711), but not at this socket"),
        (TimedOut(5.0), 4711, {"process"}, "does not answer within 5 s"),
        (TimedOut(5.0), None, {"process"}, "no daemon answers"),
        (ConnectionLost("x"), 4711, {"process"}, "does not answer as it should"),
        (ProtocolMismatch(PROTOCOL, PROTOCOL + 1), 4711, {"version"}, "runs (pid 4711)"),
        (ProtocolMismatch(PROTOCOL, PROTOCOL - 1), 4711, {"version"}, "runs (pid 4711)"),
    ],
)
def test_why_no_daemon_answers_is_told(
    error: MemdClientError, holder: int | None, bad: set[str], says: str
) -> None:
    """By what came from the socket, and by who holds the state directory."""
    process = msgspec.structs.replace(_PROCESS, state_holder=holder, socket_holder=holder)
    assert _bad(SocketAnswer(error=error), process) == bad
    found = check(SocketAnswer(error=error), process, _CONFIG, CONTEXT, now=_NOW, executable="x")
    assert says in found[0].detail


def test_an_attempt_without_an_end_is_told() -> None:
    """As where the socket lies on a dead mount."""
    assert _bad(None, DaemonProcesses()) == {"process"}


def test_two_daemons_that_hold_one_half_each_are_told() -> None:
    """One the socket, the other the state directory; others elsewhere are only named."""
    crossed = msgspec.structs.replace(_PROCESS, socket_holder=9)
    assert _bad(SocketAnswer(error=TimedOut(5.0)), crossed) == {"process", "sole"}
    beside = msgspec.structs.replace(_PROCESS, others=(4711, 9))
    assert _bad(SocketAnswer(report=_report()), beside) == set()


def test_the_newest_code_is_that_of_this_installation() -> None:
    """Not younger than the file of this very part."""
    assert daemon.newest_code() >= Path(daemon.__file__).stat().st_mtime


def test_code_is_as_new_as_its_installation(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Though an installer keeps the times of files: it makes the directory that tells of the installation."""
    at = daemon.newest_code()
    files = []
    for name, newer_s in (("METADATA", 1000), ("RECORD", 2000)):
        directory = tmp_path / name
        directory.mkdir()
        os.utime(directory, (at + newer_s, at + newer_s))
        files.append(SimpleNamespace(name=name, locate=partial(Path, directory, name)))
    monkeypatch.setattr("importlib.metadata.distribution", lambda _: SimpleNamespace(files=files))
    assert daemon.newest_code() == pytest.approx(at + 1000, abs=1)
