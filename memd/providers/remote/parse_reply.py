"""What came from elsewhere as values that can be trusted."""

from collections.abc import Sequence
from typing import TypeVar

import msgspec
import numpy as np

from memd.providers.provider import Vectors
from memd.providers.remote.request import BadReply

T = TypeVar("T")


def decoded(provider: str, body: bytes, kind: type[T]) -> T:
    """A JSON document of a known form.

    Raises:
        BadReply: it is something else.
    """
    try:
        return msgspec.json.decode(body, type=kind)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as failure:
        raise BadReply(f"{provider}: the answer is not what its API promises") from failure


def matrix(rows: Sequence[Sequence[float]], *, count: int, dimensions: int | None) -> Vectors:
    """Rows as float32 of length 1.

    Args:
        rows: As the provider gave them.
        count: How many are expected.
        dimensions: How long each must be; None: all alike.

    Raises:
        BadReply: there are more or fewer, they differ in length, or a number is missing or not finite.
    """
    if len(rows) != count:
        raise BadReply(f"{count} texts were sent, and {len(rows)} vectors came back")
    if not rows:
        return np.empty((0, dimensions or 0), np.float32)
    lengths = {len(row) for row in rows}
    if len(lengths) != 1 or lengths == {0}:
        raise BadReply(f"vectors of different lengths came back: {', '.join(map(str, sorted(lengths)))}")
    [length] = lengths
    if dimensions is not None and length != dimensions:
        raise BadReply(f"vectors of {length} dimensions came back where {dimensions} are expected")
    try:
        wide = np.asarray(rows, np.float64)
    except (TypeError, ValueError) as failure:
        raise BadReply("a vector came back with something in it that is no number") from failure
    if not np.isfinite(wide).all():
        raise BadReply("a vector came back with a number in it that is not finite")
    with np.errstate(over="ignore"):
        norms = np.linalg.norm(wide, axis=1, keepdims=True)
    if (norms < 1e-10).any():
        raise BadReply("a vector of zeros came back")
    if not np.isfinite(norms).all():
        raise BadReply("a vector came back whose numbers are too large")
    units: Vectors = (wide / norms).astype(np.float32)
    return units
