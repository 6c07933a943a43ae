"""Parts of chunks beside their chunks: they come, get vectors and go with these."""

from pathlib import Path
from typing import cast

import apsw
import msgspec
import numpy as np
import pytest

from memd.chunk.split import parts_of
from memd.domain_types import Chunk, ChunkId, Kind, TextHash, embedded_part
from memd.store import chunk_parts
from memd.store.chunk_parts import first_waiting, hash_of
from memd.store.errors import StoreDamaged
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.bounds import shipped
from tests.store.conftest import DIMENSIONS, FINGERPRINT, chunk_of, found_file, ranked, vector_of

LINES = [
    f"- a line about matter number {n}, which is wide enough to be told by itself and no other"
    for n in range(9)
]
WITH_PARTS = msgspec.structs.replace(FINGERPRINT, parts=True)


def cut(*numbers: int) -> Chunk:
    """A chunk of some of the lines."""
    text = "\n".join(LINES[n] for n in numbers)
    return msgspec.structs.replace(chunk_of(text), parts=parts_of(text))


async def opened(file: Path, fingerprint: Fingerprint = WITH_PARTS) -> Index:
    index = Index(file)
    await index.open()
    await index.adopt(fingerprint)
    return index


async def embed(index: Index) -> int:
    """Give everything that waits a vector of its text's own; how many that were."""
    waiting = await index.waiting(1000)
    return await index.add_vectors([(one.id, one.hash, vector(one.text)) for one in waiting])


def vector(text: str) -> bytes:
    return vector_of(int.from_bytes(hash_of(text)[:4], "big"))


async def closest(index: Index, text: str) -> dict[int, tuple[float, str]]:
    """The closest part of each chunk to a text, with what it says."""
    query = np.frombuffer(vector(text), "<f4")
    found = await ranked(index, '"line"', 100, frozenset(Kind))
    ids = [chunk_id for chunk_id, _ in found]
    near = await index.read(lambda reader: reader.closest_parts(ids, query))
    texts = await index.read(lambda reader: reader.texts(ids))
    return {
        int(chunk_id): (one.cosine, texts[chunk_id].text[one.span[0] : one.span[1]])
        for chunk_id, one in near.items()
    }


async def test_a_part_is_found_by_its_own_vector(tmp_path: Path) -> None:
    """After its chunk, and over a restart."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1, 2), cut(3)], {}, frozenset())
    waiting = await index.waiting(1000)
    assert [one.id > 0 for one in waiting] == [True, True, False, False, False]
    assert sorted(one.text for one in waiting[2:]) == LINES[:3]
    counts = await index.counts()
    assert (counts.waiting, counts.texts, counts.done, counts.held) == (2, 5, 0, 5)
    await embed(index)
    counts = await index.counts()
    assert (counts.waiting, counts.texts, counts.done) == (0, 0, 2)
    for _ in range(2):
        [(cosine, text)] = (await closest(index, LINES[1])).values()
        assert (round(cosine, 3), text) == (1.0, LINES[1])
        await index.close()
        index = await opened(tmp_path / "a.sqlite")
    await index.close()


async def test_of_parts_that_are_equally_close_the_first_is_told(tmp_path: Path) -> None:
    """Neither the last one, nor the one that was embedded first."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1, 2, 3, 1)], {}, frozenset())
    alike = {LINES[1], LINES[3]}
    await index.add_vectors([
        (one.id, one.hash, vector(LINES[1] if one.text in alike else one.text))
        for one in reversed(await index.waiting(1000))
    ])  # fmt: skip
    query = np.frombuffer(vector(LINES[1]), "<f4")
    near = await index.read(lambda reader: reader.closest_parts([ChunkId(1)], query))
    [found] = near.values()
    assert found.span == (len(LINES[0]) + 1, len(LINES[0]) + 1 + len(LINES[1]))
    await index.close()


