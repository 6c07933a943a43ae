"""A daemon in this process that outlives many trials: each begins with empty directories and ends in a comparison."""

import asyncio
import os
import shutil
import tempfile
from collections.abc import Coroutine, Iterator, Mapping
from contextlib import AsyncExitStack, contextmanager
from pathlib import Path
from typing import Any, TypeVar

import uvloop
from hypothesis import settings

from memd_client import AsyncClient
from memd_client.messages import AgentStatus
from tests.daemon.contents import contents, differences
from tests.daemon.inprocess import running
from tests.fakes import HashingProvider
from tests.wait import until_awaited

T = TypeVar("T")

# A trial takes some tenths of a second, where that of a pure function takes some thousandths.
few = settings(max_examples=settings().max_examples // 4)

MAIN, FRESH = "main", "fresh"
# Small chunks, so that small files have several; changes are taken in at once, and no transcript is waited for.
_SETTINGS = """
chunking = { tokens = 60, overlap = 15 }
sync = { watch_debounce_ms = 10, watch_max_wait_ms = 40, wait_ms = 10000, interval_minutes = 600 }
sources = ["memory", "sessions"]
redact = { mode = "all" }
"""
_SESSIONS = 'sessions = {{ paths = ["{chats}"], delta_bytes = 0, delta_messages = 0, idle_seconds = 1, subagents = false }}\n'


class House:
    """A daemon with two agents of the same files: one follows them, the other's index is built anew to compare."""

    def __init__(self, home: Path, runner: asyncio.Runner, client: AsyncClient) -> None:
        self.home = home
        self._runner = runner
        self._client = client

    @property
    def workspace(self) -> Path:
        """Of both agents."""
        return self.home / "workspace"

    @property
    def chats(self) -> Path:
        """Where their transcripts are."""
        return self.home / "chats"

    @property
    def socket(self) -> Path:
        """Where the daemon listens."""
        return self.home / "s"

    @property
    def client(self) -> AsyncClient:
        """Of the daemon; to be awaited within do."""
        return self._client

    def do(self, what: Coroutine[Any, Any, T]) -> T:
        """Let the daemon live until this is done."""
        return self._runner.run(what)

    def empty(self) -> None:
        """Begin with a workspace that holds one note, and with no transcript; the index knows."""
        for directory in (self.workspace / "memory", self.chats):
            for entry in directory.iterdir():
                shutil.rmtree(entry) if entry.is_dir() else entry.unlink()
        for curated in ("MEMORY.md", "USER.md"):
            (self.workspace / curated).unlink(missing_ok=True)
        (self.workspace / "memory" / "anchor.md").write_text("The anchorword stays.\n", encoding="utf-8")
        # A transcript that is damaged leaves what was known of it; here nothing shall be known, to neither agent.
        self.sync()
        self.do(self._client.sync(agent=FRESH))

    def write(self, files: Mapping[str, bytes]) -> None:
        """Write files below the home, whatever was there."""
        for path, content in files.items():
            (self.home / path).write_bytes(content)

    def sync(self) -> AgentStatus:
        """Have everything read, and find the note that is always there."""
        return self.do(self._sync())

    async def _sync(self) -> AgentStatus:
        report = await self._client.sync(agent=MAIN)
        assert report.vectors == "complete", report
        found = await self._client.search("anchorword", agent=MAIN, min_score=0)
        assert "memory/anchor.md" in {hit.path for hit in found.results}
        assert not found.stale
        assert not found.degraded, found.degraded
        return self._well((await self._client.status()).agents[MAIN])

    async def _is_rebuilt(self) -> bool:
        return (await self._client.status(agent=FRESH)).agents[FRESH].rebuild is None

    @staticmethod
    def _well(status: AgentStatus) -> AgentStatus:
        """The status of an agent of which every part works."""
        assert status.last_pass is not None
        assert status.last_pass.failed is None, status.last_pass
        parts = (status.keyword, status.vector, status.watcher, status.provider_health, status.store)
        assert all(part.ok for part in parts), parts
        return status

    def compare(self) -> None:
        """Assert that the index is the one that a first look at the files gives, and that status tells the same."""
        one, other = self.do(self._compare())
        assert (one.skipped, one.files, one.chunks) == (other.skipped, other.files, other.chunks)
        assert (one.redacted, one.sessions) == (other.redacted, other.sessions)
        stores = self.home / "state" / "agents"
        told = differences(contents(stores / f"{MAIN}.sqlite"), contents(stores / f"{FRESH}.sqlite"))
        assert not told, told[:20]

    async def _compare(self) -> tuple[AgentStatus, AgentStatus]:
        await self._client.reindex(agent=FRESH)
        await until_awaited(self._is_rebuilt, 60)
        await self._client.sync(agent=FRESH)
        await self._client.sync(agent=MAIN)
        agents = (await self._client.status()).agents
        return self._well(agents[MAIN]), self._well(agents[FRESH])


@contextmanager
def housed() -> Iterator[House]:
    """A house for as long as this lasts."""
    # No machine dies here: what is kept in memory alone is as good, and does not wait for a disk.
    memory = "/dev/shm" if os.access("/dev/shm", os.W_OK) else None
    with tempfile.TemporaryDirectory(prefix="memd-", dir=memory) as directory:
        home = Path(directory)
        for name in ("workspace/memory", "chats"):
            (home / name).mkdir(parents=True)
        agent = _SETTINGS + _SESSIONS.format(chats=home / "chats")
        settings = f'{agent}\n[agents.{FRESH}]\nworkspace = "{home}/workspace"\n{agent}\n[daemon]\nlog_level = "error"\n'
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            stack = AsyncExitStack()
            provider = HashingProvider(dimensions=16)
            client = runner.run(stack.enter_async_context(running(home, provider, settings=settings)))
            try:
                house = House(home, runner, client)
                house.empty()
                yield house
            finally:
                runner.run(stack.aclose())
