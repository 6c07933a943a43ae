"""How much room the cache of vectors takes on disk."""

from pathlib import Path

import apsw

from memd.domain_types import TextHash
from memd.store import database_files
from memd.store.embedding_cache import EmbeddingStore

SPACE = ("local", "multilingual-e5-small", "1a2b3c4d5e6f")
VECTOR = bytes(4 * 384)
COUNT = 2000


async def file_with_vectors(file: Path) -> int:
    """The size of a cache with vectors of the bundled model, which all come back."""
    store = EmbeddingStore(file)
    await store.open()
    vectors = {TextHash(number.to_bytes(32, "big")): VECTOR for number in range(COUNT)}
    await store.put(SPACE, vectors, 1.0)
    found = await store.look_up(SPACE, list(vectors), 2.0)
    assert found.vectors == vectors
    await store.close()
    return database_files.size(file)


async def test_vectors_of_the_bundled_model_fill_their_pages(tmp_path: Path) -> None:
    """One of before keeps the pages that it has, whose fifth stays empty."""
    size = await file_with_vectors(tmp_path / "embeddings.sqlite")
    assert size < 1.2 * COUNT * len(VECTOR)
    before = tmp_path / "before.sqlite"
    connection = apsw.Connection(str(before))
    connection.pragma("page_size", 4096)
    connection.pragma("journal_mode", "wal")
    connection.execute("CREATE TABLE t (x); DROP TABLE t")
    connection.close()
    assert await file_with_vectors(before) > 1.3 * COUNT * len(VECTOR)
