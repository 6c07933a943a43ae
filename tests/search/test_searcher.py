import asyncio
import itertools
import threading
from collections.abc import Awaitable, Callable, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import msgspec
import pytest

from memd.config.settings import AgentSettings, Hybrid, QuerySettings
from memd.domain_types import ChunkId, DegradedPart, Kind, Label, LabelKind
from memd.providers.provider import Calibration, Vector, space_of
from memd.runtime.profiling import TimeTrace
from memd.runtime.threads import NoMemory, NoThread
from memd.search.find_candidates import CANDIDATES, MAX_RESULTS
from memd.search.fuse_scores import Doubles, Ints
from memd.search.make_hits import Searched
from memd.search.order_candidates import EXAMINED
from memd.search.query_expansion import expansion
from memd.search.searcher import ATTEMPTS, SPACES, Searcher
from memd.store.database import READERS, Database
from memd.store.embedding_cache import Space
from memd.store.errors import StoreClosed, StoreDamaged, StoreRefused, StoreUnavailable
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.index_reader import IndexReader
from memd.store.keywords import Match
from memd.store.search_keywords import KeywordReader
from memd.store.search_vectors import REST_S, SearchVectors
from memd.text.time_spans import TimeSpan
from tests.clock import Clock
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning, Reversing, filled
from tests.store.conftest import chunk_of, found_file, ranked
from tests.wait import until_async

T = TypeVar("T")


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


async def test_what_says_the_same_later_is_shown_first_and_explained(tmp_path: Path) -> None:
    """Whatever the least score, in front of what it replaces; where the question asks for what was, behind it."""
    texts = ["kettle on the shelf 400", "kettle in the cellar 520", "kettle lid 1100", "kettle wire 4000"]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    provider = Leaning()
    for number, day in ((0, 2), (1, 7)):
        at = datetime(2026, 3, day)  # noqa: DTZ001
        one = msgspec.structs.replace(chunk_of(texts[number]), when=TimeSpan(at, at))
        vector = provider.embed([texts[number]])[0].tobytes()
        await index.replace(
            found_file(f"memory/{number:03}.md"), b"2", [one], {one.hash: vector}, frozenset()
        )

    async def paths(question: str, **wanted: float) -> list[str]:
        asked = {"max_results": 6, "min_score": 0.0} | wanted
        found = await searcher.search(question, kinds=KINDS, **asked)  # type: ignore[arg-type]
        return [hit.path for hit in found.hits]

    assert await paths("kettle now 350") == [
        "memory/001.md",
        "memory/000.md",
        "memory/002.md",
        "memory/003.md",
    ]
    assert await paths("kettle before 350") == [
        "memory/000.md",
        "memory/001.md",
        "memory/002.md",
        "memory/003.md",
    ]
    found, trace = await searcher.explain("kettle now 350", kinds=KINDS, max_results=6, min_score=0.0)
    assert [(one.place, one.older) for one in trace.candidates[:3]] == [(2, 1), (1, None), (3, None)]
    scores = [hit.score for hit in found.hits]
    assert scores[0] == scores[1]
    for least in (scores[0], scores[2], scores[2] + 0.001):
        kept = [hit.path for hit in found.hits if hit.score >= least]
        assert await paths("kettle now 350", min_score=least) == kept
    for wanted in (1, 2, 3):
        assert await paths("kettle now 350", max_results=wanted) == [hit.path for hit in found.hits][:wanted]
    await index.close()


async def test_what_its_note_says_is_superseded_is_shown_behind_what_replaced_it(tmp_path: Path) -> None:
    """Whatever the least score; where the question asks for what was, it has its place, and says so all the same."""
    texts = ["kettle on the shelf 400", "kettle in the cellar 520", "kettle lid 1100"]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    one = chunk_of(texts[0])
    vector = Leaning().embed([texts[0]])[0].tobytes()
    labels = (Label(LabelKind.PROPERTY, "superseded-by", "001"),)
    change = FileChange(found_file("memory/000.md"), b"2", [one], labels=labels)
    await index.replace_all([change], {one.hash: vector}, frozenset())

    async def shown(question: str, min_score: float = 0.0) -> list[tuple[str, str | None]]:
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=min_score)
        return [(hit.path, hit.superseded_by) for hit in found.hits]

    behind = [("memory/001.md", None), ("memory/000.md", "001"), ("memory/002.md", None)]
    assert await shown("kettle 350") == behind
    assert await shown("kettle before 350") == [behind[1], behind[0], behind[2]]
    found, trace = await searcher.explain("kettle 350", kinds=KINDS, max_results=6, min_score=0.0)
    assert [one.superseded for one in trace.candidates] == [False, True, False]
    for number, hit in enumerate(found.hits, 1):
        assert await shown("kettle 350", hit.score) == behind[:number]
    await index.close()


