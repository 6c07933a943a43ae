"""Reranks texts with a local cross-encoder: an ONNX file, and the tokenizer.json of its model."""

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from memd.config.settings import Rerank
from memd.providers.reranker import BoundedReranker, NoReranker, RerankFailed, by_score
from memd.runtime import malloc
from memd.runtime.threads import ResourceShortage, Threads
from memd.runtime.timers import Clock

# The usual file names of published models.
_MODELS = ("model.onnx", "model_quantized.onnx", "onnx/model.onnx", "onnx/model_quantized.onnx")
_TOKENIZER = "tokenizer.json"
MOST_PIECES = 512  # tokens of question and text together, if the tokenizer sets no limit
# Pairs per batch: between two batches, cancellation is checked.
TOGETHER = 8
COMPUTE_THREADS = 2
MOST_WAITING = 4  # questions, including the running one


class UnusableCrossEncoder(Exception):
    """A file is missing, or is not a cross-encoder."""


class CrossEncoder:
    """A loaded model; used by one thread at a time."""

    def __init__(self, file: Path) -> None:
        """Load the model.

        Args:
            file: The ONNX file; tokenizer.json is beside it or in the directory above.

        Raises:
            UnusableCrossEncoder: a file is missing or invalid.
        """
        try:
            import tokenizers  # noqa: PLC0415 - an extra, which nobody else needs
        except ImportError as missing:
            raise UnusableCrossEncoder(
                "the package tokenizers is missing: pip install 'memd-daemon[rerank]'"
            ) from missing
        try:
            self._tokenizer: Any = tokenizers.Tokenizer.from_file(str(tokenizer_of(file)))
            own = self._tokenizer.truncation
            most = MOST_PIECES if own is None else min(MOST_PIECES, own["max_length"])
            self._tokenizer.enable_truncation(most, strategy="longest_first")
            self._tokenizer.enable_padding()
            options = onnxruntime.SessionOptions()
            options.intra_op_num_threads = COMPUTE_THREADS
            options.add_session_config_entry("session.intra_op.allow_spinning", "0")
            options.enable_mem_pattern = False  # texts differ in length
            self._session = onnxruntime.InferenceSession(
                str(file), options, providers=["CPUExecutionProvider"]
            )
        except UnusableCrossEncoder:
            raise
        except Exception as failure:  # both libraries raise plain Exception
            raise UnusableCrossEncoder(f"{file} cannot be loaded ({type(failure).__name__})") from failure
        self._inputs = {one.name: one.type for one in self._session.get_inputs()}
        unknown = self._inputs.keys() - {"input_ids", "attention_mask", "token_type_ids"}
        if unknown or "input_ids" not in self._inputs:
            raise UnusableCrossEncoder(
                f"{file} is no cross-encoder: its inputs are {', '.join(self._inputs)}"
            )
        malloc.give_back()

    def scores(
        self, question: str, texts: Sequence[str], is_wanted: Callable[[], bool] = lambda: True
    ) -> list[float]:
        """Return the score of each text, on the model's own scale.

        Args:
            question: The question.
            texts: The candidates, each scored with the question.
            is_wanted: Called before each batch; False cancels.

        Raises:
            RerankFailed: the model failed, or the call was cancelled.
        """
        found = np.zeros(len(texts), np.float64)
        # Texts of about the same length share a batch, since each is padded to the longest.
        order = sorted(range(len(texts)), key=lambda n: len(texts[n]))
        for begin in range(0, len(order), TOGETHER):
            if not is_wanted():
                raise RerankFailed("onnx: nobody waits any more")
            some = order[begin : begin + TOGETHER]
            encoded = self._tokenizer.encode_batch([(question, texts[n]) for n in some])
            found[some] = self._computed(encoded)
        if not np.isfinite(found).all():
            raise RerankFailed("onnx: a score of the model is no number")
        scores: list[float] = found.tolist()
        return scores

    def _computed(self, encoded: Sequence[Any]) -> NDArray[np.float64]:
        columns = {
            "input_ids": [one.ids for one in encoded],
            "attention_mask": [one.attention_mask for one in encoded],
            "token_type_ids": [one.type_ids for one in encoded],
        }
        feed = {
            name: np.array(columns[name], np.int32 if kind == "tensor(int32)" else np.int64)
            for name, kind in self._inputs.items()
        }
        try:
            logits = np.asarray(self._session.run(None, feed)[0], np.float64)
        # onnxruntime raises plain Exception, and its message contains values of the graph.
        except Exception as failure:
            raise RerankFailed(f"onnx: the model failed ({type(failure).__name__})") from failure
        rows = logits.reshape(len(encoded), -1)
        if rows.shape[1] not in (1, 2):
            raise RerankFailed(f"onnx: the model gives {rows.shape[1]} numbers a text instead of one")
        score: NDArray[np.float64] = rows[:, -1] if rows.shape[1] == 1 else rows[:, 1] - rows[:, 0]
        return score


