"""Searches of a part of an index: what a filter does not let through takes no place, and changes no score."""

from datetime import datetime
from pathlib import Path
from random import Random

import msgspec
import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import NO_FILTER, Kind, Label, LabelKind, SearchFilter
from memd.providers.provider import space_of
from memd.search.find_candidates import CANDIDATES
from memd.search.searcher import Searcher
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.time_phrases import read_time
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning
from tests.store.conftest import chunk_of, found_file, ranked
from tests.wait import until_async

NOW = datetime(2026, 2, 11)  # noqa: DTZ001 - as clocks on the wall show it
MANY = CANDIDATES + 50
FAR = 1 << 62


def within(phrase: str) -> SearchFilter:
    """What is of a time; files that only the disk dates are not."""
    first, last = read_time(phrase, NOW).as_seconds
    return SearchFilter(since_s=first, until_s=last, since_ns=FAR, until_ns=FAR)


async def note(
    index: Index, path: str, text: str, *, day: str | None = None, tag: str = "", mtime_ns: int = 1
) -> None:
    """A note of one chunk, with its vector."""
    one = msgspec.structs.replace(chunk_of(text), when=None if day is None else read_time(day, NOW))
    vector = Leaning().embed([text])[0].tobytes()
    of = (Label(LabelKind.TAG, tag, tag),) if tag else ()
    change = FileChange(found_file(path, mtime_ns=mtime_ns), path.encode(), [one], labels=of)
    await index.replace_all([change], {one.hash: vector}, frozenset())


async def opened(file: Path, *, resident: bool = True) -> tuple[Index, Searcher]:
    index = Index(file, resident=resident)
    await index.open()
    await index.adopt(Fingerprint("c1", "t1", ("memory",), *space_of(Leaning().identity), 2))
    settings = AgentSettings(workspace=Path("/nowhere"))
    return index, Searcher(index, settings, OneSpeaker(Leaning()))


@pytest.mark.parametrize("resident", [True, False])
@pytest.mark.parametrize("question", ["kettle", "zzz"])
async def test_what_is_filtered_out_takes_no_place_of_others(
    tmp_path: Path, question: str, *, resident: bool
) -> None:
    """However many better ones there are: found by words, by meaning, in memory and on disk."""
    index, searcher = await opened(tmp_path / "main.sqlite", resident=resident)
    for number in range(MANY):
        await note(index, f"memory/{number:03}.md", f"kettle kettle {number}", day="2026-01-01")
    await note(index, "memory/right.md", "a kettle 400", day="2026-02-09", tag="x")
    if not resident:
        await index.vectors.shelve()
    for wanted in (SearchFilter(tags=("x",)), SearchFilter(paths=("right.md",)), within("this week")):
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.0, wanted=wanted)
        assert [hit.path for hit in found.hits] == ["memory/right.md"]
        again, trace = await searcher.explain(
            question, kinds=KINDS, max_results=6, min_score=0.0, wanted=wanted
        )
        assert again.hits == found.hits
        assert [one.path for one in trace.candidates] == ["memory/right.md"]
    nothing = await searcher.search(
        question, kinds=KINDS, max_results=6, min_score=0.0, wanted=within("2020")
    )
    assert nothing.hits == ()
    hidden = await searcher.search(
        question, kinds=frozenset({Kind.CURATED}), max_results=6, min_score=0.0, wanted=within("this week")
    )
    assert hidden.hits == ()
    await index.close()


async def test_a_filter_changes_no_score(tmp_path: Path) -> None:
    """What is let through has the score that it has among all."""
    index, searcher = await opened(tmp_path / "main.sqlite")
    for number in range(30):
        await note(
            index,
            f"memory/{number:03}.md",
            f"kettle ledger {20 * number}",
            tag="odd" if number % 2 else "even",
        )
    whole = await searcher.search("kettle", kinds=KINDS, max_results=50, min_score=0.0, wanted=NO_FILTER)
    some = await searcher.search(
        "kettle", kinds=KINDS, max_results=50, min_score=0.0, wanted=SearchFilter(tags=("odd",))
    )
    assert len(some.hits) == 15
    assert some.hits == tuple(hit for hit in whole.hits if int(hit.path[7:10]) % 2)
    await index.close()


