"""What a filter lets through: of files that may be seen, by all that it says."""

from collections.abc import Sequence

import apsw
import msgspec
import pytest

from memd.domain_types import ChunkId, Kind, Label, LabelKind, SearchFilter
from memd.store import labels
from memd.store.files import FileChange
from memd.store.index import Index
from memd.text.time_phrases import dated
from memd.text.time_spans import TimeSpan
from tests.store.conftest import chunk_of, found_file

DAY_S = 86_400
DAY_NS = DAY_S * 1_000_000_000
EVERY_KIND = frozenset(Kind)


def labelled(*tags: str, **properties: str) -> tuple[Label, ...]:
    """Tags and properties, as a note has them."""
    return (
        *(Label(LabelKind.TAG, tag.lower(), tag) for tag in tags),
        *(Label(LabelKind.PROPERTY, key, value) for key, value in properties.items()),
    )


async def put(
    index: Index,
    path: str,
    *,
    kind: Kind = Kind.NOTE,
    of: Sequence[Label] = (),
    day: str | None = None,
    mtime_ns: int = 1,
) -> None:
    """A file of one chunk, whose text is its name."""
    when = None if day is None else dated(day)
    chunk = msgspec.structs.replace(chunk_of(path), when=when)
    found = found_file(path, kind=kind, mtime_ns=mtime_ns)
    await index.replace_all(
        [FileChange(found, f"{path}{day}{of}".encode(), [chunk], labels=of)], {}, frozenset()
    )


async def let_through(index: Index, wanted: SearchFilter, kinds: frozenset[Kind] = EVERY_KIND) -> list[str]:
    """The files whose chunks a filter lets through, in the order of their ids."""

    def look(connection: apsw.Connection) -> list[str]:
        ids = labels.allowed(connection, wanted, kinds).tolist()
        assert ids == sorted(set(ids))
        texts = dict(connection.execute("SELECT id, text FROM chunks"))
        return [texts[one] for one in ids]

    return await index.database.read(look)


async def test_a_filter_that_says_nothing_lets_all_through_that_may_be_seen(index: Index) -> None:
    """And nothing else, whatever it says."""
    await put(index, "memory/a.md", of=labelled("x"))
    await put(index, "MEMORY.md", kind=Kind.CURATED, of=labelled("x"))
    assert await let_through(index, SearchFilter()) == ["memory/a.md", "MEMORY.md"]
    for wanted in (
        SearchFilter(),
        SearchFilter(tags=("x",)),
        SearchFilter(paths=("*.md",)),
        SearchFilter(until_s=9, until_ns=9),
    ):
        assert await let_through(index, wanted, frozenset({Kind.NOTE})) == ["memory/a.md"]


async def test_tags_are_of_a_note_with_all_below_them(index: Index) -> None:
    """Of several each must be there; one that only begins alike is another."""
    await put(index, "memory/a.md", of=labelled("Work", "home"))
    await put(index, "memory/b.md", of=labelled("work/mail"))
    await put(index, "memory/c.md", of=labelled("workshop", "work0"))
    await put(
        index,
        "memory/d.md",
        of=(Label(LabelKind.LINK, "work", "work"), Label(LabelKind.PROPERTY, "work", "work")),
    )
    assert await let_through(index, SearchFilter(tags=("work",))) == ["memory/a.md", "memory/b.md"]
    assert await let_through(index, SearchFilter(tags=("work/mail",))) == ["memory/b.md"]
    assert await let_through(index, SearchFilter(tags=("work", "home"))) == ["memory/a.md"]
    assert await let_through(index, SearchFilter(tags=("nowhere",))) == []


async def test_properties_are_equal_or_not(index: Index) -> None:
    """To one of the values that a list has."""
    await put(index, "memory/a.md", of=labelled(status="done", owner="ann"))
    await put(
        index, "memory/b.md", of=(*labelled(status="open"), Label(LabelKind.PROPERTY, "status", "done"))
    )
    await put(index, "memory/c.md", of=labelled("done", status="done!"))
    assert await let_through(index, SearchFilter(properties=(("status", "done"),))) == [
        "memory/a.md",
        "memory/b.md",
    ]
    both = SearchFilter(properties=(("status", "done"), ("owner", "ann")))
    assert await let_through(index, both) == ["memory/a.md"]


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (("memory/ops/**",), ["memory/ops/a.md", "memory/ops/old/b.md"]),
        (("memory/ops/*.md",), ["memory/ops/a.md"]),
        (("memory/ops",), ["memory/ops/a.md", "memory/ops/old/b.md"]),
        (("old/",), ["memory/ops/old/b.md"]),
        (("a.md",), ["memory/ops/a.md"]),
        (("c.md", "a.md"), ["memory/ops/a.md", "/notes/c.md"]),
        (("/notes/*",), ["/notes/c.md"]),
        (("memory/**", "!old/"), ["memory/ops/a.md"]),
        (("!memory/**",), ["/notes/c.md"]),
        (("Memory/**",), []),
    ],
)
async def test_a_path_is_matched_as_exclude_matches_it(
    index: Index, globs: tuple[str, ...], expected: list[str]
) -> None:
    """One of several globs is enough, and none may that begins with an exclamation mark."""
    for path in ("memory/ops/a.md", "memory/ops/old/b.md", "/notes/c.md"):
        await put(index, path)
    assert await let_through(index, SearchFilter(paths=globs)) == expected


