"""The command that a manager starts, and the files of a service."""

from pathlib import Path

import pytest

from memd.__main__ import parser
from memd.config.load import location
from memd.ctl.failures import Failed
from memd.ctl.invocation import Places, places
from memd.ctl.service.installation import find_installation
from memd.ctl.service.supervisor import ServiceUnit, State, author, config_home, find_units, launch, marked
from memd.ctl.service.systemd import Systemd
from tests.bounds import shipped

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


_TEXT = "[Unit]\nDescription=x\n\n[Service]\nExecStart=/bin/true\n"


@pytest.mark.parametrize(("opening", "closing", "line"), [("# ", "", 0), ("<!-- ", " -->", 2), ("# ", "", 5)])
def test_a_text_tells_that_memd_wrote_it(opening: str, closing: str, line: int) -> None:
    """By a comment in the place that is wanted; the other lines are as they were."""
    text = marked(_TEXT, opening=opening, closing=closing, line=line)
    lines = text.splitlines()
    mark = lines.pop(line)
    assert mark.startswith(f"{opening}Written by memd-ctl service install")
    assert mark.endswith(closing)
    assert "\n".join(lines) + "\n" == _TEXT
    assert author(text) == "memd"


@pytest.mark.parametrize(
    "change",
    [
        lambda text: text.replace("true", "false"),
        lambda text: text + "\n",
        lambda text: text.replace("\n", "\r\n"),
        lambda text: text.removesuffix("\n"),
        lambda text: text.replace("# Written", "## Written") + "#",
    ],
)
def test_any_change_is_noticed(change: object) -> None:
    """Were it a blank."""
    assert callable(change)
    assert author(change(marked(_TEXT))) == "edited"


@pytest.mark.parametrize(
    "text", ["", _TEXT, "# Written by memd-ctl service install; sha256 of the other lines: 00\n"]
)
def test_what_has_no_mark_is_from_somebody_else(text: str) -> None:
    """Half a mark is none."""
    assert author(text) == "other"


def _wanted(home: Path) -> tuple[Systemd, tuple[ServiceUnit, ...]]:
    found = find_installation(
        {}, Places(home=home, config=None, state=home / "st", socket=home / "s"), platform="linux"
    )
    assert found is not None
    assert isinstance(found.supervisor, Systemd)
    for unit in found.units:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, encoding="utf-8")
    return found.supervisor, found.units


def _replace(path: Path, how: str) -> None:
    path.unlink()
    match how:
        case "foreign":
            path.write_text("[Service]\nExecStart=/bin/true\n", encoding="utf-8")
        case "masked":
            path.symlink_to("/dev/null")
        case "dangling":
            path.symlink_to("/none/there")
        case "bytes":
            path.write_bytes(b"\xff")
        case "directory":
            path.mkdir()
        case _:
            pass


@pytest.mark.parametrize(
    ("how", "state"),
    [
        ("gone", "missing"),
        ("foreign", "foreign"),
        ("masked", "foreign"),
        ("dangling", "foreign"),
        ("bytes", "foreign"),
        ("directory", "foreign"),
    ],
)
def test_a_file_is_what_it_is(tmp_path: Path, how: str, state: State) -> None:
    """And only that one."""
    supervisor, units = _wanted(tmp_path)
    _replace(units[1].path, how)
    assert [one.state for one in find_units(supervisor, units)] == ["current", state, "missing"]


def test_what_memd_wrote_for_something_else_is_out_of_date(tmp_path: Path) -> None:
    """The settings that differ are named; what is no longer wanted is out of date as well."""
    supervisor, units = _wanted(tmp_path)
    other = find_installation(
        {"CODEX_HOME": "/c"},
        Places(home=tmp_path, config=None, state=tmp_path / "st", socket=tmp_path / "other"),
        platform="linux",
    )
    assert other is not None
    told = {one.path.name: one for one in other.installed}
    assert told["memd.service"].state == told["memd.socket"].state == "outdated"
    assert told["memd.service"].differing == ("Environment", "ExecStart")
    assert told["memd.socket"].differing == ("ListenStream",)
    assert not other.is_current
    assert not other.is_of_these_places
    assert find_units(supervisor, units[:1])[1].state == "outdated"


def test_a_unit_that_does_not_name_the_usual_file_runs_the_same_daemon(tmp_path: Path) -> None:
    """As older versions wrote it: it is out of date, and not somebody else's."""
    _, units = _wanted(tmp_path)
    text = units[0].path.read_text(encoding="utf-8")
    units[0].path.write_text(
        text.replace(f" --config {tmp_path}/.config/memd/config.toml", ""), encoding="utf-8"
    )
    assert text != units[0].path.read_text(encoding="utf-8")
    usual = Places(home=tmp_path, config=None, state=tmp_path / "st", socket=tmp_path / "s")
    named = Places(home=tmp_path, config=Path("/c"), state=tmp_path / "st", socket=tmp_path / "s")
    for meant, is_ours in ((usual, True), (named, False)):
        found = find_installation({}, meant, platform="linux")
        assert found is not None
        assert (found.is_current, found.is_of_these_places) == (False, is_ours)


def test_a_change_of_somebody_is_noticed(tmp_path: Path) -> None:
    """By name, without the value."""
    supervisor, units = _wanted(tmp_path)
    path = units[0].path
    path.write_text(path.read_text(encoding="utf-8") + "[Service]\nEnvironment=K=sk-1\n", encoding="utf-8")
    (found, *_) = find_units(supervisor, units)
    assert (found.state, found.differing) == ("edited", ("Environment",))


def test_a_drop_in_that_is_there_stays_wanted(tmp_path: Path) -> None:
    """Whoever hardened the service once need not say so again."""
    places = Places(home=tmp_path, config=None, state=tmp_path / "st", socket=tmp_path / "s")
    hardened = find_installation({}, places, platform="linux", hardened=True)
    assert hardened is not None
    for unit in hardened.units:
        unit.path.parent.mkdir(parents=True, exist_ok=True)
        unit.path.write_text(unit.text, encoding="utf-8")
    again = find_installation({}, places, platform="linux")
    assert again is not None
    assert again.is_current
    assert again.is_of_these_places
    assert len(again.units) == 3


def test_the_interpreter_has_one_name(tmp_path: Path) -> None:
    """That of the installation, and not of whoever asks; and an unknown system has no service."""
    places = Places(home=tmp_path, config=None, state=tmp_path / "st", socket=tmp_path / "s")
    found = find_installation({}, places, platform="linux")
    assert found is not None
    assert found.launch.command[0].endswith("/bin/python3")
    assert find_installation({}, places, platform="freebsd14") is None


@pytest.mark.parametrize("beyond", [0, 1])
def test_a_file_that_is_far_too_large_is_not_read(tmp_path: Path, beyond: int) -> None:
    """It is somebody else's, whatever stands in it."""
    supervisor, units = _wanted(tmp_path)
    size = shipped("memd.ctl.service.supervisor._MOST_BYTES") + beyond
    units[1].path.write_text("x" * size, encoding="utf-8")
    found = find_units(supervisor, units)[1]
    assert (found.state, len(found.text)) == ("foreign", 0 if beyond else size)
