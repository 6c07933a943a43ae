"""Daemons that share memories on a real PostgreSQL server."""

import signal
from collections.abc import Iterator
from pathlib import Path

import psycopg
import pytest

from memd.postgres import administration
from memd.postgres.connection import connect
from tests.daemon.process import Daemon
from tests.daemon.sharing import contents, counts, is_published, publisher, trouble
from tests.postgres.conftest import member
from tests.postgres_server import database_with_tables, running_server, shared_server
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

KEY = "ghp_" + "a1B2c3D4e5F6g7H8i9J0k1L2m3N4o5P6q7R8"


@pytest.fixture
def alice(home: Path, admin_dsn: str) -> Iterator[Daemon]:
    """One that publishes, with three notes."""
    one = publisher(home / "a", member(admin_dsn, "alice", "alice/main"))
    one.write("MEMORY.md", "Alice's own: the vault is behind the mill.\n")
    one.write("memory/2026-11-02.md", f"# Billing\n\nWe chose PostgreSQL for billing.\n\ntoken: {KEY}\n")
    one.write("memory/ops/deploy.md", "---\ntags: [ops]\n---\n\nDeploys go out on Thursday. 部署在星期四。\n")
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def test_notes_are_mirrored_and_follow_each_change(alice: Daemon, admin_dsn: str) -> None:
    """Without the owner's own file, without secrets; changed, moved and deleted there as here, vectors too."""
    with alice.start():
        until(lambda: len(contents(admin_dsn)) == 2 and is_published(alice), 20)
        there = contents(admin_dsn)
        assert there["memory/2026-11-02.md"].startswith("# Billing\n\nWe chose PostgreSQL for billing.")
        assert KEY not in str(there)
        assert "REDACTED" in there["memory/2026-11-02.md"]
        until(lambda: counts(admin_dsn)["vectors"] == counts(admin_dsn)["chunks"] > 0, 20)

        alice.write("memory/2026-11-02.md", "# Billing\n\nWe moved billing to SQLite.\n")
        until(lambda: "SQLite" in contents(admin_dsn)["memory/2026-11-02.md"], 20)
        (alice.workspace / "memory/ops/deploy.md").rename(alice.workspace / "memory/deploy.md")
        until(lambda: contents(admin_dsn).keys() == {"memory/2026-11-02.md", "memory/deploy.md"}, 20)
        (alice.workspace / "memory/2026-11-02.md").unlink()
        until(lambda: contents(admin_dsn).keys() == {"memory/deploy.md"}, 20)
        until(lambda: counts(admin_dsn)["vectors"] == 1, 20)
        told = counts(admin_dsn)
    assert (told["files"], told["chunks"], told["said_chunks"]) == (1, 1, 1)
    assert told["said_tokens"] == told["tokens"] > 0
    with psycopg.connect(admin_dsn) as connection:
        orphans = connection.execute(
            "SELECT (SELECT count(*) FROM memd.postings WHERE (tenant, segment) NOT IN (SELECT tenant, first FROM memd.segments)),"
            " (SELECT sum(chunks - cardinality(gone)) FROM memd.segments)"
        ).fetchone()
    assert orphans == (0, told["chunks"])


def test_what_is_there_is_not_sent_again(alice: Daemon, admin_dsn: str) -> None:
    """After a restart both are compared by digests; a change while the daemon was down is found, a deletion too."""
    with alice.start():
        until(lambda: is_published(alice) and counts(admin_dsn)["vectors"] == counts(admin_dsn)["chunks"], 20)
    with psycopg.connect(admin_dsn) as connection:
        before: dict[str, int] = dict(connection.execute("SELECT path, id FROM memd.files").fetchall())
    alice.write("memory/new.md", "Written while nobody looked.\n")
    (alice.workspace / "memory/ops/deploy.md").unlink()
    with alice.start():
        until(lambda: contents(admin_dsn).keys() == {"memory/2026-11-02.md", "memory/new.md"}, 20)
        until(lambda: is_published(alice), 20)
    with psycopg.connect(admin_dsn) as connection:
        after: dict[str, int] = dict(connection.execute("SELECT path, id FROM memd.files").fetchall())
    assert after["memory/2026-11-02.md"] == before["memory/2026-11-02.md"]  # the row of then


def test_the_owners_own_file_goes_along_where_it_is_said(home: Path, admin_dsn: str) -> None:
    """MEMORY.md, with its kind: group conversations of others must not see it either."""
    one = publisher(
        home / "a", member(admin_dsn, "alice", "alice/main"), more=', sources = ["memory", "curated"]'
    )
    one.write("MEMORY.md", "The vault is behind the mill.\n")
    one.write("memory/a.md", "A note.\n")
    with one.start():
        until(lambda: contents(admin_dsn).keys() == {"MEMORY.md", "memory/a.md"}, 20)
    with psycopg.connect(admin_dsn) as connection:
        kinds = connection.execute("SELECT path, kind FROM memd.files ORDER BY path").fetchall()
    assert kinds == [("MEMORY.md", 1), ("memory/a.md", 0)]


