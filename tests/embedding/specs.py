"""A provider over HTTP that nobody answers, and what its model is like."""

from pathlib import Path

from memd.config.settings import AgentSettings, Remote
from memd.providers.api_keys import ChoiceInputs, read_small
from memd.providers.choose import choose
from memd.providers.provider import Calibration
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.spec import ProviderSpec

KNOWN = ModelIdentity(3, Calibration(0.1, 0.9), b"probe")


def spec_of(base_url: str = "http://127.0.0.1:9/v1", model: str = "m") -> ProviderSpec:
    """How a model at an address is asked."""
    settings = AgentSettings(
        workspace=Path("/nowhere"),
        provider="openai-compatible",
        model=model,
        remote=Remote(base_url=base_url),
    )
    made = choose(settings, ChoiceInputs({}, Path("/nowhere"), read_small)).primary
    assert isinstance(made, ProviderSpec)
    return made
