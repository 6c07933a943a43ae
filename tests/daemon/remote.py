"""The whole daemon in the event loop of a test, with the providers that its configuration names."""

import os
import signal
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

import msgspec
import numpy as np

from memd.config.settings import AgentSettings
from memd.embedding.health_transitions import FallbackThresholds
from memd.providers.api_keys import ChoiceInputs, read_small
from memd.providers.choose import ProviderChoice, choose
from memd.store.index import Index
from memd_client import AsyncClient
from memd_client.messages import AgentStatus, Found
from tests.daemon.inprocess import served
from tests.fakes.embedding_server import EmbeddingServer
from tests.wait import until_awaited

LONG_S = 60.0  # on a busy machine a model takes its time to load


@asynccontextmanager
async def running(
    home: Path, *, environ: Mapping[str, str] | None = None, patience: FallbackThresholds | None = None
) -> AsyncIterator[AsyncClient]:
    """Run a daemon configured with `configure` below home, and yield a client.

    Args:
        home: Short enough for a socket.
        environ: What of the environment it sees.
        patience: With providers that do not answer.
    """

    def chosen(settings: AgentSettings) -> ProviderChoice:
        return choose(settings, ChoiceInputs(environ or {}, home, read_small))

    async with served(home, chosen, patience=patience) as client:
        yield client


def reload() -> None:
    """Let the daemon of this process read its configuration again."""
    os.kill(os.getpid(), signal.SIGHUP)


async def status(client: AsyncClient) -> AgentStatus:
    """Return the status of agent main."""
    return (await client.status()).agents["main"]


async def comes(client: AsyncClient, question: str, **wanted: object) -> Found:
    """Return the first answer to a question for which a condition is true."""

    async def is_there() -> Found | None:
        found = await client.search(question)
        return found if all(getattr(found, name) == value for name, value in wanted.items()) else None

    found = await until_awaited(is_there, LONG_S)
    assert found is not None
    return found


async def says(client: AsyncClient, words: str) -> AgentStatus:
    """Return the first status in which the provider has this problem."""

    async def is_said() -> AgentStatus | None:
        now = await status(client)
        return now if words in (now.provider_health.reason or "") else None

    said = await until_awaited(is_said, LONG_S)
    assert said is not None
    return said


def alike(one: Found, other: Found) -> bool:
    """Return whether two answers have the same hits, with equal scores except for rounding."""
    return [hit.path for hit in one.results] == [hit.path for hit in other.results] and all(
        abs(a.score - b.score) < 1e-4 for a, b in zip(one.results, other.results, strict=True)
    )


async def vectors_of(home: Path, server: EmbeddingServer) -> tuple[tuple[str, str, str] | None, int, bool]:
    """Return the space and the vectors of a stopped daemon's index, and whether all vectors are the server's."""
    index = Index(home / "state/agents/main.sqlite")
    await index.open()
    try:
        stored = await index.fingerprint()
        assert stored is not None
        await index.adopt(stored)
        hashes = await index.embedded()
        vectors = await index.vectors_of(hashes)
    finally:
        await index.close()
    expected = {one.tobytes() for one in server.embedder.embed(server.embedded())}
    mine = [np.frombuffer(one, "<f4") for one in vectors.values()]
    theirs = np.array([np.frombuffer(one, "<f4") for one in expected])
    same = all(float((theirs @ one).max()) > 0.9999 for one in mine)
    return stored.space, len(mine), same


def leaks(home: Path, secret: str) -> list[str]:
    """Return the files below home, except the configuration, that contain a secret."""
    return [
        str(file)
        for file in home.rglob("*")
        if file.is_file() and file.name not in {"config.toml", "key"} and secret.encode() in file.read_bytes()
    ]


def told(document: object) -> str:
    """Format a reply with all its fields."""
    return msgspec.json.encode(document).decode()
