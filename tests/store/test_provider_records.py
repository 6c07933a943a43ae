"""What is remembered of providers, and files of before it was."""

from collections.abc import AsyncIterator
from importlib import resources
from pathlib import Path

import apsw
import pytest

from memd.domain_types import BatchFile, BatchJob, TextHash
from memd.store.embedding_cache import EmbeddingStore, Space
from memd.store.errors import StoreFull
from memd.store.int16_vectors import rounded
from memd.store.migrations import newest
from memd.store.provider_records import DOUBTED_S, KEPT_S, ProviderStore, SentTexts, files_left, sent_so_far
from tests.store.conftest import vector_of

SPACE = ("openai", "small", "k")
OTHER = ("openai", "large", "k")
ONE, TWO, THREE = (TextHash(bytes([number]) * 32) for number in (1, 2, 3))


@pytest.fixture
async def cache(tmp_path: Path) -> AsyncIterator[EmbeddingStore]:
    opened = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await opened.open()
    yield opened
    await opened.close()


def at(cache: EmbeddingStore, space: Space, now: float) -> ProviderStore:
    """The records of a space at a time."""
    return ProviderStore(cache, space, lambda: now)


async def forget(cache: EmbeddingStore, now: float) -> None:
    """Forget what is old at a time."""
    await at(cache, SPACE, now).forget_old()


async def test_a_job_is_remembered_with_its_texts(cache: EmbeddingStore) -> None:
    """Until it ends; its name and the time of its creation come later."""
    store = ProviderStore(cache, SPACE)
    await store.begin(BatchJob("b", 1, 20.0), {THREE: 0.5}, "b.jsonl")
    await store.begin(BatchJob("a", 2, 10.0), {ONE: 0.5, TWO: 0.5}, "a.jsonl")
    assert await store.jobs() == [BatchJob("a", 2, 10.0), BatchJob("b", 1, 20.0)]
    await store.created("a", "batch_1", 30.0)
    assert await store.jobs() == [BatchJob("b", 1, 20.0), BatchJob("a", 2, 30.0, "batch_1")]
    assert (await store.missing("a")).keys() == {ONE, TWO}
    await store.end("a", {"batch": b"{}"})
    assert await store.jobs() == [BatchJob("b", 1, 20.0)]
    assert (await store.missing("a")).keys() == set()
    assert await store.document("batch") == b"{}"


async def test_what_was_sent_is_added_up_by_model(cache: EmbeddingStore) -> None:
    """Over keys and restarts; what is no count is nothing."""
    await ProviderStore(cache, SPACE).add_sent(2, 30)
    await ProviderStore(cache, SPACE).add_sent(1, 5)
    await ProviderStore(cache, ("openai", "small", "another key")).add_sent(10, 100)
    await ProviderStore(cache, OTHER).put_document("sent", b"[broken")
    assert await sent_so_far(cache) == {
        ("openai", "large"): SentTexts(),
        ("openai", "small"): SentTexts(13, 135),
    }
    await ProviderStore(cache, OTHER).add_sent(1, 1)
    assert (await sent_so_far(cache))["openai", "large"] == SentTexts(1, 1)


async def test_what_is_kept_is_cached_and_no_longer_awaited(cache: EmbeddingStore) -> None:
    """Both at once, whoever looks afterwards."""
    store = ProviderStore(cache, SPACE)
    await store.begin(BatchJob("a", 2, 10.0), {ONE: 0.5, TWO: 0.5}, "a.jsonl")
    await store.keep("a", {ONE: vector_of(1)})
    assert (await store.missing("a")).keys() == {TWO}
    assert (await cache.look_up(SPACE, [ONE, TWO], 6.0)).vectors == rounded({ONE: vector_of(1)})
    assert await store.kept([ONE, TWO]) == {ONE}
    assert await ProviderStore(cache, OTHER).kept([ONE, TWO]) == frozenset()


async def test_spaces_know_nothing_of_each_other(cache: EmbeddingStore) -> None:
    """Neither of jobs nor of documents."""
    store, other = ProviderStore(cache, SPACE), ProviderStore(cache, OTHER)
    await store.begin(BatchJob("a", 1, 10.0), {ONE: 0.5}, "a.jsonl")
    await store.put_document("batch", b"1")
    await store.put_document("batch", b"2")
    await other.put_document("batch", b"3")
    assert await other.jobs() == []
    assert (await store.document("batch"), await other.document("batch")) == (b"2", b"3")
    assert await store.document("nothing") is None


async def test_jobs_and_files_that_nobody_came_back_to_are_forgotten(cache: EmbeddingStore) -> None:
    """Of a provider that was given up a month ago, when the clock has said so for a week."""
    store, other = ProviderStore(cache, SPACE), ProviderStore(cache, OTHER)
    await other.begin(BatchJob("old", 1, 10.0), {ONE: 0.5}, "old.jsonl")
    await store.begin(BatchJob("a", 1, KEPT_S), {ONE: 0.5}, "a.jsonl")
    for now in (KEPT_S + 10.0, KEPT_S + 11.0, KEPT_S + 10.9 + DOUBTED_S):
        await forget(cache, now)
        assert [job.id for job in await other.jobs()] == ["old"], now
    await forget(cache, KEPT_S + 11.0 + DOUBTED_S)
    assert (await other.jobs(), await other.files()) == ([], [])
    assert (await other.missing("old")).keys() == set()
    assert [job.id for job in await store.jobs()] == ["a"]
    assert (await store.missing("a")).keys() == {ONE}
    assert await store.files() == [BatchFile("a.jsonl", "a", is_sought=True)]


