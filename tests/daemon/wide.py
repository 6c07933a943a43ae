"""The daemon with an embedder whose vectors are long: a few thousand chunks weigh as much as many."""

import sys
from pathlib import Path

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from tests.fakes import HashingProvider

DIMENSIONS = 2048


def choose(_: AgentSettings) -> ProviderChoice:
    """The hashing embedder."""
    return ProviderChoice(HashingProvider(dimensions=DIMENSIONS), None)


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
