"""Simulates days of four agents with their sessions and files, and checks what must be found."""

import copy
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import datetime
from pathlib import Path
from random import Random

import msgspec
import pytest

from memd_client import Client
from tests.fakes.homes import (
    ClaudeCode,
    ClaudeCodeSession,
    Codex,
    CodexSession,
    Gemini,
    GeminiSession,
    OpenClaw,
    OpenClawSession,
    Spoken,
)

MORNING = 1_772_442_000.0  # 2 March 2026
AGENTS = ("openclaw", "claude-code", "codex", "gemini")
ELSEWHERE = (
    "CLAUDE_CONFIG_DIR",
    "CODEX_HOME",
    "GEMINI_CLI_HOME",
    "OPENCLAW_STATE_DIR",
    "OPENCLAW_PROFILE",
    "OPENCLAW_WORKSPACE_DIR",
    "CLAWDBOT_STATE_DIR",
    "PI_CODING_AGENT_DIR",
    "PI_CODING_AGENT_SESSION_DIR",
)

_SAYINGS = (
    "{} is what the deploy of the billing service waits for.",
    "Which of the two did we pick for {}?\nI think it was the second one.",
    "数据库迁移定在周五，由老周负责，代号 {}。",
    "```python\nretry({}, times=3)  # as agreed\n```\nThat is all there is to it.",
    "温室的备用钥匙放在蓝色水壶后面 ({})。And the lamp is by the door.",
    "On {}:\n\n" + "so it was said by the walrus, who had it from the heron. " * 30,
)

Session = ClaudeCodeSession | CodexSession | GeminiSession | OpenClawSession


