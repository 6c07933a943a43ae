"""Transcripts in the running daemon: when they are read, what is found of them, and what changes they go through."""

import json
import os
import shutil
import signal
from collections.abc import Callable
from pathlib import Path

import pytest
import zstandard

from memd_client import Client
from tests.daemon.chats import (
    AT,
    AT_ONCE,
    IMPATIENT,
    NEVER,
    QUICK,
    begun,
    configured,
    directory,
    holding,
    name_of,
    say,
    settings,
    status,
    waiting,
)
from tests.daemon.fresh import becomes_fresh
from tests.daemon.process import Daemon
from tests.fakes.homes import ClaudeCode, ClaudeCodeSession
from tests.wait import until

TIMEOUT_S = 30.0


def test_what_was_said_is_found_after_sync_and_can_be_read(daemon: Daemon) -> None:
    """A turn that was just written down is in the hits of the next search, and get reads what a hit shows."""
    configured(daemon).start()
    session = begun(daemon.home, "Which database did we pick for the walrus project?")
    session.assistant("PostgreSQL, since the herons need transactions.", at=AT + 60)
    with daemon.client() as client:
        client.sync()
        [hit] = client.search("walrus database").results
        assert (hit.path, hit.source, hit.citation) == (
            name_of(session),
            "sessions",
            f"{name_of(session)}#L{hit.start_line}-L{hit.end_line}",
        )
        assert "Assistant: PostgreSQL" in hit.snippet
        note = client.get(hit.path, start_line=hit.start_line, lines=hit.end_line - hit.start_line + 1)
        for turn in session.turns:
            assert turn.text in note.text
        say(session, "And who feeds the flamingos?")
        assert not holding(client, "flamingos")
        client.sync()
        [hit] = holding(client, "flamingos")
        lines = session.path.read_text().splitlines()
        assert "flamingos" in lines[hit.end_line - 1]
        assert "flamingos" in client.get(hit.path, start_line=hit.end_line).text


def test_warming_up_a_session_reads_the_others(daemon: Daemon) -> None:
    """What was said a moment ago in another session is known to the one that begins."""
    configured(daemon).start()
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.client() as client:
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        assert not holding(client, "Wanda")
        client.warm("agent:main:main")
        assert [hit.path for hit in holding(client, "Wanda")] == [name_of(session)]


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("sessions", "texts"),
    [
        ("delta_messages = 6, idle_seconds = 80000", ["one", "two", "three", "four"]),
        ("delta_bytes = 3000, idle_seconds = 80000", ["blah " * 800]),
        ("idle_seconds = 0.3", []),
        ("delta_bytes = 0, idle_seconds = 80000", []),
        ("delta_messages = 0, idle_seconds = 80000", []),
    ],
    ids=["messages", "bytes", "quiet", "any bytes", "any messages"],
)
def test_a_transcript_is_read_by_itself_when_it_is_due(
    daemon: Daemon, sessions: str, texts: list[str]
) -> None:
    """Enough messages, enough bytes, or enough quiet; nobody asks for it."""
    configured(daemon, sessions).start()
    with daemon.client() as client:
        session = begun(daemon.home, "the walrus is called Wanda")
        if texts:
            until(lambda: waiting(client) == 1, TIMEOUT_S)
            answer = client.search("Wanda")
            assert (answer.results, answer.stale) == ([], False)
            say(session, *texts)
        until(lambda: holding(client, "Wanda"), TIMEOUT_S)
        until(lambda: waiting(client) == 0, TIMEOUT_S)


def test_a_search_does_not_wait_for_a_transcript_that_grows(daemon: Daemon) -> None:
    """The transcript of whoever asks has always grown: the answer is not stale, and notes are fresh all the same."""
    daemon.write("memory/a.md", "a note on nothing yet\n")
    configured(daemon).start()
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.client() as client:
        client.sync()
        # Until the watches are set, files are looked at with little time, which a busy machine may exceed.
        until(lambda: not client.search("nothing").stale, TIMEOUT_S)
        for number in range(20):
            say(session, f"what about word{number}q?")
            daemon.write("memory/a.md", f"a note on word{number}q\n")
            answer = client.search(f"word{number}q")
            assert not answer.stale
            # The transcript may be there, too, where it fell due meanwhile.
            assert "memory/a.md" in [hit.path for hit in answer.results if f"word{number}q" in hit.snippet]
        client.sync()
        assert {hit.source for hit in holding(client, "word7q")} == {"sessions"}


