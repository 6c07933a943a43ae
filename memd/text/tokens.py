"""Splits text into words, in one form for notes and questions, and measures its width."""

import re
import unicodedata
from collections.abc import Callable, Iterable, Iterator
from functools import cache, lru_cache

from memd.text.simplified_chinese import simplified

# Scripts written without spaces between words, and Hangul, whose words have particles attached.
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
# Compiled on first use: classes of so many characters would add 10 ms to each start, and ASCII text needs
# none.
_compiled = cache(re.compile)
_CJK_RUN = f"[{_CJK}]+"
_OTHER_WORD = f"[^\\W_{_CJK}]+"
_LETTER = f"[^\\W_{_CJK}]|[\u0300-\u036f]"  # part of a word, including a separate accent

# A word character in the result of fts_text, as in FTS5's tokenizer "ascii". Written as a complement, it
# compiles ten times as fast as the equal [0-9a-z\x80-\U0010ffff].
WORD_CHARACTER = r"[^\x00-/:-`{-\x7f]"
_TOKEN = re.compile(f"{WORD_CHARACTER}+")
# In shapes: a run of conjoining jamo, which form syllables; a CJK character or a symbol with its marks; a
# word.
_PLACE = re.compile("j+m*|cm*|[wm]+")

# Punctuation of nearly every Chinese text, which NFKC would change: it separates words, and composes with nothing.
_FULLWIDTH_SEPARATORS = "，：；！？（）"
# Of bytes in UTF-8: ASCII separators become spaces.
_SPACED = bytes(code if code >= 0x80 or chr(code).isalnum() else ord(" ") for code in range(256))

_ALIKE = {"\u0131": "i", "\u0451": "\u0435", "\u0450": "\u0435", "\u045d": "\u0438"}  # ı ё ѐ ѝ
_ZERO_WIDTH_SPACE = "\u200b"


class _Forms(dict[int, str]):
    """Maps each character of a folded text to its form in the index; computed when it first occurs."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        form = self[code] = f" {simplified(ch)} " if is_cjk(ch) else _form(ch)
        return form


class _FormsOfRuns(_Forms):
    """Like _Forms, but a run of CJK characters is one word."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        form = self[code] = ch if is_cjk(ch) else _form(ch)
        return form


def _form(ch: str) -> str:
    """Return the form of a character within a word: without accents; a symbol between spaces; a space for a separator."""
    category = unicodedata.category(ch)
    match category[0]:
        case "L" | "N":
            bare = unicodedata.normalize("NFD", ch)[0]
            # Latin and Greek accents are often omitted; in other scripts such marks belong to different
            # letters.
            return bare if bare.isascii() or "\u0370" <= bare <= "\u03ff" else _ALIKE.get(ch, ch)
        case "M":
            return "" if _is_accent(ch, category) else ch
        case _:
            pass
    match category:
        case "So" | "Co":
            # Box-drawing characters of tables.
            return " " if "\u2500" <= ch <= "\u259f" or ch == "\ufffd" else f" {ch} "
        case "Sk":
            return "" if "\U0001f3fb" <= ch <= "\U0001f3ff" else " "  # the skin tone of an emoji
        case "Cf":
            return " " if ch == _ZERO_WIDTH_SPACE else ""
        case "Cn":
            # Noncharacters separate words; of the characters that newer versions of Unicode add, most are
            # letters.
            return " " if _is_noncharacter(ch) else ch
        case _:
            return " "


def _is_noncharacter(ch: str) -> bool:
    return ord(ch) & 0xFFFE == 0xFFFE or "\ufdd0" <= ch <= "\ufdef"


def _is_mark(ch: str) -> bool:
    return unicodedata.category(ch)[0] == "M"


def _is_accent(ch: str, category: str) -> bool:
    """Return whether a mark is usually omitted in a question: accents, vowel points of Hebrew or Arabic, enclosing circles.

    By canonical combining class (unicode.org/reports/tr44, table 15): the marks that Indic and South East
    Asian scripts need for spelling have other classes.
    """
    place = unicodedata.combining(ch)
    is_variant = "\ufe00" <= ch <= "\ufe0f" or "\U000e0100" <= ch <= "\U000e01ef" or ch == "\u034f"
    return category == "Me" or is_variant or place in {1, 8} or 10 <= place <= 36 or place >= 200


_FORMS = _Forms()


