"""Stores records of remote providers in embeddings.sqlite: models, batch jobs, failures, and switches of the user."""

import time
from collections.abc import Collection, Mapping, Sequence

import apsw
import msgspec

from memd.domain_types import BatchFile, BatchJob, TextHash
from memd.runtime.timers import Clock
from memd.store.embedding_cache import EmbeddingStore, Space, put_rows

# For jobs of a provider that is not used any more; no provider keeps results for longer.
KEPT_S = 30 * 86400.0
# Records older than KEPT_S are deleted this much later: a clock that was ahead has been corrected by then.
DOUBTED_S = 7 * 86400.0


class ProviderStore:
    """The records of one vector space in embeddings.sqlite. Documents are opaque JSON.

    Every method raises StoreUnavailable, StoreDamaged or StoreNewer if the file cannot be used now: unlike a lost vector, a lost
    job could be paid for twice. So jobs, their results and documents are synced to disk when they are stored.
    """

    def __init__(self, store: EmbeddingStore, space: Space, clock: Clock = time.time) -> None:
        """Use the records of one space.

        Args:
            store: The file.
            space: The vector space.
            clock: Returns Unix time.
        """
        self._store = store
        self._space = space
        self._clock = clock

    async def document(self, name: str) -> bytes | None:
        """Return a document; None if it does not exist."""
        return await self._store.read(_document, self._space, name)

    async def put_document(self, name: str, content: bytes) -> None:
        """Store or replace a document."""
        await self._store.write_lasting(_put_document, self._space, name, content)

    async def begin(self, job: BatchJob, shares: Mapping[TextHash, float], upload: str) -> None:
        """Store a job with its texts, each with its share of CJK characters, and the name of an upload to look for."""
        await self._store.write_lasting(_begin, self._space, job, shares, upload)

    async def created(self, job_id: str, name: str, at: float) -> None:
        """Store the provider's id of a job, and when it was created there."""
        await self._store.write(_created, job_id, name, at)

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        """Cache vectors of a job, and remove their texts from the job, in one transaction."""
        await self._store.write_lasting(_keep, self._space, job_id, vectors, self._clock())

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        """Return the texts whose vectors are cached, from jobs or otherwise."""
        return await self._store.held(self._space, list(hashes))

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        """Delete a job and store documents, in one transaction."""
        await self._store.write(_end, self._space, job_id, documents)

    async def jobs(self) -> Sequence[BatchJob]:
        """Return all jobs of the space, the oldest first."""
        return await self._store.read(_jobs, self._space)

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        """Return the texts of a job without vectors, with their shares of CJK characters; None: stored by an older memd."""
        return await self._store.read(_missing, job_id)

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        """Store ids of a job's files at the provider."""
        await self._store.write(_add_files, self._space, job_id, files, self._clock())

    async def drop_file(self, file: str) -> None:
        """Delete the id of a file."""
        await self._store.write(_drop_file, self._space, file)

    async def files(self) -> Sequence[BatchFile]:
        """Return the stored files, the oldest first."""
        return await self._store.read(_files, self._space)

    async def add_sent(self, texts: int, tokens: int) -> None:
        """Count texts that were sent to be embedded, with their estimated tokens; a power failure may lose the last of them."""
        await self._store.write(_add_sent, self._space, texts, tokens)

    async def forget_old(self) -> None:
        """Delete jobs and files of all spaces that were not mentioned for KEPT_S.

        The clock may be ahead for a while: they are deleted only if they were too old twice, DOUBTED_S apart, and not recent in between.
        Times in the future are replaced by the current time.
        """
        await self._store.write(_forget_old, self._clock())


class SentTexts(msgspec.Struct, frozen=True):
    """The amount of text that was sent to a provider, and is paid for."""

    texts: int = 0
    tokens: int = 0  # estimated


_SENT = "sent"


async def sent_so_far(store: EmbeddingStore) -> Mapping[tuple[str, str], SentTexts]:
    """Return by provider and model what was sent since embeddings.sqlite was created; for errors see ProviderStore."""
    return await store.read(_sent_so_far)


