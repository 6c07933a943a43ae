"""What an MCP client writes on a line, as messages that can be served, or as the answer that says why not. Pure.

A caller whose line is dropped waits until its own timeout. So what can be meant is passed on, and the rest is refused, under
its id where it has one.
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
# A string that is not closed goes on to the end, else each quotation mark in it would be tried in its turn.
_TOKEN = re.compile(r'"[^"\\]*(?:\\.[^"\\]*)*(?:"|\\?\Z)|[\[\]{}]', re.DOTALL)
_ID_VALUE = re.compile(r'\s*:\s*(?P<value>-?\d{1,18}|"[^"\\]*(?:\\.[^"\\]*)*")\s*[,}]', re.DOTALL)


class Refusal(msgspec.Struct, frozen=True):
    """The error that answers what cannot be served."""

    code: int
    message: str
    id: int | str | None = None  # None: the line has none, or none that may be used

    def encoded(self) -> str:
        """As a message of JSON-RPC. In ASCII, which carries an id with half of a surrogate pair back as it came."""
        error = {"code": self.code, "message": self.message}
        return json.dumps({"jsonrpc": "2.0", "id": self.id, "error": error})


def messages(line: str) -> Iterator[dict[str, Any] | Refusal]:
    """What stands on a line: each message of JSON-RPC 2.0, or its refusal. Nothing for a blank line.

    The messages of a batch come one by one, and are answered one by one. Half of a surrogate pair, as a JavaScript
    program leaves it that cuts an emoji, becomes U+FFFD.

    Args:
        line: As it came; longer ones than LONGEST_LINE are refused before, by ``too_long``.
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
    # What has no backslash has no half either.
    sound = json.loads(_without_halves(line)) if "\\" in line else value
    if isinstance(value, list):
        for each, sound_one in zip(value, sound, strict=True):
            yield _message(each, sound_one)
    else:
        yield _message(value, sound)


def too_long(beginning: str) -> Refusal:
    """The refusal of a line that has more than LONGEST_LINE bytes."""
    return Refusal(INVALID_REQUEST, f"The line has more than {LONGEST_LINE:,} bytes.", _id_in(beginning))


def _message(value: Any, sound: Any) -> dict[str, Any] | Refusal:
    """One message as it came, and without halves of surrogate pairs."""
    if not isinstance(value, dict):
        return Refusal(INVALID_REQUEST, "A message must be an object.")
    identity = value.get("id")
    if "id" in value and (isinstance(identity, bool) or not isinstance(identity, int | str)):
        # It would be taken for a notification, which gets no answer.
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
    """JSON whose escapes name whole characters."""
    return _PAIR_OR_HALF.sub(lambda escape: "\\ufffd" if escape["half"] else escape[0], text)


def _id_in(line: str) -> int | str | None:
    """The id of an object that cannot be read as a whole; None where none is found."""
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
