"""An agent whose searches go to qmd, in a real daemon, with a stand-in of the program."""

import asyncio
import os
import signal
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from memd_client import AsyncClient, Client, MemdClientError, TimedOut
from memd_client.messages import AgentStatus, Found
from tests.daemon.fresh import PATIENT
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.fakes import HashingProvider
from tests.fakes.qmd_standin import USUAL, Act, Standin, answers, delayed, dies, floods, hangs, says
from tests.wait import until

RED = "# Harbour\n\nThe lighthouse was painted red.\n"
FAILED = says("", stderr="Error: something broke", status=1)


@pytest.fixture
def standin(home: Path) -> Standin:
    """The program that the configuration names."""
    return Standin(home / "bin")


@pytest.fixture
def daemon(home: Path) -> Iterator[Daemon]:
    """A daemon whose agent searches with it; not started yet, and ended after the test."""
    one = Daemon(home)
    configure(one)
    one.write("memory/a.md", RED)
    try:
        yield one
    finally:
        one.__exit__(None, None, None)


def configure(daemon: Daemon, more: str = "", **keys: Any) -> None:
    """Let agent main search with the stand-in, with these keys in [agents.main.qmd]."""
    usual = {"debounce_seconds": 0, "timeout_ms": 20_000, "cooldown_seconds": 0}
    told = {"command": f'"{daemon.home}/bin/qmd"', **usual} | keys
    table = ", ".join(f"{name} = {value}" for name, value in told.items())
    daemon.configure(f'backend = "qmd"\nqmd = {{ {table} }}\n{more}')


def status_of(client: Client) -> AgentStatus:
    """How agent main is."""
    return client.status().agents["main"]


def by_qmd(client: Client, query: str = "lighthouse") -> Found:
    """The answer of qmd, as soon as it is qmd that answers."""

    def found() -> Found | None:
        answer = client.search(query)
        return answer if answer.backend == "qmd" else None

    return until(found, 20)  # type: ignore[return-value]


def is_gone(pid: int) -> bool:
    """Whether a process has ended."""
    with suppress(FileNotFoundError, ProcessLookupError):
        return Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()[0] == "Z"
    return True


# --- who answers


def test_qmd_answers_where_it_is_chosen(standin: Standin, daemon: Daemon) -> None:
    """Hits have memd's paths and true lines, and reply and status say who has answered, with what."""
    with daemon.start(), daemon.client() as client:
        client.sync()
        found = by_qmd(client)
        assert (found.provider, found.model, found.mode) == ("qmd", "qmd", "keyword")
        assert (found.fallback, found.fallback_from, found.fallback_reason) == (False, None, None)
        (hit,) = found.results
        assert (hit.path, hit.source) == ("memory/a.md", "memory")
        lines = RED.splitlines()[hit.start_line - 1 : hit.end_line]
        assert hit.snippet == "\n".join(lines)
        assert "lighthouse" in hit.snippet
        told = until(lambda: (one := status_of(client)).qmd and one.qmd.last_update and one, 10)
        assert isinstance(told, AgentStatus)
        assert (told.backend, told.provider, told.model, told.files) == ("qmd", "qmd", "qmd", 1)
        assert (told.vector.ok, told.vector.enabled, told.vector.available) == (True, False, False)
        assert told.backend_fallback is None
        assert told.qmd is not None
        assert (told.qmd.version, told.qmd.search_mode) == ("2.8.3", "search")
        assert told.qmd.command == str(standin.program)
        assert told.qmd.collections
        assert told.qmd.warnings == []


