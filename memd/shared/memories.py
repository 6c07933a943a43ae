"""What a member sees of the memories that are granted to it."""

from typing import TYPE_CHECKING, Any

import msgspec

from memd.shared.connection import errors_told

if TYPE_CHECKING:
    import psycopg


class MemorySummary(msgspec.Struct, frozen=True):
    """A published memory."""

    name: str
    may_write: bool
    files: int
    chunks: int
    vectors: int  # chunks that have one
    publisher: str | None  # the installation that publishes it
    published_at: str | None  # ISO 8601; None: never


def summaries(connection: "psycopg.Connection[Any]") -> list[MemorySummary]:
    """The memories that the role of a connection may use, by name.

    Raises:
        SharedUnavailable.
    """
    with errors_told():
        rows = connection.execute(
            "SELECT name, (SELECT bool_or(may_write) FROM memd.members WHERE members.tenant = memories.tenant),"
            " (SELECT count(*) FROM memd.files WHERE files.tenant = memories.tenant), chunks,"
            " (SELECT count(*) FROM memd.vectors WHERE vectors.tenant = memories.tenant), publisher,"
            " to_char(published_at AT TIME ZONE 'UTC', 'YYYY-MM-DD\"T\"HH24:MI:SS\"Z\"')"
            " FROM memd.memories ORDER BY name"
        ).fetchall()
    return [MemorySummary(*row) for row in rows]
