"""An index whose vectors stay on disk."""

import asyncio
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from functools import partial
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

from memd.domain_types import ChunkId, Kind
from memd.runtime import malloc
from memd.runtime.threads import NoThread
from memd.store import int8_vectors, search_vectors, vector_matrix, vector_table
from memd.store.disk_vectors import DiskVectors, ListedVector, NearVectors
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.search_vectors import AT_ONCE
from memd.store.vector_matrix import WORTH_BYTES, Rows
from tests.store.conftest import DIMENSIONS, FINGERPRINT, chunk_of, found_file, vector_of
from tests.wait import until_async

EVERYTHING = frozenset(Kind)

Told = dict[ChunkId, float]


@asynccontextmanager
async def opened(file: Path, *, extension: bool = True, resident: bool = False) -> AsyncIterator[Index]:
    """An index, with sqlite-vec or without."""
    with pytest.MonkeyPatch.context() as system:
        if not extension:
            system.setattr(vector_table, "find_extension", lambda: (None, "there is none"))
        index = Index(file, resident=resident)
    await index.open()
    try:
        await index.adopt(FINGERPRINT)
        yield index
    finally:
        await index.close()


def question(seed: int) -> NDArray[np.float32]:
    return np.frombuffer(vector_of(seed), "<f4")


async def on_disk(
    index: Index, known: ListedVector, query: NDArray[np.float32], limit: int = 1000
) -> NearVectors | None:
    return await index.read(lambda reader: reader.nearest(known, query, limit, EVERYTHING, [], (None,)))


async def near(index: Index, seed: int, limit: int = 1000) -> Told:
    """All that is found, nearest first, with its cosine; however the vectors are held."""
    held = index.vectors.current()
    if held is None:
        return {}
    _, rows = held
    query = question(seed)
    if isinstance(rows, Rows):
        found = vector_matrix.nearest(rows, query, limit, EVERYTHING)
    else:
        looked = await on_disk(index, rows, query, limit)
        assert looked is not None
        found, rows = looked.chunk_ids, looked.rows
    return dict(
        zip(found, vector_matrix.cosines(rows, query, np.array(found, np.int64)).tolist(), strict=True)
    )


async def write(index: Index, path: str, *numbers: int, kind: Kind = Kind.NOTE) -> None:
    chunks = [chunk_of(f"text {number}", number + 1) for number in numbers]
    known = {one.hash: vector_of(number) for one, number in zip(chunks, numbers, strict=True)}
    await index.replace(found_file(path, kind=kind), bytes(path, "utf-8"), chunks, known, frozenset())


@pytest.mark.parametrize("extension", [True, False])
async def test_both_states_find_the_same_through_every_change(tmp_path: Path, extension: bool) -> None:
    """Files that come, change and go; vectors that come late; with vec0 and with the ordinary table."""
    async with (
        opened(tmp_path / "a.sqlite", extension=extension) as on_disk,
        opened(tmp_path / "b.sqlite", extension=extension, resident=True) as resident,
    ):
        for index in (on_disk, resident):
            await write(index, "memory/a.md", *range(AT_ONCE + 20))
            await write(index, "memory/b.md", 3, 700, 701, kind=Kind.CURATED)
            await write(index, "memory/c.md", *range(800, 2500))  # more than a block
            await write(index, "memory/a.md", *range(5, AT_ONCE), 900)
            await index.remove(["memory/b.md"])
            late = chunk_of("text 3000")
            await index.replace(found_file("memory/d.md"), b"d", [late], {}, frozenset())
            [waiting] = await index.waiting(10)
            assert await index.add_vectors([(waiting.id, waiting.hash, vector_of(3000))]) == 1
        assert (on_disk.vectors.is_shelved, resident.vectors.is_shelved) == (True, False)
        assert on_disk.has_vectors
        for seed in (3, 900, 3000, 9999):
            found = await near(on_disk, seed, 300)
            assert list(found.items()) == list((await near(resident, seed, 300)).items())
            assert len(found) == 300


@pytest.mark.parametrize("extension", [True, False])
async def test_vectors_go_and_come_back_while_it_is_written(tmp_path: Path, extension: bool) -> None:
    """Neither loses what was written before, meanwhile and afterwards."""
    async with opened(tmp_path / "a.sqlite", extension=extension, resident=True) as index:
        await write(index, "memory/a.md", *range(100))
        whole = index.vectors.resident_bytes
        await asyncio.gather(
            index.vectors.shelve(),
            write(index, "memory/b.md", *range(100, 150)),
            index.remove(["memory/none.md"]),
            write(index, "memory/a.md", *range(50)),
        )
        assert index.vectors.is_shelved
        assert 0 < index.vectors.resident_bytes < whole / 2
        assert index.vectors.whole_bytes == pytest.approx(whole)
        on_disk = await near(index, 7)
        assert len(on_disk) == 100
        await asyncio.gather(index.vectors.unshelve(), write(index, "memory/c.md", 200, 201))
        assert index.vectors.snapshot() is not None
        found = await near(index, 7)
        assert len(found) == 102
        assert {one: found[one] for one in on_disk} == on_disk
        await index.vectors.unshelve()
        await index.vectors.shelve()
        await index.vectors.shelve()
        assert await near(index, 7) == found


