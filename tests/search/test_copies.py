import pytest

from memd.domain_types import ChunkId, Kind
from memd.search.copies import LEAST_WORDS, ComparedText, CopyCandidates, copies_among, recency_key
from memd.store.chunks import StoredChunk
from tests.bounds import shipped
from tests.table import table

ALIKE = shipped("memd.search.copies._MOST_ALIKE")
LONG = "Ann lent Bob fifty euros for the train to Lyon on Friday, and Bob lent Carl twenty."


@table(
    ("shown", "other", "expected"),
    [
        (LONG, LONG, True),
        (LONG, LONG.upper(), True),
        (LONG, f"2026-01-03 09:00 User: {LONG}", True),
        (LONG, LONG.replace("Ann lent Bob", "Bob lent Ann"), False),
        (LONG, LONG.replace("and Bob lent Carl twenty", "and Carl lent Bob twenty"), False),
        (LONG, "Bob lent Carl fifty euros, Ann lent Bob twenty for Friday, on the train to Lyon.", False),
        (LONG, LONG.replace("fifty", "sixty"), False),
        (LONG, LONG.replace(" for the train", ""), True),
        (LONG.replace(" for the train", ""), LONG, False),
        (LONG.replace("lent Carl", "never lent Carl"), LONG, False),
        (LONG, LONG.replace("lent Carl", "never lent Carl"), False),
        (f"{LONG} {LONG}", LONG, False),
        ("Ann red Bob blue Carl green Dora black", "red Ann blue Bob green Carl black Dora", False),
        ("which cat?", "which cat?", False),
        (LONG, "", False),
        ("", "", False),
        ("钥匙在二楼奥蒂尔那里，请按两次铃。", "钥匙 在二楼奥蒂尔那里 请按两次铃", True),
        ("钥匙在二楼奥蒂尔那里，请按两次铃。", "钥匙在三楼奥蒂尔那里，请按两次铃。", False),
    ],
)  # fmt: skip
def test_one_text_covers_another_that_says_nothing_else(shown: str, other: str, expected: bool) -> None:
    """About as long, no other word, about the same order, and nobody said no; short texts only where they are equal, elsewhere."""
    assert ComparedText(shown).covers(ComparedText(other)) is expected


@table(
    ("one", "other"),
    [
        ("The fridge is at +4 degrees.", "The fridge is at -4 degrees."),
        ("现在客厅的温度是 -5 度左右", "现在客厅的温度是 5 度左右"),
        ("Balance of the account: -300 euros", "Balance of the account: 300 euros"),
        ("a value x > 5 triggers the alarm", "a value x < 5 triggers the alarm"),
        ("if a == b then stop the run", "if a != b then stop the run"),
        ("那本书的价格是￥50", "那本书的价格是$50"),
        ("√ 已付款 房租 十一月", "× 已付款 房租 十一月"),
        ("- [ ] call the bank about it today", "- [x] call the bank about it today"),
        ("run the tool with --force on it now", "run the tool with force on it now"),
        ("Pay 1,000 to Ann for the roof", "Pay 1.000 to Ann for the roof"),
        ("Ann gets 5% of the whole sum", "Ann gets 5 of the whole sum"),
    ],
)
def test_a_sign_that_changes_the_meaning_makes_two_texts(one: str, other: str) -> None:
    """Their words are the same: a number's sign, a comparison, a currency, a mark of what is done, an option, a separator."""
    assert not ComparedText(one).covers(ComparedText(other))
    assert not ComparedText(other).covers(ComparedText(one))
    assert ComparedText(one).covers(ComparedText(f"* {one}"))


@pytest.mark.parametrize(("words", "expected"), [(4, True), (3, False)])
def test_a_short_text_covers_nothing(words: int, expected: bool) -> None:
    """Of few words, one that is left out is much."""
    assert LEAST_WORDS == 4
    text = " ".join(f"word{n}" for n in range(words))
    assert ComparedText(f"- {text}!").covers(ComparedText(text)) is expected


def _chunk(last_s: int | None, written_ns: int) -> StoredChunk:
    return StoredChunk(
        ChunkId(1), "a.md", Kind.NOTE, 1, 1, "", "", first_s=last_s, last_s=last_s, written_ns=written_ns
    )