def test_the_vectors_of_the_built_in_index_rest_while_qmd_answers(standin: Standin, daemon: Daemon) -> None:
    """Nothing is embedded and nobody waits for it; when qmd fails they are made, and when it is back they rest again."""
    with daemon.start(), daemon.client() as client:
        report = client.sync()
        assert (report.vectors, report.waiting_chunks, report.reason) == ("complete", 0, None)
        by_qmd(client)
        told = status_of(client)
        assert (told.vectors.done, told.vectors.waiting) == (0, 0)
        assert told.vectors.note == "they rest while qmd answers"
        assert told.embedding is None
        standin.play("search", FAILED)
        found = client.search("lighthouse")
        assert (found.backend, found.fallback_from) == ("builtin", "qmd")
        assert until(lambda: status_of(client).vectors.done, 10) == 1
        assert status_of(client).vectors.note is None
        assert client.search("lighthouse").mode == "hybrid"
        standin.play("search", USUAL)
        by_qmd(client)
        daemon.write("memory/b.md", "The chapel was painted blue.\n")
        report = client.sync()
        assert (report.files, report.vectors, report.waiting_chunks) == (2, "complete", 0)
        told = status_of(client)
        assert (told.vectors.done, told.vectors.waiting) == (1, 0)


async def test_nothing_is_embedded_while_qmd_answers(standin: Standin, home: Path) -> None:
    """Not by passes, nor by a rebuild, which costs nothing then; what waits is embedded when qmd has failed."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    qmd = f'qmd = {{ command = "{standin.program}", timeout_ms = 20000, cooldown_seconds = 600 }}'
    async with running(home, provider, settings=f'backend = "qmd"\n{qmd}') as client:
        await client.sync()
        while (await client.search("lighthouse")).backend != "qmd":
            pass
        price = await client.reindex(dry_run=True)
        assert (price.chunks, price.to_embed, price.asks) == (1, 0, [])
        await client.reindex(force=True)
        while (await client.status()).agents["main"].rebuild is not None:
            pass
        write(home, "memory/b.md", "The chapel was painted blue.\n")
        assert (await client.sync()).vectors == "complete"
        assert (await client.search("chapel")).backend == "qmd"
        assert (provider.requests, provider.questions) == ([], ["warm-up"])
        standin.play("search", FAILED)
        assert (await client.search("chapel")).backend == "builtin"
        report = await client.sync()
        assert (report.vectors, report.waiting_chunks) == ("complete", 0)
        assert sum(map(len, provider.requests)) == 2
        assert (await client.search("chapel")).mode == "hybrid"


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ('"no-such-qmd"', "not on the PATH"),
        ('"./memory/a.md"', "not executable"),
    ],
)
def test_a_command_that_cannot_be_used_falls_back(
    standin: Standin, daemon: Daemon, command: str, reason: str
) -> None:
    """With a warning in the log and in status that say what to do, and never a failure."""
    configure(daemon, command=command, cooldown_seconds=60)
    with daemon.start(), daemon.client() as client:
        client.sync()
        found = client.search("lighthouse")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert (found.backend, found.fallback, found.fallback_from) == ("builtin", True, "qmd")
        assert reason in (found.fallback_reason or "")
        told = status_of(client)
        assert (told.backend, told.provider, told.qmd) == ("builtin", "hashing", None)
        assert told.backend_fallback is not None
        assert (told.backend_fallback.from_, told.backend_fallback.reason) == ("qmd", found.fallback_reason)
        assert told.backend_fallback.since is not None
        assert told.backend_fallback.retry_at is not None
        assert told.backend_fallback.retry_at > told.backend_fallback.since
        assert '"level":"warning","event":"backend.fallen_back"' in daemon.printed()


def test_a_collection_that_cannot_be_used_is_told(standin: Standin, daemon: Daemon) -> None:
    """The others are searched; log and status name the one that is not there."""
    configure(daemon, collections=f'[{{ path = "{daemon.home}/nowhere" }}]')
    with daemon.start(), daemon.client() as client:
        client.sync()
        assert [hit.path for hit in by_qmd(client).results] == ["memory/a.md"]
        told = [f"collection {daemon.home}/nowhere: there is no such directory"]
        # The first search waits for the collections for a while only.
        until(lambda: (standing := status_of(client).qmd) is not None and standing.warnings == told, 60)
        assert daemon.printed().count("qmd.collection_unusable") == 1


# --- failures


def test_a_qmd_that_is_killed_in_mid_flight(standin: Standin, daemon: Daemon) -> None:
    """That search is answered by the built-in engine; after the cool-down qmd is used again."""
    configure(daemon, cooldown_seconds=1)
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        standin.play("search", delayed(60), USUAL)
        before = len(standin.calls("search"))
        founds: list[Found] = []
        asking = threading.Thread(target=lambda: founds.append(client.search("lighthouse")))
        asking.start()
        until(lambda: len(standin.calls("search")) > before, 10)
        os.kill(standin.calls("search")[-1]["pid"], signal.SIGKILL)
        asking.join(60)
        (found,) = founds
        assert (found.backend, found.fallback, found.fallback_from) == ("builtin", True, "qmd")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert not by_qmd(client).fallback
        told = status_of(client)
        assert (told.backend, told.backend_fallback) == ("qmd", None)


@pytest.mark.long
def test_whatever_qmd_does_the_search_is_answered(standin: Standin, daemon: Daemon) -> None:
    """Crashes, refusals, garbage, floods: the answer is the built-in engine's, and says why; the next one is qmd's again."""
    acts: list[Act] = [
        FAILED,
        says("", stderr="SqliteError: database is locked", status=1),
        says("Segmentation fault\n"),
        says(""),
        says("[{"),
        says('{"results": 5}'),
        dies(),
        dies(signal.SIGKILL),
        floods(300_000),
    ]
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        for act in acts:
            standin.play("search", act)
            found = client.search("lighthouse", max_results=1)
            assert (found.backend, found.fallback_from) == ("builtin", "qmd"), act
            assert [hit.path for hit in found.results] == ["memory/a.md"]
            assert found.fallback_reason
            assert "lighthouse" not in found.fallback_reason
            assert client.get("memory/a.md").text == RED.rstrip("\n")
            standin.play("search", USUAL)
            assert not by_qmd(client).fallback, act


def test_odd_answers_are_answers(standin: Standin, daemon: Daemon) -> None:
    """No hits, and noise around them, are no failure."""
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        for act in (says("[]"), says("No results found.\n"), answers(noise="Warning: slow disk\n")):
            standin.play("search", act)
            found = client.search("lighthouse", max_results=1)
            assert (found.backend, found.fallback) == ("qmd", False), act


def test_a_hanging_qmd_costs_its_timeout_once(standin: Standin, daemon: Daemon) -> None:
    """Then the cool-down: nobody else waits for it, and nothing of it is left behind."""
    # Long enough for the searches before, which a busy machine answers late: one that fails would begin the cool-down.
    configure(daemon, timeout_ms=5000, cooldown_seconds=600)
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        before = len(standin.calls())
        standin.play("search", hangs())
        began = time.monotonic()
        found = client.search("lighthouse")
        assert time.monotonic() - began >= 5
        assert (found.backend, found.fallback_from) == ("builtin", "qmd")
        assert "5 s" in (found.fallback_reason or "")
        for _ in range(20):
            assert client.search("lighthouse").fallback
        assert [call["command"] for call in standin.calls()[before:]] == ["search"]
        assert standin.children()
        until(lambda: all(is_gone(pid) for pid in standin.children()), 10)


def test_a_qmd_that_hangs_at_its_beginning_delays_neither_start_nor_searches(
    standin: Standin, daemon: Daemon
) -> None:
    """The daemon is ready at once; who searches waits as long as a search may take, counted from the start, and once."""
    standin.play("collection list", hangs())
    configure(daemon, timeout_ms=700, cooldown_seconds=600)
    with daemon.start(), daemon.client() as client:
        client.sync()
        found = client.search("lighthouse")
        assert (found.backend, found.fallback_from) == ("builtin", "qmd")
        assert "not ready" in (found.fallback_reason or "")
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        told = status_of(client)
        assert (told.backend, told.qmd) == ("builtin", None)
        assert told.backend_fallback is not None
        for _ in range(20):
            assert client.search("lighthouse").fallback
        assert (
            len(standin.calls("collection list")) <= 1
        )  # none: a busy machine has not begun it before its time was up
    until(lambda: all(is_gone(pid) for pid in standin.children()), 10)


@pytest.mark.long
def test_a_qmd_that_hangs_at_its_collections_delays_no_search_for_long(
    standin: Standin, daemon: Daemon
) -> None:
    """What it does not know yet is found in memd's own index, and after its first seconds nobody waits for it."""
    standin.play("collection add", hangs())
    with daemon.start(), daemon.client() as client:
        client.sync()
        found = by_qmd(client)
        assert [hit.path for hit in found.results] == ["memory/a.md"]

        def is_prompt() -> bool:
            began = time.monotonic()
            found = client.search("lighthouse")
            assert [hit.path for hit in found.results] == ["memory/a.md"]
            return time.monotonic() - began < 1.5

        for _ in range(3):
            until(is_prompt, 20)
        assert len(standin.calls("collection add")) == 1
    until(lambda: all(is_gone(pid) for pid in standin.children()), 10)


