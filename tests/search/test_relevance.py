"""What finds what, by kind of question: floors that only rise."""

from collections.abc import AsyncIterator, Iterator, Mapping, Sequence
from pathlib import Path

import numpy as np
import pytest

from memd.chunk.markdown import chunk
from memd.config.settings import AgentSettings, Chunking
from memd.domain_types import Document, FoundHit, Kind
from memd.providers.local import bundled_model
from memd.providers.local.provider import CALIBRATION, LIMITS
from memd.providers.provider import Calibration, Identity, Provider, ProviderLimits, Vector, Vectors, space_of
from memd.search.searcher import Searcher
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.embedding.supplies import OneSpeaker
from tests.fakes import HashingProvider
from tests.search import clinic
from tests.search.library import NOTES, OF_STATES, QUESTIONS, STATES, Asked
from tests.store.conftest import found_file

# (share of questions with the answer among six hits, mean of 1/rank of it)
BUNDLED = {
    "across": (0.91, 0.91),
    "other words": (0.87, 0.79),
    "identifier": (1.0, 1.0),
    "scripts": (1.0, 1.0),
}
HIGH = 0.7  # what is there by name scores more
INJECTED = 0.45  # what hooks put into a conversation unasked scores at least as much

HASHING = {"identifier": (1.0, 1.0)}

# The share of questions with the answer in front of what was so at another time, and the mean of 1/rank of the answer.
STATES_IN_ORDER = {"now": (0.50, 0.61), "unsaid": (0.66, 0.75), "then": (0.5, 0.75)}


class Bundled:
    """The bundled model in this process: the same vectors as by its worker."""

    identity = Identity("local", bundled_model.MODEL, "in this process", bundled_model.DIMENSIONS)
    calibration: Calibration = CALIBRATION
    limits: ProviderLimits = LIMITS

    def __init__(self) -> None:
        self._model = bundled_model.load()
        self._of_questions: dict[str, Vector] = {}  # some are asked three times

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return np.stack([self._model.passage(text) for text in texts])

    async def embed_query(self, text: str) -> Vector:
        if text not in self._of_questions:
            self._of_questions[text] = self._model.query(text)
        return self._of_questions[text]

    async def close(self) -> None:
        pass


async def searched(file: Path, provider: Provider, notes: Mapping[str, str]) -> tuple[Index, Searcher]:
    """Notes with all their vectors."""
    index = Index(file)
    await index.open()
    identity = provider.identity
    await index.adopt(
        Fingerprint("c", "t", ("memory",), *space_of(identity), identity.dimensions, parts=True)
    )
    for path, text in notes.items():
        document = Document(path, Kind.NOTE, tuple(text.split("\n")))
        chunking = Chunking()
        chunks = chunk(document, chunking.tokens, chunking.overlap)
        await index.replace(found_file(path), b"1", chunks, {}, frozenset())
    waiting = await index.waiting(1000)
    vectors = await provider.embed_passages([one.text for one in waiting])
    await index.add_vectors(
        [(one.id, one.hash, vector.tobytes()) for one, vector in zip(waiting, vectors, strict=True)]
    )
    assert (await index.counts()).waiting == 0
    settings = AgentSettings(workspace=Path("/nowhere"))
    return index, Searcher(index, settings, OneSpeaker(provider))


@pytest.fixture(scope="module")
def bundled() -> Iterator[Bundled]:
    """One for all tests of this module."""
    with pytest.MonkeyPatch.context() as patch:
        for name, value in (("OMP_NUM_THREADS", "1"), ("OMP_WAIT_POLICY", "PASSIVE")):
            patch.setenv(name, value)  # as a daemon has it: threads that spin fight with other tests
        yield Bundled()


@pytest.fixture(params=["bundled", pytest.param("hashing", marks=pytest.mark.long)])
async def library(
    request: pytest.FixtureRequest, tmp_path: Path, bundled: Bundled
) -> AsyncIterator[tuple[str, Searcher]]:
    provider: Provider = bundled if request.param == "bundled" else HashingProvider()
    index, searcher = await searched(tmp_path / "a.sqlite", provider, NOTES)
    yield request.param, searcher
    await index.close()


