"""What is read of a file for another store."""

from collections.abc import Sequence

import msgspec

from memd.domain_types import Kind, Label, LabelKind, Turn
from memd.store import chunk_parts, published_files
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.meta import TOKENIZER
from memd.store.published_files import FileState, LackingChunk, PublishedFile
from memd.store.sessions import SessionChange
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, vector_of

KETTLE, HERON = chunk_of("the kettle", 1, "Kitchen"), chunk_of("the heron", 3)


def test_terms_are_stems_and_pairs_with_their_places() -> None:
    """A stem counts in text and context; a pair is of two CJK characters, or of a number and one, that are beside each other."""
    terms, tokens = published_files.term_reader().terms(("Deploys deployed 3月 部署", "deploying"))
    assert tokens == 7
    assert published_files.TERMS_VERSION == 1000 * TOKENIZER + 1  # other terms are of another one
    assert terms == {
        "deploi": [0, 1, 7],
        "3": [2],
        "月": [3],
        "部": [4],
        "署": [5],
        "3 月": [2],
        "月 部": [3],
        "部 署": [4],
    }


def test_a_text_without_words_has_no_terms() -> None:
    """Nothing finds it by words."""
    assert published_files.term_reader().terms(("...", "")) == ({}, 0)


async def put(
    index: Index, path: str = "memory/a.md", kind: Kind = Kind.NOTE, labels: Sequence[Label] = ()
) -> None:
    """A file of two chunks, of which the first has a vector."""
    change = FileChange(found_file(path, kind=kind, mtime_ns=5), b"1", [KETTLE, HERON], labels=labels)
    await index.replace_all([change], {KETTLE.hash: vector_of(1)}, frozenset())


async def read(index: Index, path: str = "memory/a.md") -> PublishedFile | None:
    return await index.database.read(published_files.read, path)


async def state(index: Index, *, with_parts: bool = True) -> FileState:
    found = await index.database.read(published_files.states, {Kind.NOTE}, with_parts=with_parts)
    return found["memory/a.md"]


async def test_a_file_is_read_whole(index: Index) -> None:
    """Its chunks in their order, with what finds them: a vector where there is one, and what it says of itself."""
    tags = [Label(LabelKind.TAG, "work", "work"), Label(LabelKind.TAG, "home", "home")]
    await put(index, labels=tags)
    told = await read(index)
    assert told is not None
    assert (told.path, told.kind, told.sha256, told.written_ns) == ("memory/a.md", Kind.NOTE, b"1", 5)
    assert told.labels == tuple((int(LabelKind.TAG), name, name) for name in ("home", "work"))
    kettle, heron = told.chunks
    assert (kettle.start_line, kettle.end_line, kettle.text, kettle.context) == (
        1,
        1,
        "the kettle",
        "Kitchen",
    )
    assert (kettle.hash, kettle.vector) == (KETTLE.hash, vector_of(1))
    assert (heron.start_line, heron.text, heron.vector) == (3, "the heron", None)


async def test_of_a_file_that_there_is_not_nothing_is_read(index: Index) -> None:
    await put(index)
    assert await read(index, "memory/b.md") is None


async def test_the_state_of_a_file_differs_when_that_may_which_is_read_of_it(index: Index) -> None:
    """A vector that came, or other text; files of other kinds are not told of."""
    await put(index)
    await put(index, "MEMORY.md", Kind.CURATED)
    states = await index.database.read(published_files.states, {Kind.NOTE}, with_parts=True)
    assert set(states) == {"memory/a.md"}
    first = await state(index)
    waiting = [one for one in await index.waiting(10) if one.hash == HERON.hash]
    assert first.waiting >= 1
    await index.add_vectors([(one.id, one.hash, vector_of(2)) for one in waiting])
    second = await state(index)
    assert second.text == first.text
    assert second.vectors != first.vectors
    assert second.waiting == first.waiting - 1
    await put(index)
    assert await state(index) == second, "nothing of it has changed"
    await index.replace(found_file("memory/a.md"), b"2", [KETTLE], {}, frozenset())
    assert (await state(index)).text != second.text