async def test_what_a_text_has_struck_out_is_shown_behind_it(tmp_path: Path) -> None:
    """By words alone, too; where the question asks for what was, in its place."""
    texts = ["the kettle is on shelf 14", "kettle: on shelf ~~14~~ 31, beside the umbrella", "ledger"]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    for mode in ("hybrid", "keyword"):
        for question, first in (("kettle shelf 14", 1), ("before: kettle shelf 14", 0)):
            found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.0, mode=mode)
            assert found.hits[0].path == f"memory/{first:03}.md"
    await index.close()


async def test_traditional_and_simplified_chinese_find_each_other_by_words(tmp_path: Path) -> None:
    """The hit shows what is written."""
    texts = ["車庫的鑰匙在閣樓", "会议改到周四", "ledger"]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    for question, text in (("车库的钥匙", texts[0]), ("會議週四", texts[1]), ("車庫的鑰匙", texts[0])):
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.35, mode="keyword")
        assert [hit.snippet for hit in found.hits] == [text]
    await index.close()


async def reranking(tmp_path: Path, reranker: Reversing) -> tuple[Index, Searcher]:
    texts = ["kettle 400", "kettle on 420", "kettle on the 440", "kettle on the shelf 460", "umbrella 5000"]
    index, _ = await filled(tmp_path / "main.sqlite", texts)
    settings = AgentSettings(workspace=Path("/nowhere"))
    return index, Searcher(index, settings, OneSpeaker(Leaning()), reranker)


async def test_a_reranker_orders_the_first_candidates(tmp_path: Path) -> None:
    """Each gets the score of its new place; what is not worth reading is not sent, nor is what is searched by one side alone."""
    reranker = Reversing()
    index, searcher = await reranking(tmp_path, reranker)

    async def found(**wanted: Any) -> list[tuple[str, float]]:
        asked = {"max_results": 6, "min_score": 0.0} | wanted
        searched = await searcher.search("kettle 390", kinds=KINDS, **asked)
        assert searched.degraded == ()
        return [(hit.snippet.split(" 4")[0], hit.score) for hit in searched.hits[:4]]

    by_meaning = await found(mode="vector")
    assert [text for text, _ in by_meaning] == ["kettle", "kettle on", "kettle on the", "kettle on the shelf"]
    assert reranker.asked == []
    whole = await found()
    assert [text for text, _ in whole] == ["kettle on the shelf", "kettle on the", "kettle on", "kettle"]
    assert [score for _, score in whole] == sorted((score for _, score in whole), reverse=True)
    ((question, texts),) = reranker.asked
    assert (question, len(texts)) == ("kettle 390", 4)
    assert await found(max_results=2) == whole[:2]
    least = whole[1][1]
    assert await found(min_score=least) == [one for one in whole if one[1] >= least]
    explained, _ = await searcher.explain("kettle 390", kinds=KINDS, max_results=6, min_score=0.0)
    assert [hit.score for hit in explained.hits[:4]] == [score for _, score in whole]
    await searcher.close()
    assert reranker.is_closed
    await index.close()


async def test_only_so_many_candidates_are_ordered_anew(tmp_path: Path) -> None:
    """The others follow in the order that they had."""
    index, searcher = await reranking(tmp_path, Reversing(candidates=2))
    found = await searcher.search("kettle 390", kinds=KINDS, max_results=4, min_score=0.0)
    assert [hit.snippet for hit in found.hits] == [
        "kettle on 420", "kettle 400", "kettle on the 440", "kettle on the shelf 460",
    ]  # fmt: skip
    await index.close()


