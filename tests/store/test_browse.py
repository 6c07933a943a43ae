"""Pages of what an index holds."""

from datetime import UTC, timedelta, timezone, tzinfo

import apsw
import pytest

from memd.domain_types import NO_FILTER, Kind
from memd.store.browse import FileOrder, cursor_place
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from tests.store.conftest import chunk_of, found_file

NOTES = frozenset({Kind.NOTE, Kind.CURATED})
DAY_NS = 86_400 * 10**9


async def put(index: Index, path: str, *texts: str, mtime_ns: int = DAY_NS, kind: Kind = Kind.NOTE) -> None:
    """Index a file of these chunks, a line each."""
    chunks = [chunk_of(text, line) for line, text in enumerate(texts, 1)]
    await index.replace(found_file(path, kind=kind, mtime_ns=mtime_ns), b"h" * 32, chunks, {}, frozenset())


async def listed(
    index: Index, zone: tzinfo = UTC, *, folder: str | None = None, by_time: bool = False
) -> list[str]:
    """The paths of all pages, each of two entries."""
    paths: list[str] = []
    after: str | None = None
    for _ in range(9):
        order = FileOrder(most=2, zone=zone, after=cursor_place(after), folder=folder, by_time=by_time)
        page = await index.file_page(NO_FILTER, NOTES, order)
        paths += [*page.folders, *(file.path for file in page.files)]
        if (after := page.next) is None:
            return paths
    raise AssertionError("the pages do not end")


async def test_every_file_is_on_one_page(index: Index) -> None:
    """Whatever characters its path has; of kinds that may not be seen nothing is, and a file without text is there."""
    for path in ("a b/c 1.md", "a b.md", "a/é.md", "a/z.md", "/abs/x.md", "😀.md"):
        await put(index, path, "text")
    await put(index, "empty.md")
    await put(index, "sessions/s.jsonl", "text", kind=Kind.SESSION)
    every = ["/abs/x.md", "a b.md", "a b/c 1.md", "a/z.md", "a/é.md", "empty.md", "😀.md"]
    assert await listed(index) == every
    assert await listed(index, folder="") == ["/", "a b/", "a/", "a b.md", "empty.md", "😀.md"]
    assert await listed(index, folder="/") == ["/abs/"]
    assert await listed(index, folder="a/") == ["a/z.md", "a/é.md"]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=14))])
async def test_the_newest_first_in_any_zone(index: Index, zone: tzinfo) -> None:
    """By when files were written, where nothing in them says; of one moment in the order of their paths."""
    for path, days in (("old.md", 1), ("b.md", 5), ("a.md", 5), ("new.md", 9), ("future.md", 10**5)):
        await put(index, path, "text", mtime_ns=days * DAY_NS)
    assert await listed(index, zone, by_time=True) == ["future.md", "new.md", "a.md", "b.md", "old.md"]


async def test_a_page_of_chunks_ends_where_its_room_does(index: Index) -> None:
    """After the chunk that still fits, and after one at least."""
    await put(index, "a.md", "x" * 10, "y" * 10, "z" * 30)
    pages, skip = [], 0
    while True:
        page = await index.chunk_page("a.md", NOTES, skip=skip, most=9, most_chars=20)
        assert page is not None
        pages.append([chunk.text[0] for chunk in page.chunks])
        if page.next is None:
            break
        skip = page.next
    assert pages == [["x", "y"], ["z"]]
    beyond = await index.chunk_page("a.md", NOTES, skip=3, most=9, most_chars=20)
    assert beyond is not None
    assert (beyond.chunks, beyond.total, beyond.next) == ((), 3, None)
    assert await index.chunk_page("a.md", frozenset({Kind.SESSION}), skip=0, most=9, most_chars=20) is None
    assert await index.turn_page("a.md", NOTES, skip=0, most=9, most_chars=20) is None


async def test_what_is_no_text_is_damage(index: Index) -> None:
    """It is told as such, instead of being sent."""
    await put(index, "a.md", "text")
    await index.database.write(_break)
    with pytest.raises(StoreDamaged):
        await index.chunk_page("a.md", NOTES, skip=0, most=9, most_chars=20)


def _break(connection: apsw.Connection) -> None:
    connection.execute("UPDATE chunks SET text = x'ff'")
