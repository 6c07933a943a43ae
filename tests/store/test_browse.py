"""Pages of what an index holds."""

from datetime import UTC, timedelta, timezone, tzinfo

import apsw
import msgspec
import pytest

from memd.domain_types import NO_FILTER, Kind, Label, LabelKind, SearchFilter, Turn
from memd.store.browse import FileOrder, cursor_place
from memd.store.errors import StoreDamaged
from memd.store.files import FileChange
from memd.store.index import Index
from memd.store.sessions import SessionChange
from memd.text.time_phrases import dated
from tests.store.conftest import FINGERPRINT, chunk_of, found_file

NOTES = frozenset({Kind.NOTE, Kind.CURATED})
DAY_NS = 86_400 * 10**9


async def put(index: Index, path: str, *texts: str, mtime_ns: int = DAY_NS, kind: Kind = Kind.NOTE) -> None:
    """Index a file of these chunks, a line each."""
    chunks = [chunk_of(text, line) for line, text in enumerate(texts, 1)]
    await index.replace(found_file(path, kind=kind, mtime_ns=mtime_ns), b"h" * 32, chunks, {}, frozenset())


async def listed(
    index: Index, zone: tzinfo = UTC, *, folder: str | None = None, by_time: bool = False
) -> list[str]:
    """The paths of all pages, each of two entries."""
    paths: list[str] = []
    after: str | None = None
    for _ in range(9):
        order = FileOrder(most=2, zone=zone, after=cursor_place(after), folder=folder, by_time=by_time)
        page = await index.file_page(NO_FILTER, NOTES, order)
        paths += [*page.folders, *(file.path for file in page.files)]
        if (after := page.next) is None:
            return paths
    raise AssertionError("the pages do not end")


async def test_every_file_is_on_one_page(index: Index) -> None:
    """Whatever characters its path has; of kinds that may not be seen nothing is, and a file without text is there."""
    for path in ("a b/c 1.md", "a b.md", "a/é.md", "a/z.md", "/abs/x.md", "😀.md"):
        await put(index, path, "text")
    await put(index, "empty.md")
    await put(index, "sessions/s.jsonl", "text", kind=Kind.SESSION)
    every = ["/abs/x.md", "a b.md", "a b/c 1.md", "a/z.md", "a/é.md", "empty.md", "😀.md"]
    assert await listed(index) == every
    assert await listed(index, folder="") == ["/", "a b/", "a/", "a b.md", "empty.md", "😀.md"]
    assert await listed(index, folder="/") == ["/abs/"]
    assert await listed(index, folder="a/") == ["a/z.md", "a/é.md"]


@pytest.mark.parametrize("zone", [UTC, timezone(timedelta(hours=-11)), timezone(timedelta(hours=14))])
async def test_the_newest_first_in_any_zone(index: Index, zone: tzinfo) -> None:
    """By when files were written, where nothing in them says; of one moment in the order of their paths."""
    for path, days in (("old.md", 1), ("b.md", 5), ("a.md", 5), ("new.md", 9), ("future.md", 10**5)):
        await put(index, path, "text", mtime_ns=days * DAY_NS)
    assert await listed(index, zone, by_time=True) == ["future.md", "new.md", "a.md", "b.md", "old.md"]


async def test_a_page_of_chunks_ends_where_its_room_does(index: Index) -> None:
    """After the chunk that still fits, and after one at least."""
    await put(index, "a.md", "x" * 10, "y" * 10, "z" * 30)
    pages, skip = [], 0
    while True:
        page = await index.chunk_page("a.md", NOTES, skip=skip, most=9, most_chars=20)
        assert page is not None
        pages.append([chunk.text[0] for chunk in page.chunks])
        if page.next is None:
            break
        skip = page.next
    assert pages == [["x", "y"], ["z"]]
    beyond = await index.chunk_page("a.md", NOTES, skip=3, most=9, most_chars=20)
    assert beyond is not None
    assert (beyond.chunks, beyond.total, beyond.next) == ((), 3, None)
    assert await index.chunk_page("a.md", frozenset({Kind.SESSION}), skip=0, most=9, most_chars=20) is None
    assert await index.turn_page("a.md", NOTES, skip=0, most=9, most_chars=20) is None


async def test_what_is_no_text_is_damage(index: Index) -> None:
    """It is told as such, instead of being sent."""
    await put(index, "a.md", "text")
    await index.database.write(_break)
    with pytest.raises(StoreDamaged):
        await index.chunk_page("a.md", NOTES, skip=0, most=9, most_chars=20)


def _break(connection: apsw.Connection) -> None:
    connection.execute("UPDATE chunks SET text = x'ff'")