async def test_a_chunk_waits_for_its_parts(tmp_path: Path) -> None:
    """It is done when all are there."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1)], {}, frozenset())
    for left in (3, 2, 1):
        counts = await index.counts()
        assert (counts.waiting, counts.texts) == (1, left)
        assert not await index.is_complete()
        [first, *_] = await index.waiting(1)
        assert await index.add_vectors([(first.id, first.hash, vector(first.text))]) == 1
    assert (await index.counts()).waiting == 0
    assert await index.is_complete()
    await index.close()


async def test_parts_wait_in_the_order_of_their_files(tmp_path: Path) -> None:
    """Those of the newest file first, in the order of its text; what is passed over takes no place."""
    index = await opened(tmp_path / "a.sqlite")
    for number, mtime_ns in enumerate((20, 30, 10)):
        found = found_file(f"memory/{number}.md", mtime_ns=mtime_ns)
        await index.replace(found, b"1", [cut(*range(3 * number, 3 * number + 3))], {}, frozenset())
    waiting = await index.waiting(1000)
    assert [one.text for one in waiting[3:]] == [*LINES[3:6], *LINES[:3], *LINES[6:]]
    passed_over = frozenset(one.hash for one in waiting[:4])
    assert [one.text for one in await index.waiting(3, passed_over)] == [*LINES[4:6], LINES[0]]
    await index.close()


async def test_what_waits_of_many_files_is_in_their_order(tmp_path: Path) -> None:
    """Also where all of the files that are read first are passed over."""
    index = await opened(tmp_path / "a.sqlite")
    at_once = shipped("memd.store.chunk_parts._FILES_AT_ONCE")
    texts = [f"a text of its own, the one with number {n}" for n in range(2 * at_once + 1)]
    for number, text in enumerate(texts):
        found = found_file(f"memory/{number}.md", mtime_ns=number)
        await index.replace(found, b"1", [chunk_of(text)], {}, frozenset())
    waiting = await index.waiting(1000)
    assert [one.text for one in waiting] == [*reversed(texts)]
    passed_over = frozenset(one.hash for one in waiting[: at_once + 1])
    assert await index.waiting(1000, passed_over) == waiting[at_once + 1 :]
    await index.close()


def test_no_more_files_are_read_at_once_than_are_needed() -> None:
    """Some at a time, in their order, until as much was found as is wanted."""
    at_once = shipped("memd.store.chunk_parts._FILES_AT_ONCE")
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE files (id INTEGER PRIMARY KEY, kind INTEGER, mtime_ns INTEGER)")
    connection.executemany("INSERT INTO files VALUES (?, 0, 0)", [(n,) for n in range(2 * at_once)])
    read: list[int] = []

    def noted(file_id: int) -> int:
        read.append(file_id)
        return file_id

    connection.create_scalar_function("noted", cast("apsw.ScalarProtocol", noted), 1)
    for limit, count in ((at_once, at_once), (at_once + 1, 2 * at_once)):
        read.clear()
        found = first_waiting(
            connection,
            "SELECT id AS file_id FROM files",
            "SELECT noted(value), 'hash' FROM json_each(?) ORDER BY 1",
            limit,
            frozenset(),
        )
        assert found == list(range(limit))
        assert len(set(read)) == count


async def test_any_history_ends_in_the_parts_of_a_fresh_index(tmp_path: Path) -> None:
    """Edits, deletions and a text that comes back."""
    index, fresh = await opened(tmp_path / "a.sqlite"), await opened(tmp_path / "b.sqlite")
    for number, chunks in enumerate([[cut(0, 1, 2)], [cut(0, 1), cut(3, 4)], [], [cut(5, 6), cut(0, 1)]]):
        await index.replace(found_file("memory/a.md"), bytes([number]), chunks, {}, frozenset())
        await embed(index)
    await index.replace(found_file("memory/b.md"), b"1", [cut(7, 8)], {}, frozenset())
    await embed(index)
    await index.remove(["memory/b.md"])
    await fresh.replace(found_file("memory/a.md"), b"1", [cut(5, 6), cut(0, 1)], {}, frozenset())
    await embed(fresh)
    for text in LINES:
        found = sorted((await closest(index, text)).values())
        assert found == sorted((await closest(fresh, text)).values())
        assert len(found) == 2
    assert sorted(await index.embedded()) == sorted(await fresh.embedded())
    assert sorted(await index.hashes()) == sorted(await index.embedded())
    await index.close()
    await fresh.close()


async def test_a_part_that_is_refused_is_waited_for_no_more(tmp_path: Path) -> None:
    """The others are found."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1)], {}, frozenset())
    await index.mark_refused(hash_of(LINES[0]))
    await embed(index)
    assert (await index.counts()).waiting == 0
    [(_, text)] = (await closest(index, LINES[0])).values()
    assert text == LINES[1]
    await index.close()