@pytest.mark.long
async def test_fifty_first_searches_make_one_qmd(standin: Standin, daemon: Daemon) -> None:
    """However many wait for it."""
    standin.play("collection list", delayed(0.5), USUAL)
    daemon.start()
    clients = [AsyncClient(socket=daemon.socket, timeout=60) for _ in range(10)]
    founds = await asyncio.gather(
        *(client.search("lighthouse", max_results=1) for client in clients for _ in range(5))
    )
    assert [found.backend for found in founds] == ["qmd"] * 50
    assert len(standin.calls("--version")) == 1
    for client in clients:
        await client.close()


@pytest.mark.long
async def test_many_searches_after_the_cool_down_make_one_qmd(standin: Standin, daemon: Daemon) -> None:
    """One of them tries it, and none of the others another one."""
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        standin.play("search", FAILED, USUAL)
        assert client.search("lighthouse", max_results=1).fallback
        standin.play("search", USUAL)
        standin.play("collection list", delayed(0.5), USUAL)
        before = len(standin.calls("--version"))
        async with AsyncClient(socket=daemon.socket, timeout=60) as other:
            founds = await asyncio.gather(*(other.search("lighthouse", max_results=1) for _ in range(20)))
        assert all(found.backend == "qmd" or found.fallback_from == "qmd" for found in founds)
        by_qmd(client)
        assert len(standin.calls("--version")) - before == 1


