"""The daemon with an embedder that puts no two texts equally far from a question."""

import sys
from collections.abc import Sequence
from hashlib import blake2b
from pathlib import Path

import numpy as np

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.providers.provider import Vectors
from tests.fakes import HashingProvider

SMALL = 1e-3  # beside the length of a vector, 1


class UntiedProvider(HashingProvider):
    """Adds to the vector of each passage a small one, which depends on its text."""

    async def embed_passages(self, texts: Sequence[str]) -> Vectors:
        vectors = await super().embed_passages(texts)
        seeds = [int.from_bytes(blake2b(text.encode(), digest_size=8).digest()) for text in texts]
        noise = [np.random.default_rng(seed).standard_normal(vectors.shape[1], np.float32) for seed in seeds]
        return vectors + np.float32(SMALL) * np.array(noise, np.float32)


def choose(_: AgentSettings) -> ProviderChoice:
    """The embedder."""
    return ProviderChoice(UntiedProvider(), None)


if __name__ == "__main__":
    config, state, socket = (Path(argument) for argument in sys.argv[1:])
    sys.exit(daemon.main(config=config, state_dir=state, socket=socket, choose=choose))
