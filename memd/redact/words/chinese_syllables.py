"""The syllables of Chinese in Latin letters (Hanyu Pinyin)."""

import re
from itertools import product

_AFTER_RETROFLEX = "a ai an ang ao e en eng ou u uan ui un uo"
# Finals by initials, both in the standard romanisation; "v" stands for "ü".
_FINALS = {
    "": "a ai an ang ao e ei en er o ou",
    "b p": "a ai an ang ao ei en eng i ian iao ie in ing o ou u",
    "m": "a ai an ang ao e ei en eng i ian iao ie in ing iu o ou u",
    "f": "a an ang ei en eng o ou u",
    "d t": "a ai an ang ao e ei eng i ian iao ie ing iu ong ou u uan ui un uo",
    "n l": "a ai an ang ao e ei en eng i ia ian iang iao ie in ing iu ong ou u uan un uo v ve ue",
    "g k h": "a ai an ang ao e ei en eng ong ou u ua uai uan uang ui un uo",
    "j q x": "i ia ian iang iao ie in ing iong iu u uan ue un",
    "zh ch": f"{_AFTER_RETROFLEX} i ei ong ua uai uang",
    "sh": f"{_AFTER_RETROFLEX} i ei ua uai uang",
    "r": "an ang ao e en eng i ong ou u uan ui un uo",
    "z c s": f"{_AFTER_RETROFLEX} i ei ong",
    "y": "a an ang ao e i in ing o ong ou u uan ue un",
    "w": "a ai an ang ei en eng o u",
}
_SYLLABLES = frozenset(
    initial + final
    for initials, finals in _FINALS.items()
    for initial, final in product(initials.split() or [""], finals.split())
)
CHINESE_SOUNDS = re.compile("zh|[xqj][iu]|[iu]ang|iao|[dtnlgkhzcsr]ong|[^aeiou]uo|iu|[^aeioq]ui|ao")
"""Letters that few words of other languages have: of names in parts ("time_remaining") many consist of syllables."""


def fewest_syllables(letters: str) -> int:
    """Return of how many syllables of Chinese some small letters consist at least; 0 if they do not."""
    fewest = [0] + [0] * len(letters)
    for end in range(1, len(letters) + 1):
        counts = [
            fewest[begin] + 1
            for begin in range(max(0, end - 6), end)  # "zhuang" is one of the longest
            if (begin == 0 or fewest[begin]) and letters[begin:end] in _SYLLABLES
        ]
        fewest[end] = min(counts, default=0)
    return fewest[-1]