async def test_a_reranker_of_one_candidate_is_not_asked(tmp_path: Path) -> None:
    """There is nothing to order; a searcher without one has nothing to close."""
    reranker = Reversing(candidates=1)
    index, searcher = await reranking(tmp_path, reranker)
    found = await searcher.search("kettle 390", kinds=KINDS, max_results=2, min_score=0.0)
    assert [hit.snippet for hit in found.hits] == ["kettle 400", "kettle on 420"]
    assert reranker.asked == []
    await searcher.close()
    await Searcher(index, AgentSettings(workspace=Path("/nowhere")), OneSpeaker(Leaning())).close()
    await index.close()


async def test_a_reranker_that_fails_is_named_and_changes_nothing(tmp_path: Path) -> None:
    """The hits are those without it."""
    trouble = DegradedPart("rerank", "no answer within 150 ms")
    index, searcher = await reranking(tmp_path, Reversing(trouble=trouble))
    found = await searcher.search("kettle 390", kinds=KINDS, max_results=4, min_score=0.0)
    assert found.degraded == (trouble,)
    assert [hit.snippet for hit in found.hits][:2] == ["kettle 400", "kettle on 420"]
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
    await index.mark_refused(chunk_of("text 1").hash)
    found = await searcher.search("anything", kinds=KINDS, max_results=6, min_score=0.0)
    assert found.degraded == ()
    await index.close()


FAILURES = {
    "a thread": NoThread("no thread can be started"),
    "memory": NoMemory("no memory is left"),
    "a disk": StoreUnavailable("it is busy"),
    "a statement": StoreRefused("SQLite does not take a statement"),
}


def failing(failure: Exception) -> Callable[..., NoReturn]:
    def fails(*_: object, **__: object) -> NoReturn:
        raise failure

    return fails


@pytest.mark.parametrize("failure", FAILURES.values(), ids=FAILURES)
@pytest.mark.parametrize("is_on_disk", [False, True])
async def test_what_cannot_be_had_for_a_moment_takes_one_side_from_a_search(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, *, is_on_disk: bool
) -> None:
    """The other side answers, and what is missing is told, which is no damage; without both there is no answer."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle ledger 400", "kettle other 401"])
    if is_on_disk:
        await index.vectors.shelve()

    async def found() -> tuple[str, int, list[tuple[str, str]]]:
        one = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
        assert (one.keyword_damage, one.vector_damage) == (None, None)
        return one.mode, len(one.hits), [(missing.part, missing.reason) for missing in one.degraded]

    with monkeypatch.context() as patched:
        patched.setattr(KeywordReader, "search", failing(failure))
        assert await found() == ("vector", 2, [("keyword", str(failure))])
        with pytest.raises(type(failure)):
            await searcher.warm()
    with monkeypatch.context() as patched:
        patched.setattr("memd.store.vector_matrix.scan", failing(failure))
        patched.setattr(SearchVectors, "nearest", failing(failure))
        assert await found() == ("keyword", 2, [("vector", str(failure))])
        patched.setattr(KeywordReader, "search", failing(failure))
        with pytest.raises(type(failure)):
            await found()
    assert await found() == ("hybrid", 2, [])
    await index.close()


async def test_a_search_of_an_index_that_is_closed_is_put_to_the_next_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is not answered by one side of what is going."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle ledger 400"])
    for owner, name in ((KeywordReader, "search"), (SearchVectors, "nearest")):
        await index.vectors.shelve()
        with monkeypatch.context() as patched:
            patched.setattr(owner, name, failing(StoreClosed("the store is closing")))
            with pytest.raises(StoreClosed):
                await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
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
    searcher = Searcher(index, settings, OneSpeaker(Slowly(clock)))
    with TimeTrace(clock) as account:
        await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    [name] = account.parts()
    assert "question's vector" in name.split(" + ")
    assert (account.parts()[name], account.took_s) == (2, 2)
    await index.close()


async def test_the_time_that_an_index_is_busy_is_told(tmp_path: Path) -> None:
    """With all its readers blocked, a search waits for a thread."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "kettle 2"], made=Followed)
    assert isinstance(index, Followed)
    clock, opened, began = Clock(), threading.Event(), threading.Semaphore(0)

    def block(_: IndexReader) -> None:
        began.release()
        opened.wait(30)

    blocked = [asyncio.create_task(index.read(block)) for _ in range(READERS)]
    for _ in blocked:
        await asyncio.to_thread(began.acquire)
    is_asked = asyncio.Event()

    async def is_now() -> None:
        is_asked.set()

    index.before_reading = is_now
    with TimeTrace(clock) as account:
        search = asyncio.create_task(searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0))
        await is_asked.wait()
        clock.run(3)
        opened.set()
        await search
    await asyncio.gather(*blocked)
    assert account.parts() == {"searching, queued": 3}
    await index.close()


