"""The daemon with the hashing embedder, measuring how long its event loop is blocked; see lag.py."""

import asyncio
import os
import sys
from collections.abc import Sequence
from pathlib import Path

import msgspec

from memd import daemon
from memd.config import AgentSettings
from memd.embed.choose import Choice
from memd.embed.provider import Vector, Vectors
from tests.daemon import lag
from tests.fakes import HashingProvider

_watching: set[asyncio.Task[None]] = set()  # the loop holds its tasks weakly


def _write(seen: lag.Lag) -> None:
    Path(os.environ["MEMD_TEST_LAG"]).write_bytes(msgspec.json.encode(seen))


class ProbedProvider(HashingProvider):
    """Begins to measure with its first question, which the loop puts when an agent starts.

    It embeds documents on a thread: what it computes is not memd's, and a real provider does that elsewhere too.
    """

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        return await asyncio.to_thread(self.embed, texts)

    async def embed_query(self, text: str) -> Vector:
        if not _watching:
            _watching.add(asyncio.create_task(lag.watch(_write, lag.unscheduled_s)))
        return await super().embed_query(text)


def choose(_: AgentSettings) -> Choice:
    """The hashing embedder, whatever is wanted."""
    return Choice(ProbedProvider(), None)


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
