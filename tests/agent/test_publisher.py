"""When a file is published, without a server: what a real index holds is put into a dict."""

import asyncio
import itertools
import threading
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any, cast

import apsw
import msgspec
import numpy as np
import pytest
import structlog

from memd.agent.publisher import Publisher, PublishProgress, installation_of
from memd.config.settings import Publish
from memd.postgres.connection import SharedUnavailable
from memd.postgres.mirror import VectorSpace
from memd.runtime.timers import Backoff
from memd.sources.safe_open import SourceError
from memd.store import chunk_parts
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.store.published_files import PublishedFile, read
from tests.backends.qmd.bench import Bench, indexing
from tests.bounds import shipped
from tests.clock import hastily, now_s
from tests.wait import until_async

FINGERPRINT = Fingerprint("c1", "t1", ("memory",), "hashing", "words-and-pairs", "1", 4)


class FakeServer:
    """Takes what a publisher gives it, in the place of a Mirror."""

    def __init__(self) -> None:
        self.files: dict[str, bytes] = {}
        self.vectors: dict[str, int] = {}
        self.puts: list[str] = []
        self.adopted: list[VectorSpace | None] = []
        self.is_silent = False
        self.abandoned = threading.Event()
        self.abandons = self.opens = self.closes = 0
        self.may_return = threading.Event()  # after a call was given up
        self.may_return.set()
        self.has_other_vectors = False

    def open(self) -> dict[str, bytes]:
        self.opens += 1
        return dict(self.files)

    def adopt(self, wanted: VectorSpace | None) -> bool:
        self.adopted.append(wanted)
        are_dropped, self.has_other_vectors = self.has_other_vectors, False
        return are_dropped

    def put(self, file: PublishedFile, _: Sequence[str], digest: bytes) -> None:
        self.puts.append(file.path)
        if self.is_silent:
            assert self.abandoned.wait(60)
            assert self.may_return.wait(60)
            raise SharedUnavailable("the connection was cut off")
        self.files[file.path] = digest
        self.vectors[file.path] = sum(one.vector is not None for one in file.chunks)

    def drop(self, path: str) -> None:
        del self.files[path]

    def abandon(self) -> None:
        self.abandons += 1
        self.abandoned.set()

    def close(self) -> None:
        self.closes += 1


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> FakeServer:
    """The one that is published to; nothing is looked at again without a reason."""
    made = FakeServer()
    monkeypatch.setattr("memd.agent.publisher.Mirror", lambda *_: made)
    monkeypatch.setattr("memd.agent.publisher.IDLE_S", 3600.0)
    monkeypatch.setattr("memd.agent.publisher.LOOK_S", 0.01)
    monkeypatch.setattr("tests.backends.qmd.bench.FINGERPRINT", FINGERPRINT)
    return made


@asynccontextmanager
async def publishing(tmp_path: Path, *, embeds: bool = True) -> AsyncIterator[tuple[Bench, Publisher]]:
    async with indexing(tmp_path, "qmd") as bench:
        settings = Publish(to="team", memory="alice/main", dsn_file="/nowhere")
        publisher = Publisher(
            "main", bench.index, bench.index_service, bench.rules, settings, "me", embeds=embeds
        )
        running = asyncio.create_task(publisher.run())
        try:
            yield bench, publisher
        finally:
            running.cancel()
            await asyncio.wait([running])


async def _embed(bench: Bench) -> None:
    vector = np.array([1, 0, 0, 0], "<f4").tobytes()
    waiting = await bench.index.waiting(10)
    assert await bench.index.add_vectors([(one.id, one.hash, vector) for one in waiting]) > 0


