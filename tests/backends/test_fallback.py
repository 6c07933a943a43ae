"""Two backends as one, with backends and a clock that the test controls."""

import asyncio
from collections.abc import Awaitable, Callable
from contextlib import suppress
from typing import Any

import pytest
from structlog.testing import capture_logs

from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendQuestion,
    BackendStandIn,
    BackendStatus,
    Excerpt,
    ProgramStatus,
    VectorSearchStatus,
)
from memd.backends.circuit_breaker import BreakerTimeouts, CircuitBreaker, CoolingDown, InUse
from memd.backends.fallback import Fallback, ReadingFallback
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import FallbackUse, Kind, Trace
from memd.errors import TransientError
from memd.postgres.connection import SharedRefused
from memd.store.errors import StoreClosed, StoreUnavailable
from tests.bounds import shipped
from tests.clock import hastily, now_s
from tests.wait import until_async

PROGRAM = ProgramStatus(
    command="/bin/first",
    version=None,
    search_mode="search",
    collections=(),
    files=None,
    exported=0,
    left_alone=0,
    updating=False,
    last_update=None,
    update_failure=None,
    last_embed=None,
    warnings=(),
)
QUESTION = BackendQuestion(text="lighthouse", kinds=frozenset(Kind), max_results=6, min_score=0.0)


class Failed(TransientError):
    """The test lets a backend fail."""


class First:
    """A backend that answers, unless it is told to wait or to fail."""

    def __init__(self) -> None:
        self.asked = 0
        self.closed = 0
        self.running = False
        self.failure: BaseException | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.is_deaf = False  # what it is at goes on after its end
        self.run_failure: Exception | None = None
        self.crash = asyncio.Event()  # in what it does beside searches
        self.close_failure: Exception | None = None

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        self.asked += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        return BackendAnswer(backend="first", provider="first", model="first", mode="keyword")

    def status(self) -> BackendStatus:
        return BackendStatus(
            backend="first", provider="first", model="first", vector=VectorSearchStatus(), program=PROGRAM
        )

    async def run(self) -> None:
        if self.run_failure is not None:
            raise self.run_failure
        self.running = True
        try:
            await self.crash.wait()
            raise ValueError("it has crashed")
        finally:
            self.running = False

    async def close(self) -> None:
        self.closed += 1
        if not self.is_deaf:
            self.failure = Failed("closed")
            self.gate.set()
        if self.close_failure is not None:
            raise self.close_failure


class Second:
    """The backend behind it, which always answers."""

    def __init__(self) -> None:
        self.asked = 0
        self.warmed = 0
        self.answer = BackendAnswer(backend="second", provider="p", model="m", mode="hybrid")

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        self.asked += 1
        return self.answer

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        trace = Trace(terms=(), match="", vector_weight=0.7, text_weight=0.3, min_score=0, candidates=())
        return self.answer, trace

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        return Excerpt(path, start_line, start_line, None)

    async def warm(self) -> None:
        self.warmed += 1

    def status(self) -> BackendStatus:
        return BackendStatus(
            backend="second", provider="p", model="m", vector=VectorSearchStatus(available=False)
        )

    async def close(self) -> None:
        return None


class Bench:
    """A pair of backends; create can be made to fail, or to wait."""

    def __init__(self, *, ready_s: float = 5.0, cooldown_s: float = 60.0, silence_s: float = 10.0) -> None:
        self.now = 1000.0
        self.made: list[First] = []
        self.attempts = 0
        self.failure: Exception | None = None
        self.gate = asyncio.Event()
        self.gate.set()
        self.prepare: Callable[[First], None] = lambda _: None
        self.wanted: list[bool] = []
        self.second = Second()
        breaker = CircuitBreaker(
            "main",
            "first",
            self._create,
            BreakerTimeouts(ready_s, cooldown_s, silence_s),
            on_change=self.wanted.append,
            clock=lambda: self.now,
        )
        self.both = Fallback(breaker, self.second, clock=lambda: self.now)

    async def _create(self) -> First:
        self.attempts += 1
        await self.gate.wait()
        if self.failure is not None:
            raise self.failure
        backend = First()
        self.prepare(backend)
        self.made.append(backend)
        return backend

    @property
    def stands_in(self) -> bool:
        return self.both.use is not None

    async def search(self) -> str:
        """Who answers."""
        async with asyncio.timeout(60):
            return (await self.both.search(QUESTION)).backend

    async def reason(self) -> str | None:
        """Why the second answers; None: the first does."""
        async with asyncio.timeout(60):
            fallback = (await self.both.search(QUESTION)).fallback
        return None if fallback is None else fallback.reason


