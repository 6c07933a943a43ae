from collections.abc import Mapping
from pathlib import Path
from zlib import crc32

import numpy as np
import pytest
from structlog.testing import capture_logs

from memd.config.settings import AgentSettings, Hybrid, QuerySettings
from memd.search.query_expansion import AskedWord, Expansion, asked_words, expansion
from memd.search.searcher import Searcher
from memd.text.thesaurus import thesaurus
from tests.bounds import shipped
from tests.embedding.supplies import OneSpeaker
from tests.search.leaning import KINDS, Leaning, filled
from tests.text.meanings import meanings


def words(question: str) -> list[str]:
    return [one.asked for one in asked_words(question)]


def others(question: str) -> dict[str, tuple[str, ...]]:
    return {one.asked: one.others for one in asked_words(question)}


@pytest.mark.parametrize(
    ("question", "expected"),
    [
        ("who fixes the heating?", ["fixes", "heating"]),
        ("Did we move house before Ann's birthday?", ["move house", "before", "ann", "birthday"]),
        ("move, house", ["move", "house"]),
        ("房东什么时候来修水槽", ["房东", "来", "修", "水槽"]),
        ("學生買套餐", ["学生", "买", "套餐"]),
        ("学生会议几点开始", ["学生", "会议", "开始"]),
        ("谁有权限发布", ["权限", "发布"]),
        ("过渡期间", ["过渡", "期间"]),
        ("写作业的手机", ["写", "作业", "手机"]),
        ("the 房东 phone number", ["房东", "phone number"]),
        ("玛蒂尔达的电话", ["玛蒂尔达的", "电话"]),
        ("什么事情", []),
        ("没有钱", ["钱"]),
        ("driver's license, part-time", ["driver s license", "part time"]),
        ("what is it?", []),
        ("why shouldn't they've paid?", ["paid"]),
        ("那边几个人到几点先走", ["人", "走"]),
        ("", []),
    ],
)
def test_a_question_is_read_by_its_longest_known_words(question: str, expected: list[str]) -> None:
    """An expression does not reach over a comma; question words and what stands for anything are no content.

    Chinese is cut so that as few characters as can be are in no word: 学生会 and 有权 are words, too.
    """
    assert words(question) == expected


@pytest.mark.parametrize(
    ("question", "number", "other"),
    [
        ("what costs 168000?", "168000", ("168 000",)),
        ("what costs 168,000?", "168 000", ("168000",)),
        ("车位168，000元", "168 000", ("168000",)),
        ("12,250.50", "12 250", ("12250",)),
        ("about 1,234,567 lines", "1 234 567", ("1234567",)),
        ("the plans for 2026", "2026", ()),
        ("count 1301", "1301", ()),
        ("call 0301234567", "0301234567", ()),
        ("version 1.2.3,400", "400", ()),
    ],
)
def test_a_number_is_asked_for_with_and_without_commas(
    question: str, number: str, other: tuple[str, ...]
) -> None:
    """However it is asked for; no small one, no telephone number, and no part of a version."""
    assert others(question)[number] == other


def test_all_groups_of_a_number_are_needed() -> None:
    """Also the first, of one digit."""
    expanded = expansion("where are the 1000345 bricks?")
    assert expanded is not None
    number = expanded.words.index(AskedWord("1000345", ("1 000 345",)))
    assert [expanded.terms[term] for term in expanded.forms[expanded.first[number] + 1]] == [
        "1",
        "000",
        "345",
    ]


def test_words_have_synonyms_and_translations_in_any_form() -> None:
    assert "landlord" in others("房东是谁")["房东"]
    assert "房东" in others("who are the landlords?")["landlords"]
    assert {"buy", "bought"} <= set(others("在哪里买")["买"])
    assert "购买" in others("where did I buy it?")["buy"]
    assert "修" in others("who fixes it?")["fixes"]


def test_a_form_has_the_alternatives_of_all_words_that_it_may_be_of() -> None:
    """Not itself, nor the word that it is a form of; and a stop word begins no other form of an expression."""
    found = others("where have I left the keys?")["left"]
    assert {"离开", "左边"} <= set(found)
    assert not {"left", "leave"} & set(found)
    assert words("I saw the doctor") == ["saw", "doctor"]
    assert "看" in others("I saw the doctor")["saw"]


