"""Who asks while daemons come and go: each answer is compared with what stands in the files."""

import asyncio
from collections.abc import Awaitable, Callable
from functools import partial
from pathlib import Path
from random import Random
from typing import TypeVar

import msgspec

from memd_client import (
    AsyncClient,
    Client,
    ConnectionLost,
    DaemonNotRunning,
    Found,
    MemdClientError,
)
from memd_client.messages import Search
from tests.faults.life import TIMEOUT_S
from tests.faults.mixed.household import MINE
from tests.faults.mixed.ledger import Ledger, Standing
from tests.vanishing import vanish
from tests.wait import until_awaited

T = TypeVar("T")

_PAUSE_S = 0.012  # between two requests of a client, at most
_AWAY_S = 0.01  # until a client that found no daemon tries again
_BROKEN = "no memd daemon, or a broken one"  # what a client says of an answer that breaks the rules
_QUESTIONS = (
    "which database did we pick?",
    "数据库迁移定在什么时候?",
    "lighthouse harbour",
    "灯塔",
    "retry(3)",
)


class Met(msgspec.Struct):
    """What clients met."""

    answered: dict[str, int] = {}  # by the kind of the request
    cut: dict[str, int] = {}  # by the error, where no daemon answered
    judged: int = 0  # answers about a word
    wrong: list[str] = []


class Asker:
    """What all clients have in common."""

    def __init__(self, socket: Path, ledger: Ledger, met: Met) -> None:
        """Nothing is asked yet."""
        self.socket = socket
        self.ledger = ledger
        self.met = met

    async def ask(self, kind: str, question: Callable[[], Awaitable[T]]) -> T | None:
        """The answer; None where the daemon went away, which is no fault. Any other error is one."""
        try:
            reply = await question()
        except (ConnectionLost, DaemonNotRunning) as error:
            if _BROKEN in str(error):
                self.met.wrong.append(f"{kind}: {error}")
            _count(self.met.cut, type(error).__name__)
            await asyncio.sleep(_AWAY_S)
            return None
        except MemdClientError as error:
            self.met.wrong.append(f"{kind}: {type(error).__name__}: {error}")
            return None
        _count(self.met.answered, kind)
        return reply

    async def look_for(self, client: AsyncClient, one: Standing) -> bool:
        """Search for a word, and see whether the answer is true; whether there was one."""
        # Every hit there is, whoever else shares a bucket of the embedder with the word.
        agent = one.place.agent
        found = await self.ask(
            "search", lambda: client.search(one.word, max_results=50, min_score=0, max_chars=0, agent=agent)
        )
        if found is not None:
            self._judge(one, found)
        return found is not None

    async def look_for_beside(self, client: Client, one: Standing) -> None:
        """The same by a client of the other kind."""
        search = partial(client.search, max_results=50, min_score=0, max_chars=0, agent=one.place.agent)
        found = await self.ask("search on a thread", lambda: asyncio.to_thread(search, one.word))
        if found is not None:
            self._judge(one, found)

    def _judge(self, one: Standing, found: Found) -> None:
        paths = {hit.path for hit in found.results if one.word in hit.snippet}
        self.met.judged += 1
        # A word that stands somewhere is to be found there alone.
        shown = paths == {one.place.path} if one.stands else bool(paths)
        if fault := self.ledger.judge(one, shown=shown, stale=found.stale):
            self.met.wrong.append(f"{fault} (at {sorted(paths)}, {'stale' if found.stale else 'not stale'})")

    async def read(self, client: AsyncClient, one: Standing) -> None:
        """Read a note that is known to be indexed."""
        note = await self.ask("get", lambda: client.get(one.place.path, agent=one.place.agent))
        if note is None or not one.is_known or not one.stands or one.waits:
            return
        if self.ledger.is_as(one) and one.word not in note.text:
            self.met.wrong.append(f"get of {one.place.path}, which holds {one.word}: {note}")


def _count(counted: dict[str, int], kind: str) -> None:
    counted[kind] = counted.get(kind, 0) + 1


async def seek(asker: Asker, client: AsyncClient, rng: Random, stop: asyncio.Event) -> None:
    """Look for what was written, the newest first, and ask this and that."""
    while not stop.is_set():
        words = asker.ledger.now()
        # Half of the time one of the last few, which may not be indexed yet; else any.
        one = rng.choice(words[-6:]) if rng.random() < 0.5 else rng.choice(words)
        kind = rng.random()
        if kind < 0.6:
            await asker.look_for(client, one)
        elif kind < 0.75:
            await asker.read(client, one)
        elif kind < 0.9:
            question = rng.choice(_QUESTIONS)
            await asker.ask("question", lambda: client.search(question, agent=one.place.agent))  # noqa: B023 - awaited at once
        elif kind < 0.95:
            await asker.ask("explain", lambda: client.explain(one.word, agent=one.place.agent))  # noqa: B023 - awaited at once
        else:
            await asker.ask("status", client.status)
        await asyncio.sleep(_PAUSE_S * rng.random())