async def hits_of(searcher: Searcher, asked: Asked, min_score: float = 0.35) -> tuple[FoundHit, ...]:
    found = await searcher.search(asked.text, kinds=frozenset(Kind), max_results=6, min_score=min_score)
    return found.hits


# One test, since a model that embeds all of it takes some seconds, and a minute beside busy programs.
@pytest.mark.timeout(300)
async def test_what_is_asked_for_is_found_and_what_is_not_has_no_hit(library: tuple[str, Searcher]) -> None:
    """By kind of question at least as well as ever; scores fall, and are what min_score is compared with."""
    name, searcher = library
    ranks: dict[str, list[float]] = {}
    for number, asked in enumerate(QUESTIONS):
        every = await hits_of(searcher, asked, min_score=0.0)
        scores = [hit.score for hit in every]
        assert scores == sorted(scores, reverse=True)
        assert all(0 <= score <= 1 for score in scores)
        least = scores[number % len(scores)]
        kept = await hits_of(searcher, asked, min_score=least)
        assert [hit.score for hit in kept] == [score for score in scores if score >= least]
        if asked.kind == "identifier":
            assert scores[0] > HIGH, (asked, scores)
        readable = await hits_of(searcher, asked)
        if asked.kind == "nothing":
            assert scores[0] < INJECTED, (asked, scores)
        places = [n for n, hit in enumerate(readable, 1) if asked.answer and asked.answer in hit.snippet]
        ranks.setdefault(asked.kind, []).append(1 / places[0] if places else 0.0)
    reached = {
        kind: (float(np.mean([rank > 0 for rank in some])), float(np.mean(some)))
        for kind, some in ranks.items()
    }
    for kind, (seen, mrr) in (BUNDLED if name == "bundled" else HASHING).items():
        assert reached[kind][0] >= seen, reached
        assert reached[kind][1] >= mrr, reached


# Among the questions of the clinic: the share of the hits with the answer that may be called weak, and of the questions of
# each kind that nothing answers the share that has no hit, or weak ones alone.
WEAK_ANSWERS = 0.042  # 3 of 73: answers in the other language, which without a thesaurus are not found
CAUGHT = {"unknown": 0.6, "far": 0.8, "unsaid": 0.14}


@pytest.mark.long
@pytest.mark.timeout(300)
async def test_what_nothing_answers_has_weak_hits_or_none(tmp_path: Path, bundled: Bundled) -> None:
    """And hits that answer are not called weak. By kind of question at least as well as ever."""
    index, searcher = await searched(tmp_path / "a.sqlite", bundled, clinic.NOTES)
    answers: list[bool] = []
    caught: dict[str, list[bool]] = {}
    for asked in clinic.QUESTIONS:
        hits = await hits_of(searcher, asked)
        answers += [hit.weak for hit in hits if asked.answer and asked.answer in hit.snippet]
        if not asked.answer:
            caught.setdefault(asked.kind, []).append(all(hit.weak for hit in hits))
    await index.close()
    assert len(answers) > len(clinic.QUESTIONS) // 3
    assert float(np.mean(answers)) <= WEAK_ANSWERS
    reached = {kind: float(np.mean(some)) for kind, some in caught.items()}
    assert all(reached[kind] >= least for kind, least in CAUGHT.items()), reached


@pytest.mark.timeout(300)
async def test_what_is_so_now_stands_before_what_it_replaced(tmp_path: Path, bundled: Bundled) -> None:
    """Where a question asks for what was, that stays in front."""
    index, searcher = await searched(tmp_path / "a.sqlite", bundled, STATES)
    figures: dict[str, list[tuple[float, float]]] = {}
    for asked in OF_STATES:
        shown = [hit.snippet for hit in await hits_of(searcher, Asked(asked.kind, asked.text))]
        right = next((n for n, text in enumerate(shown, 1) if asked.right in text), 0)
        wrong = next((n for n, text in enumerate(shown, 1) if asked.wrong in text), len(shown) + 1)
        figures.setdefault(asked.kind, []).append((float(0 < right < wrong), 1 / right if right else 0.0))
    await index.close()
    reached = {kind: tuple(map(float, np.mean(some, axis=0))) for kind, some in figures.items()}
    for kind, least in STATES_IN_ORDER.items():
        assert all(one >= floor - 0.001 for one, floor in zip(reached[kind], least, strict=True)), reached
