"""Makes 8-bit integers of the weights of multilingual-e5-small: processors multiply these several times faster than float32.

A row of weights has one scale, and so have, when they are computed, the inputs of each token. Of most products a few inputs are up to
forty times as large as all others, for any text ("outliers"); one scale for both would leave the others few bits. These inputs are
multiplied in float32. Both as in Dettmers et al., LLM.int8(), NeurIPS 2022.
"""

import numpy as np
from numpy.typing import NDArray

from memd.providers.local.e5_file import SCALES, Floats, Tensors

WEIGHTS = ".w"
REST = ".rest"  # suffix of a vector: 1 for each input, and 0 for the outliers
LARGE = ".large"  # suffix: the numbers of the outliers
LARGE_WEIGHTS = ".large.w"  # suffix: their weights
WITH_OUTLIERS = ("qkv", "fi", "fo")  # of the matrices of a layer; the inputs of the fourth are alike


def quantised(tensors: Tensors, outliers: NDArray[np.int16]) -> Tensors:
    """Return the tensors of the graph.

    Of a matrix: integers, shape (columns, rows), a scale and a bias for each row, and, where it has outliers, what the suffixes above
    say.

    Args:
        tensors: What E5File.tensors returns.
        outliers: The numbers of these inputs, shape (layers, matrices WITH_OUTLIERS, some).
    """
    found: Tensors = {}
    for name, values in tensors.items():
        matrix = name.removesuffix(WEIGHTS)
        # A vector, or scales: those of a matrix stand behind its weights, and were replaced with them.
        if matrix + SCALES not in tensors:
            found.setdefault(name, values)
            continue
        weights = decoded(tensors, matrix)
        if (large := _outliers(matrix, outliers)) is not None:
            found |= _large(matrix, weights, large)
            weights[:, large] = 0
        scales = np.abs(weights).max(axis=1) / np.float32(np.iinfo(np.int8).max)
        found[name] = np.ascontiguousarray(np.rint(weights / scales[:, None]).astype(np.int8).T)
        found[matrix + SCALES] = scales
    return found


def decoded(tensors: Tensors, matrix: str) -> Floats:
    """Return the weights of a matrix, shape (rows, columns)."""
    weights, scales = (tensors[matrix + part].astype(np.float32) for part in (WEIGHTS, SCALES))
    rows, blocks = weights.shape[:2]
    return (weights * scales.reshape(rows, blocks, 1)).reshape(rows, -1)


def _outliers(matrix: str, outliers: NDArray[np.int16]) -> NDArray[np.int64] | None:
    layer, name = matrix.removeprefix("l").split(".")
    return outliers[int(layer), WITH_OUTLIERS.index(name)].astype(np.int64) if name in WITH_OUTLIERS else None


def _large(matrix: str, weights: Floats, large: NDArray[np.int64]) -> Tensors:
    rest = np.ones(weights.shape[1], np.float32)
    rest[large] = 0
    return {
        matrix + REST: rest,
        matrix + LARGE: large,
        matrix + LARGE_WEIGHTS: np.ascontiguousarray(weights[:, large].T),
    }
