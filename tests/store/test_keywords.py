from collections.abc import Sequence
from types import SimpleNamespace
from typing import Any

import msgspec
import pytest

from memd.domain_types import Chunk, ChunkId, Kind
from memd.store.index import Index
from memd.store.keywords import MERGED_PAGES, Match, merge, phrases_of, with_shares
from tests.store.conftest import chunk_of, found_file, ranked

MEMORY = frozenset({Kind.NOTE, Kind.CURATED})
EVERYTHING = frozenset(Kind)
LIMIT = 10


def said(text: str, turn: int) -> Chunk:
    """A chunk of a session."""
    return msgspec.structs.replace(chunk_of(text, turn + 1), numbers=(turn + 1,), turn=turn)


async def fill(index: Index, notes: int, curated: int, sessions: int) -> None:
    """Chunks about cats; the sessions speak of nothing else, and so come first."""
    texts = [f"the cat of note {n} sits on a mat and looks out of the window" for n in range(notes)]
    await put(index, "memory/a.md", Kind.NOTE, [chunk_of(text, n + 1) for n, text in enumerate(texts)])
    texts = [f"cat rule {n} of the house" for n in range(curated)]
    await put(index, "MEMORY.md", Kind.CURATED, [chunk_of(text, n + 1) for n, text in enumerate(texts)])
    await put(index, "sessions/a/1.jsonl", Kind.SESSION, [said(f"cat {n}", n) for n in range(sessions)])


async def put(index: Index, path: str, kind: Kind, chunks: Sequence[Chunk]) -> None:
    if chunks:
        await index.replace(found_file(path, kind=kind), b"1", chunks, {}, frozenset())


async def kinds_found(index: Index, kinds: frozenset[Kind], limit: int = LIMIT) -> dict[Kind, int]:
    """How many of each kind are among the matches."""
    matches = [chunk_id for chunk_id, _ in await ranked(index, "cat", limit, kinds)]
    chunks = (await index.read(lambda reader: reader.texts(matches))).values()
    assert len(set(matches)) == len(chunks)
    return {kind: n for kind in Kind if (n := sum(chunk.kind is kind for chunk in chunks))}


@pytest.mark.parametrize(
    ("held", "kinds", "expected"),
    [
        ((30, 0, 0), EVERYTHING, {Kind.NOTE: 10}),
        ((30, 0, 90), EVERYTHING, {Kind.NOTE: 10, Kind.SESSION: 10}),
        ((3, 0, 90), EVERYTHING, {Kind.NOTE: 3, Kind.SESSION: 10}),
        ((90, 0, 3), EVERYTHING, {Kind.NOTE: 10, Kind.SESSION: 3}),
        ((0, 0, 90), EVERYTHING, {Kind.SESSION: 10}),
        ((30, 0, 90), MEMORY, {Kind.NOTE: 10}),
        ((3, 0, 90), MEMORY, {Kind.NOTE: 3}),
        ((30, 0, 90), frozenset({Kind.SESSION}), {Kind.SESSION: 10}),
        ((30, 90, 0), frozenset({Kind.NOTE}), {Kind.NOTE: 10}),
        ((3, 90, 90), frozenset({Kind.NOTE, Kind.SESSION}), {Kind.NOTE: 3, Kind.SESSION: 10}),
        ((5, 90, 90), frozenset(), {}),
    ],
)
async def test_each_source_has_its_candidates(
    index: Index, held: tuple[int, int, int], kinds: frozenset[Kind], expected: dict[Kind, int]
) -> None:
    """However much of another, or of what may not be seen, matches better."""
    await fill(index, *held)
    assert await kinds_found(index, kinds) == expected


