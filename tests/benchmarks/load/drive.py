"""Holds a daemon under load from its first request to the comparison with a fresh index."""

import asyncio
import os
import shutil
from collections.abc import AsyncIterator, Sequence
from contextlib import AsyncExitStack, asynccontextmanager
from functools import partial
from pathlib import Path
from random import Random

import msgspec

from memd_client import AsyncClient, Client
from tests.benchmarks import notes
from tests.benchmarks.load.beside import Beside, settings
from tests.benchmarks.load.outcome import Outcome
from tests.benchmarks.load.plan import Plan, Seen
from tests.benchmarks.load.requests import Requests, finds
from tests.daemon import lag
from tests.daemon.contents import contents, differences
from tests.daemon.hunt import Hunt
from tests.daemon.process import Daemon
from tests.redact.corpus import Sample, samples
from tests.wait import until

TIMEOUT_S = 60.0  # of a client: with all of them asking at once, the last waits for all others
_REBUILT_S = 600.0  # for which a rebuild is waited at the end
_SECRETS = 400
_LENGTH = 12  # of a secret that is no word by chance


def run(home: Path, plan: Plan) -> Outcome:
    """Hold a daemon on a scratch directory under load.

    Args:
        home: An empty directory, whose path is short enough for a socket.
        plan: How much load.
    """
    daemon = Daemon(home, entry="tests.daemon.probed", settings=settings(home))
    notes.generate(daemon.workspace, chunks=plan.chunks)
    secrets = _secrets(plan.seed)
    hunt = Hunt(secrets)
    index = daemon.state / "agents" / "main.sqlite"
    measured = home / "lag.json"
    with daemon.start(environ={"MEMD_TEST_LAG": str(measured)}):
        with daemon.client(timeout=None) as client:
            client.sync()
        seen = asyncio.run(_drive(daemon, plan, secrets))
        with daemon.client(timeout=None) as client:
            until(lambda: not client.status().agents["main"].rebuild, _REBUILT_S)
            client.sync()
            lost, ghosts = _lost(client, seen)
            until(lambda: not hunt.met(_log_of(index)), TIMEOUT_S)
        daemon.stop()
        printed = daemon.printed()
        leaked = sorted(hunt.met_below(daemon.state)) + ["what it printed"] * bool(hunt.met(printed.encode()))
        grown, size = contents(index), index.stat().st_size
        shutil.rmtree(daemon.state)
        watched = msgspec.json.decode(measured.read_bytes(), type=lag.Lag)
        daemon.start(environ={"MEMD_TEST_LAG": os.devnull})
        with daemon.client(timeout=None) as client:
            client.sync()
        daemon.stop()
        unlike = differences(grown, contents(index))
    return Outcome(
        seen,
        lost,
        ghosts,
        unlike,
        leaked,
        _errors(printed),
        (size, index.stat().st_size),
        len(printed),
        watched,
    )


def _secrets(seed: int) -> list[Sample]:
    return [one for one in samples(seed) if len(one.value) >= _LENGTH][:: 1 + 20_000 // _SECRETS]


def _log_of(index: Path) -> bytes:
    log = Path(f"{index}-wal")
    return log.read_bytes() if log.exists() else b""


def _lost(client: Client, seen: Seen) -> tuple[list[str], list[str]]:
    """The words that are not found, and those that are though they are in no file any more."""
    standing = [*seen.written.values(), *seen.spoken]
    # Others may share a bucket of the hashing embedder with it: every hit there is counts.
    search = partial(client.search, max_results=50, min_score=0, max_chars=0)
    lost = [word for word in standing if not finds(search(word).results, word)]
    return lost, [word for word in sorted(seen.overwritten) if finds(search(word).results, word)]


def _errors(printed: str) -> list[str]:
    signs = ('"level":"error"', '"level":"critical"', "Traceback")
    return [line[:300] for line in printed.splitlines() if any(sign in line for sign in signs)]


async def _drive(daemon: Daemon, plan: Plan, secrets: list[Sample]) -> Seen:
    """Let the clients loose."""
    seen, rng = Seen(), Random(plan.seed)
    async with _connected(daemon, plan.clients) as clients:
        work = Requests(daemon, seen, rng)
        async with asyncio.TaskGroup() as tasks:
            beside = Beside(daemon, plan, seen, secrets)
            for each in beside.all:
                tasks.create_task(each())
            # In this order: had memory not grown by then, it has no reason to grow later.
            await _all_at_once(clients, work, plan.seconds / 4)
            beside.note_settled()
            await _at_random(clients, work, plan, rng)
    return seen


@asynccontextmanager
async def _connected(daemon: Daemon, number: int) -> AsyncIterator[list[AsyncClient]]:
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(socket=daemon.socket, timeout=TIMEOUT_S))
            for _ in range(number)
        ]
        for client in clients:
            await client.status()  # a client connects when it first asks
        yield clients


async def _at_random(clients: Sequence[AsyncClient], work: Requests, plan: Plan, rng: Random) -> None:
    """Requests at the moments of a Poisson process, each of some client."""
    loop = asyncio.get_running_loop()
    due = loop.time()
    end = due + 0.75 * plan.seconds
    async with asyncio.TaskGroup() as tasks:
        while (due := due + rng.expovariate(plan.rate)) < end:
            await asyncio.sleep(max(0.0, due - loop.time()))
            tasks.create_task(work.one(rng.choice(clients), f"at {plan.rate:g} a second"))


async def _all_at_once(clients: Sequence[AsyncClient], work: Requests, seconds: float) -> None:
    loop = asyncio.get_running_loop()
    end = loop.time() + seconds

    async def ask(client: AsyncClient) -> None:
        while loop.time() < end:
            await work.one(client, f"{len(clients)} at once")

    async with asyncio.TaskGroup() as tasks:
        for client in clients:
            tasks.create_task(ask(client))