@pytest.mark.parametrize(
    ("globs", "expected"),
    [
        (("memory/proj [x]/",), ["memory/proj [x]/a.md", "memory/proj [x]/b.md"]),
        (("memory/proj [x]/*a.md",), ["memory/proj [x]/a.md"]),
        (("memory/proj [x]/a.md", "proj x/"), ["memory/proj [x]/a.md", "memory/proj x/a.md"]),
        (("memory/**", "!proj [x]/"), ["memory/proj x/a.md", "memory/proj y/a.md"]),
        (("memory/proj [xy]/",), ["memory/proj x/a.md", "memory/proj y/a.md"]),
        (("memory/proj [!x]/",), ["memory/proj y/a.md"]),
    ],
)
async def test_brackets_stand_for_themselves_where_a_file_has_them(
    index: Index, globs: tuple[str, ...], expected: list[str]
) -> None:
    """A path may be given as it is; what is not there as it is written is a glob, and what is hidden is not there."""
    for path in ("memory/proj [x]/a.md", "memory/proj [x]/b.md", "memory/proj x/a.md", "memory/proj y/a.md"):
        await put(index, path)
    await put(index, "memory/proj [xy]/MEMORY.md", kind=Kind.CURATED)
    kinds = frozenset({Kind.NOTE})
    assert await let_through(index, SearchFilter(paths=globs), kinds) == expected


async def test_what_is_of_any_second_of_a_time_is_let_through(index: Index) -> None:
    """Both ends are included."""
    await put(index, "day", day="1970-01-03")
    await put(index, "month", day="1970-01")
    assert await let_through(index, SearchFilter(since_s=3 * DAY_S - 1, since_ns=0)) == ["day", "month"]
    assert await let_through(index, SearchFilter(since_s=3 * DAY_S, since_ns=0)) == ["month"]
    assert await let_through(index, SearchFilter(until_s=2 * DAY_S, until_ns=0)) == ["day", "month"]
    assert await let_through(index, SearchFilter(until_s=2 * DAY_S - 1, until_ns=0)) == ["month"]
    within = SearchFilter(since_s=2 * DAY_S + 5, until_s=2 * DAY_S + 6, since_ns=0, until_ns=0)
    assert await let_through(index, within) == ["day", "month"]


async def test_a_file_that_says_nothing_is_of_when_it_was_written(index: Index) -> None:
    """By the clock of the disk; one that was written a moment before it was read by the change of its inode."""
    await put(index, "old", mtime_ns=DAY_NS)
    await put(index, "new", mtime_ns=5 * DAY_NS)
    await put(index, "just now", mtime_ns=-1)
    connection = index.database
    await connection.write(
        lambda one: one.execute("UPDATE files SET ctime_ns = ? WHERE path = 'just now'", (9 * DAY_NS,))
    )
    assert await let_through(index, SearchFilter(since_s=10**9, since_ns=5 * DAY_NS)) == ["new", "just now"]
    assert await let_through(index, SearchFilter(until_s=0, until_ns=5 * DAY_NS)) == ["old", "new"]


async def test_the_lines_of_what_is_let_through_are_told_by_file(index: Index) -> None:
    """From the first to the last of each chunk; of files that say something else, nothing."""
    for path, tags in (("memory/a.md", labelled("work")), ("memory/b.md", ())):
        change = FileChange(
            found_file(path), path.encode(), [chunk_of("one"), chunk_of("two\nthree", 4)], labels=tags
        )
        await index.replace_all([change], {}, frozenset())

    def look(connection: apsw.Connection) -> list[dict[str, list[tuple[int, int]]]]:
        asked = (SearchFilter(), SearchFilter(tags=("work",)), SearchFilter(tags=("home",)))
        return [labels.allowed_lines(connection, wanted, EVERY_KIND) for wanted in asked]

    lines = [(1, 1), (4, 5)]
    assert await index.database.read(look) == [
        {"memory/a.md": lines, "memory/b.md": lines},
        {"memory/a.md": lines},
        {},
    ]


