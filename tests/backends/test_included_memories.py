"""An agent's own memory and those that it includes, with backends and times that the test controls."""

import asyncio
from collections.abc import Mapping
from typing import Any, cast

import msgspec
import pytest

from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendQuestion,
    BackendStatus,
    Excerpt,
    IncludedState,
    VectorSearchStatus,
)
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker, CoolingDown, InUse
from memd.backends.included_memories import Including
from memd.backends.indexed_text import FilesBlocked
from memd.config.settings import IncludedMemory
from memd.domain_types import DegradedPart, Kind, SearchFilter
from memd.errors import TransientError
from memd.postgres.connection import SharedRefused
from tests.clock import hastily, now_s
from tests.wait import until_async

ALICE, CAROL = "team:alice/main", "team:carol/main"
NAMES = frozenset({ALICE, CAROL})
ALL = frozenset(Kind)
QUESTION = BackendQuestion(text="kestrel", kinds=ALL, max_results=6, min_score=0.0, included=NAMES)


class Gone(TransientError):
    """The test lets a memory fail."""


class Own:
    """The agent's own memory, which tells what it was asked."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self.failure: Exception | None = None
        self.asked: list[object] = []
        self.together: list[tuple[Mapping[str, object], int]] = []
        self.warmed = self.closed = 0

    @property
    def _answer(self) -> BackendAnswer:
        degraded = (DegradedPart("watcher", "not seen"),)
        return BackendAnswer(backend="builtin", provider="p", model="m", mode="hybrid", degraded=degraded)

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> str:
        self.asked.append((question, is_explained))
        await asyncio.sleep(self.took_s)
        if self.failure is not None:
            raise self.failure
        return "own"

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        self.asked.append("alone")
        return self._answer

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, str]:
        self.asked.append("alone")
        return self._answer, "a trace"

    async def search_together(
        self, own: str, included: Mapping[str, object], max_results: int
    ) -> BackendAnswer:
        assert own == "own"
        self.together.append((included, max_results))
        return self._answer

    async def explain_together(
        self, own: str, included: Mapping[str, object], max_results: int
    ) -> tuple[BackendAnswer, str]:
        return await self.search_together(own, included, max_results), "a trace of all"

    async def get(self, path: str, **how: Any) -> Excerpt:
        self.asked.append(how)
        return Excerpt(f"own {path}", 1, 1, None)

    def status(self) -> BackendStatus:
        return BackendStatus(backend="builtin", provider="p", model="m", vector=VectorSearchStatus())

    async def warm(self) -> None:
        self.warmed += 1

    async def close(self) -> None:
        self.closed += 1


class Other:
    """An included memory."""

    def __init__(self) -> None:
        self.took_s = 0.0
        self.failure: Exception | None = None
        self.unreachable: Exception | None = None
        self.asked: list[tuple[BackendQuestion, bool]] = []
        self.read: list[tuple[str, Mapping[str, Any]]] = []
        self.excerpt: Excerpt | None = Excerpt("there", 1, 1, None)
        self.under_way = self.closed = 0

    async def propose(self, question: BackendQuestion, *, is_explained: bool) -> object:
        self.asked.append((question, is_explained))
        self.under_way += 1
        try:
            await asyncio.sleep(self.took_s)
        finally:
            self.under_way -= 1
        if self.failure is not None:
            raise self.failure
        return self

    async def get(self, path: str, **how: Any) -> Excerpt | None:
        self.read.append((path, how))
        if self.failure is not None:
            raise self.failure
        return self.excerpt

    async def run(self) -> None:
        await asyncio.Event().wait()

    async def close(self) -> None:
        self.closed += 1


class Bench:
    """An agent that includes the memories of Alice and Carol, for which it waits a second."""

    def __init__(self) -> None:
        self.own = Own()
        self.alice, self.carol = Other(), Other()
        self.breakers: dict[str, CircuitBreaker[Any]] = {}
        for name, other in ((ALICE, self.alice), (CAROL, self.carol)):
            self.breakers[name] = self._breaker(name, other)
        server = [IncludedMemory(server="team", memory=name.partition(":")[2]) for name in (ALICE, CAROL)]
        pairs = list(zip(server, self.breakers.values(), strict=True))
        self.both = Including(cast("Any", self.own), pairs, 1.0)

    @staticmethod
    def _breaker(name: str, other: Other) -> CircuitBreaker[Any]:
        async def create() -> Other:
            if other.unreachable is not None:
                raise other.unreachable
            return other

        clock = lambda: asyncio.get_running_loop().time()  # noqa: E731
        return CircuitBreaker("main", name, create, BreakerTimeouts(3.0, 15.0), clock=clock)


async def test_all_are_asked_the_same_and_answer_together() -> None:
    """What each of them has goes into one answer, under its name."""
    bench = Bench()
    answer = await bench.both.search(QUESTION)
    assert answer.degraded == (DegradedPart("watcher", "not seen"),)
    assert bench.own.together == [({ALICE: bench.alice, CAROL: bench.carol}, 6)]
    assert bench.own.asked == bench.alice.asked == bench.carol.asked == [(QUESTION, False)]
    answer, trace = await bench.both.explain(QUESTION)
    assert (cast("object", trace), answer.degraded) == (
        "a trace of all",
        (DegradedPart("watcher", "not seen"),),
    )
    assert bench.own.asked[1:] == bench.alice.asked[1:] == bench.carol.asked[1:] == [(QUESTION, True)]
    await bench.both.close()


async def test_a_memory_that_the_asker_may_not_see_is_not_asked() -> None:
    """Nor is any of them where he may see none: then the agent's own answers as without them."""
    bench = Bench()
    one = msgspec.structs.replace(QUESTION, included=frozenset({ALICE}))
    await bench.both.search(one)
    assert (bench.own.together, bench.carol.asked) == ([({ALICE: bench.alice}, 6)], [])
    none = msgspec.structs.replace(QUESTION, included=frozenset())
    await bench.both.search(none)
    _, trace = await bench.both.explain(none)
    assert cast("object", trace) == "a trace"
    assert bench.own.asked[1:] == ["alone", "alone"]
    assert len(bench.alice.asked) == 1
    await bench.both.close()


