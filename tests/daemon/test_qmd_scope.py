"""Who sees what does not depend on the engine: nothing is to be had by another key, path, letter case or agent."""

import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from memd_client import Client
from memd_client.messages import Note
from tests.daemon.chats import begun, directory, name_of, settings
from tests.daemon.keys import SOME_DIRECT, SOME_OTHERS, key_of
from tests.daemon.process import Daemon
from tests.fakes.qmd_standin import Standin
from tests.wait import until

OPEN = 'scope = { default = "allow", rules = [] }'
BACKENDS = ["builtin", "qmd"]


class Served(NamedTuple):
    """A daemon with an agent for each engine and kind of rules."""

    daemon: Daemon
    standin: Standin
    session: str


@pytest.fixture(scope="module")
def served() -> Iterator[Served]:
    """The agents share their files: `builtin` and `qmd` have the usual rules, `open-...` let everybody in."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        home = Path(scratch).resolve()
        standin = Standin(home / "bin")
        daemon = Daemon(home)
        directory(home).mkdir(parents=True, exist_ok=True)
        session = begun(home, *(f"Curated: lighthouse lighthouse {number}" for number in range(50)))
        daemon.write("MEMORY.md", "Curated: lighthouse lighthouse lighthouse.\n" * 20)
        daemon.write("USER.md", "Curated: lighthouse lighthouse.\n" * 20)
        daemon.write("memory/a.md", "Heron: besides the chapel stands a lighthouse with green shutters.\n")
        qmd = f'qmd = {{ command = "{standin.program}", timeout_ms = 20000, cooldown_seconds = 0 }}'
        parts = [settings(home)]
        for name, backend, rules in (
            ("builtin", "builtin", ""),
            ("qmd", "qmd", ""),
            ("open-builtin", "builtin", OPEN),
            ("open-qmd", "qmd", OPEN),
        ):
            more = f'backend = "{backend}"\n{qmd}\n{rules}'
            parts.append(f'[agents.{name}]\nworkspace = "{daemon.workspace}"\n{settings(home, more=more)}')
        daemon.configure("\n".join(parts))
        with daemon.start():
            with daemon.client(timeout=60) as client:
                client.sync()
                for agent in ("qmd", "open-qmd"):
                    until(lambda agent=agent: has_all(client, agent), 20)  # type: ignore[misc]
            yield Served(daemon, standin, name_of(session))


def has_all(client: Client, agent: str) -> bool:
    """Whether qmd answers for an agent, from its curated notes, its others and its transcripts."""
    found = client.search("lighthouse", agent=agent, max_results=50)
    assert found.backend in {"qmd", "builtin"}
    told = client.status(agent).agents[agent].qmd
    return (
        found.backend == "qmd"
        and len(found.results) >= 4
        and told is not None
        and told.exported == 1
        and not told.updating
    )


@pytest.fixture
def client(served: Served) -> Iterator[Client]:
    """A client of the daemon."""
    with served.daemon.client() as one:
        yield one


def disguises(served: Served) -> list[str]:
    """Names under which somebody may hope to read what is not for him."""
    workspace = served.daemon.workspace
    return [
        "MEMORY.md",
        "memory.md",
        "Memory.MD",
        "USER.md",
        "user.md",
        "./MEMORY.md",
        "memory/../MEMORY.md",
        f"{workspace}/MEMORY.md",
        "qmd/memory-root/MEMORY.md",
        "qmd://memory-root-open-qmd/MEMORY.md",
        served.session,
        served.session.upper(),
        served.session.removesuffix(".jsonl") + ".md",
        f"{served.daemon.state}/agents/open-qmd.qmd/{served.session.removesuffix('.jsonl')}.md",
    ]


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SOME_DIRECT)
def test_the_owner_sees_everything(client: Client, served: Served, backend: str, shape: str | None) -> None:
    """Curated notes, the others and transcripts, from either engine."""
    key = key_of(shape, backend)
    found = client.search("lighthouse", agent=backend, session_key=key, max_results=50)
    assert (found.backend, found.scope_denied) == (backend, False)
    paths = {"MEMORY.md", "USER.md", "memory/a.md", served.session}
    assert {hit.path for hit in found.results} == paths
    for path in paths:
        assert client.get(path, agent=backend, session_key=key).text


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SOME_OTHERS)
def test_whoever_is_not_direct_is_denied(client: Client, served: Served, backend: str, shape: str) -> None:
    """No results, no error, and no way around by a path, the case of its letters, or the name of an agent."""
    key = key_of(shape, backend)
    before = len(served.standin.calls("search"))
    for query in ("lighthouse", "Heron", "MEMORY.md", served.session):
        found = client.search(query, agent=backend, session_key=key, min_score=0, max_results=50)
        assert (found.results, found.scope_denied, found.degraded) == ([], True, [])
        assert (found.fallback_from, found.fallback_reason) == (None, None)
    for path in (*disguises(served), "memory/a.md", "Memory/A.md", f"{served.daemon.workspace}/memory/a.md"):
        missing = Note(path=path, missing=True)
        assert client.get(path, agent=backend, session_key=key) == missing
    assert len(served.standin.calls("search")) == before


@pytest.mark.parametrize("backend", BACKENDS)
@pytest.mark.parametrize("shape", SOME_OTHERS)
def test_a_group_that_is_let_in_sees_notes_alone(
    client: Client, served: Served, backend: str, shape: str
) -> None:
    """Though curated notes and transcripts would be better hits: not one of them, nor one of their names."""
    agent = f"open-{backend}"
    key = key_of(shape, agent)
    before = len(served.standin.calls())
    for max_results in (1, 50):
        found = client.search(
            "lighthouse", agent=agent, session_key=key, max_results=max_results, min_score=0
        )
        assert (found.backend, found.scope_denied) == (backend, False)
        assert [hit.path for hit in found.results] == ["memory/a.md"]
    only = client.search("lighthouse", agent=agent, session_key=key, source="sessions", min_score=0)
    assert (only.results, only.scope_denied) == ([], False)
    assert client.get("memory/a.md", agent=agent, session_key=key).text.startswith("Heron")
    for path in disguises(served):
        assert client.get(path, agent=agent, session_key=key) == Note(path=path, missing=True)
    asked = [call for call in served.standin.calls()[before:] if call["command"] in {"search", "query"}]
    assert bool(asked) is (backend == "qmd")
    for call in asked:
        options = call["arguments"]
        names = [options[at + 1] for at, option in enumerate(options) if option == "-c"]
        assert names == ["memory-dir-open-qmd"]


@pytest.mark.parametrize("backend", BACKENDS)
def test_an_agents_name_is_no_way_around(client: Client, served: Served, backend: str) -> None:
    """A key of one agent with the name of another, in whatever letters, is nothing of either."""
    group = f"agent:{backend}:telegram:group:1"
    for agent, key in (
        (f"open-{backend}", f"agent:{backend}:main"),
        (f"open-{backend}", group),
        (backend, f"agent:open-{backend}:main"),
    ):
        found = client.search("lighthouse", agent=agent, session_key=key)
        assert (found.results, found.scope_denied) == ([], True)
        assert client.get("memory/a.md", agent=agent, session_key=key).missing
    for key in (group.upper(), group.title(), f" {group}", f"{group}:main"):
        found = client.search("lighthouse", agent=backend, session_key=key)
        assert (found.results, found.scope_denied) == ([], True)