async def ends(work: Awaitable[object]) -> None:
    """Wait for the end of something, whatever it is."""
    with suppress(asyncio.CancelledError):
        await work


async def test_the_first_backend_answers() -> None:
    """It is made at the first search, once, and what it does beside searches goes on."""
    bench = Bench()
    assert [await bench.search() for _ in range(3)] == ["first"] * 3
    assert (bench.attempts, bench.made[0].running, bench.second.asked) == (1, True, 0)
    assert bench.wanted == []
    assert bench.both.use is None
    await bench.both.close()


async def test_many_first_searches_make_one_backend() -> None:
    """All of them wait for it, and are answered by it."""
    bench = Bench()
    bench.gate.clear()
    searches = [asyncio.create_task(bench.search()) for _ in range(50)]
    await until_async(lambda: bench.attempts)
    bench.gate.set()
    assert await asyncio.gather(*searches) == ["first"] * 50
    assert bench.attempts == 1
    await bench.both.close()


async def test_a_search_that_the_first_fails_at_is_answered_by_the_second() -> None:
    """The backend is closed and dropped, and until the cool-down is over nobody asks for another."""
    bench = Bench()
    await bench.search()
    bench.made[0].failure = Failed("it crashed")
    assert await bench.reason() == "it crashed"
    await until_async(lambda: bench.made[0].closed)
    assert not bench.made[0].running
    assert bench.both.first.state == CoolingDown(1000.0, "it crashed", 1060.0)
    bench.now = 1059.9
    assert await bench.reason() == "it crashed"
    assert (bench.attempts, bench.made[0].asked, bench.wanted) == (1, 2, [True])
    await bench.both.close()


async def test_after_the_cool_down_the_next_search_tries_anew() -> None:
    """A new backend is made, and once it has answered it is the first again."""
    bench = Bench()
    bench.failure = Failed("not installed")
    assert await bench.reason() == "not installed"
    bench.failure, bench.now = None, 1060.0
    assert await bench.search() == "first"
    assert (bench.both.first.state, bench.attempts, bench.wanted) == (InUse(), 2, [True, False])
    assert await bench.reason() is None
    await bench.both.close()


async def test_a_new_attempt_that_fails_begins_another_cool_down() -> None:
    """The reason is the new one, the beginning the first, and each attempt is one."""
    bench = Bench()
    bench.failure = Failed("not installed")
    await bench.search()
    bench.failure, bench.now = Failed("no rights"), 1060.0
    assert await bench.reason() == "no rights"
    assert await bench.reason() == "no rights"
    assert bench.both.first.state == CoolingDown(1000.0, "no rights", 1120.0)
    assert (bench.attempts, bench.wanted) == (2, [True])
    await bench.both.close()


async def test_only_one_search_waits_for_a_new_attempt() -> None:
    """While it is made, and while it is at its first answer, the others are answered by the second at once."""
    bench = Bench()
    bench.failure = Failed("not installed")
    await bench.search()
    bench.failure, bench.now = None, 1060.0
    bench.gate.clear()
    tries = asyncio.create_task(bench.search())
    await until_async(lambda: bench.attempts == 2)
    assert [await bench.search() for _ in range(20)] == ["second"] * 20

    def hold(backend: First) -> None:
        backend.gate.clear()

    bench.prepare = hold
    bench.gate.set()
    await until_async(lambda: bench.made and bench.made[0].asked)
    assert [await bench.search() for _ in range(20)] == ["second"] * 20
    bench.made[0].gate.set()
    assert await tries == "first"
    assert await bench.search() == "first"
    assert bench.attempts == 2
    await bench.both.close()


async def test_a_backend_that_hangs_at_its_beginning_costs_its_time_once() -> None:
    """Those who came while it was new are answered after that time, those who come later at once."""
    bench = Bench(ready_s=0.05)
    bench.gate.clear()
    searches = [asyncio.create_task(bench.reason()) for _ in range(10)]
    assert await asyncio.gather(*searches) == ["first is not ready yet"] * 10
    bench.now += 0.05
    assert await bench.search() == "second"
    assert bench.both.use == FallbackUse("first", "first is not ready yet")
    assert (bench.attempts, bench.both.first.state) == (1, InUse())
    bench.gate.set()
    await until_async(lambda: bench.both.first.backend is not None)
    assert await bench.reason() is None
    await bench.both.close()


