"""How much of memory an agent reads at most, and what it can cite, whichever engine answers."""

from collections.abc import Iterator
from functools import partial
from pathlib import Path
from typing import Any

import pytest

from memd_client import Client
from memd_client.messages import Found, Hit
from memd_client.tools import Tools
from tests.daemon.process import Daemon
from tests.fakes.qmd_standin import Standin
from tests.wait import until

BACKENDS = pytest.mark.parametrize("backend", ["builtin", "qmd"])
GROUP = "agent:main:telegram:group:7"
# Characters outside the basic plane, indentation, and lines of any length.
LONG = "\n".join(f"  - lighthouse 🗼{'灯塔' * (number % 20)} number {number}" for number in range(60))


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon whose notes are longer than an agent may read; not started yet."""
    one = Daemon(home)
    for number in range(8):
        one.write(f"memory/{number}.md", f"# Note {number}\n\n{LONG}\n")
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def configure(daemon: Daemon, backend: str, **keys: Any) -> None:
    """Let agent main search with an engine."""
    standin = Standin(daemon.home / "bin")
    told = "\n".join(f"{name} = {value}" for name, value in keys.items())
    qmd = f'qmd = {{ command = "{standin.program}", timeout_ms = 20000, cooldown_seconds = 0 }}'
    rules = 'scope = { default = "allow", rules = [] }'
    daemon.configure(f'backend = "{backend}"\n{qmd}\n{rules}\n{told}')


def searched(client: Client, backend: str, **options: Any) -> Found:
    """What a backend finds, once it answers, and qmd has all notes: until then the built-in one adds those it lacks."""

    def found() -> Found | None:
        qmd = client.status().agents["main"].qmd
        if backend == "qmd" and (qmd is None or qmd.last_update is None or qmd.updating):
            return None
        answer = client.search("lighthouse", max_results=50, min_score=0, **options)
        # An update may have been of some notes alone, with another to come.
        is_by_one = all(hit.own_scale is (backend == "qmd") for hit in answer.results)
        return answer if answer.backend == backend and is_by_one and len(answer.results) > 2 else None

    return until(found, 20)  # type: ignore[return-value]


def shown(hit: Hit) -> str:
    """What a tool shows of a hit."""
    return hit.snippet if hit.citation is None else f"{hit.snippet}\n\nSource: {hit.citation}"


@pytest.mark.rows(1)
@BACKENDS
def test_what_an_agent_reads_is_clamped(daemon: Daemon, backend: str) -> None:
    """To the configured characters with footers, or those asked for; hits are cut at a character or dropped, never stumps."""
    configure(daemon, backend, limits="{ max_injected_chars = 1500 }")
    with daemon.start(), daemon.client(timeout=60) as client:
        client.sync()
        whole = until(lambda: searched(client, backend, max_chars=0), 20).results
        assert sum(map(len, map(shown, whole))) > 3000
        bounds: list[tuple[int, dict[str, Any]]] = [
            (1500, {}),
            (1000, {"max_chars": 1000}),
            (2500, {"max_chars": 2500}),
        ]
        for most, options in bounds:
            found = client.search("lighthouse", max_results=50, min_score=0, **options)
            assert found.backend == backend
            assert most - 800 < sum(map(len, map(shown, found.results))) <= most
            for hit, before in zip(found.results, whole, strict=False):
                assert (hit.path, hit.start_line) == (before.path, before.start_line)
                assert before.snippet.startswith(hit.snippet)
                assert len(hit.snippet) >= 40
                assert hit.end_line - hit.start_line == hit.snippet.count("\n")
                assert hit.snippet.encode()


@pytest.mark.rows(1)
@BACKENDS
def test_footers_have_room_in_the_reply_of_a_tool(daemon: Daemon, backend: str) -> None:
    """Each snippet ends in its source, begins with its own indentation, and the whole is within bounds."""
    configure(daemon, backend, limits="{ max_injected_chars = 2000 }")
    with daemon.start(), daemon.client(timeout=60) as client:
        client.sync()
        searched(client, backend)
        tools = Tools(daemon.client)
        reply = tools.call("memory_search", {"query": "lighthouse", "maxResults": 50})
        tools.close()
        assert reply["backend"] == backend
        assert reply["results"]
        assert sum(len(hit["snippet"]) for hit in reply["results"]) <= 2000
        for hit in reply["results"]:
            text, _, source = hit["snippet"].rpartition("\n\nSource: ")
            assert source == hit["citation"]
            assert source == cited(hit["path"], hit["startLine"], hit["endLine"])
            first = (daemon.workspace / hit["path"]).read_text().split("\n")[hit["startLine"] - 1]
            assert text.split("\n")[0] == first[: len(text.split("\n")[0])]


def cited(path: str, start_line: int, end_line: int) -> str:
    """A place as it is cited."""
    return f"{path}#L{start_line}" + (f"-L{end_line}" if end_line != start_line else "")


def is_cited(client: Client, key: str | None, *, wanted: bool) -> bool:
    """Whether hits are cited as they should be: a reload takes a moment."""
    return client.search("lighthouse", session_key=key).citations is wanted


@pytest.mark.rows(1)
@BACKENDS
def test_citations_are_for_whom_they_are_configured(daemon: Daemon, backend: str) -> None:
    """On for everybody, off for nobody, and auto for who is alone with the agent."""
    for mode, of_owner, of_group in (("auto", True, False), ("on", True, True), ("off", False, False)):
        configure(daemon, backend, citations=f'"{mode}"')
        if mode == "auto":
            daemon.start()
        with daemon.client(timeout=60) as client:
            client.reload()
            client.sync()
            for key, wanted in ((None, of_owner), ("agent:main:main", of_owner), (GROUP, of_group)):
                until(partial(is_cited, client, key, wanted=wanted), 20)
                found = searched(client, backend, session_key=key)
                assert found.citations is wanted
                for hit in found.results:
                    assert hit.citation == (cited(hit.path, hit.start_line, hit.end_line) if wanted else None)
