"""Whether the bundled model, as it is installed here, gives vectors that mean something."""

import time

import msgspec
import numpy as np

from memd.providers.local import bundled_model
from memd.providers.provider import Vector

# (a question, its answer, a text that has nothing to do with it), in English and in Chinese
_SENTENCES = (
    (
        "Which database did we choose for the new service?",
        "We decided to store everything in PostgreSQL, since the team knows it.",
        "The cat has slept on the warm windowsill all afternoon.",
    ),
    (
        "新服务我们选了哪个数据库?",
        "我们决定把所有数据存进 PostgreSQL,因为团队熟悉它。",
        "猫在温暖的窗台上睡了一个下午。",
    ),
)


class SelftestResult(msgspec.Struct, frozen=True, kw_only=True):
    """What came out."""

    version: str  # of the package
    dimensions: int
    finite: bool
    length: float  # of the vector that strays furthest from 1
    related: float  # cosine of a question with its answer, in the language that tells less well
    unrelated: float  # cosine of that question with the other text
    load_ms: float
    embed_ms: float  # of one sentence


def try_model() -> SelftestResult:
    """Load the model and embed sentences in two languages.

    Raises:
        ModelMissing: it is not there, or cannot be loaded.
    """
    version = bundled_model.find().version
    began = time.perf_counter()
    model = bundled_model.load()
    loaded = time.perf_counter()
    rows: list[Vector] = []
    for question, answer, other in _SENTENCES:
        rows += [model.query(question), model.passage(answer), model.passage(other)]
    ended = time.perf_counter()
    return _judged(version, rows, 1000 * (loaded - began), 1000 * (ended - loaded) / len(rows))


def _judged(version: str, rows: list[Vector], load_ms: float, embed_ms: float) -> SelftestResult:
    finite = all(bool(np.isfinite(row).all()) for row in rows)
    lengths = [float(np.linalg.norm(row)) for row in rows]
    directed = finite and all(lengths)
    cosines = [
        (float(question @ answer), float(question @ other))
        for question, answer, other in (
            [row / length for row, length in zip(rows[at : at + 3], lengths[at : at + 3], strict=True)]
            for at in range(0, len(rows) if directed else 0, 3)
        )
    ]
    related, unrelated = min(cosines, key=lambda pair: pair[0] - pair[1], default=(0.0, 0.0))
    return SelftestResult(
        version=version,
        dimensions=min(row.shape[-1] for row in rows),
        finite=finite,
        length=max(lengths, key=lambda length: abs(length - 1)) if finite else 0.0,
        related=related,
        unrelated=unrelated,
        load_ms=round(load_ms, 1),
        embed_ms=round(embed_ms, 1),
    )
