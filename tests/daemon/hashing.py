"""`memd run` with a hashing embedder in place of a model."""

import gc
import sys
from pathlib import Path
from typing import NoReturn

from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from tests.fakes import HashingProvider


def choose(settings: AgentSettings) -> ProviderChoice:
    """Return no provider if the settings say so, else the hashing embedder."""
    if settings.provider == "none":
        return ProviderChoice(None, "provider = none")
    return ProviderChoice(HashingProvider(), None)


def main() -> NoReturn:
    """``hashing.py CONFIG STATE SOCKET``."""
    gc.disable()  # as `memd run` has it
    from memd import daemon  # noqa: PLC0415 - likewise

    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))


if __name__ == "__main__":
    main()
