"""The tokenizer of a SentencePiece unigram model: splits a text into the most probable sequence of pieces.

All substrings of a text are looked up together, by hash. A dictionary of a quarter of a million strings would take 60 MB and
half a second to build; this takes 5 MB and 40 ms.
"""

import re

import numpy as np
from numpy.typing import NDArray

from memd.providers.local.e5_file import Vocabulary

SPACE = "\N{LOWER ONE EIGHTH BLOCK}"  # stands for a space in pieces
# A character that is in no piece costs as much as the least probable piece plus this penalty.
UNKNOWN_PENALTY = 10.0
# A hash is the sum of byte * _BASE ** place, modulo 2**64. _BASE is odd, so it has an inverse.
_BASE = 0x9E3779B97F4A7C15
_INVERSE = pow(_BASE, -1, 2**64)
_POSSIBLE_BITS = 22
_SHIFT = np.uint64(64 - _POSSIBLE_BITS)
_SPACES = re.compile(" {2,}")

Hashes = NDArray[np.uint64]
Places = NDArray[np.integer]


class UnigramTokenizer:
    """The tokenizer of one vocabulary."""

    def __init__(self, vocabulary: Vocabulary) -> None:
        """Hash the pieces of a vocabulary."""
        self._vocabulary = vocabulary
        begins, ends = vocabulary.bounds[:-1], vocabulary.bounds[1:]
        self._longest = int((ends - begins).max())  # bytes of a piece
        hashes = _Hasher(vocabulary.texts).of(begins, ends)
        usable = np.flatnonzero((ends > begins) & (np.arange(len(ends)) != vocabulary.unknown))
        self._ids = usable[np.argsort(hashes[usable])]
        self._hashes = hashes[self._ids]
        # A table of the first bits of all hashes excludes nearly all other substrings.
        self._possible = np.zeros(1 << _POSSIBLE_BITS, np.bool_)
        self._possible[self._hashes >> _SHIFT] = True
        self._unknown_score = float(vocabulary.scores.min()) - UNKNOWN_PENALTY

    def ids(self, text: str) -> list[int]:
        """Return the ids of the pieces of a text, without those for its beginning and end."""
        text = _SPACES.sub(" ", text.translate(self._vocabulary.normalised))
        text = (text if text.startswith(" ") else " " + text).replace(" ", SPACE)
        candidates = self._candidates(text)
        best = [0.0] + [float("-inf")] * len(text)  # the best score of a split of the first n characters
        last = [(0, 0)] * (len(text) + 1)  # in that split, the beginning and the id of the last piece
        at = 0
        for begin in range(len(text)):
            so_far = best[begin]
            while at < len(candidates) and candidates[at][0] == begin:
                _, end, piece, score = candidates[at]
                if so_far + score > best[end]:
                    best[end], last[end] = so_far + score, (begin, piece)
                at += 1
            if so_far + self._unknown_score > best[begin + 1]:
                best[begin + 1], last[begin + 1] = (
                    so_far + self._unknown_score,
                    (begin, self._vocabulary.unknown),
                )
        found, end = [], len(text)
        while end:
            end, piece = last[end]
            found.append(piece)
        return found[::-1]

    def _candidates(self, text: str) -> list[tuple[int, int, int, float]]:
        """Return all pieces in the text as (begin, end, id, score), in characters, in order of begin and end."""
        data = np.frombuffer(text.encode("utf-8", "replace"), np.uint8)
        places = np.append(np.flatnonzero((data & 0xC0) != 0x80), len(data))  # byte offsets of the characters
        begins = np.arange(len(text))
        lengths = np.arange(1, self._longest + 1)
        begin, end = (
            grid.ravel() for grid in np.broadcast_arrays(begins[:, None], begins[:, None] + lengths)
        )
        end = np.minimum(end, len(text) + 1)
        inside = end <= len(text)
        begin, end = begin[inside], end[inside]
        short = places[end] - places[begin] <= self._longest
        begin, end = begin[short], end[short]
        hashes = _Hasher(data).of(places[begin], places[end])
        possible = np.flatnonzero(self._possible[hashes >> _SHIFT])
        begin, end, hashes = begin[possible], end[possible], hashes[possible]
        row = np.minimum(np.searchsorted(self._hashes, hashes), len(self._hashes) - 1)
        known = np.flatnonzero(self._hashes[row] == hashes)
        pieces = self._ids[row[known]]
        scores = self._vocabulary.scores[pieces]
        return list(
            zip(begin[known].tolist(), end[known].tolist(), pieces.tolist(), scores.tolist(), strict=True)
        )


class _Hasher:
    """Hashes of substrings, each in constant time: the difference of two prefix sums, shifted to position 0."""

    def __init__(self, data: NDArray[np.uint8]) -> None:
        with np.errstate(over="ignore"):
            self._inverses = _powers(_INVERSE, len(data) + 1)
            sums = np.cumsum(
                (data.astype(np.uint64) + np.uint64(1)) * _powers(_BASE, len(data)), dtype=np.uint64
            )
        self._sums = np.concatenate([np.zeros(1, np.uint64), sums])

    def of(self, begins: Places, ends: Places) -> Hashes:
        """Return the hash of data[begin:end] for each pair."""
        with np.errstate(over="ignore"):
            found: Hashes = (self._sums[ends] - self._sums[begins]) * self._inverses[begins]
        return found


def _powers(base: int, count: int) -> Hashes:
    """Return base ** 0 to base ** (count - 1), by doubling: cumprod takes five times as long."""
    powers = np.ones(max(count, 1), np.uint64)
    done = 1
    with np.errstate(over="ignore"):
        while done < count:
            new = powers[done : 2 * done]
            np.multiply(powers[: len(new)], np.uint64(pow(base, done, 2**64)), out=new)
            done *= 2
    return powers[:count]
