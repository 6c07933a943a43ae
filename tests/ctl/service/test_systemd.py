"""What is said to systemd, and understood of it."""

from pathlib import Path

import pytest

from memd.ctl.invocation import Places
from memd.ctl.service.supervisor import ManagedService, ManagerCommand, launch
from memd.ctl.service.systemd import Systemd, of_user

HOME = Path("/home/ann")
PLACES = Places(home=HOME, config=None, state=HOME / "st", socket=HOME / "s")
OURS = of_user({}, HOME)

_SERVICE = "Id=memd.service\nLoadState=loaded\nActiveState=active\nSubState=running\nUnitFileState=enabled\n"
_ASKED = (
    _SERVICE + "MainPID=54\nFragmentPath=/u/memd.service\nResult=success\nExecMainStatus=0\nNRestarts=2\n"
)
_SOCKET = "Id=memd.socket\nLoadState=loaded\nActiveState=active\nSubState=running\nNeedDaemonReload=no\n"


def _words(orders: tuple[ManagerCommand, ...]) -> list[str]:
    return [" ".join(order.words[2:]) for order in orders]


def test_units_are_where_systemd_looks_for_those_of_a_user() -> None:
    """Below what XDG says."""
    assert OURS.directory == HOME / ".config/systemd/user"
    assert of_user({"XDG_CONFIG_HOME": "/c"}, HOME) == Systemd(Path("/c/systemd/user"))


@pytest.mark.parametrize(
    ("word", "written"),
    [
        ("/a/b-c_d.e+f=g,h:i@j", "/a/b-c_d.e+f=g,h:i@j"),
        ("a b", '"a b"'),
        ("", '""'),
        ("100%", '"100%%"'),
        ("$HOME", '"$$HOME"'),
        ('"', r'"\""'),
        ("a\\b", r'"a\\b"'),
        (";", '";"'),
        ("数据", '"数据"'),
        ("'", '"\'"'),
    ],
)
def test_each_word_of_the_command_is_quoted_as_systemd_has_it(word: str, written: str) -> None:
    """And read back as it was."""
    started = launch(("/py", "run", word), {}, PLACES)
    text = OURS.units(started, hardened=False)[0].text
    assert f"ExecStart=/py run {written}\n" in text
    assert OURS.command_in(text) == ("/py", "run", word)


def test_a_command_that_cannot_be_made_out_is_none() -> None:
    """Of a unit that somebody else wrote."""
    for text in ("", "[Service]\n", '[Service]\nExecStart="open\n', "#ExecStart=/x\n"):
        assert OURS.command_in(text) == ()


def test_settings_that_differ_are_named() -> None:
    """Remarks and the order of lines are nothing; a setting that is there twice is."""
    one = "# a\n[Service]\nA=1\nB=2\nC=3\nC=4\n"
    assert OURS.differing(one, "[Service]\nB = 2\nC=3\n# b\nC=4\nA=1\n") == ()
    assert OURS.differing(one, "[Service]\nA=2\nC=4\nD=\n") == ("A", "B", "C", "D")


def test_what_systemd_says_of_a_service_is_understood() -> None:
    """It runs."""
    managed = OURS.parse_state(0, f"{_ASKED}\n{_SOCKET}")
    assert managed == ManagedService(
        loaded=True,
        enabled=True,
        state="active (running)",
        pid=54,
        waits=False,
        path="/u/memd.service",
        exit_code=0,
        restarts=2,
    )


@pytest.mark.parametrize(
    ("changed", "state", "waits", "result"),
    [
        ({"active": "inactive", "running": "dead", "54": "0"}, "waiting for a client", True, ""),
        (
            {"active": "failed", "running": "failed", "54": "0", "success": "watchdog"},
            "failed",
            True,
            "watchdog",
        ),
        (
            {"active": "activating", "running": "auto-restart", "54": "0"},
            "activating (auto-restart)",
            True,
            "",
        ),
    ],
)
def test_a_service_that_does_not_run_is_understood(
    changed: dict[str, str], state: str, waits: bool, result: str
) -> None:
    """With why, and whether a client would start it."""
    service = _ASKED
    for old, new in changed.items():
        service = service.replace(f"={old}\n", f"={new}\n")
    managed = OURS.parse_state(0, f"{service}\n{_SOCKET}")
    assert (managed.state, managed.waits, managed.result, managed.pid) == (state, waits, result, None)


@pytest.mark.parametrize("printed", ["", "Id=memd.service\nLoadState=not-found\n", "garbage", "A=b\n\n\n\nC"])
def test_a_service_that_systemd_does_not_know_is_not_loaded(printed: str) -> None:
    """Nor is one that it says nothing of."""
    assert OURS.parse_state(0, printed) == ManagedService(loaded=False)
    assert OURS.parse_state(1, _ASKED) == ManagedService(loaded=False)


def test_files_that_changed_behind_its_back_are_noticed() -> None:
    """Of either unit."""
    assert OURS.parse_state(0, f"{_ASKED}\n{_SOCKET.replace('=no', '=yes')}").stale


def test_orders_come_in_an_order_that_systemd_can_follow() -> None:
    """A socket cannot be begun beside its service; what failed too often is pardoned; a stop is of both."""
    loaded = ManagedService(loaded=True)
    assert _words(OURS.install(changed=True, managed=ManagedService(loaded=False))) == [
        "daemon-reload",
        "enable memd.socket memd.service",
        "start memd.socket memd.service",
    ]
    assert _words(OURS.install(changed=True, managed=loaded)) == [
        "stop memd.socket memd.service",
        "daemon-reload",
        "enable memd.socket memd.service",
        "reset-failed memd.socket memd.service",
        "start memd.socket memd.service",
    ]
    assert _words(OURS.install(changed=False, managed=loaded))[0] == "daemon-reload"
    assert _words(OURS.stop(loaded)) == ["stop memd.socket memd.service"]
    assert OURS.stop(ManagedService(loaded=False)) == ()
    assert _words(OURS.restart(loaded))[-2:] == ["start memd.socket", "restart memd.service"]
    assert _words(OURS.before_removal(loaded)) == ["disable --now memd.socket memd.service"]
    assert [order.may_fail for order in OURS.before_removal(ManagedService(loaded=False))] == [True]