async def test_searches_that_a_backend_was_closed_under_count_as_one_failure() -> None:
    """The first failure closes it; what the others hear of that is no news."""
    bench = Bench()
    await bench.search()
    backend = bench.made[0]
    backend.gate.clear()
    searches = [asyncio.create_task(bench.search()) for _ in range(20)]
    await until_async(lambda: backend.asked == 21)
    backend.failure = Failed("it hangs")
    backend.gate.set()
    assert await asyncio.gather(*searches) == ["second"] * 20
    assert bench.both.first.state == CoolingDown(1000.0, "it hangs", 1060.0)
    await bench.both.close()
    assert backend.closed == 1


async def test_a_caller_who_goes_is_no_failure() -> None:
    """Neither while the backend is made, which goes on for the others, nor while it searches."""
    bench = Bench()
    bench.gate.clear()
    gone, waits = (asyncio.create_task(bench.search()) for _ in range(2))
    await until_async(lambda: bench.attempts)
    gone.cancel()
    await ends(gone)
    bench.gate.set()
    assert await waits == "first"
    bench.made[0].gate.clear()
    gone = asyncio.create_task(bench.search())
    await until_async(lambda: bench.made[0].asked == 2)
    gone.cancel()
    await ends(gone)
    bench.made[0].gate.set()
    assert await bench.search() == "first"
    assert (bench.attempts, bench.both.first.state, bench.made[0].closed) == (1, InUse(), 0)
    await bench.both.close()


async def test_an_attempt_goes_on_when_its_caller_goes() -> None:
    """Nobody waits for it, and when it has succeeded the first backend is back."""
    bench = Bench()
    bench.failure = Failed("not installed")
    await bench.search()
    bench.failure, bench.now = None, 1060.0
    bench.gate.clear()
    gone = asyncio.create_task(bench.search())
    await until_async(lambda: bench.attempts == 2)
    gone.cancel()
    await ends(gone)
    assert await bench.search() == "second"
    bench.gate.set()
    await until_async(lambda: bench.both.first.state == InUse())
    assert await bench.search() == "first"
    assert bench.attempts == 2
    await bench.both.close()


async def leaves(bench: Bench, backend: First) -> None:
    """Ask the backend, and wait no longer when it has the question."""
    asked = backend.asked
    gone = asyncio.create_task(bench.search())
    await until_async(lambda: backend.asked == asked + 1)
    gone.cancel()
    await ends(gone)


@pytest.mark.parametrize("ends_in", ["a failure", "an answer"])
async def test_a_backend_that_hangs_is_noticed_by_callers_who_do_not_wait_for_it(ends_in: str) -> None:
    """From the first who has left after half a second, the others are answered by the second; the question itself decides."""
    bench = Bench(silence_s=0.5)
    await bench.search()
    backend = bench.made[0]
    backend.gate.clear()
    await leaves(bench, backend)
    bench.now += 0.4
    assert not bench.stands_in
    # It is not silent for long enough yet, and one question is enough to find out.
    await leaves(bench, backend)
    for _ in range(5):
        await asyncio.sleep(0)  # that question ends, which changes nothing
    bench.now += 0.2
    assert [await bench.reason() for _ in range(15)] == ["first has not answered for 0.6 s"] * 15
    assert bench.both.use == FallbackUse("first", "first has not answered for 0.6 s")
    assert isinstance(bench.both.first.state, InUse)
    assert backend.asked == 3
    backend.failure = Failed("it hangs") if ends_in == "a failure" else None
    silent = bench.both.use
    backend.gate.set()
    await until_async(lambda: bench.both.use != silent)
    assert await bench.search() == ("second" if ends_in == "a failure" else "first")
    assert bench.wanted == ([True] if ends_in == "a failure" else [])
    await bench.both.close()


