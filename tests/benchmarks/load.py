"""Holds a daemon under the load of many clients, and judges whether it bore it.

    python -m tests.benchmarks.load [--seconds 60] [--clients 500] [--chunks 20000] [--rate 30]

For a quarter of the time each client asks again as soon as it has its answer. Then requests come at random moments, at a
given rate, whether or not earlier ones are answered, as they do from clients that know nothing of each other. Most ask
a question, some read a note, some write one and look for it at once.

The clients are connections of one process beside the daemon's. The exit status is 1 where something was not borne.
"""

import argparse
import asyncio
import os
import shutil
import sys
import tempfile
from collections import Counter
from collections.abc import AsyncIterator, Awaitable, Callable, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from itertools import count
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from memd_client import AsyncClient, Hit, MemdClientError
from tests.benchmarks import notes
from tests.benchmarks.figures import Figure, Samples, milliseconds, table
from tests.benchmarks.memory import resident_bytes
from tests.daemon import lag
from tests.daemon.contents import contents, differences
from tests.daemon.process import Daemon

Work = Literal["search", "get", "edit"]

SHARES: dict[Work, float] = {"search": 0.75, "get": 0.15, "edit": 0.10}
NOTES = 16  # that are written, again and again: an agent that searches at once finds what it wrote in the newest few
PATIENCE_S = 60.0  # of a client: with all of them asking at once, the last waits for all others
GROWTH = 0.15  # of the resident memory, from a quarter of the time to its end
GROWTH_BYTES = 24_000_000  # or so much, which a small daemon may take for its buffers


class Plan(msgspec.Struct, frozen=True):
    """What is asked of the daemon."""

    clients: int = 500
    seconds: float = 60.0
    chunks: int = 20_000
    rate: float = 30.0  # requests a second, of all clients together, while they come at random
    seed: int = 1


class Seen(msgspec.Struct):
    """What the clients met."""

    took: dict[str, dict[Work, Samples]] = {}  # by the name of the phase
    errors: Counter[str] = msgspec.field(default_factory=Counter)
    unseen: list[str] = []  # words that were written, not found at once, and not called stale either
    stale: int = 0
    written: dict[str, str] = {}  # note -> the word that it holds
    overwritten: set[str] = set()  # words that no note holds any more
    resident: list[int] = []  # bytes, at even intervals


class Outcome(msgspec.Struct, frozen=True):
    """How it ended."""

    seen: Seen
    lost: list[str]  # words that were written, and are not found afterwards
    ghosts: list[str]  # words that were overwritten, and are found
    unlike: list[str]  # where the index differs from one that is made anew
    lag: lag.Lag

    @property
    def resident(self) -> tuple[int, int]:
        """Bytes after a quarter of the time, when all is loaded, and the most of its last tenth."""
        samples = self.seen.resident
        return samples[len(samples) // 4], max(samples[-(len(samples) // 10 + 1) :])


def run(home: Path, plan: Plan) -> Outcome:
    """Hold a daemon on a scratch directory under load.

    Args:
        home: An empty directory, whose path is short enough for a socket.
        plan: How much load.
    """
    daemon = Daemon(home, entry="tests.daemon.probed")
    notes.generate(daemon.workspace, chunks=plan.chunks)
    measured = home / "lag.json"
    with daemon.start(environ={"MEMD_TEST_LAG": str(measured)}):
        with daemon.client(timeout=None) as client:
            client.sync()
        seen = asyncio.run(_drive(daemon, plan))
        with daemon.client(timeout=None) as client:
            client.sync()
            lost = [word for word in seen.written.values() if not _finds(client.search(word).results, word)]
            ghosts = [word for word in sorted(seen.overwritten) if _finds(client.search(word).results, word)]
        daemon.stop()
        grown = contents(daemon.state / "agents" / "main.sqlite")
        shutil.rmtree(daemon.state)
        watched = msgspec.json.decode(measured.read_bytes(), type=lag.Lag)
        daemon.start(environ={"MEMD_TEST_LAG": os.devnull})
        with daemon.client(timeout=None) as client:
            client.sync()
        daemon.stop()
        fresh = contents(daemon.state / "agents" / "main.sqlite")
    return Outcome(seen, lost, ghosts, differences(grown, fresh), watched)


def complaints(outcome: Outcome) -> list[str]:
    """What was not borne, a sentence each; none where all was."""
    seen = outcome.seen
    told = [f"{number} requests failed: {error}" for error, number in seen.errors.most_common(5)]
    for words, what in (
        (seen.unseen, "written, not found at once, and not called stale"),
        (outcome.lost, "written and not found afterwards"),
        (outcome.ghosts, "overwritten and found afterwards"),
    ):
        if words:
            told.append(f"{len(words)} words were {what}: {', '.join(words[:5])}")
    if outcome.unlike:
        told.append(f"{len(outcome.unlike)} differences from a fresh index: {'; '.join(outcome.unlike[:5])}")
    early, late = outcome.resident
    if late > early + max(GROWTH * early, GROWTH_BYTES):
        told.append(f"resident memory grew from {early / 1e6:.0f} to {late / 1e6:.0f} MB")
    return told


def report(outcome: Outcome) -> str:
    """Everything that was seen, for a person."""
    seen = outcome.seen
    figures: list[Figure] = [
        milliseconds(
            f"{work}, {phase}", samples, note=f"{len(samples)} times, longest {1000 * max(samples):.0f} ms"
        )
        for phase, works in seen.took.items()
        for work, samples in works.items()
        if samples
    ]
    early, late = outcome.resident
    return "\n".join(
        [
            table(figures),
            f"{len(seen.written) + len(seen.overwritten)} edits; {seen.stale} answers said that they were stale",
            f"resident memory: {early / 1e6:.0f} MB after a quarter of the time, {late / 1e6:.0f} MB at the end",
            lag.told(outcome.lag),
        ]
    )


async def _drive(daemon: Daemon, plan: Plan) -> Seen:
    """Let the clients loose."""
    seen, rng = Seen(), Random(plan.seed)
    async with _connected(daemon, plan.clients) as clients:
        work = _Requests(daemon, seen, rng)
        watching = asyncio.create_task(_watch_memory(daemon.process.pid, seen, plan.seconds / 100))
        try:
            # In this order: had memory not grown by then, it has no reason to grow later.
            await _all_at_once(clients, work, plan.seconds / 4)
            await _at_random(clients, work, plan, rng)
        finally:
            watching.cancel()
    return seen


@asynccontextmanager
async def _connected(daemon: Daemon, number: int) -> AsyncIterator[list[AsyncClient]]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(socket=daemon.socket, timeout=PATIENCE_S))
            for _ in range(number)
        ]
        for client in clients:
            await client.status()  # a client connects when it first asks
        yield clients


