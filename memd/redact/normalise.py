"""A text as a reader or a program that decodes it sees it.

Full-width letters and digits become plain ones and blanks of any width blanks; signs without a width and the colours of a
terminal are left out. Percent-encoding, escapes of JSON, entities of HTML and base64 are decoded.
"""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterator

import msgspec

from memd.redact.rule import Runs

# Unicode's format characters (category Cf), variation selectors, the grapheme joiner and Mongolian's separators.
_HIDDEN = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb\U000110bd\U000110cd\U00013430-\U00013438"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # category Zs
_ODD = re.compile(f"[\x1b{_BLANKS}{_HIDDEN}０-９Ａ-Ｚａ-ｚ]")
_GONE = re.compile(rf"[{_HIDDEN}]|\x1b\[[0-9;?]{{0,20}}[A-Za-z]")
# All begin with one of three signs, which is what makes it fast to look for them.
_ESCAPE = re.compile(
    r"[%\\&](?:(?<=%)(?P<percent>[2-7][0-9A-Fa-f]|0[9AaDd])"
    r"|(?<=\\)\\{0,7}u00(?P<unicode>[2-7][0-9A-Fa-f])"
    r"|(?<=\\)\\{0,7}x(?P<hex>[2-7][0-9A-Fa-f])"
    r"|(?<=&)(?P<entity>(?:quot|apos|amp|lt|gt|equals|colon|lowbar|hyphen|period|#[0-9]{2,3}|#[xX][2-7][0-9A-Fa-f]);)"
    r"|(?<=\\)(?P<markdown>[_*.~-])(?=[A-Za-z0-9]))"
)
_LEVELS = 2  # of escapes in escapes: "%253D" is "%3D" is "="
# Lines as mail and PEM have them, or one run.
_BASE64 = re.compile(
    r"(?<![\w+/])(?:(?:[A-Za-z0-9+/]{60,76}\r?\n[ \t>]{0,8})++[A-Za-z0-9+/]{1,76}={0,2}|[A-Za-z0-9+/_-]{24,}+={0,2})",
    re.ASCII,
)
_LONG = re.compile(r"[A-Za-z0-9+/_-]{24,}+")
_PROBE = 24  # signs of base64 that tell whether it is of a text
_ONLY_TEXT = re.compile(r"[\t\n\r -~]*+")
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

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of it stood, with all of an escape that it begins with."""
        return (self.place(start - 1) + 1 if start else 0), self.place(end - 1) + 1


def folded(text: str) -> NormalisedText:
    """The same words in plain signs, so that a rule need not know how else they can be written."""
    if (text.isascii() and "\x1b" not in text) or _ODD.search(text) is None:
        return NormalisedText(text, ())
    plain = text.translate(_PLAIN)
    gone = [at for match in _GONE.finditer(plain) for at in range(*match.span())]
    if not gone:
        return NormalisedText(plain, ())
    return NormalisedText(_GONE.sub("", plain), tuple(at - count for count, at in enumerate(gone)))


def decoded(text: str) -> Iterator[tuple[int, NormalisedText]]:
    """The lines of a text from the first with an escape to the last with one, without its escapes.

    Yields:
        Where they begin; what they are once decoded, a second time for what was escaped twice.
    """
    first = _ESCAPE.search(text) if "%" in text or "\\" in text or "&" in text else None
    if first is None:
        return
    start = text.rfind("\n", 0, first.start()) + 1
    escapes = list(_ESCAPE.finditer(text, first.start()))
    end = text.find("\n", escapes[-1].end())
    plain = NormalisedText(text[start : len(text) if end < 0 else end], ())
    for _ in range(_LEVELS):
        inner = _without_escapes(plain.text)
        if inner is None:
            return
        # Of each sign that was left out: how many stand before it; those left out before are counted with them.
        places = [plain.place(at) for at in inner.left_out]
        left = sorted({*_left_out(plain), *places})
        plain = NormalisedText(inner.text, tuple(at - count for count, at in enumerate(left)))
        yield start, plain


def _left_out(plain: NormalisedText) -> Iterator[int]:
    return (at + count for count, at in enumerate(plain.before))


class _Decoded(msgspec.Struct, frozen=True):
    text: str
    left_out: list[int]  # the places of what an escape has before its last sign


def _without_escapes(text: str) -> _Decoded | None:
    pieces: list[str] = []
    left_out: list[int] = []
    at = 0
    for match in _ESCAPE.finditer(text):
        sign = _sign(match)
        pieces += (text[at : match.start()], sign)
        left_out += range(match.start(), match.end() - 1)
        at = match.end()
    if not pieces:
        return None
    return _Decoded("".join((*pieces, text[at:])), left_out)


def _sign(match: re.Match[str]) -> str:
    """What an escape stands for: one sign."""
    code = match["percent"] or match["unicode"] or match["hex"]
    if code:
        return chr(int(code, 16))
    sign = match["markdown"] or html.unescape("&" + match["entity"])
    return sign if len(sign) == 1 else " "


def base64_texts(text: str, runs: Runs) -> Iterator[tuple[int, int, str]]:
    """Each text that stands in base64 in another: where it begins and ends there, and what it is.

    Args:
        text: The other text.
        runs: Whatever is long in it and has no blank.
    """
    after = 0
    for long in _LONG.finditer(runs.text):
        at = runs.place(long.start())
        match = _BASE64.match(text, at) if at >= after else None
        if match is None or _ONLY_TEXT.fullmatch(_bytes(match[0][:_PROBE]).decode("latin-1")) is None:
            continue
        after = match.end()
        # A word on the line below is no last line of it.
        for written in (match[0], match[0].rpartition("\n")[0]):
            told = _utf8(written)
            if told is not None:
                yield match.start(), match.start() + len(written.rstrip()), told
                break


def _utf8(written: str) -> str | None:
    """The text that base64 stands for; None where it stands for other bytes."""
    told = _bytes("".join(written.replace(">", "").split()))
    try:
        return told.decode() if told and b"\0" not in told else None
    except UnicodeDecodeError:
        return None


def _bytes(written: str) -> bytes:
    """What base64 stands for, as far as it is whole; a zero byte where it is none."""
    plain = written.rstrip("=").replace("-", "+").replace("_", "/")
    whole = len(plain) - (len(plain) % 4 == 1)
    try:
        return base64.b64decode(plain[:whole] + "=" * (-whole % 4))
    except binascii.Error:
        return b"\0"
