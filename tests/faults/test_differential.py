"""Whatever happens to files, each answer is what the disk says or stale, and each index that of a fresh daemon."""

import shutil
from collections.abc import Iterator
from pathlib import Path
from random import Random

import apsw
import msgspec
import pytest

from memd_client.messages import Found, Hit
from tests.faults.apart import run_apart
from tests.faults.differential.judging import Judge, Tally
from tests.faults.differential.places import Places, Setting
from tests.faults.differential.steps import (
    Act,
    Change,
    Draft,
    Drawer,
    Files,
    GoOn,
    Link,
    Rename,
    Symlink,
    Write,
)
from tests.faults.differential.tables import tables, unlike
from tests.faults.differential.truth import Truth, look, token


@pytest.mark.long
def test_random_steps_make_no_difference(tmp_path: Path) -> None:
    """A short trial: edits, links, renamed directories, a root that goes, transcripts, restarts and syncs."""
    told = tmp_path / "told.json"
    run_apart(["-m", "tests.faults", "--json", str(told), "--differential", "0.001", "--seed", "44"])
    tally = msgspec.json.decode(told.read_bytes(), type=dict[str, Tally])["differential"]
    assert tally.trials == 1
    assert tally.compared > 1
    assert tally.kills > 0
    assert tally.asked > 100
    assert tally.stale < tally.asked / 3
    assert tally.idle < 10


@pytest.fixture
def places(tmp_path: Path) -> Places:
    """New ones, without a daemon."""
    made = Places(tmp_path, tmp_path / "sources", Setting())
    made.make()
    return made


@pytest.fixture
def files(places: Places) -> Iterator[Files]:
    """Those in them."""
    made = Files(places, seed=1)
    yield made
    made.close()


def where(files: Files, number: int) -> set[str]:
    """Where a token is by the disk, without the directory of the sources."""
    found = look(files.places, {}).where.get(token(number), frozenset())
    return {name.removeprefix(f"{files.places.sources}/") for name in found}


def test_what_the_disk_says(files: Files) -> None:
    """Notes are found by every name they may have; what is hidden, linked symbolically or no note is none."""
    for number, path in enumerate(
        (
            "workspace/MEMORY.md",
            "workspace/memory/a/1.md",
            "extra/LOUD.MD",
            "single/PLAN.md",
            "extra/.hidden.md",
        )
    ):
        assert files.carry_out(Write(path, number))
    assert files.carry_out(Link("extra/.hidden.md", "workspace/memory/4.md"))
    assert files.carry_out(Symlink("extra/5.md", "extra/LOUD.MD"))
    assert files.carry_out(Write("workspace/other.md", 6))
    assert files.carry_out(Write("extra/node_modules/a.md", 7))
    assert [where(files, number) for number in range(8)] == [
        {"MEMORY.md"},
        {"memory/a/1.md"},
        {"extra/LOUD.MD"},
        {"single/PLAN.md"},
        {"memory/4.md"},
        set(),
        set(),
        set(),
    ]
    files.carry_out(Rename("workspace/memory/4.md", "extra/4.md"))
    assert where(files, 4) == {"extra/4.md"}


@pytest.mark.parametrize("unnamed", [True, False])
def test_a_draft_that_is_linked_is_gone_on_with(files: Files, *, unnamed: bool) -> None:
    """Its writer holds it open beyond the name that it was made under."""
    assert files.carry_out(Draft("extra/a.md", 1, unnamed))
    assert files.carry_out(GoOn(2, close=True))
    assert not files.carry_out(GoOn(3, close=True))
    assert (where(files, 1), where(files, 2)) == ({"extra/a.md"}, {"extra/a.md"})


def test_names_of_two_unicode_forms_are_doubtful(files: Files) -> None:
    """Nothing is said of which of them is indexed."""
    files.carry_out(Write("extra/Caf\u00e9/a.md", 1))
    assert not look(files.places, {}).doubtful
    files.carry_out(Write("extra/Cafe\u0301/b.md", 2))
    assert len(look(files.places, {}).doubtful) == 2


def test_the_same_seed_draws_the_same_acts(tmp_path: Path) -> None:
    """A trial is repeated by its seed."""

    def drawn(seed: int) -> list[Act]:
        made = Places(tmp_path, tmp_path / "sources", Setting(sessions=False))
        made.make()
        files = Files(made, seed)
        drawer = Drawer(Random(seed), files)
        acts = []
        for _ in range(150):
            acts.append(drawer.draw())
            if isinstance(acts[-1].what, Change):
                files.carry_out(acts[-1].what)
        files.close()
        shutil.rmtree(made.sources)
        return acts

    assert drawn(3) == drawn(3) != drawn(4)