def test_a_search_waits_for_a_transcript_that_is_due(daemon: Daemon) -> None:
    """What is due counts like a note: it is in the next answer."""
    configured(daemon, AT_ONCE).start()
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.client() as client:
        client.sync()
        for number in range(20):
            say(session, f"this is word{number}q")
            answer = client.search(f"word{number}q")
            assert answer.stale or any(f"word{number}q" in hit.snippet for hit in answer.results)


def test_nothing_is_missed_and_nothing_read_again_over_a_restart(daemon: Daemon) -> None:
    """What grew while nobody watched is found by its size, and what was only rewritten although its time was set back."""
    configured(daemon, "delta_messages = 5, idle_seconds = 80000")
    home = ClaudeCode(daemon.home)
    sessions = [home.session(at=AT) for _ in range(3)]
    for number, session in enumerate(sessions):
        say(session, f"this is word{number}q")
    with daemon.start().client() as client:
        client.sync()
    daemon.stop()
    say(sessions[0], *(f"later word0{number}q" for number in range(5)))
    say(sessions[1], "later word11q")
    before = sessions[2].path.stat()
    sessions[2].path.write_bytes(sessions[2].path.read_bytes().replace(b"word2q", b"word9q"))
    os.utime(sessions[2].path, ns=(before.st_atime_ns, before.st_mtime_ns))
    with daemon.start().client() as client:
        until(lambda: holding(client, "word04q"), TIMEOUT_S)
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        assert not holding(client, "word11q")
        assert holding(client, "word9q")
        assert not holding(client, "word2q")
        client.sync()
        assert holding(client, "word11q")
        assert waiting(client) == 0
        client.sync(force=True)
        assert holding(client, "word9q")
        assert not holding(client, "word2q")


def rewritten(session: ClaudeCodeSession) -> None:
    """Another conversation in its place, with the same number of bytes."""
    session.path.write_bytes(session.path.read_bytes().replace(b"walrus", b"wombat"))


