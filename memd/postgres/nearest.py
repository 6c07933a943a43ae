"""Finds the nearest vectors of a memory on its server, with all that a search needs of the found chunks."""

from collections.abc import Collection, Iterator, Sequence
from typing import Any

import msgspec
import numpy as np

from memd.domain_types import ChunkId, Kind
from memd.postgres.binary_vectors import vector_binary
from memd.postgres.connection import quoted
from memd.postgres.snapshots import ServerQuery
from memd.store.chunks import ChunkPlace, typed
from memd.store.disk_vectors import NearVectors
from memd.store.vector_matrix import Floats, Ids, MatrixBlock, Rows

PLACE = "c.id, f.path, c.kind, c.start_line, c.scripts, c.first_s, c.last_s, f.written_ns"
_PLACE_COLUMNS = PLACE.count(",") + 1


MOST_COMPARED = 50_000  # vectors that are compared one by one; a larger memory, or filter, uses an index
RARE = 16  # the index is not used for a source with less than one chunk in this many
_EXAMINED = 400  # candidates read from an index: twice as many as are wanted
_COMPARED = (
    "scanned AS MATERIALIZED (SELECT chunk_id, kind, -(vector OPERATOR({schema}.<#>) %(query)s) AS near"
    " FROM memd.vectors WHERE tenant = %(tenant)s AND kind = ANY(%(kinds)s)),"
    " whole AS (SELECT coalesce(avg(near), 0) AS mean, count(*) AS count FROM scanned)"
)
# The mean of the products is the product with the mean vector.
_INDEXED = (
    "whole AS (SELECT coalesce(sum(-(mean OPERATOR({schema}.<#>) %(query)s) * count) / sum(count), 0) AS mean,"
    " coalesce(sum(count), 0)::bigint AS count FROM memd.vector_indexes"
    " WHERE tenant = %(tenant)s AND kind = ANY(%(kinds)s))"
)
# Whether a source has so few of the memory's chunks that its vectors are compared one by one.
_RARE = (
    f"(SELECT coalesce({RARE} * sum(chunks - cardinality(gone)) FILTER (WHERE kind = ANY({{kinds}})), 0)"
    " <= coalesce(sum(chunks - cardinality(gone)), -1) FROM memd.segments WHERE tenant = {tenant})"
)


