"""What a remote model is like, measured by its answers to a probe; and whether it still is the same model."""

import msgspec
import numpy as np

from memd.providers import calibration as probe
from memd.providers.calibration import Bias, centred
from memd.providers.provider import Calibration, Vectors
from memd.providers.remote.dialect import TextRole
from memd.providers.remote.retrying_client import INDEXING, RetryingClient, RetryPolicy
from memd.providers.remote.split_requests import pieces, requests, whole

TIMEOUT_S = 60.0  # a server may have to load the model first


class ModelIdentity(msgspec.Struct, frozen=True):
    """What is known of a model by its answers to the probe."""

    dimensions: int
    calibration: Calibration
    probe: bytes  # the vector of probe.ANSWERS[0], float32, little-endian
    generation: int = 0  # how often the model behind the name turned out to be another one
    bias: Bias | None = None  # what its vectors are stored without; None: they are stored as they come
    version: int = 0  # of the probe


async def identify(
    client: RetryingClient, before: ModelIdentity | None, *, retries: RetryPolicy = INDEXING
) -> ModelIdentity:
    """Ask a model for a few vectors, about 6,000 tokens the first time and 25 later.

    Args:
        client: Sends the requests.
        before: What was known of the model of this name; None: nothing.
        retries: How often a request is tried.

    Returns:
        The same identity where the model is the same, else one of the next generation. Where only the texts of the probe are
        others now, what the vectors are stored without stays as it was: others would have to be paid for again.

    Raises:
        EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused: the model is not known.
    """
    is_same = has_bias = False
    if before is not None:
        [first] = await _embed(client, probe.ANSWERS[:1], TextRole.DOCUMENT, None, retries)
        is_same = probe.same_model(np.frombuffer(before.probe, "<f4"), first)
        # Before there were versions, nobody had asked whether there is a bias.
        has_bias = (
            is_same
            and before.version > 0
            and (before.bias is None or before.bias.measured[0] == probe.CENTRING_VERSION)
        )
        if has_bias and before.version == probe.PROBE_VERSION:
            return before
    answers = await _embed(client, probe.ANSWERS, TextRole.DOCUMENT, None, retries)
    questions = await _embed(client, probe.QUESTIONS, TextRole.QUERY, answers.shape[1], retries)
    first = answers[0]
    bias = before.bias if before is not None and has_bias else probe.bias(questions, answers)
    if bias is not None:
        questions = centred(questions, probe.QUESTIONS, bias.questions)
        answers = centred(answers, probe.ANSWERS, bias.passages)
    return ModelIdentity(
        dimensions=answers.shape[1],
        calibration=probe.calibration(questions, answers),
        probe=np.ascontiguousarray(first, "<f4").tobytes(),
        generation=0 if before is None else before.generation + (not is_same),
        bias=bias,
        version=probe.PROBE_VERSION,
    )


async def _embed(
    client: RetryingClient,
    texts: tuple[str, ...],
    side: TextRole,
    dimensions: int | None,
    retries: RetryPolicy,
) -> Vectors:
    some = pieces(texts, client.dialect.input_tokens)
    rows: list[Vectors] = []
    for group in requests(some, client.dialect.limits):
        sent = [piece.text for piece in group]
        rows.append(await client.ask(sent, side, dimensions=dimensions, timeout_s=TIMEOUT_S, retries=retries))
        dimensions = rows[0].shape[1]
    return whole(some, np.concatenate(rows), len(texts))