async def test_a_search_keeps_what_it_was_given(tmp_path: Path) -> None:
    """Vectors that are given up, or taken back, under a search change nothing for it."""
    async with opened(tmp_path / "a.sqlite", resident=True) as index:
        await write(index, "memory/a.md", *range(60))
        held = index.vectors.current()
        assert held is not None
        assert isinstance(held[1], Rows)
        before = await near(index, 5)
        await index.vectors.shelve()
        assert vector_matrix.nearest(held[1], question(5), 1000, EVERYTHING) == list(before)
        held = index.vectors.current()
        assert held is not None
        assert isinstance(held[1], ListedVector)
        await index.vectors.unshelve()
        found = await on_disk(index, held[1], question(5))
        assert found is not None
        assert found.chunk_ids == list(before)


@pytest.mark.parametrize("resident", [True, False])
async def test_what_was_built_beside_takes_the_same_state(tmp_path: Path, resident: bool) -> None:
    """A rebuild holds no vectors in memory where the index holds none, and is found by meaning after the swap."""
    async with opened(tmp_path / "a.sqlite", resident=resident) as index:
        await write(index, "memory/a.md", *range(40))
        beside = Index(tmp_path / "a.sqlite.next", like=index)
        await beside.open()
        await beside.adopt(FINGERPRINT)
        await beside.start_ids_at(5000)
        await write(beside, "memory/a.md", *range(20))
        assert beside.vectors.is_shelved is not resident
        # The limit comes, or goes, while it is built.
        await (index.vectors.shelve() if resident else index.vectors.unshelve())
        await write(beside, "memory/b.md", *range(20, 30))
        await index.swap_in(beside)
        assert index.vectors.is_shelved is resident
        found = await near(index, 3)
        assert len(found) == 30
        assert min(found) == 5000


async def test_a_search_that_is_overtaken_by_a_swap_is_told(tmp_path: Path) -> None:
    """The vectors that it knows of are gone: it is asked to look again, and takes none for another."""
    async with opened(tmp_path / "a.sqlite") as index:
        await write(index, "memory/a.md", *range(10))
        held = index.vectors.current()
        assert held is not None
        assert isinstance(held[1], ListedVector)
        beside = Index(tmp_path / "a.sqlite.next", like=index)
        await beside.open()
        await beside.adopt(FINGERPRINT)
        await beside.start_ids_at(5000)
        await write(beside, "memory/a.md", *range(10))
        await index.swap_in(beside)
        assert await on_disk(index, held[1], question(1)) is None
        # A question of another model's size.
        assert await on_disk(index, held[1], np.ones(DIMENSIONS + 1, np.float32)) is None


async def test_an_index_opens_on_disk_and_comes_into_memory(tmp_path: Path) -> None:
    """With what it held before, through a restart in either state."""
    async with opened(tmp_path / "a.sqlite", resident=True) as index:
        await write(index, "memory/a.md", *range(30))
        found = await near(index, 4)
    async with opened(tmp_path / "a.sqlite") as index:
        assert index.vectors.is_shelved
        assert await near(index, 4) == found
        await index.vectors.unshelve()
        assert await near(index, 4) == found
        assert not index.vectors.is_shelved


async def test_blocks_are_what_the_table_says(tmp_path: Path) -> None:
    """Read as sqlite-vec lays them out, the vectors are those that it gives itself, after deletions too."""
    async with opened(tmp_path / "a.sqlite") as index:
        for number in range(3):
            await write(index, f"memory/{number}.md", *range(900 * number, 900 * number + 900))
        await index.remove(["memory/1.md"])
        await write(index, "memory/3.md", *range(5000, 5400))

        def both(connection: object) -> tuple[dict[int, bytes], dict[int, bytes], bool]:
            read = (vector_table.blocks_of_vec0, vector_table.blocks_of_rows)
            by_block, by_row = (dict(_each(blocks(connection, DIMENSIONS))) for blocks in read)  # type: ignore[arg-type]
            return by_block, by_row, vector_table.has_known_blocks(connection)  # type: ignore[arg-type]

        by_block, by_row, is_known = await index.database.read(both)
        assert is_known
        assert len(by_block) == 2200
        assert by_block == by_row


