import time
from collections.abc import Sequence
from datetime import datetime
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random

import apsw
import msgspec
import numpy as np
import pytest
from numpy.typing import NDArray

from memd.domain_types import AFTER_ALL_NS, NO_FILTER, ChunkId, Kind, Label, LabelKind, SearchFilter
from memd.store import keywords, labels, search_keywords
from memd.store.errors import StoreDamaged
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.index_reader import IndexReader
from memd.store.keywords import search as search_fts5
from memd.store.postings import BATCH, ChunkFacts, ChunkText, Postings, TermReader, average_length
from memd.store.vector_matrix import DEAD, Ids
from memd.text.time_spans import TimeSpan
from tests.bounds import shipped
from tests.store.conftest import FINGERPRINT, chunk_of, found_file, ranked
from tests.wait import until_async

EVERYTHING = frozenset(Kind)
LIMIT = 20

WORDS = [
    *(
        "the",
        "a",
        "run",
        "running",
        "runs",
        "runner",
        "nation",
        "national",
        "relational",
        "x",
        "ß",
        "naïve",
        "naive",
    ),
    *(
        "2026",
        "03",
        "7",
        "٣",
        "a1",
        "v2",
        "snake_case",
        "ΣΊΣΥΦΟΣ",
        "мир",
        "mиp",
        "ﬁne",
        "e\u0301t",
        "हिन्दी",
        "คำ",
    ),
    *(
        "数据",
        "据数",
        "数据库",
        "的的的",
        "3月",
        "十二月",
        "月月",
        "数，据",
        "数 据",
        "カタ",
        "한글",
        "数据2026年",
        "a数",
        "🙂",
    ),
    *("don't", "memd.search", "a-b", "C++", "\u200b", "_", "\x00", "、", "  "),
]
PHRASES = [
    *(
        "run",
        "nation",
        "absent",
        "x",
        "a",
        "2026",
        "数 据",
        "据 库",
        "的 的",
        "的 的 的",
        "3 月",
        "月",
        "2026 03",
        "a 数",
    ),
    *(
        "memd search",
        "snake case",
        "カ タ",
        "한 글",
        "naive",
        "мир",
        "هیچ 数",
        "7 7 月",
        "🙂",
        "a a",
        "the run",
        "库 数",
        "r",
    ),
]


def written(rng: Random) -> str:
    """A text of words that are alike, in several scripts."""
    return "".join(
        rng.choice(WORDS) + rng.choice(["", " ", " ", "\n"]) for _ in range(rng.choice((0, 3, 30, 90)))
    )


async def both(
    index: Index,
    phrases: Sequence[str],
    kinds: frozenset[Kind] = EVERYTHING,
    wanted: Sequence[SearchFilter] = (NO_FILTER,),
) -> None:
    """FTS5 and postings answer the same, to the last digit."""
    assert index.postings.is_ready
    match = " OR ".join(f'"{phrase}"' for phrase in phrases)
    of_each = [await index.database.read(search_fts5, match, LIMIT, kinds, one) for one in wanted]
    expected = sorted(
        {chunk_id: one for some in of_each for chunk_id, one in some}.items(),
        key=lambda one: (-one[1].r, one[0]),
    )
    found = await ranked(index, match, LIMIT, kinds, wanted)
    assert [(chunk_id, one.held, one.share) for chunk_id, one in found] == [
        (chunk_id, one.held, one.share) for chunk_id, one in expected
    ]
    # Another C library may take another logarithm.
    assert [one.r for _, one in found] == pytest.approx([one.r for _, one in expected], rel=1e-12)


@pytest.fixture
def ready(index: Index, monkeypatch: pytest.MonkeyPatch) -> Index:
    """An index that makes postings of however few chunks."""
    monkeypatch.setattr(search_keywords, "FEWEST", 1)
    return index


async def put(
    index: Index, path: str, texts: Sequence[str], kind: Kind = Kind.NOTE, rng: Random | None = None
) -> None:
    """A file of one chunk for each text; with a source of randomness, of some time and with some tags."""
    chunks = [chunk_of(text, number + 1, context) for number, (text, context) in enumerate(_placed(texts))]
    if kind.is_session:
        chunks = [msgspec.structs.replace(one, turn=number) for number, one in enumerate(chunks)]
    labels: list[Label] = []
    mtime_ns = 1
    if rng is not None:
        chunks = [msgspec.structs.replace(one, when=rng.choice(TIMES)) for one in chunks]
        labels = [Label(LabelKind.TAG, tag, tag) for tag in ("work", "work/mail") if rng.random() < 0.4]
        mtime_ns = rng.randint(1, 9) * 86_400_000_000_000
    change = FileChange(found_file(path, kind=kind, mtime_ns=mtime_ns), b"1", chunks, labels=labels)
    await index.replace_all([change], {}, frozenset())