@pytest.mark.parametrize("resident", [True, False])
async def test_what_is_of_the_time_that_a_question_names_is_preferred(
    tmp_path: Path, *, resident: bool
) -> None:
    """However many are like it: it is first, and hides nothing; what does not answer stays behind what does."""
    index, searcher = await opened(tmp_path / "main.sqlite", resident=resident)
    for number in range(MANY):
        await note(index, f"memory/{number:03}.md", f"kettle kettle {number}", day="2026-01-01")
    await note(index, "memory/right.md", "a kettle 30", day="2026-02-05")
    await note(index, "memory/else.md", "nothing 900", day="2026-02-05")
    await note(index, "memory/undated.md", "a kettle 31", mtime_ns=int(NOW.timestamp()) * 10**9)
    if not resident:
        await index.vectors.shelve()
    for question in ("kettle last week", "上周的 kettle", "kettle last thursday"):
        plain = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.0)
        assert "memory/right.md" not in [hit.path for hit in plain.hits]
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.0, now=NOW)
        assert found.hits[0].path == "memory/right.md"
        assert len(found.hits) == 6
        assert not {"memory/else.md", "memory/undated.md"} & {hit.path for hit in found.hits}
        assert found.hits[0].score > max(hit.score for hit in plain.hits)
    late = SearchFilter(tags=("x",))
    assert (
        await searcher.search(
            "kettle last week", kinds=KINDS, max_results=6, min_score=0.0, now=NOW, wanted=late
        )
    ).hits == ()
    await index.close()


async def test_who_asks_for_a_time_alone_gets_what_is_of_it(tmp_path: Path) -> None:
    """First, however far it is from the words of the question, and not weak; a word more, and it must answer that."""
    index, searcher = await opened(tmp_path / "main.sqlite")
    await note(index, "memory/other.md", "umbrella 1500", day="2026-02-09")
    # Nearly all words of the question, and close to it.
    await note(index, "memory/like.md", "What did we do? 做了什么 kettle 40", day="2026-02-08")
    await note(index, "memory/far.md", "ledger 4000", day="2026-02-10")
    await note(index, "memory/near.md", "kettle 3000", day="2026-02-10")

    async def asked(question: str, now: datetime | None = NOW) -> list[str]:
        found = await searcher.search(question, kinds=KINDS, max_results=6, min_score=0.35, now=now)
        scores = [hit.score for hit in found.hits]
        assert scores == sorted(scores, reverse=True)
        assert not any(hit.weak for hit in found.hits)
        return [hit.path for hit in found.hits]

    for question in ("What did we do yesterday?", "昨天做了什么"):
        *of_yesterday, other = await asked(question)
        assert set(of_yesterday) == {"memory/near.md", "memory/far.md"}
        assert other == "memory/like.md"
    # Whoever may not see the others finds the same, with the same scores.
    some = await searcher.search(
        "昨天做了什么", kinds=KINDS, max_results=6, min_score=0.35, now=NOW, wanted=within("yesterday")
    )
    whole = await searcher.search("昨天做了什么", kinds=KINDS, max_results=2, min_score=0.35, now=NOW)
    assert some.hits == whole.hits
    assert await asked("What did we do yesterday?", None) == ["memory/like.md"]
    assert await asked("What did Ann do yesterday?") == ["memory/like.md"]
    await index.close()


