import contextlib
import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.paths import SocketPathTooLong, checked_socket, config_file, socket_file, state_dir
from tests.awkward.programs import ENVIRONMENTS

HOME = Path("/home/ann")
MAC = Path("/Users/ann")
SUPPORT = "/Users/ann/Library/Application Support"


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/home/ann/.config/memd/config.toml"),
        ({"MEMD_CONFIG": "/etc/memd.toml"}, "/etc/memd.toml"),
        ({"MEMD_CONFIG": "/etc/memd.toml", "XDG_CONFIG_HOME": "/xdg"}, "/etc/memd.toml"),
        ({"MEMD_CONFIG": "~/memd.toml"}, "/home/ann/memd.toml"),
        ({"MEMD_CONFIG": "~//memd.toml"}, "/home/ann/memd.toml"),
        ({"MEMD_CONFIG": "~"}, "/home/ann"),
        ({"MEMD_CONFIG": "~bob/memd.toml"}, "~bob/memd.toml"),
        ({"MEMD_CONFIG": "here/memd.toml"}, "here/memd.toml"),
        ({"MEMD_CONFIG": "/a/~/memd.toml"}, "/a/~/memd.toml"),
        ({"MEMD_CONFIG": ""}, "/home/ann/.config/memd/config.toml"),
        ({"XDG_CONFIG_HOME": "/xdg"}, "/xdg/memd/config.toml"),
        ({"XDG_CONFIG_HOME": "~/conf"}, "/home/ann/conf/memd/config.toml"),
        ({"XDG_CONFIG_HOME": "conf"}, "/home/ann/.config/memd/config.toml"),
        ({"XDG_CONFIG_HOME": ""}, "/home/ann/.config/memd/config.toml"),
    ],
)
def test_config_file_on_linux(environ: dict[str, str], expected: str) -> None:
    """MEMD_CONFIG names the file, else it is in the configuration directory of XDG."""
    assert config_file(environ, "linux", HOME) == Path(expected)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/home/ann/.local/state/memd"),
        ({"MEMD_STATE_DIR": "/var/memd"}, "/var/memd"),
        ({"MEMD_STATE_DIR": "~/state"}, "/home/ann/state"),
        ({"MEMD_STATE_DIR": ""}, "/home/ann/.local/state/memd"),
        ({"XDG_STATE_HOME": "/xdg"}, "/xdg/memd"),
        ({"XDG_STATE_HOME": "state"}, "/home/ann/.local/state/memd"),
    ],
)
def test_state_dir_on_linux(environ: dict[str, str], expected: str) -> None:
    """MEMD_STATE_DIR names the directory, else it is in the state directory of XDG."""
    assert state_dir(environ, "linux", HOME) == Path(expected)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, "/home/ann/.local/state/memd/memd.sock"),
        ({"XDG_RUNTIME_DIR": "/run/user/1000"}, "/run/user/1000/memd/memd.sock"),
        ({"XDG_RUNTIME_DIR": ""}, "/home/ann/.local/state/memd/memd.sock"),
        ({"XDG_RUNTIME_DIR": "run"}, "/home/ann/.local/state/memd/memd.sock"),
        ({"MEMD_STATE_DIR": "/var/memd"}, "/var/memd/memd.sock"),
        (
            {"MEMD_STATE_DIR": "/var/memd", "XDG_RUNTIME_DIR": "/run/user/1000"},
            "/run/user/1000/memd/memd.sock",
        ),
        ({"MEMD_SOCKET": "/tmp/s", "XDG_RUNTIME_DIR": "/run/user/1000"}, "/tmp/s"),
        ({"MEMD_SOCKET": "~/s"}, "/home/ann/s"),
        ({"MEMD_SOCKET": "", "XDG_RUNTIME_DIR": "/run/user/1000"}, "/run/user/1000/memd/memd.sock"),
    ],
)
@pytest.mark.parametrize("platform", ["linux", "freebsd14"])
def test_socket_file_on_linux(environ: dict[str, str], expected: str, platform: str) -> None:
    """MEMD_SOCKET names the socket, else it is in the runtime directory, else beside the state."""
    assert socket_file(environ, platform, HOME) == Path(expected)


def test_socket_beside_a_named_state() -> None:
    """A state directory that a flag named holds the socket where there is no runtime directory."""
    assert socket_file({}, "linux", HOME, state=Path("/s")) == Path("/s/memd.sock")
    assert socket_file({"MEMD_STATE_DIR": "/t"}, "darwin", MAC, state=Path("/s")) == Path("/s/memd.sock")
    assert socket_file({"XDG_RUNTIME_DIR": "/run"}, "linux", HOME, state=Path("/s")) == Path(
        "/run/memd/memd.sock"
    )


def test_macos() -> None:
    """A Mac keeps everything under Application Support and knows nothing of XDG."""
    xdg = {f"XDG_{name}": "/xdg" for name in ("CONFIG_HOME", "STATE_HOME", "RUNTIME_DIR")}
    for environ in ({}, xdg):
        assert config_file(environ, "darwin", MAC) == Path(f"{SUPPORT}/memd/config.toml")
        assert state_dir(environ, "darwin", MAC) == Path(f"{SUPPORT}/memd")
        assert socket_file(environ, "darwin", MAC) == Path(f"{SUPPORT}/memd/memd.sock")
    assert socket_file({"MEMD_SOCKET": "~/s"}, "darwin", MAC) == Path("/Users/ann/s")


@pytest.mark.parametrize(("platform", "limit"), [("linux", 107), ("darwin", 103), ("freebsd14", 103)])
def test_longest_socket_path(platform: str, limit: int) -> None:
    """A path passes as long as it and a NUL fit into the address of a socket."""
    fits = Path("/" + "s" * (limit - 1))
    assert checked_socket(fits, platform) == fits
    with pytest.raises(SocketPathTooLong) as too_long:
        checked_socket(Path(f"{fits}s"), platform)
    assert (too_long.value.length, too_long.value.limit) == (limit + 1, limit)
    assert str(too_long.value.path) in str(too_long.value)
    assert "MEMD_SOCKET" in str(too_long.value)
    assert isinstance(too_long.value, ValueError)


def test_socket_path_is_measured_in_bytes() -> None:
    """A path of 40 Chinese characters has 120 bytes; one that is not UTF-8 has those the disk knows."""
    with pytest.raises(SocketPathTooLong):
        checked_socket(Path("/" + "记" * 40), "linux")
    foreign = Path("/" + os.fsdecode(b"\xff" * 106))
    assert checked_socket(foreign, "linux") == foreign


@given(ENVIRONMENTS, st.sampled_from(["linux", "darwin"]))
def test_any_environment_names_places(environ: dict[str, str], platform: str) -> None:
    """Whatever the variables hold, there are paths that the system can be asked for, and a socket has room or an error."""
    for place in (config_file, state_dir, socket_file):
        path = place(environ, platform, HOME)
        assert b"\0" not in os.fsencode(path)
        assert not str(path).startswith("~/")
    path = socket_file(environ, platform, HOME)
    has_room = len(os.fsencode(path)) < (108 if platform == "linux" else 104)
    with contextlib.nullcontext() if has_room else pytest.raises(SocketPathTooLong):
        assert checked_socket(path, platform) == path
