"""A server that is killed, or falls silent, while daemons publish to it and search it."""

import os
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import Client, RequestFailed
from memd_client.messages import Found
from tests.daemon.process import Daemon
from tests.daemon.sharing import contents, including, is_published, publisher, reader, trouble, whole
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer, database_with_tables, running_server, shared_server
from tests.relay import relay
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

NAME = "team:alice/main"
ASKED = "who keeps the lighthouse?"


def through(dsn: str, port: int) -> str:
    """The same DSN by way of a relay."""
    return " ".join(f"port={port}" if word.startswith("port=") else word for word in dsn.split())


def _alice(home: Path, dsn: str) -> Daemon:
    one = publisher(home / "a", dsn)
    one.write("memory/lighthouse.md", "The lighthouse keeper is called Marta.\n")
    return one


def _bob(home: Path, dsn: str, wait_ms: int) -> Daemon:
    other = including(home / "b", dsn, wait_ms=wait_ms)
    other.write("memory/own.md", "The lighthouse is painted white and red.\n")
    return other


@pytest.fixture
def home_server() -> Iterator[PostgresServer]:
    """A server of its own, for a test that stops it."""
    with running_server() as one:
        yield one


def _signal_all(server: PostgresServer, how: signal.Signals) -> None:
    """Send a signal to a server and all its processes, the one that starts them first."""
    children = Path(f"/proc/{server.pid}/task/{server.pid}/children")
    for pid in (server.pid, *map(int, children.read_text().split())):
        os.kill(pid, how)


def _memories(found: Found) -> set[str | None]:
    return {hit.memory for hit in found.results}


def _missing(found: Found) -> str:
    """Why the included memory has no part in an answer; empty: it has."""
    return "; ".join(one.reason for one in found.degraded if one.part == "included")


def _until_back(client: Client) -> None:
    until(lambda: _memories(client.search(ASKED, min_score=0)) == {None, NAME}, 60)


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", [signal.SIGINT, signal.SIGQUIT])
def test_a_server_that_goes_leaves_what_is_here_and_comes_back(home: Path, how: signal.Signals) -> None:
    """The answer names what is missing, once for each search; status and get say so, too."""
    with running_server() as server:
        admin = server.dsn(server.database())
        one = _alice(home, member(admin, "alice", "alice/main"))
        other = _bob(home, member(admin, "bob", "alice/main", may_write=False), 10_000)
        with one.start(), other.start(), other.client() as client:
            until(lambda: whole(one, admin), 60)
            _until_back(client)
            server.stop(how)
            away = client.search(ASKED, min_score=0)
            assert (_memories(away), away.fallback) == ({None}, False)
            assert _missing(away).startswith(f"{NAME}: PostgreSQL: ")
            assert _missing(client.search(ASKED)) == _missing(away)
            [included] = client.status().agents["main"].included
            assert f"{included.memory}: {included.reason}" == _missing(away)
            with pytest.raises(RequestFailed, match="cannot be read just now: PostgreSQL: "):
                client.get(f"{NAME}/memory/lighthouse.md")
            server.start()
            _until_back(client)
            assert client.status().agents["main"].included[0].reason is None


@pytest.mark.long
@pytest.mark.timeout(300)
def test_a_server_that_is_silent_costs_its_time_once(
    home: Path, server: PostgresServer, admin_dsn: str
) -> None:
    """What is here is answered after `wait_ms`, long before the server's own time is over, and then at once; it comes back."""
    one = _alice(home, member(admin_dsn, "alice", "alice/main"))
    with relay(server.port) as way:
        dsn = through(member(admin_dsn, "bob", "alice/main", may_write=False), way.port)
        other = _bob(home, dsn, 700)
        with one.start(), other.start(), other.client() as client:
            until(lambda: whole(one, admin_dsn), 60)
            _until_back(client)
            way.hold()
            silent = client.search(ASKED, min_score=0)
            assert _memories(silent) == {None}
            # That is what the search has waited for, and not the 3 seconds of the server.
            assert f"{NAME} has not answered for " in _missing(silent)
            asked_of = way.accepted
            again = client.search(ASKED, min_score=0)
            assert _missing(again) == _missing(silent)
            assert way.accepted == asked_of
            way.release()
            _until_back(client)


