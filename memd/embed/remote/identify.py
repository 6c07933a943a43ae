"""What a remote model is like, found out by asking it; and whether it still is the same one."""

import msgspec
import numpy as np

from memd.embed import probe
from memd.embed.provider import Calibration, Vector, Vectors
from memd.embed.remote.asker import Asker
from memd.embed.remote.call import Side
from memd.embed.remote.packing import pieces, requests, whole
from memd.embed.remote.retry import INDEXING, Retries

TIMEOUT_S = 60.0  # a server may have to load the model first


class Portrait(msgspec.Struct, frozen=True):
    """What the answers of a model have told about it."""

    dimensions: int
    calibration: Calibration
    probe: bytes  # the vector of probe.ANSWERS[0], float32, little-endian
    generation: int = 0  # how often the model behind the name turned out to be another one


async def identify(asker: Asker, before: Portrait | None, *, retries: Retries = INDEXING) -> Portrait:
    """Ask a model for a few vectors, about 1,500 tokens the first time and 25 later.

    Args:
        asker: Whom to ask.
        before: What was found out earlier, by name; None: nothing is known.
        retries: How patient a request is.

    Returns:
        The same portrait where the model is the same, else one of the next generation.

    Raises:
        EmbedUnavailable, EmbedTerminal, TooMuch, Unacceptable: nothing was found out.
    """
    if before is not None:
        [first] = await _embed(asker, probe.ANSWERS[:1], Side.DOCUMENT, None, retries)
        if probe.same_model(_vector(before.probe), first):
            return before
    answers = await _embed(asker, probe.ANSWERS, Side.DOCUMENT, None, retries)
    questions = await _embed(asker, probe.QUESTIONS, Side.QUERY, answers.shape[1], retries)
    return Portrait(
        dimensions=answers.shape[1],
        calibration=probe.calibration(questions, answers),
        probe=np.ascontiguousarray(answers[0], "<f4").tobytes(),
        generation=0 if before is None else before.generation + 1,
    )


async def _embed(
    asker: Asker, texts: tuple[str, ...], side: Side, dimensions: int | None, retries: Retries
) -> Vectors:
    some = pieces(texts, asker.dialect.input_tokens)
    rows: list[Vectors] = []
    for group in requests(some, asker.dialect.limits):
        sent = [piece.text for piece in group]
        rows.append(await asker.ask(sent, side, dimensions=dimensions, timeout_s=TIMEOUT_S, retries=retries))
        dimensions = rows[0].shape[1]
    return whole(some, np.concatenate(rows), len(texts))


def _vector(stored: bytes) -> Vector:
    return np.frombuffer(stored, "<f4")
