"""What goes on beside the many clients: rebuilds, transcripts that grow, somebody who watches, clients that come and go."""

import asyncio
import math
from collections.abc import Callable, Coroutine
from pathlib import Path
from random import Random
from typing import Any

from memd_client import AsyncClient, MemdClientError
from memd_client.messages import Search, WireMessage
from tests.benchmarks import notes
from tests.benchmarks.load.plan import Plan, Seen
from tests.benchmarks.load.vitals import look
from tests.daemon.agentday import MORNING
from tests.daemon.process import Daemon
from tests.fakes.homes import ClaudeCode, ClaudeCodeSession, Codex, CodexSession
from tests.redact.corpus import Sample
from tests.vanishing import vanish

# Of the time: rebuilds while all ask at once, and others while they come at random; one embeds everything again. The
# allocator keeps some of what each of the first few took: forty in a row come to rest after half of them, most of it after
# four, and so memory is judged once these are over, whenever that is.
REBUILDS = ((0.03, False), (0.08, False), (0.14, False), (0.2, False), (0.5, True), (0.8, False))
DRY_RUN = 0.4
_SETTLING = 4  # the first of these
_LOOKS = 200  # at what the daemon takes, evenly over the time
_WATCH_S = 1.0  # between two looks at the status, as `status --watch` has it
_GO_S = 0.4  # between two clients that go away before they have their answer
_HOOK_S = 0.5  # between two that ask once and are gone, as a hook does
_SAY_S = 0.25  # between two exchanges in transcripts
_OVER_S = 0.05  # between two looks at whether a rebuild is over
_TIMEOUT_S = 60.0

_Session = ClaudeCodeSession | CodexSession
Work = Callable[[], Coroutine[Any, Any, None]]


class Beside:
    """Everything that is done until the time is over."""

    def __init__(self, daemon: Daemon, plan: Plan, seen: Seen, secrets: list[Sample]) -> None:
        """Nothing is done yet.

        Args:
            daemon: That is under load.
            plan: How much.
            seen: Where it is noted.
            secrets: What is said in transcripts, and must not be found anywhere.
        """
        self._daemon = daemon
        self._plan = plan
        self._seen = seen
        self._rng = Random(plan.seed)
        self._secrets = secrets
        self._loop = asyncio.get_running_loop()
        self._began = self._loop.time()
        self._end = self._began + plan.seconds

    @property
    def all(self) -> list[Work]:
        """What goes on at once, each to the end of the time."""
        return [
            self._rebuild,
            self._count,
            self._talk,
            self._watch,
            self._look,
            self._hook,
            self._come_and_go,
        ]

    def note_settled(self) -> None:
        """Say that something is over of which memory grows at first."""
        self._seen.settled_s = max(self._seen.settled_s, self._loop.time() - self._began)

    async def _rebuild(self) -> None:
        async with self._client() as client:
            for number, (share, force) in enumerate(REBUILDS):
                if number == _SETTLING:
                    await self._rebuilt(client)
                await self._until(share)
                await self._ask("reindex --force" if force else "reindex", client.reindex(force=force))

    async def _rebuilt(self, client: AsyncClient) -> None:
        """Wait until no rebuild is under way; where the time is over before, memory has not settled."""
        while await self._pause(_OVER_S):
            if (await client.status()).agents["main"].rebuild is None:
                self.note_settled()
                return
        self._seen.settled_s = math.inf

    async def _count(self) -> None:
        async with self._client() as client:
            await self._until(DRY_RUN)
            await self._ask("reindex --dry-run", client.reindex(dry_run=True))

    async def _watch(self) -> None:
        async with self._client() as client:
            while await self._pause(_WATCH_S):
                await self._ask("status", client.status())

    async def _hook(self) -> None:
        while await self._pause(_HOOK_S):
            async with self._client() as client:
                question = self._rng.choice(notes.QUESTIONS).text
                await self._ask(
                    "search by a client that is gone then", client.search(question, max_chars=2000)
                )

    async def _come_and_go(self) -> None:
        while await self._pause(_GO_S):
            question = Search(query=self._rng.choice(notes.QUESTIONS).text)
            try:
                vanish(self._daemon.socket, question, self._rng.choice((0.2, 0.7, 1.0, 1.0)))
            except (MemdClientError, OSError) as error:
                self._seen.errors[f"to connect and go: {type(error).__name__}: {error}"] += 1
            self._seen.beside["client that went away"] += 1

    async def _talk(self) -> None:
        """Three sessions go on, and secrets are said in them; one after the other is compressed."""
        claude, codex = ClaudeCode(self._daemon.home), Codex(self._daemon.home)
        at = MORNING
        rollout = codex.session(at=at)
        others = [claude.session(at=at), claude.session("/home/li/site", at=at)]
        number = 0
        while await self._pause(_SAY_S):
            number += 1
            at += 60
            session = self._rng.choice(list[_Session]([rollout, *others]))
            word, secret = f"spoken{number:06}x", self._rng.choice(self._secrets)
            session.user(f"What of {word}?\n\n{secret.text}", at)
            session.assistant("I am not certain.", at=at + 1)
            self._seen.spoken.append(word)
            self._seen.beside["exchange in a transcript"] += 1
            if number % 40 == 0:
                rollout.compress()
                rollout = codex.session(at=at)

    async def _look(self) -> None:
        index = self._daemon.state / "agents" / "main.sqlite"
        while await self._pause(self._plan.seconds / _LOOKS):
            at_s = self._loop.time() - self._began
            self._seen.vitals.append(look(at_s, self._daemon.process.pid, index))

    def _client(self) -> AsyncClient:
        return AsyncClient(socket=self._daemon.socket, timeout=_TIMEOUT_S)

    async def _ask(self, kind: str, question: Coroutine[Any, Any, WireMessage]) -> None:
        try:
            await question
        except MemdClientError as error:
            self._seen.errors[f"{kind}: {type(error).__name__}: {error}"] += 1
        self._seen.beside[kind] += 1

    async def _pause(self, seconds: float) -> bool:
        """Wait, but not beyond the end; whether there is time left."""
        await asyncio.sleep(max(0.0, min(seconds, self._end - self._loop.time())))
        return self._loop.time() < self._end

    async def _until(self, share: float) -> None:
        """Wait for a moment, as a share of the time."""
        await asyncio.sleep(max(0.0, self._began + share * self._plan.seconds - self._loop.time()))


def settings(home: Path) -> str:
    """TOML of an agent that has what is said, too."""
    paths = ", ".join(f'"{home / name}"' for name in (".claude/projects", ".codex/sessions"))
    return f'sources = ["memory", "sessions"]\nsessions = {{ paths = [{paths}], idle_seconds = 2 }}'