def _each(blocks: Iterator[tuple[NDArray[np.int64], vector_matrix.Floats]]) -> Iterator[tuple[int, bytes]]:
    for ids, rows in blocks:
        for chunk_id, row in zip(ids.tolist(), rows, strict=True):
            if chunk_id != vector_table.NOTHING:
                yield chunk_id, row.tobytes()


async def test_another_layout_is_read_through_the_table(tmp_path: Path) -> None:
    """Where a later sqlite-vec made the file, nothing is taken for what it was before."""
    async with opened(tmp_path / "a.sqlite") as index:
        await write(index, "memory/a.md", *range(30))
        found = await near(index, 4)
        await index.database.write(
            lambda connection: connection.execute(
                "UPDATE vectors_info SET value = 2 WHERE key = 'CREATE_VERSION_MINOR'"
            )
        )
        assert not await index.database.read(vector_table.has_known_blocks)
        assert await near(index, 4) == found


@pytest.mark.parametrize("resident", [True, False])
async def test_without_sqlite_vec_its_old_vectors_are_not_read(tmp_path: Path, resident: bool) -> None:
    """The table that it left in the file has the vectors of before; those in use are in the ordinary table."""
    file = tmp_path / "a.sqlite"
    async with opened(file) as index:
        await write(index, "memory/a.md", *range(30))
    async with opened(file, extension=False) as index:
        waiting = await index.waiting(100)
        await index.add_vectors(
            [(one.id, one.hash, vector_of(100 + place)) for place, one in enumerate(waiting)]
        )
        found = await near(index, 104)
    async with opened(file, extension=False, resident=resident) as index:
        again = await near(index, 104)
        assert again == pytest.approx(found, abs=1e-6)
        assert max(again.values()) == pytest.approx(1, abs=1e-6)


@pytest.mark.parametrize("resident", [True, False])
async def test_a_vector_of_another_size_is_damage(tmp_path: Path, resident: bool) -> None:
    """In either state it is found when the index is opened."""
    async with opened(tmp_path / "a.sqlite", extension=False) as index:
        await write(index, "memory/a.md", *range(3))
        await index.database.write(
            lambda connection: connection.execute("UPDATE vectors_plain SET embedding = x'00'")
        )
    with pytest.raises(StoreDamaged, match="dimensions"):
        async with opened(tmp_path / "a.sqlite", extension=False, resident=resident):
            pass


async def test_pages_that_are_released_are_read_again(tmp_path: Path) -> None:
    """What SQLite keeps in memory is no part of the index."""
    async with opened(tmp_path / "a.sqlite") as index:
        await write(index, "memory/a.md", *range(30))
        found = await near(index, 4)
        await index.vectors.release_pages()
        assert await near(index, 4) == found
        await write(index, "memory/b.md", 77)
        assert len(await near(index, 4)) == 31


@pytest.mark.parametrize("resident", [True, False])
async def test_a_file_of_another_kind_leaves_no_vector_behind(tmp_path: Path, resident: bool) -> None:
    """What it was before takes nobody's place among the candidates."""
    async with opened(tmp_path / "a.sqlite", resident=resident) as index:
        await write(index, "memory/a.md", 1, 2)
        before = await near(index, 1)
        await write(index, "memory/a.md", 1, 2, kind=Kind.CURATED)
        after = await near(index, 1)
        assert len(after) == 2
        assert not before.keys() & after.keys()


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("many", [3, AT_ONCE + 1])
async def test_what_memory_has_no_room_for_is_read_from_the_file_when_it_has(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, many: int, resident: bool
) -> None:
    """The file has the change by then, and nobody makes it again: searches by meaning would never see it."""
    async with opened(tmp_path / "a.sqlite", resident=resident) as index:
        await write(index, "memory/a.md", 1, 2, 3)
        index.vectors.anew_s = 0.0
        for kind in (vector_matrix.Matrix, DiskVectors):
            add, left = kind.add, [2]

            def adding(held: Any, rows: Any, add: Any = add, left: list[int] = left) -> None:
                rows = list(rows)
                if left:
                    left.pop()
                    add(held, rows[:1])
                    raise MemoryError
                add(held, rows)

            monkeypatch.setattr(kind, "add", adding)
        await write(index, "memory/b.md", *range(4, 4 + many))
        await write(index, "memory/a.md", 2, 3)
        monkeypatch.undo()
        told = await near(index, 2)
        assert index.vectors.is_shelved is not resident
    async with opened(tmp_path / "a.sqlite", resident=resident) as again:
        assert told == await near(again, 2)
        assert len(told) == many + 2


