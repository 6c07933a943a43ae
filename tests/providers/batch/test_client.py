"""Requests about jobs, one at a time."""

import time
from random import Random
from typing import cast

from memd.providers.batch.client import BatchClient, BatchTimeouts
from memd.providers.remote.dialect import HttpAnswer, HttpRequest
from memd.providers.remote.http import HttpConnections
from tests.bounds import shipped
from tests.providers.batch.rig import dialect_of


class Impatient:
    """Connections that note how long each request may take."""

    def __init__(self) -> None:
        self.timeouts_s: list[float] = []

    async def send(self, request: HttpRequest, timeout_s: float) -> HttpAnswer:
        self.timeouts_s.append(timeout_s)
        return HttpAnswer(200, {}, b"{}")


async def test_a_file_may_take_longer_the_larger_it_is() -> None:
    """By the bytes of all its pieces, on a line of so many bytes a second."""
    connections, a_second = Impatient(), shipped("memd.providers.batch.client.UPLOAD_BYTES_S")
    client = BatchClient(
        dialect_of("openai", "https://example.org/v1"),
        cast("HttpConnections", connections),
        None,
        rng=Random(1),
        clock=time.time,
        timeouts=BatchTimeouts(request_s=10.0),
    )
    for size in (0, a_second // 2, 3 * a_second):
        await client.send(HttpRequest("files", body=b"x" * (size // 2), more=[b"x" * (size - size // 2)]))
    assert connections.timeouts_s == [10.0, 10.5, 13.0]
