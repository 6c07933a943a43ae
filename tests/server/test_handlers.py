import asyncio
import os
import time
from collections.abc import AsyncIterator, Callable
from datetime import date, datetime
from pathlib import Path
from typing import Any

import apsw
import msgspec
import pytest
import structlog

from memd.agent.agents import Agents, LeftOut
from memd.agent.build import build_agent
from memd.backends.backend import (
    MAX_CHARS,
    BackendAnswer,
    BackendEnvironment,
    BackendQuestion,
    BackendStatus,
    Excerpt,
    VectorSearchStatus,
)
from memd.backends.indexed_text import FilesRefused
from memd.config.load import ConfigError
from memd.config.settings import AgentSettings, QuerySettings, Redact, Scope, SearchLimits, UserRule
from memd.domain_types import DegradedPart, FoundHit, Kind, Label, LabelKind, SearchFilter, Trace
from memd.embedding.registry import AgentProviders
from memd.index_service import IndexService
from memd.runtime.time_zones import LocalZone
from memd.server.handlers import CHANGES, RELOADS, Handlers
from memd.server.request_times import RequestTimes
from memd.server.requests import agent_status
from memd.server.requests.control import DaemonControl
from memd.server.requests.search import AT_WORK, ConnectedClient
from memd.server.requests.status import ProcessFacts
from memd.store.errors import StoreClosed, StoreDamaged, StoreNewer, StoreUnavailable
from memd.store.files import FileChange
from memd_client import messages as wire
from tests.bounds import shipped
from tests.clock import Clock
from tests.embedding.supplies import silent
from tests.store.conftest import chunk_of, found_file
from tests.unchanging import unchanging
from tests.wait import until_async

HIT = FoundHit("memory/a.md", 3, 9, 0.5, "the text", "memory")
MOST_LINES = shipped("memd.server.requests.get.MAX_LINES")
LINE = FoundHit("memory/b.md", 4, 4, 0.4, "a line", "memory")

BEYOND = shipped("memd.server.requests.search._BEYOND")


class Scripted:
    """A backend that answers what the test wrote down, and remembers what it was asked."""

    def __init__(self) -> None:
        self.asked: list[BackendQuestion] = []
        self.read: list[tuple[str, int, int, frozenset[Kind]]] = []
        self.failures: list[Exception] = []
        self.open = asyncio.Event()  # until then, no search is answered
        self.open.set()
        self.answer = BackendAnswer(
            hits=(HIT, LINE), backend="scripted", provider="p", model="m", mode="hybrid"
        )
        self.excerpt: Excerpt | None = Excerpt("some text", 5, 7, 8)

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        self.asked.append(question)
        await self.open.wait()
        if self.failures:
            raise self.failures.pop(0)
        return self.answer

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        trace = Trace(
            terms=("a",), match='"a"', vector_weight=0.7, text_weight=0.3, min_score=0.2, candidates=()
        )
        return await self.search(question), trace

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        self.read.append((path, start_line, lines, kinds))
        self.most = max_chars
        return self.excerpt

    async def warm(self) -> None:
        return None

    def status(self) -> BackendStatus:
        return BackendStatus(backend="builtin", provider="none", model="", vector=VectorSearchStatus())

    async def close(self) -> None:
        return None


class Bidden:
    """A daemon that notes what it is told to do."""

    def __init__(self) -> None:
        self.stops = 0
        self.reloads = 0
        self.wrong: str | None = None  # what is wrong with the configuration
        self.control = DaemonControl(stop=self._stop, reload=self._reload)

    def _stop(self) -> None:
        self.stops += 1

    async def _reload(self) -> tuple[str, ...]:
        self.reloads += 1
        if self.wrong is not None:
            raise ConfigError(self.wrong)
        return ("agents.main.citations",)


class Bench:
    """Handlers over one agent, main, whose index is real and whose searches are scripted."""

    def __init__(self, home: Path) -> None:
        self.home = home
        self.agents = Agents()
        self.backend = Scripted()
        self.control = Bidden()
        self.handlers = Handlers(
            self.agents, ProcessFacts("1.2.3", Path("/run/memd.sock"), unchanging()), self.control.control
        )

    async def serve(self, agent_id: str = "main", **settings: Any) -> None:
        """Let an agent have these settings."""
        wanted = AgentSettings(workspace=self.home / "workspace", **settings)
        around = BackendEnvironment({}, self.home)
        agent = await build_agent(self.home, around, agent_id, wanted, silent(wanted))
        agent.backend = self.backend
        self.agents.swap({**self.agents.all(), agent_id: agent})

    async def close(self) -> None:
        for agent in self.agents.all().values():
            await agent.index.close()

    async def found(self, **request: Any) -> wire.Found:
        reply = await self.handlers.handle(wire.Search(query="x", **request))
        assert isinstance(reply, wire.Found), reply
        return reply


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """Handlers with an agent of default settings."""
    (tmp_path / "agents").mkdir()
    one = Bench(tmp_path)
    await one.serve()
    yield one
    await one.close()


# --- what goes wrong


@pytest.mark.parametrize(
    ("failure", "code"),
    [
        (StoreUnavailable("disk full"), "unavailable"),
        (StoreDamaged("malformed"), "unavailable"),
        (StoreNewer(Path("embeddings.sqlite"), 9, 2), "unavailable"),
        (FilesRefused("no member"), "unavailable"),
        (ValueError("a bug"), "internal"),
        (RecursionError(), "internal"),
    ],
)
async def test_an_error_becomes_a_failure_with_its_code(bench: Bench, failure: Exception, code: str) -> None:
    """Whatever a part raises, the client gets a failure with a hint, and the next request is answered."""
    bench.backend.failures = [failure]
    with structlog.testing.capture_logs() as logs:
        reply = await bench.handlers.handle(wire.Search(query="x"))
    assert isinstance(reply, wire.Failure)
    assert reply.code == code
    is_momentary = isinstance(failure, StoreUnavailable)
    assert (reply.hint == "Try again in a moment.") is is_momentary
    assert reply.hint
    assert [event["event"] for event in logs] == (["server.request_failed"] if code == "internal" else [])
    assert (await bench.found()).results


@pytest.mark.parametrize("path", ["./MEMORY.md", "././/MEMORY.md", "MEMORY.md"])
async def test_a_path_may_begin_as_a_shell_completes_it(bench: Bench, path: str) -> None:
    """The note is the same; the reply has the path as it was asked for."""
    reply = await bench.handlers.handle(wire.Get(path=path))
    assert isinstance(reply, wire.Note)
    assert (reply.path, reply.missing) == (path, False)
    assert [one[0] for one in bench.backend.read] == ["MEMORY.md"]


