"""A text as a reader sees it: full-width letters and digits as plain ones, signs without a width left out."""

import re
from bisect import bisect_right

import msgspec

_HIDDEN = "\u00ad\u200b\u200c\u200d\u200e\u200f\u2060\ufeff"
_ODD = re.compile(f"[\u00a0{_HIDDEN}０-９Ａ-Ｚａ-ｚ]")
_GONE = re.compile(f"[{_HIDDEN}]")
_PLAIN = {
    ord(wide): ord(wide) - 0xFEE0 for wide in "".join(map(chr, range(0xFF10, 0xFF5B))) if wide.isalnum()
} | {0xA0: " "}


class Folded(msgspec.Struct, frozen=True):
    """A text without oddities, which knows where each sign of it stood."""

    text: str
    before: tuple[int, ...]  # of each sign that was left out: how many signs stand before it now

    def place(self, at: int) -> int:
        """Where a sign stood in the text that was folded."""
        return at + bisect_right(self.before, at)


def folded(text: str) -> Folded:
    """The same words in plain signs, so that a rule need not know how else they can be written."""
    if text.isascii() or _ODD.search(text) is None:
        return Folded(text, ())
    plain = text.translate(_PLAIN)
    gone = [match.start() for match in _GONE.finditer(plain)]
    if not gone:
        return Folded(plain, ())
    return Folded(_GONE.sub("", plain), tuple(at - count for count, at in enumerate(gone)))
