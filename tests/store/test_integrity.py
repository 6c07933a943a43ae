"""Whether SQLite can do what memd asks of it."""

import sys
from pathlib import Path

import apsw
import pytest
from structlog.testing import capture_logs

from memd.store import keywords
from memd.store.integrity import IndexDamage, faults, sqlite_versions, try_keywords, try_vectors
from tests.bounds import shipped
from tests.store.golden.read import stores, unpack


def test_what_is_installed_here_works() -> None:
    """Keywords and vectors are tried, and versions told."""
    version, _ = sqlite_versions()
    vec, fault = try_vectors()
    assert (try_keywords(), fault) == (None, None)
    assert vec is not None
    assert int(version.split(".")[0]) == 3


def test_a_missing_extension_is_a_fault_of_vectors_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    """As where sqlite-vec has no build."""
    monkeypatch.setitem(sys.modules, "sqlite_vec", None)
    vec, fault = try_vectors()
    assert try_keywords() is None
    assert vec is None
    assert "sqlite-vec does not load" in str(fault)


@pytest.mark.parametrize("schema", ["index", "embeddings"])
def test_of_many_faults_the_first_are_told(schema: str) -> None:
    """Each would be a line of an answer, and one is reason enough to build the file anew."""
    most = shipped("memd.store.integrity._MOST_FAULTS")
    empty = apsw.Connection(":memory:")
    empty.pragma("user_version", 1)
    told = faults(empty, schema)
    there = apsw.Connection(":memory:")
    there.pragma("user_version", 1)
    for line in told:
        assert line.startswith("no such table or index: ")
        there.execute(f"CREATE TABLE {line.rpartition(' ')[2]} (x)")
    others = faults(there, schema)
    assert not set(told) & set(others)
    assert len(told) == min(most, len(told) + len(others))


def test_damage_is_logged_once_and_told_each_time_until_it_is_mended() -> None:
    """A broken keyword index is one reason to set the file aside, and gives way to none that was there."""
    damage = IndexDamage("main")
    with capture_logs() as logs:
        for reason in ("page 7", "page 8"):
            damage.report(reason)
        damage.report_keyword("fts5")
        damage.report_keyword("fts5 again")
    assert [(one["event"], one["reason"]) for one in logs] == [("sync.index_damaged", "page 7")]
    assert (damage.reason, damage.keyword, damage.reported.version) == ("page 7", "fts5", 4)
    assert [damage.mended(), damage.mended()] == [True, False]
    assert (damage.reason, damage.keyword) == (None, None)
    damage.report_keyword("fts5")
    assert damage.reason == "fts5"


@pytest.mark.parametrize("store", stores(), ids=lambda store: store.name)
def test_an_older_store_is_looked_at_by_what_its_schema_has(tmp_path: Path, store: Path) -> None:
    """A count of rows that is wrong is a fault from the first schema on that has one."""
    unpack(store, tmp_path)
    connection = apsw.Connection(str(tmp_path / "agents" / "main.sqlite"))
    keywords.prepare(connection)
    assert faults(connection, "index") == ()
    if connection.pragma("user_version") >= 3:
        connection.execute("UPDATE totals SET n = n + 1 WHERE name = 'chunks'")
        assert [line.startswith("the number of chunks is not") for line in faults(connection, "index")] == [
            True
        ]
    connection.close()