def test_a_caller_who_goes_is_no_failure(standin: Standin, daemon: Daemon) -> None:
    """What ran for him goes on to its end, which tells whether qmd answers."""
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        before = len(standin.calls("search"))
        standin.play("search", delayed(1.5), USUAL)
        with daemon.client(timeout=0.3) as impatient, pytest.raises(MemdClientError):
            impatient.search("lighthouse")
        until(lambda: len(standin.calls("search")) > before, 10)
        by_qmd(client)
        assert "backend.fallen_back" not in daemon.printed()


@pytest.mark.long
def test_a_qmd_that_hangs_costs_one_impatient_caller_its_answer(standin: Standin, daemon: Daemon) -> None:
    """As hooks are. All others are answered, and status says by whom, also after the cool-down."""
    configure(daemon, timeout_ms=1800, cooldown_seconds=1)
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        standin.play("search", hangs())
        answered: list[str] = []

        def is_answered_also_after_the_cool_down() -> bool:
            with daemon.client(timeout=1.0) as hook, suppress(TimedOut):
                found = hook.search("lighthouse", max_results=1)
                assert found.fallback_reason
                answered.append(found.backend)
                assert status_of(client).backend == "builtin"
            return len(answered) >= 10 and daemon.printed().count("backend.fallen_back") >= 2

        until(is_answered_also_after_the_cool_down, 20)
        assert set(answered) == {"builtin"}
        standin.play("search", USUAL)
        by_qmd(client)


# --- lives


def test_a_daemon_that_stops_leaves_nothing_of_qmd_behind(standin: Standin, daemon: Daemon) -> None:
    """Though a search hangs: it ends in time, and so does all that it has started."""
    with daemon.start():
        with daemon.client() as client:
            client.sync()
            by_qmd(client)
        standin.play("search", hangs())
        impatient = daemon.client(timeout=30)

        def ask() -> None:
            with suppress(Exception):
                impatient.search("lighthouse")

        asking = threading.Thread(target=ask)
        asking.start()
        until(standin.children, 10)
        assert daemon.stop() == 0
        asking.join(60)
        impatient.close()
        until(lambda: all(is_gone(pid) for pid in standin.children()), 5)