async def test_the_newest_come_first_as_many_as_are_wanted(index: Index) -> None:
    """By the date that a note has, or else that of its file; of the same day by their ids."""
    at_ns = 1_769_904_000 * 1_000_000_000  # 1 February 2026
    await put(index, "memory/a.md", day="2026-01-01", of=labelled("work"))
    await put(index, "memory/b.md", day="2026-03-01")
    await put(index, "memory/c.md", mtime_ns=at_ns, of=labelled("work"))
    await put(index, "memory/d.md", day="2026-03-01")

    def look(connection: apsw.Connection) -> list[list[str]]:
        texts = dict(connection.execute("SELECT id, text FROM chunks"))
        return [
            [texts[one][7] for one in labels.newest(connection, limit, wanted, EVERY_KIND)]
            for limit, wanted in (
                (9, SearchFilter()),
                (3, SearchFilter()),
                (9, SearchFilter(tags=("work",))),
            )
        ]

    assert await index.database.read(look) == [["b", "d", "c", "a"], ["b", "d", "c"], ["c", "a"]]


async def test_labels_are_those_of_the_last_reading(index: Index) -> None:
    """They go with the file, and come anew with what it says."""
    await put(index, "memory/a.md", of=labelled("old", "kept"))
    await put(index, "memory/a.md", of=labelled("new", "kept"))
    assert await let_through(index, SearchFilter(tags=("old",))) == []
    assert await let_through(index, SearchFilter(tags=("new", "kept"))) == ["memory/a.md"]
    await index.remove(["memory/a.md"])
    left = await index.database.read(lambda one: one.execute("SELECT count(*) FROM labels").get)
    assert left == 0


async def test_a_date_changes_without_the_text(index: Index) -> None:
    """The chunk is the same, with its vector; it is of another day."""
    await put(index, "memory/a.md", day="2026-02-09")
    await put(index, "memory/a.md", day="2026-02-10")
    tenth = dated("2026-02-10")
    assert isinstance(tenth, TimeSpan)
    assert await let_through(index, SearchFilter(since_s=tenth.as_seconds[0], since_ns=0)) == ["memory/a.md"]


@pytest.mark.parametrize(
    ("properties", "expected"),
    [
        ({}, None),
        ({"status": "done"}, None),
        ({"status": "superseded"}, ""),
        ({"状态": "已归档"}, ""),
        ({"superseded-by": "memory/b.md"}, "memory/b.md"),
        ({"status": "archived", "replaced_by": "[[b]]"}, "[[b]]"),
        ({"kind": "archived"}, None),
    ],
)
async def test_a_chunk_tells_what_its_note_says_replaced_it(
    index: Index, properties: dict[str, str], expected: str | None
) -> None:
    """A tag of the same name tells nothing."""
    await put(index, "memory/a.md", of=labelled("superseded", **properties))
    [stored] = (await index.read(lambda reader: reader.texts([ChunkId(1)]))).values()
    assert stored.superseded == expected


async def test_tags_and_links_are_counted_by_notes(index: Index) -> None:
    """Of what may be seen, the most frequent first; a link that leads to no note says so."""

    def links(*names: str) -> tuple[Label, ...]:
        return tuple(Label(LabelKind.LINK, name.lower(), name) for name in names)

    await put(index, "memory/a.md", of=(*labelled("Work", "home", status="done"), *links("Plan", "b")))
    await put(index, "memory/b.md", of=(*labelled("work"), *links("plan", "projects/Plan", "other/plan")))
    await put(index, "memory/projects/plan.md", of=labelled("work/mail"))
    await put(index, "MEMORY.md", kind=Kind.CURATED, of=(*labelled("work", "secret"), *links("b.md")))
    counts = await index.label_counts(EVERY_KIND, 10)
    assert [(one.name, one.notes) for one in counts.tags] == [
        ("Work", 3), ("home", 1), ("secret", 1), ("work/mail", 1),
    ]  # fmt: skip
    assert [(one.name, one.notes, one.is_missing) for one in counts.links] == [
        ("Plan", 2, False), ("b", 1, False), ("b.md", 1, False), ("other/plan", 1, True), ("projects/Plan", 1, False),
    ]  # fmt: skip
    seen = await index.label_counts(frozenset({Kind.NOTE}), 2)
    assert [(one.name, one.notes) for one in seen.tags] == [("Work", 2), ("home", 1)]
    assert [one.name for one in seen.links] == ["Plan", "b"]
    assert seen.omitted == 1 + 2