class Followed(Index):
    """Tells how many candidates a search wants of its keywords, and when one waits for the end of a change."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.wanted: list[int] = []
        self.is_waited_for = asyncio.Event()
        self.before_reading: Callable[[], Awaitable[None]] | None = None
        self.rests: list[float] = []  # for how long a search would have waited
        self.is_slow = False  # no change ends in time

    async def read(self, use: Callable[[IndexReader], T], state: int | None = None) -> T:
        if self.before_reading is not None:
            await self.before_reading()

        def look(reader: IndexReader) -> T:
            search = reader.keywords.search

            def counted(match: str, limit: int, *others: Any) -> list[tuple[ChunkId, Match]]:
                self.wanted.append(limit)
                return search(match, limit, *others)

            vars(reader.keywords)["search"] = counted
            return use(reader)

        return await super().read(look, state)

    async def at_rest(self, most_s: float) -> bool:
        self.rests.append(most_s)
        self.is_waited_for.set()
        return not self.is_slow and await super().at_rest(20)


@pytest.mark.parametrize(("multiplier", "wanted"), [(1, CANDIDATES), (20, 20 * MAX_RESULTS)])
async def test_a_setting_has_more_candidates_looked_at(tmp_path: Path, multiplier: int, wanted: int) -> None:
    """As many as configured for each result that may be asked for, and never fewer than by default."""
    index = Followed(tmp_path / "main.sqlite")
    await index.open()
    hybrid = Hybrid(candidate_multiplier=multiplier)
    settings = AgentSettings(workspace=Path("/nowhere"), query=QuerySettings(hybrid=hybrid))
    searcher = Searcher(index, settings, OneSpeaker(Leaning()))
    await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert index.wanted == [wanted]
    await index.close()


async def test_parts_and_scripts_are_read_of_the_best_candidates_alone(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """However many are found: each costs some ten microseconds."""
    read: list[ChunkId] = []
    foreign = IndexReader.foreign

    def counted(reader: IndexReader, ids: Ints, question: Mapping[str, float]) -> Doubles:
        read.extend(ids.tolist())
        return foreign(reader, ids, question)

    texts = [f"kettle {400 + number}" for number in range(EXAMINED + 20)]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    monkeypatch.setattr(IndexReader, "foreign", counted)
    await searcher.search("kettle 400", kinds=KINDS, max_results=50, min_score=0.0)
    assert read == list(range(1, EXAMINED + 1))  # the closest, in order
    await index.close()


async def test_a_search_waits_while_an_index_takes_the_place_of_another(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its text is there a moment before its vectors: what is found by meaning alone would be missing."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "kettle 2"], made=Followed)
    assert isinstance(index, Followed)
    beside, _ = await filled(
        tmp_path / "main.sqlite.next", ["walrus 1", "walrus 2", "walrus 3"], first_id=5000
    )
    has_text, may_end = asyncio.Event(), asyncio.Event()
    replace_from = Database.replace_from

    async def held(database: Database, other: Path) -> None:
        await replace_from(database, other)
        has_text.set()
        await may_end.wait()

    monkeypatch.setattr(Database, "replace_from", held)
    swap = asyncio.create_task(index.swap_in(beside))
    await has_text.wait()
    search = asyncio.create_task(searcher.search("big mammals", kinds=KINDS, max_results=6, min_score=0.0))
    waited = asyncio.create_task(index.is_waited_for.wait())
    await asyncio.wait([search, waited], return_when=asyncio.FIRST_COMPLETED)
    may_end.set()
    assert [hit.snippet for hit in (await search).hits] == ["walrus 1", "walrus 2", "walrus 3"]
    await swap
    await index.close()
    waited.cancel()


@pytest.mark.parametrize("has_postings", [False, True])
async def test_a_search_that_an_index_always_changes_under_ends(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, *, has_postings: bool
) -> None:
    """After so many attempts it takes what it has: vectors have not followed the text, as while a rebuild takes its place."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1"], made=Followed)
    assert isinstance(index, Followed)
    if has_postings:
        monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
        await ranked(index, '"kettle"', 1, KINDS)
        await until_async(lambda: index.postings.is_ready)
        index.wanted.clear()

    async def changes() -> None:
        one = chunk_of(f"kettle again {len(index.wanted)}")
        await index.replace(found_file("memory/000.md"), b"1", [one], {}, frozenset())

    async def stay(*_: object) -> None:
        return None

    monkeypatch.setattr(index.vectors, "follow", stay)

    index.before_reading = changes
    found = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert len(index.wanted) == ATTEMPTS
    assert [hit.snippet for hit in found.hits] == [f"kettle again {ATTEMPTS - 1}"]
    assert [one.part for one in found.degraded] == ["store"]
    index.is_slow = True
    index.wanted.clear()
    index.rests.clear()
    found = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert (len(index.wanted), index.rests) == (2, [REST_S]), "it is not waited for once more"
    assert [one.part for one in found.degraded] == ["store"]
    monkeypatch.undo()
    index.before_reading = None
    index.vectors.take(None, None, has_parts=False)
    found = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert len(found.hits) == 1
    assert "store" not in [one.part for one in found.degraded]
    await index.close()