async def test_the_newest_hit_is_first(tmp_path: Path) -> None:
    """Of those that have the least score; a file that says no date is of when it was written. More only appends."""
    index, searcher = await opened(tmp_path / "main.sqlite")
    for day in (3, 1, 2):
        await note(index, f"memory/{day}.md", f"kettle {day}", day=f"2026-02-0{day}")
    noon_ns = int(datetime(2026, 2, 4, 12).astimezone().timestamp()) * 1_000_000_000
    await note(index, "memory/undated.md", "kettle 4", mtime_ns=noon_ns)
    await note(index, "memory/else.md", "nothing 1500", day="2026-02-09")
    found = await searcher.search("kettle", kinds=KINDS, max_results=6, min_score=0.35, by_time=True)
    expected = ["memory/undated.md", "memory/3.md", "memory/2.md", "memory/1.md"]
    assert [hit.path for hit in found.hits] == expected
    for count in (1, 2, 3):
        fewer = await searcher.search("kettle", kinds=KINDS, max_results=count, min_score=0.35, by_time=True)
        assert fewer.hits == found.hits[:count]
    await index.close()


async def test_where_nothing_is_worth_it_the_newest_of_all_are_shown(tmp_path: Path) -> None:
    """The question "what happened lately" says no more than that; a filter holds."""
    index, searcher = await opened(tmp_path / "main.sqlite")
    for day in range(1, 9):
        await note(
            index,
            f"memory/{day}.md",
            f"kettle {1500 + day}",
            day=f"2026-02-0{day}",
            tag="x" if day < 4 else "",
        )
    found = await searcher.search("walrus", kinds=KINDS, max_results=3, min_score=0.9, by_time=True)
    assert [hit.path for hit in found.hits] == ["memory/8.md", "memory/7.md", "memory/6.md"]
    tagged = await searcher.search(
        "walrus", kinds=KINDS, max_results=2, min_score=0.9, by_time=True, wanted=SearchFilter(tags=("x",))
    )
    assert [hit.path for hit in tagged.hits] == ["memory/3.md", "memory/2.md"]
    _, trace = await searcher.explain("walrus", kinds=KINDS, max_results=3, min_score=0.9, by_time=True)
    # Places of no side: each has one of its own, behind those of candidates.
    places = [one.place for one in trace.candidates]
    assert len(set(places)) == len(places) == 8
    assert set(places) == set(range(1, 9))
    await index.close()


@pytest.mark.long
async def test_a_search_answers_the_same_with_postings_in_memory(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What it has to know of candidates comes from there, or from the file: hits, scores and explanations are the same."""
    monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
    index, searcher = await opened(tmp_path / "main.sqlite")
    rng = Random(3)
    days = [None, *(f"2026-02-0{day}" for day in range(1, 9))]
    for number in range(MANY):
        text = f"{rng.choice(('kettle', 'kettle kettle', 'ledger', 'the same'))} {rng.choice((1, 40, 900))}"
        await note(index, f"memory/{number:03}.md", text, day=rng.choice(days), tag=rng.choice(("", "x")))

    async def answers() -> list[object]:
        return [
            await searcher.explain(
                question,
                kinds=kinds,
                max_results=20,
                min_score=least,
                now=NOW,
                wanted=wanted,
                by_time=by_time,
            )
            for question in ("kettle", "kettle last week", "ledger yesterday", "zzz")
            for kinds in (KINDS, frozenset({Kind.CURATED}))
            for least in (0.0, 0.35)
            for wanted in (NO_FILTER, SearchFilter(tags=("x",)), within("this week"))
            for by_time in (False, True)
        ]

    await index.vectors.shelve()  # without memory for vectors there are no postings either
    by_file = await answers()
    assert not index.postings.is_ready
    await index.vectors.unshelve()
    await ranked(index, '"kettle"', 1, KINDS)
    await until_async(lambda: index.postings.is_ready)
    assert await answers() == by_file
    await note(index, "memory/000.md", "the same 1", day="2026-02-05")
    of_memory = await answers()
    await index.vectors.shelve()
    index.postings.forget()
    assert await answers() == of_memory
    await index.close()
