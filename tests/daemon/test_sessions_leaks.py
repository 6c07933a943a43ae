"""No secret that was said gets into any file or reply: every kind, in every format, at a first indexing and later."""

import itertools
import os
import re
import signal
import subprocess
import sys
from collections.abc import Iterator, Sequence
from operator import attrgetter
from pathlib import Path
from random import Random

import msgspec
import pytest
from hypothesis import settings as hypothesis_settings

from memd_client import Client
from tests.daemon.agentday import AGENTS, MORNING, Session, settled_in
from tests.daemon.chats import QUICK, status
from tests.daemon.fresh import becomes_fresh
from tests.daemon.hunt import Hunt, as_note, halves, quoted
from tests.daemon.process import ROOT, Daemon
from tests.fakes.homes import ClaudeCode, Codex, CodexSession, Gemini, OpenClaw, write
from tests.redact.corpus import PREFIXED, Sample, samples
from tests.wait import until

TIMEOUT_S = 60.0
A_SESSION = 60  # turns
A_NOTE = 100  # samples
# Of the samples one in so many: of each kind and in each setting, and in a run of all tests of each kind in each setting; all of
# them with --hypothesis-profile=long.
ONE_IN = [1] if hypothesis_settings().max_examples > 100 else [59, pytest.param(7, marks=pytest.mark.long)]


def settings(mode: str, more: str = "") -> str:
    """TOML of an agent with notes and transcripts of all formats, that takes out what is secret."""
    presets = ", ".join(f'"{agent}"' for agent in AGENTS)
    return (
        f'sources = ["memory", "sessions"]\nprovider = "auto"\n{QUICK}\n'
        f'sessions = {{ presets = [{presets}], paths = ["chats"], idle_seconds = 80000 }}\n'
        f'redact = {{ mode = "{mode}"{more} }}\n'
        '[daemon]\nlog_level = "debug"'
    ).replace('"chats"', '"{chats}"')


def configure(daemon: Daemon, mode: str, more: str = "") -> str:
    """Write it; what was written for the agent."""
    text = settings(mode, more).replace("{chats}", str(daemon.home / "chats"))
    daemon.configure(text)
    return text


class Writers:
    """Four agents and a program of somebody's own, each of which writes down what it is given."""

    def __init__(self, home: Path) -> None:
        self._agents = (ClaudeCode(home), Codex(home), Gemini(home), OpenClaw(home))
        self._chats = home / "chats"
        self._chats.mkdir(exist_ok=True)
        self._minute = itertools.count()

    def write(self, given: Sequence[Sample]) -> None:
        """Write samples into transcripts of all formats: as what a user says, as an answer, in two parts, in tools."""
        texts = list(quoted(given))
        for number, begin in enumerate(range(0, len(texts), A_SESSION)):
            some = texts[begin : begin + A_SESSION]
            if number % 5 == 4:
                self._write_plain(some, number)
                continue
            agent = self._agents[number % 5]
            session = self._begun(agent, given[begin])
            for at, text in enumerate(some):
                # What was said in between, by the other one.
                match at % 3:
                    case 0:
                        session.user(text, self._now())
                        session.assistant("I see.", at=self._now())
                    case 1:
                        session.user("What is it?", self._now())
                        session.assistant(text, at=self._now())
                    case _:
                        first, second = halves(text) or (text, "That is all.")
                        session.user(first, self._now())
                        session.user(second, self._now())
                session.tool("Bash", {"command": text}, text, self._now())
            session.compact(some[0], self._now())
            if isinstance(session, CodexSession) and number % 2:
                session.compress()

    def _begun(self, agent: ClaudeCode | Codex | Gemini | OpenClaw, sample: Sample) -> Session:
        """A session, in a directory whose name is a secret where an agent writes that down."""
        if isinstance(agent, ClaudeCode | Codex) and sample.kind in PREFIXED and "/" not in sample.value:
            return agent.session(f"/home/li/{sample.value}", at=self._now())
        return agent.session(at=self._now())

    def _write_plain(self, texts: Sequence[str], number: int) -> None:
        roles = itertools.cycle(("user", "assistant"))
        rows = [{"role": role, "content": text} for role, text in zip(roles, texts, strict=False)]
        write(self._chats / f"{self._now():.0f}-{number}.jsonl", *rows)

    def _now(self) -> float:
        return MORNING + 60 * next(self._minute)


