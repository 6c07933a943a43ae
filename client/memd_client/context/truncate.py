"""Truncates texts without splitting a visible character."""

import unicodedata

_JOINER = "\u200d"
_LONGEST_CLUSTER = 32


def safe_end(text: str, end: int) -> int:
    """Return the last position up to end at which a text may be cut without breaking a visible character."""
    if end >= len(text):
        return len(text)
    at = max(0, end)
    while at > 0 and end - at < _LONGEST_CLUSTER:
        if not (_continues(text[at]) or text[at - 1] == _JOINER):
            return at
        at -= 1
    return end if at > 0 else 0  # a run of marks longer than any real character is cut at `end`


def head(text: str, n: int) -> str:
    """Return at most the first n characters, without splitting a visible character of several code points."""
    return text[: safe_end(text, n)]


def tail(text: str, n: int) -> str:
    """Return at most the last n characters, without splitting a visible character of several code points."""
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
    """Return the beginning and the end of a text with a mark between them, in at most cap characters.

    Args:
        beginning: The text, or at least the first cap characters of it.
        end: The text, or at least the last cap characters of it.
        cap: The most characters of the result, the mark included.
        head_share: The beginning's share of the room, 0..1.
        mark: Says that something is missing; replaced by "…" if it would take more than half of cap.
    """
    if 2 * len(mark) > cap:
        mark = "…"
    room = cap - len(mark)
    if room < 0:
        return ""
    first = int(room * head_share)
    return head(beginning, first) + mark + tail(end, room - first)


def _continues(ch: str) -> bool:
    """Return whether a code point belongs to the visible character before it."""
    if ch < "\u0300":
        return False
    return ch == _JOINER or "\U0001f3fb" <= ch <= "\U0001f3ff" or unicodedata.category(ch)[0] == "M"
