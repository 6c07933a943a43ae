"""Daemons that publish and search memories on a server, and the server's content."""

from pathlib import Path

import psycopg
import pytest

from memd_client.messages import Found, Hit
from tests.daemon.forked import HASHING
from tests.daemon.process import Daemon

PUBLISHING = """
{before}redact = {{ mode = "all" }}
publish = {{ to = "team", memory = "alice/main"{more} }}
[shared.team]
dsn_file = "{dsn_file}"
"""
SEARCHING = """
[agents.alice]
{more}backend = "postgres"
shared = {{ server = "team", memory = "alice/main" }}
[shared.team]
dsn_file = "{dsn_file}"
"""


def publisher(home: Path, dsn: str, *, more: str = "", before: str = "", entry: str = HASHING) -> Daemon:
    """Create a daemon, without starting it, that publishes as alice/main."""
    home.mkdir(exist_ok=True)
    dsn_file = home / "team.dsn"
    dsn_file.write_text(dsn)
    dsn_file.chmod(0o600)
    return Daemon(home, settings=PUBLISHING.format(more=more, before=before, dsn_file=dsn_file), entry=entry)


def contents(admin_dsn: str) -> dict[str, str]:
    """Return the files of all memories on the server by path."""
    with psycopg.connect(admin_dsn) as connection:
        return dict(connection.execute("SELECT path, content FROM memd.files ORDER BY path").fetchall())


def counts(admin_dsn: str) -> dict[str, int]:
    """Return the number of rows in each table, and the counters of all memories."""
    tables = ("files", "chunks", "vectors", "parts", "postings")
    with psycopg.connect(admin_dsn) as connection:
        row = connection.execute(
            "SELECT "
            + ", ".join(f"(SELECT count(*) FROM memd.{table})" for table in tables)
            + ", (SELECT sum(chunks) FROM memd.memories), (SELECT sum(tokens) FROM memd.memories),"
            " (SELECT sum(tokens) FROM memd.chunks),"
            " (SELECT count(*) FROM memd.parts JOIN memd.memories USING (tenant) WHERE has_parts AND vector IS NULL)"
        ).fetchone()
    assert row is not None
    return dict(
        zip(
            (*tables, "said_chunks", "said_tokens", "tokens", "lacking_parts"),
            map(int, (one or 0 for one in row)),
            strict=True,
        )
    )


def trouble(daemon: Daemon) -> str:
    """Return why nothing is published; empty if publishing works."""
    with daemon.client() as client:
        publish = client.status().agents["main"].publish
    assert publish is not None
    return publish.reason or ""


def is_published(daemon: Daemon) -> bool:
    """Return whether the server has everything that the daemon publishes."""
    with daemon.client() as client:
        client.sync()
        publish = client.status().agents["main"].publish
    assert publish is not None
    return publish.reason is None and not publish.waiting and publish.files > 0


def reader(home: Path, dsn: str, *, more: str = "") -> Daemon:
    """Create a daemon, without starting it, whose agent alice has no files and searches what alice publishes."""
    home.mkdir(exist_ok=True)
    dsn_file = home / "team.dsn"
    dsn_file.write_text(dsn)
    dsn_file.chmod(0o600)
    return Daemon(home, settings=SEARCHING.format(more=more, dsn_file=dsn_file))


def whole(daemon: Daemon, admin_dsn: str) -> bool:
    """Return whether the server has all notes of a daemon, with all vectors of chunks and parts."""
    with daemon.client(timeout=300) as client:
        client.sync()
        status = client.status().agents["main"]
    told = counts(admin_dsn)
    has_all = told["vectors"] == told["chunks"] == status.chunks and not told["lacking_parts"]
    return has_all and is_published(daemon)


INCLUDING = """
include = [{{ server = "team", memory = "alice/main"{more} }}]
sync = {{ wait_ms = {wait_ms} }}
scope = {{ default = "allow" }}
[shared.team]
dsn_file = "{dsn_file}"
"""


def including(home: Path, dsn: str, *, more: str = "", wait_ms: int = 10_000) -> Daemon:
    """Create a daemon, without starting it, whose agent has its own notes and includes what alice publishes."""
    home.mkdir(exist_ok=True)
    dsn_file = home / "team.dsn"
    dsn_file.write_text(dsn)
    dsn_file.chmod(0o600)
    return Daemon(home, settings=INCLUDING.format(more=more, wait_ms=wait_ms, dsn_file=dsn_file))


def shown(hit: Hit) -> tuple[object, ...]:
    """Return the fields of a hit without its score."""
    return hit.path, hit.start_line, hit.end_line, hit.snippet, hit.superseded, hit.date, hit.copies


def are_same(local: Found, shared: Found) -> bool:
    """Return whether two answers have the same hits in the same order, except among equal scores."""
    return (
        (local.mode, local.degraded) == (shared.mode, shared.degraded)
        and [hit.score for hit in shared.results]
        == pytest.approx([hit.score for hit in local.results], abs=0.002)
        and sorted(map(repr, map(shown, shared.results))) == sorted(map(repr, map(shown, local.results)))
    )
