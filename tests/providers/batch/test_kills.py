"""Daemons that are killed in the middle of jobs."""

import asyncio
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random

import msgspec
import pytest

from tests.fakes.embedding_server import EmbeddingServer, Seen
from tests.fakes.http import Response
from tests.providers.batch.lives import Lives, Orders
from tests.providers.batch.rig import PROVIDERS, batching, texts_of, vector_of

KILLS = 20
LONGEST = pytest.param("openai", KILLS, marks=pytest.mark.long)
MORE = 280  # texts a life
AT_ONCE = 280  # texts of a job; more than are kept at a time
HELD = Response(delay_s=3600)
POINTS = [
    "upload",
    "upload done",
    "create",
    "create done",
    "poll",
    "download",
    "download done",
    "delete",
    "delete done",
    "some requests",
]


@pytest.fixture
def server() -> Iterator[EmbeddingServer]:
    with EmbeddingServer(dimensions=32) as running:
        running.polls_until_done = 3
        yield running


@pytest.fixture(scope="module")
def lives() -> Iterator[Lives]:
    with Lives() as running:
        yield running


def trap(server: EmbeddingServer, point: str, rng: Random) -> threading.Event:
    """Have the server stop answering at a point; set when it has come there."""
    reached = threading.Event()
    what, _, when = point.partition(" ")
    left = [rng.randrange(1, 9)]

    def before(seen: Seen) -> Response | None:
        if reached.is_set():
            return HELD
        if what == "some":
            left[0] -= 1
            if not left[0]:
                reached.set()
        elif seen.what == what and when != "done" and what != "download":
            reached.set()
            return HELD
        return None

    def after(seen: Seen, response: Response) -> Response:
        if seen.what != what or (when != "done" and what != "download"):
            return response
        reached.set()
        if when == "done":
            return HELD
        return msgspec.structs.replace(response, hold_after=rng.randrange(len(response.body)))

    server.plan, server.after = before, after
    return reached


def answer_all(server: EmbeddingServer) -> None:
    server.plan = lambda _: None
    server.after = lambda _, response: response


def orders(server: EmbeddingServer, name: str, file: Path) -> Callable[[int], Orders]:
    return lambda texts: Orders(str(file), name, server.base_url(name), texts, AT_ONCE, 32)


@pytest.mark.rows(1)
@pytest.mark.parametrize(("name", "kills"), [*((name, 5) for name in PROVIDERS), LONGEST])
async def test_kills_lose_nothing_and_pay_for_nothing_twice(
    server: EmbeddingServer, lives: Lives, tmp_path: Path, name: str, kills: int
) -> None:
    """At points of every kind of a job's course; at the end each text has its vector, and was embedded once."""
    rng = Random(f"{name} 20")
    points = [POINTS[(number + kills * PROVIDERS.index(name)) % len(POINTS)] for number in range(kills)]
    to_do = orders(server, name, tmp_path / "e.sqlite")
    for number in range(kills):
        reached = trap(server, points[number], rng)
        pid = lives.begin(to_do(MORE * (number + 1)))
        assert await asyncio.to_thread(reached.wait, 20)
        lives.kill(pid)
        assert await asyncio.to_thread(lives.end) == (-9, 0)
        answer_all(server)
    lives.begin(to_do(MORE * kills))
    assert (await asyncio.to_thread(lives.end))[0] == 0
    texts = texts_of(MORE * kills)
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        kept = await rig.kept(texts)
        assert not await rig.ledger.jobs()
    assert len(kept) == len(texts)
    assert all(kept[text_hash] == vector_of(text) for text_hash, text in list(texts.items())[::7])
    embedded = server.embedded()
    assert sorted(embedded) == sorted(texts.values())


@pytest.mark.long
async def test_results_of_any_size_take_little_memory(lives: Lives, tmp_path: Path) -> None:
    """They are read line by line: a file of many times the memory that is used for it."""
    with EmbeddingServer(dimensions=3072) as server:
        texts = 2000
        everything = Orders(
            str(tmp_path / "e.sqlite"), "openai", server.base_url("openai"), texts, texts, 3072
        )
        lives.begin(everything)
        status, grown_kib = await asyncio.to_thread(lives.end)
        [job] = server.jobs.values()
        assert status == 0
        assert job.output_file is not None
        size_kib = len((server.files | server.deleted)[job.output_file]) // 1024
    # Held at once, the numbers alone would take 24 bytes each and more.
    assert size_kib > 20_000
    assert grown_kib < texts * 3072 * 24 / 1024 / 3
