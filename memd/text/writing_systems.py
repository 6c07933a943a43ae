"""In which scripts a text is written: a text in another script than a question cannot hold its words.

An index keeps the scripts of each chunk: a change of what is counted here raises CHUNKING.
"""

import itertools
import unicodedata
from collections.abc import Mapping

import numpy as np

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


def foreign(question: Mapping[str, float], text: Mapping[str, float]) -> float:
    """How much of a text is written in other scripts than a question, 0..1; 0 where one of them has no letter."""
    if not question or not text:
        return 0.0
    common = 0.0
    for script, share in question.items():
        common += min(share, text.get(script, 0.0))
    return max(0.0, 1.0 - common)
