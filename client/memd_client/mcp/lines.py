"""Parses the lines that an MCP client writes into JSON-RPC messages, or into errors for its reply. Pure.

A caller whose line is dropped would wait until its own timeout. So every line that can be interpreted is passed on, and any other
is refused with its id, if it has one.
"""

import json
import re
from collections.abc import Iterator
from typing import Any

import msgspec

PARSE_ERROR = -32700  # JSON-RPC 2.0, section 5.1
INVALID_REQUEST = -32600
LONGEST_LINE = 4 << 20  # bytes; a call has a few hundred

_PAIR_OR_HALF = re.compile(
    r"\\(?:u[dD][89abAB][0-9a-fA-F]{2}\\u[dD][c-fC-F][0-9a-fA-F]{2}|(?P<half>u[dD][89a-fA-F][0-9a-fA-F]{2})|.)",
    re.DOTALL,
)
# An unclosed string extends to the end; otherwise each quotation mark in it would start another match.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ID_VALUE = re.compile(r'\s*:\s*(?P<value>-?\d{1,18}|"[^"\\]*(?:\\.[^"\\]*)*")\s*[,}]', re.DOTALL)


class Refusal(msgspec.Struct, frozen=True):
    """The error reply for an invalid message."""

    code: int
    message: str
    id: int | str | None = None  # None: the line has none, or an invalid one

    def encoded(self) -> str:
        """Encode it as a JSON-RPC message; in ASCII, so that an id with half of a surrogate pair is returned unchanged."""
        error = {"code": self.code, "message": self.message}
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error})


def messages(line: str) -> Iterator[dict[str, Any] | Refusal]:
    """Yield each JSON-RPC 2.0 message on a line, or its refusal; nothing for a blank line.

    The messages of a batch are yielded and answered one by one. Half of a surrogate pair, which JavaScript programs produce
    when they cut an emoji, becomes U+FFFD.

    Args:
        line: The line as received; lines longer than LONGEST_LINE are refused with ``too_long`` before.
    """
    if not line.strip():
        return
    try:
        value = json.loads(line)
    except RecursionError:
        yield Refusal(PARSE_ERROR, "The message is nested too deeply.", _id_in(line))
        return
    except ValueError as error:
        yield Refusal(PARSE_ERROR, f"The line is not JSON: {error}.", _id_in(line))
        return
    if value == []:
        yield Refusal(INVALID_REQUEST, "The batch is empty.")
    # Without a backslash there is no escaped half.
    sound = json.loads(_without_halves(line)) if "\\" in line else value
    if isinstance(value, list):
        for each, sound_one in zip(value, sound, strict=True):
            yield _message(each, sound_one)
    else:
        yield _message(value, sound)


def too_long(beginning: str) -> Refusal:
    """Return the refusal of a line longer than LONGEST_LINE bytes."""
    return Refusal(INVALID_REQUEST, f"The line has more than {LONGEST_LINE:,} bytes.", _id_in(beginning))


def _message(value: Any, sound: Any) -> dict[str, Any] | Refusal:
    """Check a message; return its version without halves of surrogate pairs, or its refusal."""
    if not isinstance(value, dict):
        return Refusal(INVALID_REQUEST, "A message must be an object.")
    identity = value.get("id")
    if "id" in value and (isinstance(identity, bool) or not isinstance(identity, int | str)):
        # It would count as a notification, which gets no reply.
        return Refusal(INVALID_REQUEST, "The id of a request must be a string or an integer.")
    if isinstance(identity, str) and not _is_unicode(identity):
        return Refusal(INVALID_REQUEST, "The id holds half of a surrogate pair.", identity)
    is_answer = "id" in value and not {"result", "error"}.isdisjoint(value)
    if value.get("jsonrpc") == "2.0" and (is_answer or _is_call(value)):
        message: dict[str, Any] = sound
        return message
    is_request = "method" in value or not is_answer
    return Refusal(
        INVALID_REQUEST, "The line is no message of JSON-RPC 2.0.", identity if is_request else None
    )


def _is_call(value: dict[str, Any]) -> bool:
    return isinstance(value.get("method"), str) and isinstance(value.get("params"), dict | None)


def _is_unicode(text: str) -> bool:
    try:
        text.encode()
    except UnicodeEncodeError:
        return False
    return True


def _without_halves(text: str) -> str:
    """Replace escaped halves of surrogate pairs by U+FFFD."""
    return _PAIR_OR_HALF.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)


def _id_in(line: str) -> int | str | None:
    """Return the id in a JSON object that cannot be parsed; None: none was found."""
    depth = 0
    for token in _TOKEN.finditer(line):
        if token[0] in "[{":
            depth += 1
        elif token[0] in "]}":
            depth -= 1
        elif depth == 1 and token[0] == '"id"' and (found := _ID_VALUE.match(line, token.end())):
            identity = json.loads(found["value"])
            return identity if isinstance(identity, int | str) else None
    return None