async def test_a_search_that_tries_a_hanging_backend_is_answered_all_the_same() -> None:
    """Of the second, after a moment; the attempt ends by itself, and begins another cool-down."""
    bench = Bench(silence_s=0.01)
    bench.failure = Failed("not installed")
    await bench.search()
    bench.failure = None
    bench.prepare = lambda backend: backend.gate.clear()
    for attempt in (1, 2):
        bench.now = 1000.0 + 60 * attempt
        assert await bench.search() == "second"
        backend = bench.made[-1]
        await until_async(lambda: backend.asked == 1)  # noqa: B023  at once
        assert [await bench.search() for _ in range(9)] == ["second"] * 9
        backend.failure = Failed(f"it hangs, {attempt}")
        backend.gate.set()
        fallen = CoolingDown(1000.0, f"it hangs, {attempt}", bench.now + 60.0)
        await until_async(lambda: bench.both.first.state == fallen)  # noqa: B023  at once
    await bench.both.close()


def test_a_search_that_tries_a_hanging_backend_waits_so_long() -> None:
    """As long as one that hangs keeps an impatient caller."""

    async def waited_s() -> float:
        bench = Bench(silence_s=BreakerTimeouts(5.0, 60.0).silence_s)
        bench.failure = Failed("not installed")
        await bench.search()
        bench.failure, bench.now = None, 1060.0
        bench.prepare = lambda backend: backend.gate.clear()
        began = now_s()
        assert await bench.search() == "second"
        took_s = now_s() - began
        bench.made[0].gate.set()
        await bench.both.close()
        return took_s

    assert hastily(waited_s()) == shipped("memd.backends.circuit_breaker.SILENCE_S")


async def test_a_late_failure_of_a_backend_takes_no_other_down() -> None:
    """What was dropped may say what it likes: another answers by then."""
    bench = Bench()
    await bench.search()
    old = bench.made[0]
    old.gate.clear()
    old.is_deaf = True
    late = asyncio.create_task(bench.search())
    await until_async(lambda: old.asked == 2)
    old.crash.set()
    await until_async(lambda: isinstance(bench.both.first.state, CoolingDown))
    bench.now = 1060.0
    assert await bench.search() == "first"
    assert bench.both.first.state == InUse()
    old.failure = Failed("late")
    old.gate.set()
    assert await late == "second"
    assert (bench.both.first.state, len(bench.made), bench.made[1].closed) == (InUse(), 2, 0)
    await bench.both.close()


async def test_a_backend_whose_work_is_cancelled_is_lost() -> None:
    """The caller was not cancelled, and has his answer."""
    bench = Bench()
    await bench.search()
    bench.made[0].failure = asyncio.CancelledError()
    assert await bench.search() == "second"
    assert isinstance(bench.both.first.state, CoolingDown)
    await bench.both.close()


@pytest.mark.parametrize("where", ["create", "search", "run"])
async def test_a_bug_is_logged_and_falls_back(where: str) -> None:
    """With its traceback in the log, a reason in the reply, and an answer to the search."""
    bench = Bench()
    bug = IndexError("a bug")
    with capture_logs() as logs:
        match where:
            case "create":
                bench.failure = bug
            case "search":
                await bench.search()
                bench.made[0].failure = bug
            case _:
                bench.prepare = lambda backend: setattr(backend, "run_failure", bug)
                await bench.both.warm()
                await until_async(lambda: isinstance(bench.both.first.state, CoolingDown))
        reason = await bench.reason()
    assert reason is not None
    assert reason.startswith("memd failed at")
    assert [event["log_level"] for event in logs if event.get("exc_info")] == ["error"]
    await bench.both.close()


async def test_trouble_of_memds_own_index_is_not_the_backends() -> None:
    """The second backend tells of it; the first one stays."""
    bench = Bench()
    await bench.search()
    for failure in (StoreUnavailable("full"), StoreClosed("stopped")):
        bench.made[0].failure = failure
        assert await bench.search() == "second"
    assert bench.both.first.state == InUse()
    await bench.both.close()


async def test_what_the_second_says_of_its_provider_stays() -> None:
    """Unless it stands in for the first one, which is told then."""
    bench = Bench()
    bench.second.answer = BackendAnswer(
        backend="second", provider="p", model="m", mode="hybrid", fallback=FallbackUse("openai", "no key")
    )
    await bench.search()
    bench.made[0].failure = StoreUnavailable("full")
    assert await bench.reason() == "no key"
    bench.made[0].failure = Failed("it crashed")
    assert await bench.reason() == "it crashed"
    await bench.both.close()


