"""Searches by words alone, while there are no vectors yet: the words of a time do not count against what is of that time."""

from datetime import date, datetime
from pathlib import Path

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import FoundHit
from memd.providers.provider import space_of
from memd.search.query import parse
from memd.search.searcher import Searcher
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.time_spans import whole_days
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning
from tests.store.conftest import chunk_of, found_file

NOW = datetime(2026, 3, 12, 9)  # noqa: DTZ001 - local wall-clock time
OF_TIME, BEFORE, OTHER = "memory/of-time.md", "memory/before.md", "memory/other.md"


async def asked(file: Path, question: str) -> tuple[FoundHit, ...]:
    """The hits of a question, of three notes of different days among others without a date."""
    index = Index(file)
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(Leaning().identity), 2))
    notes = {
        OF_TIME: ("billing, 账单 changed", 6),
        BEFORE: ("billing, 账单 again", 1),
        OTHER: ("a walk in the park", 6),
    }
    for path, (text, day) in notes.items():
        when = whole_days(date(2026, 3, day), date(2026, 3, day))
        one = msgspec.structs.replace(chunk_of(text), when=when)
        await index.replace(found_file(path), b"1", [one], {}, frozenset())
    for letter in "abcdefghijkl":
        one = chunk_of(f"boxes in cellar {letter}{letter}")
        await index.replace(found_file(f"memory/{letter}.md"), b"1", [one], {}, frozenset())
    searcher = Searcher(index, AgentSettings(workspace=Path("/nowhere")), OneSpeaker(Leaning()))
    try:
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.35, now=NOW)
    finally:
        await index.close()
    return found.hits


@pytest.mark.parametrize(
    "question",
    [
        "3月5日到8日 billing",
        "3月5日到8日的账单",
        "March 5 to 8 billing",
        "billing between March 5 and March 8",
        "billing from 2026-03-05 to 2026-03-08",
        "billing last Friday",
        "上周五的账单",
    ],
)
async def test_a_time_in_the_question_hides_no_note_of_that_time(tmp_path: Path, question: str) -> None:
    """It is found with a score that is worth reading, in front of what is of another time."""
    found = await asked(tmp_path / "main.sqlite", question)
    assert found
    assert found[0].path == OF_TIME
    assert not found[0].weak
    assert OTHER not in {
        hit.path for hit in found
    }  # no word of the question, and a question of more than the time


async def test_a_note_of_another_time_lacks_the_words_of_the_time(tmp_path: Path) -> None:
    """It is no answer to a question of that time."""
    scores = {hit.path: hit.score for hit in await asked(tmp_path / "main.sqlite", "March 5 to 8 billing")}
    assert scores.keys() == {OF_TIME}


@pytest.mark.parametrize(
    ("question", "beside"),
    [
        ("3月5日到8日 billing", ["billing"]),
        ("March 5 to 8 billing", ["billing"]),
        ('"key vault" of March 5, nv-5582', ["key vault", "nv 5582", "key", "vault", "nv", "5582"]),
        ("billing in march", ["billing"]),
        ("billing of ann", []),  # no time
        ("3月5日到8日", []),  # nothing but a time
    ],
)
def test_terms_beside_the_times(question: str, beside: list[str]) -> None:
    """Names and quotations, too; those of the time itself are left out."""
    parsed = parse(question, NOW)
    assert [parsed.terms[n] for n in parsed.beside_times] == beside