async def test_a_bug_tells_the_client_nothing_of_its_text(bench: Bench) -> None:
    """The message of an error that nobody had thought of may quote anything: it stays in the log."""
    bench.backend.failures = [ValueError("secret")]
    with structlog.testing.capture_logs() as logs:
        reply = await bench.handlers.handle(wire.Search(query="porcupine"))
    assert "secret" not in str(reply)
    assert "porcupine" not in str(logs)


async def test_an_agent_that_changed_meanwhile_is_asked_anew(bench: Bench) -> None:
    """A store that was closed under a request costs nothing; if it goes on and on, the client is told to try again."""
    bench.backend.failures = [StoreClosed("closed")] * RELOADS
    assert (await bench.found()).results
    bench.backend.failures = [StoreClosed("closed")] * (RELOADS + 1)
    reply = await bench.handlers.handle(wire.Search(query="x"))
    assert isinstance(reply, wire.Failure)
    assert reply.code == "unavailable"


async def test_requests_wait_while_agents_change(bench: Bench) -> None:
    """Nothing is answered from half a change."""
    with bench.agents.held({"main"}):
        asked = asyncio.create_task(bench.found())
        await asyncio.sleep(0)
        assert not asked.done()
        assert not bench.backend.asked
    assert (await asked).results


async def test_a_request_that_means_all_agents_waits_while_any_changes(bench: Bench) -> None:
    """One that is about to come is meant, too."""
    with bench.agents.held({"other"}):
        asked = asyncio.create_task(bench.handlers.handle(wire.Sync(wait=False)))
        for _ in range(5):
            await asyncio.sleep(0)
        assert not asked.done()
    assert isinstance(await asked, wire.SyncReport)


async def test_who_met_a_closed_store_asks_again_when_the_change_is_over(bench: Bench) -> None:
    """Until then, the store would be closed at each attempt."""
    bench.backend.failures = [StoreClosed("closed")]
    with bench.agents.held({"other"}):
        asked = asyncio.create_task(bench.found())
        for _ in range(20):
            await asyncio.sleep(0)
        assert (len(bench.backend.asked), asked.done()) == (1, False)
    assert (await asked).results


@pytest.mark.parametrize(
    "request_of",
    [
        lambda name: wire.Search(query="x", agent=name),
        lambda name: wire.Explain(query="x", agent=name),
        lambda name: wire.Get(path="x", agent=name),
        lambda name: wire.Tags(agent=name),
        lambda name: wire.Sync(agent=name),
        lambda name: wire.Reindex(agent=name),
        lambda name: wire.Reindex(agent=name, dry_run=True),
        lambda name: wire.Status(agent=name),
    ],
)
async def test_every_request_knows_its_agents(
    bench: Bench, request_of: Callable[[str], wire.Request]
) -> None:
    """An agent that is not there is told with those that are, whatever was asked of it."""
    reply = await bench.handlers.handle(request_of("nobody"))
    assert isinstance(reply, wire.Failure)
    assert (reply.code, "main" in reply.message) == ("unknown_agent", True)


# --- what is asked and answered


async def test_a_strict_search_has_no_weak_hits(bench: Bench) -> None:
    """Others have them behind those that are not."""
    weak = msgspec.structs.replace(LINE, weak=True)
    bench.backend.answer = msgspec.structs.replace(bench.backend.answer, hits=(HIT, weak))
    found = {strict: (await bench.found(strict=strict)).results for strict in (False, True)}
    assert [hit.path for hit in found[False]] == [HIT.path, weak.path]
    assert [hit.path for hit in found[True]] == [HIT.path]


async def test_what_the_request_leaves_open_the_settings_say(bench: Bench) -> None:
    """max_results and min_score are the request's, else the configured ones."""
    await bench.close()
    await bench.serve(query=QuerySettings(max_results=9, min_score=0.2))
    await bench.found()
    await bench.found(max_results=3, min_score=0.0)
    asked = [(one.text, one.max_results, one.min_score) for one in bench.backend.asked]
    assert asked == [("x", 9, 0.2), ("x", 3, 0.0)]


async def test_so_many_results_may_be_asked_for(bench: Bench) -> None:
    """One more is refused."""
    most = shipped("memd.server.requests.search.MAX_RESULTS")
    for count, is_refused in ((most, False), (most + 1, True)):
        reply = await bench.handlers.handle(wire.Search(query="x", max_results=count))
        assert isinstance(reply, wire.Failure) is is_refused


