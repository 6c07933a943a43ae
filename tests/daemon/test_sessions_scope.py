"""Who may see transcripts: the owner, and those who are alone with him."""

import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import Client
from memd_client.messages import Note
from tests.daemon.chats import NEVER, begun, configured, name_of
from tests.daemon.keys import SOME_DIRECT, SOME_OTHERS, key_of
from tests.daemon.process import Daemon

OPEN = 'scope = { default = "allow", rules = [{ action = "allow" }] }'


@pytest.fixture(scope="module")
def served() -> Iterator[tuple[Daemon, str]]:
    """A daemon whose rules let everybody in, and the name of its one transcript."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        daemon = configured(Daemon(home), NEVER, OPEN)
        # More and better than a search considers, in all of which a group has no part.
        session = begun(home, *(f"Curated: lighthouse lighthouse {number}" for number in range(600)))
        daemon.write("memory/a.md", "Heron: besides the chapel stands a lighthouse with green shutters.\n")
        with daemon.start():
            with daemon.client() as client:
                client.sync()
            yield daemon, name_of(session)


@pytest.fixture
def client(served: tuple[Daemon, str]) -> Iterator[Client]:
    """A client of the daemon."""
    with served[0].client() as one:
        yield one


@pytest.mark.parametrize("shape", SOME_DIRECT)
def test_the_owner_sees_transcripts(client: Client, served: tuple[Daemon, str], shape: str | None) -> None:
    """Without a key, in the main session and in direct messages, by search and by get."""
    key = key_of(shape, "main")
    found = client.search("lighthouse", session_key=key, source="sessions", agent="main")
    assert {hit.path for hit in found.results} == {served[1]}
    assert "Curated" in client.get(served[1], session_key=key, agent="main").text


@pytest.mark.parametrize("shape", SOME_OTHERS)
def test_nobody_else_sees_any_whatever_the_rules(
    client: Client, served: tuple[Daemon, str], shape: str
) -> None:
    """Not in hits, not among the candidates, not by get; asked for alone they are just none."""
    key, name = key_of(shape, "main"), served[1]
    for max_results in (1, 50):
        found = client.search(
            "lighthouse", session_key=key, agent="main", max_results=max_results, min_score=0
        )
        assert [hit.path for hit in found.results] == ["memory/a.md"]
    explained = client.explain("lighthouse", session_key=key, agent="main", max_results=50)
    assert explained.found.results
    assert "Curated" not in str(explained)
    assert "sessions/" not in str(explained)
    only = client.search("lighthouse", session_key=key, agent="main", source="sessions")
    assert (only.results, only.scope_denied, only.degraded) == ([], False, [])
    assert client.explain("lighthouse", session_key=key, agent="main", source="sessions").candidates == []
    assert client.get(name, session_key=key, agent="main") == Note(path=name, missing=True)


@pytest.mark.parametrize(
    "way",
    [
        "{name}",
        "{upper}",
        "Sessions/{rest}",
        "sessions/../{name}",
        "./{name}",
        "sessions//{rest}",
        "memory/../{name}",
        "{name}/",
        "{file}",
        "{name}\0",
    ],
)
def test_there_is_no_way_round_by_name(client: Client, served: tuple[Daemon, str], way: str) -> None:
    """However a group writes the name of a transcript; and the owner finds it under its own name alone, or behind `./`."""
    daemon, name = served
    [file] = daemon.home.glob(".claude/projects/*/*.jsonl")
    path = way.format(name=name, upper=name.upper(), rest=name.removeprefix("sessions/"), file=file.resolve())
    key = "agent:main:telegram:group:1"
    assert client.get(path, session_key=key) == Note(path=path, missing=True)
    assert client.get(path, session_key=key, start_line=3, lines=2).missing
    assert client.get(path).missing == (path not in {name, f"./{name}"})
