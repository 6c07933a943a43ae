"""One agent's trouble is its own: the others are answered, and index what is written, as if nothing was."""

import json
import os
import threading
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import apsw
import pytest

from memd_client import Client, RequestFailed
from memd_client.messages import SyncReport
from tests.daemon.deaddisk import dead
from tests.daemon.namespaced import Namespaced
from tests.wait import until

WORK = """
[agents.work]
workspace = "{home}/work"
sync = {{ wait_ms = 10000 }}
"""


@pytest.fixture
def two(home: Path) -> Iterator[Namespaced]:
    """A daemon with the agents main and work, not started yet; each has one note."""
    daemon = Namespaced(home, settings=WORK.format(home=home))
    daemon.write("memory/a.md", "The lighthouse of main is red.\n")
    note(daemon, "a.md", "The lighthouse of work is green.\n")
    try:
        yield daemon
    finally:
        daemon.__exit__(None, None, None)


def note(daemon: Namespaced, name: str, text: str) -> None:
    """Write a note of agent work."""
    file = daemon.home / "work" / "memory" / name
    file.parent.mkdir(parents=True, exist_ok=True)
    file.write_text(text)


def works_as_ever(daemon: Namespaced, client: Client, number: int) -> None:
    """Agent work finds, reads and takes in what is written; it says nothing of any trouble."""
    note(daemon, f"{number}.md", f"A new note, number{number}, of the harbour.\n")
    found = client.search(f"number{number} harbour", agent="work")
    assert found.results[0].path == f"memory/{number}.md"
    assert not found.stale
    assert client.get(f"memory/{number}.md", agent="work").text.startswith("A new note")
    assert client.explain("lighthouse", session_key="agent:work:main").candidates
    report = client.sync(agent="work")
    assert report.vectors == "complete"
    status = client.status("work").agents["work"]
    assert status.files == number + 2
    assert (status.watcher.ok, status.keyword.ok, status.vector.ok) == (True, True, True)


def in_background(daemon: Namespaced, ask: Callable[[Client], object]) -> threading.Thread:
    """Ask something that may not be answered while the daemon lives."""

    def go() -> None:
        try:
            with daemon.client(timeout=60) as client:
                ask(client)
        except Exception:  # noqa: BLE001 - how it ends is not what is looked at
            return

    thread = threading.Thread(target=go)
    thread.start()
    return thread


def test_a_disk_that_dies_is_one_agents_trouble(two: Namespaced) -> None:
    """Its searches answer from the index and say stale, reads end, status tells; the others notice nothing; it heals."""
    with two.start(), two.client() as client:
        client.sync()
        with dead(two, two.workspace):
            waiting = [
                in_background(two, lambda one: one.sync(agent="main")),
                in_background(two, lambda one: one.reindex(agent="main", dry_run=True)),
            ]
            with ThreadPoolExecutor(8) as asking:
                reads = [asking.submit(refused_read, two) for _ in range(8)]
                until(lambda: client.search("lighthouse", agent="main").stale, 20)
                assert client.search("lighthouse", agent="main").results[0].path == "memory/a.md"
                for number in range(5):
                    works_as_ever(two, client, number)
                    # A whole flood of questions about the dead disk takes nothing from anybody either.
                    answers = [client.search("lighthouse", agent="main") for _ in range(20)]
                    assert all(answer.stale and answer.results for answer in answers)
                assert all(thread.is_alive() for thread in waiting)
                assert {read.result(30) for read in reads} == {"unavailable"}
            # One line for all of them says where their time went.
            [told] = [json.loads(line) for line in two.printed().splitlines() if "get.was_slow" in line]
            assert (told["agent"], told["ended"]) == ("main", "failed")
            assert sum(ms for part, ms in told["parts"].items() if part.startswith("disk")) > 4000
            until(lambda: not client.status("main").agents["main"].watcher.ok, 20)
            assert "answer" in str(client.search("lighthouse", agent="main").degraded)
        two.write("memory/b.md", "Written after the disk was back: porcupine.\n")
        until(lambda: client.search("porcupine", agent="main").results, 30)
        for thread in waiting:
            thread.join(30)


