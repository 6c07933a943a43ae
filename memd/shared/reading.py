"""Reads of a memory on its server: connections that are lent, and snapshots that are asked in few round trips."""

import asyncio
import select
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

import msgspec

from memd.runtime.threads import Threads
from memd.shared.binary_vectors import use_vectors
from memd.shared.connection import (
    SharedUnavailable,
    abandon,
    check,
    connect,
    errors_told,
    find_state,
    read_dsn,
)

if TYPE_CHECKING:
    import psycopg

T = TypeVar("T")

AT_ONCE = 4  # connections of one searched memory


class ServerQuery(msgspec.Struct, frozen=True):
    """A statement that reads."""

    sql: str
    values: Mapping[str, Any] | Sequence[Any] = ()
    binary: bool = False  # the form of its answer


class ServerSnapshot:
    """One state of a server's tables: what is asked is read in one transaction, which cannot write."""

    def __init__(self, connection: "psycopg.Connection[Any]", timeout_s: float) -> None:
        """No transaction has begun.

        Args:
            connection: That commits by itself, for this alone.
            timeout_s: For which a statement may run.
        """
        self._connection = connection
        self._timeout_ms = round(1000 * timeout_s)
        self._is_open = False

    def ask(self, *queries: ServerQuery, is_last: bool = False) -> "list[psycopg.Cursor[Any]]":
        """What the server answers to several statements, in one round trip.

        Args:
            queries: The statements.
            is_last: End the transaction, too. What is asked afterwards is read of another state.
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
        """What the server answers to one statement, in a round trip of its own."""
        [found] = self.ask(ServerQuery(sql, values))
        return found

    def end(self) -> None:
        """End the transaction."""
        if self._is_open:
            self._connection.execute("COMMIT")
            self._is_open = False


class SharedConnections:
    """A few connections to one memory, each of which one thread uses at a time; one that fails is given up."""

    def __init__(self, dsn_file: Path, memory: str, timeout_s: float) -> None:
        """Nothing is connected yet.

        Args:
            dsn_file: Where the DSN of the member stands.
            memory: Its name on the server.
            timeout_s: For which an answer is waited for.
        """
        self.memory = memory
        self._dsn_file = dsn_file
        self._timeout_s = timeout_s
        self._idle: list[psycopg.Connection[Any]] = []
        self._threads = Threads(AT_ONCE, f"memd-shared-{memory}")
        # Held while lists of those that are lent are changed, or their connections cut off.
        self._lending = threading.Lock()
        self._is_closed = False
        self.vector_schema = ""

    async def run(self, work: "Callable[[ServerSnapshot], T]") -> T:
        """What work returns, done on a thread with a snapshot of its own.

        Raises:
            SharedUnavailable: the server does not answer, not in time, or refuses.
        """
        lent: list[psycopg.Connection[Any]] = []
        try:
            async with asyncio.timeout(self._timeout_s):
                return await self._threads.run(self._work, work, lent)
        except (TimeoutError, asyncio.CancelledError) as late:
            # Nobody waits any more, and a server that is silent may keep the thread for ever.
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
        """A connection, which is in a list while it is lent."""
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
        """A connection that was given back; None: there is none that the server has not ended."""
        while self._idle:
            connection = self._idle.pop()
            # A server has nothing to say to an idle connection but that it has ended it.
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
                connection.autocommit = True  # a snapshot begins and ends its transactions
        except BaseException:
            connection.close()
            raise
        return connection

    @property
    def is_idle(self) -> bool:
        """Whether no thread is at work, and none waits for the server."""
        return self._threads.is_done

    def close(self) -> None:
        """Give up the connections that nobody uses; the others are given up when their work ends."""
        self._is_closed = True
        while self._idle:
            self._idle.pop().close()
