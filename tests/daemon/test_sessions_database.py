"""Transcripts in the databases of OpenClaw and opencode, in the running daemon: while their programs write, and after they ended."""

import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from memd_client import Client
from tests.daemon.chats import NEVER, QUICK, holding, waiting
from tests.daemon.process import Daemon
from tests.sources.transcripts.exports import chatgpt_talk, write
from tests.sources.transcripts.openclaw_store import OpenClawStore
from tests.sources.transcripts.opencode_store import OpenCodeStore
from tests.wait import until

TIMEOUT_S = 30.0
GROUP = "agent:main:telegram:group:-1"
PRIVATE = "agent:main:telegram:direct:4711"
SCOPE = 'scope = { default = "allow" }\n'


@pytest.fixture
def store(daemon: Daemon) -> Iterator[OpenClawStore]:
    """Of OpenClaw's first agent, open in its program."""
    file = daemon.home / ".openclaw/agents/main/agent/openclaw-agent.sqlite"
    store = OpenClawStore(file, now_ms=int(time.time() * 1000) - 3_600_000)
    store.start("0000")
    yield store
    store.close()


def _begin(daemon: Daemon, sessions: str = NEVER) -> None:
    daemon.configure(
        f'sources = ["memory", "sessions"]\nprovider = "none"\n{QUICK}\n{SCOPE}'
        f'sessions = {{ presets = ["openclaw"], {sessions} }}\n'
    )
    daemon.start(environ={"OPENCLAW_STATE_DIR": str(daemon.home / ".openclaw")})


def _beside(store: OpenClawStore) -> set[str]:
    return {each.name for each in store.file.parent.iterdir()}


def _paths(client: Client, word: str, key: str | None = None) -> list[str]:
    found = client.search(word, min_score=0, session_key=key).results
    return [hit.path for hit in found if word in hit.snippet]


def test_what_is_said_is_found_and_what_is_taken_back_is_gone(daemon: Daemon, store: OpenClawStore) -> None:
    """By the schedule of files: at a sync, or when enough has come."""
    first = store.say("0000", "the walrus is called Wanda")
    store.say("0000", "Wanda likes herrings", "assistant")
    _begin(daemon, "delta_messages = 3, idle_seconds = 80000")
    with daemon.client() as client:
        client.sync()
        [hit] = holding(client, "herrings")
        assert (hit.path, hit.source) == ("sessions/openclaw/0000.jsonl", "sessions")
        assert "herrings" in client.get(hit.path).text
        store.say("0000", "one more about flamingos")
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        assert not holding(client, "flamingos")
        store.say("0000", "two more")
        store.say("0000", "three more")
        until(lambda: holding(client, "flamingos"), TIMEOUT_S)
        store.rewind("0000", "she likes squid", first)
        client.sync()
        assert holding(client, "squid")
        assert not holding(client, "herrings")
        store.delete("0000")
        until(lambda: not holding(client, "squid"), TIMEOUT_S)


def test_no_file_is_left_beside_it_and_its_program_can_close_it(daemon: Daemon, store: OpenClawStore) -> None:
    """Its log is cut at once while memd has the database in its index, and gone when its program ends."""
    store.say("0000", "the walrus is called Wanda")
    _begin(daemon)
    with daemon.client() as client:
        client.sync()
        assert holding(client, "Wanda")
        store.connection.set_busy_timeout(
            5000
        )  # as OpenClaw waits; a reader that stays keeps it from that for ever
        for number in range(10):
            store.say("0000", f"this is word{number}q")
            client.sync()
            busy, _, _ = store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
            assert busy == 0
        assert holding(client, "word9q")
        store.close()
        assert _beside(store) == {store.file.name}
        client.sync()
        assert holding(client, "word9q")
        assert _beside(store) == {store.file.name}
    before = store.file.stat()
    daemon.stop()
    assert _beside(store) == {store.file.name}
    assert store.file.stat().st_mtime_ns == before.st_mtime_ns


def test_what_a_group_said_is_for_the_owner_alone(daemon: Daemon, store: OpenClawStore) -> None:
    """No conversation gets it, whatever the rules: neither by search nor by get."""
    store.say("0000", "the walrus is called Wanda")
    store.start("1111", GROUP, chat_type="group", channel="telegram")
    store.say("1111", "the walrus is called Walter, says the group")
    _begin(daemon)
    name = "sessions/openclaw/1111.jsonl"
    with daemon.client() as client:
        client.sync()
        assert _paths(client, "Walter") == [name]
        for key in (PRIVATE, "agent:main:main", GROUP, "agent:main:telegram:group:-2"):
            assert _paths(client, "Walter", key) == []
            assert client.get(name, session_key=key).missing
        assert _paths(client, "Wanda", PRIVATE) == ["sessions/openclaw/0000.jsonl"]
        assert _paths(client, "Wanda", GROUP) == []


