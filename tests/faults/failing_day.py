"""A day of a daemon whose disk fails: notes change, questions are asked, and what is answered must be true."""

import asyncio
import contextlib
import resource
import shutil
import sys
import time
from collections.abc import Awaitable
from pathlib import Path
from typing import TypeVar

import msgspec
import uvloop

from memd.runtime import logs
from memd_client import AsyncClient, RequestFailed
from memd_client.messages import Found
from tests.daemon.inprocess import running
from tests.fakes import HashingProvider
from tests.fakes.homes import ClaudeCode
from tests.faults.failing_disk import FailingDisk, Fault, Place
from tests.faults.vfs import between
from tests.store.golden.read import WORKSPACE, stores, unpack

T = TypeVar("T")

TIMEOUT_S = 60.0  # until what is over counts as not healed
_CLEAN = {"unavailable", "timed_out", "busy"}  # what may be answered instead of an answer
_SETTINGS = """
chunking = {{ tokens = 40, overlap = 10 }}
sources = ["memory", "sessions"]
sync = {{ watch_debounce_ms = 20, watch_max_wait_ms = 60, wait_ms = 1000 }}
sessions = {{ paths = ["{chats}"], delta_bytes = 0 }}
"""
_AT = 1_772_442_000.0


class Day(msgspec.Struct, frozen=True):
    """What is to happen."""

    directory: Path
    fault: Fault | None
    upgrade: bool = False  # the state directory is that of an older program
    asks: bool = False  # whoever mended the disk asks for a sync; else nobody does

    @property
    def state(self) -> Path:
        """Where the daemon keeps what is its own."""
        return self.directory / "state"

    @property
    def index(self) -> Path:
        """Of its agent."""
        return self.state / "agents" / "main.sqlite"

    @property
    def log(self) -> Path:
        """What it printed."""
        return self.directory / "log"

    @property
    def told(self) -> Path:
        """How it went."""
        return self.directory / "told.json"


class Told(msgspec.Struct):
    """How a day went."""

    counted: list[tuple[Place, int]] = []
    failed: int = 0  # operations
    wrong: list[str] = []
    refused: int = 0  # questions that had no answer
    warned: int = 0  # answers and reports that named the trouble
    healed_s: float = 0.0  # from the mending to a sound index
    stop_s: float = 0.0
    cpu_s: float = 0.0


def embedder() -> HashingProvider:
    """What embeds."""
    return HashingProvider()


def live(day: Day) -> int:
    """Be the daemon for that day, in a process that has nothing else to do; the exit status."""
    logs.configure("info", sys.stderr, terminal=False, color=False)
    told, disk = Told(), FailingDisk(day.fault)
    (day.directory / "workspace" / "memory").mkdir(parents=True, exist_ok=True)
    if day.upgrade:
        unpack(stores()[0], day.state)
        shutil.copytree(WORKSPACE, day.directory / "workspace", dirs_exist_ok=True)
    with between(disk):
        uvloop.run(_live(day, disk, told))
    told.counted, told.failed = list(disk.counted.items()), disk.failed
    used = resource.getrusage(resource.RUSAGE_SELF)
    told.cpu_s = used.ru_utime + used.ru_stime
    day.told.write_bytes(msgspec.json.encode(told))
    return 0


def come_back(day: Day) -> int:
    """Be the daemon after that, on a sound disk, until everything is indexed; the exit status."""
    logs.configure("info", sys.stderr, terminal=False, color=False)

    async def serve() -> None:
        async with running(day.directory, embedder(), settings=_settings(day)) as memd:
            report = await memd.sync()
            assert report.vectors == "complete", report
            await _Witness(day, memd, Told()).heals(asks=False)

    uvloop.run(serve())
    return 0


def _settings(day: Day) -> str:
    return _SETTINGS.format(chats=day.directory / ".claude" / "projects")


async def _live(day: Day, disk: FailingDisk, told: Told) -> None:
    async with running(day.directory, embedder(), settings=_settings(day)) as memd:
        witness = _Witness(day, memd, told)
        await witness.live()
        if day.fault is None or day.fault.lasting != "until the end":
            disk.mend()
            began = time.monotonic()
            await witness.heals(asks=day.asks)
            told.healed_s = time.monotonic() - began
        began = time.monotonic()
    told.stop_s = time.monotonic() - began