def replies(client: Client, given: Sequence[Sample], rng: Random) -> Iterator[bytes]:
    """Everything that memd says of what it has, and answers to questions that hold a secret themselves."""
    names = set[str]()
    for sample in rng.sample(given, min(len(given), 50)):
        found = client.search(sample.text, max_results=50, min_score=0)
        names.update(hit.path for hit in found.results)
        yield msgspec.json.encode(found)
    for kind in sorted({sample.kind for sample in given})[::4]:
        yield msgspec.json.encode(client.explain(f"what is the {kind}?", max_results=50))
    for name in names:
        line: int | None = 1
        while line is not None:
            note = client.get(name, start_line=line)
            line = note.next_line
            yield msgspec.json.encode(note)
    yield msgspec.json.encode(client.status())


def told_by(daemon: Daemon, *arguments: str) -> bytes:
    """What memd-ctl prints."""
    command = [sys.executable, "-m", "memd.ctl", *arguments]
    environ = os.environ | {
        "MEMD_CONFIG": str(daemon.config),
        "MEMD_STATE_DIR": str(daemon.state),
        "MEMD_SOCKET": str(daemon.socket),
    }
    done = subprocess.run(command, cwd=ROOT, env=environ, capture_output=True, check=False, timeout=120)
    assert done.stdout or done.stderr
    return done.stdout + done.stderr


def assert_clean(daemon: Daemon, hunt: Hunt, said: bytes = b"") -> None:
    """None of the secrets is in a file below the state directory, in the log, or in what was said."""
    met = hunt.met_below(daemon.state) | {
        "log": hunt.met(daemon.printed().encode()),
        "replies": hunt.met(said),
    }
    leaks = {name: hunt.caught(tails)[:5] or tails for name, tails in met.items() if tails}
    assert not leaks


@pytest.mark.timeout(300)
@pytest.mark.parametrize("one_in", ONE_IN)
def test_no_secret_of_any_kind_is_left_anywhere(
    daemon: Daemon, monkeypatch: pytest.MonkeyPatch, one_in: int
) -> None:
    """Indexed as they are, all are found; by rules, none is: in no file, log or reply, old text and growth included."""
    settled_in(daemon.home, monkeypatch)
    every = list(samples(seed=1))
    given = every[::one_in]
    for looked_at in (attrgetter("kind"), attrgetter("setting"), attrgetter("kind", "setting"))[
        : 2 + (one_in < 17)
    ]:
        assert set(map(looked_at, given)) == set(map(looked_at, every))
    hunt = Hunt(given)
    writers = Writers(daemon.home)
    writers.write(given)
    for number, begin in enumerate(range(0, len(given), A_NOTE)):
        daemon.write(f"memory/{number}.md", as_note(given[begin : begin + A_NOTE]))

    # What is not taken out is found by the hunt: it does not look past anything.
    configure(daemon, "off")
    with daemon.start().client(timeout=120) as client:
        client.sync(vectors=False)
        met = hunt.met_below(daemon.state)
        assert len(hunt.caught(met["main.sqlite, rows"])) > 0.99 * len(given)
        assert len(hunt.caught(set().union(*met.values()))) > 0.99 * len(given)
        assert not hunt.met(daemon.printed().encode())
    daemon.stop()

    # Rules come into force: what was indexed without them goes.
    text = configure(daemon, "all")
    with daemon.start().client(timeout=120) as client:
        until(lambda: status(client).rebuild is None and status(client).redacted, TIMEOUT_S)
        client.sync()
        until(lambda: not hunt.met_below(daemon.state), TIMEOUT_S)
        said = b"\n".join(replies(client, given, Random(1)))
        assert b"[REDACTED:" in said
        for command in (["status", "--json"], ["doctor", "--json"], ["config", "show", "--json"]):
            said += told_by(daemon, *command)
        assert_clean(daemon, hunt, said)

        # And what comes later, piece by piece, does not come in.
        later = [sample for sample in samples(seed=2) if sample.setting in {"chat", "chinese"}][
            :: max(17, one_in)
        ]
        other = Hunt(later)
        for begin in range(0, len(later), 40):
            writers.write(later[begin : begin + 40])
            daemon.write(f"memory/later-{begin}.md", as_note(later[begin : begin + 40]))
            client.sync(vectors=False)
        client.sync()
        assert_clean(daemon, other, b"\n".join(replies(client, later, Random(2))))
        assert sum(status(client).redacted.values()) > len(given)
        becomes_fresh(daemon, client, text.partition("[daemon]")[0])
    assert daemon.stop() == 0
    assert_clean(daemon, hunt)
    assert_clean(daemon, other)


