"""Formats exceptions without memory text: the place, and the message only if it cannot contain data.

The message of an exception often quotes the data: a UnicodeDecodeError quotes bytes, a ValidationError a value, a KeyError the
key, an error of SQLite the query. Nobody can list all exceptions that quote. So the messages of memd's own exceptions are shown,
since they are written for people. Of all others, only text is shown that is a constant in the source code, and the system's
message for an errno; the rest is replaced by its length. The frames say where it happened.
"""

import os
import sys
import threading
import traceback
from collections.abc import Callable, Iterator
from types import CodeType, TracebackType
from typing import Any

from memd.errors import MemdError
from memd_client.errors import MemdClientError

OnUncaught = Callable[[str, BaseException], None]
"""Takes a place in a few words, and what failed there."""

_LONGEST_CHAIN = 8  # longest chain of causes
_MOST = 8  # members shown of an exception group
_DEEPEST = 4  # deepest nesting of groups

_LED_TO = "The above exception was the direct cause of the following exception:"
_DURING = "During handling of the above exception, another exception occurred:"


def cause(failure: BaseException) -> str:
    """Return an exception on one line: its type, and the part of its message that cannot contain data."""
    kind = type(failure)
    name = kind.__qualname__ if kind.__module__ == "builtins" else f"{kind.__module__}.{kind.__qualname__}"
    words = _words(failure)
    return f"{name}: {words}" if words else name


def safe_message(failure: Exception) -> str:
    """Return an exception in words for a person: memd's own message, or the type of an unexpected one."""
    match failure:
        case MemdError():
            return str(failure)
        case MemoryError():
            return "no memory is left"
        case _:
            return f"memd failed in an unexpected way ({type(failure).__name__}); its log says where"


def format_safely(failure: BaseException) -> str:
    """Return a traceback of an exception and its causes: frames without variables, messages as `cause` gives them."""
    return "\n".join(_chain(failure, 0))


def is_literal(text: str, codes: Iterator[CodeType]) -> bool:
    """Return whether a text is a constant of one of these functions, and therefore contains no data."""
    return any(
        isinstance(constant, str) and constant == text for code in codes for constant in code.co_consts
    )


def handle_uncaught(on_uncaught: OnUncaught) -> None:
    """Pass uncaught exceptions (of the process, a thread or a finaliser) to a function; Python would print them with their messages."""

    def in_main(_: type[BaseException], failure: BaseException, __: TracebackType | None) -> None:
        on_uncaught("main", failure)

    def in_thread(about: threading.ExceptHookArgs) -> None:
        if about.exc_value is not None and not isinstance(about.exc_value, SystemExit):
            on_uncaught("thread", about.exc_value)

    def in_object(about: "sys.UnraisableHookArgs") -> None:
        if about.exc_value is not None:
            on_uncaught("object", about.exc_value)

    sys.excepthook, threading.excepthook, sys.unraisablehook = in_main, in_thread, in_object


def print_traceback(place: str, failure: BaseException) -> None:
    """Write the traceback to stderr, for a process without a log."""
    if sys.stderr is not None:
        print(f"memd: failed in {place}\n{format_safely(failure)}", file=sys.stderr)  # noqa: T201 - last words


# --- messages
# ----------------------------------------------------------------------------------------------------


def _words(failure: BaseException) -> str:
    match failure:
        case MemdError() | MemdClientError():
            return str(failure)
        case BaseExceptionGroup(message=message, exceptions=members):
            return f"{_argument(message, failure)} ({len(members)} in all)"
        case OSError(errno=int(number)) if type(failure).__module__ == "builtins":
            files = " -> ".join(
                repr(file) for file in (failure.filename, failure.filename2) if file is not None
            )
            return f"[Errno {number}] {os.strerror(number)}" + (f": {files}" if files else "")
        case UnicodeDecodeError() | UnicodeEncodeError():
            return f"{failure.encoding}, at {failure.start} of {len(failure.object)}"
        case AttributeError(name=str(name), obj=owner) if _is_named(name, failure):
            return f"{type(owner).__name__!r} object has no attribute {name!r}"
        case NameError(name=str(name)) if _is_named(name, failure):
            return f"name {name!r} is not defined"
        case ModuleNotFoundError(name=str(name)):
            return f"no module named {name!r}"
        case _:
            return ", ".join(_argument(each, failure) for each in failure.args)


def _argument(value: Any, failure: BaseException) -> str:
    match value:
        case None | bool() | int() | float():
            return repr(value)
        case str() if is_literal(value, _codes(failure)):
            return repr(value) if isinstance(failure, KeyError) else value
        case str() | bytes():
            return f"<{len(value)} {'characters' if isinstance(value, str) else 'bytes'}>"
        case _:
            return f"<{type(value).__name__}>"


def _is_named(name: str, failure: BaseException) -> bool:
    return any(name in (*code.co_names, *code.co_varnames) for code in _codes(failure))


def _codes(failure: BaseException) -> Iterator[CodeType]:
    return (frame.f_code for frame, _ in traceback.walk_tb(failure.__traceback__))


# --- tracebacks
# --------------------------------------------------------------------------------------------------


def _chain(failure: BaseException, depth: int) -> list[str]:
    links: list[tuple[BaseException, str]] = []
    link: BaseException | None = failure
    words = ""
    while link is not None and len(links) < _LONGEST_CHAIN and all(link is not one for one, _ in links):
        links.append((link, words))
        if link.__cause__ is not None:
            link, words = link.__cause__, _LED_TO
        else:
            link, words = None if link.__suppress_context__ else link.__context__, _DURING
    lines: list[str] = []
    for one, leads in reversed(links):
        lines += _alone(one, depth)
        if leads:
            lines += ["", leads, ""]
    return lines


def _alone(failure: BaseException, depth: int) -> list[str]:
    lines: list[str] = []
    if failure.__traceback__ is not None:
        lines.append("Traceback (most recent call last):")
        for frame in traceback.format_tb(failure.__traceback__):
            lines += frame.rstrip("\n").split("\n")
    lines.append(cause(failure))
    if isinstance(failure, BaseExceptionGroup) and depth < _DEEPEST:
        for number, member in enumerate(failure.exceptions[:_MOST], start=1):
            lines.append(f"  +---- {number} of {len(failure.exceptions)}")
            lines += [f"  | {line}" for line in _chain(member, depth + 1)]
    return lines
