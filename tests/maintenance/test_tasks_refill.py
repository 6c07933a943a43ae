"""What an index has and the cache of vectors has not."""

import asyncio
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import cast

import apsw
import pytest
from structlog.testing import capture_logs

from memd.domain_types import TextHash
from memd.maintenance.tasks import BATCH, refill, refill_cache
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.embedding_cache import EmbeddingStore
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index
from memd.store.int16_vectors import rounded
from memd.store.meta import Fingerprint
from tests.maintenance.keeping import keep
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, vector_of
from tests.wait import until_async

NOTES = 3
SPACE = ("fake", "m", "k")
VECTORS: dict[TextHash, bytes] = {
    chunk_of(f"note {number}").hash: vector_of(number) for number in range(NOTES)
}


@pytest.fixture
async def index(tmp_path: Path) -> AsyncIterator[Index]:
    """An index of some notes, with their vectors."""
    opened = Index(tmp_path / "main.sqlite")
    await opened.open()
    await opened.adopt(FINGERPRINT)
    for number in range(NOTES):
        chunk = chunk_of(f"note {number}")
        await opened.replace(found_file(f"memory/{number}.md"), b"", [chunk], VECTORS, frozenset())
    yield opened
    await opened.close()


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[EmbeddingStore]:
    """A cache."""
    cache = EmbeddingStore(file)
    await cache.open()
    try:
        yield cache
    finally:
        await cache.close()


async def filled(file: Path) -> None:
    """A cache with the vectors of all notes, which was closed."""
    async with opened(file) as cache:
        await cache.put(SPACE, VECTORS, 0.0)


def emptied(file: Path) -> None:
    """Of what was cached nothing is left."""
    connection = apsw.Connection(str(file))
    connection.execute("DELETE FROM cache")
    connection.close()


def count(file: Path) -> int:
    """How many vectors are cached."""
    connection = apsw.Connection(str(file))
    try:
        found: int = connection.execute("SELECT count(*) FROM cache").get
        return found
    finally:
        connection.close()


def never_made(file: Path) -> None:
    file.unlink()


def made_in_vain(file: Path) -> None:
    """The power went while it was made for the first time."""
    file.write_bytes(b"")


def only_the_name_of_its_log_is_left(file: Path) -> None:
    """The power went after vectors had been cached."""
    emptied(file)
    Path(f"{file}-wal").touch()


async def test_how_many_were_put_into_the_cache_is_told(tmp_path: Path, index: Index) -> None:
    """Those that it had are not counted, nor what an index without vectors lacks."""
    async with opened(tmp_path / "embeddings.sqlite") as cache:
        assert await refill(index, cache) == NOTES
        assert await refill(index, cache) == 0
    bare = Index(tmp_path / "bare.sqlite")
    await bare.open()
    async with opened(tmp_path / "other.sqlite") as cache:
        assert await refill(bare, cache) == 0
    await bare.close()


@pytest.mark.parametrize("trouble", [StoreUnavailable("the disk is full"), StoreDamaged("page 7")])
async def test_a_refill_that_is_cut_short_tells_what_it_has_done(trouble: Exception) -> None:
    """The rest is embedded again when it is wanted: that is no reason to fail."""
    done: list[int] = []

    class Torn:
        file = Path("main.sqlite")

        async def fingerprint(self) -> Fingerprint:
            return FINGERPRINT

        async def embedded(self) -> list[TextHash]:
            return [TextHash(b"%d" % number) for number in range(2 * BATCH + 1)]

        async def vectors_of(self, hashes: Sequence[TextHash]) -> dict[TextHash, bytes]:
            done.append(len(hashes))
            if len(done) == 2:
                raise trouble
            return dict.fromkeys(hashes, b"v")

    class Taking:
        async def look_up(self, *_: object) -> SimpleNamespace:
            return SimpleNamespace(vectors={TextHash(b"0"): b"v"})

        async def put(self, *_: object) -> None:
            pass

    with capture_logs() as logs:
        assert await refill(cast("Index", Torn()), cast("EmbeddingStore", Taking())) == BATCH - 1
    assert done == [BATCH - 1, BATCH]
    assert [(one["event"], one.get("reason"), one.get("vectors")) for one in logs] == [
        ("cache.refill_cut_short", str(trouble), None),
        ("cache.refilled", None, BATCH - 1),
    ]


@pytest.mark.parametrize("end", [never_made, made_in_vain, only_the_name_of_its_log_is_left])
async def test_a_cache_that_may_lack_something_gets_it_from_the_index(
    tmp_path: Path, index: Index, end: Callable[[Path], None]
) -> None:
    """Where it is new, or nobody has closed it, the vectors of the index are put into it."""
    file = tmp_path / "embeddings.sqlite"
    await filled(file)
    end(file)
    async with opened(file) as cache:
        filling = asyncio.create_task(keep(refill_cache(index, cache)))
        await until_async(lambda: count(file) == NOTES)
        assert (await cache.look_up(SPACE, list(VECTORS), 0.0)).vectors == rounded(VECTORS)
        filling.cancel()
        await asyncio.wait([filling])


async def test_a_cache_that_was_closed_lacks_only_what_it_has_dropped(tmp_path: Path) -> None:
    """It knows that nothing was taken from it."""
    file = tmp_path / "embeddings.sqlite"
    await filled(file)
    async with opened(file) as cache:
        assert cache.ended_cleanly


@pytest.mark.parametrize("ended_cleanly", [False, True])
async def test_the_cache_is_refilled_where_it_may_lack_something_and_whenever_it_is_renewed(
    ended_cleanly: bool,
) -> None:
    """Once each time; what was lost before anybody waited counts, too."""
    cache = SimpleNamespace(ended_cleanly=ended_cleanly, renewed=ChangeNotifier())
    cache.renewed.notify()
    due = refill_cache(cast("Index", None), cast("EmbeddingStore", cache)).due
    async with asyncio.timeout(20):
        for _ in range(1 if ended_cleanly else 2):
            await due()
        for _ in range(2):
            waiting = asyncio.ensure_future(due())
            for _ in range(3):
                await asyncio.sleep(0)
            assert not waiting.done()
            cache.renewed.notify()
            await waiting
