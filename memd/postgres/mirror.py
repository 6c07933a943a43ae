"""Publishes one memory to a server: each changed file in one transaction."""

from collections.abc import Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

import msgspec

from memd.postgres import keyword_index
from memd.postgres.binary_vectors import use_vectors, vector_binary
from memd.postgres.connection import (
    TABLES,
    SharedRefused,
    SharedUnavailable,
    abandon,
    check,
    check_tables,
    connect,
    errors_told,
    find_state,
    read_dsn,
)
from memd.postgres.vectors_by_text import StoredVectors, vector_queries
from memd.store.embedding_cache import Space
from memd.store.postings import TermReader
from memd.store.published_files import TERMS_VERSION, PublishedChunk, PublishedFile, term_reader

if TYPE_CHECKING:
    from collections.abc import Iterator

    import psycopg

TRANSACTION_S = 60  # the timeout of a publisher's statements and lock waits


class VectorSpace(msgspec.Struct, frozen=True):
    """The space of a memory's vectors."""

    space: Space
    dimensions: int
    has_parts: bool


class Mirror:
    """One memory on a server, as published by one installation. Blocks; used by one thread at a time."""

    def __init__(self, dsn_file: Path, memory: str, installation: str) -> None:
        """Create the object without connecting.

        Args:
            dsn_file: The file with the member's DSN.
            memory: The name of the memory on the server.
            installation: The publisher's id: no other installation may publish at the same time.
        """
        self._dsn_file = dsn_file
        self._memory = memory
        self._installation = installation
        self._connection: psycopg.Connection[Any] | None = None
        self._vector_schema = ""
        self._tenant = 0
        self._reader: TermReader = term_reader()

    def open(self) -> dict[str, bytes]:
        """Connect and start publishing; return the digests of the published files by path.

        Raises:
            SharedUnavailable: not possible now.
        """
        self.close()
        connection = connect(read_dsn(self._dsn_file))
        self._connection = connection
        with self._transaction() as connection:
            state = find_state(connection)
            check(state)
            if state.is_replica:
                raise SharedRefused(
                    "the server only reads (a replica, or default_transaction_read_only): the DSN must name the primary"
                )
            use_vectors(connection, state.vector_schema)
            self._vector_schema = state.vector_schema
            self._tenant = self._claimed(connection)
            rows = connection.execute(
                "SELECT path, digest FROM memd.files WHERE tenant = %s", (self._tenant,)
            ).fetchall()
        return {path: bytes(digest) for path, digest in rows}

    def abandon(self) -> None:
        """Let the calls of another thread fail at once, since no caller waits for them."""
        if (connection := self._connection) is not None:
            abandon(connection)

    def close(self) -> None:
        """Close the connection; uncommitted changes are rolled back."""
        connection, self._connection = self._connection, None
        if connection is not None:
            with suppress(Exception):
                connection.close()

    def _claimed(self, connection: "psycopg.Connection[Any]") -> int:
        row = connection.execute(
            "SELECT tenant, publisher, terms, (SELECT bool_or(may_write) FROM memd.members WHERE members.tenant = memories.tenant)"
            " FROM memd.memories WHERE name = %s",
            (self._memory,),
        ).fetchone()
        if row is None:
            raise SharedRefused(
                f"{self._memory} is not granted to this role: an administrator runs `memd-ctl shared grant`"
            )
        tenant, publisher, terms, may_write = row
        if not may_write:
            raise SharedRefused(
                f"{self._memory} is granted for reading only: publishing needs `memd-ctl shared grant ... write`"
            )
        if publisher is None:
            connection.execute(
                "UPDATE memd.memories SET publisher = %s WHERE tenant = %s AND publisher IS NULL",
                (self._installation, tenant),
            )
        if terms != TERMS_VERSION:
            # Postings of other versions of terms would never match.
            self._lock(connection, tenant)
            connection.execute("DELETE FROM memd.segments WHERE tenant = %s", (tenant,))
            connection.execute("DELETE FROM memd.files WHERE tenant = %s", (tenant,))
            connection.execute(
                "UPDATE memd.memories SET terms = %s, chunks = 0, tokens = 0 WHERE tenant = %s",
                (TERMS_VERSION, tenant),
            )
        else:
            self._lock(connection, tenant)
        return int(tenant)

    def _lock(self, connection: "psycopg.Connection[Any]", tenant: int) -> int:
        """Lock the memory for the transaction, and return its next chunk id.

        Raises:
            SharedRefused: another installation publishes it, or the tables are of a newer memd.
        """
        row = connection.execute(
            f"SELECT publisher, next_id, {TABLES} FROM memd.memories WHERE tenant = %s FOR UPDATE", (tenant,)
        ).fetchone()
        if row is None:
            raise SharedRefused(f"{self._memory} is not granted to this role any more")
        check_tables(*row[2:])
        if row[0] != self._installation:
            raise SharedRefused(
                f"{self._memory} is published by another installation of memd;"
                " `memd-ctl shared grant MEMBER MEMORY write` hands it over to whichever publishes next"
            )
        return int(row[1])

    @contextmanager
    def _transaction(self) -> "Iterator[psycopg.Connection[Any]]":
        """Run a transaction; close the connection if it fails."""
        if self._connection is None:
            raise SharedUnavailable("there is no connection to the server")
        try:
            with errors_told(), self._connection.pipeline(), self._connection.transaction():
                self._connection.execute(
                    "SELECT set_config('statement_timeout', %s, true)", (f"{TRANSACTION_S}s",)
                )
                yield self._connection
        except BaseException:
            self.close()
            raise

    def adopt(self, wanted: VectorSpace | None) -> bool:
        """Set the vector space, and delete vectors of another one; return whether there were any.

        Raises:
            SharedUnavailable.
        """
        values = (
            (None, None, None, None, False)
            if wanted is None
            else (*wanted.space, wanted.dimensions, wanted.has_parts)
        )
        with self._transaction() as connection:
            self._lock(connection, self._tenant)
            row = connection.execute(
                "SELECT provider, model, space_key, dimensions, has_parts FROM memd.memories WHERE tenant = %s",
                (self._tenant,),
            ).fetchone()
            if row == values:
                return False
            connection.execute("DELETE FROM memd.vectors WHERE tenant = %s", (self._tenant,))
            # The shortened digest says that the text is published, but not the vectors.
            connection.execute(
                "UPDATE memd.files SET digest = substr(digest, 1, 32) WHERE tenant = %s", (self._tenant,)
            )
            connection.execute(
                "UPDATE memd.parts SET vector = NULL WHERE tenant = %s AND vector IS NOT NULL",
                (self._tenant,),
            )
            connection.execute(
                "UPDATE memd.memories SET provider = %s, model = %s, space_key = %s, dimensions = %s, has_parts = %s WHERE tenant = %s",
                (*values, self._tenant),
            )
            self._changed(connection)
        return True

    def put(self, file: PublishedFile, lines: Sequence[str], digest: bytes) -> None:
        """Publish the current state of a file.

        Args:
            file: The indexed file.
            lines: The text of the file.
            digest: See PublishedFile.digests.

        Raises:
            SharedUnavailable: the server has the old or the new state.
        """
        with self._transaction() as connection:
            next_id = self._lock(connection, self._tenant)
            row = connection.execute(
                "SELECT id, digest FROM memd.files WHERE tenant = %s AND md5(path) = md5(%s) AND path = %s",
                (self._tenant, file.path, file.path),
            ).fetchone()
            if row is not None and bytes(row[1]) == digest:
                return
            if row is not None and bytes(row[1])[:32] == digest[:32]:
                self._put_vectors(connection, file, self._chunk_ids(connection, row[0]))
                connection.execute(
                    "UPDATE memd.files SET digest = %s WHERE tenant = %s AND id = %s",
                    (digest, self._tenant, row[0]),
                )
            else:
                file = self._completed(connection, file)
                if row is not None:
                    self._remove(connection, row[0])
                self._insert(connection, next_id, file, lines, digest)
            self._changed(connection)

    def drop(self, path: str) -> None:
        """Delete a file.

        Raises:
            SharedUnavailable: it may still be there.
        """
        with self._transaction() as connection:
            self._lock(connection, self._tenant)
            row = connection.execute(
                "SELECT id FROM memd.files WHERE tenant = %s AND md5(path) = md5(%s) AND path = %s",
                (self._tenant, path, path),
            ).fetchone()
            if row is not None:
                self._remove(connection, row[0])
                self._changed(connection)

    def _changed(self, connection: "psycopg.Connection[Any]") -> None:
        connection.execute("UPDATE memd.memories SET published_at = now() WHERE tenant = %s", (self._tenant,))

    def _chunk_ids(self, connection: "psycopg.Connection[Any]", file_id: int) -> list[int]:
        """Return the ids of a file's chunks in order."""
        rows = connection.execute(
            "SELECT id FROM memd.chunks WHERE tenant = %s AND file_id = %s ORDER BY id",
            (self._tenant, file_id),
        )
        return [chunk_id for (chunk_id,) in rows]

    def _remove(self, connection: "psycopg.Connection[Any]", file_id: int) -> None:
        row = connection.execute(
            "SELECT count(*), coalesce(sum(tokens), 0) FROM memd.chunks WHERE tenant = %s AND file_id = %s",
            (self._tenant, file_id),
        ).fetchone()
        assert row is not None
        keyword_index.remove(connection, self._tenant, self._chunk_ids(connection, file_id))
        connection.execute("DELETE FROM memd.files WHERE tenant = %s AND id = %s", (self._tenant, file_id))
        connection.execute(
            "UPDATE memd.memories SET chunks = chunks - %s, tokens = tokens - %s WHERE tenant = %s",
            (*row, self._tenant),
        )

    def _completed(self, connection: "psycopg.Connection[Any]", file: PublishedFile) -> PublishedFile:
        """Return a file with vectors that it lacks here, but that the server has for the same texts in any file."""
        lacking = [one.hash for one in file.chunks if one.vector is None]
        if not lacking:
            return file
        whole, parts = (
            connection.execute(one.sql, one.values, binary=one.binary)
            for one in vector_queries(self._tenant, lacking, self._vector_schema)
        )
        there = StoredVectors.of(whole.fetchall(), parts.fetchall())
        return msgspec.structs.replace(file, chunks=tuple(map(there.completed, file.chunks)))

    def _insert(
        self,
        connection: "psycopg.Connection[Any]",
        file_id: int,
        file: PublishedFile,
        lines: Sequence[str],
        digest: bytes,
    ) -> None:
        tenant, kind = self._tenant, int(file.kind)
        connection.execute(
            "INSERT INTO memd.files (tenant, id, path, kind, written_ns, superseded, digest, content)"
            " VALUES (%s, %s, %s, %s, %s, %s, %s, %s)",
            (tenant, file_id, file.path, kind, file.written_ns, file.superseded, digest, "\n".join(lines)),
        )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO memd.labels (tenant, file_id, seq, kind, name, value) VALUES (%s, %s, %s, %s, %s, %s)",
                [(tenant, file_id, number, *label) for number, label in enumerate(file.labels)],
            )
            ids = list(range(file_id + 1, file_id + 1 + len(file.chunks)))
            read = [self._reader.terms((one.text, one.context)) for one in file.chunks]
            cursor.executemany(
                "INSERT INTO memd.chunks (tenant, id, file_id, kind, start_line, end_line, text, context, hash, numbers,"
                " scripts, first_s, last_s, tokens) VALUES (%s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s, %s)",
                [
                    (tenant, chunk_id, file_id, kind, *_facts(one), tokens)
                    for chunk_id, one, (_, tokens) in zip(ids, file.chunks, read, strict=True)
                ],
            )
        keyword_index.add(connection, tenant, file.kind, dict(zip(ids, read, strict=True)))
        self._put_vectors(connection, file, ids)
        connection.execute(
            "UPDATE memd.memories SET next_id = %s, chunks = chunks + %s, tokens = tokens + %s WHERE tenant = %s",
            (file_id + 1 + len(ids), len(ids), sum(tokens for _, tokens in read), tenant),
        )

    def _put_vectors(
        self, connection: "psycopg.Connection[Any]", file: PublishedFile, ids: Sequence[int]
    ) -> None:
        """Set the vectors of a file's chunks; chunks without a local vector keep the published one.

        Text and space are equal, so published vectors are valid: a publisher with an empty index deletes nothing while it embeds again.
        """
        tenant, each = self._tenant, list(zip(ids, file.chunks, strict=True))
        whole = [(chunk_id, one.vector) for chunk_id, one in each if one.vector is not None]
        of_parts = [
            (chunk_id, one.parts)
            for chunk_id, one in each
            if any(part.vector is not None for part in one.parts)
        ]
        for table, known in (("vectors", whole), ("parts", of_parts)):
            connection.execute(
                f"DELETE FROM memd.{table} WHERE tenant = %s AND chunk_id = ANY(%s)",
                (tenant, [chunk_id for chunk_id, _ in known]),
            )
        with connection.cursor() as cursor:
            cursor.executemany(
                "INSERT INTO memd.vectors (tenant, chunk_id, kind, vector) VALUES (%s, %s, %s, %s)",
                [(tenant, chunk_id, int(file.kind), vector_binary(vector)) for chunk_id, vector in whole],
            )
            cursor.executemany(
                "INSERT INTO memd.parts (tenant, chunk_id, seq, first, last, vector) VALUES (%s, %s, %s, %s, %s, %s)",
                [
                    (tenant, chunk_id, number, part.first, part.last, part.vector)
                    for chunk_id, parts in of_parts
                    for number, part in enumerate(parts)
                ],
            )


def _facts(one: PublishedChunk) -> tuple[Any, ...]:
    return (
        *(one.start_line, one.end_line, one.text, one.context, one.hash, one.numbers, one.scripts),
        *(one.first_s, one.last_s),
    )
