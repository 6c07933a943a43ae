"""Searches where no vectors find what is said in other words or in the other language."""

from collections.abc import Sequence
from pathlib import Path

import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import ChunkId, FoundHit, Kind, SearchFilter
from memd.providers.provider import space_of
from memd.search.answer_strength import ANSWERS
from memd.search.find_candidates import CANDIDATES
from memd.search.searcher import Searcher
from memd.store.index import Index
from memd.store.index_reader import IndexReader
from memd.store.meta import Fingerprint
from memd.store.search_keywords import FEWEST, KeywordReader
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async

OTHERS = [f"boxes in a cellar {number}" for number in range(12)]


async def opened(
    file: Path, texts: Sequence[str], *, embedded: int = 0, kind: Kind = Kind.NOTE
) -> tuple[Index, Searcher]:
    """An index of one chunk a note, of which the first so many have a vector."""
    index = Index(file)
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(Leaning().identity), 2))
    await put(index, texts, embedded=embedded, kind=kind)
    return index, Searcher(index, AgentSettings(workspace=Path("/nowhere")), OneSpeaker(Leaning()))


async def put(
    index: Index, texts: Sequence[str], *, embedded: int = 0, kind: Kind = Kind.NOTE, where: str = "memory"
) -> None:
    for number, text in enumerate(texts):
        one = chunk_of(text)
        vectors = {one.hash: Leaning().embed([text])[0].tobytes()} if number < embedded else {}
        await index.replace(
            found_file(f"{where}/{number:03}.md", kind=kind), b"1", [one], vectors, frozenset()
        )


async def hits(
    searcher: Searcher, question: str, *, mode: str = "keyword", min_score: float = 0.35
) -> tuple[FoundHit, ...]:
    found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=min_score, mode=mode)
    return found.hits


@pytest.mark.parametrize(
    ("question", "words", "other"),
    [
        ("landlord phone", "the phone of the landlord 1", "房东的电话 2"),
        ("房东的电话", "房东的电话 1", "the landlord has a phone 2"),
        ("where did I buy the sofa", "I did buy a sofa 1", "purchased a couch 2"),
    ],
)
@pytest.mark.parametrize("mode", ["keyword", "hybrid"])
async def test_what_is_said_otherwise_is_found_behind_what_holds_the_words(
    tmp_path: Path, question: str, words: str, other: str, mode: str
) -> None:
    """In a search by keywords alone, and while no chunk has a vector; neither is weak."""
    index, searcher = await opened(tmp_path / "main.sqlite", [*OTHERS, other, words])
    found = await hits(searcher, question, mode=mode)
    assert [hit.snippet for hit in found] == [words, other]
    assert found[0].score > found[1].score
    assert not any(hit.weak for hit in found)
    await index.close()


async def test_what_holds_little_of_a_question_is_weak(tmp_path: Path) -> None:
    """One word of four in the other language is no answer."""
    index, searcher = await opened(tmp_path / "main.sqlite", [*OTHERS, "房东 1"])
    (found,) = await hits(searcher, "landlord visited Marchetti yesterday wearing boots", min_score=0.01)
    assert found.snippet == "房东 1"
    assert found.weak
    assert found.score < 0.35
    await index.close()


@pytest.mark.parametrize("question", ["xyzzy plugh", "今天天气怎么样", "hello", "什么事情", ""])
async def test_what_asks_for_nothing_finds_nothing(tmp_path: Path, question: str) -> None:
    """Small talk is not looked for by other words."""
    index, searcher = await opened(tmp_path / "main.sqlite", [*OTHERS, "nice weather today", "hi there"])
    assert not await hits(searcher, question, min_score=0.0)
    await index.close()


async def test_an_explanation_says_what_synonyms_found(tmp_path: Path) -> None:
    """With the sum of the score, which is that of PROTOCOL.md."""
    index, searcher = await opened(tmp_path / "main.sqlite", [*OTHERS, "房东的电话 1", "landlord 2"])
    found, trace = await searcher.explain("landlord phone", kinds=KINDS, max_results=6, min_score=0.0)
    assert found.mode == "keyword"
    assert trace.alternatives["landlord"] == ("房东",)
    assert (trace.by_words, trace.by_meaning, trace.by_synonyms) == (1, 0, 1)
    assert trace.strength >= trace.answers_from == ANSWERS
    translated, as_asked = trace.candidates
    assert translated.share == 0.0
    assert translated.foreign > 0.5
    assert translated.expanded == translated.alternatives == pytest.approx(1.0)
    native, foreign = 1 - translated.foreign, translated.foreign
    assert translated.by_words == pytest.approx(2 * 0.8 * (native * 0.5 + foreign * 0.8))
    assert (as_asked.alternatives, as_asked.keyword_rank) == (0.0, 1)
    assert 0 < as_asked.expanded < 1
    await index.close()


