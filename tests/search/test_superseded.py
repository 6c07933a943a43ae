from itertools import islice

import msgspec
import pytest

from memd.domain_types import ChunkId, FoundHit, Kind
from memd.search.fuse_scores import Scored
from memd.search.query import parse
from memd.search.rank import verdicts
from memd.search.superseded import behind_replacement, is_superseded, lowered, replaces, stated_replacements
from memd.store.chunks import StoredChunk
from tests.bounds import shipped
from tests.table import table

OLD = "The backup runs at three."
NEW = "Nightly copies begin at a quarter past four."
QUESTION = parse("when does the backup of the studio run")


def chunk(text: str, path: str = "a.md", superseded: str | None = None) -> StoredChunk:
    return StoredChunk(
        ChunkId(len(path)), path, Kind.NOTE, 1, 1 + text.count("\n"), text, "", superseded=superseded
    )


def scored(evidence: float) -> Scored:
    return Scored(ChunkId(1), "", 1, round(evidence, 3), evidence, 0.0)


def found(*candidates: tuple[float, StoredChunk], latest: bool = True) -> list[FoundHit]:
    """The hits of candidates with their evidence, which hardly differs from the score here."""
    lane = [
        (msgspec.structs.replace(scored(evidence), path=one.path, id=one.id), one)
        for evidence, one in candidates
    ]
    made = (one.hit for one in verdicts([lane], QUESTION, 0.35, 700, latest=latest))
    return list(islice((hit for hit in made if hit is not None), 6))


@table(
    ("text", "closest", "expected"),
    [
        (OLD, None, False),
        (f"~~{OLD}~~", None, True),
        (f"- ~~{OLD}~~\n- ~~Gone.~~", None, True),
        ("The backup runs at ~~three~~ four.", None, False),
        (f"~~{OLD}~~\n{NEW}", None, True),
        (f"~~Not on Sundays.~~\n{OLD}", None, False),
        (f"~~{OLD}~~\n{NEW}", (0, 29), True),
        (f"~~{OLD}~~\n{NEW}", (30, 70), False),
        (f"~~{OLD}~~\n{NEW}", (14, 44), False),  # 15 characters of each
        (f"~~{OLD}~~\n{NEW}", (13, 43), True),
        ("~~The backup is old.~~\nIt takes a run.", None, False),  # one of two terms
        ("~~The backup of the studio.~~\nIts run.", None, True),  # two of three
        ("~~~\nThe backup runs\n~~~", None, False),
        ("about ~~ 5 euros, the backup ~~ runs", None, False),
        ("~~~~", None, False),
        ("~~备份三点开始。~~", None, True),
    ],
)
def test_what_is_struck_through_holds_no_more(
    text: str, closest: tuple[int, int] | None, expected: bool
) -> None:
    """By the part that is closest to the question, or by its words; a struck word beside its replacement is no sign."""
    assert is_superseded(chunk(text), QUESTION, closest) is expected


def stated(*candidates: StoredChunk | tuple[StoredChunk, tuple[int, int]]) -> list[tuple[int, int]]:
    """The places, from 0, of what replaces what."""
    pairs = [one if isinstance(one, tuple) else (one, None) for one in candidates]
    numbered = [
        (msgspec.structs.replace(one, id=ChunkId(n)), closest) for n, (one, closest) in enumerate(pairs)
    ]
    return sorted(stated_replacements(numbered))


def of_day(one: StoredChunk, day: int | None) -> StoredChunk:
    return msgspec.structs.replace(one, first_s=day, last_s=day)


@table(
    ("struck", "older", "expected"),
    [
        (
            "Glaze: ~~Kerrin & Daughters, 31 a sack~~ Ovelle, 28 a sack.",
            "Glaze ordered at Kerrin & Daughters.",
            True,
        ),
        ("The kiln belongs to bay ~~14~~ 31.", "The kiln now stands in bay 14.", True),
        (
            "The kiln belongs to bay ~~14~~ 31.",
            "The mop stands in cupboard 14.",
            False,
        ),  # something else in 14
        ("The kiln belongs to bay ~~14~~ 31.", "The kiln now stands in bay 31.", False),
        ("The kiln belongs to bay ~~14~~ 31.", "The kiln now stands in bay ~~14~~.", False),
        (
            "- [x] ~~Order glaze at Kerrin~~",
            "Order glaze at Kerrin today.",
            False,
        ),  # done, and replaced by nothing
        ("门卫换成了~~老仲~~老阮。", "门卫还是老仲。", True),
        ("门卫换成了~~老仲~~老阮。", "门卫请假了。", False),
    ],
)
def test_what_another_text_has_struck_out_is_replaced_by_it(struck: str, older: str, expected: bool) -> None:
    """If the other one holds most of what is struck out, and of the line in front of it."""
    old, new = chunk(older, "old.md"), chunk(struck, "new.md")
    assert stated(old, new) == ([(1, 0)] if expected else [])
    assert stated(new, old) == []  # it stands in front already


def test_what_refers_to_a_superseded_note_is_behind_what_replaced_that() -> None:
    """By a link in the part that is closest to the question; another part may say what nothing replaced."""
    text = "Fan at 30, see [[ops/fan-v1|the sheet]].\nThe invoice is 88."
    day, old, new = (
        chunk(text, "2026-03-01.md"),
        chunk(OLD, "ops/fan-v1.md", "[[fan]]"),
        chunk(NEW, "ops/fan.md"),
    )
    assert stated(day, old, new) == [(2, 0)]
    assert stated((day, (0, 39)), old, new) == [(2, 0)]
    assert stated((day, (40, 58)), old, new) == []
    assert stated(day, chunk(OLD, "ops/fan-v1.md"), new) == []
    assert stated(day, chunk(OLD, "ops/other.md", "[[fan]]"), new) == []
    assert stated(chunk(OLD, "2026-03-01.md"), old, new) == []


