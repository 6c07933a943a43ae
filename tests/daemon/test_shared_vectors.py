"""Vectors that were published once: whoever publishes the memory again takes them back, and embeds nothing twice."""

import json
import shutil
from collections.abc import Iterator, Sequence
from pathlib import Path

import psycopg
import pytest

from memd.postgres import administration
from memd.postgres.connection import connect
from tests.daemon.counted import ASKED
from tests.daemon.process import Daemon
from tests.daemon.sharing import counts, is_published, publisher
from tests.postgres.conftest import member
from tests.postgres_server import database_with_tables, shared_server
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

QUESTIONS = ("which database for billing", "ferry to the harbour", "部署在星期几")


def _publisher(home: Path, dsn: str) -> Daemon:
    """One that writes down what it embeds."""
    return publisher(home, dsn, entry="tests.daemon.counted")


def _fill(daemon: Daemon) -> None:
    daemon.write("MEMORY.md", "Alice's own: the vault is behind the mill.\n")
    daemon.write("memory/billing.md", "# Billing\n\nWe chose PostgreSQL for billing.\n")
    daemon.write("memory/ferry.md", "The ferry leaves from the western harbour.\n" * 3 + "部署在星期四。\n")
    for number in range(12):
        lines = "".join(f"Line {line} of note {number}, on topic {line % 5}.\n" for line in range(30))
        daemon.write(f"memory/many/{number}.md", lines)


def _start(daemon: Daemon) -> Daemon:
    return daemon.start(environ={ASKED: str(daemon.home / "asked")})


def _embedded(daemon: Daemon) -> list[str]:
    """The texts that its provider was asked for so far."""
    file = daemon.home / "asked"
    lines = file.read_text().splitlines() if file.exists() else []
    file.write_text("")
    return [text for line in lines for text in json.loads(line)]


def _answers(daemon: Daemon) -> Sequence[object]:
    with daemon.client() as client:
        found = [client.search(question, max_results=10, min_score=0) for question in QUESTIONS]
    return [[(hit.path, hit.start_line, hit.score, hit.snippet) for hit in one.results] for one in found]


def _settled(daemon: Daemon, admin_dsn: str) -> None:
    """Wait until all is embedded, and published with its vectors."""

    def is_settled() -> bool:
        with daemon.client(timeout=300) as client:
            client.sync()
            vectors = client.status().agents["main"].vectors
        told = counts(admin_dsn)
        return not vectors.waiting and is_published(daemon) and told["vectors"] == told["chunks"]

    until(is_settled, 60)


@pytest.fixture
def alice(home: Path, admin_dsn: str) -> Iterator[Daemon]:
    """One that has published all, and is stopped."""
    one = _publisher(home / "a", member(admin_dsn, "alice", "alice/main"))
    _fill(one)
    try:
        with _start(one):
            _settled(one, admin_dsn)
        yield one
    finally:
        one.__exit__(None, None, None)


@pytest.mark.long
def test_a_publisher_that_lost_its_state_embeds_nothing_again(alice: Daemon, admin_dsn: str) -> None:
    """Chunks and parts come back as they were, and answers with them; its own file, which nobody published, is embedded."""
    with _start(alice):
        before = _answers(alice)
    assert len(_embedded(alice)) > 12
    shutil.rmtree(alice.state)
    with connect(admin_dsn) as admin:  # the installation has another name now
        administration.grant(admin, "alice", "alice/main", may_write=True, new_password=False)
    with _start(alice):
        _settled(alice, admin_dsn)
        assert _answers(alice) == before
        with alice.client() as client:
            publish = client.status().agents["main"].publish
    assert publish is not None
    assert publish.taken_back > 12
    embedded = _embedded(alice)
    assert len(embedded) == 1
    assert "the vault is behind the mill" in embedded[0]


def test_another_machine_that_takes_the_memory_over_embeds_only_what_differs(
    alice: Daemon, home: Path, admin_dsn: str
) -> None:
    """Files that moved, too, and the chunks of a file that are as they were in another version of it."""
    other = _publisher(home / "b", (alice.home / "team.dsn").read_text())
    shutil.rmtree(other.workspace)
    shutil.copytree(alice.workspace, other.workspace)
    (other.workspace / "MEMORY.md").unlink()
    (other.workspace / "memory/ferry.md").rename(other.workspace / "memory/harbour.md")
    other.write("memory/new.md", "The archive is in the cellar.\n")
    with connect(admin_dsn) as admin:
        administration.grant(admin, "alice", "alice/main", may_write=True, new_password=False)
    with _start(other):
        _settled(other, admin_dsn)
    embedded = _embedded(other)
    assert any("the cellar" in text for text in embedded)
    # The name of a file is part of what is embedded for its chunks.
    assert all("cellar" in text or "harbour" in text for text in embedded), embedded


@pytest.mark.long
def test_while_the_server_is_away_all_is_embedded_as_ever(alice: Daemon, admin_dsn: str) -> None:
    """Nobody waits for it, and nothing is left without a vector."""
    _embedded(alice)
    shutil.rmtree(alice.state)
    (alice.home / "team.dsn").write_text("postgresql://memd_user_alice:x@127.0.0.1:1/none")
    with _start(alice), alice.client(timeout=300) as client:
        client.sync()
        status = client.status().agents["main"]
        assert not status.vectors.waiting
        assert status.publish is not None
        assert status.publish.taken_back == 0
    assert len(_embedded(alice)) > 12


@pytest.mark.long
def test_a_forced_reindex_embeds_anew_though_the_server_has_all(alice: Daemon, admin_dsn: str) -> None:
    """Whoever asks for it does not trust the vectors that are there."""
    _embedded(alice)
    with _start(alice), alice.client(timeout=300) as client:
        client.reindex(force=True)  # answered as soon as the work has begun

        def is_embedded() -> bool:
            whole_lines = (alice.home / "asked").read_text().rpartition("\n")[0].splitlines()
            return sum(len(json.loads(line)) for line in whole_lines) > 12

        until(is_embedded, 60)
        _settled(alice, admin_dsn)


@pytest.mark.long
def test_what_another_member_wrote_in_their_place_is_not_taken(alice: Daemon, admin_dsn: str) -> None:
    """Vectors of another length, of no direction at all, or of other numbers of dimensions: the text is embedded here."""
    _embedded(alice)
    shutil.rmtree(alice.state)
    with psycopg.connect(admin_dsn) as admin:
        admin.execute("SET search_path = memd")
        admin.execute(
            "UPDATE vectors SET vector = vector * array_fill(2, ARRAY[vector_dims(vector)])::vector"
        )
        admin.execute("UPDATE parts SET vector = vector || vector")
    with _start(alice), alice.client(timeout=300) as client:
        client.sync()
        publish = client.status().agents["main"].publish
    assert publish is not None
    assert publish.taken_back == 0
    assert len(_embedded(alice)) > 12
