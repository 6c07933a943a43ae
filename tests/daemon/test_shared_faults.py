"""Shared memories behind a pooler and on a replica, with a full disk, a wrong clock and kills: equal in the end."""

import base64
import shutil
import signal
import subprocess
import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from random import Random

import psycopg
import pytest
from psycopg.conninfo import make_conninfo

from tests.daemon.process import Daemon
from tests.daemon.sharing import (
    are_same,
    contents,
    including,
    is_published,
    publisher,
    reader,
    trouble,
    whole,
)
from tests.postgres.conftest import member
from tests.postgres_server import (
    PostgresServer,
    as_nobody,
    database_with_tables,
    pooler,
    running_server,
    scratch,
    shared_server,
)
from tests.wait import until

__all__ = ["database_with_tables", "shared_server"]

pytestmark = [pytest.mark.long, pytest.mark.timeout(600)]

FAKETIME = Path("/usr/lib/x86_64-linux-gnu/faketime/libfaketime.so.1")
WORDS = ("ferry", "harbour", "billing", "kettle", "lamp", "mill", "heron", "archive", "ladder", "cellar")
QUESTIONS = (*WORDS, "where is the ladder", "the ferry and the harbour", "who has the lamp of the mill")


def _notes(daemon: Daemon, count: int = 6) -> None:
    for number in range(count):
        daemon.write(
            f"memory/{number}.md", f"# {WORDS[number]}\n\nThe {WORDS[number]} is of note {number}.\n"
        )


def _as_files(daemon: Daemon) -> dict[str, str]:
    """What the server is to have."""
    return {
        str(file.relative_to(daemon.workspace)): file.read_text().rstrip("\n")
        for file in sorted((daemon.workspace / "memory").rglob("*.md"))
    }


def _differing(daemon: Daemon, other: Daemon) -> list[str]:
    """The questions that two daemons answer differently: one by its own index, the other by the server."""
    with daemon.client() as here, other.client() as there:
        return [
            question
            for question in QUESTIONS
            if not are_same(
                here.search(question, agent="main", min_score=0),
                there.search(question, agent="alice", min_score=0),
            )
        ]


def test_a_pooler_in_transaction_mode(home: Path, server: PostgresServer, admin_dsn: str) -> None:
    """Publishing, eight searches at a time on two connections, and an edit that is found."""
    dsns = (
        member(admin_dsn, "alice", "alice/main"),
        member(admin_dsn, "bob", "alice/main", may_write=False),
    )
    with scratch() as directory, pooler(server, directory, *dsns) as (for_alice, for_bob):
        one, other = publisher(home / "a", for_alice), reader(home / "b", for_bob)
        _notes(one)
        with one.start(), other.start():
            until(lambda: whole(one, admin_dsn) and not _differing(one, other), 60)
            with ThreadPoolExecutor(8) as threads:
                assert list(threads.map(lambda _: _differing(one, other), range(8))) == [[]] * 8
            one.write("memory/late.md", "The lantern came late.\n")
            until(lambda: "memory/late.md" in contents(admin_dsn), 60)
            with other.client() as client:
                found = client.search("lantern", agent="alice").results
    assert [hit.path for hit in found][:1] == ["memory/late.md"]


def test_a_replica_is_searched_and_not_published_to(home: Path) -> None:
    """What is published to the primary is found on it a moment later."""
    with running_server() as server, scratch() as directory:
        admin_dsn = server.dsn(server.database())
        dsn = member(admin_dsn, "alice", "alice/main")
        standby = server.standby(directory)
        try:
            on_standby = make_conninfo(dsn, port=str(standby.port))
            one, other = publisher(home / "a", dsn), reader(home / "b", on_standby)
            refused = publisher(home / "c", on_standby)
            for daemon in (one, refused):
                _notes(daemon)
            with one.start(), other.start(), refused.start():
                until(lambda: whole(one, admin_dsn), 60)
                until(lambda: not _differing(one, other), 60)
                until(lambda: "the DSN must name the primary" in trouble(refused), 60)
        finally:
            standby.stop()


@pytest.mark.parametrize("skew", ["+25h", "-25h"])
def test_a_server_whose_clock_is_wrong(home: Path, skew: str) -> None:
    """Nothing depends on it: days of notes and the order of what is newest are of the machine that has the files."""
    if not FAKETIME.exists():
        pytest.skip("libfaketime is not installed")
    environ = {"LD_PRELOAD": str(FAKETIME), "FAKETIME": skew, "DONT_FAKE_MONOTONIC": "1"}
    with running_server(environ=environ) as server:
        admin_dsn = server.dsn(server.database())
        with psycopg.connect(admin_dsn) as admin:
            row = admin.execute("SELECT abs(extract(epoch FROM now()) - %s)", (time.time(),)).fetchone()
        assert row is not None
        assert row[0] > 24 * 3600
        one = publisher(home / "a", member(admin_dsn, "alice", "alice/main"))
        other = reader(home / "b", member(admin_dsn, "bob", "alice/main", may_write=False))
        _notes(one)
        with one.start(), other.start():
            until(lambda: whole(one, admin_dsn), 60)
            one.write("memory/0.md", "The ferry goes another way now.\n")
            until(lambda: "another way" in contents(admin_dsn)["memory/0.md"] and whole(one, admin_dsn), 60)
            until(lambda: not _differing(one, other), 60)


