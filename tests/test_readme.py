"""What the README shows, tried."""

import re
from pathlib import Path

import pytest

from memd.config.load import parse
from memd.config.settings import Config
from memd.providers.api_keys.logins import Surroundings
from memd.providers.choose import choose
from memd.providers.remote.spec import Recipe

README = Path(__file__).parents[1] / "README.md"
HOME = Path("/home/ada")
BLOCKS = re.findall(r"^```toml\n(.*?)^```$", README.read_text(encoding="utf-8"), re.MULTILINE | re.DOTALL)
ENVIRON = {
    "OPENAI_API_KEY": "sk-1",
    "GEMINI_API_KEY": "g-1",
    "VOYAGE_API_KEY": "pa-1",
    "MEMD_GEMINI_KEY": "g-2",
}


def _config(block: str) -> Config:
    return parse(block, HOME / ".config" / "memd" / "config.toml", HOME)


def test_there_are_configurations_in_it() -> None:
    """The one at the beginning, and those of the providers."""
    assert len(BLOCKS) > 10


@pytest.mark.parametrize("block", BLOCKS)
def test_a_configuration_can_be_used_as_it_is(block: str) -> None:
    """It is right, and with the keys that it speaks of its provider can be had, and a fallback that it names."""
    for settings in _config(block).agents.values():
        choice = choose(settings, Surroundings(ENVIRON, HOME, lambda _: "k-1\n"))
        assert (choice.passed_over, choice.no_fallback) == ((), None)
        match choice.primary:
            case None:
                assert settings.provider == "none"
            case Recipe() as recipe:
                assert settings.provider in {recipe.provider, "auto"}
            case provider:
                assert provider.identity.provider == settings.provider


@pytest.mark.parametrize(
    "provider", ["openai", "gemini", "voyage", "ollama", "openai-compatible", "local", "none"]
)
def test_there_is_a_configuration_for_each_provider(provider: str) -> None:
    """To copy."""
    configured = {settings.provider for block in BLOCKS for settings in _config(block).agents.values()}
    assert provider in configured
