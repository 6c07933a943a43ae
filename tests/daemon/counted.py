"""`memd run` with a hashing embedder that logs its requests, and a disk that may kill the process."""

import json
import os
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NoReturn

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Vectors
from tests.daemon.disk import FaultyDisk, kills_after
from tests.fakes import HashingProvider

ASKED = "MEMD_TEST_ASKED"  # a file: a line of JSON for each request, with the texts
KILL = "MEMD_TEST_KILL"  # "end of a file's name:count": the write to it that is the last


class Counted(HashingProvider):
    """Logs each request before it answers."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        _write_down(texts)
        return await super().embed_passages(texts)


def _write_down(texts: Sequence[str]) -> None:
    with Path(os.environ[ASKED]).open("a", encoding="utf-8") as file:
        file.write(json.dumps(list(texts)) + "\n")


def choose(_: AgentSettings) -> ProviderChoice:
    """Return the hashing embedder for all settings."""
    return ProviderChoice(Counted(), None)


def main() -> NoReturn:
    """``counted.py CONFIG STATE SOCKET``."""
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    disk = FaultyDisk()
    if KILL in os.environ:
        name, count = os.environ[KILL].rsplit(":", 1)
        disk.faults[name, "write"] = kills_after(int(count))
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))


if __name__ == "__main__":
    main()
