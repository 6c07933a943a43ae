"""What is said to launchd, and understood of it."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from memd.ctl.failures import Failed, UsageError
from memd.ctl.invocation import Places
from memd.ctl.service.launchd import of_user
from memd.ctl.service.manager import run_commands
from memd.ctl.service.supervisor import ManagedService, ManagerCommand, author, launch
from tests.bounds import shipped
from tests.clock import Clock

HOME = Path("/Users/ann")
PLACES = Places(home=HOME, config=None, state=HOME / "st", socket=HOME / "s")
OURS = of_user(HOME, 501)
PLIST = "/Users/ann/Library/LaunchAgents/local.memd.plist"

_RUNNING = f"""gui/501/local.memd = {{
\tactive count = 1
\tpath = {PLIST}
\ttype = LaunchAgent
\tstate = running

\tprogram = /venv/bin/python3
\tpid = 4711
\tlast exit code = (never exited)

\tendpoints = {{
\t\tstate = active
\t\tpid = 1
\t}}
}}
"""


def _words(orders: tuple[ManagerCommand, ...]) -> list[str]:
    return [" ".join(order.words) for order in orders]


def test_a_property_list_tells_who_wrote_it_and_what_it_runs() -> None:
    """In a comment, with characters that XML has a meaning for."""
    command = ("/venv/bin/python3", "run", '<a & "b">', "数据")
    (unit,) = OURS.units(launch(command, {}, PLACES), hardened=False)
    assert author(unit.text) == "memd"
    assert OURS.command_in(unit.text) == command
    assert unit.text.startswith("<?xml")
    assert OURS.unit_paths() == (unit.path,)


@pytest.mark.parametrize("text", ["", "x", "<plist/>", "<?xml version='1.0'?><plist><array/></plist>", "\0"])
def test_what_is_no_property_list_runs_nothing(text: str) -> None:
    """Whoever wrote it."""
    assert OURS.command_in(text) == ()


def test_keys_that_differ_are_named() -> None:
    """A comment that differs is nothing."""
    (one,) = OURS.units(launch(("/a",), {}, PLACES), hardened=False)
    (other,) = OURS.units(launch(("/b",), {"CODEX_HOME": "/c"}, PLACES), hardened=False)
    assert OURS.differing(one.text, other.text) == ("EnvironmentVariables", "ProgramArguments")
    assert OURS.differing(one.text, one.text.replace("sha256", "sum")) == ()


def test_there_is_nothing_to_harden() -> None:
    """Which is said."""
    with pytest.raises(UsageError, match="--hardened"):
        OURS.units(launch(("/a",), {}, PLACES), hardened=True)


def test_what_launchd_says_of_a_job_is_understood() -> None:
    """Of the job itself, not of what is inside it."""
    assert OURS.parse_state(0, _RUNNING) == ManagedService(
        loaded=True, enabled=True, state="running", pid=4711, path=PLIST
    )


def test_a_job_that_ended_is_understood() -> None:
    """With its exit status; one that ended well has no fault."""
    ended = _RUNNING.replace("\tpid = 4711\n", "").replace("(never exited)", "78: EX_CONFIG")
    managed = OURS.parse_state(0, ended)
    assert (managed.pid, managed.exit_code, managed.result) == (None, 78, "exit status 78")
    assert OURS.parse_state(0, ended.replace("78: EX_CONFIG", "0")).result == ""
    assert OURS.parse_state(113, _RUNNING) == ManagedService(loaded=False)


def test_a_job_is_loaded_once() -> None:
    """What is loaded is started; what has changed is loaded anew, and waited for while it ends."""
    loaded, not_loaded = ManagedService(loaded=True), ManagedService(loaded=False)
    load = f"launchctl bootstrap gui/501 {PLIST}"
    assert _words(OURS.install(changed=True, managed=not_loaded))[-1] == load
    assert _words(OURS.install(changed=True, managed=loaded)) == [
        "launchctl bootout gui/501/local.memd",
        "launchctl enable gui/501/local.memd",
        load,
    ]
    assert _words(OURS.start(loaded)) == ["launchctl kickstart gui/501/local.memd"]
    assert _words(OURS.start(not_loaded)) == [load]
    assert _words(OURS.restart(loaded)) == ["launchctl kickstart -k gui/501/local.memd"]
    assert OURS.stop(not_loaded) == OURS.before_removal(not_loaded) == OURS.after_removal() == ()


def test_a_job_that_ends_is_waited_for_so_long(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The program refuses to load it again until then; nothing else is tried twice."""
    tool = tmp_path / "launchctl"
    tool.write_text(f"#!/bin/sh\necho $1 >> {tmp_path}/heard; test $1 != bootstrap\n", encoding="utf-8")
    tool.chmod(0o755)
    clock = Clock()
    monkeypatch.setattr("memd.ctl.service.manager.time", SimpleNamespace(monotonic=clock, sleep=clock.run))
    began, seconds = clock.now, shipped("memd.ctl.service.launchd._AGAIN_S")
    with pytest.raises(Failed, match=r"`launchctl bootstrap .*` failed"):
        run_commands(
            OURS.install(changed=True, managed=ManagedService(loaded=True)), {"PATH": f"{tmp_path}:/bin"}
        )
    assert seconds <= clock.now - began < seconds + 1
    heard = (tmp_path / "heard").read_text(encoding="utf-8").split()
    assert (heard[:3], len(heard)) == (["bootout", "enable", "bootstrap"], 3 + 4 * seconds)
