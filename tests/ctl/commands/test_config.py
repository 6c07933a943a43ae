"""memd-ctl config."""

import json
import stat
import tomllib
from pathlib import Path

import pytest

from memd.config import AgentSettings, Config, DaemonSettings
from memd.configfile.load import parse
from memd.ctl.commands.config import effective, toml
from memd.ctl.configedit import example
from tests.ctl.conftest import Run


@pytest.fixture
def file(home: Path) -> Path:
    """The usual place of the configuration; there is none yet."""
    return home / ".config" / "memd" / "config.toml"


def _write(file: Path, text: str) -> None:
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")


def test_the_example_is_written_where_it_will_be_read(run: Run, file: Path) -> None:
    """For its owner alone; and it is right."""
    code, out, err = run("config", "init")
    assert (code, err) == (0, "")
    assert out == (
        "Wrote ~/.config/memd/config.toml. It names ~/.openclaw/workspace, which is not there: "
        "change it, or run `memd-ctl up DIR`.\n"
    )
    assert file.read_text(encoding="utf-8") == example()
    assert stat.S_IMODE(file.stat().st_mode) == 0o600
    assert run("config", "check").code == 0


def test_a_workspace_of_openclaw_is_found(run: Run, home: Path) -> None:
    """It is what the example names."""
    (home / ".openclaw" / "workspace").mkdir(parents=True)
    assert "the workspace of OpenClaw, which is there: ~/.openclaw/workspace." in run("config", "init").out


def test_a_configuration_is_not_overwritten_unasked(run: Run, file: Path) -> None:
    """Whatever stands there, even a link to nowhere."""
    _write(file, "# mine\n")
    code, _, err = run("config", "init")
    assert code == 1
    assert "is there already" in err
    assert file.read_text(encoding="utf-8") == "# mine\n"
    data = json.loads(run("config", "init", "--force", "--json").out)["data"]
    assert (data["file"], data["replaced"], data["workspace_exists"]) == (str(file), True, False)
    assert file.read_text(encoding="utf-8") == example()
    file.unlink()
    file.symlink_to("nowhere")
    assert run("config", "init").code == 1


def test_a_named_place_is_used(run: Run, home: Path) -> None:
    """By a flag, as by MEMD_CONFIG."""
    assert run("config", "init", "--config", str(home / "my.toml")).code == 0
    assert (home / "my.toml").is_file()
    assert run("config", "check", "--config", str(home / "none.toml")).code == 78


def test_a_right_configuration_is_said_to_be(run: Run, home: Path, file: Path) -> None:
    """A workspace that does not exist yet is worth a remark, no more."""
    _write(file, f'[agents.ann]\nworkspace = "{home}"\n[agents.bob]\nworkspace = "~/none"\n')
    assert run("config", "check") == (
        0,
        "~/.config/memd/config.toml is right: 2 agents (ann, bob).\n",
        "The workspace of bob does not exist yet: ~/none\n",
    )


def test_no_configuration_is_right_too(run: Run) -> None:
    """Built-in defaults hold."""
    code, out, _ = run("config", "check")
    assert (code, out) == (
        0,
        "There is no ~/.config/memd/config.toml: built-in defaults hold, 1 agent (main).\n",
    )
    assert json.loads(run("config", "check", "--json").out)["data"]["file"] is None


@pytest.mark.parametrize("action", ["check", "show"])
def test_a_wrong_configuration_has_its_status(run: Run, file: Path, action: str) -> None:
    """Each problem is told with its line."""
    _write(file, '[agents.main]\nworkspce = "~"\nbackend = 3\n')
    code, out, err = run("config", action)
    assert (code, out) == (78, "")
    assert "config.toml:2: agents.main.workspce is not a key memd knows" in err
    assert "config.toml:3: agents.main.backend" in err
    error = json.loads(run("config", action, "--json").out)["error"]
    assert error["type"] == "bad_config"


def test_what_is_in_force_is_shown_as_a_configuration(run: Run, home: Path, file: Path) -> None:
    """It means the same when it is read again."""
    _write(
        file, '[defaults]\nquery.max_results = 9\n[agents.main]\nworkspace = "~/花"\nexclude = ["*.tmp"]\n'
    )
    code, out, err = run("config", "show")
    assert (code, err) == (0, "")
    assert out.startswith(f"# {file}\n")
    again = parse(out, file, home)
    assert again == parse(file.read_text(encoding="utf-8"), file, home)
    assert again.agents["main"].query.max_results == 9
    data = json.loads(run("config", "show", "--json").out)["data"]
    assert data["file"] == str(file)
    assert data["agents"]["main"]["workspace"] == str(home / "花")


def test_built_in_defaults_are_shown_as_such(run: Run) -> None:
    """There is no file they came from."""
    out = run("config", "show").out
    assert out.startswith("# built-in defaults, no file\n")
    assert tomllib.loads(out)["agents"]["main"]["query"]["max_results"] == 6


def test_keys_of_services_are_masked() -> None:
    """Wherever they stand; an empty one is none."""
    config = Config(daemon=DaemonSettings(), agents={"main": AgentSettings(workspace=Path("/w"))}, file=None)
    tables = effective(config)
    assert tables["agents"]["main"]["workspace"] == "/w"
    assert "api_key" not in toml(tables, None)
