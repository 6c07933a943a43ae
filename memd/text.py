"""Text as memd counts, indexes and cuts it."""

import re
import unicodedata
from collections.abc import Iterable, Iterator

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
_CJK_CHARACTER = re.compile(f"[{_CJK}]")
_CJK_RUN = re.compile(f"[{_CJK}]+")
_OTHER_WORD = re.compile(f"[^\\W_{_CJK}]+")
_TOKEN = re.compile(f"[{_CJK}]|[^\\W_{_CJK}]+")
_LETTER = re.compile(f"[^\\W_{_CJK}]|[\u0300-\u036f]")  # of a word; accents may stand by themselves

# What a character costs beyond the quarter of a token that every character costs. Common CJK is one token; the
# rarer a block, the more byte pieces a tokenizer needs for it.
_COMMON = re.compile("[\u3000-\u319f\u4e00-\u9fa5\uac00-\ud7af\uff01-\uff60\U0001f000-\U0001faff]+")
_COMMON_COST = 3
_RARE = (
    (11, "\u1100-\u11ff\u2e80-\u2fff\u31a0-\u4dbf\u9fa6-\ua4cf\ua960-\ua97f\ud7b0-\ud7ff\uf900-\ufaff"),
    (7, "\u02c7\u02ca\u02cb\u02d9\ufe10-\ufe1f\ufe30-\ufe4f\uff61-\uffef"),
    (15, "\U00020000-\U0003ffff"),
)
_RARE_COSTS = tuple((cost, re.compile(f"[{block}]+")) for cost, block in _RARE)
DEAREST_QUARTERS = 1 + max(cost for cost, _ in _RARE)  # what no character costs more than
_ANY_RARE = re.compile(f"[{''.join(block for _, block in _RARE)}]")

_JOINER = "\u200d"
_LONGEST_CLUSTER = 32


def is_cjk(ch: str) -> bool:
    """Whether a character is indexed by itself because its script sets no spaces between words."""
    return _CJK_CHARACTER.match(ch) is not None


def is_mostly_cjk(text: str) -> bool:
    """Whether a text is written in a CJK script: it has at least as many such characters as other words."""
    return cjk_share(text) >= 0.5


def cjk_share(text: str) -> float:
    """How much of a text is written in a CJK script, 0..1: such characters count as much as other words."""
    if text.isascii():
        return 0.0
    cjk = sum(map(len, _CJK_RUN.findall(text)))
    return cjk / (cjk + len(_OTHER_WORD.findall(text))) if cjk else 0.0


def tokens(text: str) -> Iterator[re.Match[str]]:
    """Words, and CJK characters each by itself, as the keyword index divides a text."""
    return _TOKEN.finditer(text)


def words_beginning(beginnings: Iterable[str]) -> re.Pattern[str]:
    """What finds the words, of scripts that set spaces between them, that begin in one of these ways."""
    return re.compile(f"(?<![^\\W_{_CJK}])(?:{'|'.join(map(re.escape, beginnings))})[^\\W_{_CJK}]*")


def folded(text: str) -> str:
    """A text without the differences that do not count: of case, and of compatibility forms (NFKC)."""
    return text.lower() if text.isascii() else unicodedata.normalize("NFKC", text).lower()


def quarter_tokens(text: str) -> int:
    """The estimated size of a text in quarters of a token: a lower bound that adds up over parts.

    An ASCII or Latin character counts 1, a common CJK character or an emoji 4, a rarer one 8 to 16.
    """
    if text.isascii():
        return len(text)
    quarters = len(text) + _COMMON_COST * sum(map(len, _COMMON.findall(text)))
    if _ANY_RARE.search(text):
        quarters += sum(cost * sum(map(len, block.findall(text))) for cost, block in _RARE_COSTS)
    return quarters


def estimate_tokens(text: str) -> int:
    """How many tokens an embedding model will see, estimated without one: 4 Latin or 1 CJK character a token."""
    return -(-quarter_tokens(text) // 4)


def fts_text(text: str) -> str:
    """What the keyword index holds for a text: NFKC, lower case, every CJK character set apart by spaces.

    The index and the queries both pass through here, so that a run of CJK characters is a phrase of single ones.
    """
    if text.isascii():
        return text.lower()
    return _CJK_RUN.sub(lambda run: f" {' '.join(run[0])} ", folded(text))


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
    at = end
    while at > least and at < len(text) and _LETTER.match(text, at) and _LETTER.match(text, at - 1):
        at -= 1
    return at if at > least else end


def _continues(ch: str) -> bool:
    """Whether a code point belongs to the visible character before it."""
    if ch < "\u0300":
        return False
    return ch == _JOINER or "\U0001f3fb" <= ch <= "\U0001f3ff" or unicodedata.category(ch)[0] == "M"
