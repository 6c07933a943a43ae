"""How soon a note that one machine publishes is found by another one, by way of a PostgreSQL server.

    python -m tests.benchmarks.publishing

Two daemons with the hashing embedder and a server of their own: one publishes, the other searches until it finds a new note, first with
connections of its own, then through PgBouncer in transaction mode.
"""

import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import psycopg

from memd_client import Client
from tests.benchmarks.figures import Samples
from tests.daemon.sharing import is_published, publisher, reader
from tests.postgres.conftest import member
from tests.postgres_server import pooler, running_server, scratch
from tests.wait import until

TIMES = 30  # notes of each kind
FOUND_S = 60.0
BEFORE = 100  # notes that are there already


def measured(admin_dsn: str, alice: str, bob: str) -> Iterator[tuple[str, Samples]]:
    """Seconds until the other daemon finds a note, by what they are counted from.

    Args:
        admin_dsn: Of the server.
        alice: How the publisher gets there.
        bob: How the other one does.
    """
    saved, searchable, committed = Samples(), Samples(), Samples()
    with tempfile.TemporaryDirectory(prefix="memd-") as directory:
        home = Path(directory).resolve()
        here, there = publisher(home / "a", alice), reader(home / "b", bob)
        for number in range(BEFORE):
            here.write(f"memory/{number}.md", f"# Note {number}\n\nThe ferry of note {number} is late.\n")
        with here, there, here.client() as local, there.client() as remote:
            until(lambda: is_published(here), FOUND_S)
            for number in range(TIMES):
                word = f"lantern{number}q"
                here.write(f"memory/of-{word}.md", f"The {word} came late.\n")
                with saved.timed():
                    until(lambda word=word: _finds(remote, "alice", word), FOUND_S)  # type: ignore[misc]  # mypy cannot infer a lambda with a default
            for number in range(TIMES):
                word = f"kettle{number}q"
                here.write(f"memory/of-{word}.md", f"The {word} came late.\n")
                until(lambda word=word: _finds(local, "main", word), FOUND_S)  # type: ignore[misc]  # likewise
                with searchable.timed():
                    until(lambda word=word: _finds(remote, "alice", word), FOUND_S)  # type: ignore[misc]  # likewise
            with psycopg.connect(admin_dsn, autocommit=True) as server:
                for number in range(TIMES):
                    word = f"ladder{number}q"
                    here.write(f"memory/of-{word}.md", f"The {word} came late.\n")
                    until(lambda word=word: _is_there(server, word), FOUND_S)  # type: ignore[misc]  # likewise
                    with committed.timed():
                        until(lambda word=word: _finds(remote, "alice", word), FOUND_S)  # type: ignore[misc]  # likewise
    yield "saved, and nobody searches there", saved
    yield "found where it was saved", searchable
    yield "committed at the server", committed


def _finds(client: Client, agent: str, word: str) -> bool:
    found = client.search(f"what about the {word}", agent=agent, mode="keyword")
    return any(word in hit.snippet for hit in found.results)


def _is_there(server: "psycopg.Connection[tuple[object, ...]]", word: str) -> bool:
    asked = server.execute("SELECT FROM memd.files WHERE path = %s", (f"memory/of-{word}.md",))
    return asked.fetchone() is not None


def main() -> None:
    """Measure both ways, and print a line for each figure."""
    with running_server() as server, scratch() as directory:
        for way in ("direct", "PgBouncer"):
            admin_dsn = server.dsn(server.database())
            alice = member(admin_dsn, f"a_{way.lower()}", "alice/main")
            bob = member(admin_dsn, f"b_{way.lower()}", "alice/main", may_write=False)
            if way == "direct":
                found = list(measured(admin_dsn, alice, bob))
            else:
                with pooler(server, directory, alice, bob) as through:
                    found = list(measured(admin_dsn, *through))
            for what, samples in found:
                sys.stdout.write(
                    f"{way:10} from when a note is {what}: median {samples.median:.3f} s,"
                    f" p95 {samples.percentile(0.95):.3f} s, longest {max(samples):.3f} s\n"
                )
            sys.stdout.flush()


if __name__ == "__main__":
    main()
