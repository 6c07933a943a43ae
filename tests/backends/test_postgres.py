"""The backend postgres, with a server, a searcher and a provider that the test controls. What a real server says: tests/postgres."""

import asyncio
from collections.abc import Callable
from datetime import UTC, datetime
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest

from memd.backends import postgres
from memd.backends.backend import BackendQuestion, VectorSearchStatus
from memd.backends.postgres import PostgresBackend
from memd.config.settings import AgentSettings, IncludedMemory
from memd.domain_types import DegradedPart, FallbackUse, Kind, SearchFilter, Turn
from memd.postgres.connection import SharedUnavailable
from memd.postgres.shared_index import SharedFile
from memd.postgres.transcripts import turn_lines
from memd.search.make_hits import Searched

MEMORY = IncludedMemory(server="team", memory="alice/main", dsn_file="/secret/dsn")
ALL = frozenset(Kind)
QUESTION = BackendQuestion(
    text="kestrel",
    kinds=ALL,
    max_results=6,
    min_score=0.3,
    mode="keyword",
    now=datetime(2026, 2, 9, 12, tzinfo=UTC),
    wanted=SearchFilter(paths=("memory/*.md",)),
    by_time=True,
)
SPACE = ("fake", "m", "k")


class Server:
    """What stands in for the connections to a server, for the index there, and for what searches it."""

    def __init__(self) -> None:
        self.memory = MEMORY.memory
        self.space: object = SPACE
        self.files: dict[str, SharedFile] = {}
        self.failure: Exception | None = None
        self.made_of: list[tuple[object, ...]] = []
        self.steps: list[str] = []
        self.asked: dict[str, Any] = {}

    def connections(self, *of: object) -> "Server":
        self.made_of.append(of)
        return self

    async def run(self, work: Callable[[Any], Any]) -> Any:
        return work(None)

    async def refresh(self) -> None:
        self.steps.append("refreshed")
        if self.failure is not None:
            raise self.failure

    async def search(self, text: str, **how: Any) -> Searched:
        self.steps.append("searched")
        self.asked = {"text": text, **how}
        degraded = (DegradedPart("provider", "down"),)
        return Searched(
            hits=(), mode="keyword", degraded=degraded, keyword_damage=None, vector_damage=None, provider="fake",
            model="m", space=cast("Any", SPACE),
        )  # fmt: skip

    async def explain(self, text: str, **how: Any) -> tuple[Searched, str]:
        return await self.search(text, **how), "a trace"

    async def propose(self, text: str, **how: Any) -> str:
        await self.search(text, **how)
        return "a proposal"

    def close(self) -> None:
        self.steps.append("closed")


@pytest.fixture
def server(monkeypatch: pytest.MonkeyPatch) -> Server:
    """In place of all that the backend is made of."""
    one = Server()
    monkeypatch.setattr(postgres, "SharedConnections", one.connections)
    monkeypatch.setattr(postgres, "SharedIndex", lambda _: one)
    monkeypatch.setattr(postgres, "Searcher", lambda *_: one)
    monkeypatch.setattr(postgres, "find_file", lambda _, memory, path: one.files.get(f"{memory} {path}"))
    return one


def providers_of(provider: str = "auto", *, is_answering: bool = True) -> Any:
    return SimpleNamespace(
        settings=SimpleNamespace(provider=provider),
        provider_name="fake",
        model_name="m",
        reason="no answer",
        is_answering=lambda space: is_answering and space == SPACE,
        fallback_use=lambda space: FallbackUse("openai", "no key") if space == SPACE else None,
    )


async def made(providers: Any = None) -> PostgresBackend:
    settings = AgentSettings(workspace=Path("/nowhere"), timezone="Europe/Berlin")
    return await PostgresBackend.create(MEMORY, settings, providers or providers_of())


async def test_one_whose_memory_cannot_be_searched_is_not_made(server: Server) -> None:
    """And leaves no connection open."""
    server.failure = SharedUnavailable("no such memory")
    with pytest.raises(SharedUnavailable, match="no such memory"):
        await made()
    assert server.steps == ["refreshed", "closed"]
    server.failure = None
    await made()
    assert server.steps[2:] == ["refreshed"]
    assert server.made_of[-1] == (Path("/secret/dsn"), "alice/main", 3.0)


