"""What one edit costs does not grow with the index: no statement of it goes through all files, chunks, parts or vectors."""

import re
from pathlib import Path

import apsw
import msgspec
import pytest

from memd.domain_types import Chunk, Kind
from memd.embedding.passage_queue.agent_backlog import IndexToEmbed
from memd.store.embedding_cache import EmbeddingStore
from memd.store.index import Index
from tests.embedding.passage_queue.queues import FINGERPRINT, queue_of, running
from tests.fakes import HashingProvider
from tests.store.conftest import chunk_of, found_file

# Indexes of nothing but what has no vector, or none for good.
OF_WHAT_WAITS = ("chunks_waiting", "chunks_set_aside", "parts_waiting")
TABLES = r"(files|chunks|parts|cache|set_aside|sessions|turns|tallies|labels)"


def cut(name: str, lines: range) -> Chunk:
    """A chunk of two parts."""
    text = "\n".join(f"- {name} says a few words about matter number {n}" for n in lines)
    return msgspec.structs.replace(chunk_of(text), parts=((0, len(text) // 2), (len(text) // 2, len(text))))


def scans(file: Path, statements: set[str]) -> list[str]:
    """The steps of statements that look at each row of a table, or of an index of it."""
    connection = apsw.Connection(str(file))
    found: list[str] = []
    for sql in statements:
        if not re.match(r"\s*(SELECT|INSERT|UPDATE|DELETE)\b", sql) or re.search(
            r"\b(keywords|vectors)", sql
        ):
            continue
        marks = [None] * sql.count("?")
        steps = [str(row[3]) for row in connection.execute(f"EXPLAIN QUERY PLAN {sql}", marks)]
        found += [
            f"{step}: {sql}"
            for step in steps
            if re.match(rf"SCAN {TABLES}\b", step) and not step.endswith(OF_WHAT_WAITS)
        ]
    connection.close()
    return found


async def test_no_statement_of_an_edit_goes_through_a_table(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """From the look whether a file has changed until its vectors are stored, and the counts of a status."""
    told: dict[str, set[str]] = {"main": set(), "embeddings": set()}

    def listen(connection: apsw.Connection) -> None:
        def note(_: apsw.Cursor, sql: str, __: object) -> bool:
            told.get(Path(connection.filename).stem, set()).add(sql)
            return True

        connection.exec_trace = note

    monkeypatch.setattr(apsw, "connection_hooks", [listen])
    cache = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await cache.open()
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(msgspec.structs.replace(FINGERPRINT, parts=True))
    queue = queue_of(HashingProvider(), cache)

    async def edit(name: str, lines: range) -> None:
        await index.known([name])
        await index.replace(found_file(name), name.encode(), [cut(name, lines)], {}, frozenset())
        queue.serve(IndexToEmbed("main", index, use_cache=True))
        assert await queue.wait_for(index) == (0, None)
        await index.waiting_hashes()

    async with running(queue):
        for number in range(20):
            await edit(f"memory/{number}.md", range(4))
        for seen in told.values():
            seen.clear()
        await edit("memory/7.md", range(5))
        await edit("memory/new.md", range(5))
    monkeypatch.undo()
    for name, statements in told.items():
        assert len(statements) > 4
        assert scans(tmp_path / f"{name}.sqlite", statements) == []
    await index.close()
    await cache.close()


async def test_the_totals_are_true_whatever_comes_and_goes(tmp_path: Path) -> None:
    """Files that are new, changed, of another kind, taken out, and turned back; a check finds one that is not."""
    index = Index(tmp_path / "main.sqlite")
    await index.open()
    await index.adopt(msgspec.structs.replace(FINGERPRINT, parts=True))
    for number in range(6):
        name = f"memory/{number}.md"
        chunks = [cut(name, range(n, n + 2)) for n in range(number)]
        await index.replace(found_file(name), b"1", chunks, {}, frozenset())
    await index.replace(found_file("memory/5.md"), b"2", [cut("x", range(2))], {}, frozenset())
    await index.replace(
        found_file("memory/4.md", kind=Kind.CURATED), b"2", [cut("y", range(2))], {}, frozenset()
    )
    await index.remove(["memory/3.md", "memory/none.md"])
    counts = await index.counts()
    assert (counts.files, counts.chunks, counts.held) == (5, 1 + 2 + 1 + 1, 3 * 5)
    await index.database.check()
    await index.close()
    other = apsw.Connection(str(index.file))
    other.execute("UPDATE totals SET n = n + 1 WHERE name = 'parts'")
    other.close()
    again = Index(index.file)
    await again.open()
    with pytest.raises(Exception, match="the number of parts is not 11"):
        await again.database.check()
    await again.close()
