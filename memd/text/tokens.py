"""Tokens: divides text into words, estimates its size in tokens, and finds places to cut it."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

# Scripts written without spaces between words, and Hangul, whose words carry their particles with them.
_CJK = (
    "\u1100-\u11ff"  # Hangul jamo
    "\u2e80-\u2fdf"  # radicals
    "\u3005-\u3007\u3021-\u3029"  # iteration mark, closing mark, zero, Hangzhou numerals
    "\u3041-\u3096\u309d-\u309f"  # Hiragana
    "\u30a1-\u30fa\u30fc-\u30ff\u31f0-\u31ff"  # Katakana
    "\u3105-\u312f\u31a0-\u31bf"  # Bopomofo
    "\u3131-\u318e\ua960-\ua97c\uac00-\ud7a3\ud7b0-\ud7fb"  # Hangul
    "\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff\U00020000-\U0003ffff"  # Han
)
# Compiled when a text first needs them: classes of so many characters take 10 ms of each start, and ASCII needs none.
_compiled = cache(re.compile)
_CJK_RUN = f"[{_CJK}]+"
_OTHER_WORD = f"[^\\W_{_CJK}]+"
_LETTER = f"[^\\W_{_CJK}]|[\u0300-\u036f]"  # of a word; accents may stand by themselves

# What a character costs beyond the quarter of a token that every character costs. Common CJK is one token; the
# rarer a block, the more byte pieces a tokenizer needs for it.
_COMMON = "[\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60\U0001f000-\U0001faff]+"
_COMMON_COST = 3
_RARE = (
    (11, "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dbf\u9fa6-\ua4cf\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"),
    (7, "\u02c7\u02ca\u02cb\u02d9\ufe10-\ufe1f\ufe30-\ufe4f\uff61-\uffef"),
    (15, "\U00020000-\U0003ffff"),
)
_ANY_RARE = f"[{''.join(block for _, block in _RARE)}]"

# Of what fts_text gives: as FTS5's tokenizer "ascii" has it.
# Written as what it is not, it compiles ten times as fast as [0-9a-z\x80-\U0010ffff], which it equals.
WORD_CHARACTER = r"[^\x00-/:-`{-\x7f]"
_TOKEN = re.compile(f"{WORD_CHARACTER}+")
# By their shapes: a run of conjoining jamo, which make syllables; a CJK character or a symbol with its marks; a word.
_PLACE = re.compile("j+m*|cm*|[wm]+")

_ALIKE = {"\u0131": "i", "\u0451": "\u0435", "\u0450": "\u0435", "\u045d": "\u0438"}  # ı ё ѐ ѝ
_ZERO_WIDTH_SPACE = "\u200b"
_JOINER = "\u200d"
_LONGEST_CLUSTER = 32


class _Forms(dict[int, str]):
    """Maps each character of a folded text to its form in the index; computed when it first occurs."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        form = self[code] = f" {ch} " if is_cjk(ch) else _form(ch)
        return form


class _FormsOfRuns(_Forms):
    """Like _Forms, but a run of CJK characters is one word."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        form = self[code] = ch if is_cjk(ch) else _form(ch)
        return form


def _form(ch: str) -> str:
    """A character of a word without its accents; a symbol between blanks; a blank for a separator."""
    category = unicodedata.category(ch)
    match category[0]:
        case "L" | "N":
            bare = unicodedata.normalize("NFD", ch)[0]
            # The accents of Latin and Greek come and go; other scripts have letters that only look like that.
            return bare if bare.isascii() or "\u0370" <= bare <= "\u03ff" else _ALIKE.get(ch, ch)
        case "M":
            return "" if _is_accent(ch, category) else ch
        case _:
            pass
    match category:
        case "So" | "Co":
            # Frames and bars of tables.
            return " " if "\u2500" <= ch <= "\u259f" or ch == "\ufffd" else f" {ch} "
        case "Sk":
            return "" if "\U0001f3fb" <= ch <= "\U0001f3ff" else " "  # the skin of an emoji
        case "Cf":
            return " " if ch == _ZERO_WIDTH_SPACE else ""
        case "Cn":
            # What no Unicode will ever use sets words apart; of what a newer one uses, most are letters.
            return " " if _is_noncharacter(ch) else ch
        case _:
            return " "


def _is_noncharacter(ch: str) -> bool:
    return ord(ch) & 0xFFFE == 0xFFFE or "\ufdd0" <= ch <= "\ufdef"


def _is_mark(ch: str) -> bool:
    return unicodedata.category(ch)[0] == "M"


def _is_accent(ch: str, category: str) -> bool:
    """Whether a mark tells nothing that a question would: an accent, a vowel point of Hebrew or Arabic, an enclosing circle.

    By canonical combining classes (unicode.org/reports/tr44, table 15): those of the signs that Indic scripts and those of
    South East Asia are spelt with are others.
    """
    place = unicodedata.combining(ch)
    is_variant = "\ufe00" <= ch <= "\ufe0f" or "\U000e0100" <= ch <= "\U000e01ef" or ch == "\u034f"
    return category == "Me" or is_variant or place in {1, 8} or 10 <= place <= 36 or place >= 200


_FORMS = _Forms()


class _Shapes(dict[int, str]):
    """Maps each character of a text to its class, as one character: see _PLACE. A blank is a separator."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        made = _TOKEN.findall(fts_text(ch))
        if "\u1100" <= ch <= "\u11ff":
            shape = "j"
        elif (
            not ch.isascii() and len(_TOKEN.findall(fts_text(f"a{ch}a"))) == 1 and (not made or _is_mark(ch))
        ):
            shape = "m"
        elif not made:
            shape = " "
        else:
            shape = "c" if all(is_cjk(token) or _form(token[0]) != token[0] for token in made) else "w"
        self[code] = shape
        return shape


