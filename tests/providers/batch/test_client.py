"""Requests about jobs, one at a time."""

import time
from collections.abc import Callable
from random import Random
from typing import cast

import pytest

from memd.providers.batch.client import BatchClient, BatchTimeouts, JobFailed
from memd.providers.remote.dialect import HttpAnswer, HttpRequest, NotSupported
from memd.providers.remote.http import HttpConnections
from tests.bounds import shipped
from tests.clock import hastily
from tests.providers.batch.rig import dialect_of
from tests.providers.batch.scripted import answer, scripted_client


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


TIMEOUTS = BatchTimeouts(first_s=0.5, longest_s=8.0, longest_asked_s=40.0, gone_s=20.0, forget_s=30.0)
BUSY, REFUSED, GONE, DONE = answer({}, 500), answer({}, 401), answer({}, 404), answer("done")
# Waits double up to the longest; each is as long as it may be.
TIMES = [0.0, 0.5, 1.5, 3.5, 7.5, 15.5, 23.5, 31.5]


def _asking_for(seconds: float) -> HttpAnswer:
    return HttpAnswer(429, {"retry-after": str(seconds)}, b"{}")


@pytest.mark.parametrize(
    ("reply", "exists", "times", "ended"),
    [
        (lambda number: DONE if number == 4 else BUSY, False, TIMES[:4], None),
        (lambda number: DONE if number == 2 else REFUSED, False, TIMES[:2], None),  # another key tomorrow
        (lambda _: BUSY, False, TIMES, JobFailed),
        (lambda _: GONE, False, TIMES[:1], NotSupported),
        (lambda _: GONE, True, TIMES[:7], NotSupported),
        (lambda number: GONE if number % 2 else BUSY, True, TIMES[:7], NotSupported),
        (lambda number: DONE if number == 2 else _asking_for(25), False, [0.0, 25.0], None),
        (lambda number: DONE if number == 2 else _asking_for(4000), False, [0.0, 40.0], None),
        (lambda number: DONE if number == 2 else _asking_for(0.25), False, TIMES[:2], None),
    ],
)
def test_a_question_about_a_job_is_asked_until_it_is_answered(
    monkeypatch: pytest.MonkeyPatch,
    reply: Callable[[int], HttpAnswer],
    exists: bool,
    times: list[float],
    ended: type[Exception] | None,
) -> None:
    """For so long; why it is not is told until then."""
    monkeypatch.setattr(Random, "uniform", lambda _, __, most: most)
    reasons: list[str | None] = []

    async def ask() -> list[float]:
        client, connections = scripted_client(lambda _: replied(client), TIMEOUTS)

        def replied(client: BatchClient) -> HttpAnswer:
            reasons.append(client.reason)
            return reply(len(connections.asked))

        request, since = HttpRequest("x", method="GET"), client.clock()
        asked = client.fetch_until_answered(request, lambda body: body, since=since, exists=exists)
        if ended is None:
            assert await asked == b'"done"'
        else:
            with pytest.raises(ended):
                await asked
        assert client.reason is None or ended is NotSupported
        return [at for at, _ in connections.asked]

    assert hastily(ask()) == times
    assert reasons[0] is None
    assert None not in reasons[1:]