def test_a_single_character_is_a_translation_but_no_synonym() -> None:
    """It is part of many words with other meanings."""
    assert "购买" in others("购买了什么")["购买"] or others("购买了什么")["购买"]
    for question in ("修理", "购买", "寻找"):
        assert all(len(one) > 1 for one in others(question)[question])


def test_alternatives_are_of_all_meanings_before_there_are_two_of_one() -> None:
    """So many synonyms at most, and as many translations."""
    most = shipped("memd.search.query_expansion._MAX_OTHERS")
    meanings = thesaurus().meanings("light")
    assert len(meanings) > most
    chosen = [one for one in others("light")["light"] if not one.isascii()]
    assert len(chosen) == most
    assert len({one.chinese for one in meanings if one.chinese[0] in chosen}) >= most - 1


def test_only_the_beginning_of_a_long_question_is_expanded() -> None:
    most, chars = (
        shipped("memd.search.query_expansion._MAX_WORDS"),
        shipped("memd.search.query_expansion._MAX_CHARS"),
    )
    many = [f"w{number}" for number in range(50)]
    assert words(" ".join(many)) == many[:most]
    assert words("x" * (chars - 4) + " tea landlord") == ["x" * (chars - 4), "tea"]
    assert words("房" * 100_000) == ["房" * chars]


def test_the_terms_of_a_question_are_bounded() -> None:
    """The word itself is always among them."""
    most = shipped("memd.search.query_expansion._MOST_TERMS")
    common = sorted(
        {word for meaning in meanings() for word in meaning.english if " " not in word},
        key=lambda word: -len(" ".join(others(word).get(word, ()))),
    )
    found = expansion(" ".join(common[:12]))
    assert found is not None
    assert most - 12 < len(found.terms) <= most + 12
    assert len(found.first) == 12
    assert all(
        found.terms[found.forms[first][0]] == word for first, word in zip(found.first, common, strict=False)
    )


def test_a_long_unknown_run_has_its_first_pairs_as_terms() -> None:
    """It may be in a language that the thesaurus does not have."""
    pairs = shipped("memd.search.query_expansion._MAX_PAIRS")
    unknown = "".join(chr(0xAC00 + 7 * number) for number in range(60))
    found = expansion(f"{unknown} 房东")
    assert found is not None
    assert found.terms[:pairs] == tuple(unknown[at : at + 2] for at in range(pairs))
    assert found.terms[pairs] == "房东"
    assert found.first == (0, pairs)


def test_a_question_without_known_words_is_not_expanded() -> None:
    for question in ("", "xyzzy plugh", "what is it?", "玛蒂尔达", "\0", "🦊", "\ud800", "...", "'", "什么"):
        assert expansion(question) is None, question


def test_any_word_of_the_thesaurus_can_be_asked_for() -> None:
    """Each alternative has terms: a form without any would be held by every text."""
    for meaning in meanings()[::20]:
        for word in (*meaning.chinese, *meaning.english):
            found = expansion(word)
            assert found is None or all(found.forms), word


def test_shares_are_of_words_by_their_rarity() -> None:
    """A form of several terms needs all of them; what only alternatives give is told apart."""
    asked = Expansion(
        (AskedWord("tea", ("茶", "green tea")), AskedWord("kettle", ("水壶",)), AskedWord("ottilie")),
        ("tea", "茶", "green", "kettle", "水壶", "ottilie"),
        ((0,), (1,), (2, 0), (3,), (4,), (5,)),
        (0, 3, 5),
    )
    held = np.array(
        [
            #  tea only, green only, both, 茶 and 水壶, name, nothing
            [1, 0, 1, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 1, 1, 0, 0, 0],
            [0, 0, 0, 0, 0, 0],
            [0, 0, 0, 1, 0, 0],
            [0, 0, 0, 0, 1, 0],
        ],
        np.bool_,
    )
    of_all, of_alternatives = asked.shares(held)
    often = np.array([3, 1, 1])
    weights = np.log1p((6 - often + 0.5) / (often + 0.5))
    tea, kettle, name = (weights / weights.sum()).tolist()
    assert of_all.tolist() == pytest.approx([tea, 0, tea, tea + kettle, name, 0])
    assert of_alternatives.tolist() == pytest.approx([0, 0, 0, tea + kettle, 0, 0])
    of_index = asked.shares_in_index([10 + np.flatnonzero(some) for some in held], 6)
    assert of_index.ids.tolist() == [10, 12, 13, 14]
    of_all_there, of_alternatives_there = of_index.of(np.arange(10, 16))
    assert of_all_there.tolist() == pytest.approx(of_all.tolist())
    assert of_alternatives_there.tolist() == pytest.approx(of_alternatives.tolist())


