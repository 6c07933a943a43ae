"""Estimates whether the candidates answer the question at all; if not, the hits are weak. Pure."""

from collections.abc import Collection

import msgspec
import numpy as np

from memd.providers.provider import Calibration
from memd.search.fuse_scores import Candidates, Doubles
from memd.search.terms import Names

# Hits are weak if the strongest candidate's strength is below this. DECISIONS.md has the share of questions on either side.
ANSWERS = 0.48
_WORDS_OF_CLOSE = 0.25  # added to the closeness of a text that holds all words
_WORDS_OF_FAR = 0.55  # the least strength of a text that holds all words, at any distance
_WORDS_ALONE = 1.45  # the same for a text without a vector: a third of the question's information is enough
_TRANSLATED = (
    0.65  # the weight of what such a text in another script holds in any form: half of the words are enough
)
_NAME = 0.35  # subtracted if no text holds a name that the question asks for
_CODE = 0.45
_NAME_BESIDE = 0.3  # factor on _NAME if the texts hold another name of the question


def strength(found: Candidates, calibration: Calibration) -> Doubles:
    """Return for each candidate how likely it answers; unlike the score, it does not depend on the rest of the index.

    Args:
        found: The candidates.
        calibration: The calibration of the embedding model.

    Returns:
        One value per candidate, comparable with ANSWERS.
    """
    close = calibration.of_all(found.closeness)
    with_vector = np.maximum(close + _WORDS_OF_CLOSE * found.share, _WORDS_OF_FAR * found.share)
    translated = found.foreign * np.maximum(0.0, _TRANSLATED * found.expanded - found.share)
    return np.where(np.isnan(found.cosine), _WORDS_ALONE * (found.share + translated), with_vector)


class Support(msgspec.Struct, frozen=True):
    """The strength of the best candidate, and the names that no text holds."""

    strength: float  # of the strongest candidate, minus the deduction for missing names
    missing: tuple[int, ...] = ()  # indexes of terms that are names and that no text holds

    @property
    def is_weak(self) -> bool:
        """Whether the search found nothing that is likely to answer."""
        return self.strength < ANSWERS


def support(best: float, names: Names, held: Collection[int] | None) -> Support:
    """Judge from all candidates whether the question is answered.

    Args:
        best: The strength of the strongest candidate.
        names: The names in the question.
        held: The indexes of the terms that any visible text holds; None: unknown.
    """
    if held is None:
        return Support(best)
    missing = names.missing(held)
    is_any_held = len(missing) < len(names.proper) + len(names.codes)
    if not set(missing).isdisjoint(names.proper):
        best -= _NAME_BESIDE * _NAME if is_any_held else _NAME
    if names.codes and set(missing).issuperset(names.codes):
        best -= _CODE
    return Support(best, missing)
