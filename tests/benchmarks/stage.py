"""The same notes, indexed by a daemon and by the baseline."""

import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import apsw
import msgspec

from memd.chunk import markdown
from memd.config.settings import Chunking
from memd.domain_types import Document, Kind, embedded_text
from memd.sources.notes import lines_of
from memd_client import Client
from memd_client.note_encoding import decode_note
from tests.benchmarks import baseline, notes
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider

_CHUNKING = Chunking()


class Took(msgspec.Struct, frozen=True):
    """Seconds of indexing from nothing."""

    text: float  # memd: from the start of its process until all text is searchable
    vectors: float  # and until every chunk has its vector
    baseline: float


class Stage(msgspec.Struct, frozen=True):
    """What the measurements of one size work on."""

    corpus: notes.Corpus
    daemon: Daemon
    client: Client
    database: Path  # of the baseline
    connection: apsw.Connection
    embedder: HashingProvider  # the one that the daemon has too
    took: Took


@contextmanager
def built(home: Path, chunks: int) -> Iterator[Stage]:
    """Notes of so many chunks, indexed by the baseline and by a daemon that runs.

    Args:
        home: An empty directory, whose path is short enough for a socket.
        chunks: How many.
    """
    daemon = Daemon(home)
    corpus = notes.generate(daemon.workspace, chunks=chunks)
    embedder = HashingProvider()
    database = home / "baseline.sqlite"
    connection = baseline.open_file(database)
    began = time.perf_counter()
    for file in sorted(daemon.workspace.rglob("*.md")):
        index(connection, file, embedder)
    baseline_s = time.perf_counter() - began
    began = time.perf_counter()
    with daemon.start(), daemon.client(timeout=None) as client:
        client.sync(vectors=False)
        text_s = time.perf_counter() - began
        report = client.sync()
        assert report.vectors == "complete", report
        took = Took(text_s, time.perf_counter() - began, baseline_s)
        yield Stage(corpus, daemon, client, database, connection, embedder, took)
    connection.close()


def index(connection: apsw.Connection, file: Path, embedder: HashingProvider) -> None:
    """Have the baseline index a file, cut and embedded as memd does it."""
    content = file.read_bytes()
    document = Document(str(file), Kind.NOTE, lines_of(decode_note(content).text.replace("\0", "")))
    chunks = markdown.chunk(document, _CHUNKING.tokens, _CHUNKING.overlap)
    vectors = embedder.embed([embedded_text(chunk.context, chunk.text) for chunk in chunks]) if chunks else ()
    rows = [
        baseline.Row(str(file), chunk.start_line, chunk.end_line, chunk.text, vector.tobytes())
        for chunk, vector in zip(chunks, vectors, strict=True)
    ]
    baseline.index_file(connection, str(file), content, rows)
