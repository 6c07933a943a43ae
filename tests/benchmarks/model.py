"""How long the bundled model takes for a question: what a search takes with it, beside the rest."""

import asyncio
import os
from collections.abc import Iterator
from random import Random

from memd.providers.local import provider as local
from memd.runtime.startup import prepare_environment
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.notes import QUESTIONS

ROUNDS = 5


def measure() -> Iterator[Figure]:
    """The questions of the other measurements, each by itself, the model being loaded."""
    prepare_environment(os.environ)
    yield milliseconds(
        "the vector of a question, bundled model", asyncio.run(_embedded()), note="add it to a search"
    )


async def _embedded() -> Samples:
    provider = local.build("", Random(1))
    await provider.embed_query("loads the model")
    samples = Samples()
    for _ in range(ROUNDS):
        for question in QUESTIONS:
            with samples.timed():
                await provider.embed_query(question.text)
    await provider.close()
    return samples