class _Shapes(dict[int, str]):
    """Maps each character of a text to its shape, as one character: see _PLACE. A space is a separator."""

    def __missing__(self, code: int) -> str:
        ch = chr(code)
        made = words_of(ch)
        if "\u1100" <= ch <= "\u11ff":
            shape = "j"
        elif not ch.isascii() and len(words_of(f"a{ch}a")) == 1 and (not made or _is_mark(ch)):
            shape = "m"
        elif not made:
            shape = " "
        else:
            shape = "c" if all(is_cjk(token) or _form(token[0]) != token[0] for token in made) else "w"
        self[code] = shape
        return shape


_SHAPES = _Shapes()


@lru_cache(maxsize=1 << 14)  # called for a hundred characters of each question
def is_cjk(ch: str) -> bool:
    """Return whether a character is a token by itself, because its script has no spaces between words."""
    return _compiled(_CJK_RUN).match(ch) is not None


def is_mostly_cjk(text: str) -> bool:
    """Return whether a text is written in a CJK script: it has at least as many such characters as other words."""
    return cjk_share(text) >= 0.5


def cjk_share(text: str) -> float:
    """Return the share of CJK script in a text, 0..1; a CJK character counts as much as another word."""
    if text.isascii():
        return 0.0
    cjk = sum(map(len, _compiled(_CJK_RUN).findall(text)))
    return cjk / (cjk + len(_compiled(_OTHER_WORD).findall(text))) if cjk else 0.0


def folded(text: str) -> str:
    """Return a text without differences of case and compatibility forms (Unicode's NFKC and case folding)."""
    if text.isascii():
        return text.lower()
    return unicodedata.normalize("NFKC", unicodedata.normalize("NFKC", text).casefold())


def fts_text(text: str) -> str:
    """Return what the keyword index contains for a text: its tokens, folded, without accents, in simplified Chinese.

    A token is a word, which consists of letters, digits and marks, or a single CJK character or symbol, such
    as an emoji. All other characters separate tokens. Both the indexed text and the questions are converted
    here, and FTS5's tokenizer ("ascii") splits the result where this function does: at ASCII characters that
    are neither letters nor digits. So a run of CJK characters is a phrase of single ones.
    """
    if text.isascii():
        return text.lower()
    # Without these marks most texts are normalized already, and NFKC has nothing to do.
    for mark in _FULLWIDTH_SEPARATORS:
        text = text.replace(mark, " ")
    return folded(text).translate(_FORMS)


def words_of(text: str) -> list[str]:
    """Return the tokens of fts_text in order, in half the time of a regular expression."""
    return fts_text(text).encode().translate(_SPACED).decode().split()


def words_and(kept: str) -> Callable[[str], str]:
    """Return a function that works like fts_text, but also keeps the ASCII characters in `kept`.

    It also leaves a run of CJK characters as one word.
    """
    forms = _FormsOfRuns({ord(ch): ch for ch in kept})
    return lambda text: folded(text).translate(forms)


def width(text: str) -> int:
    """Return the display width of a text, in which a CJK character counts as two."""
    return len(text) if text.isascii() else len(text) + sum(map(len, _compiled(_CJK_RUN).findall(text)))


def tokens(text: str) -> Iterator[tuple[str, int, int]]:
    """Yield the tokens of fts_text with their positions in the text, as (token, start, end).

    Tokens that come from one character of the text, such as a ligature or an abbreviation sign, have the same
    position.
    """
    if text.isascii():
        for found in _TOKEN.finditer(text.lower()):
            yield found[0], found.start(), found.end()
        return
    for place in _PLACE.finditer(text.translate(_SHAPES)):
        for token in words_of(text[place.start() : place.end()]):
            yield token, place.start(), place.end()


def words_beginning(beginnings: Iterable[str]) -> re.Pattern[str]:
    """Return a pattern that finds tokens with one of these prefixes in the result of fts_text."""
    return re.compile(f"(?<!{WORD_CHARACTER})(?:{'|'.join(map(re.escape, beginnings))}){WORD_CHARACTER}*")


def word_end(text: str, end: int, least: int) -> int:
    """Return the last position up to end that is not within a word of a script with spaces; end, if none is after least.

    Text without spaces may contain such words, as in 我们选了PostgreSQL, and no search finds half a word.
    """
    at, letter = end, _compiled(_LETTER)
    while at > least and at < len(text) and letter.match(text, at) and letter.match(text, at - 1):
        at -= 1
    return at if at > least else end