async def _watch_memory(pid: int, seen: Seen, every_s: float) -> None:
    while True:
        seen.resident.append(resident_bytes(pid))
        await asyncio.sleep(every_s)


async def _at_random(clients: Sequence[AsyncClient], work: "_Requests", plan: Plan, rng: Random) -> None:
    """Requests at the moments of a Poisson process, each of some client."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    end = due + 0.75 * plan.seconds
    async with asyncio.TaskGroup() as tasks:
        while (due := due + rng.expovariate(plan.rate)) < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.create_task(work.one(rng.choice(clients), f"at {plan.rate:g} a second"))


async def _all_at_once(clients: Sequence[AsyncClient], work: "_Requests", seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def ask(client: AsyncClient) -> None:
        while loop.time() < end:
            await work.one(client, f"{len(clients)} at once")

    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(ask(client))


class _Requests:
    """What the clients ask, one request at a time."""

    def __init__(self, daemon: Daemon, seen: Seen, rng: Random) -> None:
        self._directory = daemon.workspace
        self._paths = sorted(
            path.relative_to(daemon.workspace).as_posix() for path in daemon.workspace.rglob("*.md")
        )
        self._seen = seen
        self._rng = rng
        self._numbers = count()

    async def one(self, client: AsyncClient, phase: str) -> None:
        """One request; how long it took, or why it failed, is noted."""
        [work] = self._rng.choices(list(SHARES), list(SHARES.values()))
        do: Callable[[AsyncClient], Awaitable[None]] = {
            "search": self._search,
            "get": self._get,
            "edit": self._edit,
        }[work]
        samples = self._seen.took.setdefault(phase, {each: Samples() for each in SHARES})[work]
        try:
            with samples.timed():
                await do(client)
        except MemdClientError as error:
            self._seen.errors[f"{work}: {type(error).__name__}: {error}"] += 1

    async def _search(self, client: AsyncClient) -> None:
        found = await client.search(self._rng.choice(notes.QUESTIONS).text)
        self._note(bool(found.results), "a question found nothing")
        self._seen.stale += found.stale

    async def _get(self, client: AsyncClient) -> None:
        note = await client.get(self._rng.choice(self._paths), lines=20)
        self._note(not note.missing, "a note that is there was called missing")

    async def _edit(self, client: AsyncClient) -> None:
        """Write a note anew and look for it, as an agent that has just written down what it learnt."""
        number = next(self._numbers)
        name, word = f"edited-{number % NOTES:02}.md", f"landmark{number:06}x"
        before = self._seen.written.get(name)
        text = f"# Edited\n\nThe word of note {number % NOTES} is {word}.\n"
        (self._directory / "memory" / name).write_text(text, encoding="utf-8")
        self._seen.written[name] = word
        if before is not None:
            self._seen.overwritten.add(before)
        # Others may share a bucket of the hashing embedder with it: the hits are more than a person would read.
        found = await client.search(word, max_results=50)
        self._seen.stale += found.stale
        # Another client may have written the same note since.
        if not found.stale and self._seen.written[name] == word and not _finds(found.results, word):
            self._seen.unseen.append(word)

    def _note(self, good: bool, trouble: str) -> None:
        if not good:
            self._seen.errors[trouble] += 1


def _finds(results: Sequence[Hit], word: str) -> bool:
    return any(word in hit.snippet for hit in results)


def main(arguments: Sequence[str]) -> int:
    """Hold a daemon under load, and print how it bore it."""
    usual = Plan()
    parser = argparse.ArgumentParser(
        prog="python -m tests.benchmarks.load", description="Hold a daemon under the load of many clients."
    )
    parser.add_argument("--seconds", type=float, default=usual.seconds, metavar="S", help="how long")
    parser.add_argument(
        "--clients", type=int, default=usual.clients, metavar="N", help="how many are connected"
    )
    parser.add_argument("--chunks", type=int, default=usual.chunks, metavar="N", help="size of the index")
    parser.add_argument(
        "--rate",
        type=float,
        default=usual.rate,
        metavar="N",
        help="requests a second of all clients together",
    )
    parser.add_argument(
        "--seed", type=int, default=usual.seed, metavar="N", help="another gives other requests"
    )
    plan = msgspec.convert(vars(parser.parse_args(arguments)), Plan)
    with tempfile.TemporaryDirectory(prefix="memd-") as home:
        outcome = run(Path(home), plan)
    sys.stdout.write(f"{report(outcome)}\n")
    unborne = complaints(outcome)
    for complaint in unborne:
        sys.stdout.write(f"NOT BORNE: {complaint}\n")
    return 1 if unborne else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