async def test_a_page_of_files_tells_what_is_known_of_each(index: Index) -> None:
    """Its chunks and their times, its tags in the order of their names; a filter by time looks at the chunks."""
    when = dated("2026-02-09")
    assert when is not None
    chunks = [chunk_of("one"), msgspec.structs.replace(chunk_of("two", 2), when=when)]
    tags = tuple(Label(LabelKind.TAG, tag.lower(), tag) for tag in ("Zoo", "ants"))
    note = found_file("a.md", size=5, mtime_ns=DAY_NS)
    await index.replace_all([FileChange(note, b"h" * 32, chunks, labels=tags)], {}, frozenset())
    await put(index, "b.md", "three", mtime_ns=400 * DAY_NS)

    async def shown(wanted: SearchFilter) -> list[str]:
        page = await index.file_page(wanted, NOTES, FileOrder(most=9, zone=UTC))
        assert page.total == len(page.files)
        return [file.path for file in page.files]

    (row, other) = (await index.file_page(NO_FILTER, NOTES, FileOrder(most=9, zone=UTC))).files
    assert (row.path, row.kind, row.size, row.written_ns) == ("a.md", Kind.NOTE, 5, DAY_NS)
    assert (row.chunks, row.tags, row.superseded) == (2, ("ants", "Zoo"), None)
    first_s, last_s = when.as_seconds
    assert row.when == (first_s, last_s)
    assert (other.when, other.tags) == (None, ())
    assert await shown(msgspec.structs.replace(NO_FILTER, since_s=first_s)) == ["a.md"]
    assert await shown(msgspec.structs.replace(NO_FILTER, since_s=last_s + 1)) == []
    assert await shown(msgspec.structs.replace(NO_FILTER, until_s=last_s)) == ["a.md"]
    assert await shown(msgspec.structs.replace(NO_FILTER, until_s=first_s - 1)) == []


@pytest.mark.parametrize(
    ("text", "numbers", "lines"),
    [
        ("one\ntwo\nthree", None, ((5, 5), (6, 7))),
        ("one\ntwo\nthree", (3, 9, 12), ((3, 3), (9, 12))),
        ("\n12\ntwo three", None, ((5, 6), (7, 7))),
    ],
)
async def test_the_parts_of_a_chunk_are_told_by_their_lines(
    index: Index, text: str, numbers: tuple[int, ...] | None, lines: tuple[tuple[int, int], ...]
) -> None:
    """As they follow the first one, or as a transcript has them."""
    await index.adopt(msgspec.structs.replace(FINGERPRINT, parts=True))
    chunk = msgspec.structs.replace(chunk_of(text, 5), parts=((0, 3), (4, 13)), numbers=numbers)
    change = FileChange(found_file("a.md"), b"h" * 32, [chunk], tally={"redacted.token": 2, "other": 1})
    await index.replace_all([change], {}, frozenset())
    page = await index.chunk_page("a.md", NOTES, skip=0, most=9, most_chars=99)
    assert page is not None
    [row] = page.chunks
    assert row.parts == lines
    assert (row.start_line, row.end_line, row.text, row.vector) == (5, 7, text, 0)
    assert (page.kind, page.redacted) == (Kind.NOTE, {"token": 2})


async def test_a_page_of_turns_ends_where_its_room_does(index: Index) -> None:
    """After the turn that still fits, and after one at least, which is cut; a note has none."""
    turns = [
        Turn(f"id{n}", "user" if n % 2 == 0 else "assistant", 1.5 * n, 2 * n + 1, 2 * n + 2, text)
        for n, text in enumerate(("x" * 10, "y" * 10, "z" * 30, "é"))
    ]
    path = "sessions/a.jsonl"
    await index.replace_sessions(
        [
            SessionChange(
                found=found_file(path, kind=Kind.SESSION),
                hash=b"h" * 32,
                progress=b"p",
                since=None,
                turns_from=0,
                turns=turns,
                chunks_from=0,
                chunks=[],
                resume=0,
                tally={},
            )
        ],
        {},
        frozenset(),
    )
    kinds = frozenset({Kind.SESSION})
    pages, skip = list[list[str]](), 0
    while True:
        page = await index.turn_page(path, kinds, skip=skip, most=9, most_chars=20)
        assert page is not None
        assert page.total == 4
        pages.append([turn.text for turn in page.turns])
        if page.next is None:
            break
        skip = page.next
    assert pages == [["x" * 10, "y" * 10], ["z" * 20], ["é"]]
    one = await index.turn_page(path, kinds, skip=2, most=1, most_chars=99)
    assert one is not None
    assert one.next == 3
    [turn] = one.turns
    assert (turn.role, turn.at, turn.start_line, turn.end_line, turn.chars) == ("user", 3.0, 5, 6, 30)
    beyond = await index.turn_page(path, kinds, skip=4, most=9, most_chars=20)
    assert beyond is not None
    assert (beyond.turns, beyond.next) == ((), None)
    assert await index.turn_page(path, NOTES, skip=0, most=9, most_chars=20) is None
    assert await index.turn_page("none", kinds, skip=0, most=9, most_chars=20) is None
    await put(index, "a.md", "text")
    assert await index.turn_page("a.md", NOTES, skip=0, most=9, most_chars=20) is None


