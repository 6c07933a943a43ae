"""The settings and their defaults."""

from pathlib import Path

import msgspec
import pytest
from rich.pretty import pretty_repr

from memd.config.settings import (
    AgentSettings,
    Config,
    DaemonSettings,
    Remote,
    Rerank,
    SearchLimits,
    differences,
)


def _config(**workspaces: str) -> Config:
    agents = {agent: AgentSettings(workspace=Path(workspace)) for agent, workspace in workspaces.items()}
    return Config(daemon=DaemonSettings(), agents=agents, file=None)


def _path(_: type, value: str) -> Path:
    return Path(value)


def test_defaults_pass_their_own_constraints() -> None:
    """Every default is a value that the file could hold."""
    config = _config(main="/workspace")
    plain = msgspec.to_builtins(config, enc_hook=str)
    assert msgspec.convert(plain, Config, dec_hook=_path) == config


@pytest.mark.parametrize(
    ("old", "new", "changed"),
    [
        ({"a": "/a"}, {"a": "/a"}, set()),
        ({"a": "/a"}, {"a": "/b"}, {"a"}),
        ({"a": "/a"}, {"a": "/a", "b": "/b"}, {"b"}),
        ({"a": "/a", "b": "/b"}, {"b": "/b"}, {"a"}),
        ({"a": "/a", "b": "/b"}, {"b": "/c", "c": "/c"}, {"a", "b", "c"}),
        ({}, {}, set()),
    ],
)
def test_differences_name_added_removed_and_changed_agents(
    old: dict[str, str], new: dict[str, str], changed: set[str]
) -> None:
    """An agent differs if it came, went, or has other settings."""
    assert differences(_config(**old).agents, _config(**new).agents) == changed


def test_differences_see_nested_settings() -> None:
    """A setting in a table within an agent counts."""
    old = _config(main="/a")
    settings = msgspec.structs.replace(old.agents["main"], limits=SearchLimits(max_snippet_chars=100))
    assert differences(old.agents, {"main": settings}) == {"main"}


def test_what_prints_settings_prints_no_key() -> None:
    """Neither the key nor a header, however deep they are; the rest is there."""
    remote = Remote(base_url="https://gateway.example.org", api_key="sk-mellon", headers={"x-team": "speak"})
    config = Config(
        daemon=DaemonSettings(),
        agents={"main": AgentSettings(workspace=Path("/w"), remote=remote)},
        file=None,
    )
    rerank = Rerank(base_url="https://reranker.example.org", api_key="sk-mellon")
    other = AgentSettings(workspace=Path("/w"), remote=remote, rerank=rerank)
    for shown in (repr(rerank), repr(other), pretty_repr(other)):
        assert "mellon" not in shown
        assert "reranker.example.org" in shown
    for shown in (repr(config), str(remote), pretty_repr(config)):
        assert "mellon" not in shown
        assert "speak" not in shown
        assert "gateway.example.org" in shown