async def seek_beside(asker: Asker, client: Client, rng: Random, stop: asyncio.Event) -> None:
    """Look for words by a client of the other kind."""
    while not stop.is_set():
        await asker.look_for_beside(client, rng.choice(asker.ledger.now()))
        await asyncio.sleep(_PAUSE_S * rng.random())


async def come_and_go(asker: Asker, rng: Random, stop: asyncio.Event) -> None:
    """Connect, ask, and do not wait for the answer."""
    while not stop.is_set():
        try:
            vanish(
                asker.socket, Search(query=rng.choice(_QUESTIONS), agent="main"), rng.choice((0.3, 0.9, 1.0))
            )
        except (ConnectionLost, DaemonNotRunning):
            await asyncio.sleep(_AWAY_S)
        except BrokenPipeError:
            pass  # it went away first
        await asyncio.sleep(10 * _PAUSE_S * rng.random())


class Steward:
    """Has indexes synced and rebuilt, and embedding paused; and knows what he was told."""

    def __init__(self, asker: Asker, client: AsyncClient, rng: Random) -> None:
        """Nothing is asked yet."""
        self._asker = asker
        self._client = client
        self._rng = rng
        self._is_paused: bool | None = False  # None: he was not told

    async def work(self, stop: asyncio.Event) -> None:
        """Do this and that."""
        acts = {
            self.sync: 5,
            self._hurry: 2,
            self._sync_by_force: 1,
            self._rebuild: 2,
            self._count: 1,
            self._pause: 2,
            self.resume: 3,
            self._look: 4,
            self._warm: 1,
        }
        while not stop.is_set():
            [act] = self._rng.choices(list(acts), list(acts.values()))
            await act()
            await asyncio.sleep(4 * _PAUSE_S * self._rng.random())

    async def sync(self) -> bool:
        """All that stands in files now is in every later answer; whether it was answered."""
        return await self._sync(force=False)

    async def _sync_by_force(self) -> None:
        await self._sync(force=True)

    async def _sync(self, *, force: bool) -> bool:
        before = self._asker.ledger.now()
        told = await self._asker.ask("sync", lambda: self._client.sync(force=force, vectors=False))
        if told is not None:
            for one in before:
                self._asker.ledger.confirm(one)
        return told is not None

    async def _hurry(self) -> None:
        await self._asker.ask("sync without waiting", lambda: self._client.sync(wait=False))

    async def _rebuild(self) -> None:
        agent = self._rng.choice((*MINE, None))
        force = self._rng.random() < 0.4
        await self._asker.ask("reindex", lambda: self._client.reindex(agent=agent, force=force))

    async def _count(self) -> None:
        await self._asker.ask("dry run", lambda: self._client.reindex(dry_run=True))

    async def _pause(self) -> None:
        self._is_paused = None
        told = await self._asker.ask("pause", lambda: self._client.embed("pause"))
        # An agent that nobody embeds for just now cannot be paused, and the answer says so.
        if told is not None and all(told.agents[agent].state == "paused" for agent in MINE):
            self._is_paused = True

    async def resume(self) -> bool:
        """Embedding goes on; whether it was answered."""
        self._is_paused = None
        if await self._asker.ask("resume", lambda: self._client.embed("resume")) is not None:
            self._is_paused = False
        return self._is_paused is False

    async def _look(self) -> None:
        """Whether embedding rests is what he was told, by whichever daemon it was."""
        told = await self._asker.ask("status", self._client.status)
        if told is None or self._is_paused is None:
            return
        states = {agent: told.agents[agent].embedding for agent in MINE}
        rests = [embedding is not None and embedding.state == "paused" for embedding in states.values()]
        if any(each is not self._is_paused for each in rests):
            self._asker.met.wrong.append(f"embedding was to be paused: {self._is_paused}; it is: {states}")

    async def _warm(self) -> None:
        key = f"agent:{self._rng.choice(MINE)}:{self._rng.randrange(1000)}"
        await self._asker.ask("warm", lambda: self._client.warm(key))


async def until_answered(question: Callable[[], Awaitable[bool]]) -> None:
    """Ask until there is an answer."""
    await until_awaited(question, TIMEOUT_S)
