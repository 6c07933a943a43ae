"""Tells words of Chinese in Latin letters, and Korean typed with Latin letters: "hua-hai33", "dkssud" for "안녕".

People make passwords of both. Words of other languages may look alike, so neither decides alone.
"""

import re

from memd.redact.values import randomness
from memd.redact.words.chinese_syllables import CHINESE_SOUNDS, fewest_syllables

_LEAST_SYLLABLES, _LEAST_PARTS = 2, 3  # with a digit or a symbol, and of parts alone
_LETTERS_OF_SYLLABLE = 2.3  # on average; of separate ones two
_PARTS = re.compile(r"[a-z]+")
_JOINED = re.compile(r"[a-z]{2,6}(?:[-_][a-z]{2,6}){2,8}")
# What people join with such words, and cities, which are names of servers and regions.
_JOINS = randomness.words_in("no my i is ok go love vip wifi bb mm gg jj dd the and admin ilove")
_CITIES = randomness.words_in(
    "beijing shanghai hangzhou shenzhen guangzhou chengdu nanjing wuhan qingdao zhangjiakou tianjin chongqing suzhou xian ningxia jinan taipei taiwan"
)
_SOUNDS = re.compile(rf"{CHINESE_SOUNDS.pattern}|ua")
_ABBREVIATION = re.compile(r"[b-df-hj-np-tv-z]{1,4}")

# The Korean keyboard: consonants on the left, vowels on the right; a syllable ends with up to two consonants.
_INITIAL = "[rRseEfaqQtTdwWczxvg]"
_MEDIAL = "(?:h[kol]?|n[jpl]?|ml?|[koiOjpuPybl])"
_FINAL = "(?:rt|s[wg]|f[raqtxvg]|qt|[rRsefaqtTdwczxvg])"
_TYPED_KOREAN = re.compile(rf"(?>{_INITIAL}{_MEDIAL}(?:{_FINAL}(?!{_MEDIAL}))?){{2,12}}+")
_LEAST_TYPED = 5  # letters
_MOST_USUAL = 0.62  # of the pairs of letters may be those of words


def is_romanised(word: str) -> bool:
    """Return whether the letters of a word are syllables of Chinese, with digits or symbols, or in at least three parts."""
    if not any(map(str.isdigit, word)) and _JOINED.fullmatch(word) is None:
        return False
    letters = _PARTS.findall(word.lower())
    chinese = [part for part in letters if part not in _JOINS and _ABBREVIATION.fullmatch(part) is None]
    counts = [fewest_syllables(part) for part in chinese]
    if not all(counts) or not _CITIES.isdisjoint(chinese):
        return False
    syllables, length = sum(counts), sum(map(len, chinese))
    is_joined = _JOINED.fullmatch(word) is not None
    if syllables < (_LEAST_PARTS if is_joined else _LEAST_SYLLABLES):
        return False
    is_apart = syllables == len(chinese) >= _LEAST_PARTS
    if length < syllables * (2 if is_apart else _LETTERS_OF_SYLLABLE):
        return False
    return syllables > _LEAST_SYLLABLES or _SOUNDS.search("".join(chinese)) is not None


def is_typed_korean(word: str) -> bool:
    """Return whether the letters of a word give syllables on a Korean keyboard, and are no usual letters of a word."""
    letters = word.rstrip("0123456789!@#$%^&*?~._-")
    return (
        len(letters) >= _LEAST_TYPED
        and letters.isalpha()
        and letters[1:] == letters[1:].lower()
        and _TYPED_KOREAN.fullmatch(letters) is not None
        and randomness.usual_share(letters.lower()) < _MOST_USUAL
    )