class LocalReranker(BoundedReranker):
    """A cross-encoder on its own thread; the first question starts loading it, and does not wait for it."""

    def __init__(self, load: Callable[[], CrossEncoder], settings: Rerank, clock: Clock) -> None:
        """Create the reranker without loading the model.

        Args:
            load: Loads the model; called on the thread that uses it, and again after a failure.
            settings: The agent's settings.
            clock: Returns monotonic seconds.
        """
        super().__init__("onnx", settings, clock, MOST_WAITING)
        self._load = load
        self._model: CrossEncoder | None = None  # used by the thread only
        self._is_loading = False
        self._threads = Threads(1, "memd-rerank")

    async def ask(self, question: str, texts: Sequence[str]) -> list[int]:
        """Order texts by the model's scores.

        Raises:
            RerankFailed: there are no scores.
        """
        last = self._clock() + self._timeout_s
        try:
            return by_score(
                await self._threads.run(self._scores, question, texts, lambda: self._clock() < last)
            )
        except ResourceShortage as failure:
            raise RerankFailed(f"onnx: {failure}") from failure

    def why_late(self) -> str:
        """Return why there is no answer by the deadline."""
        return "onnx: the model is being loaded" if self._is_loading else super().why_late()

    def _scores(self, question: str, texts: Sequence[str], is_wanted: Callable[[], bool]) -> list[float]:
        if self._model is None:
            self._is_loading = True
            try:
                self._model = self._load()
            except UnusableCrossEncoder as failure:
                raise RerankFailed(f"onnx: {failure}") from failure
            finally:
                self._is_loading = False
        return self._model.scores(question, texts, is_wanted)


def tokenizer_of(file: Path) -> Path:
    """Return the tokenizer.json that belongs to an ONNX file.

    Raises:
        UnusableCrossEncoder: there is none.
    """
    for directory in (file.parent, file.parent.parent):
        if (found := directory / _TOKENIZER).is_file():
            return found
    raise UnusableCrossEncoder(f"there is no {_TOKENIZER} beside {file}, nor in the directory above")


def model_file(place: Path) -> Path:
    """Return the ONNX file at a path, or in a directory.

    Raises:
        UnusableCrossEncoder: there is none.
    """
    if place.is_file():
        return place
    for name in _MODELS:
        if (found := place / name).is_file():
            return found
    raise UnusableCrossEncoder(f"there is no ONNX file at {place}")


def reranker(settings: Rerank, clock: Clock) -> LocalReranker | NoReranker:
    """Create the reranker that the settings name.

    Args:
        settings: With the path of a model.
        clock: Returns monotonic seconds.
    """
    try:
        file = model_file(Path(settings.model))
        tokenizer_of(file)
    except UnusableCrossEncoder as failure:
        return NoReranker(f"onnx: {failure}")
    return LocalReranker(lambda: CrossEncoder(file), settings, clock)
