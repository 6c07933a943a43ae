"""The open connections of one database: opened alike, interrupted and closed together."""

import contextlib
import threading

import apsw

from memd.store import keywords

BUSY_TIMEOUT_MS = 5000


class Connections:
    """Connections to one database. Threads may share the object, but no connection."""

    def __init__(self, schema: str, extension: str | None) -> None:
        """Create the object; nothing is open.

        Args:
            schema: The folder of migrations, below sql/.
            extension: A loadable extension for each connection, or None.
        """
        self._schema = schema
        self._extension = extension
        self._open: set[apsw.Connection] = set()
        self._lock = threading.Lock()

    def open(self, uri: str, flags: int) -> apsw.Connection:
        """Open a connection with all settings. Raises apsw.Error."""
        connection = apsw.Connection(uri, flags=flags)
        with self._lock:
            self._open.add(connection)
        try:
            connection.set_busy_timeout(BUSY_TIMEOUT_MS)
            connection.pragma("temp_store", 2)  # in memory, so that searches can sort while the disk is full
            if self._extension is not None:
                connection.enable_load_extension(True)
                connection.load_extension(self._extension)
                connection.enable_load_extension(False)
            if self._schema == "index":
                keywords.prepare(connection)
        except BaseException:
            self.close(connection)
            raise
        return connection

    def close(self, connection: apsw.Connection | None) -> None:
        """Close a connection, if it is one."""
        if connection is None:
            return
        with self._lock:
            self._open.discard(connection)
        # Closing may report damage; the connection is closed anyway.
        with contextlib.suppress(apsw.Error):
            connection.close()

    def close_all_but(self, kept: apsw.Connection | None) -> None:
        """Close all connections, except for one."""
        for connection in self._listed():
            if connection is not kept:
                self.close(connection)

    def interrupt(self) -> None:
        """Interrupt the running statement of each connection."""
        for connection in self._listed():
            with contextlib.suppress(apsw.ConnectionClosedError):
                connection.interrupt()

    def _listed(self) -> list[apsw.Connection]:
        with self._lock:
            return list(self._open)
