"""Converts vectors to and from the binary form of pgvector."""

from typing import TYPE_CHECKING, Any

import numpy as np

from memd.postgres.connection import driver

if TYPE_CHECKING:
    import psycopg


_HEAD = 4  # bytes of the header


class BinaryVector(bytes):
    """A vector in binary form, see vector_binary."""


def use_vectors(connection: "psycopg.Connection[Any]", schema: str) -> None:
    """Let a connection send BinaryVector values as vectors.

    Args:
        connection: A member's connection.
        schema: The schema of pgvector.
    """
    psycopg = driver()
    row: Any = connection.execute(
        "SELECT pg_type.oid FROM pg_type JOIN pg_namespace ON pg_namespace.oid = typnamespace"
        " WHERE typname = 'vector' AND nspname = %s",
        (schema,),
    ).fetchone()
    assert row is not None

    class _Dumper(psycopg.adapt.Dumper):  # type: ignore[misc, name-defined]  # the module is imported when it is needed
        oid = row[0]
        format = psycopg.pq.Format.BINARY

        def dump(self, obj: bytes) -> bytes:
            return bytes(obj)

    connection.adapters.register_dumper(BinaryVector, _Dumper)


def vector_binary(vector: bytes) -> BinaryVector:
    """Convert little-endian float32 to pgvector's form: the number of dimensions, two unused bytes, big-endian float32."""
    numbers = np.frombuffer(vector, "<f4")
    return BinaryVector(len(numbers).to_bytes(2, "big") + b"\0\0" + numbers.astype(">f4").tobytes())


def vector_bytes(sent: bytes) -> bytes:
    """Convert pgvector's binary form to little-endian float32."""
    return np.frombuffer(sent, ">f4", offset=_HEAD).astype("<f4").tobytes()
