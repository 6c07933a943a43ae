"""Identifies a remote model by its vectors of probe texts, and detects whether it was replaced."""

import msgspec
import numpy as np

from memd.providers import cosine_calibration as probe
from memd.providers.cosine_calibration import Bias, centred
from memd.providers.provider import Calibration, Vectors
from memd.providers.remote.dialect import TextRole
from memd.providers.remote.retrying_client import INDEXING, RetryingClient, RetryPolicy
from memd.providers.remote.split_requests import pieces, requests, whole

TIMEOUT_S = 60.0  # a server may have to load the model first


class ModelIdentity(msgspec.Struct, frozen=True):
    """The properties of a model, by its vectors of the probe texts."""

    dimensions: int
    calibration: Calibration
    probe: bytes  # the vector of probe.ANSWERS[0], float32, little-endian
    generation: int = 0  # how often another model was found under the same name
    bias: Bias | None = None  # the mean that is subtracted from vectors before they are stored; None: none is
    version: int = 0  # of the probe texts


async def identify(
    client: RetryingClient, before: ModelIdentity | None, *, retries: RetryPolicy = INDEXING
) -> ModelIdentity:
    """Probe a model; it costs about 6,000 tokens the first time, and 25 later.

    Args:
        client: Sends the requests.
        before: The last identity of the model; None: unknown.
        retries: The retry policy.

    Returns:
        The same identity if the model is the same, otherwise one of the next generation. If only the probe texts have changed, the
        bias is kept: with another one, all texts would have to be embedded and paid for again.

    Raises:
        EmbedUnavailable, EmbedTerminal, RequestTooLarge, ContentRefused: the probe failed.
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
    role: TextRole,
    dimensions: int | None,
    retries: RetryPolicy,
) -> Vectors:
    some = pieces(texts, client.dialect.input_tokens)
    rows: list[Vectors] = []
    for group in requests(some, client.dialect.limits):
        sent = [piece.text for piece in group]
        rows.append(await client.ask(sent, role, dimensions=dimensions, timeout_s=TIMEOUT_S, retries=retries))
        dimensions = rows[0].shape[1]
    return whole(some, np.concatenate(rows), len(texts))
