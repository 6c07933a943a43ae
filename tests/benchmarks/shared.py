"""Shared memories by the thousand on one server: how long searches take, how fast notes are published, how much room a chunk needs.

    python -m tests.benchmarks.shared --directory D [--chunks N]

makes a server in D with 1,000 memories, most of them small, a few large, and then measures it as members see it: with their
roles, the real searcher and the real publisher. A directory that has been filled is measured again. Texts are paragraphs of
words with the frequencies of a language, vectors are of 384 dimensions around topics; all that is stored has the form of what a
daemon publishes. Postings are packed here, everything else is made by the server.
"""

import argparse
import asyncio
import math
import os
import re
import statistics
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg

from memd.config.settings import AgentSettings
from memd.domain_types import DegradedPart, Kind
from memd.postgres import administration
from memd.postgres.binary_vectors import use_vectors
from memd.postgres.connection import connect
from memd.postgres.mirror import Mirror
from memd.postgres.nearest import NearestQuery
from memd.postgres.packed_postings import TermPostings, term_id
from memd.postgres.shared_index import SharedIndex
from memd.postgres.snapshots import ServerSnapshot, SharedConnections
from memd.providers.provider import Calibration, Vector
from memd.search.searcher import Searcher
from memd.store.embedding_cache import Space
from memd.store.published_files import (
    TERMS_VERSION,
    PublishedChunk,
    PublishedFile,
    PublishedPart,
    term_reader,
)
from tests.otheruser import NOBODY
from tests.postgres_server import PostgresServer

SPACE: Space = ("local", "benchmark", "key")
DIMENSIONS = 384
MEMORIES = 1_000
LARGE = 100_000  # chunks of each of the large memories, which have two fifths of all
MIDDLE = 50  # memories, which have three tenths of all; the others share the rest
PARAGRAPHS, WORDS, VOCABULARY, TOPICS = 4_000, 60, 60_000, 200
COMMONEST = 50  # words, which stand for those that the parser of questions leaves out
A_CHUNK = 4  # paragraphs, each of which is a part
A_FILE = 4  # chunks
SEGMENT = 5_000  # chunks of a large segment
QUESTIONS = 60
PUBLISHED = 150  # files
SETTINGS = (
    *("shared_buffers=3GB", "maintenance_work_mem=1GB", "max_wal_size=8GB", "checkpoint_timeout=30min"),
    *("effective_cache_size=12GB", "max_parallel_maintenance_workers=0", "autovacuum_naptime=60s"),
)


class Paragraphs:
    """Of which all chunks are made: their words, terms and vectors, the same in each run."""

    def __init__(self) -> None:
        random = np.random.default_rng(7)
        reader = term_reader()
        ranks = random.zipf(1.1, (PARAGRAPHS, WORDS)) % VOCABULARY
        self.texts = [" ".join(f"w{rank:x}q" for rank in row) for row in ranks.tolist()]
        topics = random.standard_normal((TOPICS, DIMENSIONS))
        vectors = topics[random.integers(TOPICS, size=PARAGRAPHS)]
        vectors = vectors + 0.8 * random.standard_normal(vectors.shape)
        self.vectors = (vectors / np.linalg.norm(vectors, axis=1, keepdims=True)).astype("<f4")
        self.terms: list[np.ndarray] = []
        for text in self.texts:
            terms, count = reader.terms((text, ""))
            row = np.empty(count, np.int64)
            for term, places in terms.items():
                row[places] = term_id(term)
            self.terms.append(row)


class Memory(msgspec.Struct, frozen=True):
    """One of those that are measured or only there."""

    name: str
    chunks: int