def test_the_others_have_so_long_from_when_its_own_is_there() -> None:
    """However slow that is; one that is later is named, left alone for a while, and then takes part again."""

    async def main() -> None:
        bench = Bench()
        bench.own.took_s, bench.alice.took_s, bench.carol.took_s = 5.0, 5.9, 6.1
        answer = await bench.both.search(QUESTION)
        assert now_s() == pytest.approx(6.0)
        late = DegradedPart("included", f"{CAROL}: {CAROL} has not answered for 6.0 s")
        assert answer.degraded == (DegradedPart("watcher", "not seen"), late)
        assert bench.own.together[-1][0] == {ALICE: bench.alice}
        assert bench.both.status().included == (
            IncludedState(ALICE, None),
            IncludedState(CAROL, f"{CAROL} has not answered for 6.0 s"),
        )
        answer, _ = await bench.both.explain(QUESTION)  # while it is left alone, nobody waits for it
        assert now_s() == pytest.approx(11.9)
        assert answer.degraded[1:] == (late,)
        await asyncio.sleep(15.0)
        bench.own.took_s = bench.alice.took_s = bench.carol.took_s = 0.0
        assert (await bench.both.search(QUESTION)).degraded[1:] == ()
        assert bench.own.together[-1][0] == {ALICE: bench.alice, CAROL: bench.carol}
        await bench.both.close()

    hastily(main())


async def test_those_that_fail_are_named_in_the_order_of_their_names() -> None:
    """The agent's own answers alone."""
    bench = Bench()
    bench.carol.failure, bench.alice.failure = Gone("no such host"), Gone("no such password")
    answer = await bench.both.search(QUESTION)
    assert [one.reason for one in answer.degraded] == [
        "not seen",
        f"{ALICE}: no such password",
        f"{CAROL}: no such host",
    ]
    assert bench.own.together == [({}, 6)]
    await bench.both.close()


