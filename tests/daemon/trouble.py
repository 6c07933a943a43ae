"""Damages stores, and checks whether a daemon has recovered."""

import random
from collections.abc import Awaitable, Callable, MutableMapping, Sequence
from pathlib import Path
from typing import Any

import apsw
import sqlite_vec

from memd_client import AsyncClient, RequestFailed
from tests.wait import until_awaited

WORDS = ["lighthouse", "harbour", "ledger", "migration", "kettle", "violin", "orchard", "quokka", "chapel"]
RED, BLUE = "The lighthouse was painted red.\n", "The chapel was painted blue, as a novelty.\n"


def many_notes(workspace: Path, count: int) -> None:
    """Write notes of a few chunks each."""
    rng = random.Random(5)
    (workspace / "memory").mkdir(parents=True, exist_ok=True)
    for number in range(count):
        parts = (f"## Part {number}-{part}\n\n{' '.join(rng.choices(WORDS, k=80))}.\n" for part in range(4))
        (workspace / "memory" / f"{number:03}.md").write_text("\n".join(parts))


async def comes_true(ask: Callable[[], Awaitable[bool]], timeout_s: float = 20) -> None:
    """Ask until the answer is yes, with pauses, so that the daemon has time to recover."""
    await until_awaited(ask, timeout_s)


async def finds(client: AsyncClient, query: str, *paths: str) -> bool:
    """Return whether a search succeeds with these files among its hits."""
    try:
        found = await client.search(query, max_results=50)
    except RequestFailed:
        return False
    return {*paths} <= {hit.path for hit in found.results}


async def is_well(client: AsyncClient) -> bool:
    """Return whether a search is hybrid, and neither it nor status reports a problem."""
    try:
        found, status = await client.search("lighthouse red"), (await client.status()).agents["main"]
    except RequestFailed:
        return False
    return (
        found.mode == "hybrid"
        and not found.degraded
        and status.keyword.ok
        and status.rebuild is None
        and "memory/a.md" in [hit.path for hit in found.results]
    )


def harm_store(file: Path, sql: str) -> None:
    """Damage a file of memd as another program may."""
    other = apsw.Connection(str(file))
    other.set_busy_timeout(10_000)
    try:
        other.enable_load_extension(True)
        other.load_extension(sqlite_vec.loadable_path())
        other.execute(sql)
    finally:
        other.close()


def bugs(logs: Sequence[MutableMapping[str, Any]]) -> list[MutableMapping[str, Any]]:
    """Return the logged events of unexpected errors."""
    return [event for event in logs if "exc_info" in event]
