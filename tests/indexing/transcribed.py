"""An index of transcripts without a daemon: what it holds of them, and what a fresh one would."""

from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import apsw

from memd.config.settings import Chunking, Redact
from memd.indexing.index_notes import AppliedChanges
from memd.indexing.index_transcripts import apply_sessions
from memd.indexing.rules import IndexingRules
from memd.redact.redactor import Redactor
from memd.runtime.threads import Threads
from memd.sources.scan import scan
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.memory_paths import Root, SessionPaths

REDACTOR = Redactor(Redact())


def rules(roots: Sequence[Root], **changes: Any) -> IndexingRules:
    """Of transcripts in chunks of a few turns."""
    how: dict[str, Any] = {"chunking": Chunking(tokens=60, overlap=12), "sessions_redactor": REDACTOR}
    return IndexingRules(roots, max_bytes=1_000_000, **(how | changes))


def shelf(directory: Path) -> tuple[Root, ...]:
    """A directory of transcripts of any kind."""
    directory.mkdir(exist_ok=True)
    return (SessionPaths(directory, "here", "plain"),)


@asynccontextmanager
async def opened(file: Path) -> AsyncIterator[Index]:
    """An index without vectors."""
    index = Index(file)
    await index.open()
    await index.adopt(Fingerprint("c", "t", ("sessions",)))
    try:
        yield index
    finally:
        await index.close()


async def apply(index: Index, how: IndexingRules, *, force: bool = False) -> AppliedChanges:
    """Take in all that a scan finds."""
    found = list(scan(how.roots, max_bytes=1_000_000).found.values())
    threads = Threads(1, "reading")
    return await apply_sessions(index, found, rules=how, vectors=None, threads=threads, force=force)


def held(file: Path) -> Mapping[str, list[tuple[Any, ...]]]:
    """All that an index holds of its transcripts but ids and stamps."""
    connection = apsw.Connection(str(file))
    try:
        return {
            "chunks": list(
                connection.execute(
                    "SELECT path, turn, start_line, end_line, text, context, numbers, first_s, last_s FROM chunks"
                    " JOIN files ON files.id = file_id ORDER BY path, turn, chunks.start_line, text"
                )
            ),
            "turns": list(
                connection.execute(
                    "SELECT path, seq, turn_id, role, at, start_line, end_line, text FROM turns"
                    " JOIN files ON files.id = file_id ORDER BY path, seq"
                )
            ),
            "resume": list(
                connection.execute(
                    "SELECT path, resume FROM sessions JOIN files ON files.id = file_id ORDER BY path"
                )
            ),
            "tallies": list(
                connection.execute(
                    "SELECT path, name, n FROM tallies JOIN files ON files.id = file_id ORDER BY path, name"
                )
            ),
            "keywords": list(connection.execute("SELECT count(*) FROM keywords")),
        }
    finally:
        connection.close()
