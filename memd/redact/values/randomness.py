"""Judges whether a text is drawn by chance, or is words or a name: by its classes of characters, and by its pairs of letters."""

import math
import re
import string
from collections import Counter

MOST_JUDGED = 512
"""Characters by which a value is judged."""
_DIGIT = re.compile(r"[0-9]")
NAME = re.compile(r"[A-Za-z]++(?:[_./:-][A-Za-z]++)*+[_./:-]?v?[0-9]{0,3}(?:\.[a-z]{1,5})?\Z")
"""A pattern for a name in code, or a file: words, and at most a short number behind them."""
OTHER_SIGN = re.compile(r"[a-z](?![a-z])|[A-Z](?![A-Z])|[0-9](?![0-9])")
"""A pattern for a character that is followed by one of another class."""
_OF_TOKENS = re.compile(r"[\w.+/=~:-]+", re.ASCII)
_LEAST_SCRAMBLED, _LEAST_ALTERNATING = 16, 8  # letters and digits
# The share of characters that are followed by one of another class.
_OF_SCRAMBLED, _OF_ALTERNATING = 0.45, 0.55


def is_random(text: str, entropy: float) -> bool:
    """Return whether a text has a digit, and at least `entropy` bits (Shannon) per character."""
    counts = Counter(text)
    bits = -sum(count / len(text) * math.log2(count / len(text)) for count in counts.values())
    return bits >= entropy and not counts.keys().isdisjoint(string.digits)


def looks_random(text: str) -> bool:
    """Return whether a text can only be a key: long, with letters of both cases and digits, or long and in base 36."""
    if len(text) < 16 or _OF_TOKENS.fullmatch(text) is None:
        return False
    return (mixes(text) and NAME.match(text) is None and len(set(text)) >= 10) or (
        len(text) >= 32
        and re.fullmatch(r"(?=[a-z]*[0-9])(?=[0-9]*[a-z])[a-z0-9]+", text) is not None
        and not re.fullmatch(r"[0-9a-f]{40}|[0-9a-f]{64}", text)
    )


def looks_mixed(text: str) -> bool:
    """Return whether upper and lower case alternate as in no word; digits at the end are ignored."""
    letters = text.rstrip("0123456789")
    return (
        len(letters) >= 16
        and letters.isalpha()
        and sum(map(str.isupper, letters)) >= 4
        and len(re.findall(r"[A-Z](?![a-z]{2})", letters)) >= 4
    )


def is_scrambled(text: str) -> bool:
    """Return whether letters and digits alternate as often as in random text, and not as in a name in code.

    In random text nearly two of three characters are followed by one of another class, in names one of four.
    """
    plain = text.replace("-", "").replace("_", "")
    return len(plain) >= _LEAST_SCRAMBLED and len(set(plain)) >= 10 and _alternates(plain, _OF_SCRAMBLED)


def alternates(text: str) -> bool:
    """Return whether letters and digits of a short word alternate even more often than in what is scrambled."""
    return len(text) >= _LEAST_ALTERNATING and _alternates(text, _OF_ALTERNATING)


def _alternates(plain: str, share: float) -> bool:
    return (
        plain.isascii()
        and plain.isalnum()
        and count_digits(plain) >= 2
        and mixes(plain)
        and len(OTHER_SIGN.findall(plain)) >= share * len(plain)
    )


def has_digit(text: str) -> bool:
    """Return whether a text has a digit."""
    return _DIGIT.search(text) is not None


def mixes(text: str) -> bool:
    """Return whether a text has a digit and letters of both cases."""
    return has_digit(text) and text != text.lower() and text != text.upper()


def count_digits(text: str) -> int:
    """Return how many digits a text has."""
    return len(_DIGIT.findall(text))


def looks_like_words(text: str) -> bool:
    """Return whether a text is words joined together: letters alone, with at most a short number at the end."""
    return NAME.match(text) is not None and not looks_mixed(text)


def words_in(text: str) -> frozenset[str]:
    """Return the words of a text: long lists are read more easily as one."""
    return frozenset(text.split())


# The pairs of letters that most names in code, English words and Chinese syllables consist of. Of random letters one pair in
# four is among them, of words three in four.
_USUAL_PAIRS = words_in(
    """
    ab ac ad ag ai al am an ap ar as at au av ay ba be bi bl bo br bu by ca ce ch ci ck cl co cr ct cu da de
    di do dr du ea ec ed ee ef eg ei el em en ep er es et ev ex ey fa fe ff fi fo fr fu ga ge gh gi gl go gr
    gu ha he hi ho hr ht hu ia ib ic id ie if ig il im in io ip ir is it iv ja jo ju ke ki ko ku la ld le li
    ll lo ls lt lu ly ma mb me mi mm mo mp ms mu my na nc nd ne nf ng ni nk nn no ns nt nu oa ob oc od oe of
    og oi ok ol om on oo op or os ot ou ov ow pa pe ph pi pl po pp pr ps pt pu qu ra rc rd re rg ri rk rl rm
    rn ro rr rs rt ru ry sa sc se sh si sk sl so sp sq ss st su sw ta te th ti tl to tr ts tt tu tw ty ub uc
    ud ue ug ui ul um un up ur us ut va ve vi vo wa we wh wi wo wr xi xp xt ye yi yo ys za ze zh zi
    """
)
_LEAST_LETTERS = 11  # fewer may be a rare word
_OF_WORDS = 0.6  # the least share of usual pairs in words


def is_jumble(text: str) -> bool:
    """Return whether a text of lower-case letters is no word and no words joined together."""
    if (
        len(text) < _LEAST_LETTERS
        or len(text) > 200
        or not text.isascii()
        or not text.isalpha()
        or not text.islower()
    ):
        return False
    return usual_share(text) < _OF_WORDS


def usual_share(letters: str) -> float:
    """Return the share of pairs of letters that are usual in words, of at least two small letters."""
    usual = sum(letters[at : at + 2] in _USUAL_PAIRS for at in range(len(letters) - 1))
    return usual / (len(letters) - 1)


def is_unlike_words(text: str, *, most: float = _OF_WORDS) -> bool:
    """Return whether the letters of a text are no words, for places where a password may be.

    Args:
        text: Letters, and maybe digits.
        most: The share of usual pairs that its letters stay below.
    """
    runs = [run for run in re.findall("[a-z]+", text[:MOST_JUDGED].lower()) if len(run) >= 5]
    return len(text) >= 8 and bool(runs) and all(usual_share(run) < most for run in runs)
