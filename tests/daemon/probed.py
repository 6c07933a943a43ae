"""The daemon with a worker that hashes in place of a model, measuring how long its event loop is blocked; see lag.py."""

import asyncio
import os
import sys
from pathlib import Path

import msgspec

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Vector
from tests.daemon import lag
from tests.fakes import hashing_worker

_watching: set[asyncio.Task[None]] = set()  # the loop holds its tasks weakly


def _write(seen: lag.Lag) -> None:
    Path(os.environ["MEMD_TEST_LAG"]).write_bytes(msgspec.json.encode(seen))


class ProbedProvider(hashing_worker.Provider):
    """Begins to measure with its first question, which the loop puts when an agent starts."""

    async def embed_query(self, text: str) -> Vector:
        if not _watching:
            _watching.add(asyncio.create_task(lag.watch(_write, lag.unscheduled_s)))
        return await super().embed_query(text)


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    provider = hashing_worker.provider(state, ProbedProvider)

    def choose(_: AgentSettings) -> ProviderChoice:
        """The hashing embedder, whatever is wanted."""
        return ProviderChoice(provider, None)

    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
