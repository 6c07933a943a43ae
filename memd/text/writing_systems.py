"""In which scripts a text is written: a text in another script than a question cannot hold its words.

An index keeps the scripts of each chunk: a change of what is counted here raises CHUNKING.
"""

import itertools
import unicodedata
from collections.abc import Mapping, Sequence

import msgspec
import numpy as np
from numpy.typing import NDArray

# Letters that say as much as one character of a script without spaces between words: a word has about five.
_LETTERS_OF_A_WORD = 5
_WITHOUT_SPACES = frozenset({"CJK", "KANA", "HANGUL", "THAI", "LAO", "KHMER", "MYANMAR"})
_ALSO = {"HIRAGANA": "KANA", "KATAKANA": "KANA"}

# By numbers, since counting the characters of a Chinese text one by one takes ten times as long. A character outside the Basic Multilingual Plane is two surrogates, and none of these is a letter.
_NUMBERS: dict[str, int] = {"": 0}
_NEXT = itertools.count(1)  # each number once, whatever threads meet
_UNKNOWN = 255
_number_of = np.full(1 << 16, _UNKNOWN, np.uint8)  # by code unit of UTF-16


def scripts(text: str) -> dict[str, float]:
    """The share of each script in a text, by the first word of its Unicode names, in the order of these words.

    Empty where the text has no letter.
    """
    if text.isascii():
        return {"LATIN": 1.0} if any(map(str.isalpha, text)) else {}
    units = np.frombuffer(text.encode("utf-16-le", "surrogatepass"), "<u2")
    numbers = _number_of[units]
    if (numbers == _UNKNOWN).any():
        for unit in set(units[numbers == _UNKNOWN].tolist()):  # np.unique would import numpy.ma
            script = _script_of(chr(unit))
            _number_of[unit] = (
                _NUMBERS[script] if script in _NUMBERS else _NUMBERS.setdefault(script, next(_NEXT))
            )
        numbers = _number_of[units]
    counts = np.bincount(numbers, minlength=_UNKNOWN).tolist()
    sizes = {
        script: counts[number] / (1 if script in _WITHOUT_SPACES else _LETTERS_OF_A_WORD)
        for script, number in _NUMBERS.copy().items()
        if number and counts[number]
    }
    whole = sum(sizes.values())
    return {script: sizes[script] / whole for script in sorted(sizes)}


def _script_of(ch: str) -> str:
    """The script of a letter; of what is no letter none."""
    letter = unicodedata.normalize("NFKC", ch)[0]
    if unicodedata.category(letter)[0] != "L":
        return ""
    name = unicodedata.name(letter, "").partition(" ")[0]  # "CYRILLIC SMALL LETTER A"
    return _ALSO.get(name, name)


class ScriptShares(msgspec.Struct, frozen=True):
    """The shares of scripts in many texts."""

    scripts: tuple[str, ...]
    shares: NDArray[np.float64]  # (n, scripts): of each text; nothing of one without a letter

    @classmethod
    def of(cls, texts: Sequence[Mapping[str, float]]) -> "ScriptShares":
        """Of each text what scripts told of it."""
        names = tuple(dict.fromkeys(itertools.chain.from_iterable(texts)))
        rows = [[one.get(name, 0.0) for name in names] for one in texts]
        return cls(names, np.array(rows, np.float64).reshape(len(texts), len(names)))

    def __len__(self) -> int:
        return len(self.shares)

    def some(self, rows: NDArray[np.intp]) -> "ScriptShares":
        """Those of some of the texts."""
        return ScriptShares(self.scripts, self.shares[rows])

    def followed_by(self, other: "ScriptShares") -> "ScriptShares":
        """Those of these texts and of others."""
        names = tuple(dict.fromkeys(self.scripts + other.scripts))
        return ScriptShares(names, np.concatenate((self.of_scripts(names), other.of_scripts(names))))

    def of_scripts(self, names: tuple[str, ...]) -> NDArray[np.float64]:
        """The shares of these scripts, among which are all that the texts have."""
        if names == self.scripts:
            return self.shares
        found = np.zeros((len(self), len(names)))
        found[:, [names.index(name) for name in self.scripts]] = self.shares
        return found

    def foreign_to(self, question: Mapping[str, float]) -> NDArray[np.float64]:
        """How much of each text is written in other scripts than a question, 0..1; 0 where one of them has no letter."""
        if not question:
            return np.zeros(len(self))
        common = np.zeros(len(self))
        for script, share in question.items():
            if script in self.scripts:
                common += np.minimum(share, self.shares[:, self.scripts.index(script)])
        return np.where(self.shares.any(axis=1), np.maximum(0.0, 1.0 - common), 0.0)