_SHAPES = _Shapes()


@lru_cache(maxsize=1 << 14)  # asked of a hundred characters of each question
def is_cjk(ch: str) -> bool:
    """Whether a character is indexed by itself because its script sets no spaces between words."""
    return _compiled(_CJK_RUN).match(ch) is not None


def is_mostly_cjk(text: str) -> bool:
    """Whether a text is written in a CJK script: it has at least as many such characters as other words."""
    return cjk_share(text) >= 0.5


def cjk_share(text: str) -> float:
    """How much of a text is written in a CJK script, 0..1: such characters count as much as other words."""
    if text.isascii():
        return 0.0
    cjk = sum(map(len, _compiled(_CJK_RUN).findall(text)))
    return cjk / (cjk + len(_compiled(_OTHER_WORD).findall(text))) if cjk else 0.0


def folded(text: str) -> str:
    """A text without the differences that do not count: of case, and of compatibility forms (Unicode's NFKC and case folding)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fts_text(text: str) -> str:
    """What the keyword index holds for a text: its tokens, folded and without accents.

    A token is a word, which its letters, digits and the marks of its script make; or a CJK character or a symbol, such as an
    emoji, by itself. Every other character sets tokens apart. The index and its questions both pass through here, and
    FTS5's tokenizer ("ascii") divides what comes of it where this function does: at ASCII characters that are neither
    letters nor digits. So a run of CJK characters is a phrase of single ones.
    """
    return text.lower() if text.isascii() else folded(text).translate(_FORMS)


def words_and(kept: str) -> Callable[[str], str]:
    """A function that removes everything from a text except its tokens, as fts_text does, and some ASCII characters.

    A run of CJK characters is one word.
    """
    forms = _FormsOfRuns({ord(ch): ch for ch in kept})
    return lambda text: folded(text).translate(forms)


def width(text: str) -> int:
    """How much room a text takes where a CJK character takes that of two others."""
    return len(text) if text.isascii() else len(text) + sum(map(len, _compiled(_CJK_RUN).findall(text)))


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """The tokens of fts_text with their places in the text, as (token, start, end).

    Tokens that come from one character of the text, such as a ligature or an abbreviation sign, have the same place.
    """
    if text.isascii():
        for found in _TOKEN.finditer(text.lower()):
            yield found[0], found.start(), found.end()
        return
    for place in _PLACE.finditer(text.translate(_SHAPES)):
        for token in _TOKEN.findall(fts_text(text[place.start() : place.end()])):
            yield token, place.start(), place.end()


def words_beginning(beginnings: Iterable[str]) -> re.Pattern[str]:
    """A pattern that finds tokens with one of these prefixes, in the result of fts_text."""
    return re.compile(f"(?<!{WORD_CHARACTER})(?:{'|'.join(map(re.escape, beginnings))}){WORD_CHARACTER}*")


def quarter_tokens(text: str) -> int:
    """The estimated size of a text in quarters of a token: a lower bound that adds up over parts.

    An ASCII or Latin character counts 1, a common CJK character or an emoji 4, a rarer one 8 to 16.
    """
    if text.isascii():
        return len(text)
    quarters = len(text) + _COMMON_COST * sum(map(len, _compiled(_COMMON).findall(text)))
    if _compiled(_ANY_RARE).search(text):
        quarters += sum(cost * sum(map(len, _compiled(f"[{block}]+").findall(text))) for cost, block in _RARE)
    return quarters


def estimate_tokens(text: str) -> int:
    """How many tokens an embedding model will see, estimated without one: 4 Latin or 1 CJK character a token."""
    return -(-quarter_tokens(text) // 4)


def cut(text: str, n: int) -> str:
    """The first n characters at most, never ending inside a character that is written with several code points."""
    return text[: safe_end(text, n)]


def safe_end(text: str, end: int) -> int:
    """The last place at or before end where a text may be cut without breaking a visible character."""
    if end >= len(text):
        return len(text)
    at = max(0, end)
    while at > 0 and end - at < _LONGEST_CLUSTER:
        if not (_continues(text[at]) or text[at - 1] == _JOINER):
            return at
        at -= 1
    return end if at > 0 else 0  # a run of marks longer than any real character: cut where told


def word_end(text: str, end: int, least: int) -> int:
    """The last place at or before end that is inside no word of a script with spaces; end, where there is none after least.

    Text without spaces may hold such words, as in 我们选了PostgreSQL, and half of one is found by nobody.
    """
    at, letter = end, _compiled(_LETTER)
    while at > least and at < len(text) and letter.match(text, at) and letter.match(text, at - 1):
        at -= 1
    return at if at > least else end


def _continues(ch: str) -> bool:
    """Whether a code point belongs to the visible character before it."""
    if ch < "\u0300":
        return False
    return ch == _JOINER or "\U0001f3fb" <= ch <= "\U0001f3ff" or unicodedata.category(ch)[0] == "M"
