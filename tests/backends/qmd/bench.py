"""One agent with qmd, as the daemon puts it together, without watcher and wire."""

import asyncio
import json
import os
import time
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random
from typing import Any

from memd.backends.backend import BackendAnswer, BackendEnvironment, BackendQuestion, IndexedAgent
from memd.backends.builtin import Builtin
from memd.backends.qmd.backend import QmdBackend
from memd.config.settings import AgentSettings, SyncSettings
from memd.config.settings import QmdSettings as Settings
from memd.domain_types import Kind
from memd.index_service import IndexService, index_parts
from memd.indexing.debounced_changes import DebouncedChanges
from memd.indexing.rules import rules_of
from memd.runtime.timers import Debouncer
from memd.search.searcher import Searcher
from memd.sources.roots import roots_of
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.embedding.supplies import OneSpeaker, silent
from tests.fakes import HashingProvider
from tests.wait import until_async

FINGERPRINT = Fingerprint("c1", "t1", ("memory",))
PATIENCE_MS = 60_000  # for a search; other work on the machine is no failure


class Bench:
    """The parts of one agent."""

    def __init__(
        self,
        home: Path,
        command: str,
        *,
        environ: Mapping[str, str] | None,
        qmd: Mapping[str, Any],
        **settings: Any,
    ) -> None:
        self.home = home
        self.workspace = Path(os.path.realpath(home)) / "workspace"
        (self.workspace / "memory").mkdir(parents=True, exist_ok=True)
        self.settings = AgentSettings(
            workspace=self.workspace,
            sync=SyncSettings(wait_ms=5000),
            qmd=Settings(command=command, **({"timeout_ms": PATIENCE_MS} | dict(qmd))),
            **settings,
        )
        self.roots = roots_of(self.settings)
        self.rules = rules_of(self.settings, self.roots)
        self.index = Index(home / "main.sqlite")
        pending = DebouncedChanges(Debouncer(quiet_s=1.5, cap_s=6.0), time.monotonic)
        parts = index_parts(
            "main",
            self.settings,
            self.rules,
            self.index,
            FINGERPRINT,
            pending=pending,
            providers=silent(self.settings),
            rng=Random(1),
        )
        self.index_service = IndexService("main", self.index, pending, parts)
        searcher = Searcher(self.index, self.settings, OneSpeaker(HashingProvider()))
        self.agent = IndexedAgent("main", self.settings, self.rules, self.index, self.index_service)
        self.builtin = Builtin(self.agent, searcher, silent(self.settings))
        environ = {"PATH": os.environ["PATH"], "HOME": str(home)} if environ is None else environ
        self.environment = BackendEnvironment(environ, home)
        self.qmd: QmdBackend

    @property
    def directory(self) -> Path:
        """Where qmd keeps everything."""
        return self.home / "main.qmd"

    def write(self, name: str, text: str) -> Path:
        """Write a file of the workspace."""
        file = self.workspace / name
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")
        return file

    async def settle(self) -> None:
        """Have the index follow the files."""
        async with asyncio.timeout(60):
            await self.index_service.wait_for_pass(self.index_service.request())

    async def create(self) -> QmdBackend:
        """A qmd of the agent, which does not run yet."""
        return await QmdBackend.create(self.agent, self.environment, self.builtin)

    async def ready(self) -> None:
        """Wait until qmd has taken in what there is."""
        await self.settle()
        await until_async(lambda: not self.qmd.updater.is_behind, 60)

    async def ask(
        self,
        text: str,
        *,
        max_results: int = 6,
        kinds: frozenset[Kind] = frozenset(Kind),
        min_score: float = 0.35,
        **how: Any,
    ) -> BackendAnswer:
        """Search."""
        question = BackendQuestion(
            text=text, kinds=kinds, max_results=max_results, min_score=min_score, **how
        )
        return await self.qmd.search(question)

    async def found(self, text: str, **how: Any) -> list[str]:
        """The files of the hits."""
        return [hit.path for hit in (await self.ask(text, **how)).hits]


@asynccontextmanager
async def indexing(
    home: Path,
    command: str | Path,
    *,
    environ: Mapping[str, str] | None = None,
    qmd: Mapping[str, Any] | None = None,
    **settings: Any,
) -> AsyncIterator[Bench]:
    """An agent whose index follows its files, and which has no qmd yet."""
    bench = Bench(home, str(command), environ=environ, qmd=qmd or {}, **settings)
    await bench.index.open()
    await bench.index.adopt(FINGERPRINT)
    running = asyncio.create_task(bench.index_service.run())
    try:
        yield bench
    finally:
        running.cancel()
        await asyncio.wait([running])
        await bench.index_service.stop()
        await bench.index.close()


@asynccontextmanager
async def serving(
    home: Path, command: str | Path, *, notes: Mapping[str, str] | None = None, **how: Any
) -> AsyncIterator[Bench]:
    """An agent with some notes and a qmd that knows them."""
    async with indexing(home, command, **how) as bench:
        for name, text in (notes or {}).items():
            bench.write(name, text)
        await bench.settle()
        bench.qmd = await bench.create()
        living = asyncio.create_task(bench.qmd.run())
        try:
            await bench.ready()
            yield bench
        finally:
            living.cancel()
            await asyncio.wait([living])
            await bench.qmd.close()


SECRET = "sk-ant-api03-" + "Ab3dEf6hIj9kLmN0pQr2" * 4


def transcript(directory: Path, name: str, *texts: str) -> Path:
    """A transcript of alternating turns."""
    directory.mkdir(parents=True, exist_ok=True)
    roles = ("user", "assistant")
    lines = [json.dumps({"role": roles[n % 2], "content": text}) for n, text in enumerate(texts)]
    file = directory / f"{name}.jsonl"
    file.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    return file


def lives(pid: int) -> bool:
    """Whether a process runs: one that nobody has buried yet does not."""
    try:
        return ") Z " not in Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
