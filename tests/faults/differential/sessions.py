"""Transcripts of four programs, with what becomes of their files, and what of it must be found."""

import shutil
import uuid
from collections import defaultdict
from pathlib import Path
from random import Random

import msgspec

from tests.daemon.agentday import Day, Talk
from tests.fakes.homes import ClaudeCodeSession
from tests.faults.differential.places import Places


class _Copy(msgspec.Struct, frozen=True):
    """Another file with turns of a session."""

    file: Path
    name: str  # in the index
    words: frozenset[str]
    of: Talk | None  # the session that it is a copy of, and whose file counts while it is there; None: a fork


class Sessions:
    """A day of four agents, a happening at a time."""

    def __init__(self, places: Places, seed: int) -> None:
        """Nothing has happened yet."""
        self._day = Day(places.home, Random(seed))
        self._copies: list[_Copy] = []

    def happen(self, seed: int) -> None:
        """Something happens to some session."""
        rng = self._day.rng = Random(seed)
        kind = rng.random()
        if kind < 0.08 and (talk := self._some(rng)) is not None:
            self._copy(talk)
        elif kind < 0.16 and (talk := self._some(rng)) is not None:
            self._fork(talk, rng)
        elif kind < 0.20 and self._copies:
            copy = self._copies.pop(rng.randrange(len(self._copies)))
            copy.file.unlink()
        else:
            self._day.happen()

    def words(self) -> dict[str, frozenset[str]]:
        """What must be found, with the names of the sessions that it may be found in."""
        found: dict[str, set[str]] = defaultdict(set)
        for word, name in self._day.words.items():
            found[word].add(name)
        for copy in self._copies:
            if copy.of is None or not copy.of.is_there:
                for word in copy.words:
                    found[word].add(copy.name)
        return {word: frozenset(names) for word, names in found.items()}

    def finish(self) -> None:
        """Whoever is in the middle of a line comes to its end."""
        self._day.finish()

    def _some(self, rng: Random) -> Talk | None:
        talks = [
            talk for talk in self._day.talks if talk.is_there and isinstance(talk.session, ClaudeCodeSession)
        ]
        return rng.choice(talks) if talks else None

    def _copy(self, talk: Talk) -> None:
        """The file is copied to another project, as people do whose repository has moved."""
        talk.complete()
        file = talk.session.path
        project = file.parent.parent / ("-home-li-moved" if file.parent.name < "-home-li-n" else "-home-a")
        project.mkdir(exist_ok=True)
        there = project / file.name
        if any(copy.file == there for copy in self._copies):
            return
        shutil.copy2(file, there)
        self._copies.append(_Copy(there, talk.name, frozenset(talk.words), talk))

    def _fork(self, talk: Talk, rng: Random) -> None:
        """The session is gone on with under another id, in a file that has all its lines."""
        talk.complete()
        file = talk.session.path
        other = str(uuid.UUID(int=rng.getrandbits(128), version=4))
        there = file.with_name(f"{other}.jsonl")
        there.write_bytes(file.read_bytes().replace(talk.session.id.encode(), other.encode()))
        self._copies.append(_Copy(there, f"sessions/claude-code/{other}.jsonl", frozenset(talk.words), None))
