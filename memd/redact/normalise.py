"""A text as a reader or a program that decodes it sees it.

Full-width letters and digits become plain ones and blanks of any width blanks; signs without a width and the colours of a
terminal are left out. Percent-encoding, escapes of JSON, entities of HTML and base64 are decoded.
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
# Beyond the first plane two ranges have them all, and no emoji: what is only seen here costs nothing but a closer look.
_ODD = re.compile(
    f"[\x1b{_BLANKS}{_HIDDEN_OF_FIRST_PLANE}０-９Ａ-Ｚａ-ｚ\U000110bd-\U0001d17a\U000e0001-\U000e01ef]"
)
_GONE = re.compile(rf"[{_HIDDEN}]|\x1b\[[0-9;?]{{0,20}}[A-Za-z]")
# By the sign that each begins with: to look for one sign at a time is what makes it fast.
_ESCAPES = {
    "%": r"%(?:[2-7][0-9A-Fa-f]|0[9AaDd])",
    "\\": r"\\(?:\\{0,7}(?:u00|x)[2-7][0-9A-Fa-f]|[_*.~-](?=[A-Za-z0-9]))",
    "&": r"&(?:quot|apos|amp|lt|gt|equals|colon|lowbar|hyphen|period|#[0-9]{2,3}|#[xX][2-7][0-9A-Fa-f]);",
}
_ESCAPE = re.compile("|".join(_ESCAPES.values()))
_OF_SIGN = {sign: re.compile(pattern) for sign, pattern in _ESCAPES.items()}
_MOST_BETWEEN = 1_000  # signs: lines with escapes that have no more between them are decoded together
_LEVELS = 2  # of escapes in escapes: "%253D" is "%3D" is "="
# A piece of so many signs at most that is repeated for so many; of the repeats so many signs are kept at either end.
_MOST_REPEATED, _LEAST_REPEATED, REPEATS_KEPT = 600, 16_384, 4_096
_PROBE_OF_REPEAT = 32  # signs that stand there again
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
    gaps: tuple[int, ...] = ()  # where something was left out: the place in this text of the sign behind it
    lost: tuple[int, ...] = ()  # how many signs were left out up to there, those of the gap included
    under: "NormalisedText | None" = None  # what this one was made of, where that is none that was given

    def place(self, at: int) -> int:
        """Where a sign stood in the text that was given."""
        gap = bisect_right(self.gaps, at)
        stood = at + self.lost[gap - 1] if gap else at
        return stood if self.under is None else self.under.place(stood)

    def inner(self, spans: Sequence[Span]) -> Sequence[Span]:
        """Where parts of the text that it was made of stand in it, in their order."""
        if not self.gaps:
            return spans
        behind = [gap + lost for gap, lost in zip(self.gaps, self.lost, strict=True)]

        def here(at: int) -> int:
            passed = bisect_right(behind, at)
            place = at - (self.lost[passed - 1] if passed else 0)
            return min(place, self.gaps[passed]) if passed < len(self.gaps) else place

        return [(here(start), here(end)) for start, end in spans]

    def span(self, start: int, end: int) -> tuple[int, int]:
        """Where a part of it stood, with all of an escape that it begins with."""
        return (self.place(start - 1) + 1 if start else 0), self.place(end - 1) + 1


class Repeat(msgspec.Struct, frozen=True):
    """A piece of a text that is repeated there, and was left out as often as that does not matter."""

    gap: int  # where it was left out: the place in the shorter text of the sign behind it
    period: int  # signs of the piece
    times: int  # so often it was left out


def without_repeats(text: str) -> tuple[NormalisedText, tuple[Repeat, ...]]:
    """A text without what repeats one short piece for a long way, as a model does that is caught in a loop.

    What is secret in such a stretch is so in each of its pieces: it is enough to look at some of them.
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
        if again > begin:
            period = again - begin
            while text[end - period : end - period + REPEATS_KEPT] == text[
                end : end + REPEATS_KEPT
            ] and end < len(text):
                end += REPEATS_KEPT
            times = (end - begin - 2 * REPEATS_KEPT) // period
            if (
                end - begin >= _LEAST_REPEATED
                and text[begin : begin + REPEATS_KEPT - period] == text[again : begin + REPEATS_KEPT]
            ):
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
    """The same words in plain signs, so that a rule need not know how else they can be written."""
    if (text.isascii() and "\x1b" not in text) or _ODD.search(text) is None:
        return NormalisedText(text)
    plain = text.translate(_PLAIN)
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
        return NormalisedText(text if plain == text else plain)
    pieces.append(plain[at:])
    return NormalisedText("".join(pieces), tuple(gaps), tuple(lost))


def decoded(text: str, near: Sequence[Span]) -> Iterator[tuple[int, NormalisedText]]:
    """The lines with escapes in parts of a text, without their escapes; with what stands between such lines that are near.

    Yields:
        Where they begin; what they are once decoded, a second time for what was escaped twice.
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
    found = [
        match.span()
        for sign, pattern in _OF_SIGN.items()
        if sign in text
        for start, end in near
        for match in pattern.finditer(text, start, end)
    ]
    spans: list[Span] = []
    end = 0
    for first, last in sorted(found):
        if last > end or not spans:
            begin = text.rfind("\n", end, first) + 1 or end
            if spans and begin - end <= _MOST_BETWEEN:
                begin = spans.pop()[0]
            end = text.find("\n", last)
            end = len(text) if end < 0 else end
            spans.append((begin, end))
    return spans


def _without_escapes(under: NormalisedText) -> NormalisedText | None:
    """The same with each escape as the sign that it stands for, in the place of its last sign."""
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
    """What an escape stands for: one sign."""
    if escape[0] == "&":
        sign = html.unescape(escape)
        return sign if len(sign) == 1 else " "
    code = escape[-2:]
    return chr(int(code, 16)) if code[0] != "\\" else code[1]


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
            decoded_text = _utf8(written)
            if decoded_text is not None:
                yield match.start(), match.start() + len(written.rstrip()), decoded_text
                break


def _utf8(written: str) -> str | None:
    """The text that base64 stands for; None where it stands for other bytes."""
    decoded_text = _bytes("".join(written.replace(">", "").split()))
    try:
        return decoded_text.decode() if decoded_text and b"\0" not in decoded_text else None
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
