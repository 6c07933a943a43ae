"""Twenty agents on one daemon: each searches fifty times, and writes notes that the others and itself find.

    memd-ctl up ~/agent
    python twenty_agents.py

The agents of the daemon are shared out among the twenty, each of whom has a connection of its own, as twenty processes
would. Notes are appended to today's note of each workspace, so point it at a scratch one.
"""

import asyncio
import itertools
import sys
import time
from collections.abc import Sequence
from datetime import UTC, datetime

from memd_client import AsyncClient, MemdClientError
from memd_client.context.daily_note import append_daily_note

AGENTS = 20
SEARCHES = 50
SEARCHES_A_WRITE = 10


async def main() -> int:
    """Run all agents at once, and count; return exit status 1 if anything went wrong."""
    async with AsyncClient() as memd:
        known = (await memd.status()).agents
    began = time.monotonic()
    places = itertools.cycle(sorted((agent, status.workspace) for agent, status in known.items()))
    lives = [live(number, *next(places)) for number in range(AGENTS)]
    waits: list[float] = []
    failed = 0
    for life in await asyncio.gather(*lives, return_exceptions=True):
        if isinstance(life, MemdClientError):
            print(life, file=sys.stderr)
            failed += 1
        elif isinstance(life, BaseException):
            raise life
        else:
            waits += life
    print(summary(waits, failed, time.monotonic() - began))
    return 1 if failed else 0


async def live(number: int, agent: str, workspace: str) -> list[float]:
    """Run one agent, which searches and writes notes; return the time of each search in seconds."""
    waits = []
    async with AsyncClient(timeout=60) as memd:
        for step in range(SEARCHES):
            query = f"what did agent {number} decide?"
            fact = f"agent{number}step{step}"
            if is_write := step % SEARCHES_A_WRITE == 0:
                text = f"- Agent {number} decided on {fact}."
                await asyncio.to_thread(append_daily_note, workspace, text, datetime.now(UTC), UTC)
                query = fact
            began = time.monotonic()
            found = await memd.search(query, max_results=3, agent=agent)
            waits.append(time.monotonic() - began)
            # What was written before a search is in its answer, or the answer says that it may not be.
            if is_write and not found.stale and not any(fact in hit.snippet for hit in found.results):
                raise MemdClientError(f"{fact} was written, and is not found.")
    return waits


def summary(waits: Sequence[float], failed: int, took_s: float) -> str:
    """Format the figures on one line."""
    slow = sorted(waits)[-max(1, len(waits) // 100) :]
    return (
        f"{len(waits)} searches by {AGENTS} agents in {took_s:.1f} s, {failed} agents failed; "
        f"99 of 100 answers came within {1000 * min(slow, default=0):.0f} ms"
    )


if __name__ == "__main__":
    sys.exit(asyncio.run(main()))