def test_what_is_indexed_stays_while_it_cannot_be_read(daemon: Daemon, store: OpenClawStore) -> None:
    """And is up to date again when it can."""
    store.say("0000", "the walrus is called Wanda")
    _begin(daemon)
    with daemon.client() as client:
        client.sync()
        store.close()
        content = store.file.read_bytes()
        _replace(store.file, b"not a database" * 1000)
        client.sync()
        assert holding(client, "Wanda")
        _replace(store.file, content)
        client.sync()
        assert holding(client, "Wanda")
    store.connection = OpenClawStore(store.file).connection


def _replace(file: Path, content: bytes) -> None:
    other = file.with_name("new")
    other.write_bytes(content)
    other.replace(file)


def test_what_is_said_in_opencode_is_found(daemon: Daemon) -> None:
    """While it runs and after it: its log is cut meanwhile, no file is left beside it, no group sees it, no secret is kept."""
    token = "ghp_" + "9fK2" * 9
    store = OpenCodeStore(
        daemon.home / "data/opencode/opencode.db", now_ms=int(time.time() * 1000) - 3_600_000
    )
    store.start("ses_1")
    store.say("ses_1", f"the walrus is called Wanda, her token is {token}")
    daemon.configure(
        f'sources = ["memory", "sessions"]\nprovider = "none"\n{QUICK}\n{SCOPE}'
        'sessions = { presets = ["opencode"], delta_messages = 2, idle_seconds = 80000 }\n'
    )
    daemon.start(environ={"XDG_DATA_HOME": str(daemon.home / "data")})
    with daemon.client() as client:
        client.sync()
        assert _paths(client, "Wanda", PRIVATE) == ["sessions/opencode/ses_1.jsonl"]
        assert _paths(client, "Wanda", GROUP) == []
        store.say("ses_1", "Wanda likes herrings", "assistant")
        question = store.say("ses_1", "and flamingos?")
        until(lambda: holding(client, "flamingos"), TIMEOUT_S)
        store.take_back("ses_1", question)
        client.sync()
        assert not holding(client, "flamingos")
        store.connection.set_busy_timeout(5000)
        busy, _, _ = store.connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall()[0]
        assert busy == 0
        store.close()
        client.sync()
        assert holding(client, "herrings")
    # A reading at the very moment of the close would keep the log, which is its program's own.
    beside = {each.name for each in store.file.parent.iterdir()}
    assert beside <= {"opencode.db", "opencode.db-wal", "opencode.db-shm"}
    daemon.stop()
    kept = [file for file in daemon.home.rglob("*") if file.is_file() and file != store.file]
    assert not [file for file in kept if token.encode() in file.read_bytes()]


def test_what_was_exported_is_found(daemon: Daemon) -> None:
    """By conversations; a newer export takes the place of an older one; no group sees any, and no secret is kept."""
    token = "ghp_" + "9fK2" * 9
    file = daemon.home / "exports/chatgpt/conversations.json"
    walrus = chatgpt_talk(
        "c1", ("user", "what is a walrus called?"), ("assistant", f"Wanda, her token is {token}")
    )
    write(file, [walrus, chatgpt_talk("c2", ("user", "what do flamingos eat?"), ("assistant", "herrings"))])
    daemon.configure(
        f'sources = ["memory", "sessions"]\nprovider = "none"\n{QUICK}\n{SCOPE}'
        f'sessions = {{ paths = ["{file.parent}"], {NEVER} }}\n'
    )
    daemon.start()
    with daemon.client() as client:
        client.sync()
        assert _paths(client, "Wanda", PRIVATE) == ["sessions/chatgpt/c1.jsonl"]
        assert _paths(client, "Wanda", GROUP) == []
        assert client.get("sessions/chatgpt/c1.jsonl", session_key=GROUP).missing
        assert holding(client, "herrings")
        write(file.with_name("new"), [walrus, chatgpt_talk("c3", ("user", "where do penguins live?"))])
        file.with_name("new").rename(file)
        client.sync()
        assert holding(client, "penguins")
        assert not holding(client, "herrings")
        assert "Wanda" in client.get("sessions/chatgpt/c1.jsonl").text
    daemon.stop()
    kept = [each for each in daemon.home.rglob("*") if each.is_file() and each != file]
    assert not [each for each in kept if token.encode() in each.read_bytes()]