def _searches_there(home: Path, dsn: str) -> Daemon:
    """A daemon, not started yet, whose agent searches the server and has a note of its own."""
    other = reader(
        home / "c",
        dsn,
        more=f'workspace = "{home}/c/notes"\nsync = {{ wait_ms = 700 }}\nscope = {{ default = "allow" }}\n',
    )
    note = home / "c" / "notes" / "memory" / "own.md"
    note.parent.mkdir(parents=True)
    note.write_text("The lighthouse is painted white and red.\n")
    return other


def _paths(client: Client) -> tuple[set[str], str]:
    """Where the hits of an answer are, and why they are not the server's."""
    found = client.search(ASKED, agent="alice", min_score=0)
    assert (found.fallback_from or "postgres") == "postgres"
    return {hit.path for hit in found.results}, found.fallback_reason or ""


THERE, HERE = {"memory/lighthouse.md"}, {"memory/own.md"}


@pytest.mark.long
@pytest.mark.timeout(300)
@pytest.mark.parametrize("how", ["a relay that passes nothing on", "a server that is stopped"])
def test_own_notes_are_found_while_the_server_that_is_searched_is_silent(
    home: Path, home_server: PostgresServer, how: str
) -> None:
    """After `wait_ms`, and then at once; get has them, too; the server's late answer reaches nobody, and it comes back."""
    admin = home_server.dsn(home_server.database())
    one = _alice(home, member(admin, "alice", "alice/main"))
    with relay(home_server.port) as way:
        dsn = through(member(admin, "bob", "alice/main", may_write=False), way.port)
        other = _searches_there(home, dsn)
        silence, end = (
            (way.hold, way.release)
            if how.startswith("a relay")
            else (
                lambda: _signal_all(home_server, signal.SIGSTOP),
                lambda: _signal_all(home_server, signal.SIGCONT),
            )
        )
        with one.start(), other.start(), other.client(timeout=120) as client:
            until(lambda: whole(one, admin), 60)
            until(lambda: _paths(client) == (THERE, ""), 60)
            silence()
            try:
                paths, reason = _paths(client)
                # That is what the search has waited for, and not the 3 seconds of the server.
                assert (paths, reason.startswith("postgres has not answered for ")) == (HERE, True), reason
                asked_of = way.accepted
                assert _paths(client)[0] == HERE
                assert "painted" in client.get("memory/own.md", agent="alice").text
                assert way.accepted == asked_of
                assert client.status().agents["alice"].backend_fallback is not None
            finally:
                end()
            until(lambda: _paths(client) == (THERE, ""), 60)
            assert client.get("memory/lighthouse.md", agent="alice").text.startswith("The lighthouse keeper")


@pytest.mark.long
@pytest.mark.timeout(300)
def test_own_notes_are_found_where_no_connection_was_ever_answered(
    home: Path, server: PostgresServer, admin_dsn: str
) -> None:
    """Whoever listens there accepts, and says nothing; once it does, or is another, it is searched."""
    one = _alice(home, member(admin_dsn, "alice", "alice/main"))
    with relay(server.port) as way:
        way.hold()
        other = _searches_there(
            home, through(member(admin_dsn, "bob", "alice/main", may_write=False), way.port)
        )
        with one.start(), other.start(), other.client(timeout=120) as client:
            until(lambda: _paths(client)[0] == HERE, 60)
            assert _paths(client)[1]
            until(lambda: whole(one, admin_dsn), 60)
            way.release()
            until(lambda: _paths(client) == (THERE, ""), 60)


@pytest.mark.long
@pytest.mark.timeout(300)
def test_publishing_goes_on_after_a_server_was_silent(
    home: Path, server: PostgresServer, admin_dsn: str
) -> None:
    """Searches here are not kept waiting meanwhile, and a daemon that publishes ends in time."""
    with relay(server.port) as way:
        one = _alice(home, through(member(admin_dsn, "alice", "alice/main"), way.port))
        with one.start(), one.client() as client:
            until(lambda: is_published(one), 60)
            way.hold()
            one.write("memory/late.md", "Written while nobody answered.\n")
            client.sync()
            assert [hit.path for hit in client.search("nobody answered").results][:1] == ["memory/late.md"]
            assert "memory/late.md" not in contents(admin_dsn)
            way.release()
            until(lambda: "memory/late.md" in contents(admin_dsn), 60)
            until(lambda: is_published(one) and not trouble(one), 60)
            way.hold()
            one.write("memory/last.md", "Written before the end.\n")
            client.sync()
            assert one.stop() == 0
