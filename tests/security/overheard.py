"""`memd run` with an embedder that writes down all it is given: what a provider far away would have been told."""

import sys
from collections.abc import Sequence
from pathlib import Path

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Vector, Vectors
from tests.fakes import HashingProvider


class Overheard(HashingProvider):
    """Remembers texts and questions in a file."""

    def __init__(self, file: Path) -> None:
        super().__init__()
        self._file = file

    def _write_down(self, texts: Sequence[str]) -> None:
        with self._file.open("a", encoding="utf-8") as file:
            file.writelines(f"{text}\n" for text in texts)

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        self._write_down(texts)
        return await super().embed_passages(texts)

    async def embed_query(self, text: str) -> Vector:
        self._write_down([text])
        return await super().embed_query(text)


def heard(home: Path) -> Path:
    """The file of a scratch directory."""
    return home / "overheard"


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])

    def choose(_: AgentSettings) -> ProviderChoice:
        """The embedder that remembers."""
        return ProviderChoice(Overheard(heard(state.parent)), None)

    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
