"""Transcripts of an agent beside its workspace, and what its daemon is told of them."""

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
    """Where the transcripts of a home are."""
    return home / ".claude" / "projects"


def settings(home: Path, sessions: str = NEVER, more: str = "", *, provider: str = "none") -> str:
    """TOML of an agent with notes and transcripts."""
    return (
        f'sources = ["memory", "sessions"]\nprovider = "{provider}"\n{QUICK}\n'
        f'sessions = {{ paths = ["{directory(home)}"], {sessions} }}\n{more}'
    )


def begun(home: Path, *texts: str) -> ClaudeCodeSession:
    """A session in which the user says something."""
    session = ClaudeCode(home).session(at=AT)
    say(session, *texts)
    return session


def say(session: ClaudeCodeSession, *texts: str) -> None:
    """The user says something more."""
    for text in texts:
        session.user(text, AT + 60 * len(session.turns))


def name_of(session: ClaudeCodeSession) -> str:
    """What the index calls a session."""
    return f"sessions/projects/{session.path.parent.name}/{session.path.name.removesuffix('.zst')}"


def holding(client: Client, word: str) -> Sequence[Hit]:
    """The hits that show a word."""
    return [hit for hit in client.search(word, min_score=0).results if word in hit.snippet]


def status(client: Client) -> AgentStatus:
    """Of the only agent."""
    [agent] = client.status().agents.values()
    return agent


def waiting(client: Client) -> int:
    """How many transcripts still grow."""
    sessions = status(client).sessions
    return 0 if sessions is None else sessions.waiting


def configured(daemon: Daemon, sessions: str = NEVER, more: str = "") -> Daemon:
    """A daemon with notes and transcripts, before it is started."""
    directory(daemon.home).mkdir(parents=True, exist_ok=True)
    daemon.configure(settings(daemon.home, sessions, more))
    return daemon