async def test_what_is_explained_is_the_second() -> None:
    """And the answer says so, whether or not the first one answers searches."""
    bench = Bench()
    await bench.search()
    answer, _ = await bench.both.explain(QUESTION)
    assert (answer.backend, bench.attempts) == ("second", 1)
    assert answer.fallback == FallbackUse("first", "first does not report how it ranks its hits")
    bench.made[0].failure = Failed("it crashed")
    await bench.search()
    assert (await bench.both.explain(QUESTION))[0].fallback == FallbackUse("first", "it crashed")
    await bench.both.close()


async def test_lines_are_read_whichever_backend_answers() -> None:
    """Reading neither makes the first backend nor changes who answers."""
    bench = Bench()
    excerpt = await bench.both.get("a.md", start_line=3, lines=1, kinds=frozenset(Kind))
    assert (excerpt, bench.attempts) == (Excerpt("a.md", 3, 3, None), 0)
    await bench.both.close()


class ReadingFirst(First):
    """One that explains and reads, too."""

    excerpt: Excerpt | None = Excerpt("there", 1, 1, None)

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        return await self.search(question), Trace(
            terms=("there",), match="", vector_weight=0.7, text_weight=0.3, min_score=0, candidates=()
        )

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        await self.search(QUESTION)
        assert (path, start_line, lines, kinds, max_chars) == ("a.md", 3, 1, frozenset(Kind), 99)
        return self.excerpt


class HavingNothing(Second):
    async def get(self, path: str, **_: object) -> Excerpt | None:
        return None


def reading(first: First, second: Second) -> ReadingFallback[ReadingFirst]:
    """A pair whose first backend is the one given."""

    async def create() -> ReadingFirst:
        if not isinstance(first, ReadingFirst):
            raise Failed("no such host")
        return first

    breaker = CircuitBreaker("main", "first", create, BreakerTimeouts(5.0, 60.0))
    return ReadingFallback(breaker, second, 3600.0)


async def test_one_that_reads_is_asked_for_all_while_it_answers() -> None:
    """What it does not find, the second may have; while it is away the second does all, and what it lacks is blocked."""
    how: Any = {"start_line": 3, "lines": 1, "kinds": frozenset(Kind), "max_chars": 99}
    first = ReadingFirst()
    both = reading(first, Second())
    answer, trace = await both.explain(QUESTION)
    assert (answer.backend, answer.fallback, trace.terms) == ("first", None, ("there",))
    assert await both.get("a.md", **how) == Excerpt("there", 1, 1, None)
    first.excerpt = None
    assert await both.get("a.md", **how) == Excerpt("a.md", 3, 3, None)
    first.failure = Failed("it crashed")
    assert await both.get("a.md", **how) == Excerpt("a.md", 3, 3, None)
    answer, trace = await both.explain(QUESTION)
    assert (answer.backend, answer.fallback) == ("second", FallbackUse("first", "it crashed"))
    assert trace.terms == ()
    await both.close()


async def test_what_neither_has_is_missing_only_where_both_were_asked() -> None:
    """A file of the one that is away is not said to be missing."""
    how: Any = {"start_line": 3, "lines": 1, "kinds": frozenset(Kind), "max_chars": 99}
    first = ReadingFirst()
    first.excerpt = None
    both = reading(first, HavingNothing())
    assert await both.get("a.md", **how) is None
    await both.close()
    with pytest.raises(FilesBlocked, match=r"^a\.md cannot be read just now: first has not answered\.$"):
        await both.get("a.md", **how)
    away = reading(First(), HavingNothing())
    with pytest.raises(FilesBlocked, match=r"^a\.md cannot be read just now: no such host\.$"):
        await away.get("a.md", **how)
    await away.close()


async def test_what_only_a_person_can_mend_is_no_matter_of_a_moment() -> None:
    """A role without its right is refused until somebody grants it."""
    first = ReadingFirst()
    both = reading(first, HavingNothing())
    first.failure = SharedRefused("this role is no member")
    with pytest.raises(FilesBlocked, match=r"^a\.md cannot be read: this role is no member\.$") as refused:
        await both.get("a.md", start_line=3, lines=1, kinds=frozenset(Kind), max_chars=99)
    assert refused.value.needs_person
    await both.close()