def refused_read(daemon: Namespaced) -> str:
    """The code with which a read of agent main fails."""
    with daemon.client() as client, pytest.raises(RequestFailed) as failed:
        client.get("memory/a.md", agent="main")
    return failed.value.code


def test_a_disk_that_is_dead_from_the_start_keeps_nobody_waiting(two: Namespaced) -> None:
    """After a reload onto a dead disk the other agent works; the daemon ends in time, whatever still waits."""
    with two.start(), two.client() as client:
        client.sync()
        with dead(two, two.workspace):
            # As at a start, with nothing known of the disk: another setting makes the agent anew.
            two.configure("max_file_mb = 3\n" + WORK.format(home=two.home))
            os.kill(two.process.pid, 1)
            until(lambda: two.printed().count("config.reloaded") == 1, 20)
            waiting = in_background(two, lambda one: one.sync(agent="main"))
            found = client.search("lighthouse", agent="main")
            assert (found.results[0].path, found.stale) == ("memory/a.md", True)
            for number in range(3):
                works_as_ever(two, client, number)
            assert waiting.is_alive()
            assert two.stop() == 0
            waiting.join(30)


def test_a_store_that_blocks_is_one_agents_trouble(two: Namespaced) -> None:
    """While another program keeps an agent's index from being written, the other agent works and the first still answers."""
    with two.start(), two.client() as client:
        client.sync()
        other = apsw.Connection(str(two.state / "agents" / "main.sqlite"))
        other.set_busy_timeout(10_000)
        other.execute("BEGIN IMMEDIATE")
        two.write("memory/b.md", "The harbour of main.\n")
        blocked = in_background(two, lambda one: one.sync(agent="main"))
        until(lambda: client.search("lighthouse", agent="main").stale, 20)
        for number in range(5):
            works_as_ever(two, client, number)
        assert client.search("lighthouse", agent="main").results
        assert not client.search("harbour", agent="main").results
        other.execute("ROLLBACK")
        other.close()
        blocked.join(30)
        until(lambda: client.search("harbour", agent="main").results, 30)


def test_a_broken_keyword_index_is_one_agents_trouble(two: Namespaced) -> None:
    """It is rebuilt while the other agent works, which never says that anything is degraded."""
    with two.start(), two.client() as client:
        for number in range(60):
            two.write(f"memory/bulk/{number}.md", f"# Bulk {number}\n\n" + "The lighthouse again.\n" * 20)
        client.sync()
        vandal = apsw.Connection(str(two.state / "agents" / "main.sqlite"))
        vandal.set_busy_timeout(10_000)
        vandal.execute("DROP TABLE keywords")
        vandal.close()
        assert client.search("lighthouse", agent="main").degraded
        for number in range(3):
            works_as_ever(two, client, number)
        assert client.search("lighthouse", agent="work").degraded == []
        until(lambda: client.status("main").agents["main"].rebuild is None, 30)
        until(lambda: client.search("lighthouse", agent="main").degraded == [], 30)


def test_an_agent_that_goes_and_comes_back_is_the_same(two: Namespaced) -> None:
    """Taken out and put in again on reload, an agent has its notes; meanwhile it is unknown, and the other is not disturbed."""
    with two.start(), two.client() as client:
        client.sync()
        for round_number in range(3):
            two.configure("")
            os.kill(two.process.pid, 1)
            until(lambda: list(client.status().agents) == ["main"], 20)
            with pytest.raises(RequestFailed) as failed:
                client.search("lighthouse", agent="work")
            assert failed.value.code == "unknown_agent"
            with pytest.raises(RequestFailed) as failed:
                client.search("lighthouse", session_key="agent:work:main")
            assert failed.value.code == "unknown_agent"
            assert client.search("lighthouse", agent="main").results
            note(two, f"{round_number}.md", f"Written while it was away: porcupine{round_number}.\n")
            two.configure(WORK.format(home=two.home))
            os.kill(two.process.pid, 1)
            until(lambda: "work" in client.status().agents, 20)
            assert client.search("lighthouse", session_key="agent:work:main").results
            report = client.sync(agent="work")
            assert isinstance(report, SyncReport)
            assert report.files == round_number + 2
            assert client.search(f"porcupine{round_number}", agent="work").results