TIMES = [None, *(TimeSpan(datetime(1970, 1, d, 6), datetime(1970, 1, d + 1)) for d in range(1, 9))]  # noqa: DTZ001 - as clocks on the wall show it


def filtered(rng: Random) -> SearchFilter:
    """A filter by time, by files, by both or by nothing."""
    day, wanted = 86_400, NO_FILTER
    if rng.random() < 0.6:
        since, until = sorted((rng.randint(0, 10), rng.randint(0, 10)))
        wanted = SearchFilter(
            since_s=None if since == 3 else since * day,
            until_s=None if until == 7 else until * day,
            since_ns=None if since == 3 else since * day * 10**9,
            until_ns=None if until == 7 else until * day * 10**9,
        )
        if rng.random() < 0.4 and wanted.has_time:
            wanted = msgspec.structs.replace(
                wanted, since_s=since * day, since_ns=AFTER_ALL_NS, until_ns=AFTER_ALL_NS
            )
    tags = rng.choice(((), (), ("work",), ("work/mail", "work"), ("none",)))
    paths = rng.choice(((), (), ("memory/1*.md", "!memory/13.md")))
    return msgspec.structs.replace(wanted, tags=tags, paths=paths)


def _placed(texts: Sequence[str]) -> list[tuple[str, str]]:
    return [(text, f"Title {number % 3} 2026-03-0{number % 9} 数据") for number, text in enumerate(texts)]


async def made(index: Index) -> None:
    """The postings of an index that holds chunks are there."""
    await ranked(index, '"the"', 1, EVERYTHING)
    await until_async(lambda: index.postings.is_ready)


async def ask_all(index: Index, rng: Random, times: int) -> None:
    for _ in range(times):
        kinds = rng.choice(
            (EVERYTHING, EVERYTHING, frozenset({Kind.NOTE}), frozenset({Kind.SESSION}), frozenset())
        )
        wanted = [filtered(rng) for _ in range(rng.randint(1, 3))]
        await both(index, rng.sample(PHRASES, rng.randint(1, 12)), kinds, wanted)
        found = await index.read(lambda reader: reader.keywords.allowed(wanted, kinds))  # noqa: B023 - it is awaited at once
        for one, ids in zip(wanted, found, strict=True):
            everything = await index.database.read(labels.allowed, NO_FILTER, kinds)
            expected = await index.database.read(labels.allowed, one, kinds)
            assert (np.intersect1d(everything, everything if ids is None else ids) == expected).all()


@pytest.mark.rows(2)
@pytest.mark.parametrize("seed", range(6))
async def test_postings_rank_as_fts5_does(ready: Index, seed: int) -> None:
    """Whatever is written, changed and deleted after they were made."""
    rng = Random(seed)
    kinds = {f"memory/{n}.md": rng.choice(list(Kind)) for n in range(30)}
    for path, kind in kinds.items():
        await put(ready, path, [written(rng) for _ in range(rng.randint(0, 9))], kind, rng)
    await put(ready, "memory/x.md", ["the x"])
    await made(ready)
    await ask_all(ready, rng, 15)
    for _ in range(12):
        path = rng.choice(list(kinds))
        what = rng.random()
        if what < 0.3:
            await ready.remove([path])
        elif what < 0.6:
            await put(
                ready, path, [written(rng) for _ in range(rng.randint(0, 5))], rng.choice(list(Kind)), rng
            )
        else:  # the same text on other days
            await put(ready, "memory/x.md", ["the x", "a run", "数据"], rng=rng)
        await until_async(lambda: ready.postings.is_ready)
        await ask_all(ready, rng, 3)
    more = await ready.tidy_keywords(begin=True)
    while more:
        more = await ready.tidy_keywords(begin=False)
    await ask_all(ready, rng, 3)


