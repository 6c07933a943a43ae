"""Determines the scripts of texts: a text in another script than a question cannot contain its words.

An index stores the scripts of each chunk, so a change of what is counted here requires a higher CHUNKING.
"""

import itertools
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

# Letters that count as much as one character of a script without spaces between words: a word has about five.
_LETTERS_OF_A_WORD = 5
_WITHOUT_SPACES = frozenset({"CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"})
_ALSO = {"HIRAGANA": "KANA", "KATAKANA": "KANA"}

# Looked up in arrays, since counting the characters of a Chinese text one by one takes ten times as long. A
# character outside of the Basic Multilingual Plane is two surrogates, which count as no letter.
_NUMBERS: dict[str, int] = {"": 0}
_NEXT = itertools.count(1)  # thread-safe: each number is returned once
_UNKNOWN = 255
_number_of = np.full(1 << 16, _UNKNOWN, np.uint8)  # indexed by UTF-16 code unit


def scripts(text: str) -> dict[str, float]:
    """Return the share of each script in a text, by the first word of its Unicode names, in alphabetical order.

    Empty if the text has no letter.
    """
    if text.isascii():
        return {"LATIN": 1.0} if any(map(str.isalpha, text)) else {}
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    counts = np.bincount(_number_of[units], minlength=_UNKNOWN + 1).tolist()
    if counts[_UNKNOWN]:
        for unit in set(units[_number_of[units] == _UNKNOWN].tolist()):  # np.unique would import numpy.ma
            script = _script_of(chr(unit))
            _number_of[unit] = (
                _NUMBERS[script] if script in _NUMBERS else _NUMBERS.setdefault(script, next(_NEXT))
            )
        counts = np.bincount(_number_of[units], minlength=_UNKNOWN + 1).tolist()
    sizes = {
        script: counts[number] / (1 if script in _WITHOUT_SPACES else _LETTERS_OF_A_WORD)
        for script, number in _NUMBERS.copy().items()
        if number and counts[number]
    }
    whole = sum(sizes.values())
    return {script: sizes[script] / whole for script in sorted(sizes)}


def _script_of(ch: str) -> str:
    """Return the script of a letter; empty for other characters."""
    letter = unicodedata.normalize("NFKC", ch)[0]
    if unicodedata.category(letter)[0] != "L":
        return ""
    name = unicodedata.name(letter, "").partition(" ")[0]  # "CYRILLIC SMALL LETTER A"
    return _ALSO.get(name, name)


class ScriptShares(msgspec.Struct, frozen=True):
    """The shares of scripts in n texts."""

    scripts: tuple[str, ...]
    shares: NDArray[np.float64]  # (n, scripts): row of each text; all 0 for one without letters

    @classmethod
    def of(cls, texts: Sequence[Mapping[str, float]]) -> "ScriptShares":
        """Return the shares of texts, given the result of `scripts` for each."""
        names = tuple(dict.fromkeys(itertools.chain.from_iterable(texts)))
        rows = [[one.get(name, 0.0) for name in names] for one in texts]
        return cls(names, np.array(rows, np.float64).reshape(len(texts), len(names)))

    def __len__(self) -> int:
        return len(self.shares)

    def some(self, rows: NDArray[np.intp]) -> "ScriptShares":
        """Return the rows of some of the texts."""
        return ScriptShares(self.scripts, self.shares[rows])

    def followed_by(self, other: "ScriptShares") -> "ScriptShares":
        """Return the rows of these texts and then of others."""
        names = tuple(dict.fromkeys(self.scripts + other.scripts))
        return ScriptShares(names, np.concatenate((self.of_scripts(names), other.of_scripts(names))))

    def of_scripts(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """Return the shares with these columns, which must include all scripts of the texts."""
        if names == self.scripts:
            return self.shares
        found = np.zeros((len(self), len(names)))
        found[:, [names.index(name) for name in self.scripts]] = self.shares
        return found

    def foreign_to(self, question: Mapping[str, float]) -> NDArray[np.float64]:
        """Return the share of each text in other scripts than a question, 0..1; 0 if one of the two has no letter."""
        if not question:
            return np.zeros(len(self))
        common = np.zeros(len(self))
        for script, share in question.items():
            if script in self.scripts:
                common += np.minimum(share, self.shares[:, self.scripts.index(script)])
        return np.where(self.shares.any(axis=1), np.maximum(0.0, 1.0 - common), 0.0)