async def test_warming_up_makes_the_backend() -> None:
    """And has the second one ready too; a failure is told in the log, and the cool-down begins."""
    bench = Bench()
    await bench.both.warm()
    assert (bench.attempts, bench.second.warmed, bench.both.first.backend) == (1, 1, bench.made[0])
    await bench.both.close()
    bench = Bench()
    bench.failure = Failed("not installed")
    with capture_logs() as logs:
        await bench.both.warm()
    assert bench.both.first.state == CoolingDown(1000.0, "not installed", 1060.0)
    assert [event["event"] for event in logs if event["log_level"] == "warning"] == ["backend.fallen_back"]
    await bench.both.close()


async def test_closing_ends_everything() -> None:
    """What a backend does beside searches, and the backend, though its end fails; later searches go to the second."""
    bench = Bench()
    await bench.search()
    bench.made[0].close_failure = OSError("the test lets this fail")
    with capture_logs() as logs:
        await bench.both.close()
    assert (bench.made[0].closed, bench.made[0].running) == (1, False)
    assert [event["event"] for event in logs] == ["backend.close_failed"]
    assert await bench.search() == "second"
    await bench.both.close()
    assert (bench.attempts, bench.made[0].closed) == (1, 1)


async def test_closing_gives_up_a_backend_that_is_being_made() -> None:
    """Whoever waits for it is answered by the second."""
    bench = Bench()
    bench.gate.clear()
    waits = asyncio.create_task(bench.search())
    await until_async(lambda: bench.attempts)
    await bench.both.close()
    assert await waits == "second"
    assert bench.made == []


async def test_a_new_backend_is_made_when_the_one_before_has_ended() -> None:
    """Two of them would be in each other's way."""
    bench = Bench(cooldown_s=0.0)
    await bench.search()
    before = bench.made[0]
    ended = asyncio.Event()
    close = before.close

    async def close_slowly() -> None:
        await ended.wait()
        await close()

    before.close = close_slowly  # type: ignore[method-assign]
    before.failure = Failed("it crashed")
    assert await bench.search() == "second"
    tries = asyncio.create_task(bench.search())
    for _ in range(20):
        await asyncio.sleep(0)
    assert bench.attempts == 1
    ended.set()
    assert await tries == "first"
    assert bench.attempts == 2
    await bench.both.close()


def test_a_backend_that_does_not_end_is_waited_for_so_long() -> None:
    """Then the next one is made beside it."""

    async def waited_s() -> float:
        bench = Bench(cooldown_s=0.0, ready_s=60.0, silence_s=60.0)
        await bench.search()
        before, ended = bench.made[0], asyncio.Event()

        async def close_at_last() -> None:
            await ended.wait()

        before.close = close_at_last  # type: ignore[method-assign]
        before.failure = Failed("it crashed")
        assert await bench.search() == "second"
        began = now_s()
        assert await bench.search() == "first"
        took_s = now_s() - began
        ended.set()
        await bench.both.close()
        return took_s

    assert hastily(waited_s()) == shipped("memd.backends.circuit_breaker.CLOSE_S")


# --- status


async def test_the_status_is_that_of_the_backend_that_answers() -> None:
    """Not made yet, answering, and failed with the times of the first failure and of the next try."""
    bench = Bench()
    assert bench.both.status().backend == "first"
    assert bench.both.status().vector == VectorSearchStatus(available=False, reason="first is not ready yet")
    assert await bench.search() == "first"
    assert bench.both.status() == bench.made[0].status()
    bench.made[0].failure = Failed("it crashed")
    assert await bench.search() == "second"
    status = bench.both.status()
    assert (status.backend, status.provider, status.program) == ("second", "p", None)
    stand_in = status.stand_in
    assert stand_in is not None
    assert (stand_in.instead_of, stand_in.reason) == ("first", "it crashed")
    assert stand_in.since is not None
    assert stand_in.retry_at is not None
    assert round(stand_in.retry_at - stand_in.since, 1) == 60.0
    await bench.both.close()


async def test_a_silent_backend_is_in_the_status_beside_the_one_that_answers() -> None:
    """It may still answer: what its program says of itself is shown, and no time of a failure."""
    bench = Bench(silence_s=1.0)
    assert await bench.search() == "first"
    bench.made[0].gate.clear()
    impatient = asyncio.create_task(bench.search())
    await until_async(lambda: bench.made[0].asked == 2)
    impatient.cancel()
    await asyncio.wait([impatient])
    bench.now += 2.0
    status = bench.both.status()
    assert (status.backend, status.program) == ("second", PROGRAM)
    assert status.stand_in == BackendStandIn(instead_of="first", reason="first has not answered for 2.0 s")
    await bench.both.close()
