"""A day of four agents: whatever happens to their transcripts, the index is what a fresh one is."""

import signal
from pathlib import Path
from random import Random

import pytest
from hypothesis import settings as hypothesis_settings

from memd_client import Client
from tests.daemon.agentday import AGENTS, Day, Talk, assert_told, found_at, settled_in
from tests.daemon.chats import status, waiting
from tests.daemon.fresh import becomes_fresh
from tests.daemon.process import Daemon
from tests.fakes.homes import CodexSession
from tests.wait import until

TIMEOUT_S = 30.0
NEVER = "delta_bytes = 1000000, delta_messages = 1000, idle_seconds = 80000"
SOON = "delta_bytes = 3000, delta_messages = 1000, idle_seconds = 0.4"
# One random day, and with --hypothesis-profile=long some more.
SEEDS = range(1, 2 + hypothesis_settings().max_examples // 100)


def settings(sessions: str) -> str:
    """TOML of an agent that remembers what the four agents talk about, and what they noted."""
    presets = ", ".join(f'"{agent}"' for agent in AGENTS)
    return (
        'sources = ["memory", "sessions"]\n'
        f"memory_presets = [{presets}]\n"
        f"sessions = {{ presets = [{presets}], {sessions} }}\n"
        "sync = { watch_debounce_ms = 20, watch_max_wait_ms = 100, wait_ms = 10000 }"
    )


def begun(home: Path, monkeypatch: pytest.MonkeyPatch, seed: int) -> Day:
    """Four homes with what was said, noted, put aside and deleted on the days before."""
    settled_in(home, monkeypatch)
    day = Day(home, Random(seed))
    for agent in AGENTS:
        old, gone, last = day.begin(agent), day.begin(agent), day.begin(agent)
        for talk in (old, gone, last):
            talk.talk(exchanges=3)
        old.put_aside()
        gone.delete()
    day.claude_code.note("/home/li/app", "MEMORY.md", "The lighthouse is red.\n")
    (day.openclaw.workspace / "memory").mkdir(parents=True)
    (day.openclaw.workspace / "memory" / "2026-03-01.md").write_text("The lighthouse was green.\n")
    return day


def live(day: Day) -> list[Talk]:
    """The last session of each agent that somebody talks in; a new one where there is none."""
    last = {talk.agent: talk for talk in day.talks if talk.is_there and not talk.is_over}
    return [last.get(agent) or day.begin(agent) for agent in AGENTS]


def assert_complete(client: Client, day: Day, *, one_word_in: int = 1) -> None:
    """After a sync everything of the day is told, and counted."""
    assert client.sync().vectors == "complete"
    assert_told(client, day, one_word_in=one_word_in)
    told = status(client)
    assert told.sessions is not None
    assert told.sessions.waiting == 0
    assert told.sessions.turns == sum(len(talk.turns) for talk in day.talks)
    assert told.sessions.lines_skipped == {}
    assert told.last_pass is not None
    assert told.last_pass.failed is None


@pytest.mark.long
def test_a_day_of_four_agents(daemon: Daemon, monkeypatch: pytest.MonkeyPatch) -> None:
    """Growth, rotation, compression, archives, branches, rewinds, rewriting, deletion, restarts and a kill."""
    day = begun(daemon.home, monkeypatch, seed=0)
    daemon.configure(settings(NEVER))
    with daemon.start().client() as client:
        _morning(daemon, client, day)
        _before_noon(client, day)
        _at_noon(client, day)
        for talk in [day.begin(agent) for agent in AGENTS]:
            talk.talk(exchanges=20)
        client.sync(wait=False)
        daemon.kill()
    _while_it_is_dead(day)
    with daemon.start().client() as client:
        assert_complete(client, day, one_word_in=9)
        _afternoon(daemon, client, day)
    assert daemon.stop() == 0
    day.begin("claude-code").talk(exchanges=2)
    live(day)[0].delete()
    with daemon.start().client() as client:
        fresh = becomes_fresh(daemon, client, settings(SOON))
        assert fresh.contents.keys() >= set(day.words.values())
        assert_complete(client, day)
    assert '"level": "error"' not in daemon.printed()
    assert "Traceback" not in daemon.printed()


def _morning(daemon: Daemon, client: Client, day: Day) -> None:
    """The days before are indexed; what is not due yet is known to wait, and a sync finds all of it at once."""
    assert_complete(client, day)
    assert found_at(client, "lighthouse") == {
        str(path.resolve())
        for path in (
            *daemon.home.glob(".claude/projects/*/memory/MEMORY.md"),
            day.openclaw.workspace / "memory" / "2026-03-01.md",
        )
    }
    before = set(day.words)
    for talk in live(day):
        talk.talk()
    until(lambda: waiting(client) == len(AGENTS), TIMEOUT_S)
    new = sorted(set(day.words) - before)
    assert not any(found_at(client, word) for word in new)
    assert not client.search(new[0]).stale
    assert_complete(client, day)


def _before_noon(client: Client, day: Day) -> None:
    """Things are taken back, said anew, compacted, left to others, and files put aside in the way of each agent."""
    for talk in live(day):
        talk.keep()
        talk.talk(exchanges=2)
        talk.regret()
        talk.talk()
        talk.stammer()
    assert_complete(client, day, one_word_in=9)
    for talk in live(day):
        talk.compact()
        talk.delegate()
        talk.put_aside()
    assert_complete(client, day, one_word_in=9)


def _at_noon(client: Client, day: Day) -> None:
    """A session is packed, goes on, is put away, packed there, and taken out again."""
    talk = day.begin("codex")
    talk.talk(exchanges=3)
    assert isinstance(talk.session, CodexSession)
    for change in (talk.session.compress, talk.talk, talk.session.archive, talk.session.compress, talk.talk):
        change()
        assert_complete(client, day, one_word_in=25)


def _while_it_is_dead(day: Day) -> None:
    """Nobody sees what happens: growth, deletion, a backup that is put back and gone on from."""
    for talk in live(day):
        talk.talk()
    for talk in [talk for talk in day.talks if talk.is_there and talk.can(Talk.restore)]:
        size = talk.session.path.stat().st_size
        talk.restore(in_place=True)
        while talk.session.path.stat().st_size < size:
            talk.talk()
    for talk in day.talks[:12:3]:
        if talk.is_there:
            talk.delete()


def _afternoon(daemon: Daemon, client: Client, day: Day) -> None:
    """Nobody asks for anything: what grows is due by quiet or by size."""
    daemon.configure(settings(SOON))
    daemon.process.send_signal(signal.SIGHUP)
    until(lambda: daemon.printed().count("config.reloaded") == 1, TIMEOUT_S)
    for exchanges in (1, 10):
        for talk in live(day):
            talk.talk(exchanges=exchanges)
        until(lambda: found_all(client, day), TIMEOUT_S)
    until(lambda: waiting(client) == 0, TIMEOUT_S)
    for talk in live(day):
        talk.copy_over()
        talk.stammer()
    [back, *_] = [talk for talk in day.talks if talk.can(Talk.restore)]
    back.restore()


def found_all(client: Client, day: Day) -> bool:
    """Whether the last thing that was said in each session is found."""
    last = {name: word for word, name in day.words.items()}
    return all(found_at(client, word) == {name} for name, word in last.items())


@pytest.mark.parametrize("seed", SEEDS)
def test_any_day_of_four_agents(daemon: Daemon, monkeypatch: pytest.MonkeyPatch, seed: int) -> None:
    """Things happen at random, restarts and kills among them, mostly faster than the daemon follows."""
    day = begun(daemon.home, monkeypatch, seed)
    daemon.configure(settings(SOON))
    daemon.start()
    for _ in range(6):
        for _ in range(day.rng.randint(4, 24)):
            day.happen()
        with daemon.client() as client:
            match day.rng.choice(("nothing", "sync", "look", "fresh", "restart", "kill", "away")):
                case "sync":
                    client.sync(wait=False)
                case "look":
                    assert_complete(client, day, one_word_in=7)
                case "fresh":
                    becomes_fresh(daemon, client, settings(SOON))
                case "restart":
                    assert daemon.stop() == 0
                    daemon.start()
                case "kill":
                    client.sync(wait=False)
                    daemon.kill()
                    daemon.start()
                case "away":
                    daemon.kill()
                    for _ in range(20):
                        day.happen()
                    daemon.start()
                case _:
                    pass
    day.finish()
    with daemon.client() as client:
        becomes_fresh(daemon, client, settings(SOON))
        assert_complete(client, day, one_word_in=9)
    assert "Traceback" not in daemon.printed()