# --- a judge that sees nothing would agree with everything

HIT = Hit(path="memory/a.md", start_line=1, end_line=1, score=0.5, snippet=f"so {token(1)} it is")
NOTES = {"memory/a.md": (f"so {token(1)} it is",)}


@pytest.mark.parametrize(
    ("hits", "stands", "stale", "is_wrong"),
    [
        ([HIT], True, False, False),
        ([HIT], False, False, True),  # it is gone
        ([HIT], False, True, True),  # the same: it is asked again until it is right
        ([], True, False, True),  # it is not found
        ([], False, False, False),
        (
            [Hit(path="memory/b.md", start_line=1, end_line=1, score=0.5, snippet="other words")],
            False,
            False,
            True,
        ),
        (
            [Hit(path="memory/a.md", start_line=2, end_line=2, score=0.5, snippet=HIT.snippet)],
            True,
            False,
            True,
        ),
    ],
)
def test_an_answer_is_judged(
    places: Places, hits: list[Hit], *, stands: bool, stale: bool, is_wrong: bool
) -> None:
    """By what stands in the notes."""
    names = {token(1): frozenset({"memory/a.md"})} if stands else {}
    now = Truth(names, frozenset(), NOTES if stands else {}, frozenset())
    judge = Judge(places, Random(1), Tally())
    assert (judge.wrong(Found(results=hits, stale=stale), token(1), now) is not None) is is_wrong


def test_what_a_missing_root_held_may_be_shown_by_a_stale_answer_alone(places: Places) -> None:
    """It is kept, and the answer says that it may not be so."""
    hit = Hit(path=f"{places.sources}/extra/a.md", start_line=1, end_line=1, score=0.5, snippet=token(1))
    now = Truth({}, frozenset(), {}, frozenset({"extra"}))
    judge = Judge(places, Random(1), Tally())
    assert judge.wrong(Found(results=[hit], stale=True), token(1), now) is None
    assert judge.wrong(Found(results=[hit], stale=False), token(1), now) is not None


# --- tables


def index(file: Path, *, turned: bool, extra: str = "") -> Path:
    """An index of two files with a chunk each, and a table that nobody has told of."""
    connection = apsw.Connection(str(file))
    connection.execute(
        "CREATE TABLE files (id INTEGER PRIMARY KEY, path TEXT, mtime_ns INTEGER);"
        "CREATE TABLE chunks (id INTEGER PRIMARY KEY, file_id INTEGER REFERENCES files (id),"
        " start_line INTEGER, end_line INTEGER, text TEXT);"
        "CREATE TABLE postings (id INTEGER PRIMARY KEY, chunk_id INTEGER, impact INTEGER);"
        "CREATE VIRTUAL TABLE words USING fts5 (text, content = '', contentless_delete = 1);"
    )
    names = ["a.md", "b.md"][:: -1 if turned else 1]
    for number, name in enumerate(names, 1):
        connection.execute("INSERT INTO files VALUES (?, ?, ?)", (number, name, number))
        connection.execute("INSERT INTO chunks VALUES (?, ?, 1, 1, ?)", (number, number, f"text of {name}"))
        connection.execute("INSERT INTO postings VALUES (?, ?, ?)", (number, number, ord(name[0])))
        connection.execute("INSERT INTO words (rowid, text) VALUES (?, ?)", (number, name + extra))
    connection.execute("CREATE TABLE totals (name TEXT PRIMARY KEY, n INTEGER)")
    connection.execute("INSERT INTO totals VALUES ('files', ?)", (len(names),))
    connection.close()
    return file


def test_indexes_that_came_about_otherwise_are_equal(tmp_path: Path) -> None:
    """The numbers of files and chunks are no difference; the rows of any table are, and it is named."""
    one = tables(index(tmp_path / "one", turned=False), lambda _: True)
    other = tables(index(tmp_path / "other", turned=True), lambda _: True)
    assert not unlike(one, other)
    third = index(tmp_path / "third", turned=True, extra=" more")
    connection = apsw.Connection(str(third))
    connection.execute("UPDATE postings SET impact = 7 WHERE chunk_id = 1")
    [first, second] = unlike(one, tables(third, lambda _: True))
    assert first.startswith("table postings: 1 rows too many, 1 missing")
    assert second.startswith("table words: 0 rows too many, 2 missing")
    assert not unlike({}, tables(third, lambda _: False))
    connection.execute("UPDATE totals SET n = n + 1")
    connection.close()
    assert unlike(tables(third, lambda _: False), {}) == [
        "table totals: 1 rows too many, 0 missing\n  + ('the number of files is not 3',)"
    ]