def test_an_expression_that_only_has_the_hash_of_another_is_read_word_by_word() -> None:
    hashes = set(thesaurus().hashes.tolist())
    twin = next(text for n in range(10**7) if crc32((text := f"house q{n}").encode()) in hashes)
    assert thesaurus().known([twin]) == {twin}
    assert words(twin) == twin.split()
    assert others(twin)["house"]


@pytest.mark.parametrize(
    ("question", "answer"),
    [("landlord phone", "房东的电话 400"), ("房东的电话", "the landlord has a phone 400")],
)
async def test_a_text_in_the_other_language_is_found_by_its_words(
    tmp_path: Path, question: str, answer: str
) -> None:
    """Before texts that are as close in meaning, and explained."""
    texts = [
        answer,
        *(
            f"纸箱在地下室 {400 + n}" if answer[0] == "房" else f"boxes in a cellar {400 + n}"
            for n in range(8)
        ),
    ]
    index, searcher = await filled(tmp_path / "main.sqlite", texts)
    found = await searcher.search(question, kinds=KINDS, max_results=9, min_score=0.0)
    assert answer in found.hits[0].snippet
    assert found.hits[0].score > found.hits[1].score
    trace = (await searcher.explain(question, kinds=KINDS, max_results=9, min_score=0.0))[1]
    assert trace.alternatives
    assert trace.candidates[0].expanded == pytest.approx(1.0)
    assert trace.candidates[0].alternatives == pytest.approx(1.0)
    assert not any(one.expanded for one in trace.candidates[1:])
    await index.close()


async def test_without_its_file_a_search_goes_on_without_synonyms(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As where no file can be opened just now; the answer says so, and the log once. The next search has them."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["房东的电话 400", "纸箱 401"])

    async def alternatives() -> Mapping[str, tuple[str, ...]]:
        found, trace = await searcher.explain("landlord phone", kinds=KINDS, max_results=5, min_score=0.0)
        assert len(found.hits) == 2
        parts.append([one.part for one in found.degraded])
        return trace.alternatives

    parts: list[list[str]] = []
    (tmp_path / "empty.txt").touch()
    (tmp_path / "cut.txt").write_text("房东|landlord\n电")

    thesaurus.cache_clear()
    with monkeypatch.context() as patched, capture_logs() as logged:
        for name in ("missing.txt", "missing.txt", "empty.txt", "cut.txt"):
            patched.setattr("memd.text.thesaurus.FILE", tmp_path / name)
            assert not await alternatives()
    assert await alternatives()
    assert parts == [["synonyms"]] * 4 + [[]]
    told = [one["reason"] for one in logged if one["event"] == "search.no_synonyms"]
    assert [
        name for reason in told for name in ("missing.txt", "empty.txt", "cut.txt") if name in reason
    ] == [
        "missing.txt",
        "empty.txt",
        "cut.txt",
    ]
    await index.close()


async def test_synonyms_take_no_part_where_words_do_not(tmp_path: Path) -> None:
    """In a search by meaning alone, and where the settings turn words off."""
    index, searcher = await filled(tmp_path / "main.sqlite", ["房东的电话 400", "纸箱 401"])
    proposed = await searcher.propose("landlord phone", kinds=KINDS, min_score=0.0, mode="vector")
    assert proposed.ranked.results.expanded is None
    assert not proposed.ranked.results.fused.candidates.expanded.any()
    off = AgentSettings(workspace=Path("/nowhere"), query=QuerySettings(hybrid=Hybrid(enabled=False)))
    alone = Searcher(index, off, OneSpeaker(Leaning()))
    assert not (await alone.explain("landlord", kinds=KINDS, max_results=5, min_score=0.0))[1].alternatives
    await index.close()
