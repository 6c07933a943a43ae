"""What a service manager is to start."""

from pathlib import Path

import pytest

from memd.__main__ import parser
from memd.config.load import location
from memd.ctl.call import Places, places
from memd.ctl.failures import Failed
from memd.ctl.service.installation import find_installation
from memd.ctl.service.start_command import config_home, launch

HOME = Path("/home/ann")
PLACES = Places(home=HOME, config=None, state=HOME / "state", socket=HOME / "s")


def test_places_of_programs_come_along_and_nothing_else_does() -> None:
    """A key in the environment of a shell would stand in a file that others may read."""
    environ = {
        "XDG_CONFIG_HOME": "/c",
        "CODEX_HOME": "~/codex/",
        "GEMINI_CLI_HOME": "gemini",
        "OPENCLAW_STATE_DIR": "",
        "OPENAI_API_KEY": "sk-1",
        "MEMD_CONFIG": "/x",
        "PATH": "/bin",
    }
    started = launch(("memd", "run"), environ, PLACES)
    assert started.environ == {"XDG_CONFIG_HOME": "/c", "CODEX_HOME": "/home/ann/codex"}


def test_the_usual_place_need_not_be_said() -> None:
    """It would make a unit differ from shell to shell."""
    assert launch(("memd",), {"XDG_CONFIG_HOME": "/home/ann/.config"}, PLACES).environ == {}


@pytest.mark.parametrize("odd", ["a\nb", "a\tb", "a ", "a\\", "a\x7fb", "\udcff"])
def test_what_no_unit_can_hold_is_refused(odd: str) -> None:
    """Wherever it stands, with what to do."""
    with pytest.raises(Failed, match="cannot be told of the path") as refused:
        launch(("memd", "run", "--socket", odd), {}, PLACES)
    assert refused.value.exit_code == 78
    with pytest.raises(Failed, match="cannot be told of the path"):
        launch(("memd", "run"), {"CODEX_HOME": f"/x/{odd}{odd}"}, PLACES)


@pytest.mark.parametrize(
    ("environ", "expected"),
    [
        ({}, HOME / ".config"),
        ({"XDG_CONFIG_HOME": "/c"}, Path("/c")),
        ({"XDG_CONFIG_HOME": "c"}, HOME / ".config"),
        ({"XDG_CONFIG_HOME": "~/c"}, HOME / "c"),
    ],
)
def test_the_configuration_of_a_user_is_where_xdg_has_it(environ: dict[str, str], expected: Path) -> None:
    """A relative path is none, as the specification asks."""
    assert config_home(environ, HOME) == expected


@pytest.mark.parametrize("platform", ["linux", "darwin"])
@pytest.mark.parametrize("named", [None, "/named.toml", "~/named.toml"])
@pytest.mark.parametrize(
    "value", ["", "~/.config", "~/elsewhere", "~", "conf", "./conf", "/x/../c", "~other/c", "$HOME/c"]
)
def test_the_daemon_of_the_service_reads_the_file_that_is_read_here(
    tmp_path: Path, value: str, named: str | None, platform: str
) -> None:
    """However the variable that says where it is was written."""
    environ = {"XDG_CONFIG_HOME": value}
    at = places(environ, platform, tmp_path, config=named, state_dir=None, socket=None)
    found = find_installation(environ, at, platform=platform)
    assert found is not None
    words = found.launch.command[found.launch.command.index("run") :]
    started = parser().parse_args(words)
    assert location(started.config, found.launch.environ, tmp_path, platform=platform) == location(
        at.config, environ, tmp_path, platform=platform
    )