async def test_where_parts_have_no_vectors_nothing_waits_for_them(tmp_path: Path) -> None:
    """Neither are they embedded; when they are wanted, they wait."""
    index = await opened(tmp_path / "a.sqlite", FINGERPRINT)
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1)], {}, frozenset())
    await embed(index)
    assert (await index.counts()).texts == 0
    assert await index.is_complete()
    assert await closest(index, LINES[0]) == {}
    await index.close()
    index = await opened(tmp_path / "a.sqlite")
    assert (await index.counts()).texts == 2
    assert not await index.is_complete()
    assert len(await index.waiting_hashes()) == 2
    await index.close()


@pytest.mark.parametrize("change", ["key", "model"])
async def test_vectors_of_another_model_are_forgotten(tmp_path: Path, change: str) -> None:
    """Of parts as of chunks."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1)], {}, frozenset())
    await embed(index)
    await index.close()
    other = msgspec.structs.replace(WITH_PARTS, **{change: "another"})
    index = await opened(tmp_path / "a.sqlite", other)
    assert (await index.counts()).texts == 3
    assert await index.embedded() == []
    await index.close()


async def test_what_parts_have_goes_back_to_the_cache(tmp_path: Path) -> None:
    """As float32, of the size that the cache keeps."""
    index = await opened(tmp_path / "a.sqlite")
    await index.replace(found_file("memory/a.md"), b"1", [cut(0, 1)], {}, frozenset())
    await embed(index)
    hashes: list[TextHash] = await index.embedded()
    assert len(hashes) == 3
    found = await index.vectors_of(hashes)
    assert found.keys() == set(hashes)
    assert {len(one) for one in found.values()} == {4 * DIMENSIONS}
    exact = np.frombuffer(vector(LINES[0]), "<f4")
    assert np.frombuffer(found[hash_of(LINES[0])], "<f4") @ exact == pytest.approx(1, abs=1e-3)
    await index.close()


@pytest.mark.parametrize(
    ("line", "embedded"),
    [
        ("- Ann: The boat is sold. It was too small.", "Ann: It was too small."),
        ("张三：船卖了。 It was too small.", "张三： It was too small."),
        ("Ann Lee: The boat is sold. It was too small.", "Ann Lee: It was too small."),
        ("2026-03-02 09:02 User: Ann: The boat is sold. It was too small.", "Ann: It was too small."),
        ("Assistant: Ann: The boat is sold. It was too small.", "Ann: It was too small."),
        ("2026-03-02 09:02 User: The boat is sold. It was too small.", "It was too small."),
        ("User: The boat is sold. It was too small.", "User: It was too small."),
        ("The boat is sold. It was too small.", "It was too small."),
        ("At 9:30 the boat was sold. It was too small.", "It was too small."),
        ("Call with Ann: The boat is sold. It was too small.", "It was too small."),
        ("http://boat.example is sold. It was too small.", "It was too small."),
    ],
)
def test_a_part_that_begins_within_a_line_is_embedded_with_who_speaks(line: str, embedded: str) -> None:
    text = f"- Bob: Well?\n{line}"
    assert embedded_part(text, text.index("It was"), len(text)) == embedded
    assert embedded_part(text, text.index(line), len(text)) == line
    assert embedded_part(text, 0, 12) == "- Bob: Well?"


@pytest.mark.parametrize("stored", [b"\0" * (2 * DIMENSIONS - 1), "text", None])
def test_a_part_whose_vector_is_none_is_damage(stored: object) -> None:
    """Whatever it is instead."""
    query = np.frombuffer(vector_of(1), "<f4")
    whole = np.frombuffer(vector_of(1), "<f4").astype("<f2").tobytes()
    assert chunk_parts.closest_of([], query) == {}
    assert list(chunk_parts.closest_of([(3, 0, 4, whole)], query)) == [3]
    with pytest.raises(StoreDamaged, match="not what was written"):
        chunk_parts.closest_of([(3, 0, 4, whole), (3, 5, 9, stored)], query)  # type: ignore[list-item]
