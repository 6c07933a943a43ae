"""A sync loop on a real directory and a real index."""

import asyncio
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from memd.config.settings import AgentSettings, SyncSettings
from memd.domain_types import Kind
from memd.index_service import IndexService, index_parts
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.rules import rules_of
from memd.runtime.timers import Debouncer
from memd.sources.root_links import RootLinks
from memd.sources.roots import configured_roots
from memd.store.files import ReplacedChunks
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd.text.memory_paths import Root
from tests.embedding.supplies import silent
from tests.store.conftest import ranked

FINGERPRINT = Fingerprint("c1", "t1", ("memory",))
EVERYTHING = frozenset(Kind)


class HeldIndex(Index):
    """Writes when it is let."""

    def __init__(self, file: Path) -> None:
        super().__init__(file)
        self.is_asked = asyncio.Event()
        self.may = asyncio.Event()

    async def replace_all(self, *args: Any, **kwargs: Any) -> list[ReplacedChunks]:
        self.is_asked.set()
        await self.may.wait()
        return await super().replace_all(*args, **kwargs)


class Bench:
    """A sync loop on a real directory and a real index, without a watcher."""

    def __init__(
        self,
        home: Path,
        *,
        max_file_mb: float = 16,
        wait_ms: int = 2000,
        index: Index | None = None,
        clock: Callable[[], float] = time.monotonic,
        marks_clock: Callable[[], float] = time.monotonic,
        **settings: Any,
    ) -> None:
        self.workspace = home / "workspace"
        (self.workspace / "memory").mkdir(parents=True)
        self.settings = AgentSettings(
            workspace=self.workspace,
            sync=SyncSettings(wait_ms=wait_ms),
            max_file_mb=max_file_mb,
            **settings,
        )
        self.index = index or Index(home / "main.sqlite")
        self.pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), marks_clock)
        configured = configured_roots(self.settings)
        self.roots: tuple[Root, ...] = configured.roots
        self.parts = index_parts(
            "main",
            self.settings,
            rules_of(self.settings, self.roots),
            self.index,
            FINGERPRINT,
            pending=self.pending,
            providers=silent(self.settings),
            rng=Random(1),
            links=RootLinks(configured.links),
            clock=clock,
        )
        self.loop = IndexService("main", self.index, self.pending, self.parts, clock)

    def write(self, name: str, text: str) -> Path:
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    async def settle(self, *, force: bool = False) -> int:
        """A pass over everything; how many files it took in."""
        async with asyncio.timeout(60):
            return (await self.loop.wait_for_pass(self.loop.request(force=force))).changed

    async def paths(self, word: str) -> set[str]:
        """The files that hold a word, as the index has it."""
        found = await ranked(self.index, f'"{word}"', 100, EVERYTHING)
        places = await self.index.read(lambda reader: reader.places([chunk_id for chunk_id, _ in found]))
        return {place.path for place in places.values()}


@asynccontextmanager
async def running(made: Bench) -> AsyncIterator[None]:
    """Have the loop of a bench run."""
    await made.index.open()
    await made.index.adopt(FINGERPRINT)
    task = asyncio.create_task(made.loop.run())
    yield
    task.cancel()
    await asyncio.wait([task])
    await made.index.close()
