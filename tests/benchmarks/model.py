"""How long the bundled model takes for a question: what a search takes with it, beside the rest; and for a passage."""

import asyncio
import os
import time
from collections.abc import Iterator
from random import Random

from memd.providers.local import provider as local
from memd.runtime.startup import prepare_environment
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.notes import QUESTIONS
from tests.training.pairs import for_joining

ROUNDS = 5
CHARACTERS, NOTES_EACH = 680, 6
TEXTS = 16  # of one call


def measure() -> Iterator[Figure]:
    """The questions of the other measurements, each by itself, the model being loaded."""
    prepare_environment(os.environ)
    yield milliseconds(
        "the vector of a question, bundled model", asyncio.run(_embedded()), note="add it to a search"
    )
    yield milliseconds(
        f"a passage of {CHARACTERS} characters, bundled model",
        asyncio.run(_indexed()),
        note="half of them Chinese, among others",
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


async def _indexed() -> Samples:
    """The time of a call, by how many texts it has."""
    provider = local.build("", Random(1))
    notes = [pair.note for pair in for_joining()]
    texts = ["\n".join(notes[at : at + NOTES_EACH])[:CHARACTERS] for at in range(0, len(notes), NOTES_EACH)]
    await provider.embed_passages(["starts the worker"])
    samples = Samples()
    for call in range(ROUNDS):
        began = time.perf_counter()
        await provider.embed_passages(texts[call * TEXTS :][:TEXTS])
        samples.append((time.perf_counter() - began) / TEXTS)
    await provider.close()
    return samples
