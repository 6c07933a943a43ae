"""Notes and transcripts of other agents, found in their own homes by the running daemon."""

from pathlib import Path

from memd_client import Client
from tests.daemon.chats import AT, AT_ONCE, QUICK, holding, status
from tests.daemon.process import Daemon
from tests.fakes.homes import ClaudeCode, Codex, OpenClaw
from tests.wait import until

TIMEOUT_S = 30.0


def _started(daemon: Daemon, settings: str) -> Daemon:
    daemon.configure(f'provider = "none"\n{QUICK}\n{settings}')
    return daemon.start(environ={"HOME": str(daemon.home), "CODEX_HOME": str(daemon.home / "my-codex")})


def _paths(client: Client, word: str) -> list[str]:
    return [hit.path for hit in holding(client, word)]


def test_notes_of_another_agent_are_found_as_they_come(daemon: Daemon) -> None:
    """Those of a project that is new are found by the next search, with no look at everything."""
    claude = ClaudeCode(daemon.home)
    first = claude.note("/home/li/app", "MEMORY.md", "The walrus is called Wanda.")
    _started(daemon, 'memory_presets = ["claude-code"]')
    with daemon.client() as client:
        assert _paths(client, "Wanda") == [str(first)]
        second = claude.note("/home/li/new", "topics/birds.md", "The heron is called Hubert.")
        assert _paths(client, "Hubert") == [str(second)]
        assert status(client).files == 2
        assert client.get(str(second)).text.startswith("The heron")
        assert client.get(str(daemon.home / ".claude" / "settings.json")).missing


def test_a_session_keeps_its_name_through_all_that_becomes_of_its_file(daemon: Daemon) -> None:
    """Compressed, unpacked and archived it is one file of one name; deleted it is gone, with nobody asking for it."""
    codex = Codex(daemon.home / "elsewhere")
    (daemon.home / "my-codex").symlink_to(daemon.home / "elsewhere" / ".codex")
    session = codex.session(at=AT)
    session.user("The walrus is called Wanda.", AT + 60)
    _started(daemon, f'sources = ["memory", "sessions"]\nsessions = {{ presets = ["codex"], {AT_ONCE} }}')
    with daemon.client() as client:
        until(lambda: bool(holding(client, "Wanda")), TIMEOUT_S)
        [name] = _paths(client, "Wanda")
        assert name.startswith("sessions/codex/rollout-")
        assert name.endswith(".jsonl")
        for change in (session.compress, session.unpack, session.archive, session.compress):
            change()
            client.sync()
            assert _paths(client, "Wanda") == [name]
            assert status(client).files == 1
        session.delete()
        until(lambda: not holding(client, "Wanda"), TIMEOUT_S)
        assert client.get(name).missing


def test_a_reset_session_is_history_and_a_deleted_one_is_not(daemon: Daemon) -> None:
    """As OpenClaw names their files."""
    openclaw = OpenClaw(daemon.home)
    kept, gone = openclaw.session(at=AT), openclaw.session("agent:main:other", at=AT)
    kept.user("The walrus is called Wanda.", AT + 60)
    gone.user("The heron is called Hubert.", AT + 60)
    _started(daemon, f'sources = ["memory", "sessions"]\nsessions = {{ presets = ["openclaw"], {AT_ONCE} }}')
    with daemon.client() as client:
        until(lambda: bool(holding(client, "Wanda")) and bool(holding(client, "Hubert")), TIMEOUT_S)
        before = _paths(client, "Wanda")
        kept.reset(AT + 120)
        gone.delete(AT + 120)
        until(lambda: not holding(client, "Hubert"), TIMEOUT_S)
        client.sync()
        assert _paths(client, "Wanda") == before
        assert Path(before[0]).parent == Path("sessions/openclaw")
