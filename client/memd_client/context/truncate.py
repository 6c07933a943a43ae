"""The beginning and the end of a text that is too long to be shown whole."""

import unicodedata

_JOINER = "\u200d"
_LONGEST_CLUSTER = 32


def head(text: str, n: int) -> str:
    """The first n characters at most, not ending inside a character that is written with several code points."""
    if n >= len(text):
        return text
    end = max(0, n)
    at = end
    while at > 0 and end - at < _LONGEST_CLUSTER:
        if not (_continues(text[at]) or text[at - 1] == _JOINER):
            return text[:at]
        at -= 1
    return text[:end] if at else ""


def tail(text: str, n: int) -> str:
    """The last n characters at most, not beginning inside a character that is written with several code points."""
    if n >= len(text):
        return text
    start = len(text) - max(0, n)
    at = start
    while at < len(text) and at - start < _LONGEST_CLUSTER:
        if not (_continues(text[at]) or text[at - 1] == _JOINER):
            return text[at:]
        at += 1
    return text[start:] if at < len(text) else ""


def ends(beginning: str, end: str, cap: int, *, head_share: float, mark: str) -> str:
    """The two ends of a text with a mark between, all of it in cap characters.

    Args:
        beginning: The text, or at least the first cap characters of it.
        end: The text, or at least the last cap characters of it.
        cap: The most characters of the result, the mark included.
        head_share: How much of the room the beginning gets, 0..1.
        mark: What says that something is missing. Where it would take half of the room, "…" takes its place.
    """
    if 2 * len(mark) > cap:
        mark = "…"
    room = cap - len(mark)
    if room < 0:
        return ""
    first = int(room * head_share)
    return head(beginning, first) + mark + tail(end, room - first)


def _continues(ch: str) -> bool:
    """Whether a code point belongs to the visible character before it."""
    if ch < "\u0300":
        return False
    return ch == _JOINER or "\U0001f3fb" <= ch <= "\U0001f3ff" or unicodedata.category(ch)[0] == "M"