async def test_a_search_does_not_wait_for_vectors_on_disk_that_are_being_replaced_for_long(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keywords answer, and what is missing is told."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "kettle 2"], made=Followed)
    assert isinstance(index, Followed)
    await index.vectors.shelve()
    index.is_slow = True

    def of_another_model(*_: object, **__: object) -> None:
        return None

    monkeypatch.setattr(SearchVectors, "nearest", of_another_model)
    found = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.0)
    assert (found.mode, len(found.hits), [one.part for one in found.degraded]) == ("keyword", 2, ["rebuild"])
    assert index.rests == [REST_S]
    await index.close()


async def weak(searcher: Searcher, text: str) -> list[bool]:
    """Of each hit whether it is shown for want of better."""
    found = await searcher.search(text, kinds=KINDS, max_results=6, min_score=0.0)
    return [hit.weak for hit in found.hits]


async def test_hits_are_weak_where_nothing_is_close(tmp_path: Path) -> None:
    """By vectors alone one that is close answers, and then none of the others is called weak."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 900", "ledger 950"])
    assert await weak(searcher, "umbrella 0") == [True, True]
    await index.close()
    index, searcher = await filled(tmp_path / "other.sqlite", ["kettle 20", "ledger 950"])
    assert await weak(searcher, "umbrella 0") == [False, False]
    await index.close()


async def test_what_asks_for_nothing_is_answered_by_weak_hits(tmp_path: Path) -> None:
    """However close a note is to a greeting."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["umbrella ok 0", "ledger 950"])
    assert await weak(searcher, "ok, thanks") == [True, True]
    assert await weak(searcher, "umbrella, thanks") == [False, False]
    await index.close()


async def test_a_name_that_no_text_holds_makes_weak_what_is_not_very_close(tmp_path: Path) -> None:
    """A code, too; but not where the words are not looked for, or the keyword index is broken."""
    texts = [f"the kettle of Barnaby is broken 63{number}" for number in range(4)]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    assert not any(await weak(searcher, "when did the kettle of Barnaby break 100"))
    assert all(await weak(searcher, "when did the kettle of Ottilie break 100"))
    assert all(await weak(searcher, "when did kettle KT-471 break 100"))
    vectors_alone = Searcher(
        index,
        AgentSettings(workspace=Path("/nowhere"), query=QuerySettings(hybrid=Hybrid(enabled=False))),
        OneSpeaker(Leaning()),
    )
    asked = "when did the kettle of Ottilie break 100"
    assert not any(await weak(vectors_alone, asked))
    await index.close()


async def test_whether_hits_are_weak_does_not_depend_on_how_many_are_wanted(tmp_path: Path) -> None:
    """Neither on the least score."""
    texts = [f"kettle {number}" for number in range(300, 900, 20)]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    for text in ("kettle 250", "umbrella 0"):
        marks = set()
        for most, least in ((1, 0.0), (6, 0.0), (50, 0.0), (6, 0.1)):
            found = await searcher.search(text, kinds=KINDS, max_results=most, min_score=least)
            marks |= {hit.weak for hit in found.hits}
            explained, trace = await searcher.explain(text, kinds=KINDS, max_results=most, min_score=least)
            marks |= {hit.weak for hit in explained.hits} | {trace.strength < trace.answers_from}
        assert len(marks) == 1, (text, marks)
    await index.close()


