"""Reads a memory on its server: pooled connections, and snapshots with few round trips."""

import asyncio
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memd.postgres.binary_vectors import use_vectors
from memd.postgres.connection import (
    SharedUnavailable,
    abandon,
    check,
    connect,
    errors_told,
    find_state,
    read_dsn,
)
from memd.runtime.threads import Threads
from memd.runtime.wait_budget import waiting

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

AT_ONCE = 4  # connections per searched memory


class ServerQuery(msgspec.Struct, frozen=True):
    """A read statement."""

    sql: str
    values: Mapping[str, Any] | Sequence[Any] = ()
    binary: bool = False  # whether its result is in binary format


class ServerSnapshot:
    """One snapshot of a server's tables: statements run in one read-only transaction."""

    def __init__(self, connection: "psycopg.Connection[Any]", timeout_s: float) -> None:
        """Create the snapshot; the first statement begins the transaction.

        Args:
            connection: An autocommit connection, used by this snapshot only.
            timeout_s: The timeout of a statement.
        """
        self._connection = connection
        self._timeout_ms = round(1000 * timeout_s)
        self._is_open = False

    def ask(self, *queries: ServerQuery, is_last: bool = False) -> "list[psycopg.Cursor[Any]]":
        """Run several statements in one round trip, and return their results.

        Args:
            queries: The statements.
            is_last: Whether to end the transaction; later statements read another snapshot.
        """
        with self._connection.pipeline():
            if not self._is_open:
                self._connection.execute("BEGIN ISOLATION LEVEL REPEATABLE READ READ ONLY")
                self._connection.execute(f"SET LOCAL statement_timeout = {self._timeout_ms}")
                self._is_open = True
            found = [self._connection.execute(one.sql, one.values, binary=one.binary) for one in queries]
            if is_last:
                self.end()
        return found

    def execute(self, sql: str, values: Mapping[str, Any] | Sequence[Any] = ()) -> "psycopg.Cursor[Any]":
        """Run one statement in its own round trip, and return its result."""
        [found] = self.ask(ServerQuery(sql, values))
        return found

    def end(self) -> None:
        """End the transaction."""
        if self._is_open:
            self._connection.execute("COMMIT")
            self._is_open = False


class SharedConnections:
    """A pool of connections to one memory; each is used by one thread at a time, and is closed if it fails."""

    def __init__(self, dsn_file: Path, memory: str, timeout_s: float) -> None:
        """Start without connections.

        Args:
            dsn_file: The file with the member's DSN.
            memory: The name of the memory on the server.
            timeout_s: The timeout of an answer.
        """
        self.memory = memory
        self._dsn_file = dsn_file
        self._timeout_s = timeout_s
        self._idle: list[psycopg.Connection[Any]] = []
        self._threads = Threads(AT_ONCE, f"memd-shared-{memory}")
        # Held while the lists of connections are changed, or connections are shut down.
        self._lending = threading.Lock()
        self._is_closed = False
        self.vector_schema = ""

    async def run(self, work: "Callable[[ServerSnapshot], T]") -> T:
        """Run work on a thread with its own snapshot, and return its result.

        Raises:
            SharedUnavailable: the server does not answer in time, or refuses.
        """
        lent: list[psycopg.Connection[Any]] = []
        try:
            with waiting():
                async with asyncio.timeout(self._timeout_s):
                    return await self._threads.run(self._work, work, lent)
        except (TimeoutError, asyncio.CancelledError) as late:
            # The caller has stopped waiting, and a silent server could block the thread forever.
            with self._lending:
                for connection in lent:
                    abandon(connection)
            if isinstance(late, asyncio.CancelledError):
                raise
            raise SharedUnavailable(f"the server has not answered within {self._timeout_s:g} s") from late

    def _work(self, work: "Callable[[ServerSnapshot], T]", lent: "list[psycopg.Connection[Any]]") -> T:
        with self._lent(lent) as connection, errors_told():
            snapshot = ServerSnapshot(connection, self._timeout_s)
            found = work(snapshot)
            snapshot.end()
            return found

    @contextmanager
    def _lent(self, lent: "list[psycopg.Connection[Any]]") -> "Iterator[psycopg.Connection[Any]]":
        """Return a connection in a context, in which it is listed as lent."""
        connection = self._taken() or self._made(lent)
        lent[:] = [connection]
        try:
            yield connection
        except BaseException:
            connection.close()
            raise
        finally:
            with self._lending:
                lent.clear()
        if self._is_closed:
            connection.close()
        else:
            self._idle.append(connection)

    def _taken(self) -> "psycopg.Connection[Any] | None":
        """Return an idle connection that the server has not closed; None: there is none."""
        while self._idle:
            connection = self._idle.pop()
            # On an idle connection, the server sends data only when it closes it.
            waiting = select.poll()
            waiting.register(connection.fileno(), select.POLLIN)
            if not waiting.poll(0):
                return connection
            connection.close()
        return None

    def _made(self, lent: "list[psycopg.Connection[Any]]") -> "psycopg.Connection[Any]":
        connection = connect(read_dsn(self._dsn_file))
        lent.append(connection)
        try:
            state = find_state(connection)
            check(state)
            self.vector_schema = state.vector_schema
            with errors_told():
                use_vectors(connection, state.vector_schema)
                connection.commit()
                connection.autocommit = True  # snapshots begin and end their transactions
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_idle(self) -> bool:
        """Whether no thread is working or waiting for the server."""
        return self._threads.is_done

    def close(self) -> None:
        """Close idle connections; others are closed when their work ends."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
