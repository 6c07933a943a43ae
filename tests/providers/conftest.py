"""Providers that are closed after each test."""

import os
from collections.abc import AsyncIterator, Callable
from random import Random

import pytest

from memd.providers.local import bundled_model
from memd.providers.local.provider import LocalProvider
from memd.runtime.startup import prepare_environment
from tests.providers import standin

# As the daemon does at its start: the engine is loaded in this process too.
prepare_environment(os.environ)

Make = Callable[..., LocalProvider]


@pytest.fixture
async def make() -> AsyncIterator[Make]:
    """Makes providers; without a command, their worker is the scripted one."""
    made: list[LocalProvider] = []

    def make(**settings: object) -> LocalProvider:
        made.append(standin.provider(**settings))
        return made[-1]

    yield make
    for provider in made:
        await provider.close()


@pytest.fixture
async def provider() -> AsyncIterator[LocalProvider]:
    """The local provider with its real worker and model."""
    real = LocalProvider(bundled_model.find(), Random(7))
    yield real
    await real.close()