def test_what_is_of_a_later_time_is_later() -> None:
    """By what its file says; of one day, or where nothing is said, by when the file was written."""
    day = 86_400
    in_order = [
        _chunk(day, 9 * day * 10**9),
        _chunk(2 * day, 3 * day * 10**9),
        _chunk(2 * day, 4 * day * 10**9),
        _chunk(4 * day, 1),
        _chunk(None, 5 * day * 10**9),
        _chunk(6 * day, 1),
    ]
    assert sorted([in_order[n] for n in (2, 4, 0, 3, 5, 1)], key=recency_key) == in_order


def test_each_text_is_compared_with_few() -> None:
    """Those that share what few have; a form that is filled in every day makes no pair of each two days."""
    candidates = CopyCandidates()
    unlike = [f"w{number} x{number} y{number} z{number} of it" for number in range(300)]
    candidates.add((ChunkId(number), text) for number, text in enumerate(unlike))
    assert candidates.pairs == []
    candidates.add([(ChunkId(1000), unlike[7] + " all"), (ChunkId(1001), unlike[8].replace(" y8", ""))])
    assert candidates.pairs == [(7, 1000), (8, 1001)]
    form = CopyCandidates()
    form.add((ChunkId(number), "Slept well. Ate well. Walked for an hour.") for number in range(300))
    assert len(form.pairs) == sum(min(earlier, ALIKE) for earlier in range(300))


@pytest.mark.parametrize("text", ["", "a", "a b", "我", "我们", "\ud800", "---\na: b\n---\n"])
def test_short_texts_have_their_copies(text: str) -> None:
    """However little there is to compare; nothing is the copy of nothing."""
    candidates = CopyCandidates()
    candidates.add([(ChunkId(1), text), (ChunkId(2), "something else"), (ChunkId(3), text)])
    assert candidates.pairs == ([(1, 3)] if text else [])


def _note(
    number: int,
    text: str,
    path: str,
    *,
    lines: tuple[int, int] = (1, 1),
    day: int | None = None,
    by: str | None = None,
) -> StoredChunk:
    last_s = None if day is None else day * 86_400
    return StoredChunk(
        ChunkId(number), path, Kind.NOTE, *lines, text, "", first_s=last_s, last_s=last_s, superseded=by
    )


SHORTER = LONG.replace(" for the train", "")


@pytest.mark.parametrize(
    ("one", "other", "found"),
    [
        (_note(1, LONG, "a.md", day=1), _note(2, LONG, "b.md", day=2), [(1, 2)]),
        (_note(1, LONG, "a.md", day=3), _note(2, LONG, "b.md", day=2), [(2, 1)]),
        (_note(1, SHORTER, "a.md", day=1), _note(2, LONG, "b.md", day=2), [(1, 2)]),
        (_note(1, LONG, "a.md", day=1), _note(2, SHORTER, "b.md", day=2), [(1, 2)]),
        (_note(1, LONG, "a.md"), _note(2, LONG.replace("fifty", "sixty"), "b.md"), []),
        (_note(1, LONG, "a.md", by=""), _note(2, LONG, "b.md"), []),
        (_note(1, LONG, "a.md"), _note(2, LONG, "b.md", by="c.md"), []),
        # Of one file, where they have no line in common.
        (_note(1, LONG, "a.md", lines=(1, 4)), _note(2, LONG, "a.md", lines=(4, 9)), []),
        (_note(1, LONG, "a.md", lines=(4, 9)), _note(2, LONG, "a.md", lines=(1, 4)), []),
        (_note(1, LONG, "a.md", lines=(1, 3)), _note(2, LONG, "a.md", lines=(4, 9)), [(1, 2)]),
        (_note(1, LONG, "a.md", lines=(4, 9)), _note(2, LONG, "a.md", lines=(1, 3)), [(1, 2)]),
    ],
)
def test_of_two_chunks_that_say_the_same_the_earlier_is_told_before_the_later(
    one: StoredChunk, other: StoredChunk, found: list[tuple[int, int]]
) -> None:
    """Whichever of them has more; what is superseded has been said to be, and one that is gone is no copy."""
    chunks = {one.id: one, other.id: other}
    pairs = [(one.id, other.id), (one.id, ChunkId(99))]
    assert [(earlier.id, latest.id) for earlier, latest in copies_among(pairs, chunks)] == found