async def test_the_shown_part_of_a_long_text_is_where_the_synonyms_are(tmp_path: Path) -> None:
    """Not its beginning."""
    filler = "\n".join(f"boxes in a cellar, shelf {number}" for number in range(60))
    index, searcher = await opened(tmp_path / "main.sqlite", [f"{filler}\n房东的电话 1\n{filler}"])
    found, trace = await searcher.explain("landlord phone", kinds=KINDS, max_results=6, min_score=0.0)
    assert "房东的电话 1" in found.hits[0].snippet
    assert trace.candidates[0].chosen == "synonyms"
    await index.close()


async def test_postings_and_fts5_find_the_same(tmp_path: Path) -> None:
    """In the same order and with the same scores."""
    texts = ["房东的电话", "房东 电话 手机", "打电话", "landlord", "the phone", "房东"]
    many = [f"{text} {number}" for number in range(FEWEST // 4) for text in (*texts, "boxes in a cellar")]
    index, searcher = await opened(tmp_path / "main.sqlite", many)

    async def all_hits() -> list[tuple[FoundHit, ...]]:
        questions = ("landlord phone", "房东的手机", "who calls the landlord?")
        return [await hits(searcher, question, min_score=0.0) for question in questions]

    by_fts5 = await all_hits()
    await until_async(lambda: index.postings.is_ready)
    assert await all_hits() == by_fts5
    assert all(by_fts5)
    await index.close()


async def test_a_filter_and_hidden_kinds_hold_for_synonyms(tmp_path: Path) -> None:
    """However many others there are; and these change no score."""
    index, searcher = await opened(tmp_path / "main.sqlite", ["房东的电话 1", *OTHERS])
    alone = await searcher.search(
        "landlord phone", kinds=frozenset({Kind.NOTE}), max_results=6, min_score=0.0
    )
    many = [f"房东的电话 {number}" for number in range(10, CANDIDATES + 20)]
    await put(index, many, kind=Kind.SESSION, where="sessions")
    for kinds, wanted in (
        (frozenset({Kind.NOTE}), SearchFilter()),
        (KINDS, SearchFilter(paths=("memory/000.md",))),
    ):
        found = await searcher.search(
            "landlord phone", kinds=kinds, max_results=6, min_score=0.0, wanted=wanted
        )
        assert [hit.path for hit in found.hits] == ["memory/000.md"]
    both = await searcher.search("landlord phone", kinds=KINDS, max_results=6, min_score=0.0)
    assert {hit.source for hit in both.hits} == {"memory", "sessions"}
    assert alone.hits[0].path == "memory/000.md"
    nothing = await searcher.search("landlord phone", kinds=frozenset(), max_results=6, min_score=0.0)
    assert nothing.hits == ()
    await index.close()


async def test_among_chunks_with_vectors_those_without_are_found_by_synonyms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While a first index is made; once all have one, no chunk is looked for so."""
    texts = [*OTHERS, "the garden 900"]
    index, searcher = await opened(tmp_path / "main.sqlite", texts, embedded=len(texts))
    asked: list[Sequence[str]] = []
    holders_of = KeywordReader.holders_of

    def counted(self: KeywordReader, terms: Sequence[str], kinds: Sequence[Kind]) -> object:
        asked.append(terms)
        return holders_of(self, terms, kinds)

    monkeypatch.setattr(KeywordReader, "holders_of", counted)
    await hits(searcher, "landlord phone", mode="hybrid")
    assert not asked
    await put(index, ["房东的电话"], where="memory/new")
    for _ in ("in memory", "on disk"):
        found, trace = await searcher.explain("landlord phone", kinds=KINDS, max_results=20, min_score=0.0)
        assert found.mode == "hybrid"
        [new] = [one for one in trace.candidates if one.path == "memory/new/000.md"]
        assert (new.cosine, new.keyword, trace.by_synonyms) == (None, None, 1)
        assert new.alternatives == new.expanded == pytest.approx(1.0)
        assert new.place == 1
        assert not any(one.alternatives for one in trace.candidates if one is not new)
        await index.vectors.shelve()
    assert asked
    await index.close()


async def test_a_deleted_chunk_is_not_proposed(tmp_path: Path) -> None:
    """Of postings that still list it."""
    many = ["房东的电话", *(f"boxes in a cellar {number}" for number in range(FEWEST))]
    index, searcher = await opened(tmp_path / "main.sqlite", many)
    await hits(searcher, "boxes")
    await until_async(lambda: index.postings.is_ready)
    assert await hits(searcher, "landlord phone")
    await index.remove(["memory/000.md"])

    def holders(reader: IndexReader) -> list[list[ChunkId]]:
        return [some.tolist() for some in reader.keywords.holders_of(["房东"], list(Kind))]

    assert await index.read(holders) == [[]]
    assert not await hits(searcher, "landlord phone")
    await index.close()
