"""A server that is killed, or falls silent, while daemons publish to it and search it."""

import signal
from pathlib import Path

import pytest

from memd_client import Client, RequestFailed
from memd_client.messages import Found
from tests.daemon.process import Daemon
from tests.daemon.sharing import contents, including, is_published, publisher, trouble, whole
from tests.postgres import PostgresServer, database_with_tables, running_server, shared_server
from tests.relay import relay
from tests.shared.conftest import member
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