KEY = "sk-mellon" + "0123456789abcdefQ7"

FAULTY = {
    "a pattern": f'redact = {{ extra = [{{ name = "own", pattern = "{KEY}(" }}] }}',
    "a name": f'redact = {{ extra = [{{ name = "{KEY}", pattern = "x1" }}] }}',
    "half a rule": f'redact = {{ extra = [{{ pattern = "{KEY}" }}] }}',
    "what is allowed": f'redact = {{ allow = "{KEY}" }}',
    "one that is allowed": f'redact = {{ allow = ["{KEY}", 3] }}',
    "a key of another type": f'remote = {{ api_key = ["{KEY}"] }}',
    "a key that is mistyped": f'remote = {{ api_kee = "{KEY}" }}',
    "a header": f'remote = {{ headers = ["{KEY}"] }}',
    "no TOML": f'remote = {{ api_key = "{KEY} }}',
}


@pytest.mark.rows(2)
@pytest.mark.parametrize("text", FAULTY.values(), ids=FAULTY)
def test_no_error_of_the_configuration_quotes_a_secret(daemon: Daemon, text: str) -> None:
    """Neither of the daemon nor of who checks it; it names the place."""
    daemon.configure(f'provider = "none"\n{text}')
    ended = daemon.start(wait=False).process.wait(60)
    told = told_by(daemon, "config", "check")
    assert ended == 78
    for said in (daemon.printed(), told.decode()):
        assert "mellon" not in said
        assert "line" in said or "agents.main" in said


def test_a_file_that_is_reloaded_and_cannot_be_read_quotes_no_secret(daemon: Daemon) -> None:
    """The daemon goes on with what it has, and says so, by log and status, without it."""
    daemon.configure('provider = "none"')
    with daemon.start().client() as client:
        for text in FAULTY.values():
            daemon.configure(f'provider = "none"\n{text}')
            before = daemon.printed().count("config.")
            daemon.process.send_signal(signal.SIGHUP)
            until(lambda before=before: daemon.printed().count("config.") > before, TIMEOUT_S)  # type: ignore[misc]
        told = client.status()
        assert b"mellon" not in msgspec.json.encode(told)
    assert "mellon" not in daemon.printed()


def test_a_process_that_crashes_over_a_text_tells_nothing_secret_of_it(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of what failed its last words tell the place and the length, and not even what was redacted before."""
    settled_in(home, monkeypatch)
    daemon = Daemon(home, entry="tests.daemon.crashing")
    given = [sample for sample in samples(seed=3) if sample.setting == "chat"][::30]
    hunt = Hunt(given)
    Writers(home).write(given)
    configure(daemon, "sessions")
    daemon.start(wait=False)
    try:
        assert daemon.process.wait(60) != 0
    finally:
        daemon.__exit__(None, None, None)
    assert "Traceback" in daemon.printed()
    assert re.search(r"ZeroDivisionError: <\d{2,} characters>", daemon.printed()), "it failed at no text"
    assert "I see." not in daemon.printed()
    assert_clean(daemon, hunt)