@pytest.mark.parametrize("has_postings", [False, True])
@pytest.mark.parametrize("hidden", [Kind.CURATED, Kind.SESSION])
async def test_what_may_not_be_seen_changes_no_score(
    index: Index, monkeypatch: pytest.MonkeyPatch, hidden: Kind, has_postings: bool
) -> None:
    """Nobody learns from a score which words stand in a text that is hidden from them, or how often."""
    monkeypatch.setattr(search_keywords, "FEWEST", 1 if has_postings else 10**9)
    await put(index, "memory/a.md", ["the kettle leaks and boils", "a kettle of copper", "billing of May"])
    match = '"kestrel" OR "billing" OR "kettle"'
    work = SearchFilter(paths=("memory/**",))
    told = []
    for text in ("a heron at home today", "a kestrel billing billing kettle"):
        await put(index, "hidden", [text, text], hidden)
        if has_postings:
            await made(index)
        shown = [await ranked(index, match, 9, {Kind.NOTE}, (one,)) for one in (NO_FILTER, work)]
        told.append([(match.r, match.held, match.share) for some in shown for _, match in some])
    assert index.postings.is_ready == has_postings
    assert told[0] == told[1]
    assert len(told[0]) == 6
    assert len(await ranked(index, match, 9, EVERYTHING)) == 5


@pytest.mark.parametrize(
    ("phrase", "is_term"),
    [
        ("kettle", True), ("数", True), ("数据", True), ("7数", True), ("2026 年", True),
        ("数7", False), ("a数", False), ("the kettle", False), ("数据库", False), ("?", False),
    ],
)  # fmt: skip
async def test_what_is_asked_for_as_a_term_is_one_in_texts(index: Index, phrase: str, is_term: bool) -> None:
    """A word, and two characters or a number and a character; of other phrases FTS5 tells where they stand, more slowly."""

    def told(connection: apsw.Connection) -> tuple[bool, bool]:
        reader = TermReader(connection)
        return reader.keys_of([phrase]) != [None], " ".join(reader.stems(phrase)) in reader.terms([phrase])[0]

    assert await index.database.read(told) == (is_term, is_term)


async def test_chunks_that_hold_the_same_come_in_the_order_of_their_ids(ready: Index) -> None:
    """Of many that score alike the first ones are taken, as FTS5 takes them."""
    await put(ready, "memory/a.md", [f"same {'数据' if n % 7 else ''}" for n in range(400)])
    await made(ready)
    await both(ready, ["same", "数 据"])
    await both(ready, ["same"])


async def test_an_expression_of_other_than_phrases_is_for_fts5(ready: Index) -> None:
    await put(ready, "memory/a.md", ["kettle pot", "pot"])
    await made(ready)
    assert len(await ranked(ready, "pot NOT kettle", LIMIT, EVERYTHING)) == 1


@pytest.mark.parametrize("missing", [0, 1])
async def test_few_chunks_have_no_postings(index: Index, missing: int) -> None:
    """FTS5 is fast enough with them."""
    few = shipped("memd.store.search_keywords.FEWEST")
    await put(index, "memory/a.md", ["kettle"] * (few - missing))
    assert await ranked(index, '"kettle"', LIMIT, EVERYTHING)
    if missing:
        await ranked(index, '"kettle"', LIMIT, EVERYTHING)
        assert not index.postings.is_ready
        assert index.memory.resident_bytes == 0
    else:
        await until_async(lambda: index.postings.is_ready)


async def test_postings_are_begun_for_so_many_chunks(index: Index, monkeypatch: pytest.MonkeyPatch) -> None:
    """With one less nothing is begun; of many it is begun after a pause."""
    begun: list[float] = []
    monkeypatch.setattr(index.postings, "_begin", begun.append)
    few, most = (
        shipped("memd.store.search_keywords.FEWEST"),
        shipped("memd.store.search_keywords.MOST_AT_ONCE"),
    )
    index.postings.was_searched(few - 1)
    assert not begun
    for chunks in (few, most, most + 1):
        index.postings.was_searched(chunks)
    assert begun == [0.0, 0.0, shipped("memd.store.search_keywords.PAUSE_S")]