async def test_parts_are_waited_for_where_they_get_vectors(index: Index) -> None:
    """With other providers they never do."""
    chunk = msgspec.structs.replace(chunk_of("one line\nanother line"), parts=((0, 8), (9, 21)))
    await index.replace(found_file("memory/a.md"), b"1", [chunk], {chunk.hash: vector_of(1)}, frozenset())
    assert (await state(index)).waiting == 2
    assert (await state(index, with_parts=False)).waiting == 0


async def test_what_lacks_vectors_is_told_in_the_order_of_ids(index: Index) -> None:
    """Chunks that wait, and those whose parts do; of the kinds that are asked for, and each once."""
    parted = msgspec.structs.replace(chunk_of("one line\nanother line"), parts=((0, 8), (9, 21)))
    await put(index)
    await put(index, "MEMORY.md", Kind.CURATED)
    await index.replace(found_file("memory/b.md"), b"1", [parted], {parted.hash: vector_of(1)}, frozenset())

    async def lacking(after: int, limit: int, *, with_parts: bool) -> tuple[list[LackingChunk], int]:
        return await index.database.read(
            published_files.lacking, after, limit, {Kind.NOTE}, with_parts=with_parts
        )

    (first, second), last = await lacking(0, 10, with_parts=True)
    assert (first.hash, first.is_waiting, first.parts) == (HERON.hash, True, ())
    assert (second.hash, second.is_waiting) == (parted.hash, False)
    assert [(one.first, one.last, one.id < 0) for one in second.parts] == [(0, 8, True), (9, 21, True)]
    assert [one.hash for one in second.parts] == [
        chunk_parts.hash_of(one) for one in ("one line", "another line")
    ]
    assert last == second.id
    assert await lacking(0, 1, with_parts=True) == ([first], first.id)
    assert await lacking(first.id, 1, with_parts=True) == ([second], second.id)
    assert await lacking(last, 1, with_parts=True) == ([], last)
    assert await lacking(0, 10, with_parts=False) == ([first], last)


async def test_a_digest_is_of_the_text_and_another_of_the_vectors(index: Index) -> None:
    """Whoever has the same text needs the vectors alone."""
    await put(index)
    before = await read(index)
    waiting = [one for one in await index.waiting(10) if one.hash == HERON.hash]
    await index.add_vectors([(one.id, one.hash, vector_of(2)) for one in waiting])
    after = await read(index)
    assert before is not None
    assert after is not None

    def halves(
        one: PublishedFile, lines: Sequence[str] = ("line",), space: object = FINGERPRINT.space
    ) -> tuple[bytes, bytes]:
        both = one.digests(lines, space)
        assert len(both) == 64
        return both[:32], both[32:]

    assert halves(after)[0] == halves(before)[0]
    assert halves(after)[1] != halves(before)[1]
    assert halves(after, lines=("other",))[0] != halves(after)[0]
    assert halves(after, space=None)[1] != halves(after)[1]


async def test_a_session_is_read_with_its_turns(index: Index) -> None:
    """A note has none."""
    turns = (Turn("id0", "user", 1.5, 1, 2, "the kettle"), Turn("id1", "assistant", 2.5, 3, 3, "the heron"))
    change = SessionChange(
        found=found_file("sessions/here/a.jsonl", kind=Kind.SESSION),
        hash=b"h" * 32,
        progress=b"p1",
        since=None,
        turns_from=0,
        turns=turns,
        chunks_from=0,
        chunks=[msgspec.structs.replace(KETTLE, numbers=(1,), turn=0)],
    )
    await index.replace_sessions([change], {}, frozenset())
    told = await read(index, "sessions/here/a.jsonl")
    assert told is not None
    assert told.turns == turns
    await put(index)
    note = await read(index)
    assert note is not None
    assert not note.turns
