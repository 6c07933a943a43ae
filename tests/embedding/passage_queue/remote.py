"""A provider over HTTP, at the stand-in server, for tests of the scheduler."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import msgspec

from memd.config.settings import Remote
from memd.providers.api_keys import account
from memd.providers.provider import Calibration
from memd.providers.remote import openai
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.provider import RemoteProvider
from memd.providers.remote.retrying_client import RetryingClient, RetryPolicy
from tests.fakes.embedding_server import KEY, EmbeddingServer

QUICK = RetryPolicy(attempts=4, first_s=0.001, longest_asked_s=0.05, timeouts=2)
ONCE = RetryPolicy(attempts=1, first_s=0.001, longest_asked_s=0.0, timeouts=1)


def client_at(server: EmbeddingServer, *, concurrency: int = 4, url: str | None = None) -> RetryingClient:
    """OpenAI's protocol, spoken to the server; its session is to be closed. The arguments are those of provider_at."""
    remote = msgspec.convert(
        {"base_url": url or server.base_url("openai"), "api_key": KEY, "concurrency": concurrency}, Remote
    )
    whom = account("openai", openai.HOME, remote, {}, lambda _: KEY)
    session = HttpConnections("openai", whom, None, concurrency)
    return RetryingClient(openai.openai("", remote), whom, session)


@asynccontextmanager
async def provider_at(
    server: EmbeddingServer,
    *,
    concurrency: int = 4,
    timeout_s: float = 20.0,
    retries: RetryPolicy = QUICK,
    url: str | None = None,
) -> AsyncIterator[RemoteProvider]:
    """OpenAI's protocol, spoken to the server.

    Args:
        server: Whom to ask.
        concurrency: Requests at once.
        timeout_s: For one attempt.
        retries: How patient a request is.
        url: Where to ask in the place of the server.
    """
    client = client_at(server, concurrency=concurrency, url=url)
    provider = RemoteProvider(
        client,
        ModelIdentity(server.dimensions, Calibration(), b""),
        query_timeout_s=5.0,
        request_timeout_s=timeout_s,
        indexing=retries,
    )
    try:
        yield provider
    finally:
        await client.session.close()