async def test_each_question_sees_what_the_server_has_then(server: Server) -> None:
    """All that was asked reaches the searcher; the answer names who has answered, and what of it failed."""
    backend = await made()
    answer = await backend.search(QUESTION)
    asked = {
        "text": "kestrel",
        "kinds": ALL,
        "min_score": 0.3,
        "now": QUESTION.now,
        "wanted": QUESTION.wanted,
        "by_time": True,
    }
    assert server.asked == asked | {"mode": "keyword", "max_results": 6}
    assert (answer.backend, answer.provider, answer.model) == ("postgres", "fake", "m")
    assert (answer.degraded, answer.fallback) == (
        (DegradedPart("provider", "down"),),
        FallbackUse("openai", "no key"),
    )
    explained, trace = await backend.explain(QUESTION)
    assert (explained, cast("object", trace)) == (answer, "a trace")
    assert server.asked == asked | {"max_results": 6}
    for is_explained in (False, True):
        proposal = await backend.propose(QUESTION, is_explained=is_explained)
        assert cast("object", proposal) == "a proposal"
        assert server.asked == asked | {"mode": "keyword", "is_explained": is_explained}
    assert server.steps == ["refreshed", *(["refreshed", "searched"] * 4)]
    server.failure = SharedUnavailable("gone")
    for ask in (
        backend.search(QUESTION),
        backend.explain(QUESTION),
        backend.propose(QUESTION, is_explained=False),
    ):
        with pytest.raises(SharedUnavailable):
            await ask


async def test_a_note_is_read_as_it_is_on_the_server(server: Server) -> None:
    """What is not there, or not to be seen, is missing; what is no text any more has no line."""
    server.files["alice/main a.md"] = SharedFile(Kind.NOTE, "one\ntwo\nthree")
    backend = await made()
    found = await backend.get("a.md", start_line=2, lines=1, kinds=ALL)
    assert found is not None
    assert (found.text, found.start_line, found.end_line, found.next_line) == ("two", 2, 2, 3)
    assert found.total_lines == 3
    part = await backend.get("a.md", start_line=3, lines=1, kinds=ALL, max_chars=2)
    assert part is not None
    assert part.text == "th"
    assert await backend.get("b.md", start_line=1, lines=9, kinds=ALL) is None
    assert await backend.get("a.md", start_line=1, lines=9, kinds=ALL - {Kind.NOTE}) is None


async def test_of_a_transcript_the_turns_on_some_lines_are_read(server: Server) -> None:
    """With times as the agent's clocks show them; where nothing is said, it is told on which line something is at last."""
    at = datetime(2026, 2, 9, 23, 30, tzinfo=UTC).timestamp()
    turns = [Turn("1", "user", at, 3, 4, "which heron?"), Turn("2", "assistant", at, 7, 9, "the grey one")]
    server.files["alice/main s.jsonl"] = SharedFile(Kind.SESSION, "\n".join(turn_lines(turns)))
    backend = await made()
    first = await backend.get("s.jsonl", start_line=3, lines=1, kinds=ALL)
    assert first is not None
    assert "which heron?" in first.text
    assert "2026-02-10 00:30" in first.text
    assert (first.start_line, first.end_line, first.next_line, first.total_lines) == (3, 4, 7, None)
    beyond = await backend.get("s.jsonl", start_line=10, lines=9, kinds=ALL)
    assert beyond is not None
    assert (beyond.text, beyond.next_line, beyond.total_lines) == ("", None, 9)
    server.files["alice/main s.jsonl"] = SharedFile(Kind.SESSION, "")
    empty = await backend.get("s.jsonl", start_line=1, lines=9, kinds=ALL)
    assert empty is not None
    assert (empty.text, empty.total_lines) == ("", 0)


@pytest.mark.parametrize(
    ("provider", "space", "is_answering", "expected"),
    [
        ("auto", SPACE, True, VectorSearchStatus()),
        ("auto", SPACE, False, VectorSearchStatus(available=False, reason="no answer")),
        ("auto", None, True, VectorSearchStatus(available=False, reason="the memory has no vectors yet")),
        ("none", None, False, VectorSearchStatus(enabled=False, available=False)),
    ],
)
async def test_whether_there_is_search_by_meaning_is_told(
    server: Server, provider: str, space: object, *, is_answering: bool, expected: VectorSearchStatus
) -> None:
    """Of the vectors that the memory has; where none are wanted, their absence needs no reason."""
    backend = await made(providers_of(provider, is_answering=is_answering))
    server.space = space
    status = backend.status()
    assert status.vector == expected
    assert (status.backend, status.provider, status.model) == ("postgres", "fake", "m")


async def test_beside_searches_it_waits(server: Server) -> None:
    """For ever, as the breaker expects; its end closes the connections."""
    backend = await made()
    running = asyncio.create_task(backend.run())
    for _ in range(5):
        await asyncio.sleep(0)
    assert not running.done()
    running.cancel()
    await asyncio.wait([running])
    await backend.close()
    assert server.steps == ["refreshed", "closed"]
