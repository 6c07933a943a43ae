"""Several memories in one order."""

from pathlib import Path

import pytest

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, FoundHit, Kind
from memd.search.find_candidates import MAX_RESULTS
from memd.search.make_hits import Proposal
from memd.search.searcher import PROPOSED, Searcher
from memd.store.index import Index
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning, Reversing, filled

NAME = "team:alice/main"


class Two:
    """An own memory, and one that is included."""

    def __init__(self, own: tuple[Index, Searcher], other: tuple[Index, Searcher]) -> None:
        self.own_index, self.own = own
        self.other_index, self.other = other

    async def _both(self, text: str, **wanted: object) -> tuple[Proposal, Proposal]:
        asked = {"kinds": KINDS, "min_score": 0.0} | wanted
        return await self.own.propose(text, **asked), await self.other.propose(text, **asked)  # type: ignore[arg-type]

    async def hits(self, text: str, most: int = 10, **wanted: object) -> tuple[FoundHit, ...]:
        own, other = await self._both(text, **wanted)
        return (await self.own.search_together(own, {NAME: other}, most)).hits

    async def close(self) -> None:
        await self.own_index.close()
        await self.other_index.close()


async def two(tmp_path: Path, own: list[str], other: list[str]) -> Two:
    return Two(await filled(tmp_path / "own.sqlite", own), await filled(tmp_path / "other.sqlite", other))


async def test_hits_are_in_one_order_with_the_scores_that_they_have_alone(tmp_path: Path) -> None:
    """Though chunks of both have the same ids and paths; and more only append."""
    both = await two(
        tmp_path, ["kettle one 400", "ledger 900", "kettle two 440"], ["kettle three 420", "kettle four 600"]
    )
    found = await both.hits("kettle 390")
    assert [hit.score for hit in found] == sorted((hit.score for hit in found), reverse=True)
    assert [(hit.path, hit.memory) for hit in found if hit.snippet.startswith("kettle three")] == [
        (f"{NAME}/memory/000.md", NAME)
    ]
    for searcher, memory in ((both.own, None), (both.other, NAME)):
        alone = await searcher.search("kettle 390", kinds=KINDS, max_results=10, min_score=0.0)
        assert {hit.snippet: hit.score for hit in alone.hits} == {
            hit.snippet: hit.score for hit in found if hit.memory == memory
        }
    for count in range(1, 5):
        assert await both.hits("kettle 390", count) == found[:count]
    assert await both.hits("kettle 390", min_score=found[1].score) == found[:2]
    await both.close()


async def test_what_both_have_takes_one_place(tmp_path: Path) -> None:
    """The other is named as a copy."""
    said = "The kettle in the kitchen must be descaled each month by whoever uses it 400"
    both = await two(tmp_path, [said], [said, "ledger 900"])
    first, *others = await both.hits("who must descale the kettle in the kitchen 390")
    assert {first.path, *(copy.partition("#")[0] for copy in first.copies)} == {
        "memory/000.md",
        f"{NAME}/memory/000.md",
    }
    assert [hit.snippet for hit in others] == ["ledger 900"]
    await both.close()


async def test_a_name_that_one_memory_holds_is_not_missing(tmp_path: Path) -> None:
    """What is found as a whole decides whether hits are weak; they are where neither has the name."""
    both = await two(
        tmp_path,
        [f"the kettle of Barnaby is broken 63{number}" for number in range(4)],
        [f"the kettle of Ottilie is broken 63{number}" for number in range(4)],
    )
    asked = "when did the kettle of Ottilie break 100"
    alone = await both.own.search(asked, kinds=KINDS, max_results=6, min_score=0.0)
    assert all(hit.weak for hit in alone.hits)
    assert not any(hit.weak for hit in await both.hits(asked))
    nobody = await both.hits("when did the kettle of Zebedee break 100")
    assert nobody
    assert all(hit.weak for hit in nobody)
    await both.close()