async def test_a_server_that_is_silent_is_asked_again(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The connection is cut off, so that the thread which waits on it is free; and nothing is lost."""
    monkeypatch.setattr("memd.agent.publisher.HANG_S", 0.2)
    server.is_silent = True
    async with publishing(tmp_path) as (bench, publisher):
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await until_async(
            lambda: publisher.progress.reason == "the server has not answered for 0.2 s", timeout_s=30
        )
        assert server.abandoned.is_set()
        server.is_silent = False
        await until_async(lambda: server.files and publisher.progress.reason is None)
        assert server.closes == 0
    assert server.closes == 1


async def test_a_publisher_that_ends_waits_for_no_server(tmp_path: Path, server: FakeServer) -> None:
    """The call that is under way is given up."""
    server.is_silent = True
    async with publishing(tmp_path) as (bench, _):
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await until_async(lambda: server.puts)
    assert (server.abandons, server.closes) == (1, 1)


async def test_one_call_at_a_time_is_made(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that is given up has to return before the next begins, however often that is given up, too."""
    monkeypatch.setattr("memd.agent.publisher.HANG_S", 0.05)
    monkeypatch.setattr("memd.agent.publisher.LONGEST_WAIT_S", 0.001)
    server.is_silent = True
    server.may_return.clear()
    async with publishing(tmp_path) as (bench, _):
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await until_async(lambda: server.puts)
        opens = server.opens
        await until_async(lambda: server.abandons >= 3)
        assert server.opens == opens
        server.is_silent = False
        server.may_return.set()
        await until_async(lambda: server.files)


async def test_a_failure_that_lasts_is_logged_once(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However often the server is tried; another one is logged again."""
    monkeypatch.setattr("memd.agent.publisher.LONGEST_WAIT_S", 0.001)
    trouble, tried = "it is away", list[str]()

    def refused() -> dict[str, bytes]:
        tried.append(trouble)
        raise SharedUnavailable(trouble)

    monkeypatch.setattr(server, "open", refused)
    with structlog.testing.capture_logs() as logs:
        async with publishing(tmp_path):
            await until_async(lambda: len(tried) > 3)
            trouble = "it is full"
            await until_async(lambda: tried.count(trouble) > 3)
    assert [one["reason"] for one in logs if one["event"] == "publish.failed"] == ["it is away", "it is full"]


async def test_a_server_that_answered_is_tried_as_soon_as_at_first(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The waits grow with the failures since then."""
    monkeypatch.setattr("memd.agent.publisher.COMPARE_S", 0.02)
    monkeypatch.setattr("memd.agent.publisher.IDLE_S", 0.0)
    counts: list[int] = []
    opened = itertools.count()

    class Counted(Backoff):
        def failed(self) -> float:
            super().failed()
            counts.append(self.failures)
            return 0.001

    def opens_now_and_then() -> dict[str, bytes]:
        if next(opened) in {0, 1, 2, 4, 5}:
            raise SharedUnavailable("it is away")
        return {}

    monkeypatch.setattr("memd.agent.publisher.Backoff", Counted)
    monkeypatch.setattr(server, "open", opens_now_and_then)
    async with publishing(tmp_path):
        await until_async(lambda: len(counts) == 5, 30)
    assert counts == [1, 2, 3, 1, 2]


async def test_an_index_that_stays_as_it_is_is_looked_at_once(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The publisher waits for a change: a memory that is published costs nothing while nothing is written."""
    async with publishing(tmp_path) as (bench, publisher):
        known, looks, looks_before = bench.index.known, 0, -1

        async def counted(*given: Any) -> Any:
            nonlocal looks
            looks += 1
            return await known(*given)

        def is_at_rest() -> bool:
            nonlocal looks_before
            before, looks_before = looks_before, looks
            return looks == before

        monkeypatch.setattr(bench.index, "known", counted)
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await _embed(bench)
        await until_async(
            lambda: publisher.progress == PublishProgress(1, 0, None) and server.vectors["memory/a.md"]
        )
        assert looks
        await until_async(is_at_rest, timeout_s=2)


def test_a_call_has_longer_than_the_statements_of_its_transaction(monkeypatch: pytest.MonkeyPatch) -> None:
    """The server ends a statement that takes too long before the connection is given up."""

    class Hanging:
        def __init__(self, *_: object) -> None:
            """Run nothing."""

        async def run(self, call: Callable[[], object]) -> None:
            if call != server.close:
                await asyncio.Event().wait()

    async def given_up_after_s() -> float:
        given_up = asyncio.Event()
        monkeypatch.setattr(server, "abandon", given_up.set)
        publishing = Publisher("main", none, none, none, settings, "me", embeds=True)
        running = asyncio.create_task(publishing.run())
        await given_up.wait()
        after_s = now_s()
        running.cancel()
        await asyncio.wait([running])
        return after_s

    server, none = FakeServer(), cast("Any", None)
    settings = Publish(to="team", memory="alice/main", dsn_file="/nowhere")
    monkeypatch.setattr("memd.agent.publisher.Mirror", lambda *_: server)
    monkeypatch.setattr("memd.agent.publisher.Threads", Hanging)
    hang_s = shipped("memd.agent.publisher.HANG_S")
    assert hang_s > shipped("memd.postgres.mirror.TRANSACTION_S")
    assert hastily(given_up_after_s()) == pytest.approx(hang_s, abs=1)


async def test_a_vector_follows_though_nothing_changes(tmp_path: Path, server: FakeServer) -> None:
    """It is told by no change of the index; a note that has all its vectors is not looked at again for it."""
    async with publishing(tmp_path) as (bench, publisher):
        assert publisher.progress == PublishProgress(0, 0, "it has not begun yet")
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await until_async(lambda: server.files)
        assert server.vectors == {"memory/a.md": 0}
        await _embed(bench)
        await until_async(lambda: server.vectors == {"memory/a.md": 1})
        await until_async(lambda: publisher.progress == PublishProgress(1, 0, None))
        assert server.puts == ["memory/a.md"] * 2


async def test_vectors_of_chunks_wait_for_none_of_parts_that_get_no_vectors(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A provider that embeds chunks alone: all that there will be is published as soon as it is there."""
    monkeypatch.setattr("memd.agent.publisher.VECTORS_S", 3600.0)
    assert not FINGERPRINT.parts
    async with publishing(tmp_path) as (bench, publisher):
        bench.write(
            "memory/a.md", "\n".join(f"Line {number} of a long note about the mill." for number in range(40))
        )
        await bench.settle()
        await until_async(lambda: server.files)
        waiting = await bench.index.database.read(chunk_parts.waiting_counts)
        assert waiting[0] > 0
        await _embed(bench)
        await until_async(lambda: server.vectors["memory/a.md"] > 0)
        await until_async(lambda: publisher.progress == PublishProgress(1, 0, None))


async def test_not_each_vector_is_worth_a_transaction(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While others of the file are being made, it waits for them; the text does not."""
    monkeypatch.setattr("memd.agent.publisher.VECTORS_S", 3600.0)
    async with publishing(tmp_path) as (bench, publisher):
        fingerprint, looks = bench.index.fingerprint, list[None]()

        async def counted() -> Fingerprint | None:
            looks.append(None)
            return await fingerprint()

        bench.write(
            "memory/a.md", "\n\n".join(f"# Part {number}\n" + "kestrel " * 300 for number in range(3))
        )
        await bench.settle()
        await until_async(lambda: server.files)
        first, *others = await bench.index.waiting(1000)
        assert others
        vector = np.array([1, 0, 0, 0], "<f4").tobytes()
        await bench.index.add_vectors([(first.id, first.hash, vector)])
        monkeypatch.setattr(bench.index, "fingerprint", counted)
        await until_async(lambda: len(looks) > 3)
        assert server.puts == ["memory/a.md"]
        await bench.index.add_vectors([(one.id, one.hash, vector) for one in others])
        await until_async(lambda: server.vectors == {"memory/a.md": 1 + len(others)})
        await until_async(lambda: publisher.progress == PublishProgress(1, 0, None))
        assert server.puts == ["memory/a.md"] * 2


@pytest.mark.parametrize(("embeds", "adopted"), [(True, []), (False, [None])])
async def test_vectors_there_are_kept_until_it_is_known_what_they_are_to_be(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch, *, embeds: bool, adopted: list[None]
) -> None:
    """An index that was lost does not know its model at first; where nothing is to be embedded, there are to be none."""
    unknown = msgspec.structs.replace(FINGERPRINT, provider=None, model=None, key=None, dimensions=None)
    monkeypatch.setattr("tests.backends.qmd.bench.FINGERPRINT", unknown)
    async with publishing(tmp_path, embeds=embeds) as (bench, _):
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await until_async(lambda: server.files)
    assert server.adopted == adopted


@pytest.mark.parametrize("what", ["looks", "refills", "has marks"])
async def test_what_is_gone_goes_once_all_has_been_looked_at(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch, what: str
) -> None:
    """Until then it is counted as waiting: the index may only not have it yet."""
    is_whole = asyncio.Event()
    if what == "looks":
        monkeypatch.setattr("memd.index_service.IndexService.is_whole", property(lambda _: is_whole.is_set()))
    elif what == "refills":
        begun_anew = property(lambda _: None if is_whole.is_set() else "it was damaged", lambda *_: None)
        monkeypatch.setattr(Index, "begun_anew", begun_anew, raising=False)
    else:
        monkeypatch.setattr(
            "memd.index_service.IndexService.pending", property(lambda _: not is_whole.is_set())
        )
    server.files["memory/old.md"] = b"x"
    async with publishing(tmp_path) as (bench, publisher):
        await bench.settle()
        await until_async(lambda: publisher.progress == PublishProgress(0, 1, None))
        assert server.files
        is_whole.set()
        await until_async(lambda: not server.files)
        await until_async(lambda: publisher.progress == PublishProgress(0, 0, None))


async def test_a_note_that_cannot_be_read_is_not_said_to_be_published(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It waits, and the log says nothing each time it is looked at."""
    tried: list[str] = []

    def refused(path: str, *_: object, **__: object) -> None:
        tried.append(path)
        raise SourceError(path, "it may not be read")

    monkeypatch.setattr("memd.agent.publisher.read_note", refused)
    with structlog.testing.capture_logs() as logs:
        async with publishing(tmp_path) as (bench, publisher):
            bench.write("memory/a.md", "A note.\n")
            await bench.settle()
            await until_async(lambda: len(tried) >= 3)
            assert publisher.progress == PublishProgress(0, 1, None)
    assert (server.puts, [one for one in logs if one["event"] == "publish.done"]) == ([], [])


async def test_digests_are_kept_while_the_server_is_looked_at_again(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What somebody has changed there is put again; all else is not even read."""
    monkeypatch.setattr("memd.agent.publisher.COMPARE_S", 0.02)
    monkeypatch.setattr("memd.agent.publisher.IDLE_S", 0.02)
    async with publishing(tmp_path) as (bench, _):
        for name in ("a", "b"):
            bench.write(f"memory/{name}.md", f"Note {name}.\n")
        await bench.settle()
        await _embed(bench)
        await until_async(lambda: server.vectors == {"memory/a.md": 1, "memory/b.md": 1})
        rounds = len(server.adopted)
        await until_async(lambda: len(server.adopted) > rounds + 1)
        reads: list[str] = []

        def noted(connection: apsw.Connection, path: str) -> PublishedFile | None:
            reads.append(path)
            return read(connection, path)

        monkeypatch.setattr("memd.agent.publisher.published_files.read", noted)
        puts = len(server.puts)
        server.files["memory/b.md"] = b"changed by somebody"
        await until_async(lambda: len(server.puts) > puts)
    assert (server.puts[puts:], set(reads)) == (["memory/b.md"], {"memory/b.md"})


async def test_vectors_that_the_server_has_dropped_are_put_again(
    tmp_path: Path, server: FakeServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those of another model, which was adopted meanwhile, and with them those that were wanted before and after it."""
    monkeypatch.setattr("memd.agent.publisher.COMPARE_S", 0.02)
    monkeypatch.setattr("memd.agent.publisher.IDLE_S", 0.02)
    async with publishing(tmp_path) as (bench, _):
        bench.write("memory/a.md", "A note.\n")
        await bench.settle()
        await _embed(bench)
        await until_async(lambda: server.vectors == {"memory/a.md": 1})
        server.vectors.clear()
        server.has_other_vectors = True
        await until_async(lambda: server.vectors == {"memory/a.md": 1})


def test_the_name_of_an_installation_is_made_once(tmp_path: Path) -> None:
    """An empty file, as a crash may have left one, is none."""
    (tmp_path / "installation").touch()
    name = installation_of(tmp_path)
    assert len(name) == 32
    assert installation_of(tmp_path) == name
    assert (tmp_path / "installation").stat().st_mode & 0o077 == 0
