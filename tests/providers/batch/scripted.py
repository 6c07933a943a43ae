"""A provider whose replies a test gives one by one, on a loop whose time the test sees."""

import asyncio
from collections.abc import Callable
from random import Random
from typing import cast

import msgspec

from memd.providers.batch.client import BatchClient, BatchTimeouts
from memd.providers.remote.dialect import HttpAnswer, HttpRequest
from memd.providers.remote.http import HttpConnections
from tests.providers.batch.rig import QUICK, dialect_of


def answer(document: object, status: int = 200) -> HttpAnswer:
    """A reply with this JSON."""
    return HttpAnswer(status, {}, msgspec.json.encode(document))


class Scripted:
    """Connections to it."""

    def __init__(self, reply: Callable[[str], HttpAnswer]) -> None:
        """Create them.

        Args:
            reply: The answer to a request, given as its method and path.
        """
        self.asked: list[tuple[float, str]] = []  # when, in seconds of the loop, and what
        self._reply = reply

    async def send(self, request: HttpRequest, timeout_s: float) -> HttpAnswer:
        """Note the request, and answer it."""
        what = f"{request.method} {request.path}"
        self.asked.append((asyncio.get_running_loop().time(), what))
        return self._reply(what)


def scripted_client(
    reply: Callable[[str], HttpAnswer], timeouts: BatchTimeouts
) -> tuple[BatchClient, Scripted]:
    """A client of OpenAI's batches that is answered so, and what it asks."""
    connections = Scripted(reply)
    client = BatchClient(
        dialect_of("openai", "https://example.org/v1"),
        cast("HttpConnections", connections),
        None,
        rng=Random(1),
        clock=asyncio.get_running_loop().time,
        retries=QUICK,
        timeouts=timeouts,
    )
    return client, connections