async def test_what_searches_read_from_disk_is_given_back_once_for_all_of_a_while(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment after the first, and again for those that come after that; nothing is where vectors are in memory."""
    given, is_done = 0, asyncio.Event()

    async def give_back() -> None:
        nonlocal given
        given += 1
        await is_done.wait()

    monkeypatch.setattr(malloc, "give_back_beside", give_back)
    monkeypatch.setattr(search_vectors, "GIVE_BACK_S", 0.05)
    async with (
        opened(tmp_path / "a.sqlite") as on_disk,
        opened(tmp_path / "b.sqlite", resident=True) as other,
    ):
        for index in (on_disk, other):
            await write(index, "memory/a.md", *range(20))
        await near(other, 3)
        await asyncio.sleep(0.1)
        assert given == 0
        for rounds in (1, 2):
            is_done.clear()
            for _ in range(5):
                await near(on_disk, 3)
            await until_async(lambda rounds=rounds: given == rounds, 10)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            await near(on_disk, 3)
            await asyncio.sleep(0.1)
            assert given == rounds
            is_done.set()
            await asyncio.sleep(0.01)


@pytest.mark.skipif(int8_vectors.simsimd() is None, reason="simsimd has no wheel here")
async def test_the_bytes_of_vectors_are_made_beside_searches(tmp_path: Path) -> None:
    """Of a new index, one that is opened again, and one whose vectors come back into memory; none of few rows."""
    file = tmp_path / "a.sqlite"

    def rows_with_bytes(index: Index) -> int:
        rows = index.vectors.snapshot()
        return 0 if rows is None else sum(len(part.rough or ()) for part in rows.parts)

    async with opened(file, resident=True) as index:
        await write(index, "memory/a.md", *range(WORTH_BYTES - 1))
        await asyncio.sleep(0.1)
        assert rows_with_bytes(index) == 0
        await write(index, "memory/b.md", 400)
        await until_async(lambda: rows_with_bytes(index) == WORTH_BYTES, 10)
        await write(index, "memory/c.md", *range(500, 520))
        assert len(await near(index, 501)) == WORTH_BYTES + 20
        assert rows_with_bytes(index) == WORTH_BYTES
    async with opened(file, resident=True) as index:
        await until_async(lambda: rows_with_bytes(index) == WORTH_BYTES + 20, 10)
        await index.vectors.shelve()
        assert rows_with_bytes(index) == 0
        await index.vectors.unshelve()
        await until_async(lambda: rows_with_bytes(index) == WORTH_BYTES + 20, 10)


async def test_a_vector_of_another_size_that_a_search_meets_is_damage(tmp_path: Path) -> None:
    """Unless the vectors are of another model by now: then there is nothing to say of them."""
    async with opened(tmp_path / "a.sqlite", extension=False) as index:
        await write(index, "memory/a.md", *range(3))
        _, known = index.vectors.current() or (None, None)
        assert isinstance(known, ListedVector)
        assert await on_disk(index, known, np.ones(DIMENSIONS + 1, np.float32)) is None
        await index.database.write(
            lambda connection: connection.execute("UPDATE vectors_plain SET embedding = x'00'")
        )
        with pytest.raises(StoreDamaged, match=f"not of {DIMENSIONS} dimensions"):
            await on_disk(index, known, question(1))


async def test_without_a_thread_many_vectors_are_in_memory_all_the_same(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What is written is searched, whatever it takes; few need no thread."""
    tried: list[object] = []

    async def none(change: object) -> None:
        if isinstance(change, partial):  # not the bytes that are made beside searches
            tried.append(change)
        raise NoThread("no thread can be started")

    monkeypatch.setattr(search_vectors, "Threads", lambda *_: SimpleNamespace(run=none))
    async with opened(tmp_path / "a.sqlite", resident=True) as index:
        await write(index, "memory/a.md", *range(AT_ONCE))
        assert tried == []
        await write(index, "memory/b.md", *range(1000, 1001 + AT_ONCE))
        assert len(tried) == 2  # what goes, and what comes
        assert len(await near(index, 3, 3 * AT_ONCE)) == 2 * AT_ONCE + 1
        await index.remove(["memory/b.md"])
        assert len(await near(index, 3)) == AT_ONCE


async def test_both_halves_of_an_index_in_memory_tell_when_they_were_asked(tmp_path: Path) -> None:
    """The later of vectors and keywords; nothing before any search has come."""
    async with opened(tmp_path / "a.sqlite", resident=True) as index:
        await write(index, "memory/a.md", 1)
        assert index.memory.asked_at is None
        for search in (index.postings.asked, index.vectors.current, index.postings.asked):
            search()
            expected = index.vectors.asked_at if search == index.vectors.current else index.postings.asked_at
            assert index.memory.asked_at == expected
