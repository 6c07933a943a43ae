"""Normalises a text to the form that a reader or a decoder sees.

Full-width letters, and digits of other scripts, become ASCII, and blanks of any width become spaces; invisible characters and
terminal colours are removed. Percent-encoding, JSON escapes, HTML entities and base64 are decoded.
"""

import base64
import binascii
import html
import re
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from functools import lru_cache

import msgspec

from memd.redact.rule import Runs, Span

# Unicode's format characters (category Cf), variation selectors, the grapheme joiner and Mongolian's separators.
_HIDDEN_OF_FIRST_PLANE = (
    "\u00ad\u034f\u0600-\u0605\u061c\u06dd\u070f\u0890\u0891\u08e2\u180b-\u180f\u200b-\u200f\u202a-\u202e"
    "\u2060-\u206f\ufe00-\ufe0f\ufeff\ufff9-\ufffb"
)
_HIDDEN = (
    f"{_HIDDEN_OF_FIRST_PLANE}\U000110bd\U000110cd\U00013430-\U00013438"
    "\U0001bca0-\U0001bca3\U0001d173-\U0001d17a\U000e0001\U000e0020-\U000e007f\U000e0100-\U000e01ef"
)
_BLANKS = "\u00a0\u1680\u2000-\u200a\u202f\u205f\u3000"  # category Zs
# The first digits, 0, of scripts whose digits people write in text; nine more follow each. Mathematical digits are chosen for looks.
_ZEROS_OF_FIRST_PLANE = "٠۰߀०০੦૦୦௦౦೦൦๐໐༠၀០᠐"
_ZEROS = f"{_ZEROS_OF_FIRST_PLANE}\U0001d7ce\U0001d7d8\U0001d7e2\U0001d7ec\U0001d7f6"
_OTHER_DIGITS = {ord(zero) + n: str(n) for zero in _ZEROS for n in range(10)}
_OTHER_DIGIT = re.compile(f"[{''.join(map(chr, _OTHER_DIGITS))}]")
_DIGITS_OF_FIRST_PLANE = "".join(f"{zero}-{chr(ord(zero) + 9)}" for zero in _ZEROS_OF_FIRST_PLANE)
# Beyond the first plane, two ranges contain all of them, and no emoji. Characters in between cost one more search only.
_ODD = re.compile(
    f"[\x1b{_BLANKS}{_HIDDEN_OF_FIRST_PLANE}０-９Ａ-Ｚａ-ｚ{_DIGITS_OF_FIRST_PLANE}\U000110bd-\U0001d7ff\U000e0001-\U000e01ef]"
)
_GONE = re.compile(rf"[{_HIDDEN}]|\x1b\[[0-9;?]{{0,20}}[A-Za-z]")
_MAY_BE_GONE = re.compile(rf"[{_HIDDEN}\x1b]")  # one class of characters is searched for fastest
# By first character: searching for one character at a time is fast.
_ESCAPES = {
    "%": r"%(?:[2-7][0-9A-Fa-f]|0[9AaDd])",
    "\\": r"\\(?:\\{0,7}(?:u00|x)[2-7][0-9A-Fa-f]|[_*.~-](?=[A-Za-z0-9]))",
    "&": r"&(?:quot|apos|amp|lt|gt|equals|colon|lowbar|hyphen|period|#[0-9]{2,3}|#[xX][2-7][0-9A-Fa-f]);",
}
_ESCAPE = re.compile("|".join(_ESCAPES.values()))
_OF_SIGN = {sign: re.compile(pattern) for sign, pattern in _ESCAPES.items()}
_MOST_BETWEEN = 1_000  # characters: lines with escapes that are closer together are decoded together
_LEVELS = 2  # of nested escapes: "%253D" is "%3D" is "="
# The longest repeated piece, the shortest repetition that is shortened, and the characters kept at either end of it.
_MOST_REPEATED, _LEAST_REPEATED, REPEATS_KEPT = 600, 16_384, 4_096
_PROBE_OF_REPEAT = 32  # characters by which a repetition is recognised
# Base64 as lines of mail and PEM, or as one run.
_BASE64 = re.compile(
    r"(?<![\w+/])(?:(?:[A-Za-z0-9+/]{60,76}\r?\n[ \t>]{0,8})++[A-Za-z0-9+/]{1,76}={0,2}|[A-Za-z0-9+/_-]{24,}+={0,2})",
    re.ASCII,
)
_LONG = re.compile(r"[A-Za-z0-9+/_-]{24,}+")
_PROBE = 24  # base64 characters that show whether it encodes text
_ONLY_TEXT = re.compile(r"[\t\n\r -~]*+")
_PLAIN = {
    wide: chr(ord(wide) - 0xFEE0) for wide in "".join(map(chr, range(0xFF10, 0xFF5B))) if wide.isalnum()
} | {blank: " " for blank in map(chr, range(0x3001)) if re.match(f"[{_BLANKS}]", blank)}


