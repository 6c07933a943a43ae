"""An invocation of a command."""

import io
from pathlib import Path

import pytest

from memd.ctl import arguments
from memd.ctl.failures import BAD_CONFIG, Failed
from memd.ctl.invocation import Invocation, Places, places
from memd.ctl.output.terminal import Screen
from memd_client import TimedOut
from tests.client.scripted_server import serving

_HOME = Path("/home/ann")


def _places(environ: dict[str, str], **flags: str) -> Places:
    given = {"config": None, "state_dir": None, "socket": None} | flags
    return places(environ, "linux", _HOME, **given)


@pytest.mark.parametrize(
    ("environ", "flags", "config", "state", "socket"),
    [
        ({}, {}, None, "/home/ann/.local/state/memd", "/home/ann/.local/state/memd/memd.sock"),
        ({"XDG_RUNTIME_DIR": "/run/u"}, {}, None, "/home/ann/.local/state/memd", "/run/u/memd/memd.sock"),
        (
            {"MEMD_CONFIG": "/c.toml", "MEMD_STATE_DIR": "/st", "MEMD_SOCKET": "/so"},
            {},
            "/c.toml",
            "/st",
            "/so",
        ),
        (
            {"MEMD_CONFIG": "/c.toml", "MEMD_STATE_DIR": "/st", "MEMD_SOCKET": "/so"},
            {"config": "/d.toml", "state_dir": "~/state", "socket": "/tmp/../x"},
            "/d.toml",
            "/home/ann/state",
            "/x",
        ),
        ({}, {"state_dir": "/st"}, None, "/st", "/st/memd.sock"),
    ],
)
def test_each_place_comes_from_who_says_it_first(
    environ: dict[str, str], flags: dict[str, str], config: str | None, state: str, socket: str
) -> None:
    """The state directory decides on the socket where nothing else does."""
    here = _places(environ, **flags)
    assert here.config == (None if config is None else Path(config))
    assert (here.state, here.socket) == (Path(state), Path(socket))


@pytest.mark.parametrize("socket", ["/", "//", "/tmp/.."])
def test_the_root_directory_is_no_socket(socket: str) -> None:
    """Whoever reads that knows what to set."""
    with pytest.raises(Failed, match="cannot be a socket") as refused:
        _places({"MEMD_SOCKET": socket})
    assert refused.value.exit_code == BAD_CONFIG
    assert "MEMD_SOCKET" in (refused.value.hint or "")


def test_relative_places_start_where_the_command_was_typed(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The daemon runs elsewhere, so it gets them absolute."""
    monkeypatch.chdir(tmp_path)
    here = _places({}, config="c.toml", state_dir="s/../state", socket="memd.sock")
    assert (here.config, here.state, here.socket) == (
        tmp_path / "c.toml",
        tmp_path / "state",
        tmp_path / "memd.sock",
    )
    assert (here.log, here.lock) == (tmp_path / "state" / "memd.log", tmp_path / "state" / "memd.lock")


@pytest.mark.parametrize("flags", [[], ["--timeout", "0.05"]])
def test_the_timeout_that_was_typed_goes_before_the_commands_own(address: Path, flags: list[str]) -> None:
    """A command knows how long it takes; whoever waits knows better."""
    screen = Screen(io.StringIO(), io.StringIO(), {}, wants_color=False, json=False)
    places = Places(Path("/"), None, Path("/state"), address)
    invocation = Invocation(arguments.parse(["status", *flags]), places, screen, {})
    with serving(address, lambda peer: peer.wait_for_end()), invocation.client(0.1) as memd:
        with pytest.raises(TimedOut) as timed_out:
            memd.status()
        memd.close()
    assert timed_out.value.timeout_s == (0.05 if flags else 0.1)
