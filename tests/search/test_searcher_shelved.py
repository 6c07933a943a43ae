"""Searches of an index whose vectors stay on disk."""

import asyncio
import tempfile
from pathlib import Path

from hypothesis import given, settings
from hypothesis import strategies as st

from memd.config.settings import AgentSettings
from memd.domain_types import Chunk, Kind
from memd.providers.provider import Calibration, space_of
from memd.search.searcher import Searcher
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.embedding.supplies import OneSpeaker
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file

DIMENSIONS = 32
EVERYTHING = frozenset(Kind)
NOTES = frozenset({Kind.NOTE, Kind.CURATED})


class Biased(HashingProvider):
    """Of few dimensions."""

    def __init__(self) -> None:
        super().__init__(dimensions=DIMENSIONS)

    @property
    def calibration(self) -> Calibration:
        return Calibration(0.1, 0.9)


WORDS = st.sampled_from(
    ["kettle", "ledger", "port", "8080", "数据库", "迁移", "计划", "gateway", "the", "is"]
)
TEXTS = st.lists(WORDS, min_size=1, max_size=6).map(" ".join)
FILES = st.tuples(
    st.integers(0, 5), st.sampled_from([Kind.NOTE, Kind.CURATED]), st.lists(TEXTS, min_size=1, max_size=8)
)
STEPS = st.lists(st.one_of(FILES, st.integers(0, 5)), min_size=1, max_size=8)


def chunks_of(texts: list[str]) -> list[Chunk]:
    return [chunk_of(text, number + 1) for number, text in enumerate(texts)]


async def do(index: Index, provider: Biased, step: tuple[int, Kind, list[str]] | int) -> None:
    """Write a file, in which one chunk of three still waits for its vector; or take one out."""
    if isinstance(step, int):
        await index.remove([f"memory/{step}.md"])
        return
    number, kind, texts = step
    chunks = chunks_of(texts)
    vectors = provider.embed([chunk.text for chunk in chunks])
    known = {
        chunk.hash: row.tobytes()
        for place, (chunk, row) in enumerate(zip(chunks, vectors, strict=True))
        if place % 3 < 2
    }
    await index.replace(
        found_file(f"memory/{number}.md", kind=kind), repr(step).encode(), chunks, known, frozenset()
    )


async def both(directory: Path, steps: list[tuple[int, Kind, list[str]] | int], questions: list[str]) -> None:
    """What is written, and what is found afterwards, with vectors in memory and on disk."""
    provider = Biased()
    index = Index(directory / "main.sqlite")
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(provider.identity), DIMENSIONS))
    searcher = Searcher(index, AgentSettings(workspace=Path("/nowhere")), OneSpeaker(provider))
    for number, step in enumerate(steps):
        await (index.vectors.shelve() if number % 2 else index.vectors.unshelve())
        await do(index, provider, step)
    for question in questions:
        for kinds in (EVERYTHING, NOTES):
            await index.vectors.unshelve()
            resident = await searcher.explain(question, kinds=kinds, max_results=6, min_score=0.2)
            plain = await searcher.search(question, kinds=kinds, max_results=6, min_score=0.2)
            await index.vectors.shelve()
            assert index.vectors.is_shelved
            on_disk = await searcher.explain(question, kinds=kinds, max_results=6, min_score=0.2)
            assert on_disk == resident
            assert await searcher.search(question, kinds=kinds, max_results=6, min_score=0.2) == plain
    await index.close()


@settings(max_examples=settings().max_examples // 4)
@given(STEPS, st.lists(TEXTS, min_size=1, max_size=3))
def test_answers_are_the_same_wherever_the_vectors_are(
    steps: list[tuple[int, Kind, list[str]] | int], questions: list[str]
) -> None:
    """Hits, scores to the last digit, and how each candidate came to its place."""
    with tempfile.TemporaryDirectory() as directory:
        asyncio.run(both(Path(directory), steps, questions))


async def test_more_candidates_than_there_is_place_for_are_the_same_ones(tmp_path: Path) -> None:
    """Of a thousand chunks, many of which say the same, both states propose the same two hundred of each source."""
    texts = [f"kettle {'数据库' if n % 3 else 'ledger'} {'port' if n % 7 else 'gateway'}" for n in range(900)]
    notes = [(n, Kind.NOTE, texts[100 * n : 100 * n + 100]) for n in range(6)]
    await both(
        tmp_path, [*notes, (6, Kind.CURATED, texts[600:900])], ["kettle 数据库", "where is the ledger?"]
    )