def test_what_is_later_is_not_replaced_by_what_was_said_before() -> None:
    """A text of no day may have been changed at any time."""
    old, new = chunk("The kiln is in bay 14.", "old.md"), chunk("The kiln is in bay ~~14~~ 31.", "new.md")
    for days, expected in (((1, 2), 1), ((2, 2), 1), ((3, 2), 0), ((None, 2), 1), ((3, None), 1)):
        assert len(stated(of_day(old, days[0]), of_day(new, days[1]))) == expected
    assert stated(old, msgspec.structs.replace(new, superseded="")) == []
    assert stated(old, msgspec.structs.replace(new, path="old.md")) == []


def test_of_many_struck_texts_the_first_are_compared_with_the_best_candidates() -> None:
    """A list of all that has changed must not make a search slow."""
    most = shipped("memd.search.superseded._MOST_STRUCK")
    compared = shipped("memd.search.superseded._MOST_COMPARED")
    many = [chunk("The kiln is in bay 14.", f"{n}.md") for n in range(compared + 2)]
    assert len(stated(*many, chunk("The kiln is in bay ~~14~~ 31.", "new.md"))) == compared
    old = chunk("The kiln is in bay 14.", "old.md")
    for before, expected in ((most - 1, 1), (most, 0)):
        new = chunk("A ~~cat~~ dog.\n" * before + "The kiln is in bay ~~14~~ 31.", "new.md")
        assert len(stated(old, new)) == expected


@pytest.mark.parametrize(
    ("named", "path", "expected"),
    [
        ("memory/ops/backup.md", "memory/ops/backup.md", True),
        ("memory/ops/backup", "Memory/Ops/Backup.md", True),
        ("backup", "memory/ops/backup.md", True),
        ("[[backup]]", "memory/ops/backup.md", True),
        ("[[ops/backup#times|the new one]]", "memory/ops/backup.md", True),
        ("./backup.md", "memory/ops/backup.md", True),
        ("up", "memory/ops/backup.md", False),
        ("", "memory/ops/.md", False),
        (None, "memory/ops/backup.md", False),
    ],
)
def test_a_note_names_what_replaced_it(named: str | None, path: str, expected: bool) -> None:
    """By its path or the end of it, as a link or as it is."""
    assert replaces(path, chunk(OLD, superseded=named)) is expected


def test_what_is_superseded_ranks_behind_what_replaced_it_and_says_so() -> None:
    """However much closer it is, where its note names the other; and by a fifth of its evidence in any case."""
    old, new = chunk(OLD, "old.md", "new.md"), chunk(NEW, "new.md")
    other = chunk("Bob plays drums.", "other.md")
    hits = found((0.9, old), (0.6, other), (0.5, new))
    assert [(hit.path, hit.superseded, hit.superseded_by) for hit in hits] == [
        ("other.md", False, None), ("new.md", False, None), ("old.md", True, "new.md"),
    ]  # fmt: skip
    assert hits[1].score >= hits[2].score >= 0.45


def test_what_only_says_that_it_is_archived_is_lowered() -> None:
    """It stays in front of what is much farther, and is no less than worth reading."""
    old = chunk(OLD, "old.md", "")
    assert [hit.path for hit in found((0.7, old), (0.6, chunk(NEW, "b.md")))] == ["b.md", "old.md"]
    assert [hit.path for hit in found((0.7, old), (0.5, chunk(NEW, "b.md")))] == ["old.md", "b.md"]
    (hit,) = found((0.4, old))
    assert (hit.score, hit.superseded, hit.superseded_by) == (0.35, True, None)


def test_what_was_found_by_words_counts_when_it_is_lowered() -> None:
    """A fifth of all the evidence goes, whether meaning or words have given it."""
    both = msgspec.structs.replace(scored(0.7), meaning=0.4, words=0.3)
    assert (
        behind_replacement(both, None).evidence
        == behind_replacement(scored(0.7), None).evidence
        == pytest.approx(0.56)
    )


def test_who_asks_for_what_was_gets_it_in_its_place() -> None:
    """It says that it holds no more all the same."""
    old, new = chunk(OLD, "old.md", "new.md"), chunk(NEW, "new.md")
    hits = found((0.6, old), (0.55, new), latest=False)
    assert [(hit.path, hit.score, hit.superseded) for hit in hits] == [
        ("old.md", 0.6, True),
        ("new.md", 0.55, False),
    ]


def test_a_later_copy_that_holds_no_more_takes_no_place() -> None:
    """An archived copy is written later than what it is a copy of."""
    text = "The spare key of the studio is with Odile, second floor, ring twice."
    own, archived = chunk(text, "memory/key.md"), chunk(text, "archive/the-key.md", "")
    later = msgspec.structs.replace(archived, written_ns=9)
    hits = found((0.8, own), (0.7, later))
    assert [(hit.path, hit.superseded, hit.copies) for hit in hits] == [
        ("memory/key.md", False, ("archive/the-key.md#L1-L1",))
    ]


def test_what_is_lowered_keeps_the_shares_of_its_meaning_and_its_words() -> None:
    """It scores like any other with so much evidence; one that has less is left as it is."""
    both = msgspec.structs.replace(scored(0.8), meaning=0.6, words=0.2)
    found = lowered(both, 0.4)
    assert (found.meaning, found.words) == pytest.approx((0.3, 0.1))
    assert found.score == lowered(scored(0.8), 0.4).score < both.score
    same = lowered(both, 0.9)
    assert (same.meaning, same.words) == (0.6, 0.2)