def _sent_so_far(connection: apsw.Connection) -> dict[tuple[str, str], SentTexts]:
    totals: dict[tuple[str, str], SentTexts] = {}
    for provider, model, content in connection.execute(
        "SELECT provider, model, content FROM documents WHERE name = ? ORDER BY provider, model", (_SENT,)
    ):
        before, more = totals.get((provider, model), SentTexts()), _decoded_sent(content)
        totals[provider, model] = SentTexts(before.texts + more.texts, before.tokens + more.tokens)
    return totals


def _decoded_sent(content: bytes | None) -> SentTexts:
    if content is None:
        return SentTexts()
    try:
        return msgspec.json.decode(content, type=SentTexts)
    except msgspec.DecodeError:
        return SentTexts()


def _add_sent(connection: apsw.Connection, space: Space, texts: int, tokens: int) -> None:
    before = _decoded_sent(_document(connection, space, _SENT))
    total = SentTexts(before.texts + texts, before.tokens + tokens)
    _put_document(connection, space, _SENT, msgspec.json.encode(total))


def files_left(connection: apsw.Connection) -> tuple[str, ...]:
    """Return "provider file" of all files of ended jobs; () in an older schema."""
    if not connection.table_exists("main", "job_files"):
        return ()
    rows = connection.execute(
        "SELECT DISTINCT provider, file FROM job_files WHERE job NOT IN (SELECT id FROM jobs) ORDER BY provider, file"
    )
    return tuple(f"{provider} {file}" for provider, file in rows)


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
    connection: apsw.Connection, space: Space, job: BatchJob, shares: Mapping[TextHash, float], upload: str
) -> None:
    connection.execute(
        "INSERT INTO jobs (id, provider, model, provider_key, texts, created_at, job) VALUES (?, ?, ?, ?, ?, ?, ?)",
        (job.id, *space, job.texts, job.created_at, job.name),
    )
    connection.executemany(
        "INSERT INTO job_texts (job, hash, share) VALUES (?, ?, ?)",
        ((job.id, text_hash, share) for text_hash, share in shares.items()),
    )
    connection.execute(
        "INSERT OR IGNORE INTO job_files (provider, model, provider_key, file, job, at, is_sought)"
        " VALUES (?, ?, ?, ?, ?, ?, 1)",
        (*space, upload, job.id, job.created_at),
    )


def _forget_old(connection: apsw.Connection, now: float) -> None:
    for table, at in (("jobs", "created_at"), ("job_files", "at")):
        times = {"now": now, "old": now - KEPT_S, "doubted": now - DOUBTED_S}
        connection.execute(f"UPDATE {table} SET {at} = :now WHERE {at} > :now", times)
        connection.execute(
            f"UPDATE {table} SET old_since = CASE WHEN {at} < :old THEN :now END"
            f" WHERE old_since IS NULL AND {at} < :old OR old_since > :now OR {at} >= :old AND old_since IS NOT NULL",
            times,
        )
        connection.execute(f"DELETE FROM {table} WHERE old_since <= :doubted", times)
    connection.execute("DELETE FROM job_texts WHERE job NOT IN (SELECT id FROM jobs)")


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


def _files(connection: apsw.Connection, space: Space) -> list[BatchFile]:
    rows = connection.execute(
        "SELECT file, job, is_sought FROM job_files WHERE provider = ? AND model = ? AND provider_key = ?"
        " ORDER BY at, file",
        space,
    )
    return [BatchFile(str(row[0]), str(row[1]), bool(row[2])) for row in rows]


def _jobs(connection: apsw.Connection, space: Space) -> list[BatchJob]:
    rows = connection.execute(
        "SELECT id, texts, created_at, job FROM jobs WHERE provider = ? AND model = ? AND provider_key = ?"
        " ORDER BY created_at, id",
        space,
    )
    return [BatchJob(str(row[0]), int(row[1]), float(row[2]), row[3]) for row in rows]


def _missing(connection: apsw.Connection, job_id: str) -> dict[TextHash, float | None]:
    rows = connection.execute("SELECT hash, share FROM job_texts WHERE job = ?", (job_id,))
    return {TextHash(row[0]): row[1] for row in rows}