def truncated(session: ClaudeCodeSession) -> None:
    """Its last turns are gone."""
    lines = session.path.read_bytes().splitlines(keepends=True)
    session.path.write_bytes(b"".join(lines[: len(lines) // 2]))


def replaced(session: ClaudeCodeSession) -> None:
    """Another file is renamed over it."""
    other = session.path.with_name("other.tmp")
    other.write_bytes(session.path.read_bytes().replace(b"walrus", b"whale"))
    other.rename(session.path)


def deleted(session: ClaudeCodeSession) -> None:
    """It is gone."""
    session.path.unlink()


def restored(session: ClaudeCodeSession) -> None:
    """It was gone for a while, and is as it was."""
    content = session.path.read_bytes()
    session.path.unlink()
    session.path.write_bytes(content)


def compressed(session: ClaudeCodeSession) -> None:
    """It is packed, as Codex does with old ones."""
    packed = zstandard.ZstdCompressor().compress(session.path.read_bytes())
    session.path.with_name(f"{session.path.name}.zst").write_bytes(packed)
    session.path.unlink()


def cut_in_a_line(session: ClaudeCodeSession) -> None:
    """Somebody is in the middle of writing a line."""
    session.path.write_bytes(session.path.read_bytes()[:-40])


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "change", [rewritten, truncated, replaced, deleted, restored, compressed, cut_in_a_line]
)
def test_whatever_happens_to_a_file_the_index_is_that_of_a_fresh_start(
    daemon: Daemon, change: Callable[[ClaudeCodeSession], None]
) -> None:
    """Replaced where it changed, never twice, by what the watcher sees alone."""
    home = ClaudeCode(daemon.home)
    both = [home.session(at=AT) for _ in range(2)]
    for number, session in enumerate(both):
        say(session, *(f"walrus {number} talk, turn {turn}, " + "and so on " * 20 for turn in range(12)))
    configured(daemon, AT_ONCE).start()
    with daemon.client() as client:
        client.sync()
        change(both[0])
        fresh = becomes_fresh(daemon, client, settings(daemon.home, AT_ONCE))
        assert name_of(both[1]) in fresh.contents
        assert (name_of(both[0]) in fresh.contents) == (change is not deleted)


def test_a_line_that_is_completed_later_is_read_once(daemon: Daemon) -> None:
    """Half of a line says nothing; when the rest is there, the turn is."""
    configured(daemon).start()
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.client() as client:
        client.sync()
        say(session, "the heron is called Hugo")
        whole = session.path.read_bytes()
        session.path.write_bytes(whole[:-30])
        client.sync()
        assert not holding(client, "Hugo")
        with session.path.open("ab") as stream:
            stream.write(whole[-30:])
        client.sync()
        [hit] = holding(client, "Hugo")
        assert client.get(hit.path).text.count("Hugo") == 1
        sessions = status(client).sessions
        assert sessions is not None
        assert (sessions.turns, sessions.lines_skipped) == (2, {})


def test_a_daemon_that_is_killed_while_it_reads_transcripts_misses_none(daemon: Daemon) -> None:
    """Each is in the index as it was or as it is; the next start does the rest."""
    home = ClaudeCode(daemon.home)
    for number in range(80):
        session = home.session(at=AT)
        say(session, *(f"word{number}q, turn {turn}, " + "blah " * 60 for turn in range(12)))
    configured(daemon)
    for done in (5, 40):
        daemon.start()
        with daemon.client() as client:
            client.sync(wait=False)
            until(lambda done=done: status(client).files >= done, TIMEOUT_S)  # type: ignore[misc]
            daemon.kill()
    with daemon.start().client(timeout=60) as client:
        client.sync()
        becomes_fresh(daemon, client, settings(daemon.home))


@pytest.mark.long
def test_edits_are_found_at_once_while_transcripts_are_read_the_first_time(daemon: Daemon) -> None:
    """Be there thousands of files or one that is very long, and whoever asked for all of them."""
    home = ClaudeCode(daemon.home)
    long = home.session(at=AT)
    line = {"sessionId": "s", "timestamp": "2026-03-02T09:00:00Z", "cwd": "/app", "type": "user"}
    with long.path.open("w") as stream:
        for number in range(6000):
            text = f"turn {number}: " + "so it was said by the walrus, " * 20
            stream.write(
                json.dumps({**line, "uuid": str(number), "message": {"role": "user", "content": text}}) + "\n"
            )
    source = long.path.parent / "small.jsonl"
    source.write_bytes(b"".join(long.path.read_bytes().splitlines(keepends=True)[:8]))
    for number in range(600):
        shutil.copyfile(source, source.with_name(f"{number:08}-copy.jsonl"))
    configured(daemon, AT_ONCE)
    daemon.config.write_text(daemon.config.read_text().replace(QUICK, IMPATIENT))
    daemon.start()
    with daemon.client() as client:
        client.sync(wait=False)
        until(lambda: status(client).progress, TIMEOUT_S)
        meanwhile = 0
        for number in range(20):
            daemon.write("memory/a.md", f"urgent word{number}q\n")
            assert holding(client, f"word{number}q")
            meanwhile += status(client).progress is not None
        assert meanwhile >= 5, "the transcripts were read too soon to tell"
        other = begun(daemon.home, "the heron is called Hugo")
        answer = client.search("heron Hugo")
        assert answer.stale or name_of(other) in {hit.path for hit in answer.results}
        until(lambda: holding(client, "Hugo"), TIMEOUT_S)
        until(lambda: status(client).progress is None, TIMEOUT_S)
        assert status(client).files == 603


def test_a_rebuild_has_all_that_was_said(daemon: Daemon) -> None:
    """Be it due or not; before, its costs are told with those of transcripts."""
    configured(daemon)
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.start().client() as client:
        client.sync()
        say(session, "the heron is called Hugo")
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        costs = client.reindex(dry_run=True)
        assert (costs.files, costs.chunks) == (1, 1)
        client.reindex()
        until(lambda: holding(client, "Hugo"), TIMEOUT_S)
        until(lambda: waiting(client) == 0, TIMEOUT_S)
        say(session, "the stork is called Stella")
        client.sync()
        becomes_fresh(daemon, client, settings(daemon.home))


def test_a_source_can_be_asked_for_alone(daemon: Daemon) -> None:
    """Notes, transcripts, or both."""
    configured(daemon)
    session = begun(daemon.home, "the lighthouse was said to be red")
    daemon.write("memory/a.md", "the lighthouse was noted to be green\n")
    with daemon.start().client() as client:
        client.sync()
        paths = {
            source: {hit.path for hit in client.search("lighthouse", source=source).results}
            for source in ("memory", "sessions", None)
        }
        assert paths == {
            "memory": {"memory/a.md"},
            "sessions": {name_of(session)},
            None: {"memory/a.md", name_of(session)},
        }


def test_two_agents_may_read_the_same_transcripts(daemon: Daemon) -> None:
    """Each has an index of its own, and each follows what is said."""
    directory(daemon.home).mkdir(parents=True)
    other = daemon.home / "other"
    (other / "memory").mkdir(parents=True)
    daemon.configure(
        f'{settings(daemon.home)}\n[agents.other]\nworkspace = "{other}"\n{settings(daemon.home, AT_ONCE)}'
    )
    session = begun(daemon.home, "the walrus is called Wanda")
    with daemon.start().client() as client:
        client.sync()
        say(session, "the heron is called Hugo")
        until(lambda: client.search("Hugo", agent="other").results, TIMEOUT_S)
        assert "Hugo" not in str(client.search("Hugo", agent="main").results)
        client.sync()
        for agent in ("main", "other"):
            assert "Hugo" in str(client.search("Hugo", agent=agent).results)


def test_what_is_counted_of_transcripts_is_told(daemon: Daemon) -> None:
    """Transcripts, turns, what was taken out by kind, lines that say nothing; never a value, and no group is told."""
    configured(daemon, NEVER, 'scope = { default = "allow", rules = [] }')
    session = begun(
        daemon.home, "the password is hunter2secretX9", "and the key is AKIA" + "Q3EGS7XYZ2RBT4KW"
    )
    with session.path.open("a") as stream:
        stream.write('{"type": "user", "message": \n')
    (session.path.parent / "odd.jsonl").write_text('{"what": "is this"}\n' * 30)
    with daemon.start().client() as client:
        client.sync()
        told = status(client)
        assert told.sessions is not None
        assert (told.sessions.files, told.sessions.turns) == (2, 2)
        assert told.sessions.lines_skipped["broken"] == 1
        assert told.redacted["password"] == 1
        assert sum(told.redacted.values()) == 2
        assert told.skipped == {"transcript in no known format": 1}
        assert "hunter2" not in str(told)
        group = client.status(session_key="agent:main:telegram:group:1").agents["main"]
        assert (group.sessions, group.redacted, group.skipped) == (None, {}, {})
        direct = client.status(session_key="agent:main:telegram:direct:1").agents["main"]
        assert (direct.sessions, direct.redacted) == (told.sessions, told.redacted)


def grown(client: Client) -> int:
    """Turns in the index."""
    sessions = status(client).sessions
    return 0 if sessions is None else sessions.turns


def test_transcripts_are_taken_in_and_out_by_a_reload(daemon: Daemon) -> None:
    """Turned on they are added, turned off nothing of their text is left."""
    session = begun(daemon.home, "the walrus is called Wanda")
    daemon.configure(f'provider = "none"\n{QUICK}')
    daemon.write("memory/a.md", "a note on a lighthouse\n")
    with daemon.start().client() as client:
        client.sync()
        assert not holding(client, "Wanda")
        daemon.configure(settings(daemon.home, "idle_seconds = 0"))
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: holding(client, "Wanda"), TIMEOUT_S)
        assert status(client).rebuild is None, "what there was of notes is as good as before"
        daemon.configure(settings(daemon.home, NEVER))
        client.reload()
        until(lambda: grown(client) == 1, TIMEOUT_S)
        say(session, "the heron is called Hugo")
        until(lambda: waiting(client) == 1, TIMEOUT_S)
        daemon.configure(settings(daemon.home, AT_ONCE))
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: holding(client, "Hugo"), TIMEOUT_S)
        daemon.configure(f'provider = "none"\n{QUICK}')
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: status(client).sources == ["memory"], TIMEOUT_S)
        assert not client.search("Wanda").results
        assert client.get(name_of(session)).missing
        until(lambda: status(client).rebuild is None and status(client).files == 1, TIMEOUT_S)
        until(lambda: not files_with(daemon.state, b"Wanda"), TIMEOUT_S)
        assert holding(client, "lighthouse")


def test_other_paths_are_followed_after_a_reload(daemon: Daemon) -> None:
    """What lay in the old place is gone from the index, what lies in the new one is there."""
    configured(daemon, AT_ONCE)
    begun(daemon.home, "the walrus is called Wanda")
    elsewhere = daemon.home / "elsewhere"
    begun(elsewhere, "the heron is called Hugo")
    with daemon.start().client() as client:
        client.sync()
        assert holding(client, "Wanda")
        daemon.configure(settings(elsewhere, AT_ONCE))
        daemon.process.send_signal(signal.SIGHUP)
        until(lambda: holding(client, "Hugo"), TIMEOUT_S)
        until(lambda: not holding(client, "Wanda"), TIMEOUT_S)
        assert status(client).files == 1


def files_with(directory: Path, text: bytes) -> list[str]:
    """The files below a directory that hold a text."""
    return [
        file.name
        for file in directory.rglob("*")
        if file.is_file() and text.lower() in file.read_bytes().lower()
    ]
