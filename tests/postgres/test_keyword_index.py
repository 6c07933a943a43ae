"""The keyword index of a server ranks as one of this machine does, whatever was published, changed and taken out in what order."""

import random
from collections.abc import Iterator
from typing import Any

import psycopg
import pytest

from memd.domain_types import ChunkId, Kind
from memd.postgres import keyword_index
from memd.postgres.keyword_index import (
    BUCKETS,
    SEGMENTS,
    AskedPhrases,
    FoundTerms,
    bucket_values,
    found_terms,
    terms_of,
)
from memd.store.keywords import Match
from memd.store.postings import ChunkText, Postings, occurrences
from memd.store.published_files import term_reader
from tests.bounds import shipped
from tests.postgres.conftest import member

WORDS = [
    *[
        "alpha",
        "beta",
        "gamma",
        "delta",
        "epsilon",
        "zeta",
        "eta",
        "theta",
        "部",
        "署",
        "流",
        "程",
        "3",
        "月",
        "vault",
        "mill",
    ],
    "部署",
    "3月",
]
EVERY_KIND = frozenset({Kind.NOTE, Kind.CURATED})


@pytest.mark.parametrize(
    ("stems", "terms"),
    [
        ([], []),
        (["deploi"], [(0, "deploi")]),
        (["memori", "search"], [(0, "memori"), (1, "search")]),
        (["部", "署"], [(0, "部 署")]),
        (["部", "署", "流"], [(0, "部 署"), (1, "署 流")]),
        (["3", "月", "plan"], [(0, "3 月"), (2, "plan")]),
        (["plan", "部", "署"], [(0, "plan"), (1, "部 署")]),
        (["部", "a", "署"], [(0, "部"), (1, "a"), (2, "署")]),
    ],
)
def test_a_phrase_is_the_fewest_terms_that_say_where_it_is(
    stems: list[str], terms: list[tuple[int, str]]
) -> None:
    """A pair of CJK characters stands for both of them."""
    assert terms_of(stems) == terms


@pytest.mark.parametrize(
    ("phrases", "expected"), [([], False), ([["vault"], ["mill"]], False), ([["a", "b"]], True)]
)
def test_places_are_read_only_where_a_phrase_needs_them(phrases: list[list[str]], *, expected: bool) -> None:
    """They are most of what a server would send."""
    assert AskedPhrases.of(phrases).has_sequences is expected


class _Memory:
    """A memory on the server, and the same chunks in postings of this machine."""

    def __init__(self, connection: "psycopg.Connection[Any]") -> None:
        row = connection.execute("SELECT tenant FROM memd.memories").fetchone()
        assert row is not None
        self.connection = connection
        self.tenant: int = row[0]
        self.files: dict[int, dict[int, str]] = {}
        self.kinds: dict[int, Kind] = {}
        self.next_id = 1

    def publish(self, texts: list[str], kind: Kind = Kind.NOTE) -> int:
        """Add a file with such chunks; its id."""
        file_id = self.next_id
        chunks = {file_id + 1 + number: text for number, text in enumerate(texts)}
        self.next_id += 1 + len(texts)
        reader = term_reader()
        values = {"tenant": self.tenant, "file": file_id, "kind": int(kind)}
        with self.connection.transaction():
            self.connection.execute(
                "INSERT INTO memd.files VALUES (%(tenant)s, %(file)s, %(file)s::text, %(kind)s, 0, NULL, '', '')",
                values,
            )
            for chunk_id in chunks:
                self.connection.execute(
                    "INSERT INTO memd.chunks (tenant, id, file_id, kind, start_line, end_line, text, context, hash, tokens)"
                    " VALUES (%(tenant)s, %(id)s, %(file)s, %(kind)s, 1, 1, '', '', '', 0)",
                    values | {"id": chunk_id},
                )
            read = {chunk_id: reader.terms((text, "")) for chunk_id, text in chunks.items()}
            keyword_index.add(self.connection, self.tenant, kind, read)
        self.files[file_id], self.kinds[file_id] = chunks, kind
        return file_id

    def remove(self, file_id: int) -> None:
        """Take a file out."""
        with self.connection.transaction():
            keyword_index.remove(self.connection, self.tenant, list(self.files.pop(file_id)))

    def found(
        self, phrases: list[str], limit: int, kinds: frozenset[Kind] = EVERY_KIND
    ) -> list[tuple[ChunkId, Match]]:
        """What the server finds."""
        reader = term_reader()
        asked = AskedPhrases.of([reader.stems(phrase) for phrase in phrases])
        values = bucket_values(self.tenant, asked.terms, has_sequences=asked.has_sequences)
        with self.connection.transaction():
            segments = self.connection.execute(SEGMENTS, values).fetchall()
            buckets = self.connection.execute(BUCKETS, values, binary=True).fetchall()
        here = self.here()
        found = FoundTerms(asked, found_terms(asked.terms, segments, buckets))
        return found.best(limit, kinds, len(here), self.average, [None])

    def here(self) -> Postings:
        """The chunks in postings of this machine."""
        texts = [
            ChunkText(ChunkId(chunk_id), self.kinds[file_id], text, "")
            for file_id, chunks in sorted(self.files.items())
            for chunk_id, text in chunks.items()
        ]
        made = Postings.empty()
        for start in range(0, len(texts), 500):
            made = made.with_chunks(texts[start : start + 500], term_reader())
        return made

    @property
    def average(self) -> float:
        """Tokens of a chunk."""
        lengths = self.here().lengths
        return float(lengths.mean()) if len(lengths) else 1.0

    def expected(
        self, phrases: list[str], limit: int, kinds: frozenset[Kind] = EVERY_KIND
    ) -> list[tuple[ChunkId, float, bytes]]:
        """What the postings of this machine find."""

        def ask(phrase: str) -> list[tuple[int, int]]:
            wanted = term_reader().stems(phrase)
            counts = {}
            for chunks in self.files.values():
                for chunk_id, text in chunks.items():
                    stems = term_reader().stems(text)
                    starts = range(len(stems) - len(wanted) + 1)
                    counts[chunk_id] = sum(stems[at : at + len(wanted)] == wanted for at in starts)
            return [(chunk_id, count) for chunk_id, count in counts.items() if count]

        here = self.here()
        best = here.best(occurrences(here, phrases, term_reader(), ask), limit, kinds, self.average)
        return list(zip(best.ids, best.scores, best.held, strict=True))