async def test_the_newest_first_goes_across_memories(tmp_path: Path) -> None:
    """And where one has nothing that answers, its newest are no hits."""
    both = await two(tmp_path, ["kettle 400", "kettle on 2400"], ["umbrella 5000"])
    found = await both.hits("kettle 390", by_time=True, min_score=0.35)
    assert {hit.snippet for hit in found} == {"kettle 400"}
    nothing = await both.hits("marmot 9400", by_time=True, min_score=0.35)
    assert {hit.memory for hit in nothing} == {None, NAME}
    await both.close()


async def test_a_reranker_orders_the_candidates_of_both(tmp_path: Path) -> None:
    """Once, together; one that fails is named."""
    both = await two(tmp_path, ["kettle 400", "kettle on the shelf 440"], ["kettle on 420"])
    plain = [hit.snippet for hit in await both.hits("kettle 390")]
    reranker = Reversing()
    both.own = Searcher(
        both.own_index, AgentSettings(workspace=Path("/nowhere")), OneSpeaker(Leaning()), reranker
    )
    assert [hit.snippet for hit in await both.hits("kettle 390")] == [
        "kettle on the shelf 440",
        "kettle on 420",
        "kettle 400",
    ]
    assert [len(texts) for _, texts in reranker.asked] == [3]
    reranker.trouble = DegradedPart("rerank", "no answer within 150 ms")
    own = await both.own.propose("kettle 390", kinds=KINDS, min_score=0.0)
    other = await both.other.propose("kettle 390", kinds=KINDS, min_score=0.0)
    found = await both.own.search_together(own, {NAME: other}, 10)
    assert found.degraded == (reranker.trouble,)
    assert [hit.snippet for hit in found.hits] == plain
    assert plain[-1] == "kettle on the shelf 440"
    await both.close()


@pytest.mark.parametrize("kinds", [KINDS, frozenset({Kind.NOTE})])
async def test_an_explanation_tells_of_the_candidates_of_both(tmp_path: Path, kinds: frozenset[Kind]) -> None:
    """Each with a place of its own, and with what each side gave it."""
    both = await two(tmp_path, ["kettle one 400", "ledger 900"], ["kettle three 420", "kettle four 600"])
    own = await both.own.propose("kettle 390", kinds=kinds, min_score=0.0, is_explained=True)
    other = await both.other.propose("kettle 390", kinds=kinds, min_score=0.0, is_explained=True)
    found, trace = await both.own.explain_together(own, {NAME: other}, 10)
    assert [hit.path for hit in found.hits] == [one.path for one in trace.candidates if one.cut is None]
    assert sorted(one.place for one in trace.candidates) == [1, 2, 3, 4]
    assert trace.considered == 4
    assert (trace.by_words, trace.by_meaning) == (3, 4)
    of_words = {one.path: one.keyword_rank for one in trace.candidates}
    assert of_words["memory/001.md"] is None
    assert {of_words[f"{NAME}/memory/00{n}.md"] for n in (0, 1)} | {of_words["memory/000.md"]} == {1, 2, 3}
    await both.close()


async def test_what_one_memory_is_sure_of_is_not_weak_for_the_other(tmp_path: Path) -> None:
    """The strongest candidate of all decides."""
    both = await two(tmp_path, ["umbrella 5000", "ledger 4000"], ["the kettle of Ottilie is broken 100"])
    asked = "when did the kettle break 100"
    alone = await both.own.search(asked, kinds=KINDS, max_results=6, min_score=0.0)
    assert all(hit.weak for hit in alone.hits)
    found = await both.hits(asked)
    assert found[0].memory == NAME
    assert not any(hit.weak for hit in found)
    await both.close()


async def test_so_many_candidates_of_a_memory_are_ranked_with_those_of_others(tmp_path: Path) -> None:
    """The best of them; as many as hits could ever be shown of it."""
    both = await two(tmp_path, [f"kettle {400 + number}" for number in range(PROPOSED + 1)], ["ledger 900"])
    proposal = await both.own.propose("kettle 390", kinds=KINDS, min_score=0.0)
    [lane] = [list(lane) for lane in proposal.ranked.lanes]
    assert len(lane) == PROPOSED == 2 * MAX_RESULTS
    await both.close()
