"""The process beside the daemons: it writes and asks while they die, and sees at the end whether they were truthful."""

import asyncio
import signal
from collections.abc import Sequence
from contextlib import AsyncExitStack
from random import Random

import msgspec

from memd_client import AsyncClient, Client
from tests.faults.life import TIMEOUT_S
from tests.faults.mixed.asking import (
    Asker,
    Met,
    Steward,
    come_and_go,
    seek,
    seek_beside,
    until_answered,
)
from tests.faults.mixed.course import Course
from tests.faults.mixed.household import MINE, Household, changed
from tests.faults.mixed.ledger import Ledger
from tests.faults.mixed.writing import Writer

ENOUGH = signal.SIGUSR1
"""Tells this process to write no more; the next daemon is the last."""

_SEEKERS = 3
_STEP_S = 0.03  # between two changes, at most
_LOOKED_FOR = 120  # words, at the end


class Seen(msgspec.Struct):
    """What it has to tell."""

    met: Met
    changes: int  # of files
    sources: dict[str, str]  # each file with what tells a change of it, once nothing is written any more
    notes: dict[str, list[str]]  # agent -> the notes that it has
    known: int  # words that a daemon had said it has, at the end of its lives


def be(household: Household, course: Course, secrets: Sequence[str]) -> int:
    """Be that process; its exit status."""
    household.move_in()
    asyncio.run(_live(household, course, secrets))
    return 0


async def _live(household: Household, course: Course, secrets: Sequence[str]) -> None:
    stop = asyncio.Event()
    asyncio.get_running_loop().add_signal_handler(ENOUGH, stop.set)
    rng = Random(course.seed)
    ledger, met = Ledger(), Met()
    writer = Writer(household, ledger, Random(rng.random()), secrets)
    writer.begin()
    household.begun.touch()
    asker = Asker(household.socket, ledger, met)
    async with AsyncExitStack() as stack:
        clients = [
            await stack.enter_async_context(AsyncClient(household.socket, timeout=TIMEOUT_S))
            for _ in range(_SEEKERS + 2)
        ]
        beside = stack.enter_context(Client(household.socket, timeout=TIMEOUT_S))
        mine, stewards, *others = clients
        steward = Steward(asker, stewards, Random(rng.random()))
        async with asyncio.TaskGroup() as tasks:
            tasks.create_task(_write(household, writer, asker, mine, Random(rng.random()), stop))
            tasks.create_task(steward.work(stop))
            tasks.create_task(seek_beside(asker, beside, Random(rng.random()), stop))
            tasks.create_task(come_and_go(asker, Random(rng.random()), stop))
            for client in others:
                tasks.create_task(seek(asker, client, Random(rng.random()), stop))
        writer.finish()
        met.wrong += [f"{file} is not what was written there" for file in writer.surprises()]
        seen = Seen(
            met,
            writer.changes,
            household.sources(),
            {agent: writer.notes(agent) for agent in MINE},
            sum(one.is_known for one in ledger.now()),
        )
        household.quiet.touch()
        await _see_the_end(asker, steward, clients, rng)
    household.seen.write_bytes(msgspec.json.encode(seen))


async def _write(
    household: Household, writer: Writer, asker: Asker, client: AsyncClient, rng: Random, stop: asyncio.Event
) -> None:
    """Change files; now and then look at once for what was written, as an agent does that has just learnt something."""
    while not stop.is_set():
        before = household.sources()
        await asyncio.sleep(_STEP_S * rng.random())
        if touched := changed(before, household.sources()):
            asker.met.wrong.append(f"files that nobody here has changed are not what they were: {touched}")
        writer.step()
        if rng.random() < 0.3:
            await asker.look_for(client, asker.ledger.now()[-1])


async def _see_the_end(asker: Asker, steward: Steward, clients: Sequence[AsyncClient], rng: Random) -> None:
    """The last daemon: every client finds it by itself, and what others have told is true."""

    async def greet(client: AsyncClient) -> None:
        async def has_answered() -> bool:
            return await asker.ask("status at the end", client.status) is not None

        await until_answered(has_answered)

    for client in clients:
        await greet(client)
    for _ in range(2):
        words = asker.ledger.now()
        for one in rng.sample(words, min(_LOOKED_FOR, len(words))):
            if not await asker.look_for(clients[0], one):
                asker.met.wrong.append("the last daemon went away")
        # The second time, everything is known.
        await until_answered(steward.resume)
        await until_answered(steward.sync)