@pytest.fixture
def memory(admin_dsn: str) -> Iterator[_Memory]:
    """An empty one, which its publisher writes."""
    with psycopg.connect(member(admin_dsn, "alice", "alice/main"), autocommit=True) as connection:
        yield _Memory(connection)


def _texts(random_: random.Random, most: int) -> list[str]:
    return [
        " ".join(random_.choices(WORDS, k=random_.randrange(1, 30))) for _ in range(random_.randrange(most))
    ]


@pytest.mark.rows(1)
@pytest.mark.parametrize("seed", range(3))
def test_the_same_scores_as_on_this_machine(memory: _Memory, seed: int) -> None:
    """After any files that came and went: merged segments, chunks that are gone, two kinds of files, phrases, and rare words."""
    random_ = random.Random(seed)
    for number in range(120):
        if memory.files and random_.random() < 0.35:
            memory.remove(random_.choice(list(memory.files)))
        else:
            kind = Kind.CURATED if random_.random() < 0.2 else Kind.NOTE
            memory.publish([*_texts(random_, 6), f"rare{number}"], kind)
    questions = [random_.choices(WORDS, k=random_.randrange(1, 5)) for _ in range(20)]
    phrases = [[" ".join(random_.choices(WORDS, k=random_.randrange(2, 4))), "vault"] for _ in range(20)]
    for asked in (
        *questions,
        *phrases,
        ["rare7"],
        ["rare77", "rare101"],
        ["nowhere"],
        ["部 署 流"],
        ["beta beta"],
    ):
        for kinds in (EVERY_KIND, frozenset({Kind.NOTE})):
            found = memory.found(asked, 15, kinds)
            assert [(one, match.r, match.held) for one, match in found] == memory.expected(
                asked, 15, kinds
            ), asked


def test_a_few_segments_hold_many_files(memory: _Memory) -> None:
    """Merged as files come; a segment that is a quarter gone is written again, and one that is all gone is not there."""
    files = [memory.publish([f"common word{number}"] * 2) for number in range(300)]
    with memory.connection.transaction():
        chunks = memory.connection.execute("SELECT chunks, cardinality(gone) FROM memd.segments").fetchall()
    assert sum(count for count, _ in chunks) == 600
    assert len(chunks) <= 7 * 4
    for file_id in files[10:]:
        memory.remove(file_id)
    with memory.connection.transaction():
        left = memory.connection.execute("SELECT chunks, cardinality(gone) FROM memd.segments").fetchall()
        rows = memory.connection.execute(
            "SELECT count(*) FROM memd.postings WHERE segment NOT IN (SELECT first FROM memd.segments)"
        ).fetchone()
    assert sum(count - gone for count, gone in left) == 20
    assert all(gone <= shipped("memd.postgres.packed_postings.MOST_GONE") * count for count, gone in left)
    assert rows == (0,)
