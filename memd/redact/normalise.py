"""A text as a reader sees it: full-width letters and digits as plain ones, blanks of any width as blanks, signs without a width left out."""

import re
from bisect import bisect_right

import msgspec

# Unicode's format characters (category Cf), variation selectors, the grapheme joiner and Mongolian's separators.
_HIDDEN = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U00013438"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # category Zs
_ODD = re.compile(f"[{_BLANKS}{_HIDDEN}０-９Ａ-Ｚａ-ｚ]")
_GONE = re.compile(f"[{_HIDDEN}]")
_PLAIN = {
    ord(wide): ord(wide) - 0xFEE0 for wide in "".join(map(chr, range(0xFF10, 0xFF5B))) if wide.isalnum()
} | {ord(blank): " " for blank in map(chr, range(0x3001)) if re.match(f"[{_BLANKS}]", blank)}


class NormalisedText(msgspec.Struct, frozen=True):
    """A text without oddities, which knows where each sign of it stood."""

    text: str
    before: tuple[int, ...]  # of each sign that was left out: how many signs stand before it now

    def place(self, at: int) -> int:
        """Where a sign stood in the text that was folded."""
        return at + bisect_right(self.before, at)


def folded(text: str) -> NormalisedText:
    """The same words in plain signs, so that a rule need not know how else they can be written."""
    if text.isascii() or _ODD.search(text) is None:
        return NormalisedText(text, ())
    plain = text.translate(_PLAIN)
    gone = [match.start() for match in _GONE.finditer(plain)]
    if not gone:
        return NormalisedText(plain, ())
    return NormalisedText(_GONE.sub("", plain), tuple(at - count for count, at in enumerate(gone)))
