from collections.abc import AsyncIterator, Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memd.domain_types import ChunkId, Kind
from memd.search.query import parse
from memd.search.searcher import Searcher
from memd.search.spelling import MOST_MISSPELT, READ, SPELLINGS, is_name, spelt
from memd.store.chunks import StoredChunk
from memd.store.index import Index
from tests.bounds import shipped
from tests.search.leaning import KINDS, filled
from tests.store.conftest import chunk_of, found_file
from tests.wait import until_async

TEXTS = (
    "The boiler was repaired by Marchetti on Friday. 900",
    "Lunch with Juliana about the exhibition. 900",
    "Okonkwo: the parcel is at the depot. 900",
    "Marchetti also looked at the sink. 900",
    "Bring the ladder back. We bring tea. 900",
    "Вчера звонила Юлиана про ремонт. 900",
    "和 Severin 吃午饭，tags: severin 900",
    "Perpetua came late. 900",
)


@pytest.fixture(params=["postings", "fts5"])
async def searched(
    request: pytest.FixtureRequest, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> AsyncIterator[tuple[Index, Searcher]]:
    index, searcher = await filled(tmp_path / "a.sqlite", TEXTS)
    if request.param == "postings":
        monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
        await searcher.warm()
        await searcher.search("tea", kinds=KINDS, max_results=1, min_score=0.0)
        await until_async(lambda: index.postings.is_ready)
    yield index, searcher
    assert index.postings.is_ready == (request.param == "postings")
    await index.close()


async def _spelt(index: Index, question: str, kinds: frozenset[Kind] = KINDS) -> list[str]:
    """The words of a question that are looked for, and do not stand in it."""
    asked = parse(question)
    found = await index.read(lambda reader: spelt(asked, reader, kinds))
    return [word for word in found.words if word not in asked.words]


@pytest.mark.parametrize(
    ("question", "name", "answer"),
    [
        ("What did Marcheti repair?", "marchetti", 0),
        ("what did marhcetti repair", "marchetti", 0),
        ("Which exhibition did Juliane see?", "juliana", 1),
        ("where is the parcel of okonwko", "okonkwo", 2),
        ("Что сказала Юлиона?", "юлиана", 5),
        ("Severn 吃了什么？", "severin", 6),
        ("Why was Perpetau late?", "perpetua", 7),
    ],
)
async def test_a_misspelt_name_finds_its_note(
    searched: tuple[Index, Searcher], question: str, name: str, answer: int
) -> None:
    """In capital or small letters, as if it were spelt right."""
    index, searcher = searched
    assert await _spelt(index, question) == [name]
    found = await searcher.search(question, kinds=KINDS, max_results=1, min_score=0.0, mode="keyword")
    assert [hit.snippet for hit in found.hits] == [TEXTS[answer]]


@pytest.mark.parametrize(
    "question",
    [
        "What did Marchetti repair?",  # is held
        "the brine for the ladder",  # one letter from "bring", which is no name
        "why was perpetau late",  # nothing tells that Perpetua, with which a sentence begins, is a name
        "What did Marchety repair?",  # two edits
        "What did Narchetti repair?",  # another first letter
        "Who is Juli?",
        "Marchetti and Marcheti",  # is looked for already
    ],
)
async def test_other_words_stay_as_they_are(searched: tuple[Index, Searcher], question: str) -> None:
    """What is held, what is one letter away from a word that is no name, and what is farther away."""
    assert not await _spelt(searched[0], question)


async def test_a_misspelt_name_is_not_missing(searched: tuple[Index, Searcher]) -> None:
    """So that a hit is not called weak for it; a name that is farther from those that are held is missing."""
    _, searcher = searched

    async def is_weak(question: str) -> bool:
        found = await searcher.search(question, kinds=KINDS, max_results=1, min_score=0.0, mode="keyword")
        return found.hits[0].weak

    assert not await is_weak("Which boiler was repaired by Marcheti?")
    assert await is_weak("Which boiler was repaired by Markuti?")


async def test_what_may_not_be_seen_tells_no_spelling(searched: tuple[Index, Searcher]) -> None:
    """A name that stands in notes alone is none for who may see sessions only."""
    assert not await _spelt(searched[0], "What did Marcheti repair?", frozenset({Kind.SESSION}))


async def test_a_note_that_is_gone_tells_no_spelling(searched: tuple[Index, Searcher]) -> None:
    """And the one that came in its place does."""
    index, _ = searched
    await index.replace(found_file("memory/001.md"), b"2", [chunk_of("Tea with Julienne.")], {}, frozenset())
    assert await _spelt(index, "Which exhibition did Juliane see?") == []
    assert await _spelt(index, "Did Juliene drink tea?") == ["julienne"]


async def test_names_come_first_among_the_words_that_are_looked_for(
    searched: tuple[Index, Searcher],
) -> None:
    """Each takes time: of many words that no text holds, the first of those that the question writes as names."""
    most = shipped("memd.search.spelling.MOST_MISSPELT")
    unknown = " ".join(("gratitude", "hesitation", "ambiguity", "confidence")[: most + 1])
    assert await _spelt(searched[0], f"{unknown} of Juliane") == ["juliana"]
    assert await _spelt(searched[0], f"{unknown} of juliane") == []


async def test_an_explanation_names_the_words_that_were_looked_for(searched: tuple[Index, Searcher]) -> None:
    """As they were looked for."""
    _, searcher = searched
    _, trace = await searcher.explain("What did Marcheti repair?", kinds=KINDS, max_results=2, min_score=0.0)
    assert "marchetti" in trace.terms
    assert "marcheti" not in trace.terms


@pytest.mark.parametrize(
    ("text", "anywhere", "expected"),
    [
        ("We met Marchetti.", False, True),
        ("Marchetti left.", False, False),
        ("Marchetti left.", True, True),
        ("- Marchetti: left", False, True),
        ("We met Marchetti, marchetti@example.org", False, True),
        ("We met Marchetti, marchetti@example.org or marchetti@example.com", False, False),
        ("Marchettis left with the Marchettis.", True, False),
        ("给Marchetti打电话", False, True),
        ("We met Marchétti.", False, True),
        ("nothing", True, False),
    ],
)
def test_a_name_has_a_capital_letter(text: str, anywhere: bool, expected: bool) -> None:
    """Within a sentence, or as who speaks, at least as often as it has none."""
    assert is_name("marchetti", [text], anywhere=anywhere) is expected


def test_few_spellings_of_a_word_are_looked_up_in_texts() -> None:
    """Those that most texts hold; as many texts of each as tell whether it is a name."""
    asked = parse("what did Marcheti repair")
    read: list[ChunkId] = []

    def holders(words: Sequence[str], _: object, most: int) -> dict[str, list[ChunkId]]:
        """Each of them in a chunk of its own, the first in two; none has the word itself."""
        assert most in {1, READ}
        return {} if most == 1 else {word: [ChunkId(n)] * (1 + (n == 0)) for n, word in enumerate(words)}

    def texts(ids: Sequence[ChunkId]) -> dict[ChunkId, StoredChunk]:
        read.extend(ids)
        return {}

    reader = SimpleNamespace(keywords=SimpleNamespace(holders=holders), texts=texts)
    assert spelt(asked, cast("Any", reader), KINDS) is asked
    assert 0 in read
    words = min(len(asked.misspellable), MOST_MISSPELT)
    assert len(read) == words * SPELLINGS == words * 16
