"""An embedder that puts each text where it says, for tests of searches."""

from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, Kind
from memd.providers.provider import Calibration, Vector, Vectors, space_of
from memd.search.searcher import Searcher
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.embedding.supplies import OneSpeaker
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file

KINDS = frozenset(Kind)


class Leaning(HashingProvider):
    """Puts each text where it says."""

    def __init__(self) -> None:
        super().__init__(dimensions=2)

    @property
    def calibration(self) -> Calibration:
        return Calibration(0.77, 0.90)

    def embed(self, texts: Sequence[str]) -> Vectors:
        """The first is at 0; a text that ends in a number is at so many thousandths of a radian."""
        angles = [int(text.rpartition(" ")[2]) / 1000 if text[-1].isdigit() else 0.0 for text in texts]
        return np.array([[np.cos(angle), np.sin(angle)] for angle in angles], np.float32)

    async def embed_query(self, text: str) -> Vector:
        row: Vector = self.embed([text])[0]
        return row


class Reversing:
    """A reranker that prefers what is longest, or fails."""

    def __init__(self, candidates: int = 30, trouble: DegradedPart | None = None) -> None:
        self.candidates = candidates
        self.trouble = trouble
        self.asked: list[tuple[str, list[str]]] = []
        self.is_closed = False

    async def order(self, question: str, texts: Sequence[str]) -> list[int] | DegradedPart:
        self.asked.append((question, list(texts)))
        if self.trouble is not None:
            return self.trouble
        return sorted(range(len(texts)), key=lambda n: -len(texts[n]))

    async def close(self) -> None:
        self.is_closed = True


async def filled(
    file: Path, texts: Sequence[str], *, made: Callable[[Path], Index] = Index, first_id: int = 1
) -> tuple[Index, Searcher]:
    """An index of one chunk a note, each with its vector."""
    provider = Leaning()
    index = made(file)
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(provider.identity), 2))
    await index.start_ids_at(first_id)
    for number, text in enumerate(texts):
        one = chunk_of(text)
        vector = provider.embed([text])[0].tobytes()
        await index.replace(
            found_file(f"memory/{number:03}.md"), b"1", [one], {one.hash: vector}, frozenset()
        )
    settings = AgentSettings(workspace=Path("/nowhere"))
    return index, Searcher(index, settings, OneSpeaker(provider))