async def test_a_clock_that_was_ahead_makes_nobody_forget(cache: EmbeddingStore) -> None:
    """Nor is what it noted kept for ever: it counts from the first look at the time as it is."""
    store, ahead_s = ProviderStore(cache, SPACE), 7 * 365 * 86400.0
    await store.begin(BatchJob("a", 1, 10.0), {ONE: 0.5}, "a.jsonl")
    for day in range(6):
        await forget(cache, ahead_s + day * 86400.0)
    await store.begin(BatchJob("b", 1, ahead_s), {TWO: 0.5}, "b.jsonl")
    for now in (20.0, 20.0 + DOUBTED_S + 1):
        await forget(cache, now)
        assert [job.id for job in await store.jobs()] == ["a", "b"]
    # Ahead once more, long after: the doubt of the first time has not lasted.
    await forget(cache, 2 * ahead_s)
    assert len(await store.jobs()) == len(await store.files()) == 2
    await forget(cache, 20.0 + KEPT_S + 1)
    await forget(cache, 20.0 + KEPT_S + 1 + DOUBTED_S)
    assert (await store.jobs(), await store.files()) == ([], [])


async def test_jobs_and_documents_survive_a_restart(tmp_path: Path) -> None:
    """They are in the file."""
    file = tmp_path / "embeddings.sqlite"
    first = EmbeddingStore(file)
    await first.open()
    await ProviderStore(first, SPACE).begin(BatchJob("a", 2, 10.0, "x"), {ONE: 0.5, TWO: 0.5}, "a.jsonl")
    await ProviderStore(first, SPACE).put_document("batch", b"{}")
    await first.close()
    second = EmbeddingStore(file)
    await second.open()
    store = ProviderStore(second, SPACE)
    assert await store.jobs() == [BatchJob("a", 2, 10.0, "x")]
    assert (await store.missing("a")).keys() == {ONE, TWO}
    assert await store.document("batch") == b"{}"
    await second.close()


async def test_a_write_that_fails_writes_nothing_of_it(cache: EmbeddingStore) -> None:
    """A job whose texts do not fit on the disk is not there at all, and the caller knows."""
    store = ProviderStore(cache, SPACE)

    def fill(connection: apsw.Connection) -> None:
        connection.pragma("max_page_count", connection.pragma("page_count") + 2)

    await cache.write(fill)
    many = [TextHash(number.to_bytes(32, "big")) for number in range(20_000)]
    with pytest.raises(StoreFull):
        await store.begin(BatchJob("a", len(many), 1.0), dict.fromkeys(many, 0.0), "a.jsonl")
    assert await store.jobs() == []
    assert (await store.missing("a")).keys() == set()


async def test_a_file_of_before_there_were_jobs_loses_no_vector(tmp_path: Path) -> None:
    """Its schema grows when it is opened; vectors and refusals stay."""
    file = tmp_path / "embeddings.sqlite"
    old = apsw.Connection(str(file))
    old.pragma("journal_mode", "wal")
    folder = resources.files("memd.store") / "sql" / "embeddings"
    old.execute((folder / "001_vectors.sql").read_text("utf-8"))
    old.pragma("user_version", 1)
    old.executemany(
        "INSERT INTO cache VALUES (?, ?, ?, ?, ?, ?)",
        [(*SPACE, number.to_bytes(32, "big"), vector_of(number), 1.0) for number in range(500)],
    )
    old.execute("INSERT INTO set_aside VALUES (?, ?, ?, ?, ?, ?)", (*SPACE, ONE, "refused", 1.0))
    old.close()
    store = EmbeddingStore(file)
    await store.open()
    hashes = [TextHash(number.to_bytes(32, "big")) for number in range(500)]
    found = (await store.look_up(SPACE, hashes, 2.0)).vectors
    assert found == rounded({text_hash: vector_of(number) for number, text_hash in enumerate(hashes)})
    assert await store.refused(SPACE, [ONE]) == {ONE}
    await ProviderStore(store, SPACE).begin(BatchJob("a", 1, 1.0), {TWO: 0.5}, "a.jsonl")
    assert store.failure is None
    await store.close()
    opened = apsw.Connection(str(file))
    assert opened.pragma("user_version") == newest("embeddings")
    opened.close()


async def test_files_of_jobs_are_known_until_they_are_dropped(cache: EmbeddingStore) -> None:
    """Whether or not their job is; each space knows its own. One that is sought is known before there is any."""
    store, other = ProviderStore(cache, SPACE), ProviderStore(cache, OTHER)
    await store.begin(BatchJob("a", 1, 10.0), {ONE: 0.0}, "a.jsonl")
    await at(cache, SPACE, 11.0).add_files("a", ["in", "out"])
    await at(cache, SPACE, 12.0).add_files("a", ["in"])
    await at(cache, OTHER, 13.0).add_files("b", ["in"])
    assert await cache.read(files_left) == (f"{OTHER[0]} in",)
    await store.end("a", {})
    sought = BatchFile("a.jsonl", "a", is_sought=True)
    assert await store.files() == [sought, BatchFile("in", "a"), BatchFile("out", "a")]
    await store.drop_file("in")
    await store.drop_file("a.jsonl")
    assert await store.files() == [BatchFile("out", "a")]
    assert await other.files() == [BatchFile("in", "b")]
    assert await cache.read(files_left) == tuple(sorted([f"{SPACE[0]} out", f"{OTHER[0]} in"]))
