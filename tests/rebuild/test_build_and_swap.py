"""A new index that is embedded before it takes its place."""

import asyncio
import errno
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import msgspec
import pytest

from memd.embedding.passage_queue.agent_backlog import PublishedVectors
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.registry import AgentProviders, AgentQueues
from memd.indexing.run_pass import PassRunner
from memd.rebuild.build_and_swap import CATCHING_UP, LOOK_S, NewIndexEmbedding, beside, discard, discard_all
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreUnavailable
from memd.store.index import Index
from tests.embedding.passage_queue.queues import FINGERPRINT, queue_of, running
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async


class Bench:
    """An old index with a vector, a new one for the model of a queue, and a disk on which something changes meanwhile."""

    def __init__(self, old: Index, new: Index, queue: EmbeddingQueue) -> None:
        self.new = new
        self.is_answering = True
        self.to_come = 0  # files that change while it is embedded, one at each filling
        self.fillings = 0
        providers = SimpleNamespace(
            embeds=True,
            cache=queue.known.store,
            is_answering=lambda _: self.is_answering,
            queue=lambda _: queue,
        )
        self.queues = AgentQueues("main", cast("AgentProviders", providers))
        runner = SimpleNamespace(fill=self._fill)
        self.embedding = NewIndexEmbedding(old, self.queues, cast("PassRunner", runner))

    async def _fill(self, index: Index) -> None:
        self.fillings += 1
        if self.to_come:
            self.to_come -= 1
            name = f"memory/new{self.fillings}.md"
            await index.replace(found_file(name), b"1", [chunk_of(name)], {}, frozenset())

    async def embed(self) -> int:
        """Embed the new index; how many of its chunks wait afterwards."""
        async with asyncio.timeout(60):
            await self.embedding.embed(self.new)
        assert self.embedding.progress is None
        return (await self.new.counts()).waiting


@asynccontextmanager
async def bench(tmp_path: Path, texts: int = 3) -> AsyncIterator[Bench]:
    """Everything open, and the queue at work."""
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    old, new = Index(tmp_path / "main.sqlite"), Index(tmp_path / "main.sqlite.next")
    for index, model in ((old, "the model of before"), (new, FINGERPRINT.model)):
        await index.open()
        await index.adopt(msgspec.structs.replace(FINGERPRINT, model=model))
    chunk = chunk_of("old")
    vector = {chunk.hash: HashingProvider().embed(["old"])[0].tobytes()}
    await old.replace(found_file("memory/a.md"), b"1", [chunk], vector, frozenset())
    chunks = [chunk_of(f"text {number}", number + 1) for number in range(texts)]
    await new.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    assert old.has_vectors
    queue = queue_of(HashingProvider(), cache)
    async with running(queue, old, new):
        yield Bench(old, new, queue)
    await cache.close()


async def test_all_of_it_is_embedded_and_what_changes_meanwhile_too(tmp_path: Path) -> None:
    """The old one answers by meaning until then; the disk is looked at once more each time."""
    async with bench(tmp_path) as made:
        made.to_come = 1
        assert await made.embed() == 0
        assert made.fillings == 2
        assert (await made.new.counts()).chunks == 4


async def test_a_disk_that_never_rests_is_not_waited_for_for_ever(tmp_path: Path) -> None:
    """After a few rounds the little that is left waits in the new index."""
    async with bench(tmp_path) as made:
        made.to_come = 100
        assert await made.embed() == 1
        assert made.fillings == CATCHING_UP


async def test_nothing_is_waited_for_that_no_search_gains_by(tmp_path: Path) -> None:
    """Where nobody embeds questions for the old vectors, or vectors rest, or the model is the same, the new one is better now."""
    async with bench(tmp_path) as made:
        made.is_answering = False
        assert await made.embed() == 3
        made.is_answering, made.queues.suspended = True, True
        assert await made.embed() == 3
        made.queues.suspended = False
        await made.new.adopt(msgspec.structs.replace(FINGERPRINT, model="the model of before"))
        assert await made.embed() == 3
        assert made.fillings == 0


async def test_between_two_looks_at_what_nobody_embeds_is_a_part_of_a_second(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The new index takes its place soon after somebody has."""
    pauses: list[float] = []
    sleep = asyncio.sleep

    async def at_once(seconds: float) -> None:
        pauses.append(seconds)
        await sleep(0)

    async with bench(tmp_path) as made:
        queue, looks = made.queues.providers.queue, []

        def second_time(space: object) -> EmbeddingQueue | None:
            looks.append(space)
            return queue(FINGERPRINT.space) if len(looks) > 1 else None

        made.queues.providers.queue = second_time  # type: ignore[method-assign]
        # Not while it is closed: a database that waits for its readers sleeps, too.
        with monkeypatch.context() as patched:
            patched.setattr("memd.rebuild.build_and_swap.asyncio.sleep", at_once)
            assert await made.embed() == 0
    assert [one for one in pauses if one] == [LOOK_S / 4]
    assert 0 < LOOK_S <= 4


async def test_what_nobody_embeds_just_now_is_looked_at_now_and_then(tmp_path: Path) -> None:
    """Not again and again without a pause."""
    async with bench(tmp_path) as made:
        looks: list[object] = []
        made.queues.providers.queue = looks.append  # type: ignore[method-assign, assignment]
        embedding = asyncio.create_task(made.embedding.embed(made.new))
        await until_async(lambda: looks)
        for _ in range(30):
            await made.new.counts()
        assert len(looks) < 10
        embedding.cancel()
        await asyncio.wait([embedding])


def test_what_killed_daemons_have_built_is_deleted(tmp_path: Path) -> None:
    """With its log and the rest; what serves stays, and a directory that can only be read is left as it is."""
    kept = ["main.sqlite", "main.sqlite-wal", "next.md"]
    half = beside(tmp_path / "main.sqlite").name
    for name in (*kept, half, f"{half}-wal", f"{half}-shm", beside(tmp_path / "gone.sqlite").name):
        (tmp_path / name).touch()
    discard_all(tmp_path)
    assert sorted(file.name for file in tmp_path.iterdir()) == sorted(kept)


def test_a_file_that_cannot_be_deleted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Is told by its name where one is to be built there, and left alone at a start."""

    def refused(*_: object, **__: object) -> None:
        raise OSError(errno.EROFS, "Read-only file system")

    index = Index(tmp_path / "main.sqlite")
    beside(index.file).touch()
    monkeypatch.setattr(Path, "unlink", refused)
    with pytest.raises(StoreUnavailable, match=r"main\.sqlite.* cannot be deleted: Read-only file system"):
        discard(index)
    discard_all(tmp_path)
    assert beside(index.file).exists()


async def test_the_cache_is_that_of_the_agent(tmp_path: Path) -> None:
    """Where it has one."""
    async with bench(tmp_path) as made:
        assert made.embedding.cache is made.queues.providers.cache
        made.queues.providers.cache = None
        assert made.embedding.cache is None


async def test_vectors_that_are_to_be_computed_anew_are_not_taken_from_where_they_are_published(
    tmp_path: Path,
) -> None:
    """An agent that publishes nothing has none there."""
    async with bench(tmp_path) as made:
        made.embedding.leave_out_published()
        left_out: list[object] = []
        made.queues.published = cast(
            "PublishedVectors", SimpleNamespace(leave_out=lambda: left_out.append(None))
        )
        made.embedding.leave_out_published()
        assert left_out == [None]
