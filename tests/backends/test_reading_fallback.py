"""How long what is here waits for a server, on a clock that passes at once. Which of both answers: test_fallback."""

import asyncio
from typing import Any, cast

import pytest

from memd.backends.backend import Backend, BackendAnswer, BackendQuestion, BackendStatus, Excerpt
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker, CoolingDown, InUse
from memd.backends.fallback import ReadingFallback
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import Kind, Trace
from memd.errors import TransientError
from memd.runtime.wait_budget import waiting
from tests.clock import hastily, now_s

QUESTION = BackendQuestion(text="lighthouse", kinds=frozenset(Kind), max_results=6, min_score=0.0)
TRACE = cast("Trace", "a trace")
WAIT_S = 0.5
LATE = "server has not answered for 0.5 s"


class Server:
    """Answers after a while."""

    name = "server"

    def __init__(self, took_s: float) -> None:
        self.took_s = took_s
        self.embeds_s = 0.0  # what an answer takes of others' time
        self.create_s = 0.0
        self.failure: Exception | None = None
        self.asked = 0

    async def _answered(self) -> None:
        self.asked += 1
        await asyncio.sleep(self.embeds_s)
        with waiting():
            await asyncio.sleep(self.took_s)
        if self.failure is not None:
            raise self.failure

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        await self._answered()
        return answer(self.name, 1)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        return await self.search(question), TRACE

    async def get(self, path: str, **_: object) -> Excerpt | None:
        await self._answered()
        return Excerpt(self.name, 1, 1, None)

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        return None

    def status(self) -> BackendStatus:
        raise NotImplementedError


class Here:
    """What is here: files or none, read at once."""

    name = "here"

    def __init__(self, hits: int) -> None:
        self.hits = hits
        self.failure: Exception | None = None

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        if self.failure is not None:
            raise self.failure
        return answer(self.name, self.hits)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        return await self.search(question), TRACE

    async def get(self, path: str, **_: object) -> Excerpt | None:
        return Excerpt(self.name, 1, 1, None) if self.hits else None


def answer(name: str, hits: int) -> BackendAnswer:
    """The answer of one of both; nobody looks at its hits."""
    return BackendAnswer(
        hits=cast("Any", (None,) * hits), backend=name, provider="p", model="m", mode="hybrid"
    )


class Bench:
    """Both, and how long they take."""

    def __init__(self, took_s: float, *, hits_here: int = 1) -> None:
        self.server, self.here = Server(took_s), Here(hits_here)
        breaker: CircuitBreaker[Any] = CircuitBreaker(
            "main", "server", self._create, BreakerTimeouts(3.0, 15.0), clock=now_s
        )
        self.both = ReadingFallback(breaker, cast("Backend", self.here), WAIT_S, clock=now_s)

    async def _create(self) -> Server:
        await asyncio.sleep(self.server.create_s)
        return self.server

    async def search(self) -> tuple[str, str | None, float]:
        """Who answers a search, why it is not the server, and after how many seconds."""
        began = now_s()
        found = await self.both.search(QUESTION)
        reason = None if found.fallback is None else found.fallback.reason
        return found.backend, reason, round(now_s() - began, 3)

    async def get(self) -> tuple[str, float]:
        """Who has the lines, and after how many seconds."""
        began = now_s()
        excerpt = await self.both.get("a.md", start_line=1, lines=1, kinds=frozenset(Kind))
        return "" if excerpt is None else excerpt.text, round(now_s() - began, 3)


@pytest.mark.parametrize("slow", ["answers", "connections"])
def test_what_is_here_waits_for_the_server_once(slow: str) -> None:
    """Until it is asked again after the cool-down; then it may be back."""

    async def main() -> None:
        bench = Bench(60.0 if slow == "answers" else 0.0)
        bench.server.create_s = 60.0 if slow == "connections" else 0.0
        bench.server.failure = TransientError("no answer came")
        assert await bench.search() == ("here", LATE, WAIT_S)
        assert await bench.search() == ("here", LATE, 0.0)
        explained, trace = await bench.both.explain(QUESTION)
        assert (explained.backend, explained.fallback, trace) == ("here", bench.both.use, TRACE)
        assert await bench.get() == ("here", 0.0)
        assert bench.server.asked == (slow == "answers")
        await asyncio.sleep(100.0)
        bench.server.took_s, bench.server.failure = 0.1, None
        assert await bench.search() == ("server", None, 0.1)
        assert bench.both.first.state == InUse()
        await bench.both.close()

    hastily(main())


def test_an_explanation_and_lines_that_are_here_wait_as_long() -> None:
    """Each of them may be what notices that the server is slow."""

    async def main() -> None:
        bench = Bench(2.0)
        began = now_s()
        explained, _ = await bench.both.explain(QUESTION)
        assert (explained.backend, explained.fallback, now_s() - began) == ("here", bench.both.use, WAIT_S)
        await bench.both.close()
        bench = Bench(2.0)
        assert await bench.get() == ("here", WAIT_S)
        assert isinstance(bench.both.first.state, CoolingDown)
        await bench.both.close()

    hastily(main())


def test_where_nothing_is_here_the_server_has_its_own_time() -> None:
    """There is no answer to give instead; but who tries it after a failure waits no longer than others."""

    async def main() -> None:
        bench = Bench(2.0, hits_here=0)
        assert await bench.search() == ("server", None, 2.0)
        assert await bench.get() == ("server", 2.0)
        bench.server.failure = TransientError("no answer came")
        assert await bench.search() == ("here", "no answer came", 2.0)
        assert await bench.search() == ("here", "no answer came", 0.0)
        await asyncio.sleep(15.0)
        assert await bench.search() == ("here", LATE, WAIT_S)
        with pytest.raises(FilesBlocked, match=LATE):
            await bench.get()
        await bench.both.close()

    hastily(main())


def test_the_time_of_others_is_not_the_servers() -> None:
    """A provider that takes seconds to embed the question is no server that does not answer."""

    async def main() -> None:
        bench = Bench(0.4)
        bench.server.embeds_s = 5.0
        assert await bench.search() == ("server", None, 5.4)
        await bench.both.close()

    hastily(main())


def test_the_server_is_waited_for_where_what_is_here_cannot_be_read() -> None:
    """Its failure is told if the server fails as well."""

    async def main() -> None:
        bench = Bench(2.0)
        bench.here.failure = TransientError("the disk is full")
        assert await bench.search() == ("server", None, 2.0)
        bench.server.failure = TransientError("no answer came")
        with pytest.raises(TransientError, match="the disk is full"):
            await bench.search()
        await bench.both.close()

    hastily(main())


def test_a_server_that_fails_meanwhile_is_not_waited_for() -> None:
    """Nor is the time up to then for nothing: its reason is told."""

    async def main() -> None:
        bench = Bench(0.3)
        bench.server.failure = TransientError("the connection was lost")
        assert await bench.search() == ("here", "the connection was lost", 0.3)
        await bench.both.close()

    hastily(main())
