"""An agent whose searches go to the real qmd, by words alone: without models it needs no network."""

import os
import signal
import tempfile
import threading
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from memd_client import Client
from memd_client.messages import Found
from tests.daemon.fresh import PATIENT
from tests.daemon.process import Daemon
from tests.realqmd import installed
from tests.wait import until

pytestmark = pytest.mark.long  # it is installed by npm, and takes seconds for each of its answers

GROUP = "agent:main:telegram:group:7"
NOTES = {
    "MEMORY.md": "# Long-term memory\n\nWe picked PostgreSQL for billing, since its backups are tested.\n",
    "memory/2026-02-09.md": "# Monday\n\nMoved the lighthouse photographs to the new disk.\n\nIngrid calls back.\n",
    "memory/2026-02-10.md": "# 星期二\n\n数据库备份脚本上传失败，明天再试。\n",
}


@pytest.fixture(scope="module")
def daemon() -> Iterator[Daemon]:
    """A daemon with some notes."""
    qmd = installed()
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        one = Daemon(
            Path(home),
            settings=f'{PATIENT}\nbackend = "qmd"\nscope = {{ default = "allow", rules = [] }}\n'
            f'qmd = {{ command = "{qmd.program}", timeout_ms = 30000, cooldown_seconds = 1, debounce_seconds = 1 }}',
        )
        for path, text in NOTES.items():
            one.write(path, text)
        with one.start(environ=qmd.environ(Path(home))):
            with one.client(timeout=60) as client:
                client.sync()
                by_qmd(client)
            yield one


@pytest.fixture
def client(daemon: Daemon) -> Iterator[Client]:
    """A client of the daemon."""
    with daemon.client(timeout=60) as one:
        yield one


def by_qmd(client: Client, query: str = "lighthouse") -> Found:
    """The answer of qmd, as soon as it is qmd that answers."""

    def found() -> Found | None:
        answer = client.search(query)
        return answer if answer.backend == "qmd" else None

    return until(found, 60)  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("query", "path", "line"),
    [
        ("which database did we pick for billing?", "MEMORY.md", 3),
        ("lighthouse photographs", "memory/2026-02-09.md", 3),
        ("数据库备份为什么失败?", "memory/2026-02-10.md", 3),
    ],
)
def test_it_finds_what_is_asked(client: Client, query: str, path: str, line: int) -> None:
    """With memd's paths, true lines and the text as it is on the disk."""
    found = by_qmd(client, query)
    assert not found.fallback
    hit = found.results[0]
    assert hit.path == path
    assert hit.start_line <= line <= hit.end_line
    assert hit.snippet == "\n".join(NOTES[path].split("\n")[hit.start_line - 1 : hit.end_line])
    note = client.get(hit.path, start_line=hit.start_line, lines=1)
    assert note.text == NOTES[path].split("\n")[hit.start_line - 1]


def test_its_status_is_told(client: Client) -> None:
    """Version, collections, files and the last update, as qmd tells of them."""

    def updated() -> bool:
        qmd = client.status().agents["main"].qmd
        return qmd is not None and qmd.last_update is not None

    until(updated, 60)
    told = client.status().agents["main"]
    assert (told.backend, told.provider, told.model) == ("qmd", "qmd", "qmd")
    assert (told.vector.ok, told.vector.enabled) == (True, False)
    assert told.qmd is not None
    assert told.qmd.version == "2.8.3"
    assert set(told.qmd.collections) == {"memory-root-main", "memory-dir-main"}
    assert (told.qmd.files, told.qmd.update_failure, told.qmd.warnings) == (3, None, [])


def test_a_note_written_just_now_is_found(daemon: Daemon, client: Client) -> None:
    """At once, by the first search after it."""
    for number in range(3):
        daemon.write(f"memory/new{number}.md", f"The quokka{number} was seen.\n")
        found = client.search(f"quokka{number}")
        assert (found.backend, found.stale) == ("qmd", False)
        assert [hit.path for hit in found.results] == [f"memory/new{number}.md"]


def test_a_group_sees_no_curated_note(client: Client) -> None:
    """By no question, and by no get."""
    found = client.search("PostgreSQL billing", session_key=GROUP)
    assert (found.backend, found.results) == ("qmd", [])
    assert client.get("MEMORY.md", session_key=GROUP).missing
    assert client.search("lighthouse", session_key=GROUP).results[0].path == "memory/2026-02-09.md"


def test_it_is_killed_in_mid_flight(daemon: Daemon, client: Client) -> None:
    """That search is answered by the built-in engine, and after the cool-down qmd is used again."""
    founds: list[Found] = []
    stop = threading.Event()

    def ask() -> None:
        with daemon.client(timeout=60) as one:
            while not stop.is_set():
                founds.append(one.search("lighthouse"))

    asking = threading.Thread(target=ask)
    asking.start()
    until(lambda: kill_a_search(daemon.process.pid) and any(found.fallback for found in founds), 60)
    stop.set()
    asking.join(60)
    first = next(found for found in founds if found.fallback)
    assert (first.backend, first.fallback_from) == ("builtin", "qmd")
    assert first.results[0].path == "memory/2026-02-09.md"
    assert not by_qmd(client).fallback


def kill_a_search(daemon: int) -> bool:
    """Kill the searches that a daemon has under way; True, so that it is tried again."""
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            with suppress(OSError):
                words = (entry / "cmdline").read_bytes().split(b"\0")
                parent = int((entry / "stat").read_text().rpartition(")")[2].split()[1])
                if parent == daemon and b"search" in words and b"--json" in words:
                    os.kill(int(entry.name), signal.SIGKILL)
    return True