def memories(chunks: int) -> list[Memory]:
    """All of them, the largest first."""
    sizes = [LARGE] * (2 * chunks // 5 // LARGE) + [3 * chunks // 10 // MIDDLE] * MIDDLE
    rest = MEMORIES - len(sizes)
    sizes += [(chunks - sum(sizes)) // rest] * rest
    return [Memory(f"team/{number}", size) for number, size in enumerate(sizes)]


def segments(chunks: int) -> Iterator[int]:
    """The sizes of the segments of a memory, as they are when files came one after the other."""
    while chunks > SEGMENT:
        yield SEGMENT
        chunks -= SEGMENT
    while chunks:
        yield (taken := math.ceil(chunks / 2))
        chunks -= taken


def fill(admin_dsn: str, chunks: int) -> None:
    """Make the memories."""
    paragraphs = Paragraphs()
    with connect(admin_dsn) as connection:
        administration.carry_out(connection)
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute("SET session_replication_role = replica")  # all references are right
        connection.execute("SET search_path = memd, public")
        connection.execute(
            "CREATE TABLE public.paragraphs (id int PRIMARY KEY, text text, vector vector, half bytea)"
        )
        with connection.cursor().copy("COPY public.paragraphs FROM STDIN") as copy:
            for number, (text, vector) in enumerate(zip(paragraphs.texts, paragraphs.vectors, strict=True)):
                copy.write_row((number, text, str(vector.tolist()), vector.astype("<f2").tobytes()))
        begun = time.monotonic()
        for number, memory in enumerate(memories(chunks)):
            _fill_memory(connection, memory, paragraphs, np.random.default_rng(number))
            if number < 10 or number % 100 == 0:
                _say(f"{memory.name}: {memory.chunks:,} chunks; {time.monotonic() - begun:.0f} s")
        connection.execute("VACUUM (ANALYZE)")
        connection.execute("CREATE TABLE public.filled ()")


def _fill_memory(
    connection: "psycopg.Connection[Any]", memory: Memory, paragraphs: Paragraphs, random: np.random.Generator
) -> None:
    row = connection.execute(
        "INSERT INTO memories (name, next_id, terms, provider, model, space_key, dimensions, has_parts, chunks, tokens)"
        " VALUES (%s, 0, %s, %s, %s, %s, %s, true, %s, %s) RETURNING tenant",
        (memory.name, TERMS_VERSION, *SPACE, DIMENSIONS, memory.chunks, memory.chunks * A_CHUNK * WORDS),
    ).fetchone()
    assert row is not None
    tenant = row[0]
    connection.execute("INSERT INTO members VALUES (%s, %s, true)", (tenant, f"memd_user_of_{tenant}"))
    files = math.ceil(memory.chunks / A_FILE)
    # The ids of a file and its chunks follow each other, as a publisher gives them.
    ids = np.arange(memory.chunks)
    chunk_ids = ids + ids // A_FILE + 2
    made_of = random.integers(PARAGRAPHS, size=(memory.chunks, A_CHUNK))
    connection.execute("CREATE TEMP TABLE made (id bigint, file_id bigint, p int[])")
    with connection.cursor().copy("COPY made FROM STDIN") as copy:
        for chunk_id, number, some in zip(chunk_ids.tolist(), ids.tolist(), made_of.tolist(), strict=True):
            copy.write_row((chunk_id, number // A_FILE * (A_FILE + 1) + 1, some))
    values = {"t": tenant, "words": A_CHUNK * WORDS}
    connection.execute(
        "INSERT INTO chunks (tenant, id, file_id, kind, start_line, end_line, text, context, hash, tokens)"
        " SELECT %(t)s, made.id, file_id, 0, 1, 4, string_agg(q.text, E'\\n' ORDER BY n), '', sha256(made.id::text::bytea),"
        " %(words)s FROM made, unnest(p) WITH ORDINALITY AS u (one, n) JOIN public.paragraphs q ON q.id = one"
        " GROUP BY made.id, file_id ORDER BY made.id",
        values,
    )
    connection.execute(
        "INSERT INTO files (tenant, id, path, kind, written_ns, digest, content)"
        " SELECT tenant, file_id, 'memory/' || file_id || '.md', 0, 1770000000000000000, '', string_agg(text, E'\\n' ORDER BY id)"
        " FROM chunks WHERE tenant = %(t)s GROUP BY tenant, file_id ORDER BY file_id",
        values,
    )
    connection.execute(
        "INSERT INTO vectors (tenant, chunk_id, kind, vector)"
        " SELECT %(t)s, made.id, 0, l2_normalize(avg(q.vector)) FROM made, unnest(p) AS one"
        " JOIN public.paragraphs q ON q.id = one GROUP BY made.id ORDER BY made.id",
        values,
    )
    connection.execute(
        "INSERT INTO parts (tenant, chunk_id, seq, first, last, vector)"
        " SELECT %(t)s, made.id, n, 300 * (n - 1), 300 * n, q.half FROM made, unnest(p) WITH ORDINALITY AS u (one, n)"
        " JOIN public.paragraphs q ON q.id = one ORDER BY made.id, n",
        values,
    )
    connection.execute("DROP TABLE made")
    begin = 0
    for size in segments(memory.chunks):
        some = slice(begin, begin + size)
        _fill_segment(connection, tenant, chunk_ids[some], made_of[some], paragraphs)
        begin += size
    connection.execute(
        "UPDATE memories SET next_id = %s WHERE tenant = %s", (files * (A_FILE + 1) + 2, tenant)
    )


def _fill_segment(
    connection: "psycopg.Connection[Any]",
    tenant: int,
    ids: np.ndarray,
    made_of: np.ndarray,
    paragraphs: Paragraphs,
) -> None:
    """The postings of some chunks."""
    terms = np.concatenate([paragraphs.terms[one] for one in made_of.ravel().tolist()])
    chunk_ids = np.repeat(ids, A_CHUNK * WORDS)
    places = np.tile(np.arange(A_CHUNK * WORDS), len(ids))
    order = np.argsort(terms, kind="stable")
    terms, chunk_ids, places = terms[order], chunk_ids[order], places[order]
    is_first = np.append(True, (terms[1:] != terms[:-1]) | (chunk_ids[1:] != chunk_ids[:-1]))
    begins = np.flatnonzero(is_first)
    counts = np.diff(np.append(begins, len(terms)))
    postings = TermPostings(
        terms[begins], chunk_ids[begins], counts, np.full(len(begins), A_CHUNK * WORDS), places
    )
    first, last = int(ids[0]), int(ids[-1])
    connection.execute(
        "INSERT INTO segments (tenant, first, last, kind, bits, chunks) VALUES (%s, %s, %s, 0, %s, %s)",
        (tenant, first, last, postings.bits, len(ids)),
    )
    with connection.cursor().copy("COPY postings FROM STDIN (FORMAT BINARY)") as copy:
        copy.set_types(["int8", "int8", "int4", "bytea", "bytea"])
        for bucket in postings.packed(first):
            copy.write_row((tenant, first, bucket.bucket, bucket.rows, bucket.places))


def upgrade(admin_dsn: str) -> None:
    """Bring tables of an older version up to date; indexes of vectors are made when that is measured."""
    with connect(admin_dsn) as connection:
        for step in administration.plan(connection):
            if not step.is_apart:
                connection.execute(step.sql)


def forget_indexes(admin_dsn: str) -> None:
    """Have searches use no index of vectors that an earlier run has made."""
    with psycopg.connect(admin_dsn) as connection:
        connection.execute("DELETE FROM memd.vector_indexes")


def index_vectors(admin_dsn: str, memory: Memory) -> str:
    """Make the index of the vectors of one large memory; to make all of them would only take longer."""
    begun = time.monotonic()
    with connect(admin_dsn) as connection:
        steps = [
            one for one in administration.plan(connection) if re.search(f" of {memory.name}(,|$)", one.what)
        ]
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        connection.execute(f"SET ROLE {administration.OWNER}")
        for step in steps:
            connection.execute(step.sql)
    return f"{'; '.join(step.what for step in steps)}: {time.monotonic() - begun:.0f} s"


class PlainEmbedder:
    """Knows the vectors of its questions."""

    provider_name, model_name = SPACE[:2]

    def __init__(self, vectors: dict[str, Vector]) -> None:
        self._vectors = vectors

    async def embed_query(self, text: str, space: Space) -> tuple[Vector, Calibration] | DegradedPart:
        """See QueryEmbedder.embed_query."""
        assert space == SPACE
        return self._vectors[text], Calibration(0.1, 0.9)

    def unavailable(self, space: Space | None) -> DegradedPart | None:
        """See QueryEmbedder.unavailable."""
        return None


def questions(paragraphs: Paragraphs, seed: int) -> dict[str, Vector]:
    """Eight words of a paragraph but the commonest, which memd does not look for either, and a vector near its."""
    random = np.random.default_rng(seed)
    found = {}
    for one in random.choice(PARAGRAPHS, QUESTIONS, replace=False).tolist():
        words = [word for word in paragraphs.texts[one].split() if int(word[1:-1], 16) >= COMMONEST][:8]
        vector = paragraphs.vectors[one] + 0.02 * random.standard_normal(DIMENSIONS)
        found[" ".join(words)] = (vector / np.linalg.norm(vector)).astype(np.float32)
    return found


async def measure_searches(admin_dsn: str, directory: Path, memory: Memory, paragraphs: Paragraphs) -> str:
    """Searches of one memory by a member that may read no other."""
    member = "reads_" + memory.name.rpartition("/")[2]
    with connect(admin_dsn) as connection:
        made = administration.grant(connection, member, memory.name, may_write=False, new_password=True)
    dsn_file = directory / f"{member}.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(made.dsn or "")
    connections = SharedConnections(dsn_file, memory.name, 60.0)
    index = SharedIndex(connections)
    await index.refresh()
    asked = questions(paragraphs, 1)
    searcher = Searcher(index, AgentSettings(workspace=directory), PlainEmbedder(asked))
    with psycopg.connect(admin_dsn) as connection:
        pids = [
            pid
            for (pid,) in connection.execute(
                "SELECT pid FROM pg_stat_activity WHERE usename = %s", (administration.role_of(member),)
            )
        ]
    trips = 0
    ask = ServerSnapshot.ask

    def counted(self: ServerSnapshot, *queries: Any, **options: Any) -> Any:
        nonlocal trips
        trips += 1
        return ask(self, *queries, **options)

    took: list[float] = []
    here: list[float] = []
    there = 0.0
    found = 0
    ServerSnapshot.ask = counted  # type: ignore[method-assign]
    try:
        for number, text in enumerate([*list(asked)[:5], *asked]):
            begun, cpu = time.perf_counter(), time.process_time()
            answer = await searcher.search(text, kinds=frozenset(Kind), max_results=10, min_score=0.0)
            if number >= 5:
                took.append(1000 * (time.perf_counter() - begun))
                here.append(1000 * (time.process_time() - cpu))
            else:
                trips = 0
                there = _cpu_ms(pids)
            found += len(answer.hits)
            assert answer.mode == "hybrid", answer.degraded
    finally:
        ServerSnapshot.ask = ask  # type: ignore[method-assign]
    there = (_cpu_ms(pids) - there) / len(took)
    connections.close()
    took.sort()
    return (
        f"{memory.chunks:>9,} chunks: search p50 {statistics.median(took):.0f} ms, p95 {took[int(0.95 * len(took))]:.0f} ms,"
        f" {statistics.median(here):.0f} ms of CPU here and {there:.0f} there, {trips / len(took):.1f} round trips, {found / (5 + len(took)):.1f} hits"
    )


def _cpu_ms(pids: Sequence[int]) -> float:
    """What processes of the server have computed."""
    found = 0
    for pid in pids:
        fields = Path(f"/proc/{pid}/stat").read_text("utf-8").rpartition(")")[2].split()
        found += int(fields[11]) + int(fields[12])
    return 1000 * found / os.sysconf("SC_CLK_TCK")


def measure_recall(admin_dsn: str, memory: Memory, paragraphs: Paragraphs) -> str:
    """How many of the nearest the index of a large memory finds."""
    shares: dict[int, list[float]] = {10: [], 200: []}
    took: dict[int | None, list[float]] = {None: [], DIMENSIONS: []}
    with psycopg.connect(admin_dsn) as connection:
        row = connection.execute(
            "SELECT tenant FROM memd.memories WHERE name = %s", (memory.name,)
        ).fetchone()
        assert row is not None
        use_vectors(connection, "memd")
        for query in questions(paragraphs, 2).values():
            found = {}
            for indexed, times in took.items():
                asked = NearestQuery(row[0], query, max(shares), [Kind.NOTE], (), [None], indexed)
                begun = time.perf_counter()
                for one in asked.statements("memd"):
                    cursor = connection.execute(one.sql, one.values, binary=one.binary)
                found[indexed] = asked.read(cursor.fetchall())[0].chunk_ids
                times.append(1000 * (time.perf_counter() - begun))
            for first, each in shares.items():
                each.append(len({*found[None][:first]} & {*found[DIMENSIONS][:first]}) / first)
    return (
        f"{memory.chunks:>9,} chunks: of the nearest {', '.join(f'{n} {statistics.mean(each):.3f}' for n, each in shares.items())}"
        f" by the index, in {statistics.median(took[DIMENSIONS]):.0f} ms; compared one by one in"
        f" {statistics.median(took[None]):.0f} ms"
    )


def measure_publishing(admin_dsn: str, directory: Path, memory: Memory, paragraphs: Paragraphs) -> str:
    """Notes of four chunks, one in each transaction."""
    member = "writes_" + memory.name.rpartition("/")[2]
    with connect(admin_dsn) as connection:
        made = administration.grant(connection, member, memory.name, may_write=True, new_password=True)
    dsn_file = directory / f"{member}.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(made.dsn or "")
    mirror = Mirror(dsn_file, memory.name, "benchmark")
    mirror.open()
    random = np.random.default_rng(time.time_ns())
    files = [_note(paragraphs, random, number) for number in range(PUBLISHED)]
    begun, cpu = time.perf_counter(), time.process_time()
    for file in files:
        lines = [line for chunk in file.chunks for line in chunk.text.split("\n")]
        mirror.put(file, lines, file.digests(lines, SPACE))
    took, cpu = time.perf_counter() - begun, time.process_time() - cpu
    begun = time.perf_counter()
    for file in files:
        mirror.drop(file.path)
    dropped = time.perf_counter() - begun
    mirror.close()
    return (
        f"{memory.chunks:>9,} chunks: {PUBLISHED / took:.0f} notes ({A_FILE * PUBLISHED / took:.0f} chunks) published a second,"
        f" {1000 * cpu / PUBLISHED:.1f} ms of CPU here for each; {PUBLISHED / dropped:.0f} deleted a second"
    )


def _note(paragraphs: Paragraphs, random: np.random.Generator, number: int) -> PublishedFile:
    chunks = []
    for place in range(A_FILE):
        some = random.integers(PARAGRAPHS, size=A_CHUNK).tolist()
        texts = [paragraphs.texts[one] for one in some]
        vector = paragraphs.vectors[some].mean(axis=0)
        parts = tuple(
            PublishedPart(at, at + len(text), paragraphs.vectors[one].astype("<f2").tobytes())
            for at, one, text in zip(range(0, 400 * A_CHUNK, 400), some, texts, strict=True)
        )
        chunks.append(
            PublishedChunk(
                *(
                    place * A_CHUNK + 1,
                    (place + 1) * A_CHUNK,
                    "\n".join(texts),
                    "",
                    random.bytes(32),
                    None,
                    None,
                    None,
                    None,
                ),
                (vector / np.linalg.norm(vector)).astype("<f4").tobytes(),
                parts,
            )
        )
    path = f"memory/new/{random.integers(1 << 60)}-{number}.md"
    return PublishedFile(path, Kind.NOTE, b"", 1, None, (), tuple(chunks))


def sizes(admin_dsn: str) -> Iterator[str]:
    """How much room tables and indexes need for each chunk."""
    with psycopg.connect(admin_dsn, autocommit=True) as connection:
        row = connection.execute("SELECT count(*) FROM memd.chunks").fetchone()
        assert row is not None
        whole = 0.0
        for name, table, indexes in connection.execute(
            "SELECT relname, pg_table_size(oid), pg_indexes_size(oid) FROM pg_class"
            " WHERE relnamespace = 'memd'::regnamespace AND relkind = 'r' ORDER BY 2 DESC"
        ):
            if (table + indexes) / row[0] >= 1:
                yield f"{name}: {table / row[0]:,.0f} bytes a chunk, and indexes {indexes / row[0]:,.0f}"
            whole += (table + indexes) / row[0]
        yield f"all: {whole:,.0f} bytes a chunk, of {row[0]:,}"


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


def main() -> None:
    """Measure, and fill the directory before if nothing is in it."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--directory", type=Path, required=True)
    parser.add_argument("--chunks", type=int, default=1_000_000)
    arguments = parser.parse_args()
    directory: Path = arguments.directory.resolve()
    directory.mkdir(exist_ok=True)
    if os.getuid() == 0:
        os.chown(directory, NOBODY, NOBODY)
    server = PostgresServer(directory, SETTINGS)
    try:
        admin = server.dsn("postgres")
        with psycopg.connect(admin) as connection:
            is_filled = connection.execute("SELECT to_regclass('public.filled')").fetchone() != (None,)
        if not is_filled:
            fill(admin, arguments.chunks)
        paragraphs = Paragraphs()
        for line in sizes(admin):
            _say(line)
        with psycopg.connect(admin) as connection:
            known = [
                Memory(*row)
                for row in connection.execute("SELECT name, chunks FROM memd.memories ORDER BY tenant")
            ]
        large = [one for one in known if one.chunks >= LARGE]
        upgrade(admin)
        forget_indexes(admin)
        for memory in (known[-1], known[MEMORIES // 50], *large[:1]):
            _say(asyncio.run(measure_searches(admin, directory, memory, paragraphs)))
        for memory in large[:1]:
            _say(index_vectors(admin, memory))
            _say(asyncio.run(measure_searches(admin, directory, memory, paragraphs)))
            _say(measure_recall(admin, memory, paragraphs))
        for memory in (known[-2], *large[:1]):
            _say(measure_publishing(admin, directory, memory, paragraphs))
        for line in sizes(admin):
            _say(line)
    finally:
        server.stop()


if __name__ == "__main__":
    main()