async def test_what_is_asked_at_once_after_a_start_is_not_slowed_down_by_postings(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They are begun a moment after the first search of many chunks, which FTS5 answers."""
    monkeypatch.setattr("memd.store.search_keywords.MOST_AT_ONCE", 99)
    await put(index, "memory/a.md", [f"kettle {n}" for n in range(100)])
    index.postings.pause_s = 3600.0
    assert len(await ranked(index, '"kettle"', LIMIT, EVERYTHING)) == LIMIT
    assert index.postings.is_being_made
    assert not index.postings.is_ready
    index.postings.forget()
    index.postings.pause_s = 0.3
    began = time.monotonic()
    await ranked(index, '"kettle"', LIMIT, EVERYTHING)
    await index.remove(["memory/a.md"])
    await put(index, "memory/b.md", [f"kettle {n}" for n in range(100)])
    await until_async(lambda: index.postings.is_ready)
    assert time.monotonic() - began > 0.29  # timers of the loop may be a millisecond early
    await both(index, ["kettle", "7"])


async def test_a_word_that_every_chunk_holds_weighs_next_to_nothing(ready: Index) -> None:
    """But not nothing: what holds it is found."""
    await put(ready, "memory/a.md", ["kettle"] * 2)
    await made(ready)
    found = await ranked(ready, '"kettle"', LIMIT, EVERYTHING)
    least = shipped("memd.store.postings._LEAST_IDF")
    assert [one.r for _, one in found] == pytest.approx([least, least])


async def test_what_changes_while_postings_are_made_is_in_them(
    ready: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also what was read already, and deleted before they were done."""
    monkeypatch.setattr("memd.store.postings.BATCH", 3)
    await put(ready, "memory/a.md", [f"kettle {n}" for n in range(10)])
    await put(ready, "memory/b.md", [f"kettle pot {n}" for n in range(10)])
    await ranked(ready, '"kettle"', LIMIT, EVERYTHING)
    assert not ready.postings.is_ready
    await ready.remove(["memory/a.md"])
    await put(ready, "memory/c.md", ["kettle of tea", "another"])
    await put(ready, "memory/b.md", [f"kettle pot {n}" for n in range(10)], rng=Random(1))
    await until_async(lambda: ready.postings.is_ready)
    await both(ready, ["kettle", "pot", "tea"])
    await ask_all(ready, Random(2), 20)
    assert len(await ranked(ready, '"kettle"', LIMIT, EVERYTHING)) == 11


async def test_postings_are_made_anew_when_many_chunks_are_gone(ready: Index) -> None:
    """Else each search would go through what is not there."""
    many = round(100 * shipped("memd.store.search_keywords.MOST_DEAD"))
    for number in range(100):
        await put(ready, f"memory/{number}.md", [f"kettle {number}"])
    await made(ready)
    before = ready.memory.resident_bytes
    await ready.remove([f"memory/{number}.md" for number in range(many)])
    await both(ready, ["kettle", "7", "77"])
    enough = ready.postings.is_being_made
    await ready.remove([f"memory/{many}.md"])
    assert (enough, ready.postings.is_being_made) == (False, True)
    await both(ready, ["kettle", "7", "77"])
    await until_async(lambda: ready.memory.resident_bytes < 0.8 * before)
    await both(ready, ["kettle", "7", "77"])


async def test_postings_that_cannot_be_made_are_done_without(
    ready: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """FTS5 answers, and memory is not asked for again at each search."""
    tries = 0

    def short(*_: object, **__: object) -> None:
        nonlocal tries
        tries += 1
        raise MemoryError

    monkeypatch.setattr(Postings, "with_chunks", short)
    await put(ready, "memory/a.md", ["kettle"])
    for _ in range(3):
        assert len(await ranked(ready, '"kettle"', LIMIT, EVERYTHING)) == 1
        await until_async(lambda: tries == 1)
    assert not ready.postings.is_ready


async def test_what_is_known_of_words_is_forgotten_together(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Where there are very many: the places of some must not be told by what was known of others."""
    monkeypatch.setattr("memd.store.search_keywords.FEWEST", 1)
    monkeypatch.setattr("memd.store.postings._MOST_WORDS", 3)
    monkeypatch.setattr("memd.store.postings.BATCH", 2)
    forms = (
        "walks",
        "walked",
        "kettle",
        "kettles",
        "walking",
        "teapot",
        "walk",
        "kettle's",
        "teapots",
        "数据库",
    )
    for number, form in enumerate(forms):
        await put(index, f"memory/{number}.md", [f"{form} {number}"])
    await made(index)
    await both(index, ["walk", "kettle", "teapot", "walking 4", "7"])


async def test_postings_that_cannot_follow_a_change_are_given_up(
    ready: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """They would lack what came; FTS5 answers, until a search has them made anew."""
    await put(ready, "memory/a.md", ["kettle"])
    await made(ready)
    with monkeypatch.context() as patched:
        patched.setattr(Postings, "with_chunks", lambda *_, **__: (_ for _ in ()).throw(MemoryError))
        await put(ready, "memory/b.md", ["kettle of tea"])
        assert not ready.postings.is_ready
        assert not ready.postings.is_being_made
    assert len(await ranked(ready, '"kettle"', LIMIT, EVERYTHING)) == 2
    await made(ready)
    await both(ready, ["kettle", "tea"])


async def test_postings_that_are_to_be_on_disk_follow_no_change(ready: Index) -> None:
    """Vectors were decided to be there, and have not gone yet: there is no memory for postings either."""
    await put(ready, "memory/a.md", ["kettle"])
    await made(ready)
    await ready.vectors.shelve()
    await put(ready, "memory/b.md", ["kettle of tea"])
    assert not ready.postings.is_ready
    assert len(await ranked(ready, '"kettle"', LIMIT, EVERYTHING)) == 2


async def test_postings_give_way_where_memory_is_short(ready: Index) -> None:
    """With the vectors; FTS5 answers the same, and both come back."""
    await put(ready, "memory/a.md", [f"kettle {n}" for n in range(9)])
    await made(ready)
    found = await ranked(ready, '"kettle"', LIMIT, EVERYTHING)
    size = ready.memory.resident_bytes
    assert size > 0
    assert not ready.memory.is_shelved
    await ready.memory.shelve()
    assert (ready.memory.resident_bytes, ready.memory.whole_bytes, ready.memory.is_shelved) == (0, size, True)
    assert await ranked(ready, '"kettle"', LIMIT, EVERYTHING) == found
    await put(ready, "memory/b.md", ["kettle of tea"])
    assert len(await ranked(ready, '"kettle"', LIMIT, EVERYTHING)) == 10
    assert ready.memory.resident_bytes == 0
    await ready.memory.unshelve()
    await made(ready)
    await both(ready, ["kettle", "tea"])


async def test_another_index_in_its_place_has_postings_of_its_own(ready: Index, tmp_path: Path) -> None:
    await put(ready, "memory/a.md", ["kettle"] * 3)
    await made(ready)
    other = Index(tmp_path / "other.sqlite", like=ready)
    await other.open()
    await other.adopt(FINGERPRINT)
    await other.start_ids_at(100)
    await put(other, "memory/a.md", ["kettle pot", "pot"])
    await ready.swap_in(other)
    assert not ready.postings.is_ready
    assert [one for one, _ in await ranked(ready, '"kettle"', LIMIT, EVERYTHING)] == [100]
    await made(ready)
    await both(ready, ["kettle", "pot"])


def _holders(
    words: Sequence[str], kinds: frozenset[Kind], most: int, reader: IndexReader
) -> dict[str, Sequence[ChunkId]]:
    return reader.keywords.holders(words, kinds, most)


@pytest.mark.parametrize("seed", range(5))
async def test_the_chunks_that_hold_a_word_are_those_of_fts5(ready: Index, seed: int) -> None:
    """The first of the kinds that are asked for, while notes come, change and go; in whatever form they have the word."""
    rng = Random(seed)
    words = ["kettle", "kettles", "running", "nation", "мир", "2026", "nothing"]
    for step in range(8):
        for _ in range(4):
            texts = [" ".join(rng.choices(words[:-1], k=2)) for _ in range(rng.randint(0, 40))]
            await put(ready, f"memory/{rng.randint(0, 6)}.md", texts, rng.choice(list(Kind)))
        await made(ready)
        kinds = frozenset(rng.sample(list(Kind), rng.randint(1, len(Kind))))
        most = rng.choice((1, 3, 100))
        held = await ready.read(partial(_holders, words, kinds, most))
        by_fts5 = {word: await ready.database.read(keywords.holders, word, kinds, most) for word in words}
        assert held == {word: found for word, found in by_fts5.items() if found}, step


@pytest.mark.parametrize("seed", range(5))
async def test_which_chunks_hold_which_terms_is_as_fts5_has_it(ready: Index, seed: int) -> None:
    """Of any chunks in any order, some of them gone; a term is a word in whatever form, a character or a pair of them."""
    rng = Random(seed)
    words = ["kettle", "running", "мир", "2026", "水壶烧水"]
    terms = ["kettles", "ran", "runs", "мир", "2026", "水", "水壶", "壶水", "nothing", "two words"]
    for step in range(6):
        for _ in range(4):
            texts = [" ".join(rng.choices(words, k=2)) for _ in range(rng.randint(0, 40))]
            await put(ready, f"memory/{rng.randint(0, 6)}.md", texts)
        await made(ready)
        ids = np.array(rng.sample(range(1, 400), 90))

        def holding(reader: IndexReader, ids: Ids = ids) -> NDArray[np.bool_]:
            return reader.keywords.holding(terms, ids)

        held = await ready.read(holding)
        by_fts5 = await ready.database.read(keywords.holding, terms[:-1], ids)
        there = await ready.read(lambda reader: set(reader.texts(list(map(ChunkId, range(1, 400))))))
        live = np.array([one in there for one in ids.tolist()])
        assert held[:-1, live].tolist() == by_fts5[:, live].tolist(), step
        assert not by_fts5[:, ~live].any()
        assert not held[-1].any()


@pytest.mark.parametrize("seed", range(3))
async def test_all_chunks_that_hold_a_term_are_those_of_fts5(ready: Index, seed: int) -> None:
    """Of the kinds that are asked for, while chunks of these and others come and go."""
    rng = Random(seed)
    words = ["kettle", "running", "2026", "水壶烧水"]
    terms = ["kettles", "runs", "2026", "水", "水壶", "壶水", "nothing"]
    for step in range(6):
        for _ in range(4):
            texts = [" ".join(rng.choices(words, k=2)) for _ in range(rng.randint(0, 40))]
            await put(ready, f"memory/{rng.randint(0, 6)}.md", texts, rng.choice(list(Kind)))
        await made(ready)
        for kinds in (list(Kind), rng.sample(list(Kind), rng.randint(1, len(Kind) - 1))):

            def holders(reader: IndexReader, kinds: Sequence[Kind] = kinds) -> list[Ids]:
                return reader.keywords.holders_of(terms, kinds)

            held = await ready.read(holders)
            by_fts5 = await ready.database.read(keywords.holders_of, terms, kinds)
            assert [some.tolist() for some in held] == [some.tolist() for some in by_fts5], step


async def test_an_index_that_is_closed_makes_none(ready: Index) -> None:
    """What was under way ends without a trace."""
    await put(ready, "memory/a.md", ["kettle"])
    await ranked(ready, '"kettle"', LIMIT, EVERYTHING)
    await ready.close()
    assert not ready.postings.is_ready


async def test_what_postings_were_made_with_goes_back_to_the_system(
    ready: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Once, when they are there."""
    given_back: list[bool] = []

    async def gives_back() -> None:
        given_back.append(ready.postings.is_ready)

    monkeypatch.setattr(search_keywords, "give_back_beside", gives_back)
    await put(ready, "memory/a.md", ["kettle"])
    await made(ready)
    await until_async(lambda: not ready.postings.is_being_made)
    assert given_back == [True]


async def read_chunks(index: Index, texts: Sequence[str], batch: int, *, merges: bool = True) -> Postings:
    """The postings of some texts, added so many at a time."""

    def read(connection: apsw.Connection) -> Postings:
        reader, held = TermReader(connection), Postings.empty()
        chunks = [ChunkText(ChunkId(10 * n + 1), Kind.NOTE, text, "") for n, text in enumerate(texts)]
        for start in range(0, len(chunks), batch):
            held = held.with_chunks(chunks[start : start + batch], reader, merges=merges)
        return held

    return await index.database.read(read)


@pytest.mark.parametrize("step", [1, 50, 1 << 16])
async def test_edits_leave_few_segments(index: Index, monkeypatch: pytest.MonkeyPatch, step: int) -> None:
    """Each search looks into all of them; they hold the same, in however short steps they are put together."""
    monkeypatch.setattr("memd.store.postings._STEP", step)
    rng = Random(1)
    texts = [written(rng) for _ in range(300)]
    by_one, at_once = await read_chunks(index, texts, 1), await read_chunks(index, texts, BATCH)
    assert len(at_once.segments) == 1
    assert 1 < len(by_one.segments) <= 5  # one chunk more does not have all of them written anew
    [whole] = by_one.put_together().segments
    assert whole.keys.tolist() == at_once.segments[0].keys.tolist()
    assert whole.starts.tolist() == at_once.segments[0].starts.tolist()
    assert whole.rows.tolist() == at_once.segments[0].rows.tolist()
    assert whole.counts.tolist() == at_once.segments[0].counts.tolist()


@pytest.mark.parametrize("batch", [1, 20])
@pytest.mark.parametrize("merges", [False, True])
async def test_a_segment_has_so_many_rows_that_two_bytes_tell_each(
    index: Index, monkeypatch: pytest.MonkeyPatch, batch: int, *, merges: bool
) -> None:
    """However the chunks come, and the postings of all segments together are those of one."""
    assert shipped("memd.store.postings._MOST_ROWS") == 1 + np.iinfo(np.uint16).max
    texts = [written(Random(number)) for number in range(300)]
    whole = await read_chunks(index, texts, BATCH)
    monkeypatch.setattr("memd.store.postings._MOST_ROWS", 64)
    parts = await read_chunks(index, texts, batch, merges=merges)
    put_together = parts.put_together()
    for one in (parts, put_together):
        bounds = [*(segment.first for segment in one.segments), 300]
        assert all(0 < last - first <= 64 for first, last in pairwise(bounds))
        assert sum(map(len, one.segments)) == len(whole.segments[0])
        for key in whole.segments[0].keys:
            expected, found = whole.of_term(key), one.of_term(key)
            assert found.rows.tolist() == expected.rows.tolist()
            assert found.counts.tolist() == expected.counts.tolist()
        keys = whole.segments[0].keys[:200]
        for most in (1, 7, 300):
            assert one.holders(keys, EVERYTHING, most) == whole.holders(keys, EVERYTHING, most)
        asked = one.ids[::-3]
        assert one.holding(list(keys), asked).tolist() == whole.holding(list(keys), asked).tolist()
        assert one.holding(list(keys), asked).any(axis=1).sum() > 50
    assert len(put_together.segments) in {5, 6}


async def test_keys_of_phrases_are_kept_until_they_are_too_many(
    index: Index, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The same phrase has the same key, whichever phrases were asked before and are forgotten by now."""
    monkeypatch.setattr(TermReader, "key_of_phrase", {})
    most = shipped("memd.store.postings._MOST_PHRASES")
    phrases = ["kettle", "kettles", "水壶", "two words", "7 月", "tea", ""]
    others = [f"word{number}" for number in range(most + 1 - len(phrases))]

    def keys(connection: apsw.Connection) -> list[list[np.uint64 | None]]:
        reader = TermReader(connection)
        first = [key for phrase in phrases for key in reader.keys_of([phrase])]
        reader.keys_of(others)
        known = reader.keys_of([*phrases[::-1], *phrases])
        assert len(TermReader.key_of_phrase) == most + 1
        anew = reader.keys_of([*phrases, "one more"])[:-1]
        assert len(TermReader.key_of_phrase) == len(phrases) + 1
        return [first, known[: len(phrases)][::-1], known[len(phrases) :], anew]

    first, *later = await index.database.read(keys)
    assert later == [first] * 3
    assert first[0] == first[1]
    assert [key is None for key in first] == [False, False, False, True, False, False, True]


async def test_a_chunk_without_a_word_is_no_holder(index: Index) -> None:
    """It may be all that a segment has: a note whose only line is a rule, after many others."""
    parts = await read_chunks(index, ["a kettle", "---"], 1, merges=False)
    assert [len(one.keys) for one in parts.segments] == [2, 0]

    def holders(connection: apsw.Connection) -> dict[int, list[ChunkId]]:
        return parts.holders(TermReader(connection).keys_of_words(["kettle", "pot"]), EVERYTHING, 9)

    assert await index.database.read(holders) == {0: [1]}


async def test_two_segments_become_one(index: Index) -> None:
    """However few there are, a search looks into one afterwards."""

    def read(connection: apsw.Connection) -> Postings:
        held = Postings.empty()
        for number in (1, 2):
            chunk = ChunkText(ChunkId(number), Kind.NOTE, f"kettle {number}", "")
            held = held.with_chunks([chunk], TermReader(connection), merges=False)
        return held

    held = await index.database.read(read)
    assert [len(held.segments), len(held.put_together().segments)] == [2, 1]


def test_as_many_tokens_as_a_number_can_tell_are_read() -> None:
    """The ninth byte of a number has eight bits."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE keywords_data (id, block)")
    connection.execute("INSERT INTO keywords_data VALUES (1, ?)", (bytes([2, 0x81, *[0x80] * 7, 0x80, 3]),))
    assert average_length(connection) == (2**57 + 128 + 3) / 2
    connection.close()


async def test_a_word_that_stands_often_is_counted_in_full(index: Index) -> None:
    """More often than a byte counts to."""
    held = await read_chunks(index, ["kettle " * 300 + "pot", "pot kettle"], 1)

    def counts(connection: apsw.Connection) -> list[list[int]]:
        keys = TermReader(connection).keys_of(["kettle", "pot"])
        return [held.of_term(key).counts.tolist() for key in keys if key is not None]

    assert await index.database.read(counts) == [[300, 1], [1, 1]]


async def test_only_chunks_that_are_allowed_take_part(index: Index) -> None:
    """The frequencies that scores are made of stay those of the whole index."""
    held = await read_chunks(index, [f"kettle {n}" for n in range(50)], 7)

    def ids(connection: apsw.Connection, allowed: list[int] | None) -> tuple[list[ChunkId], list[int]]:
        [key] = TermReader(connection).keys_of(["kettle"])
        assert key is not None
        among = None if allowed is None else np.isin(held.ids, allowed)
        best = held.best([held.of_term(key)], 5, EVERYTHING, 2.0, [among])
        return best.ids, best.frequencies

    assert (await index.database.read(ids, None))[0] == [1, 11, 21, 31, 41]
    assert await index.database.read(ids, [41, 301, 5, 9_999]) == ([41, 301], [50])
    assert await index.database.read(ids, []) == ([], [50])


def test_facts_of_chunks_are_told_by_row_also_of_those_that_are_gone() -> None:
    """What is gone, or says nothing of when it is, is of no time."""
    facts = ChunkFacts.of([(Kind.NOTE, 10, 20), None, (Kind.SESSION, None, None)])
    assert facts.kinds.tolist() == [Kind.NOTE, DEAD, Kind.SESSION]
    assert facts.times.shape == (3, 2)
    for first_s, last_s, are in (
        (20, 30, True),
        (0, 10, True),
        (12, 13, True),
        (21, 30, False),
        (0, 9, False),
    ):
        assert facts.are_of(first_s, last_s).tolist() == [are, False, False]
        assert (facts.within(first_s, last_s) > 0).tolist() == [are, False, False]
    assert ChunkFacts.of([]).are_of(0, 1).tolist() == []


def test_what_is_of_many_days_is_only_partly_of_one() -> None:
    """By seconds, both ends included."""
    days = ChunkFacts.of(
        [(Kind.NOTE, 10, 19), (Kind.NOTE, 0, 99), (Kind.NOTE, 12, 12), (Kind.NOTE, 15, None)]
    )
    assert days.within(10, 19).tolist() == [1.0, 0.1, 1.0, 0.0]
    assert days.within(15, 40).tolist() == [0.5, 0.26, 0.0, 0.0]
    assert days.within(-(10**12), 10**12).tolist() == [1.0, 1.0, 1.0, 0.0]
    assert ChunkFacts.of([]).within(0, 1).tolist() == []


@pytest.mark.parametrize(
    ("block", "expected"),
    [(b"", 1.0), (b"\x00\x00", 1.0), (b"\x02\x05\x04", 4.5), (b"\x02\x81\x00\x04", 66.0)],
)
def test_the_average_length_of_a_chunk_is_that_of_all_columns(block: bytes, expected: float) -> None:
    """Of an index in which nothing was ever written, or nothing is any more, it is a number all the same."""
    connection = apsw.Connection(":memory:")
    connection.execute("CREATE TABLE keywords_data (id INTEGER PRIMARY KEY, block)")
    with pytest.raises(StoreDamaged, match="how long"):
        average_length(connection)
    connection.execute("INSERT INTO keywords_data VALUES (1, 7)")
    with pytest.raises(StoreDamaged, match="how long"):
        average_length(connection)
    connection.execute("UPDATE keywords_data SET block = ?", (block,))
    assert average_length(connection) == expected


async def test_without_postings_the_same_chunks_are_let_through(index: Index) -> None:
    """By the labels in the file; a filter that asks for nothing lets all through."""
    await put(index, "memory/1.md", ["the kettle", "the heron"], rng=Random(3))
    await put(index, "memory/2.md", ["the ledger"], rng=Random(4))
    wanted = [NO_FILTER, SearchFilter(paths=("memory/2.md",)), SearchFilter(tags=("none",))]
    kinds = frozenset({Kind.NOTE})
    everything, *found = await index.read(lambda reader: reader.keywords.allowed(wanted, kinds))
    assert everything is None
    expected = [await index.database.read(labels.allowed, one, kinds) for one in wanted[1:]]
    assert [ids.tolist() for ids in found if ids is not None] == [ids.tolist() for ids in expected]
    assert [len(ids) for ids in expected] == [1, 0]


@pytest.mark.parametrize("days", [(3, 3), (1, 1), (1, 2), (2, 3), (1, 3)])
async def test_a_chunk_that_is_of_another_time_now_is_let_through_by_that(
    ready: Index, days: tuple[int, int]
) -> None:
    """Its text is the same, so that it stays the chunk that it was."""

    async def of(first: int, last: int) -> None:
        when = TimeSpan(datetime(1970, 1, first, 12), datetime(1970, 1, last, 12))  # noqa: DTZ001 - as above
        chunk = msgspec.structs.replace(chunk_of("the kettle"), when=when)
        await ready.replace_all([FileChange(found_file("memory/a.md"), b"1", [chunk])], {}, frozenset())

    await of(1, 3)
    await made(ready)
    await of(*days)
    wanted = [SearchFilter(since_s=day * 86_400, until_s=(day + 1) * 86_400 - 1) for day in range(4)]
    expected = [await ready.database.read(labels.allowed, one, EVERYTHING) for one in wanted]
    found = await ready.read(lambda reader: reader.keywords.allowed(wanted, EVERYTHING))
    assert ready.postings.is_ready
    assert [None if ids is None else ids.tolist() for ids in found] == [ids.tolist() for ids in expected]
    assert [len(ids) for ids in expected] == [int(days[0] <= day + 1 <= days[1]) for day in range(4)]
