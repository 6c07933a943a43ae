"""Computes Google's Universal Sentence Encoder (multilingual, version 3): the mean of words and of runs of 2, 3 and 5 words.

Two networks in a row make a vector of the sum: Yang et al., Multilingual Universal Sentence Encoder for Semantic Retrieval, ACL 2020.
"""

import math
import unicodedata

import numpy as np
from numpy.lib.stride_tricks import sliding_window_view

from memd.providers.local import sentence_encoder_file
from memd.providers.local.e5_file import Floats, UnreadableModel
from memd.providers.local.sentence_encoder_file import BEGIN, END, PARTS, UNKNOWN, Arrays, WordVectors
from memd.providers.local.unigram_tokenizer import UnigramTokenizer
from memd.providers.provider import Vector
from memd.runtime import malloc

DIMENSIONS = 512
# Words of a run, and how many of them stand before the one that it belongs to.
_RUNS = ((2, 0), (3, 1), (5, 2))


class SentenceEncoder:
    """The loaded model; threads may share it."""

    def __init__(self, arrays: Arrays, words: WordVectors) -> None:
        """Take over what sentence_encoder_file.weights returns.

        Raises:
            OSError: the word vectors cannot be read.
            UnreadableModel: something is missing, or has another shape.
        """
        try:
            vocabulary = sentence_encoder_file.vocabulary(arrays)
            self._characters = vocabulary.normalised
            self._tokenizer = UnigramTokenizer(vocabulary)
            self._word_vectors = words
            self._weights = {
                name: array.view(np.float32) for name, array in arrays.items() if array.dtype == np.float32
            }
            self._part_scale, self._part_low = self._weights["scale"], self._weights["lo"]
            self._into_runs = np.concatenate([self._weights[f"proj{size}"] for size, _ in _RUNS], axis=1)
            joined = ("proj_b", "ln_g", "ln_b")
            self._runs_bias, self._runs_gain, self._runs_shift = (
                np.concatenate([self._weights[f"{name}{size}"] for size, _ in _RUNS]) for name in joined
            )
            self._epsilon = float(arrays["eps"].ravel()[0])
            with np.errstate(all="ignore"):
                if not np.isfinite(self.vector("")).all():
                    raise UnreadableModel("the sentence encoder computes no numbers")
        except (KeyError, ValueError, IndexError) as failure:
            raise UnreadableModel(
                f"the sentence encoder is not one that memd can compute: {failure}"
            ) from failure
        malloc.give_back()  # frees what hashing the pieces has used

    def vector(self, text: str) -> Vector:
        """Return the vector of a text, shape (512,), length 1.

        Raises:
            OSError, UnreadableModel: the word vectors cannot be read any more.
        """
        text = unicodedata.normalize("NFKC", text).translate(self._characters).strip()
        ids = np.array([BEGIN, *(self._tokenizer.ids(text) if text else [UNKNOWN]), END])
        part = ids % PARTS
        words = self._word_vectors(ids.tolist()) * self._part_scale[part, None] + self._part_low[part, None]
        summed = np.concatenate([words, *self._runs(words)], axis=1)
        summed = self._normalised(summed, self._weights["ln_g"], self._weights["ln_b"]).sum(axis=0)
        mean = (summed @ self._weights["cnn_W"] + len(ids) * self._weights["cnn_b"]) / np.sqrt(
            np.float32(len(ids))
        )
        return self._unit(mean)

    def _runs(self, words: Floats) -> list[Floats]:
        """Return the values of the runs of each size, each of shape (words, width)."""
        values = self._normalised(
            words @ self._into_runs + self._runs_bias, self._runs_gain, self._runs_shift
        )
        found = []
        for (size, before), own in zip(_RUNS, np.split(values, len(_RUNS), axis=1), strict=True):
            for layer in ("w1_", "w2_"):
                weight, bias = (
                    self._weights[f"{layer}{size}"],
                    self._weights[f"{layer.replace('w', 'b')}{size}"],
                )
                around = np.pad(own, ((before, size - 1 - before), (0, 0)))
                runs = sliding_window_view(around, size, axis=0).transpose(0, 2, 1).reshape(len(own), -1)
                own = np.maximum(runs @ weight + bias, 0) + own  # noqa: PLW2901 - the next layer's input
            found.append(own)
        return found

    def _unit(self, mean: Floats) -> Vector:
        weights = self._weights
        first = mean @ weights["p1"] + np.maximum(mean @ weights["d0"], 0) @ weights["d1"]
        first = np.maximum(first, 0)
        last = np.tanh(first @ weights["p3"] + np.maximum(first @ weights["d2"], 0) @ weights["d3"])
        unit: Vector = last / math.sqrt(max(float(last @ last), self._epsilon))
        return unit

    def _normalised(self, values: Floats, gain: Floats, shift: Floats) -> Floats:
        """Normalise each row to mean 0 and variance 1, then scale and shift it."""
        centred = values - values.mean(axis=1, keepdims=True)
        variance = np.vecdot(centred, centred)[:, None] / values.shape[1]
        normalised: Floats = centred / np.sqrt(variance + np.float32(self._epsilon)) * gain + shift
        return normalised