async def test_a_text_that_waits_for_its_vector_is_judged_by_its_words(tmp_path: Path) -> None:
    """What was written a moment ago is no weak hit for a question that it answers; without any vectors likewise."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["ledger 950"])
    fresh = chunk_of("the new kettle leaks")
    await index.replace(found_file("memory/fresh.md"), b"1", [fresh], {}, frozenset())
    assert not any(await weak(searcher, "does the new kettle leak 0"))
    index.vectors.take(None, None, has_parts=False)
    assert await weak(searcher, "does the new kettle leak") == [False]
    assert await weak(searcher, "does the Umbrella of the marmot in the cellar of the ledger leak") == [
        True,
        True,
    ]
    await index.close()


async def test_an_explanation_names_the_names_that_are_missing(tmp_path: Path) -> None:
    """As the words of the question are: folded."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["the kettle of Barnaby 460"])
    asked = "did Ottilie mend the kettle KT-471 of Barnaby 0"
    _, trace = await searcher.explain(asked, kinds=KINDS, max_results=6, min_score=0.0)
    assert trace.missing == ("ottilie", "kt 471")
    await index.close()


async def test_an_explanation_has_what_a_search_leaves_out_unread(tmp_path: Path) -> None:
    """A candidate with less than the least score, and why it is no hit; a search reads only what may be one."""
    texts = ["kettle 400", "kettle 405", *(f"ledger {900 + number}" for number in range(30))]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    found, trace = await searcher.explain("kettle 400", kinds=KINDS, max_results=6, min_score=0.5)
    assert [hit.path for hit in found.hits] == ["memory/000.md", "memory/001.md"]
    assert [one.cut for one in trace.candidates[:3]] == [None, None, "min_score"]
    assert len(trace.candidates) > 20
    read: list[int] = []
    texts_of = IndexReader.texts

    def counting(self: IndexReader, ids: Sequence[ChunkId]) -> Any:
        read.append(len(ids))
        return texts_of(self, ids)

    with pytest.MonkeyPatch.context() as patched:
        patched.setattr(IndexReader, "texts", counting)
        searched = await searcher.search("kettle 400", kinds=KINDS, max_results=6, min_score=0.5)
        few, read[:] = sum(read), []
        await searcher.explain("kettle 400", kinds=KINDS, max_results=6, min_score=0.5)
    assert searched.hits == found.hits
    assert few < sum(read)
    await index.close()


