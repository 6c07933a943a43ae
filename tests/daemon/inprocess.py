"""The whole daemon in the event loop of a test, with an embedding provider that the test holds in its hands."""

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import structlog

from memd import daemon
from memd.config.settings import AgentSettings
from memd.embedding.health_transitions import FallbackThresholds
from memd.providers.choose import ProviderChoice
from memd.runtime.process import DaemonPlaces
from memd_client import AsyncClient
from tests.fakes import HashingProvider
from tests.wait import until_async


@asynccontextmanager
async def running(
    home: Path, provider: HashingProvider | None = None, *, settings: str = ""
) -> AsyncIterator[AsyncClient]:
    """A client of a daemon whose workspace, configuration, state and socket are below home.

    Args:
        home: Short enough for a socket.
        provider: What embeds; None for a new one.
        settings: TOML of [agents.main], below the workspace.
    """
    embedder = provider or HashingProvider()
    configure(home, settings)

    def choose(wanted: AgentSettings) -> ProviderChoice:
        return (
            ProviderChoice(None, "provider = none")
            if wanted.provider == "none"
            else ProviderChoice(embedder, None)
        )

    async with served(home, choose) as client:
        yield client


@asynccontextmanager
async def served(
    home: Path,
    choose: Callable[[AgentSettings], ProviderChoice],
    *,
    patience: FallbackThresholds | None = None,
) -> AsyncIterator[AsyncClient]:
    """A client of a daemon that has been configured.

    Args:
        home: As in running.
        choose: The provider of an agent.
        patience: With providers that do not answer.
    """
    places = DaemonPlaces(home / "config.toml", home / "state", home / "s")
    serving = asyncio.create_task(
        daemon.serve(places, {}, choose, thresholds=patience or FallbackThresholds())
    )
    try:
        await until_async(lambda: places.socket.exists() or serving.done(), 10)
        async with AsyncClient(socket=places.socket, timeout=60) as client:
            yield client
    finally:
        if not serving.done():
            os.kill(os.getpid(), signal.SIGTERM)
        await serving


def configure(home: Path, settings: str = "") -> None:
    """Write the configuration; reload() brings it into force."""
    text = f'[agents.main]\nworkspace = "{home}/workspace"\n{settings}\n'
    (home / "config.toml").write_text(text, encoding="utf-8")


def write(home: Path, path: str, text: str) -> Path:
    """Write a file of the workspace."""
    file = home / "workspace" / path
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text, encoding="utf-8")
    return file


async def reload(client: AsyncClient) -> list[Any]:
    """Have what the file says brought into force, and wait for it; what was logged meanwhile."""
    with structlog.testing.capture_logs() as logs:
        await client.reload()
        return list(logs)


async def reloaded(home: Path, settings: str, client: AsyncClient) -> None:
    """Bring other settings into force."""
    configure(home, settings)
    assert (await client.reload()).error is None
