"""The connections of one database."""

from pathlib import Path

import apsw
import pytest

from memd.store import database_files
from memd.store.connections import Connections
from tests.bounds import shipped

CREATE = apsw.SQLITE_OPEN_READWRITE | apsw.SQLITE_OPEN_CREATE | apsw.SQLITE_OPEN_URI


def is_open(connection: apsw.Connection) -> bool:
    try:
        connection.execute("SELECT 1").fetchall()
    except apsw.ConnectionClosedError:
        return False
    return True


def test_each_waits_for_others_and_sorts_in_memory(tmp_path: Path) -> None:
    """For as long as a write may take, and while the disk is full."""
    connections = Connections("embeddings", None)
    one = connections.open(database_files.uri(tmp_path / "e.sqlite"), CREATE)
    assert one.pragma("busy_timeout") == shipped("memd.store.connections.BUSY_TIMEOUT_MS")
    assert one.pragma("temp_store") == 2
    connections.close(one)


def test_all_but_one_are_closed(tmp_path: Path) -> None:
    """One that is closed already is none of them; nothing is nothing to close."""
    connections = Connections("embeddings", None)
    kept, closed, other = (
        connections.open(database_files.uri(tmp_path / "e.sqlite"), CREATE) for _ in range(3)
    )
    connections.close(closed)
    connections.close(None)
    connections.close_all_but(kept)
    assert [is_open(one) for one in (kept, closed, other)] == [True, False, False]
    connections.close_all_but(None)
    assert not is_open(kept)


def test_one_that_cannot_be_prepared_is_not_left_open(tmp_path: Path) -> None:
    """As where the extension is not there."""
    connections = Connections("embeddings", str(tmp_path / "missing.so"))
    with pytest.raises(apsw.Error):
        connections.open(database_files.uri(tmp_path / "e.sqlite"), CREATE)
    connections.interrupt()


def test_a_running_statement_is_interrupted(tmp_path: Path) -> None:
    """Of each connection; one that somebody else has closed is passed over."""
    connections = Connections("embeddings", None)
    uri = database_files.uri(tmp_path / "e.sqlite")
    gone, one = connections.open(uri, CREATE), connections.open(uri, CREATE)
    gone.close()

    def interrupt() -> bool:
        connections.interrupt()
        return False

    one.set_progress_handler(interrupt, 1000)
    with pytest.raises(apsw.InterruptError):
        one.execute(
            "WITH RECURSIVE n(i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 1000000) SELECT count(*) FROM n"
        ).fetchall()
    connections.close_all_but(None)
