"""`memd run` that fails in a way that nobody expects when it stores vectors, and quotes what it was given."""

import sys
from pathlib import Path
from typing import NoReturn

from memd import daemon
from memd.config.settings import AgentSettings
from memd.embedding.queue.agent_backlog import AgentBacklog, EmbedRequest
from memd.embedding.queue.results import ResultWriter
from memd.providers.choose import ProviderChoice
from tests.fakes import HashingProvider


async def crash(
    self: ResultWriter, backlog: AgentBacklog, request: EmbedRequest, outcome: object
) -> NoReturn:
    """Bear no passage."""
    raise ZeroDivisionError("\n".join(request.texts.values()))


def choose(_: AgentSettings) -> ProviderChoice:
    """An embedder of which nothing is wrong."""
    return ProviderChoice(HashingProvider(), None)


if __name__ == "__main__":
    ResultWriter.settle = crash  # type: ignore[method-assign]
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
