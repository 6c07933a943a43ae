"""Vectors on their way to and from a server, in the binary form of pgvector."""

from typing import TYPE_CHECKING, Any

import numpy as np

from memd.shared.connection import driver

if TYPE_CHECKING:
    import psycopg


_HEAD = 4  # bytes before the numbers


class BinaryVector(bytes):
    """The binary form of a vector, see vector_binary."""


def use_vectors(connection: "psycopg.Connection[Any]", schema: str) -> None:
    """Have a connection send what is a BinaryVector as a vector.

    Args:
        connection: Of a member.
        schema: Where pgvector is.
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
    """The binary form of pgvector, of little-endian float32: the dimensions, two bytes without a meaning, big-endian float32."""
    numbers = np.frombuffer(vector, "<f4")
    return BinaryVector(len(numbers).to_bytes(2, "big") + b"\0\0" + numbers.astype(">f4").tobytes())


def vector_bytes(sent: bytes) -> bytes:
    """The numbers of a vector in its binary form, as little-endian float32."""
    return np.frombuffer(sent, ">f4", offset=_HEAD).astype("<f4").tobytes()
