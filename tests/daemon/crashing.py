"""`memd run` with an unexpected failure, which quotes a text, when embedding begins."""

import sys
from pathlib import Path
from typing import NoReturn

from memd import daemon
from memd.config.settings import AgentSettings
from memd.embedding.passage_queue.user_controls import UserSwitches
from memd.providers.choose import ProviderChoice
from tests.fakes import HashingProvider


async def crash(self: UserSwitches, agent: str) -> NoReturn:
    """Fail in a task of an agent."""
    home = Path(sys.argv[1]).parent
    texts = [file.read_text(encoding="utf-8") for kind in ("*.md", "*.jsonl") for file in home.rglob(kind)]
    raise ZeroDivisionError(f"{agent}: {texts}")


def choose(_: AgentSettings) -> ProviderChoice:
    """Return a hashing embedder that works."""
    return ProviderChoice(HashingProvider(), None)


if __name__ == "__main__":
    UserSwitches.read = crash  # type: ignore[method-assign]
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