async def test_one_side_alone_is_asked(tmp_path: Path) -> None:
    """By words what is far is found, by meaning what has none of the words; the answer says by what."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 900", "ledger 10"])
    found = {
        mode: await searcher.search("kettle 0", kinds=KINDS, max_results=6, min_score=0.1, mode=mode)
        for mode in ("hybrid", "keyword", "vector")
    }
    assert {mode: one.mode for mode, one in found.items()} == {mode: mode for mode in found}
    assert {mode: {hit.snippet for hit in one.hits} for mode, one in found.items()} == {
        "hybrid": {"kettle 900", "ledger 10"},
        "keyword": {"kettle 900"},
        "vector": {"ledger 10"},
    }
    assert all(one.degraded == () for one in found.values())
    await index.close()


class Mute(OneSpeaker):
    """A provider that does not answer."""

    async def embed_query(self, text: str, space: Space) -> DegradedPart:
        return DegradedPart("query_embedding", f"no vector of {text} in {space}")


async def test_without_vectors_nothing_is_taken_off_for_how_close_a_question_is_to_all(
    tmp_path: Path,
) -> None:
    """An explanation says so."""
    index, _ = await filled(tmp_path / "main.sqlite", ["kettle 1", "ledger 2"])
    searcher = Searcher(index, AgentSettings(workspace=Path("/nowhere")), Mute(Leaning()))
    found, trace = await searcher.explain("kettle", kinds=KINDS, max_results=5, min_score=0.0)
    assert [hit.snippet for hit in found.hits] == ["kettle 1"]
    assert (found.mode, trace.background) == ("keyword", 0.0)
    await index.close()


async def test_damage_of_one_side_is_told_and_the_other_side_answers(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also before the first question is asked; what is not damaged has nothing to tell."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "ledger 2"])
    why = "page 7 is not what was written"

    async def found() -> Searched:
        return await searcher.search("kettle 1", kinds=KINDS, max_results=5, min_score=0.35)

    def damaged(*_: object, **__: object) -> NoReturn:
        raise StoreDamaged(why)

    sound = await found()
    assert (sound.mode, sound.degraded, await searcher.warm()) == ("hybrid", (), None)
    assert (sound.keyword_damage, sound.vector_damage) == (None, None)
    with monkeypatch.context() as broken:
        broken.setattr(KeywordReader, "search", damaged)
        assert await searcher.warm() == why
        by_meaning = await found()
    assert (by_meaning.mode, by_meaning.degraded) == ("vector", (DegradedPart("keyword", why),))
    assert (by_meaning.keyword_damage, by_meaning.vector_damage) == (why, None)
    assert {hit.path for hit in by_meaning.hits} == {hit.path for hit in sound.hits}
    with monkeypatch.context() as broken:
        broken.setattr("memd.search.find_candidates.vector_matrix.scan", damaged)
        assert await searcher.warm() is None
        by_words = await found()
    assert (by_words.mode, by_words.degraded) == ("keyword", (DegradedPart("vector", why),))
    assert (by_words.keyword_damage, by_words.vector_damage) == (None, why)
    assert [hit.snippet for hit in by_words.hits] == ["kettle 1"]
    await index.close()


class Obliging(OneSpeaker):
    """Embeds a question for whatever vectors."""

    def __init__(self) -> None:
        super().__init__(Leaning())
        self.models: list[str] = []

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration]:
        self.models.append(space[0])
        return await self.provider.embed_query(text), self.provider.calibration


@pytest.mark.parametrize(("changes", "mode"), [(1, "hybrid"), (SPACES - 1, "hybrid"), (SPACES, "keyword")])
async def test_a_question_is_embedded_for_the_vectors_that_are_there_afterwards(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, changes: int, mode: str
) -> None:
    """Another index may have taken the place of theirs meanwhile; that it goes on doing so is not waited for."""
    index, _ = await filled(tmp_path / "main.sqlite", ["kettle 1", "ledger 2"])
    embedder = Obliging()
    searcher = Searcher(index, AgentSettings(workspace=Path("/nowhere")), embedder)
    current, looks = index.vectors.current, itertools.count(1)

    def changing() -> object:
        """Looked at before the question is embedded and afterwards: the second look finds what the next one begins with."""
        held, number = current(), next(looks) // 2
        assert held is not None
        return held if number >= changes else ((f"model {number}", "k"), held[1])

    monkeypatch.setattr(index.vectors, "current", changing)
    found = await searcher.search("kettle", kinds=KINDS, max_results=5, min_score=0.0)
    own = space_of(embedder.provider.identity)[0]
    assert embedder.models == [*(f"model {number}" for number in range(changes)), own][:SPACES]
    assert (found.mode, [one.part for one in found.degraded]) == (mode, ["rebuild"] * (mode == "keyword"))
    await index.close()


async def test_what_is_searched_for_is_made_ready_before_its_spelling_is_looked_up(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A memory on a server asks for both at once."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["kettle 1", "ledger 2"])
    asked: list[str] = []
    search = KeywordReader.search

    def searching(reader: KeywordReader, match: str, *how: Any) -> list[tuple[ChunkId, Match]]:
        asked.append(f"search {match}")
        return search(reader, match, *how)

    def preparing(_: KeywordReader, match: str, terms: Sequence[str]) -> None:
        asked.append(f"prepare {match} {' '.join(terms)}")

    monkeypatch.setattr(KeywordReader, "prepare", preparing)
    monkeypatch.setattr(KeywordReader, "search", searching)
    await searcher.search("kettle", kinds=KINDS, max_results=5, min_score=0.0)
    expanded = expansion("kettle")
    assert expanded is not None
    assert asked == [f'prepare "kettle" {" ".join(expanded.terms)}', 'search "kettle"']
    await index.close()