async def test_the_candidates_are_the_best_of_their_source(index: Index) -> None:
    """In order, with the same figures, however many are asked for."""
    await fill(index, 12, 3, 60)
    everything = await ranked(index, "cat OR window", 1000, EVERYTHING)
    assert [match.r for _, match in everything] == sorted((match.r for _, match in everything), reverse=True)
    places = {
        place.id: place.kind
        for place in (await index.read(lambda reader: reader.places(_ids(everything)))).values()
    }
    for kinds in (MEMORY, frozenset({Kind.SESSION}), frozenset({Kind.NOTE})):
        best = (await ranked(index, "cat OR window", 1000, kinds))[:LIMIT]
        assert [one for one, _ in best] == [one for one, _ in everything if places[one] in kinds][:LIMIT]
        found = await ranked(index, "cat OR window", LIMIT, kinds)
        assert [match.r for _, match in found] == pytest.approx([match.r for _, match in best])
        assert [match.held for _, match in found] == [match.held for _, match in best]


def _ids(found: Sequence[tuple[ChunkId, object]]) -> list[ChunkId]:
    return [chunk_id for chunk_id, _ in found]


async def test_a_word_in_what_places_a_chunk_counts_as_one_in_its_text(index: Index) -> None:
    """A title or a day is as good an answer as a sentence; which is better is told by how much else is said."""
    chunks = [chunk_of("walrus money", 1, "gate key"), chunk_of("gate key", 2, "walrus money")]
    await index.replace(found_file("memory/a.md"), b"1", chunks, {}, frozenset())
    matches = await ranked(index, '"walrus"', 10, frozenset(Kind))
    assert len(matches) == 2
    assert matches[0][1].r == pytest.approx(matches[1][1].r)


@pytest.mark.parametrize(
    ("match", "phrases"),
    [
        ('"heron"', ["heron"]),
        ('"a b" OR "c"', ["a b", "c"]),
        ('""', None),
        ('"', None),
        ('"a" OR ""', None),
        ('"a" OR b', None),
        ('"a" AND "b"', None),
        ("heron*", None),
        ('""kettle"', None),
        ('"kettle""', None),
        ('"ab"', ["ab"]),
    ],
)
def test_only_phrases_in_quotes_are_taken_apart(match: str, phrases: list[str] | None) -> None:
    """Whatever else FTS5 knows is left to it; an empty phrase is an error there."""
    assert phrases_of(match) == phrases


@pytest.mark.parametrize(
    ("frequencies", "chunks", "shares"),
    [
        # ln(1 + 9.5 / 1.5) = 1.99243 and ln(1 + 1.5 / 9.5) = 0.14660
        ([1, 9], 10, [0.93146, 0.06854, 1.0]),
        ([5, 5], 10, [0.5, 0.5, 1.0]),
        # ln(1 + 10.5 / 0.5) = 3.09104, and ln(1 + 0.5 / 12.5) = 0.03922: what FTS5 counts may be ahead of the chunks
        ([0, 12], 10, [0.98747, 0.01253, 1.0]),
    ],
)
def test_a_rare_phrase_has_the_larger_share(frequencies: list[int], chunks: int, shares: list[float]) -> None:
    """Of the inverse document frequencies of all phrases."""
    held = [(ChunkId(n), Match(1.0, bytes(of))) for n, of in enumerate([(0,), (1,), (0, 1)])]
    told = [one.share for _, one in with_shares(held, frequencies, chunks)]
    assert told == pytest.approx(shares, abs=1e-5)


@pytest.mark.parametrize(("changed", "is_more"), [(0, False), (1, False), (2, True), (500, True)])
def test_a_step_that_changes_two_rows_had_something_to_do(changed: int, is_more: bool) -> None:
    """SQLite counts a row for the step itself."""
    totals = iter((100, 100 + changed))
    asked = list[tuple[str, tuple[int]]]()
    connection: Any = SimpleNamespace(
        total_changes=lambda: next(totals), execute=lambda sql, values: asked.append((sql, values))
    )
    assert merge(connection, begin=changed == 500) is is_more
    ((_, (pages,)),) = asked
    assert pages == (-MERGED_PAGES if changed == 500 else MERGED_PAGES)