class NearestQuery(msgspec.Struct, frozen=True):
    """The parameters of a search for nearest vectors."""

    tenant: int
    query: Floats
    limit: int  # per source and filter
    kinds: Collection[Kind]
    also: Collection[ChunkId]  # chunks whose vectors are returned too
    among: Sequence[Ids | None]  # one filter per element: the ids to choose from; None: all

    indexed: int | None  # the dimensions of the indexed vectors; None: there is no index

    def statements(self, schema: str) -> Iterator[ServerQuery]:
        """Yield the statements; the last result has the nearest chunks with vectors and positions, and the mean of all vectors.

        Args:
            schema: The schema of pgvector.
        """
        schema = quoted(schema)
        values: dict[str, Any] = {
            "tenant": self.tenant,
            "kinds": [int(kind) for kind in self.kinds],
            "query": vector_binary(self.query.astype("<f4").tobytes()),
            "limit": self.limit,
            "also": list(self.also),
        }
        if self.indexed is None:
            found = _COMPARED.format(schema=schema)
        else:
            found = _INDEXED.format(schema=schema)
            yield ServerQuery(f"SET LOCAL hnsw.ef_search = {_EXAMINED}")
            yield ServerQuery("SET LOCAL hnsw.iterative_scan = relaxed_order")
            # The server underestimates rows if conditions and policies overlap, and would then sort all rows.
            yield ServerQuery("SET LOCAL enable_sort = off")
        best = []
        for source in sorted({kind.source for kind in self.kinds}):
            values[f"of_{source}"] = [int(kind) for kind in self.kinds if kind.source == source]
            for number, some in enumerate(self.among):
                condition = f"kind = ANY(%(of_{source})s)"
                if some is not None:
                    values[f"among{number}"] = some.tolist()
                    condition += f" AND chunk_id = ANY(%(among{number})s)"
                is_few = some is not None and len(some) <= MOST_COMPARED
                best.append(self._best(schema, source, condition, is_few=is_few))
        yield ServerQuery(
            f"WITH {found}, best AS ({' UNION '.join(best)}),"
            " wanted AS (SELECT chunk_id FROM best UNION SELECT unnest(%(also)s::bigint[]))"
            f" SELECT best.near, whole.mean, whole.count, v.kind, {schema}.vector_send(v.vector), {PLACE}"
            " FROM whole LEFT JOIN wanted ON true LEFT JOIN best USING (chunk_id)"
            # A lookup by key per row: the server misestimates combined conditions and policies, and would read all rows.
            " LEFT JOIN LATERAL (SELECT * FROM memd.vectors WHERE tenant = %(tenant)s AND vectors.chunk_id = wanted.chunk_id"
            "  AND kind = ANY(%(kinds)s) OFFSET 0) AS v ON true"
            " LEFT JOIN LATERAL (SELECT * FROM memd.chunks WHERE tenant = %(tenant)s AND id = wanted.chunk_id OFFSET 0) AS c ON true"
            " LEFT JOIN LATERAL (SELECT * FROM memd.files WHERE tenant = %(tenant)s AND id = c.file_id OFFSET 0) AS f ON true"
            " ORDER BY wanted.chunk_id",
            values,
            binary=True,
        )

    def _best(self, schema: str, source: str, condition: str, *, is_few: bool) -> str:
        if self.indexed is None:
            return f"(SELECT chunk_id, near FROM scanned WHERE {condition} ORDER BY near DESC, chunk_id LIMIT %(limit)s)"
        distance = f"((vector::{schema}.vector({self.indexed})) OPERATOR({schema}.<#>) %(query)s)"
        # Literals, to match the condition of the partial index. The addition prevents index use for vectors compared one by one.
        vectors = f"memd.vectors WHERE tenant = {self.tenant} AND {schema}.vector_dims(vector) = {self.indexed} AND {condition}"
        by_index = f"SELECT chunk_id, -{distance} AS near FROM {vectors}"
        if is_few:
            return f"({by_index} ORDER BY {distance} + 0.0 LIMIT %(limit)s)"
        # The index covers the vectors of all sources: for a source with few or none, it would be scanned to its end.
        rare = _RARE.format(tenant=self.tenant, kinds=f"%(of_{source})s")
        return (
            f"({by_index} AND NOT {rare} ORDER BY {distance} LIMIT %(limit)s) UNION"
            f" (SELECT chunk_id, near FROM memd.segments s CROSS JOIN LATERAL (SELECT chunk_id, -{distance} AS near FROM {vectors}"
            "  AND chunk_id BETWEEN s.first AND s.last OFFSET 0) AS one"
            f" WHERE s.tenant = {self.tenant} AND s.kind = ANY(%(of_{source})s) AND {rare}"
            f" ORDER BY near DESC LIMIT %(limit)s)"
        )

    def read(self, rows: Sequence[tuple[Any, ...]]) -> tuple[NearVectors, list[ChunkPlace]]:
        """Parse the last result: the nearest chunks, and the positions of all chunks."""
        places = typed([row[-_PLACE_COLUMNS:] for row in rows if row[5] is not None], list[ChunkPlace])
        near = sorted((-row[0], row[5]) for row in rows if row[0] is not None)
        stored = [row for row in rows if row[4] is not None]
        vectors = [np.frombuffer(row[4], ">f4", offset=4) for row in stored]
        block = MatrixBlock(
            np.array(vectors, np.float32).reshape(-1, len(self.query)),
            np.array([row[5] for row in stored], np.int64),
            np.array([row[3] for row in stored], np.int8),
        )
        mean, count = rows[0][1:3]
        ids = [ChunkId(chunk_id) for _, chunk_id in near]
        return NearVectors(ids, Rows((block,)), (float(mean), int(count))), places