def test_what_somebody_changed_on_the_server_is_made_as_it_is_here(alice: Daemon, admin_dsn: str) -> None:
    """At the next comparison, as after a restart."""
    with alice.start():
        until(lambda: is_published(alice), 20)
    with psycopg.connect(admin_dsn) as connection:
        connection.execute("UPDATE memd.files SET digest = '' WHERE path LIKE '%ops%'")
        connection.execute("DELETE FROM memd.files WHERE path NOT LIKE '%ops%'")
        connection.execute(
            "INSERT INTO memd.files SELECT tenant, 900, 'memory/strange.md', 0, 0, NULL, '', 'x' FROM memd.memories"
        )
    with alice.start():
        until(lambda: contents(admin_dsn).keys() == {"memory/2026-11-02.md", "memory/ops/deploy.md"}, 20)


@pytest.mark.rows(1)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_goes_and_comes_back(home: Path, how: signal.Signals) -> None:
    """Notes are searched here meanwhile, the status says why nothing is published, and all is there in the end."""
    with running_server() as server:
        admin = server.dsn(server.database())
        one = publisher(home / "a", member(admin, "alice", "alice/main"))
        one.write("memory/a.md", "The first note.\n")
        with one.start(), one.client() as client:
            until(lambda: contents(admin).keys() == {"memory/a.md"}, 20)
            server.stop(how)
            one.write("memory/b.md", "Written while the server was away.\n")
            assert [hit.path for hit in client.search("written while away").results][:1] == ["memory/b.md"]
            until(lambda: "PostgreSQL: " in trouble(one), 20)
            reason = trouble(one)
            assert "\n" not in reason
            server.start()
            until(lambda: contents(admin).keys() == {"memory/a.md", "memory/b.md"}, 30)
            assert until(lambda: is_published(one), 20)


@pytest.mark.long
def test_kills_in_the_middle_leave_both_alike(alice: Daemon, admin_dsn: str) -> None:
    """A daemon that is killed while it publishes hundreds of files, three times; no half of a file is ever there."""
    for number in range(120):
        alice.write(f"memory/many/{number}.md", f"# Note {number}\n\n" + f"Line of note {number}.\n" * 30)
    for least in (1, 30, 70):
        alice.start()
        until(lambda: len(contents(admin_dsn)) >= least, 30)  # noqa: B023  it is called here
        alice.kill()
        told = counts(admin_dsn)
        assert told["chunks"] == told["said_chunks"]
        assert told["tokens"] == told["said_tokens"]
    with alice.start():
        until(lambda: is_published(alice) and len(contents(admin_dsn)) == 122, 60)
    there = contents(admin_dsn)
    for number in range(120):
        here = (alice.workspace / f"memory/many/{number}.md").read_text()
        assert there[f"memory/many/{number}.md"] == here.rstrip("\n")


@pytest.mark.long
def test_sessions_that_are_ended_by_the_server_are_begun_anew(alice: Daemon, admin_dsn: str) -> None:
    """In the middle of whatever transaction they are."""
    for number in range(60):
        alice.write(f"memory/many/{number}.md", f"Note {number} of many.\n")
    with alice.start(), psycopg.connect(admin_dsn, autocommit=True) as admin:
        for least in (1, 20, 40):
            until(lambda: len(contents(admin_dsn)) >= least, 30)  # noqa: B023  it is called here
            admin.execute(
                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename = 'memd_user_alice'"
            )
        until(lambda: is_published(alice) and len(contents(admin_dsn)) == 62, 60)


def test_two_installations_do_not_publish_the_same_memory(alice: Daemon, home: Path, admin_dsn: str) -> None:
    """The second says so and changes nothing, until an administrator hands the memory over."""
    dsn = (home / "a/team.dsn").read_text()
    other = publisher(home / "b", dsn)
    other.write("memory/other.md", "Of another machine.\n")
    with alice.start():
        until(lambda: is_published(alice), 20)
        with other.start():
            until(lambda: "another installation" in trouble(other), 20)
            assert "memory/other.md" not in contents(admin_dsn)
    with connect(admin_dsn) as admin:
        administration.grant(admin, "alice", "alice/main", may_write=True, new_password=False)
    with other.start():
        until(lambda: contents(admin_dsn).keys() == {"memory/other.md"}, 20)


def test_a_member_that_was_revoked_publishes_no_more(alice: Daemon, admin_dsn: str) -> None:
    """At once, and it says why."""
    with alice.start():
        until(lambda: is_published(alice), 20)
        with connect(admin_dsn) as admin:
            administration.revoke(admin, "alice", None)
        alice.write("memory/late.md", "Too late.\n")
        until(lambda: "memd_user_alice" in trouble(alice), 30)
    assert "memory/late.md" not in contents(admin_dsn)


def test_psycopg_is_loaded_where_something_is_published_alone(home: Path, admin_dsn: str) -> None:
    """Another daemon does not know that there is such a thing."""
    one = publisher(home / "a", member(admin_dsn, "alice", "alice/main"))
    without = Daemon(home / "b", settings='provider = "none"', entry="tests.daemon.imported")
    settings = one.config.read_text().replace("redact =", 'provider = "none"\nredact =')
    published = Daemon(home / "a", entry="tests.daemon.imported")
    published.config.write_text(settings)
    for daemon, loaded in ((without, False), (published, True)):
        daemon.write("memory/a.md", "A note.\n")
        with daemon.start(environ={"HOME": str(home)}), daemon.client() as client:
            client.sync()
            assert client.search("note").results
            if loaded:
                until(lambda: is_published(daemon), 20)  # noqa: B023  it is called here
            assert daemon.stop() == 0
        assert ("psycopg" in daemon.printed().splitlines()[-1]) is loaded
