"""What embeddings.sqlite remembers of remote providers: their models, their jobs, how they did, what a person wished."""

from collections.abc import Collection, Mapping, Sequence

import apsw
import msgspec

from memd.model import TextHash
from memd.store.embeddings import EmbeddingStore, Space, put_rows

KEPT_S = 30 * 86400.0  # a job of a provider that is used no more; no provider keeps results for longer


class StoredJob(msgspec.Struct, frozen=True):
    """A job of a batch API that has begun and not ended."""

    id: str  # ours
    texts: int
    created_at: float  # unix time
    job: str | None = None  # the provider's name for it


class ProviderStore:
    """One embedding space's part of embeddings.sqlite. Documents are JSON, and mean nothing here.

    Every method raises StoreUnavailable, StoreDamaged or StoreNewer where the file cannot be used now: unlike a cached
    vector, a job that is not remembered could be paid for twice. So a job, what it brought and a document outlast a
    power cut from the moment they are remembered.
    """

    def __init__(self, store: EmbeddingStore, space: Space) -> None:
        self._store = store
        self._space = space

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None."""
        return await self._store.read(_document, self._space, name)

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name."""
        await self._store.write_lasting(_put_document, self._space, name, content)

    async def begin(self, job: StoredJob, shares: Mapping[TextHash, float]) -> None:
        """Remember a job with its texts, each with its share of CJK, and forget what nobody has come back to, of any space."""
        await self._store.write_lasting(_begin, self._space, job, shares)

    async def created(self, job_id: str, name: str, at: float) -> None:
        """Remember the provider's name for a job, and when it was created there."""
        await self._store.write(_created, job_id, name, at)

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes], now: float) -> None:
        """Cache vectors that a job brought; the job has that much less to bring, whenever the process ends."""
        await self._store.write_lasting(_keep, self._space, job_id, vectors, now)

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        """Those of some texts whose vectors are cached, whoever brought them."""
        return await self._store.held(self._space, list(hashes))

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        """Forget a job, and keep documents, both or neither."""
        await self._store.write(_end, self._space, job_id, documents)

    async def jobs(self) -> Sequence[StoredJob]:
        """All of this space, the oldest first."""
        return await self._store.read(_jobs, self._space)

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """The texts of a job whose vectors have not been kept, with their shares of CJK; None: an older memd stored none."""
        return await self._store.read(_missing, job_id)

    async def add_files(self, job_id: str, files: Collection[str], now: float) -> None:
        """Remember files of a job at the provider's."""
        await self._store.write(_add_files, self._space, job_id, files, now)

    async def drop_file(self, file: str) -> None:
        """Forget a file."""
        await self._store.write(_drop_file, self._space, file)

    async def files(self, now: float) -> Mapping[str, str]:
        """The files that are remembered, the oldest first -> our id of the job; without those that no provider keeps for so long."""
        return await self._store.read(_files, self._space, now - KEPT_S)


def _document(connection: apsw.Connection, space: Space, name: str) -> bytes | None:
    row = connection.execute(
        "SELECT content FROM documents WHERE provider = ? AND model = ? AND provider_key = ? AND name = ?",
        (*space, name),
    ).fetchone()
    return None if row is None else bytes(row[0])


def _put_document(connection: apsw.Connection, space: Space, name: str, content: bytes) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO documents (provider, model, provider_key, name, content) VALUES (?, ?, ?, ?, ?)",
        (*space, name, content),
    )


def _begin(
    connection: apsw.Connection, space: Space, job: StoredJob, shares: Mapping[TextHash, float]
) -> None:
    old = (job.created_at - KEPT_S,)
    connection.execute("DELETE FROM job_texts WHERE job IN (SELECT id FROM jobs WHERE created_at < ?)", old)
    connection.execute("DELETE FROM jobs WHERE created_at < ?", old)
    connection.execute("DELETE FROM job_files WHERE at < ?", old)
    connection.execute(
        "INSERT INTO jobs (id, provider, model, provider_key, texts, created_at, job) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (job.id, *space, job.texts, job.created_at, job.job),
    )
    connection.executemany(
        "INSERT INTO job_texts (job, hash, share) VALUES (?, ?, ?)",
        ((job.id, text_hash, share) for text_hash, share in shares.items()),
    )


def _created(connection: apsw.Connection, job_id: str, name: str, at: float) -> None:
    connection.execute("UPDATE jobs SET job = ?, created_at = ? WHERE id = ?", (name, at, job_id))


def _keep(
    connection: apsw.Connection, space: Space, job_id: str, vectors: Mapping[TextHash, bytes], now: float
) -> None:
    put_rows(connection, {(space, text_hash): (vector, now) for text_hash, vector in vectors.items()}, {})
    connection.executemany(
        "DELETE FROM job_texts WHERE job = ? AND hash = ?", ((job_id, text_hash) for text_hash in vectors)
    )


def _end(connection: apsw.Connection, space: Space, job_id: str, documents: Mapping[str, bytes]) -> None:
    connection.execute("DELETE FROM job_texts WHERE job = ?", (job_id,))
    connection.execute("DELETE FROM jobs WHERE id = ?", (job_id,))
    for name, content in documents.items():
        _put_document(connection, space, name, content)


def _add_files(
    connection: apsw.Connection, space: Space, job_id: str, files: Collection[str], now: float
) -> None:
    connection.executemany(
        "INSERT OR IGNORE INTO job_files (provider, model, provider_key, file, job, at) VALUES (?, ?, ?, ?, ?, ?)",
        ((*space, file, job_id, now) for file in files),
    )


def _drop_file(connection: apsw.Connection, space: Space, file: str) -> None:
    connection.execute(
        "DELETE FROM job_files WHERE provider = ? AND model = ? AND provider_key = ? AND file = ?",
        (*space, file),
    )


def _files(connection: apsw.Connection, space: Space, since: float) -> dict[str, str]:
    rows = connection.execute(
        "SELECT file, job FROM job_files WHERE provider = ? AND model = ? AND provider_key = ? AND at >= ?"
        " ORDER BY at, file",
        (*space, since),
    )
    return {str(row[0]): str(row[1]) for row in rows}


def _jobs(connection: apsw.Connection, space: Space) -> list[StoredJob]:
    rows = connection.execute(
        "SELECT id, texts, created_at, job FROM jobs WHERE provider = ? AND model = ? AND provider_key = ?"
        " ORDER BY created_at, id",
        space,
    )
    return [StoredJob(str(row[0]), int(row[1]), float(row[2]), row[3]) for row in rows]


def _missing(connection: apsw.Connection, job_id: str) -> dict[TextHash, float | None]:
    rows = connection.execute("SELECT hash, share FROM job_texts WHERE job = ?", (job_id,))
    return {TextHash(row[0]): row[1] for row in rows}
