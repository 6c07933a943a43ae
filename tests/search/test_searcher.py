import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import msgspec
import numpy as np

from memd.config import AgentSettings
from memd.embed.provider import Calibration, Vector, Vectors, space_of
from memd.model import Kind
from memd.search.searcher import Searcher
from memd.spent import Account
from memd.store.database import READERS
from memd.store.index import Index, Reader
from memd.store.meta import Fingerprint
from memd.threads import Threads
from tests.clock import Clock
from tests.engines.supplies import OneSpeaker
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async

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


async def filled(file: Path, texts: Sequence[str]) -> tuple[Index, Searcher]:
    """An index of one chunk a note, each with its vector."""
    provider = Leaning()
    index = Index(file)
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(provider.identity), 2))
    for number, text in enumerate(texts):
        one = chunk_of(text)
        vector = provider.embed([text])[0].tobytes()
        await index.replace(
            found_file(f"memory/{number:03}.md"), b"1", [one], {one.hash: vector}, frozenset()
        )
    settings = AgentSettings(workspace=Path("/nowhere"))
    return index, Searcher(index, settings, OneSpeaker(provider), Threads(2, "computing"))


async def test_a_larger_max_results_only_appends(tmp_path: Path) -> None:
    """The same question of the same index gives the same order, however much of it is wanted."""
    texts = [f"kettle {'数据库' if number % 3 else 'ledger'} {400 + number}" for number in range(120)]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    whole = await searcher.search("kettle 数据库", kinds=KINDS, max_results=50, min_score=0.0)
    assert len(whole.hits) == 50
    for wanted in (1, 6, 20):
        part = await searcher.search("kettle 数据库", kinds=KINDS, max_results=wanted, min_score=0.0)
        assert part.hits == whole.hits[:wanted]
    await index.close()


async def test_neither_source_crowds_out_the_other(tmp_path: Path) -> None:
    """Of two thousand turns and one note that say the same, the note is among the first hits; and more only appends."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["the kettle in the ledger 500"])
    provider = Leaning()
    texts = [f"2026-03-02 09:02 User: kettle {number % 7} {400 + number // 50}" for number in range(2000)]
    chunks = [
        msgspec.structs.replace(chunk_of(text, 3 * number + 1), numbers=(3 * number + 1,), turn=number)
        for number, text in enumerate(texts)
    ]
    vectors = provider.embed([chunk.text for chunk in chunks])
    known = {chunk.hash: vector.tobytes() for chunk, vector in zip(chunks, vectors, strict=True)}
    session = found_file("sessions/a/1.jsonl", kind=Kind.SESSION)
    await index.replace(session, b"1", chunks, known, frozenset())
    whole = await searcher.search("kettle", kinds=KINDS, max_results=50, min_score=0.0)
    assert [hit.source for hit in whole.hits[:4]] == ["sessions", "sessions", "memory", "sessions"]
    assert all(hit.start_line % 3 == 1 for hit in whole.hits if hit.source == "sessions")
    for wanted in (1, 2, 3, 10):
        part = await searcher.search("kettle", kinds=KINDS, max_results=wanted, min_score=0.0)
        assert part.hits == whole.hits[:wanted]
    explained, trace = await searcher.explain("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert explained.hits == whole.hits[:6]
    assert [one.path for one in trace.candidates if one.owed] == ["memory/000.md"]
    assert [one.place for one in trace.candidates][:2] == [1, 2]
    notes = frozenset({Kind.NOTE, Kind.CURATED})
    alone = await searcher.search("kettle", kinds=notes, max_results=6, min_score=0.0)
    assert [hit.path for hit in alone.hits] == ["memory/000.md"]
    await index.close()


async def test_an_index_without_text_lacks_nothing(tmp_path: Path) -> None:
    """Vectors are missing only where a chunk waits for one."""
    index, searcher = await filled(tmp_path / "main.sqlite", [])
    found = await searcher.search("anything", kinds=KINDS, max_results=6, min_score=0.0)
    assert (found.hits, found.degraded) == ((), ())
    await index.replace(found_file("memory/a.md"), b"1", [chunk_of("text 1")], {}, frozenset())
    found = await searcher.search("anything", kinds=KINDS, max_results=6, min_score=0.0)
    assert [(one.part, one.reason) for one in found.degraded] == [("vector", "no chunk has a vector yet")]
    await index.set_aside(chunk_of("text 1").hash)
    found = await searcher.search("anything", kinds=KINDS, max_results=6, min_score=0.0)
    assert found.degraded == ()
    await index.close()


class Slowly(Leaning):
    """Takes two seconds for a question, by the clock of the test."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def embed_query(self, text: str) -> Vector:
        self._clock.run(2)
        return await super().embed_query(text)


async def test_the_time_of_a_question_without_vector_is_its_own(tmp_path: Path) -> None:
    """A provider that is slow is told from an index that is, and each second is counted once."""
    index, _ = await filled(tmp_path / "main.sqlite", ["kettle 1", "kettle 2"])
    clock = Clock()
    settings = AgentSettings(workspace=Path("/nowhere"))
    searcher = Searcher(index, settings, OneSpeaker(Slowly(clock)), Threads(2, "computing"))
    with Account(clock) as account:
        await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    [name] = account.parts()
    assert "question's vector" in name.split(" + ")
    assert (account.parts()[name], account.took_s) == (2, 2)
    await index.close()


async def test_the_time_that_an_index_is_busy_is_told(tmp_path: Path) -> None:
    """With all its readers blocked, keywords wait for a thread, and vectors are found meanwhile."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "kettle 2"])
    clock, opened, began = Clock(), threading.Event(), threading.Semaphore(0)

    def block(_: Reader) -> None:
        began.release()
        opened.wait(30)

    blocked = [asyncio.create_task(index.read(block)) for _ in range(READERS)]
    for _ in blocked:
        await asyncio.to_thread(began.acquire)
    with Account(clock) as account:
        search = asyncio.create_task(searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0))
        await until_async(lambda: index._database._reading._jobs)
        await until_async(
            lambda: "vectors" in {part.name for _, part, begins in account._noted if not begins}
        )
        clock.run(3)
        opened.set()
        await search
    await asyncio.gather(*blocked)
    assert account.parts() == {"keywords, queued": 3}
    await index.close()
