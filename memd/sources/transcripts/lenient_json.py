"""Decodes JSON of programs whose formats change, without raising errors."""

import hashlib
import math
import re
from collections.abc import Callable
from datetime import UTC, datetime
from typing import Any, TypeVar

import msgspec

from memd.domain_types import Role
from memd.sources.transcripts.format import Event, UnparsedLine

NO_JSON = msgspec.Raw()  # the default of a field that is read later, or not at all
NULL = msgspec.Raw(b"null")  # likewise, of one that must be there

_State = TypeVar("_State")
_BROKEN = (UnparsedLine("broken"),)
_UNKNOWN = (UnparsedLine("unknown"),)

# One escape after the other, so that the second half of an escaped backslash begins none.
_ESCAPE = re.compile(
    rb"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
_LATEST = 253_402_300_800.0  # the year 10000
_LONGEST_TIME = 40  # characters


class _Block(msgspec.Struct, gc=False):
    type: Any = None
    text: Any = None
    thought: Any = None


_Content = _Block | str | int | float | bool | None
_decode_content = msgspec.json.Decoder(_Content | list[_Content | list[Any]]).decode
_decode_any = msgspec.json.Decoder().decode
_check = msgspec.json.Decoder(msgspec.Raw).decode


def never_raising(
    read: Callable[[bytes, _State], tuple[Event, ...]],
) -> Callable[[bytes, _State], tuple[Event, ...]]:
    """Wrap a function that may raise errors of msgspec as a parser that raises none.

    A line that is not JSON is reported as broken, and one of another shape than expected as unknown. Before that, invalid
    UTF-8, halves of surrogate pairs (written by JavaScript) and NUL characters (left by crashes) are replaced or removed.

    Args:
        read: Parses a line; must decode everything that it needs before it changes the state.
    """

    def parse(line: bytes, state: _State) -> tuple[Event, ...]:
        if not line or line.isspace():
            return ()
        try:
            return read(line, state)
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _read_repaired(repaired(line), state)

    def _read_repaired(line: bytes, state: _State) -> tuple[Event, ...]:
        try:
            _check(line)
            return read(line, state)
        except msgspec.ValidationError:
            return _UNKNOWN
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
            return _BROKEN

    return parse


def texts(raw: msgspec.Raw, kinds: frozenset[str | None]) -> list[str] | None:
    """Return the texts of a message's content: a string, or the blocks of some types.

    Args:
        raw: The value of the field.
        kinds: The types of blocks that are texts; None stands for blocks without a type.

    Returns:
        The texts in order, possibly none; None if the content has an unknown form.
    """
    if not raw:
        return []
    content = _decode_content(raw)
    if isinstance(content, str):
        return [clean(content)]
    if content is None:
        return []
    blocks = content if isinstance(content, list) else [content]
    found: list[str] = []
    is_odd = False
    for block in blocks:
        if isinstance(block, str) and None in kinds:
            found.append(clean(block))
        elif isinstance(block, _Block):
            kind = block.type if isinstance(block.type, str) else None
            if kind not in kinds or block.thought is True:
                continue
            if isinstance(block.text, str):
                found.append(clean(block.text))
            elif kind is not None or block.text is not None:
                is_odd = True
        else:
            is_odd = True
    return found if found or not is_odd else None


def clean(text: str) -> str:
    r"""Return the text without NUL characters and with \n as line end."""
    if "\0" in text:
        text = text.replace("\0", "")
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def word(value: Any) -> str | None:
    """Return the value without NUL characters if it is a non-empty text, else None."""
    return (clean(value) or None) if isinstance(value, str) else None


def role(value: Any) -> Role | None:
    """Return the value if it is a role whose turns are indexed, else None."""
    if value == "user":
        return "user"
    return "assistant" if value == "assistant" else None


_DATE = re.compile(r"(?:19|20)\d{6}")  # 20261120


def instant(*raws: msgspec.Raw) -> float | None:
    """Return the first value that is a time, in Unix seconds: ISO 8601, or a number of seconds, milliseconds or microseconds."""
    for raw in raws:
        at = _instant(raw) if raw else None
        if at is not None:
            return at
    return None


def mark(text: str) -> int:
    """Return a 48-bit hash of a text."""
    return int.from_bytes(hashlib.blake2b(text.encode(), digest_size=6).digest())


def _instant(raw: msgspec.Raw) -> float | None:
    try:
        value = _decode_any(raw)
        if isinstance(value, str):
            if len(value) > _LONGEST_TIME:
                return None
            try:
                value = float("date" if _DATE.fullmatch(value) else value)
            except ValueError:
                at = datetime.fromisoformat(value)
                value = (at if at.tzinfo else at.replace(tzinfo=UTC)).timestamp()
        if isinstance(value, bool) or not isinstance(value, int | float):
            return None
        seconds = float(value)
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError, ValueError, OverflowError):
        return None
    # Whole seconds have ten digits for the next centuries, and milliseconds had twelve since 1973.
    for limit, unit in ((1e14, 1e6), (1e11, 1e3)):
        if seconds >= limit:
            seconds /= unit
            break
    return seconds if math.isfinite(seconds) and 0 <= seconds < _LATEST else None


def repaired(line: bytes) -> bytes:
    """Return the line without NUL, BOM, invalid UTF-8 and halves of surrogate pairs; see never_raising."""
    text = line.replace(b"\0", b"").removeprefix(b"\xef\xbb\xbf")
    text = text.decode("utf-8", errors="replace").encode()
    return _ESCAPE.sub(_whole, text)


def _whole(escape: re.Match[bytes]) -> bytes:
    return escape[0] if escape[1] is None else rb"\ufffd"
