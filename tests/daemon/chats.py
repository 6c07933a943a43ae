"""Writes transcripts of an agent, and asks its daemon about them."""

from collections.abc import Sequence
from pathlib import Path

from memd_client import Client
from memd_client.messages import AgentStatus, Hit
from tests.daemon.process import Daemon
from tests.fakes.homes import ClaudeCode, ClaudeCodeSession

AT = 1_772_442_000.0  # 2 March 2026
NEVER = "idle_seconds = 80000"  # quiet is not what a transcript is waited for
AT_ONCE = "delta_bytes = 0"
QUICK = "sync = { watch_debounce_ms = 20, watch_max_wait_ms = 100, wait_ms = 10000, interval_minutes = 600 }"
IMPATIENT = QUICK.replace("10000", "200")  # no search waits for a pass that is long


def directory(home: Path) -> Path:
    """Return the directory of a home's transcripts."""
    return home / ".claude" / "projects"


def settings(home: Path, sessions: str = NEVER, more: str = "", *, provider: str = "none") -> str:
    """Return TOML settings of an agent with notes and transcripts."""
    return (
        f'sources = ["memory", "sessions"]\nprovider = "{provider}"\n{QUICK}\n'
        f'sessions = {{ paths = ["{directory(home)}"], {sessions} }}\n{more}'
    )


def begun(home: Path, *texts: str) -> ClaudeCodeSession:
    """Create a session with a first message of the user."""
    session = ClaudeCode(home).session(at=AT)
    say(session, *texts)
    return session


def say(session: ClaudeCodeSession, *texts: str) -> None:
    """Append a message of the user."""
    for text in texts:
        session.user(text, AT + 60 * len(session.turns))


def name_of(session: ClaudeCodeSession) -> str:
    """Return the name of a session in the index."""
    return f"sessions/projects/{session.path.parent.name}/{session.path.name.removesuffix('.zst')}"


def holding(client: Client, word: str) -> Sequence[Hit]:
    """Return the hits whose snippet contains a word."""
    return [hit for hit in client.search(word, min_score=0).results if word in hit.snippet]


def status(client: Client) -> AgentStatus:
    """Return the status of the only agent."""
    [agent] = client.status().agents.values()
    return agent


def waiting(client: Client) -> int:
    """Return the number of transcripts that have grown and were not read yet."""
    sessions = status(client).sessions
    return 0 if sessions is None else sessions.waiting


def configured(daemon: Daemon, sessions: str = NEVER, more: str = "") -> Daemon:
    """Create a daemon with notes and transcripts, without starting it."""
    directory(daemon.home).mkdir(parents=True, exist_ok=True)
    daemon.configure(settings(daemon.home, sessions, more))
    return daemon