class NormalisedText(msgspec.Struct, frozen=True):
    """A normalised text with a mapping of its offsets to the original."""

    text: str
    gaps: tuple[int, ...] = ()  # for each removed piece, its offset in this text
    lost: tuple[int, ...] = ()  # for each removed piece, how many characters were removed up to its end
    under: "NormalisedText | None" = None  # the text that this one was made of, if that is not the original

    def place(self, at: int) -> int:
        """Convert an offset to one in the original text."""
        gap = bisect_right(self.gaps, at)
        stood = at + self.lost[gap - 1] if gap else at
        return stood if self.under is None else self.under.place(stood)

    def inner(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Convert spans of the text that this one was made of to spans of this one."""
        if not self.gaps:
            return spans
        behind = [gap + lost for gap, lost in zip(self.gaps, self.lost, strict=True)]

        def here(at: int) -> int:
            passed = bisect_right(behind, at)
            place = at - (self.lost[passed - 1] if passed else 0)
            return min(place, self.gaps[passed]) if passed < len(self.gaps) else place

        return [(here(start), here(end)) for start, end in spans]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Convert a span to one in the original; an escape at its beginning is included entirely."""
        return (self.place(start - 1) + 1 if start else 0), self.place(end - 1) + 1


class Repeat(msgspec.Struct, frozen=True):
    """A removed repetition of a short piece."""

    gap: int  # the offset in the shortened text where it was removed
    period: int  # characters of the piece
    times: int  # how often the piece was removed


def without_repeats(text: str) -> tuple[NormalisedText, tuple[Repeat, ...]]:
    """Shorten long repetitions of a short piece, as produced by a model caught in a loop.

    A secret in such a stretch is in each repetition, so that it is enough to search some of them.
    """
    pieces: list[str] = []
    repeats: list[Repeat] = []
    lost: list[int] = []
    at = begin = total = 0
    while begin + _LEAST_REPEATED <= len(text):
        end = begin + REPEATS_KEPT
        again = text.find(
            text[begin : begin + _PROBE_OF_REPEAT], begin + 1, begin + _MOST_REPEATED + _PROBE_OF_REPEAT
        )
        # What begins to repeat itself in the middle of these characters does so from the next ones on.
        if again > begin and text[begin : end - again + begin] == text[again:end]:
            period = again - begin
            while text[end - period : end - period + REPEATS_KEPT] == text[
                end : end + REPEATS_KEPT
            ] and end < len(text):
                end += REPEATS_KEPT
            times = (end - begin - 2 * REPEATS_KEPT) // period
            if end - begin >= _LEAST_REPEATED:
                gap = begin + REPEATS_KEPT
                pieces.append(text[at:gap])
                repeats.append(Repeat(gap - total, period, times))
                at = gap + times * period
                total += times * period
                lost.append(total)
        begin = end
    pieces.append(text[at:])
    return NormalisedText("".join(pieces), tuple(one.gap for one in repeats), tuple(lost)), tuple(repeats)


def folded(text: str) -> NormalisedText:
    """Replace characters by plain ones, so that rules need not know their variants."""
    if (text.isascii() and "\x1b" not in text) or _ODD.search(text) is None:
        return NormalisedText(text)
    plain = text
    # Text has few of them: to look for each takes less than half of the time of str.translate.
    for wide, narrow in _PLAIN.items():
        plain = plain.replace(wide, narrow)
    if _OTHER_DIGIT.search(plain) is not None:
        plain = plain.translate(_OTHER_DIGITS)
    if _MAY_BE_GONE.search(plain) is None:
        return NormalisedText(plain)
    pieces: list[str] = []
    gaps: list[int] = []
    lost: list[int] = []
    at = total = 0
    for match in _GONE.finditer(plain):
        start, end = match.span()
        pieces.append(plain[at:start])
        gaps.append(start - total)
        total += end - start
        lost.append(total)
        at = end
    if not pieces:
        return NormalisedText(plain)
    pieces.append(plain[at:])
    return NormalisedText("".join(pieces), tuple(gaps), tuple(lost))


def decoded(text: str, near: Sequence[Span]) -> Iterator[tuple[int, NormalisedText]]:
    """Decode the lines with escapes in parts of a text; nearby lines are decoded together with the text between them.

    Of a line that goes beyond its part, the rest is left out.

    Yields:
        The offset of the lines, and the decoded text; a second time if it was escaped twice.
    """
    for start, end in _with_escapes(text, near):
        plain = NormalisedText(text[start:end])
        for _ in range(_LEVELS):
            inner = _without_escapes(plain)
            if inner is None:
                break
            plain = inner
            yield start, plain


def _with_escapes(text: str, near: Sequence[Span]) -> list[Span]:
    """Return the lines with escapes, as far as they are in the parts, with the text between lines that are close together."""
    spans: list[Span] = []
    for start, stop in near:
        found = sorted(
            match.span()
            for sign, pattern in _OF_SIGN.items()
            if sign in text
            for match in pattern.finditer(text, start, stop)
        )
        end, others = start, len(spans)
        for first, last in found:
            if last > end:
                begin = text.rfind("\n", end, first) + 1 or end
                if len(spans) > others and begin - end <= _MOST_BETWEEN:
                    begin = spans.pop()[0]
                end = text.find("\n", last, stop)
                end = stop if end < 0 else end
                spans.append((begin, end))
    return spans


def _without_escapes(under: NormalisedText) -> NormalisedText | None:
    """Return a text with escapes decoded; each decoded character has the offset of its escape's last one."""
    text = under.text
    pieces: list[str] = []
    gaps: list[int] = []
    lost: list[int] = []
    at = total = 0
    for match in _ESCAPE.finditer(text):
        start, end = match.span()
        pieces += (text[at:start], _sign(match[0]))
        gaps.append(start - total)
        total += end - start - 1
        lost.append(total)
        at = end
    if not pieces:
        return None
    pieces.append(text[at:])
    return NormalisedText("".join(pieces), tuple(gaps), tuple(lost), under)


@lru_cache(maxsize=4096)
def _sign(escape: str) -> str:
    """Return the character that an escape encodes."""
    if escape[0] == "&":
        sign = html.unescape(escape)
        return sign if len(sign) == 1 else " "
    code = escape[-2:]
    return chr(int(code, 16)) if code[0] != "\\" else code[1]


def base64_texts(text: str, runs: Runs) -> Iterator[tuple[int, int, str]]:
    """Yield each text that is encoded in base64 within another one, as (start, end, decoded text).

    Args:
        text: The other text.
        runs: Its long words.
    """
    after = 0
    for long in _LONG.finditer(runs.text):
        at = runs.place(long.start())
        # Most base64 encodes no text. Its first characters tell, and its other lines need not be read.
        if at < after or _ONLY_TEXT.fullmatch(_bytes(text[at : at + _PROBE]).decode("latin-1")) is None:
            continue
        match = _BASE64.match(text, at)
        if match is None:
            continue
        after = match.end()
        # The last line may be a word that does not belong to it.
        for written in (match[0], match[0].rpartition("\n")[0]):
            decoded_text = _utf8(written)
            if decoded_text is not None:
                yield match.start(), match.start() + len(written.rstrip()), decoded_text
                break


def _utf8(written: str) -> str | None:
    """Decode base64 to text; None if the bytes are not UTF-8 text."""
    decoded_text = _bytes("".join(written.replace(">", "").split()))
    try:
        return decoded_text.decode() if decoded_text and b"\0" not in decoded_text else None
    except UnicodeDecodeError:
        return None


def _bytes(written: str) -> bytes:
    """Decode base64 without its incomplete end; a zero byte if it is not base64."""
    plain = written.rstrip("=").replace("-", "+").replace("_", "/")
    whole = len(plain) - (len(plain) % 4 == 1)
    try:
        return base64.b64decode(plain[:whole] + "=" * (-whole % 4))
    except binascii.Error:
        return b"\0"