def settled_in(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Use a directory as the home of the four agents, for this process and the daemons that it starts."""
    monkeypatch.setenv("HOME", str(home))
    for name in ELSEWHERE:
        monkeypatch.delenv(name, raising=False)


class _Backup(msgspec.Struct, frozen=True):
    """A copy of a session's file."""

    session: Session
    content: bytes


class Talk:
    """One session, with its file and its expected turns."""

    def __init__(self, day: "Day", agent: str, session: Session) -> None:
        self.agent = agent
        self.session = session
        self.is_there = True
        self.is_over = False  # nothing is said in it any more
        self._day = day
        self._place = session.path  # of the file while somebody talks
        self._held = b""  # the end of a line that is not written yet
        self._is_unsaid = False  # the last turn stands in that line alone
        self._backup: _Backup | None = None
        own = (
            session.path.name if isinstance(session, CodexSession | GeminiSession) else f"{session.id}.jsonl"
        )
        self.name = f"sessions/{agent}/{own}"

    @property
    def turns(self) -> list[Spoken]:
        """The turns that must be found."""
        if not self.is_there:
            return []
        return self.session.turns[:-1] if self._is_unsaid else list(self.session.turns)

    @property
    def words(self) -> list[str]:
        """A unique word of each text that must be found."""
        return [word for turn in self.turns for word in _words_in(turn.text)]

    def talk(self, *, exchanges: int = 1) -> None:
        """Add a question, a tool call and an answer."""
        self._open()
        for _ in range(exchanges):
            self.session.user(self._day.saying(), self._day.now())
            self.session.tool("Read", {"path": "a.py"}, "the contents of quaggafile\n" * 20, self._day.now())
            if isinstance(self.session, ClaudeCodeSession):
                self.session.assistant(self._day.saying(), self._day.saying(), at=self._day.now())
            else:
                self.session.assistant(self._day.saying(), self._day.now())

    def stammer(self) -> None:
        """Write half a line; the rest follows when the session continues."""
        self._open()
        self.session.user(self._day.saying(), self._day.now())
        content = self.session.path.read_bytes()
        begin = content.rfind(b"\n", 0, -1) + 1
        kept = self._day.rng.randrange(begin + 1, len(content) - 1)
        self._held = content[kept:]
        self._is_unsaid = self._day.last_word.encode() not in content[:begin]
        with self.session.path.open("r+b") as stream:
            stream.truncate(kept)

    def copy_over(self) -> None:
        """Rename a copy of the file over it, as synchronisation programs do."""
        self._replace(self.session.path.read_bytes())

    def keep(self) -> None:
        """Make a backup of the file."""
        self.complete()
        self._backup = _Backup(copy.deepcopy(self.session), self.session.path.read_bytes())

    def restore(self, *, in_place: bool | None = None) -> None:
        """Put the backup in the place of the file, whatever has become of it."""
        assert self._backup is not None
        self._held, self._is_unsaid = b"", False
        old, was_there = self.session.path, self.is_there
        self.session = copy.deepcopy(self._backup.session)
        self.is_there = True
        over = self._day.rng.random() < 0.5 if in_place is None else in_place
        if over and was_there and old == self.session.path:
            self.session.path.write_bytes(self._backup.content)
            return
        if was_there:
            old.unlink()
        self._replace(self._backup.content)

    def delete(self) -> None:
        """Delete the file as its agent would."""
        self._held, self._is_unsaid = b"", False
        self.is_there = False
        if isinstance(self.session, OpenClawSession):
            kept = copy.deepcopy(self.session)
            self.session.delete(self._day.now())
            self.session = kept
        else:
            self.session.delete()

    def compact(self) -> None:
        """Compact the conversation."""
        self._open()
        self.session.compact("a summary that tells of the quaggasummary", self._day.now())

    def regret(self) -> None:
        """Rewind to before the user's last question, as its agent does."""
        self._open()
        match self.session:
            case CodexSession():
                self.session.roll_back(1, self._day.now())
            case GeminiSession():
                self.session.rewind(1, self._day.now())
            case OpenClawSession():
                self.session.branch(1, self._day.now())
            case ClaudeCodeSession():
                self.session.interrupt(self._day.now())

    def put_aside(self) -> None:
        """Archive, compress, rewrite or restore the file, as its agent does."""
        self.complete()
        match self.session:
            case CodexSession() if self.session.path.suffix == ".zst":
                self.session.unpack()
            case CodexSession() if self._day.rng.random() < 0.5:
                self.session.compress()
            case CodexSession():
                self.session.archive()
            case GeminiSession():
                self.session.rewrite()
            case OpenClawSession():
                self.session.reset(self._day.now())
                self.is_over = True
            case ClaudeCodeSession():
                self.session.command("clear", "quaggacommand", self._day.now())

    def delegate(self) -> None:
        """Let a subagent work, of which nothing is indexed."""
        self._open()
        match self.session:
            case ClaudeCodeSession():
                self.session.subagent("count the quaggatasks", "quagganine", self._day.now())
            case CodexSession():
                other = self._day.codex.session(at=self._day.now(), parent=self.session)
                other.user("count the quaggatasks", self._day.now())
            case GeminiSession():
                helper = self._day.gemini.session(at=self._day.now(), parent=self.session)
                helper.user("count the quaggatasks", self._day.now())
            case OpenClawSession():
                self.session.flush(self._day.now())

    def can(self, act: "Act") -> bool:
        """Return whether an action is possible now."""
        name = act.__name__
        if name == "restore":
            return self._backup is not None and not self.is_over
        if not self.is_there:
            return False
        if name in {"delete", "copy_over"}:
            return True
        if name == "regret":
            return not self.is_over and any(turn.role == "user" for turn in self.session.turns)
        return not self.is_over

    def _open(self) -> None:
        """Turn the file into one that can be appended to, as its agent does."""
        self.complete()
        if isinstance(self.session, CodexSession):
            if self.session.path.suffix == ".zst":
                self.session.unpack()
            if self.session.path != self._place:
                self.session.path = self.session.path.rename(self._place)

    def complete(self) -> None:
        """Write the rest of a half line."""
        if self._held:
            with self.session.path.open("ab") as stream:
                stream.write(self._held)
            self._held, self._is_unsaid = b"", False

    def _replace(self, content: bytes) -> None:
        part = self.session.path.with_name(f".{self.session.path.name}.part")
        part.write_bytes(content)
        part.rename(self.session.path)


Act = Callable[[Talk], None]

ACTS: Mapping[Act, int] = {
    Talk.talk: 12,
    Talk.stammer: 3,
    Talk.copy_over: 1,
    Talk.keep: 2,
    Talk.restore: 2,
    Talk.delete: 1,
    Talk.compact: 1,
    Talk.regret: 3,
    Talk.put_aside: 4,
    Talk.delegate: 2,
}
"""What happens to sessions, and how often of so many times."""


class Day:
    """Four homes, and all sessions in them."""

    def __init__(self, home: Path, rng: Random, secrets: Sequence[str] = ()) -> None:
        """Start without sessions.

        Args:
            home: Of all four agents.
            rng: Decides what happens.
            secrets: Texts with something secret, of which every third saying has one.
        """
        self.rng = rng
        self._secrets = secrets
        self.claude_code = ClaudeCode(home)
        self.codex = Codex(home)
        self.gemini = Gemini(home)
        self.openclaw = OpenClaw(home)
        self.talks: list[Talk] = []
        self._said: list[str] = []  # a word of each thing that was ever said
        self._at = MORNING

    def now(self) -> float:
        """Advance the time by a minute, and return it."""
        self._at += 60
        return self._at

    def saying(self) -> str:
        """Return a text with a unique word."""
        self._said.append(f"quokka{len(self._said):04}x")
        said = self._sayings().format(self._said[-1]).strip()
        if self._secrets and self.rng.random() < 1 / 3:
            said += f"\n\n{self.rng.choice(self._secrets)}"
        return said

    def begin(self, agent: str) -> Talk:
        """Begin a session of a random agent, in one of two projects or chats."""
        session: Session
        which = self.rng.randrange(2)
        match agent:
            case "openclaw":
                session = self.openclaw.session(f"agent:{('main', 'other')[which]}:main", at=self.now())
            case "claude-code":
                session = self.claude_code.session(f"/home/li/{('app', 'site')[which]}", at=self.now())
            case "codex":
                session = self.codex.session(at=self.now(), logs=("both", "sent")[which])
            case _:
                session = self.gemini.session(("app", "site")[which], at=self.now())
        self.talks.append(Talk(self, agent, session))
        return self.talks[-1]

    def happen(self) -> None:
        """Apply a random action to a random session."""
        there = [talk for talk in self.talks if talk.is_there]
        if len(there) < 4 or self.rng.random() < 0.05:
            self.begin(self.rng.choice(AGENTS)).talk(exchanges=self.rng.randint(1, 4))
            return
        talk = self.rng.choice(self.talks)
        possible = {act: often for act, often in ACTS.items() if talk.can(act)}
        if possible:
            [act] = self.rng.choices(list(possible), list(possible.values()))
            act(talk)

    def finish(self) -> None:
        """Complete all half lines."""
        for talk in self.talks:
            talk.complete()

    @property
    def last_word(self) -> str:
        """The unique word of the last text."""
        return self._said[-1]

    @property
    def words(self) -> dict[str, str]:
        """The unique words of all texts that must be found, with the names of their sessions."""
        return {word: talk.name for talk in self.talks for word in talk.words}

    @property
    def unsaid(self) -> list[str]:
        """The unique words of texts that were deleted, rewound or never completed."""
        words = self.words
        return [word for word in self._said if word not in words]

    def _sayings(self) -> str:
        return self.rng.choices(_SAYINGS, (6, 6, 6, 3, 3, 1))[0]


def _words_in(text: str) -> Iterator[str]:
    at = text.find("quokka")
    while at >= 0:
        yield text[at : at + 11]
        at = text.find("quokka", at + 1)


def read_all(client: Client, name: str) -> str:
    """Return a whole transcript by reading it part by part."""
    pages, line = list[str](), 1
    while True:
        note = client.get(name, start_line=line)
        assert not note.missing, name
        pages.append(note.text)
        if note.next_line is None:
            return "\n\n".join(pages)
        assert note.next_line > line
        line = note.next_line


def as_told(turns: Iterable[Spoken]) -> str:
    """Format turns as `get` returns them."""
    return "\n\n".join(
        f"{datetime.fromtimestamp(turn.at).astimezone():%Y-%m-%d %H:%M} {turn.role.title()}: {turn.text}"
        for turn in turns
    )


def found_at(client: Client, word: str) -> set[str]:
    """Return the places at which a word is shown."""
    hits = client.search(word, max_results=50, min_score=0).results
    return {hit.path for hit in hits if word in hit.snippet}


def assert_told(client: Client, day: Day, *, one_word_in: int = 1) -> None:
    """Check that get and search return all of a day that must be found, and nothing else.

    Args:
        client: Of a daemon that has indexed everything.
        day: What happened.
        one_word_in: Look only for some of the words.
    """
    for talk in day.talks:
        if not talk.is_there:
            assert client.get(talk.name).missing
        elif talk.turns:
            assert read_all(client, talk.name) == as_told(talk.turns), talk.name
        else:
            assert client.get(talk.name).text == ""
    wanted = {word: {name} for word, name in day.words.items()}
    for word in [*wanted, *day.unsaid][::one_word_in]:
        assert found_at(client, word) == wanted.get(word, set()), word