async def test_nothing_goes_on_when_its_own_fails() -> None:
    """The answer is that failure, and the others are asked in vain no longer; they are not to blame."""
    bench = Bench()
    bench.own.failure = Gone("the index is damaged")
    bench.alice.took_s = bench.carol.took_s = 3600.0
    with pytest.raises(Gone, match="the index is damaged"):
        await bench.both.search(QUESTION)
    bench.own.failure = None
    gone = asyncio.create_task(bench.both.search(QUESTION))
    await until_async(lambda: bench.own.asked[1:])
    gone.cancel()
    await asyncio.wait([gone])
    assert gone.cancelled()
    assert all(breaker.state == InUse() for breaker in bench.breakers.values())
    await bench.both.close()
    assert (bench.alice.under_way, bench.carol.under_way) == (0, 0)


async def test_paths_of_a_filter_are_told_each_memory_as_it_knows_them() -> None:
    """Without its own name, also where they are not wanted; the name of another one stays."""
    bench = Bench()
    paths = (f"{ALICE}/memory/*.md", "memory/*.md", f"!{ALICE}/memory/old/", "!archive/")
    await bench.both.search(msgspec.structs.replace(QUESTION, wanted=SearchFilter(paths=paths)))
    assert bench.alice.asked[0][0].wanted.paths == (
        "memory/*.md",
        "memory/*.md",
        "!memory/old/",
        "!archive/",
    )
    assert bench.carol.asked[0][0].wanted.paths == paths
    assert bench.alice.asked[0][0].text == "kestrel"
    await bench.both.close()


async def test_lines_are_read_where_the_path_says() -> None:
    """What is wanted of them is told as it is; what is not there is missing, and what cannot be asked is blocked."""
    bench = Bench()
    how: dict[str, Any] = {"start_line": 3, "lines": 9, "kinds": ALL}
    found = await bench.both.get("memory/a.md", **how)
    assert found == Excerpt("own memory/a.md", 1, 1, None)
    assert bench.own.asked == [how | {"max_chars": MAX_CHARS}]
    assert await bench.both.get(f"{ALICE}/memory/a.md", **how, max_chars=99) == Excerpt("there", 1, 1, None)
    assert bench.alice.read == [("memory/a.md", how | {"max_chars": 99})]
    bench.alice.excerpt = None
    assert await bench.both.get(f"{ALICE}/memory/none.md", **how) is None
    assert bench.carol.read == []
    bench.alice.failure = Gone("no such host")
    with pytest.raises(FilesBlocked, match=r"^team:alice/main/a\.md cannot be read just now: no such host\."):
        await bench.both.get(f"{ALICE}/a.md", **how)
    await bench.both.close()
    with pytest.raises(FilesBlocked, match=r"cannot be read just now: the server has not answered\."):
        await bench.both.get(f"{CAROL}/a.md", **how)


async def test_lines_that_the_server_refuses_are_no_matter_of_a_moment() -> None:
    """A person has to mend what is wrong."""
    bench = Bench()
    bench.carol.failure = SharedRefused("this role is no member")
    with pytest.raises(
        FilesBlocked, match=r"^team:carol/main/a\.md cannot be read: this role is no member\.$"
    ) as refused:
        await bench.both.get(f"{CAROL}/a.md", start_line=1, lines=1, kinds=ALL)
    assert refused.value.needs_person
    await bench.both.close()


async def test_all_are_made_ready_and_closed() -> None:
    """Whether or not anybody has asked; one that cannot be made ready shows in the status."""
    bench = Bench()
    bench.carol.unreachable = Gone("no such host")
    await bench.both.warm()
    assert bench.own.warmed == 1
    assert bench.breakers[ALICE].backend is bench.alice
    assert isinstance(bench.breakers[CAROL].state, CoolingDown)
    status = bench.both.status()
    assert status.included == (IncludedState(ALICE, None), IncludedState(CAROL, "no such host"))
    assert (status.backend, status.provider) == ("builtin", "p")
    await bench.both.close()
    assert (bench.own.closed, bench.alice.closed, bench.carol.closed) == (1, 1, 0)