def test_a_reload_changes_who_answers(standin: Standin, daemon: Daemon) -> None:
    """From the built-in engine to qmd, to another program, and back; what was there before is ended."""
    daemon.configure("")
    other = Standin(daemon.home / "other")
    with daemon.start(), daemon.client() as client:
        client.sync()
        assert client.search("lighthouse").backend == "builtin"
        configure(daemon)
        daemon.process.send_signal(signal.SIGHUP)
        by_qmd(client)
        configure(daemon, command=f'"{other.program}"')
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: client.search("lighthouse").backend == "qmd" and other.calls("search"), 20)
        daemon.configure("")
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: status_of(client).backend == "builtin", 10)
        found = client.search("lighthouse")
        assert (found.backend, found.fallback) == ("builtin", False)
        until(lambda: client.search("lighthouse").mode == "hybrid", 20)  # its vectors rested before


# --- freshness


def test_a_note_written_just_now_is_found(standin: Standin, daemon: Daemon) -> None:
    """At once, whether it is new, changed or gone, and also while qmd is slow to take it in."""
    configure(daemon, more=PATIENT)
    with daemon.start(), daemon.client() as client:
        client.sync()
        by_qmd(client)
        for number in range(6):
            if number == 3:
                standin.play("update", delayed(5))
            daemon.write(f"memory/new{number}.md", f"Word number{number} was said.\n")
            found = client.search(f"number{number}")
            assert (found.backend, found.stale) == ("qmd", False)
            assert [hit.path for hit in found.results] == [f"memory/new{number}.md"]
        daemon.write("memory/a.md", "The lighthouse was painted green.\n")
        found = client.search("lighthouse")
        assert "green" in found.results[0].snippet
        assert "red" not in str(found.results)
        (daemon.workspace / "memory/a.md").unlink()
        assert client.search("lighthouse").results == []


# --- what is shown at the start


@pytest.mark.rows(1)
@pytest.mark.parametrize("mode", ["vsearch", "query"])
def test_broken_vectors_of_qmd_are_shown_at_start(standin: Standin, daemon: Daemon, mode: str) -> None:
    """As they are found, not as they are hoped; searches go on by words, and say so."""
    standin.play("embed", says("", stderr="Error: the model cannot be loaded", status=1))
    configure(daemon, search_mode=f'"{mode}"')
    with daemon.start(), daemon.client() as client:
        told = until(lambda: (one := status_of(client)).vector.reason and one.qmd and one, 20)
        assert isinstance(told, AgentStatus)
        assert (told.vector.ok, told.vector.enabled, told.vector.available) == (False, True, False)
        until(lambda: "cannot be loaded" in (status_of(client).vector.reason or ""), 20)
        found = by_qmd(client)
        assert [hit.path for hit in found.results] == ["memory/a.md"]
        assert found.mode == "keyword"
        assert [one.part for one in found.degraded] == ["vector"]
        assert "cannot be loaded" in found.degraded[0].reason
        assert '"level":"warning","event":"qmd.embed_failed"' in daemon.printed()


def test_a_group_is_told_that_qmd_failed_and_not_why(standin: Standin, daemon: Daemon) -> None:
    """The reason may name directories; private sessions hear it."""
    configure(daemon, command='"/no/such/qmd"', more='scope = { default = "allow", rules = [] }')
    with daemon.start(), daemon.client() as client:
        client.sync()
        group, private = "agent:main:telegram:group:7", "agent:main:main"
        found = client.search("lighthouse", session_key=group)
        assert (found.backend, found.fallback, found.fallback_from) == ("builtin", True, "qmd")
        told = client.status(session_key=group).agents["main"]
        assert (told.backend, told.qmd) == ("builtin", None)
        assert told.backend_fallback is not None
        assert told.backend_fallback.from_ == "qmd"
        assert "/no/such" not in str(client.status(session_key=group)) + str(found)
        assert "/no/such" in (client.search("lighthouse", session_key=private).fallback_reason or "")
