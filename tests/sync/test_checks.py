import asyncio

import apsw

from memd.store.index import Index
from memd.sync.checks import keep_checking
from tests.store.conftest import chunk_of, found_file, index
from tests.wait import until_async

__all__ = ["index"]


async def told(index: Index, *, every_s: float) -> str:
    """The first damage that is found."""
    found: list[str] = []
    checking = asyncio.create_task(
        keep_checking(index, found.append, lambda: False, every_s=every_s, gone_s=0.01)
    )
    try:
        await until_async(lambda: found, 10)
    finally:
        checking.cancel()
    return found[0]


async def test_zeroed_keywords_are_found_while_nobody_searches(index: Index) -> None:
    """SQLite itself finds nothing wrong with them; the check does."""
    for number in range(20):
        await index.replace(
            found_file(f"memory/{number}.md"), b"1", [chunk_of(f"words {number} " * 90)], {}, frozenset()
        )
    other = apsw.Connection(str(index.file))
    other.execute("UPDATE keywords_data SET block = zeroblob(length(block)) WHERE id > 1000")
    assert other.changes() > 0
    other.close()
    assert "fts5" in await told(index, every_s=0.02)


async def test_a_file_that_is_gone_is_found_while_nobody_searches(index: Index) -> None:
    """What the index has is still there to be read; what it writes would be lost."""
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("words")], {}, frozenset())
    index.file.unlink()
    assert "deleted or replaced" in await told(index, every_s=3600)
    assert (await index.counts()).chunks == 1