def _limit_files(server: PostgresServer, most: int | None) -> None:
    """Have no file of a server grow beyond so many bytes; writing more fails as it does on a full disk."""
    program = shutil.which("prlimit")
    if program is None:
        pytest.skip("prlimit is not installed")
    with psycopg.connect(server.dsn("postgres")) as admin:
        pids = [pid for (pid,) in admin.execute("SELECT pid FROM pg_stat_activity")]
    for pid in (server.pid, *pids):
        # By whoever runs the server: root need not have the right. A process may have ended meanwhile.
        limit = [program, "--pid", str(pid), f"--fsize={most or 'unlimited'}:unlimited"]
        done = subprocess.run(limit, capture_output=True, check=False, timeout=30, **as_nobody())
        assert done.returncode == 0 or pid != server.pid, done.stderr


def test_a_server_that_has_no_room_left(home: Path) -> None:
    """The status says so in a line, what is here is found, and all is there once there is room."""
    with running_server(wal_segment_mb=1) as server:
        admin_dsn = server.dsn(server.database())
        one = publisher(home / "a", member(admin_dsn, "alice", "alice/main"))
        random = Random(4)
        for number in range(5):
            lines = [base64.b64encode(random.randbytes(75)).decode() for _ in range(3_000)]
            one.write(f"memory/{number}.md", f"# {WORDS[number]}\n\n" + "\n".join(lines) + "\n")
        _limit_files(server, 1_200_000)
        with one.start(), one.client() as client:
            until(lambda: "could not extend file" in trouble(one), 120)
            assert "\n" not in trouble(one)
            assert client.search("kettle", min_score=0).results
            assert len(contents(admin_dsn)) < 5
            _limit_files(server, None)
            until(lambda: is_published(one), 180)
        assert contents(admin_dsn) == _as_files(one)


def _edit(random: Random, daemon: Daemon) -> None:
    """Write, change, move or delete a few notes."""
    for _ in range(5):
        there = sorted((daemon.workspace / "memory").rglob("*.md"))
        what = random.choice(("write", "write", "change", "move", "delete"))
        if what == "write" or len(there) < 4:
            text = "\n\n".join(" ".join(random.choices(WORDS, k=12)) for _ in range(random.randint(1, 8)))
            daemon.write(f"memory/{random.randint(0, 40)}.md", text + "\n")
        elif what == "change":
            with random.choice(there).open("a") as file:
                file.write(f"\nAnd the {random.choice(WORDS)} of {random.randint(0, 99)}.\n")
        elif what == "move":
            random.choice(there).rename(daemon.workspace / f"memory/moved-{random.randint(0, 40)}.md")
        else:
            random.choice(there).unlink()


@pytest.mark.parametrize("seed", [1, 2])
def test_three_daemons_with_edits_and_kills_are_equal_in_the_end(home: Path, seed: int) -> None:
    """To a fresh index of the same files: one publishes, one has no files, one has notes of its own."""
    random = Random(seed)
    with running_server() as server:
        admin_dsn = server.dsn(server.database())
        dsn = member(admin_dsn, "alice", "alice/main")
        bobs = member(admin_dsn, "bob", "alice/main", may_write=False)
        one, other = publisher(home / "a", dsn), reader(home / "b", bobs)
        third = including(home / "c", bobs)
        third.write("memory/own.md", "A note of another machine: its lamp.\n")
        _notes(one)
        daemons = (one, other, third)
        with one.start(), other.start(), third.start():
            for what in random.sample(("publisher", "reader", "third", "server", "sessions", "crash"), 6):
                _edit(random, one)
                with other.client() as client:
                    assert client.search(random.choice(WORDS), agent="alice").backend
                match what:
                    case "server" | "crash":
                        server.stop(signal.SIGINT if what == "server" else signal.SIGQUIT)
                        _edit(random, one)
                        server.start()
                    case "sessions":
                        with psycopg.connect(admin_dsn, autocommit=True) as admin:
                            admin.execute(
                                "SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE usename LIKE 'memd_user_%'"
                            )
                    case _:
                        killed = daemons[("publisher", "reader", "third").index(what)]
                        killed.kill()
                        _edit(random, one)
                        killed.start()
            until(lambda: whole(one, admin_dsn) and contents(admin_dsn) == _as_files(one), 120)
            fresh = Daemon(home / "f")
            shutil.copytree(one.workspace, fresh.workspace, dirs_exist_ok=True)
            with fresh, fresh.client(timeout=300) as client:
                client.sync()
                until(lambda: not _differing(fresh, other), 60)
                until(lambda: not _differing(one, other), 60)
            with third.client() as client:

                def is_there() -> bool:
                    return {
                        hit.memory for hit in client.search("lamp", min_score=0, max_results=20).results
                    } == {
                        None,
                        "team:alice/main",
                    }

                until(is_there, 60)