class _Witness:
    """Changes notes, asks about them, and knows what they have ever said."""

    def __init__(self, day: Day, memd: AsyncClient, told: Told) -> None:
        self._workspace = day.directory / "workspace"
        self._session = ClaudeCode(day.directory)
        self._memd = memd
        self._told = told
        # By path, the last what it says now; "": it is gone.
        self._said = {
            file.relative_to(self._workspace).as_posix(): [file.read_text(encoding="utf-8")]
            for file in self._workspace.rglob("*.md")
        }

    async def live(self) -> None:
        """The day."""
        self._write("MEMORY.md", "# House\n\nThe cat is called Mochi.\n")
        for number in range(4):
            self._write(f"memory/{number}.md", _note(number, "first"))
        session = self._session.session(at=_AT)
        session.user("the walrus is called Wanda", _AT + 60)
        await self._sync()
        await self._finds("memory/0.md", "firstword0")
        self._write("memory/0.md", _note(0, "second"))
        await self._finds("memory/0.md", "secondword0")
        self._move("memory/1.md", "memory/moved.md")
        await self._finds("memory/moved.md", "firstword1")
        self._write("memory/2.md", "")
        (self._workspace / "memory/2.md").unlink()
        await self._search("firstword2")
        session.assistant("and the heron is called Henry", at=_AT + 120)
        await self._attempt(self._memd.warm("agent:main:main"))
        await self._attempt(self._memd.reindex())
        self._write("memory/new.md", _note(9, "new"))
        await self._finds("memory/new.md", "newword9")
        with contextlib.suppress(TimeoutError):
            async with asyncio.timeout(1.5):
                while (status := await self._memd.status()).agents["main"].rebuild is not None:
                    self._told.warned += not status.agents["main"].store.ok
                    await self._search("mochi")
        await self._finds("MEMORY.md", "Mochi")
        await self._sync()

    async def heals(self, *, asks: bool) -> None:
        """Wait until nothing is wrong any more, and what was written last is found."""
        if asks:
            await self._attempt(self._memd.sync())
        began, pause = time.monotonic(), asyncio.Event()
        while complaint := await self._complaint():
            if time.monotonic() - began > TIMEOUT_S:
                self._told.wrong.append(f"not healed after {TIMEOUT_S:.0f} s: {complaint}")
                return
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(0.05):
                    await pause.wait()

    async def _complaint(self) -> str:
        whole = await self._memd.status()
        status = whole.agents["main"]
        if not status.store.ok or not whole.cache.ok or not status.keyword.ok:
            return f"{status.store.reason} {whole.cache.reason} {status.keyword.reason}"
        if status.rebuild or status.dirty or status.vectors.waiting or status.last_pass is None:
            return f"rebuild {status.rebuild}, {status.dirty} dirty, {status.vectors} {status.last_pass}"
        if status.last_pass.failed is not None:
            return f"pass {status.last_pass.failed}"
        for path, texts in self._said.items():
            if texts[-1] and path not in await self._search(texts[-1].split()[1]):
                return f"{path} is not found"
        return ""

    # --- changes

    def _write(self, path: str, text: str) -> None:
        (self._workspace / path).write_text(text, encoding="utf-8")
        self._said.setdefault(path, []).append(text)

    def _move(self, path: str, to: str) -> None:
        shutil.move(self._workspace / path, self._workspace / to)
        self._said[to] = [self._said[path][-1]]
        self._said[path].append("")

    # --- questions

    async def _attempt(self, asked: Awaitable[T]) -> T | None:
        """The answer; None: a clear refusal."""
        try:
            return await asked
        except RequestFailed as refused:
            self._told.refused += 1
            if refused.code not in _CLEAN or not str(refused):
                self._told.wrong.append(f"answered with {refused.code}: {refused}")
            return None

    async def _sync(self) -> None:
        report = await self._attempt(self._memd.sync())
        if report is not None and report.vectors != "complete":
            self._told.warned += 1

    async def _finds(self, path: str, word: str) -> None:
        """Ask for what was just written: it is found, or the answer says that it may lack something."""
        found = await self._search_whole(word)
        if found is None or found.stale or found.degraded:
            return
        current = [hit for hit in found.results if hit.path == path and word in hit.snippet]
        if not current:
            self._told.wrong.append(f"{word} is not found in {path}, and nothing is said of it: {found}")

    async def _search(self, word: str) -> set[str]:
        found = await self._search_whole(word)
        return set() if found is None else {hit.path for hit in found.results}

    async def _search_whole(self, word: str) -> Found | None:
        found = await self._attempt(self._memd.search(word, min_score=0))
        if found is None:
            return None
        self._told.warned += bool(found.degraded)
        for hit in found.results:
            if hit.source == "memory" and not any(
                hit.snippet in text for text in self._said.get(hit.path, [])
            ):
                self._told.wrong.append(f"{hit.path} has never said {hit.snippet!r}")
        [*_, last] = ["", *(hit.path for hit in found.results if hit.source == "memory")]
        if last:
            note = await self._attempt(self._memd.get(last))
            if note is not None and note.text not in {
                text.strip() for text in ("", *self._said.get(last, [])[-1:])
            }:
                self._told.wrong.append(f"{last} does not say {note.text!r}")
        return found


def _note(number: int, word: str) -> str:
    filler = "\n\n".join(f"Line {line} of the {word} ledger, {'harbour ' * 20}." for line in range(4))
    return f"# {word}word{number} stands here\n\n{filler}\n"
