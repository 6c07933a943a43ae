"""What a publisher makes a real server hold."""

from concurrent.futures import ThreadPoolExecutor
from functools import partial
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import psycopg
import pytest

from memd.domain_types import Kind
from memd.postgres.connection import SharedState, SharedUnavailable, find_state
from memd.postgres.mirror import TRANSACTION_S, Mirror, VectorSpace
from memd.store.published_files import PublishedChunk, PublishedFile, PublishedPart
from tests.postgres.conftest import member
from tests.postgres_server import PostgresServer
from tests.relay import relay

SPACE = VectorSpace(("hashing", "words", "1"), 2, has_parts=True)
LINES = ["The kettle leaks.", "The lamp is new."]


def _floats(number: float) -> bytes:
    return np.array([number, 0.0], "<f4").tobytes()


def _file(*vectors: bytes | None) -> PublishedFile:
    chunks = tuple(
        PublishedChunk(
            *(n + 1, n + 1, LINES[n], "", bytes([n] * 32), None, None, None, None),
            vector,
            (PublishedPart(0, 4, None if vector is None else vector[:4]), PublishedPart(4, 9, None)),
        )
        for n, vector in enumerate(vectors)
    )
    return PublishedFile("memory/a.md", Kind.NOTE, b"x" * 32, 1, None, (), chunks)


def _vectors(admin_dsn: str) -> list[tuple[str, str | None, int]]:
    """Of each chunk its text, its vector and how many of its parts have one."""
    with psycopg.connect(admin_dsn) as admin:
        admin.execute("SET search_path = memd")
        return admin.execute(
            "SELECT text, vector::text, (SELECT count(p.vector) FROM parts p WHERE (p.tenant, p.chunk_id) = (c.tenant, c.id))"
            " FROM chunks c LEFT JOIN vectors v ON (v.tenant, v.chunk_id) = (c.tenant, c.id) ORDER BY c.tenant, c.id"
        ).fetchall()


def test_a_call_that_nobody_waits_for_fails_at_once(
    server: PostgresServer, admin_dsn: str, tmp_path: Path
) -> None:
    """Though the server is silent; before there is a connection, nothing can be given up."""
    dsn_file = tmp_path / "alice.dsn"
    dsn_file.touch(mode=0o600)
    with relay(server.port) as way, ThreadPoolExecutor(1) as publisher:
        dsn = member(admin_dsn, "alice", "alice/main")
        dsn_file.write_text(
            " ".join(f"port={way.port}" if one.startswith("port=") else one for one in dsn.split())
        )
        mirror = Mirror(dsn_file, "alice/main", "me")
        mirror.abandon()
        mirror.open()
        way.hold()
        dropping = publisher.submit(mirror.drop, "memory/a.md")
        mirror.abandon()
        with pytest.raises(SharedUnavailable):
            dropping.result(60)
        way.release()
        mirror.close()


def test_each_statement_of_a_publisher_has_so_long(
    admin_dsn: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A lock that another one holds is waited for no longer."""
    dsn_file = tmp_path / "alice.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(member(admin_dsn, "alice", "alice/main"))
    told: list[object] = []
    setting = "SELECT setting FROM pg_settings WHERE name = 'statement_timeout'"

    def asked(connection: Any) -> SharedState:
        told.append(connection.execute(setting).fetchone())
        return find_state(connection)

    monkeypatch.setattr("memd.postgres.mirror.find_state", asked)
    mirror = Mirror(dsn_file, "alice/main", "me")
    mirror.open()
    mirror.close()
    assert told == [(str(1000 * TRANSACTION_S),)]  # milliseconds


def test_the_time_of_the_last_change_is_known(admin_dsn: str, tmp_path: Path) -> None:
    """Of one that was none, nothing is noted."""
    dsn_file = tmp_path / "alice.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(member(admin_dsn, "alice", "alice/main"))
    mirror = Mirror(dsn_file, "alice/main", "me")
    mirror.open()

    def put(vector: bytes | None) -> None:
        file = _file(vector)
        mirror.put(file, LINES[:1], file.digests(LINES[:1], SPACE))

    with psycopg.connect(admin_dsn, autocommit=True) as admin:
        for change, is_one in (
            (partial(put, None), True),
            (partial(put, None), False),
            (partial(put, _floats(0.5)), True),
            (partial(mirror.drop, "memory/b.md"), False),
            (partial(mirror.drop, "memory/a.md"), True),
        ):
            admin.execute("UPDATE memd.memories SET published_at = 'epoch'")
            change()
            row = admin.execute("SELECT published_at > 'epoch' FROM memd.memories").fetchone()
            assert row == (is_one,)
    mirror.close()


def test_vectors_that_are_not_here_yet_stay_there(admin_dsn: str, tmp_path: Path) -> None:
    """A publisher that has lost its index takes none away while it embeds anew; what it has replaces what was there."""
    dsn_file = tmp_path / "alice.dsn"
    dsn_file.touch(mode=0o600)
    dsn_file.write_text(member(admin_dsn, "alice", "alice/main"))
    mirror = Mirror(dsn_file, "alice/main", "me")

    def publish(file: PublishedFile) -> bytes:
        digest = file.digests(LINES, SPACE)
        mirror.put(file, LINES, digest)
        return digest

    mirror.open()
    mirror.adopt(SPACE)
    publish(_file(_floats(0.5), _floats(0.25)))
    known = _vectors(admin_dsn)
    assert known == [(LINES[0], "[0.5,0]", 1), (LINES[1], "[0.25,0]", 1)]
    for vectors in ((None, None), (_floats(0.5), None)):
        publish(_file(*vectors))
        assert _vectors(admin_dsn) == known
    last = publish(_file(_floats(0.75), None))
    assert _vectors(admin_dsn) == [(LINES[0], "[0.75,0]", 1), (LINES[1], "[0.25,0]", 1)]
    assert mirror.open() == {"memory/a.md": last}
    assert mirror.adopt(VectorSpace(("hashing", "words", "2"), 2, has_parts=True))
    assert _vectors(admin_dsn) == [(LINES[0], None, 0), (LINES[1], None, 0)]
    mirror.close()


def test_a_new_version_of_a_file_keeps_the_vectors_of_chunks_that_are_as_they_were(
    admin_dsn: str, tmp_path: Path
) -> None:
    """Also of one that is under another path by now; not those of a memory that the role may read, too."""
    dsn_file = tmp_path / "alice.dsn"
    dsn_file.touch(mode=0o600)
    member(admin_dsn, "alice", "alice/main")
    dsn_file.write_text(member(admin_dsn, "alice", "bob/main"))
    for memory in ("alice/main", "bob/main"):
        mirror = Mirror(dsn_file, memory, "me")
        mirror.open()
        mirror.adopt(SPACE)
        first = _file(_floats(0.5), _floats(0.25)) if memory == "alice/main" else _file(None)
        mirror.put(first, LINES, first.digests(LINES, SPACE))
        if memory == "alice/main":
            edited = msgspec.structs.replace(_file(None), written_ns=2)
            mirror.put(edited, LINES[:1], edited.digests(LINES[:1], SPACE))
            moved = msgspec.structs.replace(_file(None), path="memory/b.md")
            mirror.put(moved, LINES[:1], moved.digests(LINES[:1], SPACE))
        mirror.close()
    assert _vectors(admin_dsn) == [(LINES[0], "[0.5,0]", 1), (LINES[0], "[0.5,0]", 1), (LINES[0], None, 0)]
