import os
import subprocess
import sys
from collections.abc import Iterator
from datetime import UTC, date, datetime
from pathlib import Path
from tempfile import TemporaryDirectory

import pytest

from tests.daemon.process import Daemon

EXAMPLES = Path(__file__).parents[2] / "client" / "examples"
DECISION = "- We picked PostgreSQL as the database, because of JSONB.\n"


@pytest.fixture
def daemon() -> Iterator[Daemon]:
    """A daemon that is not started, on a workspace with a memory."""
    with TemporaryDirectory(prefix="memd") as directory:
        daemon = Daemon(Path(directory))
        daemon.write("AGENTS.md", "You are Ada.\n")
        daemon.write("MEMORY.md", f"# Decisions\n\n{DECISION}")
        with daemon:
            yield daemon


def run(daemon: Daemon, example: str, *arguments: str, **environ: str) -> subprocess.CompletedProcess[str]:
    """An example, as its reader would run it."""
    return subprocess.run(
        [sys.executable, str(EXAMPLES / example), *arguments],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env={**os.environ, "MEMD_SOCKET": str(daemon.socket), **environ},
    )


def notes_of(workspace: Path) -> str:
    """All that was written to daily notes."""
    return "\n".join(file.read_text(encoding="utf-8") for file in sorted((workspace / "memory").iterdir()))


def test_the_agent_loop_recalls_and_answers(daemon: Daemon) -> None:
    """Searching, reading on and answering, it says what memory says."""
    done = run(daemon, "agent_loop.py", str(daemon.workspace), "Which database did we pick?")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout == f"From MEMORY.md:\n# Decisions\n\n{DECISION}"
    assert notes_of(daemon.workspace) == ""


def test_the_agent_loop_writes_memory_down_before_its_window_is_full(daemon: Daemon) -> None:
    """In a small window a silent turn writes the note once, of which the user sees nothing."""
    questions = ["Which database did we pick?", "Why?", "Which database was it?"]
    before = datetime.now(UTC).date()
    done = run(daemon, "agent_loop.py", str(daemon.workspace), *questions, WINDOW_TOKENS="800")
    assert (done.returncode, done.stderr) == (0, "")
    assert "NO_REPLY" not in done.stdout
    written = notes_of(daemon.workspace)
    (day,) = (date.fromisoformat(path.stem) for path in (daemon.workspace / "memory").iterdir())
    assert before <= day <= datetime.now(UTC).date()
    assert written.count("- The user asked: Which database did we pick?") == 1
    assert len(written.splitlines()) <= 2


def test_the_agent_loop_goes_on_without_the_daemon(daemon: Daemon) -> None:
    """It says that memory is unavailable, and what to do."""
    daemon.stop()
    done = run(daemon, "agent_loop.py", str(daemon.workspace), "Which database did we pick?")
    assert (done.returncode, done.stderr) == (0, "")
    assert "Memory is unavailable" in done.stdout
    assert "memd-ctl up" in done.stdout


def test_the_agent_loop_says_how_it_is_called(daemon: Daemon) -> None:
    """Without a workspace and a question there is nothing to do."""
    done = run(daemon, "agent_loop.py")
    assert done.returncode == 1
    assert "python agent_loop.py ~/agent" in done.stderr
    assert "Traceback" not in done.stderr


@pytest.mark.long
def test_twenty_agents_share_a_daemon(daemon: Daemon) -> None:
    """A thousand searches, mixed with a hundred writes to one note, and no error; nothing written is lost."""
    done = run(daemon, "twenty_agents.py")
    assert (done.returncode, done.stderr) == (0, "")
    assert done.stdout.startswith("1000 searches by 20 agents in ")
    facts = [
        f"- Agent {number} decided on agent{number}step{step}."
        for number in range(20)
        for step in range(0, 50, 10)
    ]
    lines = notes_of(daemon.workspace).splitlines()
    assert sorted(line for line in lines if line) == sorted(facts)


def test_twenty_agents_fail_aloud(daemon: Daemon) -> None:
    """Without a daemon the exit status tells."""
    daemon.stop()
    done = run(daemon, "twenty_agents.py")
    assert done.returncode == 1
    assert "No memd daemon can be reached" in done.stderr
