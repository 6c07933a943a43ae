"""`memd run` with an embedder that fails in a way that nobody expects, and quotes what it was given."""

import sys
from collections.abc import Sequence
from pathlib import Path

from memd import daemon
from memd.config import AgentSettings
from memd.embed.choose import Choice
from memd.embed.provider import Vectors
from tests.fakes import HashingProvider


class CrashingProvider(HashingProvider):
    """Bears no passage."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        raise ZeroDivisionError("\n".join(texts))


def choose(_: AgentSettings) -> Choice:
    """The embedder that crashes."""
    return Choice(CrashingProvider(), None)


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
