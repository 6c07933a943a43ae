"""Which files with keys others may read."""

from pathlib import Path

import pytest

from memd.config.settings import AgentSettings, Config, DaemonSettings, Remote
from memd.ctl.config.key_permissions import exposed


def _config(file: Path | None, remote: Remote) -> Config:
    agents = {
        "main": AgentSettings(workspace=Path("/w"), remote=remote),
        "other": AgentSettings(workspace=Path("/o")),
    }
    return Config(daemon=DaemonSettings(), agents=agents, file=file)


@pytest.mark.parametrize("remote", [Remote(api_key="sk-1"), Remote(headers={"x": "y"})])
@pytest.mark.parametrize(("mode", "found"), [(0o600, False), (0o400, False), (0o640, True), (0o644, True)])
def test_a_configuration_with_a_key_is_for_its_owner(
    tmp_path: Path, remote: Remote, mode: int, *, found: bool
) -> None:
    """Group and others are others."""
    file = tmp_path / "config.toml"
    file.touch()
    file.chmod(mode)
    assert list(exposed(_config(file, remote))) == ([(file, mode)] if found else [])


def test_a_configuration_without_a_key_may_be_read(tmp_path: Path) -> None:
    """There is nothing in it to hide; nor is there without a file."""
    file = tmp_path / "config.toml"
    file.touch(0o644)
    assert list(exposed(_config(file, Remote(api_key_env="A_KEY")))) == []
    assert list(exposed(_config(None, Remote(api_key="sk-1")))) == []


def test_the_file_of_a_key_is_for_its_owner(tmp_path: Path) -> None:
    """One that is missing is another's business to tell."""
    key = tmp_path / "key"
    key.touch()
    key.chmod(0o604)
    assert list(exposed(_config(None, Remote(api_key_file=str(key))))) == [(key, 0o604)]
    assert list(exposed(_config(None, Remote(api_key_file=str(tmp_path / "none"))))) == []