@pytest.mark.parametrize(
    ("now", "day"),
    [
        ("2026-02-09", date(2026, 2, 9)),
        ("2026-02-09T23:30", date(2026, 2, 9)),
        ("2026-02-09 23:30:15", date(2026, 2, 9)),
        ("2026-02-09T12:00:00+00:00", date(2026, 2, 9)),
        ("2026-02-09T23:30:00-05:00", date(2026, 2, 10)),
    ],
)
async def test_a_question_is_asked_on_the_day_that_it_says(
    bench: Bench, now: str, day: date, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A moment without a zone is in that of the machine."""
    with monkeypatch.context() as patch:
        patch.setenv("TZ", "UTC")
        time.tzset()
        try:
            await bench.found(now=now)
            before = datetime.now(LocalZone()).replace(tzinfo=None)
            await bench.found()
            after = datetime.now(LocalZone()).replace(tzinfo=None)
        finally:
            patch.undo()
            time.tzset()
    asked, then = bench.backend.asked[0].now, bench.backend.asked[1].now
    assert asked is not None
    assert asked.date() == day
    # What was written in the course of a day that is named lies before the question.
    assert (asked.hour == 23) is (len(now) == 10 or ("23:30" in now and "-05:00" not in now))
    assert then is not None
    assert before <= then <= after


@pytest.mark.parametrize(
    ("request_", "expected"),
    [
        ({}, SearchFilter()),
        ({"since": "1970-01-02"}, SearchFilter(since_s=86_400, since_ns=86_400 * 10**9)),
        ({"until": "1970-01-02"}, SearchFilter(until_s=2 * 86_400 - 1, until_ns=2 * 86_400 * 10**9 - 1)),
        ({"since": "yesterday", "now": "1970-01-03"}, SearchFilter(since_s=86_400, since_ns=86_400 * 10**9)),
        (
            {"since": "1500-01-01", "until": "9999-12-31"},  # 64 bits of nanoseconds end before and after
            SearchFilter(-14_831_769_600, 253_402_300_799, -BEYOND, BEYOND + 999_999_999),
        ),
        ({"since": "1970-01-02T00:00+01:00"}, SearchFilter(since_s=82_800, since_ns=82_800 * 10**9)),
        ({"only": ["tag:#Work", "tag:home/", "tag:ＷＯＲＫ"]}, SearchFilter(tags=("work", "home"))),
        ({"only": ["path:memory/**", "path:!old/"]}, SearchFilter(paths=("memory/**", "!old/"))),
        ({"only": ["property:Status= Done"]}, SearchFilter(properties=(("status", "done"),))),
    ],
)
async def test_a_request_filters(tmp_path: Path, request_: dict[str, Any], expected: SearchFilter) -> None:
    """In the zone of the agent; a filter has its own least score, unless the request names one."""
    (tmp_path / "agents").mkdir()
    bench = Bench(tmp_path)
    await bench.serve(timezone="UTC")
    reply = await bench.found(**request_)
    assert reply.filtered
    asked = bench.backend.asked[0]
    assert asked.wanted == expected
    assert asked.min_score == (0.35 if expected.is_empty else 0)
    await bench.found(**request_, min_score=0.5, sort="time")
    assert bench.backend.asked[1].min_score == 0.5
    assert [one.by_time for one in bench.backend.asked] == [False, True]
    await bench.close()


@pytest.mark.parametrize(
    ("request_", "said"),
    [
        ({"since": "lst week"}, "since: 'lst week' is no time that memd knows"),
        ({"until": ""}, "until: '' is no time"),
        ({"since": "today", "until": "last week"}, "is later than until"),
        ({"only": ["tag: "]}, "only has 'tag: '; it must be tag:NAME"),
        ({"only": ["work"]}, "only has 'work'"),
        ({"only": ["property:x"]}, "it must be tag:NAME, property:KEY=VALUE or path:GLOB"),
        ({"only": ["tag:a"] * 21}, "only has 21 entries, and may have 20"),
        ({"only": ["path:" + "a" * 500]}, "of at most 500 characters"),
    ],
)
async def test_a_filter_that_makes_no_sense_is_one_clear_error(
    bench: Bench, request_: dict[str, Any], said: str
) -> None:
    """The agent is not asked."""
    reply = await bench.handlers.handle(wire.Search(query="x", **request_))
    assert isinstance(reply, wire.Failure)
    assert reply.code == "bad_request"
    assert said in reply.message
    assert bench.backend.asked == []


async def test_a_request_has_so_many_filters(bench: Bench) -> None:
    """Each of so many characters at most."""
    most = shipped("memd.server.requests.search.MAX_FILTERS")
    longest = shipped("memd.server.requests.search.MAX_FILTER_CHARS")
    for only, is_refused in (
        (["tag:a"] * most, False),
        (["tag:a"] * (most + 1), True),
        (["path:".ljust(longest, "a")], False),
        (["path:".ljust(longest + 1, "a")], True),
    ):
        reply = await bench.handlers.handle(wire.Search(query="x", only=only))
        assert isinstance(reply, wire.Failure) is is_refused


async def test_a_hit_says_of_when_it_is(bench: Bench) -> None:
    """A day, or two; where only the disk knows it, that is said."""
    hit = FoundHit("a.md", 1, 1, 0.5, "x", "memory")
    day = msgspec.structs.replace(hit, when=(86_400, 2 * 86_400 - 1), written_ns=1)
    days = msgspec.structs.replace(hit, when=(86_400, 3 * 86_400))
    file = msgspec.structs.replace(hit, written_ns=12 * 3600 * 10**9)
    bench.backend.answer = msgspec.structs.replace(bench.backend.answer, hits=(hit, day, days, file))
    reply = await bench.found(max_chars=0)
    dates = [(one.date, one.file_date) for one in reply.results]
    assert dates == [
        (None, False),
        ("1970-01-02", False),
        ("1970-01-02/1970-01-04", False),
        ("1970-01-01", True),
    ]


async def test_a_reply_carries_what_the_backend_told(bench: Bench) -> None:
    """Hits in their order, how they were found, what was missing, and whether something newer is on the disk."""
    bench.backend.answer = msgspec.structs.replace(
        bench.backend.answer, mode="keyword", stale=True, degraded=(DegradedPart("vector", "why"),)
    )
    assert await bench.found() == wire.Found(
        results=[
            wire.Hit(
                path="memory/a.md",
                start_line=3,
                end_line=9,
                score=0.5,
                snippet="the text",
                citation="memory/a.md#L3-L9",
            ),
            wire.Hit(
                path="memory/b.md",
                start_line=4,
                end_line=4,
                score=0.4,
                snippet="a line",
                citation="memory/b.md#L4",
            ),
        ],
        backend="scripted",
        provider="p",
        model="m",
        mode="keyword",
        citations=True,
        max_chars=4000,
        stale=True,
        degraded=[wire.Degraded(part="vector", reason="why")],
        filtered=True,
    )


@pytest.mark.parametrize(
    ("setting", "key", "cited"),
    [
        ("auto", None, True),
        ("auto", "agent:main:main", True),
        ("auto", "agent:main:telegram:direct:1", True),
        ("auto", "agent:main:telegram:group:1", False),
        ("auto", "who knows", False),
        ("on", "agent:main:telegram:group:1", True),
        ("off", None, False),
    ],
)
async def test_citations_are_for_whoever_can_follow_them(
    bench: Bench, setting: str, key: str | None, cited: bool
) -> None:
    """auto: in direct chats and for the owner, not in groups."""
    await bench.close()
    await bench.serve(citations=setting, scope=Scope(default="allow", rules=()))
    found = await bench.found(session_key=key)
    assert found.citations is cited
    assert all((hit.citation is not None) is cited for hit in found.results)


@pytest.mark.parametrize(("citations", "shown"), [("on", 1), ("off", 2)])
async def test_footers_take_room_where_hits_are_cited(bench: Bench, citations: str, shown: int) -> None:
    """Two snippets that have just room without them."""
    await bench.close()
    await bench.serve(citations=citations)
    hits = (
        FoundHit("memory/a.md", 3, 9, 0.5, "a" * 50, "memory"),
        FoundHit("b.md", 4, 4, 0.4, "b" * 50, "memory"),
    )
    bench.backend.answer = msgspec.structs.replace(bench.backend.answer, hits=hits)
    found = await bench.found(max_chars=100)
    assert (len(found.results), found.omitted) == (shown, 2 - shown)


async def test_a_group_is_searched_and_read_without_curated_files(bench: Bench) -> None:
    """The backend hears which kinds may be seen; a source that the agent lacks leaves none."""
    await bench.close()
    await bench.serve(scope=Scope(default="allow", rules=()))
    group = "agent:main:telegram:group:1"
    await bench.found()
    await bench.found(session_key=group)
    await bench.found(source="sessions")
    assert [one.kinds for one in bench.backend.asked] == [{Kind.NOTE, Kind.CURATED}, {Kind.NOTE}, set()]
    await bench.handlers.handle(wire.Get(path="x", session_key=group))
    assert bench.backend.read == [("x", 1, 120, frozenset({Kind.NOTE}))]


@pytest.mark.parametrize(("asked", "most"), [(None, 12_000), (100, 100), (20_000, 12_000)])
async def test_no_more_characters_than_a_reply_holds(bench: Bench, asked: int | None, most: int) -> None:
    """However many are asked for."""
    await bench.handlers.handle(wire.Get(path="x", max_chars=asked))
    assert bench.backend.most == most


async def test_an_excerpt_of_next_to_nothing_is_refused(bench: Bench) -> None:
    """Nobody would come to its end."""
    least = shipped("memd.server.requests.get.LEAST_CHARS")
    reply = await bench.handlers.handle(wire.Get(path="x", max_chars=least - 1))
    assert isinstance(reply, wire.Failure)
    said = f"max_chars is {least - 1}; it must be {least} or more"
    assert (reply.code, reply.message) == ("bad_request", said)
    assert not isinstance(await bench.handlers.handle(wire.Get(path="x", max_chars=least)), wire.Failure)


async def test_an_explanation_shows_all_of_each_hit(bench: Bench) -> None:
    """However few characters a search may give: who asks wants to see what was found."""
    await bench.close()
    await bench.serve(limits=SearchLimits(max_injected_chars=200))
    long = (msgspec.structs.replace(HIT, snippet="word " * 100), LINE)
    bench.backend.answer = msgspec.structs.replace(bench.backend.answer, hits=long)
    explained = await bench.handlers.handle(wire.Explain(query="x"))
    assert isinstance(explained, wire.Explanation)
    assert [hit.snippet for hit in explained.found.results] == [hit.snippet for hit in long]
    assert (explained.found.max_chars, explained.found.omitted) == (0, 0)


async def test_a_denied_session_never_reaches_the_backend(bench: Bench) -> None:
    """Nothing is searched or read for it; the log has the kind of chat and not the key."""
    key = "agent:main:telegram:group:4711"
    with structlog.testing.capture_logs() as logs:
        found = await bench.found(session_key=key)
        note = await bench.handlers.handle(wire.Get(path="x", session_key=key, start_line=7))
        explained = await bench.handlers.handle(wire.Explain(query="x", session_key=key))
    assert found == wire.Found(scope_denied=True)
    assert note == wire.Note(path="x", missing=True, start_line=7)
    assert explained == wire.Explanation(found=found)
    assert (bench.backend.asked, bench.backend.read) == ([], [])
    assert {event["event"] for event in logs} == {"scope.denied"}
    assert "4711" not in str(logs)


@pytest.mark.parametrize(
    ("lines", "given"),
    [(None, MOST_LINES), (1, 1), (MOST_LINES, MOST_LINES), (MOST_LINES + 1, MOST_LINES), (2**60, MOST_LINES)],
)
async def test_no_more_lines_than_a_reply_holds(bench: Bench, lines: int | None, given: int) -> None:
    """However many are asked for, 120 lines are read at most; the reply tells where they begin, end and go on."""
    note = await bench.handlers.handle(wire.Get(path="x", start_line=5, lines=lines))
    assert note == wire.Note(
        path="x", text="some text", start_line=5, end_line=7, next_line=8, max_chars=4000
    )
    assert bench.backend.read[0][2] == given


# --- sync and status


async def test_no_more_tags_than_a_reply_holds(bench: Bench) -> None:
    """The most frequent ones; how many more there are is told."""
    most = shipped("memd.server.requests.get.MAX_NAMES")
    index = bench.agents.all()["main"].index
    labels = [Label(LabelKind.TAG, f"t{number}", f"t{number}") for number in range(most + 2)]
    for path, of in (("memory/a.md", labels), ("memory/b.md", labels[-1:])):
        change = FileChange(found_file(path), b"1", [chunk_of(path)], labels=of)
        await index.replace_all([change], {}, frozenset())
    reply = await bench.handlers.handle(wire.Tags())
    assert isinstance(reply, wire.TagsReport)
    told = reply.agents["main"]
    assert (len(told.tags), told.omitted) == (most, 2)
    assert (told.tags[0].name, told.tags[0].notes, told.tags[1].notes) == (f"t{most + 1}", 2, 1)


async def test_a_sync_that_waits_for_nothing_returns_at_once(bench: Bench) -> None:
    """wait=False asks for a pass and tells what is there."""
    assert await bench.handlers.handle(wire.Sync(wait=False)) == wire.SyncReport(reason="none is wanted")
    assert bench.agents.all()["main"].index_service.pending == 1


@pytest.mark.parametrize("patience_ms", [50, 0, -5])
async def test_a_sync_ends_with_its_callers_patience(bench: Bench, patience_ms: int) -> None:
    """Where no pass ends in time, the caller is told so before it gives up by itself."""
    reply = await bench.handlers.handle(wire.Sync(patience_ms=patience_ms))
    assert isinstance(reply, wire.Failure)
    assert reply.code == "timed_out"


async def test_status_names_the_daemon_and_its_agents(bench: Bench) -> None:
    """One agent or all, with the process around them."""
    for name in (None, "main"):
        status = await bench.handlers.handle(wire.Status(agent=name))
        assert isinstance(status, wire.StatusReport)
        assert (status.version, status.socket, status.config) == ("1.2.3", "/run/memd.sock", None)
        assert list(status.agents) == ["main"]
        told = status.agents["main"]
        assert told.workspace == str(bench.home / "workspace")
        assert (told.rebuild, told.vectors.note) == (None, None)


async def test_status_says_what_is_done_to_an_index_and_its_vectors(bench: Bench) -> None:
    """Why it is built anew, from when that is asked for; and why nothing is embedded."""
    await bench.handlers.handle(wire.Reindex())
    bench.agents.all()["main"].index_service.suspend_vectors()
    status = await bench.handlers.handle(wire.Status())
    assert isinstance(status, wire.StatusReport)
    told = status.agents["main"]
    assert told.rebuild is not None
    assert told.vectors.note == "they rest while builtin answers"


@pytest.mark.parametrize(
    ("asked", "told"),
    [
        (wire.Status(), ["away", "main"]),
        (wire.Status(agent="main"), ["main"]),
        (wire.Status(agent="away"), ["away"]),
        (wire.Status(session_key="agent:main:telegram:direct:1"), ["main"]),
        (wire.Status(agent="main", session_key="agent:main:telegram:group:1"), ["main"]),
    ],
)
async def test_an_agent_that_cannot_run_is_told_to_whom_it_concerns(
    bench: Bench, asked: wire.Status, told: list[str]
) -> None:
    """To whoever asks for it or for all; not to a session of another agent."""
    await bench.close()
    await bench.serve(scope=Scope(default="allow", rules=()))

    async def try_again() -> None:
        return None

    away = LeftOut(AgentSettings(workspace=bench.home), "its disk is away", try_again)
    bench.agents.swap(bench.agents.all(), {"away": away})
    status = await bench.handlers.handle(asked)
    assert isinstance(status, wire.StatusReport)
    assert sorted(status.agents) == told


# --- sessions

OWN = "agent:main:telegram:direct:1"
GROUP = "agent:main:telegram:group:1"
OPEN = Scope(default="allow", rules=())


async def test_a_session_is_shown_its_own_agent_alone(bench: Bench) -> None:
    """Status, sync and reindex by session key are about that key's agent, though there be others."""
    await bench.serve("work")
    status = await bench.handlers.handle(wire.Status(session_key=OWN))
    assert isinstance(status, wire.StatusReport)
    assert list(status.agents) == ["main"]
    assert status.agents["main"].workspace
    await bench.handlers.handle(wire.Sync(wait=False, session_key=OWN))
    assert [agent.index_service.pending for agent in bench.agents.all().values()] == [1, 0]
    assert await bench.handlers.handle(wire.Reindex(session_key=OWN)) == wire.ReindexReport(agents=["main"])
    assert bench.agents.all()["work"].index_service.health.rebuild is None


async def test_sessions_that_were_warmed_are_remembered_up_to_a_number(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whoever is forgotten has the disk looked at once more; the last ones do not."""
    await bench.close()
    await bench.serve(scope=OPEN)
    looks = 0
    request = IndexService.request

    def counted(service: IndexService, *wanted: Any, **how: Any) -> Any:
        nonlocal looks
        looks += 1
        return request(service, *wanted, **how)

    async def wait_for_pass(self: IndexService, awaited: object) -> None:
        return None

    monkeypatch.setattr(IndexService, "request", counted)
    monkeypatch.setattr(IndexService, "wait_for_pass", wait_for_pass)
    most = shipped("memd.server.requests.sync.WARM_KEYS")
    for number in range(most + 1):
        await bench.handlers.handle(wire.Warm(session_key=f"agent:main:telegram:group:{number}"))
    assert looks == most + 1
    for number, wanted in ((most, 0), (1, 0), (0, 1)):
        before = looks
        await bench.handlers.handle(wire.Warm(session_key=f"agent:main:telegram:group:{number}"))
        assert looks - before == wanted


@pytest.mark.parametrize("key", ["agent:work:main", "agent:Main:main", "agent:nobody:main", "agent::main"])
async def test_nothing_of_another_agent_is_told_or_done(bench: Bench, key: str) -> None:
    """A name and a key that disagree are denied, in the same words whether or not such an agent is there."""
    await bench.serve("work")
    ask = bench.handlers.handle
    assert await ask(wire.Search(query="x", agent="main", session_key=key)) == wire.Found(scope_denied=True)
    assert await ask(wire.Get(path="x", agent="main", session_key=key)) == wire.Note(path="x", missing=True)
    assert await ask(wire.Warm(agent="main", session_key=key)) == wire.SyncReport()
    status = await ask(wire.Status(agent="main", session_key=key))
    assert isinstance(status, wire.StatusReport)
    assert status.agents == {}
    for request in (wire.Sync(agent="main", session_key=key), wire.Reindex(agent="main", session_key=key)):
        refused = await ask(request)
        assert isinstance(refused, wire.Failure)
        assert (refused.code, "work" in refused.message) == ("denied", False)
    assert (bench.backend.asked, bench.backend.read) == ([], [])
    assert [agent.index_service.pending for agent in bench.agents.all().values()] == [0, 0]


@pytest.mark.parametrize("key", ["agent:nobody:main", "agent:MAIN:main", "agent::main", "agent:../main:main"])
async def test_a_session_of_nobody_is_not_told_who_there_is(bench: Bench, key: str) -> None:
    """A key of an agent that is not there, or cannot be, gets an error without a list, and never another agent."""
    await bench.serve("work")
    for request in (
        wire.Search(query="x", session_key=key),
        wire.Get(path="x", session_key=key),
        wire.Explain(query="x", session_key=key),
        wire.Warm(session_key=key),
        wire.Status(session_key=key),
        wire.Sync(session_key=key),
        wire.Reindex(session_key=key),
    ):
        reply = await bench.handlers.handle(request)
        assert isinstance(reply, wire.Failure)
        assert reply.code == "unknown_agent"
        assert "work" not in reply.message
    assert bench.backend.asked == []


@pytest.mark.parametrize("key", ["agent:main:main", "agent:main:telegram:group:1"])
async def test_who_is_warmed_is_told_when_its_days_begin(bench: Bench, key: str) -> None:
    """Daily notes have their names by it; a conversation that is denied is told nothing."""
    await bench.serve(timezone="Asia/Shanghai")
    reply = await bench.handlers.handle(wire.Warm(session_key=key))
    assert isinstance(reply, wire.SyncReport)
    assert reply.timezone == ("Asia/Shanghai" if key == "agent:main:main" else "")


async def test_a_key_without_an_agent_is_not_told_who_there_is(bench: Bench) -> None:
    """Where several could be meant and none is main, the owner is told their names, and a session is not."""
    await bench.serve("work")
    await bench.serve("home")
    await bench.agents.all()["main"].index.close()
    bench.agents.swap({name: agent for name, agent in bench.agents.all().items() if name != "main"})
    for key, is_told in ((None, True), ("telegram:group:1", False), ("main", False)):
        reply = await bench.handlers.handle(wire.Search(query="x", session_key=key))
        assert isinstance(reply, wire.Failure)
        assert (reply.code, "work" in reply.message) == ("unknown_agent", is_told)


async def test_a_group_is_told_no_numbers_and_no_places(bench: Bench) -> None:
    """Where a group may search, it learns that things work, and neither how much there is nor where."""
    await bench.agents.all()["main"].index.close()
    await bench.serve(scope=OPEN)
    agent = bench.agents.all()["main"]
    agent.index_service.rebuild("secret reason")
    bench.backend.answer = msgspec.structs.replace(
        bench.backend.answer, degraded=(DegradedPart("watcher", "/secret/place is gone"),)
    )
    running = asyncio.create_task(agent.index_service.run())
    for request in (wire.Warm(session_key=GROUP), wire.Warm(session_key=GROUP)):
        assert await bench.handlers.handle(request) == wire.SyncReport()
    passed = agent.index_service.last_pass
    for asks in (
        wire.Sync(session_key=GROUP, force=True),
        wire.Sync(session_key=GROUP, wait=False),
        wire.Reindex(session_key=GROUP),
        wire.Embed(action="pause", session_key=GROUP),
    ):
        refused = await bench.handlers.handle(asks)
        assert isinstance(refused, wire.Failure)
        assert refused.code == "denied"
    assert (agent.index_service.pending, agent.index_service.last_pass) == (0, passed)
    running.cancel()
    agent.index_service.rebuild("secret reason")
    status = await bench.handlers.handle(wire.Status(session_key=GROUP))
    assert isinstance(status, wire.StatusReport)
    told = status.agents["main"]
    assert (status.pid, status.uptime_s, status.socket) == (0, 0.0, "")
    assert (told.workspace, told.files, told.store_bytes, told.last_pass, told.rebuild) == (
        "",
        0,
        0,
        None,
        None,
    )
    assert (told.keyword.ok, told.provider_health.reason) == (True, None)
    found = await bench.found(session_key=GROUP)
    assert [one.part for one in found.degraded] == ["watcher"]
    assert "secret" not in f"{status} {found}"
    assert str(bench.home) not in f"{status} {found}"
    assert "/secret/place is gone" in str(await bench.found(session_key=OWN))


async def test_a_denied_session_is_told_nothing(bench: Bench) -> None:
    """Status shows it no agent, warm begins no pass, sync and reindex are refused."""
    status = await bench.handlers.handle(wire.Status(session_key=GROUP))
    assert isinstance(status, wire.StatusReport)
    assert (status.agents, status.config) == ({}, None)
    assert await bench.handlers.handle(wire.Warm(session_key=GROUP)) == wire.SyncReport()
    for request in (wire.Sync(session_key=GROUP), wire.Reindex(session_key=GROUP, dry_run=True)):
        refused = await bench.handlers.handle(request)
        assert isinstance(refused, wire.Failure)
        assert refused.code == "denied"
    assert bench.agents.all()["main"].index_service.pending == 0


async def test_a_group_may_not_have_memory_indexed_anew(bench: Bench) -> None:
    """A rebuild costs time and money: it is for the owner, even where a group may search."""
    await bench.agents.all()["main"].index.close()
    await bench.serve(scope=OPEN)
    for dry_run in (False, True):
        refused = await bench.handlers.handle(wire.Reindex(session_key=GROUP, dry_run=dry_run))
        assert isinstance(refused, wire.Failure)
        assert refused.code == "denied"
    assert bench.agents.all()["main"].index_service.health.rebuild is None


@pytest.mark.parametrize(
    "failure", [StoreUnavailable("/secret: disk full"), StoreDamaged("/secret: malformed")]
)
async def test_a_group_is_not_told_what_is_broken(bench: Bench, failure: Exception) -> None:
    """A failure that names files names them to the owner alone."""
    await bench.agents.all()["main"].index.close()
    await bench.serve(scope=OPEN)
    for key, is_told in ((GROUP, False), (OWN, True), (None, True)):
        bench.backend.failures = [failure]
        reply = await bench.handlers.handle(wire.Search(query="x", session_key=key))
        assert isinstance(reply, wire.Failure)
        assert (reply.code, "/secret" in str(reply)) == ("unavailable", is_told)


# --- one client, one agent, and the others


async def test_a_flood_of_searches_leaves_others_their_place(bench: Bench) -> None:
    """While one client waits for 64 answers, a few are worked on; another client, and another agent, are next."""
    await bench.serve("work")
    flooding, other = bench.handlers.of_client(), bench.handlers.of_client()
    bench.backend.open.clear()
    requests = [wire.Search(query="flood", agent="main") for _ in range(64)]
    flood = [asyncio.ensure_future(flooding(request)) for request in requests]
    elsewhere = [
        asyncio.ensure_future(other(wire.Search(query="other client", agent="main"))),
        asyncio.ensure_future(flooding(wire.Explain(query="other agent", agent="work"))),
    ]
    await until_async(lambda: len(bench.backend.asked) >= AT_WORK + 2)
    assert sorted(question.text for question in bench.backend.asked) == [
        *["flood"] * AT_WORK,
        "other agent",
        "other client",
    ]
    bench.backend.open.set()
    replies = await asyncio.gather(*flood, *elsewhere)
    assert not [reply for reply in replies if isinstance(reply, wire.Failure)]


async def test_an_agent_that_changes_holds_up_no_other(bench: Bench) -> None:
    """While an agent is stopped and started, requests that mean another one are answered."""
    await bench.serve("work")
    with bench.agents.held({"work", "new"}):
        assert (await bench.found(agent="main")).results
        assert (await bench.found()).results
        assert (await bench.found(session_key=OWN)).results
        waiting = [
            asyncio.create_task(bench.handlers.handle(request))
            for request in (
                wire.Search(query="x", agent="work"),
                wire.Search(query="x", session_key="agent:work:main"),
                wire.Search(query="x", agent="new"),
                wire.Status(),
            )
        ]
        await asyncio.sleep(0)
        assert not any(task.done() for task in waiting)
    work, by_key, new, status = await asyncio.gather(*waiting)
    assert isinstance(work, wire.Found)
    assert isinstance(by_key, wire.Found)
    assert isinstance(new, wire.Failure)
    assert isinstance(status, wire.StatusReport)


@pytest.mark.parametrize("request_", [wire.Reload(), wire.Embed(action="pause")])
async def test_a_change_comes_to_its_end_though_nobody_waits_for_it(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, request_: wire.Request
) -> None:
    """A client that goes away while agents are stopped and started leaves none of them stopped."""
    begun, goes_on, ended = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def in_steps(*_: object) -> wire.Reply:
        begun.set()
        await goes_on.wait()
        ended.set()
        return wire.Reloaded()

    monkeypatch.setattr(bench.handlers, "_dispatch", in_steps)
    asking = asyncio.create_task(bench.handlers.handle(request_))
    await begun.wait()
    asking.cancel()
    await asyncio.wait([asking])
    goes_on.set()
    async with asyncio.timeout(60):
        await ended.wait()


async def test_changes_that_nobody_waits_for_are_bounded_and_end_with_the_daemon(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Clients that ask and go away pile up nothing without end; what is begun after the end would have none."""
    begun, ended = 0, 0

    async def without_end(*_: object) -> wire.Reply:
        nonlocal begun, ended
        begun += 1
        try:
            return await asyncio.Future[wire.Reply]()
        finally:
            ended += 1

    monkeypatch.setattr(bench.handlers, "_dispatch", without_end)
    asking = [asyncio.create_task(bench.handlers.handle(wire.Reload())) for _ in range(CHANGES)]
    await until_async(lambda: begun == CHANGES)
    refused = await bench.handlers.handle(wire.Reload())
    assert isinstance(refused, wire.Failure)
    assert refused.code == "unavailable"
    await bench.handlers.close()
    await asyncio.wait(asking)
    assert (begun, ended) == (CHANGES, CHANGES)
    refused = await bench.handlers.handle(wire.Reload())
    assert isinstance(refused, wire.Failure)
    assert "stopping" in refused.message


async def test_a_change_that_has_ended_makes_room_for_another(bench: Bench) -> None:
    """However many there have been."""
    for _ in range(CHANGES + 1):
        assert isinstance(await bench.handlers.handle(wire.Reload()), wire.Reloaded)


async def test_resuming_asks_a_provider_again(bench: Bench, monkeypatch: pytest.MonkeyPatch) -> None:
    """Also where nothing is embedded yet, and not at a pause."""
    asked: list[str] = []
    monkeypatch.setattr(AgentProviders, "embeds", True)
    monkeypatch.setattr(AgentProviders, "ask_again", lambda _: asked.append("again"))
    await bench.handlers.handle(wire.Embed(action="pause"))
    assert asked == []
    await bench.handlers.handle(wire.Embed(action="resume"))
    assert asked == ["again"]


@pytest.mark.parametrize(
    ("failure", "told"),
    [
        (StoreClosed("closed"), "service restart"),
        (StoreUnavailable("the disk is gone"), "the disk is gone"),
        (RuntimeError("a bug"), "its log"),
    ],
)
async def test_status_is_told_though_one_agent_cannot_tell_how_it_is(
    bench: Bench, monkeypatch: pytest.MonkeyPatch, failure: Exception, told: str
) -> None:
    """Of that one, why; of the others, everything."""
    await bench.serve("work")

    async def fails(*_: object, **__: object) -> None:
        raise failure

    monkeypatch.setattr(bench.agents.all()["work"].index_service, "counts", fails)
    monkeypatch.setattr(agent_status, "COUNT_S", 100.0)  # on a busy machine the other one has its time
    status = await bench.handlers.handle(wire.Status())
    assert isinstance(status, wire.StatusReport)
    assert status.agents["main"].store.ok
    work = status.agents["work"]
    reasons = f"{work.store.reason} {work.keyword.reason}"
    assert told in reasons
    assert work.workspace == str(bench.home / "workspace")


async def test_status_is_that_of_an_agent_that_took_the_place_of_another(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One whose index was closed meanwhile, to change its settings, is asked no more."""
    before = bench.agents.all()["main"]

    async def closed(*_: object, **__: object) -> None:
        await bench.close()
        await bench.serve()
        raise StoreClosed("closed")

    monkeypatch.setattr(before.index_service, "counts", closed)
    status = await bench.handlers.handle(wire.Status())
    assert isinstance(status, wire.StatusReport)
    assert status.agents["main"].store.ok


async def test_status_is_told_though_one_index_is_broken(bench: Bench) -> None:
    """An agent whose index cannot be read is named with the reason, and the others are as ever."""
    await bench.serve("work")
    vandal = apsw.Connection(str(bench.home / "agents" / "work.sqlite"))
    vandal.set_busy_timeout(10_000)
    vandal.execute("DROP TABLE files")
    vandal.close()
    status = await bench.handlers.handle(wire.Status())
    assert isinstance(status, wire.StatusReport)
    assert (status.agents["work"].keyword.ok, status.agents["main"].keyword.ok) == (False, True)
    assert status.agents["work"].keyword.reason


# --- where the time goes


class Slowly(Scripted):
    """Takes eleven seconds for each answer, by the clock of the test."""

    def __init__(self, clock: Clock) -> None:
        super().__init__()
        self._clock = clock

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        answer = await super().search(question)
        self._clock.run(11)
        return answer

    async def get(self, *args: Any, **kwargs: Any) -> Excerpt | None:
        self._clock.run(11)
        return await super().get(*args, **kwargs)


async def slowly(bench: Bench) -> tuple[Handlers, Slowly, Clock]:
    """Handlers of the bench with a backend that takes its time, and the clock that they measure with."""
    clock = Clock()
    bench.backend = backend = Slowly(clock)
    await bench.close()
    await bench.serve()
    facts = ProcessFacts("1.2.3", Path("/s"), unchanging())
    return Handlers(bench.agents, facts, Bidden().control, RequestTimes(clock=clock)), backend, clock


async def test_waiting_for_other_searches_of_a_client_is_told(bench: Bench) -> None:
    """The search that had to wait says so, and those before it do not."""
    handlers, backend, clock = await slowly(bench)
    backend.open.clear()
    client, question = ConnectedClient(), wire.Search(query="x")
    with structlog.testing.capture_logs() as logs:
        asked = [asyncio.create_task(handlers.handle(question, client=client)) for _ in range(AT_WORK + 1)]
        await until_async(lambda: len(backend.asked) == AT_WORK)
        clock.run(4)
        backend.open.set()
        await asyncio.gather(*asked)
    waited = [one["parts"].get("waiting for its turn") for one in logs if one["event"] == "search.was_slow"]
    assert len(waited) == AT_WORK + 1
    assert waited[:-1] == [None] * AT_WORK
    assert waited[-1] >= 4000


async def test_nothing_that_was_asked_or_found_is_logged(bench: Bench) -> None:
    """But a path, where it is that of an indexed file: else it may be whatever a model has written."""
    handlers, backend, _ = await slowly(bench)
    with structlog.testing.capture_logs() as logs:
        await handlers.handle(wire.Search(query="where is the pelican?"))
        await handlers.handle(wire.Get(path="memory/a.md"))
        await handlers.handle(wire.Search(query="where is the pelican?", agent="nobody"))
        backend.excerpt = None
        await handlers.handle(wire.Get(path="where is the pelican?"))
    assert [(one["event"], one.get("question_chars"), one.get("path")) for one in logs] == [
        ("search.was_slow", 21, None),
        ("get.was_slow", None, "memory/a.md"),
        ("get.was_slow", None, None),
    ]
    assert not any(word in str(logs) for word in ("pelican", "the text", "some text", "a line"))


async def test_the_owner_has_the_daemon_stop_and_load_its_configuration(bench: Bench) -> None:
    """With what came into force, or why nothing did; a session is denied, whoever reads along."""
    ask = bench.handlers.handle
    assert await ask(wire.Reload()) == wire.Reloaded(changed=["agents.main.citations"])
    bench.control.wrong = "config.toml:1: no"
    assert await ask(wire.Reload()) == wire.Reloaded(error="config.toml:1: no")
    assert await ask(wire.Stop()) == wire.Stopping(pid=os.getpid())
    assert (bench.control.reloads, bench.control.stops) == (2, 1)
    for key in ("agent:main:main", "agent:main:telegram:group:7", ""):
        for request in (wire.Reload(session_key=key), wire.Stop(session_key=key)):
            refused = await ask(request)
            assert isinstance(refused, wire.Failure)
            assert refused.code == "denied"
    assert (bench.control.reloads, bench.control.stops) == (2, 1)


TOKEN = "ghp_" + "aB3dE6fG9hJ2kL5mN8pQ1rS4tU7vW0xYzAbC"


async def test_a_text_is_redacted_for_the_owner_alone(bench: Bench) -> None:
    """By the rules of the agent, whatever is redacted by itself; a group, and another agent's session, are denied."""
    await bench.serve(
        redact=Redact(mode="off", extra=(UserRule(name="badge", pattern="BADGE-[0-9]{6}"),)),
        timezone="Asia/Shanghai",
    )
    text = f"my token is {TOKEN}\nand BADGE-123456\n"
    for key in (None, "agent:main:main"):
        reply = await bench.handlers.handle(wire.RedactText(text=text, session_key=key))
        assert reply == wire.RedactedText(
            text="my token is [REDACTED:github-token]\nand [REDACTED:badge]\n",
            counts={"github-token": 1, "badge": 1},
            agent="main",
            workspace=str(bench.home / "workspace"),
            timezone="Asia/Shanghai",
        )
    for key in ("agent:main:telegram:group:7", "agent:other:main", ""):
        refused = await bench.handlers.handle(wire.RedactText(text=text, agent="main", session_key=key))
        assert isinstance(refused, wire.Failure)
        assert (refused.code, TOKEN in refused.message) == ("denied", False)


async def test_a_group_that_may_see_memory_may_not_write_to_it(bench: Bench) -> None:
    """What is redacted is about to be written: the scope says who sees memory, and nothing about that."""
    await bench.serve(scope=Scope(default="allow", rules=()))
    group = "agent:main:telegram:group:7"
    assert not (await bench.found(session_key=group)).scope_denied
    refused = await bench.handlers.handle(wire.RedactText(text="a note", session_key=group))
    assert isinstance(refused, wire.Failure)
    assert (refused.code, refused.message) == ("denied", "only its owner may write to memory")


async def test_how_long_a_text_may_be_to_be_redacted(bench: Bench) -> None:
    """Another one is refused at once."""
    longest = "x" * shipped("memd.server.requests.control.MAX_REDACTED_CHARS")
    assert isinstance(await bench.handlers.handle(wire.RedactText(text=longest)), wire.RedactedText)
    refused = await bench.handlers.handle(wire.RedactText(text=f"{longest}x"))
    assert isinstance(refused, wire.Failure)
    assert refused.code == "bad_request"


@pytest.mark.parametrize(
    ("asked", "tried"),
    [(None, ["away", "gone"]), ("away", ["away"]), ("main", [])],
    ids=["all", "one", "another"],
)
async def test_a_sync_has_those_tried_again_that_it_is_about(
    bench: Bench, asked: str | None, tried: list[str]
) -> None:
    """Whoever asks may have mended what was in the way."""
    again: list[str] = []

    def left_out(name: str) -> LeftOut:
        async def try_again() -> None:
            again.append(name)

        return LeftOut(AgentSettings(workspace=bench.home), "its disk is away", try_again)

    bench.agents.swap(bench.agents.all(), {name: left_out(name) for name in ("away", "gone")})
    await bench.handlers.handle(wire.Sync(agent=asked, wait=False))
    assert sorted(again) == tried


@pytest.mark.parametrize(
    ("asked", "told"),
    [(None, {"away": "its disk is away", "gone": "its disk is away"}), ("main", {})],
)
async def test_a_sync_of_all_tells_of_those_that_cannot_run(
    bench: Bench, asked: str | None, told: dict[str, str]
) -> None:
    """Beside what is to be said of those that do; a sync of one agent says nothing of others."""

    async def in_vain() -> None:
        pass

    left_out = LeftOut(AgentSettings(workspace=bench.home), "its disk is away", in_vain)
    bench.agents.swap(bench.agents.all(), {"away": left_out, "gone": left_out})
    reply = await bench.handlers.handle(wire.Sync(agent=asked, wait=False))
    assert isinstance(reply, wire.SyncReport)
    assert (reply.left_out, reply.reason) == (told, "none is wanted")


async def test_where_nothing_is_embedded_yet_there_is_nothing_to_pause(
    bench: Bench, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While the provider has not said what it is like, nobody waits in its queue."""
    monkeypatch.setattr(AgentProviders, "embeds", True)
    reply = await bench.handlers.handle(wire.Embed(action="pause"))
    assert isinstance(reply, wire.Failure)
    assert reply.code == "bad_request"
    assert "nothing is embedded yet" in reply.message