async def test_the_texts_of_notes_are_read_on_by_their_ids(index: Index) -> None:
    """As many at once as are wanted, of the kinds that may be seen, each once."""
    await put(index, "memory/a.md", "one", "two")
    await put(index, "sessions/s.jsonl", "talk", kind=Kind.SESSION)
    await put(index, "MEMORY.md", "three", kind=Kind.CURATED)
    assert [text for _, text in await index.note_texts(NOTES, 0, 9)] == ["one", "two", "three"]
    first = await index.note_texts(NOTES, 0, 2)
    assert [text for _, text in first] == ["one", "two"]
    assert [text for _, text in await index.note_texts(NOTES, first[-1][0], 2)] == ["three"]
    assert [text for _, text in await index.note_texts(frozenset({Kind.CURATED}), 0, 9)] == ["three"]
    assert await index.note_texts(NOTES, 99, 9) == []


@pytest.mark.parametrize(
    ("by", "found"),
    [
        ("memory/plan.md", "memory/plan.md"),
        ("[[plan]]", "memory/plan.md"),
        ("[[ Plan.md ]]", "memory/plan.md"),
        ("[[memory/PLAN|the plan of this year]]", "memory/plan.md"),
        ("/memory/plan.md/", "memory/plan.md"),
        ("[[ideas/plan]]", "notes/ideas/plan.md"),
        ("[[lan]]", None),
        ("the meeting of May", None),
    ],
)
async def test_a_note_that_holds_no_more_is_listed_with_what_replaced_it(
    index: Index, by: str, found: str | None
) -> None:
    """The note that its front matter names by the end of a path; of several the first by path."""
    for path, properties in (
        ("memory/old.md", {"superseded-by": by}),
        ("memory/plan.md", {"status": "done"}),
        ("notes/ideas/plan.md", {}),
    ):
        named = tuple(Label(LabelKind.PROPERTY, key, value) for key, value in properties.items())
        change = FileChange(found_file(path), b"h" * 32, [chunk_of(path)], labels=named)
        await index.replace_all([change], {}, frozenset())
    assert await index.superseded_notes(NOTES, 9) == [("memory/old.md", by, found)]
    assert await index.superseded_notes(frozenset({Kind.CURATED}), 9) == []


async def test_notes_that_hold_no_more_are_listed_by_path_though_nothing_replaced_them(index: Index) -> None:
    """As many as are wanted; what may not be seen is no note that replaced them either."""
    for path, kind, key, value in (
        ("b.md", Kind.NOTE, "status", "archived"),
        ("a.md", Kind.NOTE, "superseded-by", "[[memory]]"),
        ("MEMORY.md", Kind.CURATED, "status", "obsolete"),
    ):
        named = (Label(LabelKind.PROPERTY, key, value),)
        change = FileChange(found_file(path, kind=kind), b"h" * 32, [chunk_of(path)], labels=named)
        await index.replace_all([change], {}, frozenset())
    every = [("MEMORY.md", "", None), ("a.md", "[[memory]]", "MEMORY.md"), ("b.md", "", None)]
    assert await index.superseded_notes(NOTES, 9) == every
    assert await index.superseded_notes(NOTES, 2) == every[:2]
    assert await index.superseded_notes(frozenset({Kind.NOTE}), 9) == [
        ("a.md", "[[memory]]", None), ("b.md", "", None),
    ]  # fmt: skip


async def test_a_folder_tells_how_many_files_lie_below_it(index: Index) -> None:
    """At any depth, those of the page and in all; what begins with the same letters does not lie in it."""
    for path in ("a/1.md", "a/b/2.md", "a/b/3.md", "a/b/c/4.md", "a/z/5.md", "a b/6.md", "a.md", "a0.md"):
        await put(index, path, "text")

    async def shown(folder: str | None, most: int = 9) -> tuple[dict[str, int], list[str], int]:
        page = await index.file_page(NO_FILTER, NOTES, FileOrder(most=most, zone=UTC, folder=folder))
        return page.folders, [file.path for file in page.files], page.total

    assert await shown("") == ({"a b/": 1, "a/": 5}, ["a.md", "a0.md"], 8)
    assert await shown("a/") == ({"a/b/": 3, "a/z/": 1}, ["a/1.md"], 5)
    assert await shown("a/b/") == ({"a/b/c/": 1}, ["a/b/2.md", "a/b/3.md"], 3)
    assert await shown("a/", most=1) == ({"a/b/": 3}, [], 5)
    assert await shown("none/") == ({}, [], 0)
    assert (await shown(None))[2] == 8


def test_a_cursor_names_a_place() -> None:
    """With whatever the path has in it."""
    assert cursor_place(None) is None
    assert cursor_place("-5 a b.md") == (-5, "a b.md")
    with pytest.raises(ValueError, match="invalid literal"):
        cursor_place("a b.md")
