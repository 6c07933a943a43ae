"""Sends log events to one stream, keeps memory text out of them, and limits the rate of events about slow work.

An event is a name and values: ``log.info("sync.finished", files=3)``. The caller must not pass memory text. This module limits
the harm of a mistake: a text under a key that may carry memory is replaced by its length, any other text is cut, and of an object
only the type is logged, since its repr may contain anything. Of an exception, memd.runtime.safe_traceback decides what is logged; of
a library's message, only its constant part is. The messages of memd's own exceptions are logged: do not put memory into one.
"""

import logging
import numbers
import sys
from collections.abc import Callable, Iterator, Mapping
from pathlib import PurePath
from types import CodeType
from typing import Any, Literal, TextIO

import msgspec
import structlog
from structlog.typing import EventDict, WrappedLogger

from memd.runtime import safe_traceback
from memd.runtime.profiling import TimeTrace, in_ms, slow_parts_ms

log = structlog.get_logger()

Level = Literal["debug", "info", "warning", "error"]

_LONGEST = 500  # longest text, in characters
_MOST = 50  # most members of a list or table
_DEEPEST = 4  # deepest nesting of tables
# Keys of a search's question, a note's text and the arguments of a retried call (stamina logs them).
_MEMORY = frozenset({"text", "texts", "snippet", "query", "content", "args", "kwargs"})
_FIRST = ("timestamp", "level", "logger", "event")
_OURS = "memd"


def configure(level: Level, stream: TextIO | None, *, terminal: bool, color: bool) -> None:
    """Send the events of memd, and the warnings of the libraries, to one stream.

    Calling it again replaces what it did before, for loggers that exist too; only a logger that was bound to values
    before the first call keeps writing to stdout. Logging never raises: where the stream is closed, broken or full,
    events are lost.

    Args:
        level: The least severe events of memd that are written. Libraries begin at warning.
        stream: Where to; None (a process without stderr): nowhere.
        terminal: Lines for a person; otherwise a JSON document a line.
        color: Whether those lines have colours; see ``wants_color``.
    """
    handler = _Nowhere() if stream is None else _Handler(stream)
    handler.setFormatter(
        structlog.stdlib.ProcessorFormatter(
            use_get_message=False,
            pass_foreign_args=True,
            foreign_pre_chain=[
                _foreign_words,
                structlog.stdlib.add_logger_name,
                structlog.stdlib.add_log_level,
                structlog.processors.TimeStamper(fmt="iso", utc=True),
            ],
            processors=[
                structlog.stdlib.ProcessorFormatter.remove_processors_meta,
                _plain_values,
                *((_visible, _console(color=color)) if terminal else (_json_line,)),
            ],
        )
    )
    root = logging.getLogger()
    for old in [other for other in root.handlers if isinstance(other, (_Handler, _Nowhere))]:
        root.removeHandler(old)
    root.addHandler(handler)
    set_level(level)
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            structlog.contextvars.merge_contextvars,
            structlog.stdlib.add_log_level,
            structlog.processors.TimeStamper(fmt="iso", utc=True),
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        wrapper_class=structlog.stdlib.BoundLogger,
        logger_factory=_our_logger,
        # A logger that remembers this configuration would not see the next one.
        cache_logger_on_first_use=False,
    )


def set_level(level: Level) -> None:
    """Change the level of all loggers, at once."""
    number = logging.getLevelNamesMapping()[level.upper()]
    logging.getLogger(_OURS).setLevel(number)
    logging.getLogger().setLevel(max(number, logging.WARNING))


def wants_color(environ: Mapping[str, str], *, terminal: bool) -> bool:
    """Whether to write colours: on a terminal that knows them, unless NO_COLOR (https://no-color.org) is set."""
    return terminal and not environ.get("NO_COLOR") and environ.get("TERM") != "dumb"


def before_each(tend: Callable[[], None]) -> None:
    """Set a function to call before each event that is written. Calls never overlap; the function must not raise."""
    for handler in logging.getLogger().handlers:
        if isinstance(handler, _Handler):
            handler.before = tend


class _Handler(logging.StreamHandler[TextIO]):
    before: Callable[[], None] | None = None

    def emit(self, record: logging.LogRecord) -> None:
        if self.before is not None:
            self.before()
        super().emit(record)

    def handleError(self, record: logging.LogRecord) -> None:  # noqa: N802 - the name is logging's
        """Drop the event: there is no other place for an error."""


class _Nowhere(logging.NullHandler):
    """Takes the place of a missing stream: without any handler, logging would use stderr."""


def _our_logger(*_: Any) -> logging.Logger:
    return logging.getLogger(_OURS)


def _plain_values(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Make every value a short, plain one, and exc_info the text of a traceback."""
    failure = _find_exception(event.pop("exc_info", None))
    ordered = {**{name: event[name] for name in _FIRST if name in event}, **event}
    plain: EventDict = {name: _plain(value, 0, is_memory=name in _MEMORY) for name, value in ordered.items()}
    if failure is not None:
        plain["exception"] = _traceback(failure)
    return plain


def _find_exception(exc_info: Any) -> BaseException | None:
    if isinstance(exc_info, BaseException):
        return exc_info
    if isinstance(exc_info, tuple):
        return _find_exception(exc_info[1])
    return sys.exception() if exc_info else None


def _traceback(failure: BaseException) -> str:
    """Where it happened, without local variables and without words that may quote; each line cut."""
    return "\n".join(map(_cut, safe_traceback.format_safely(failure).split("\n")))


def _foreign_words(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Replace a library's message by its constant part, its numbers, and the length of the rest."""
    event["event"] = _safe_event(event["_record"], event.pop("positional_args", ()))
    return event


def _safe_event(record: logging.LogRecord, given: object) -> str:
    template = str(record.msg)
    if not safe_traceback.is_literal(template, _callers()):
        return f"<{len(template)} characters> ({record.module}.py:{record.lineno})"
    values = given if isinstance(given, tuple) else ()
    try:
        return template % tuple(map(_foreign_value, values)) if values else template
    except (TypeError, ValueError):
        return template


def _foreign_value(value: object) -> object:
    match value:
        case numbers.Number():
            return value
        case BaseException():
            return safe_traceback.cause(value)
        case str():
            return f"<{len(value)} characters>"
        case _:
            return f"<{type(value).__name__}>"


def _callers() -> Iterator[CodeType]:
    """The functions on the stack, the caller of the logger among them."""
    frame = sys._getframe()  # noqa: SLF001 - public in all but its name, and what logging itself asks
    while frame is not None:
        yield frame.f_code
        frame = frame.f_back  # type: ignore[assignment] # the last one has none


def _plain(value: Any, depth: int = 0, *, is_memory: bool = False) -> Any:
    match value:
        case None | bool():
            plain: Any = value
        case numbers.Integral():
            plain = int(value) if int(value).bit_length() < 64 else f"<{int(value).bit_length()} bits>"
        case numbers.Real():
            plain = float(value)
        case str() if is_memory:
            plain = f"<{len(value)} characters>"
        case str() | PurePath():
            plain = _cut(str(value))
        case BaseException():
            plain = _cut(safe_traceback.cause(value))
        case Mapping() if depth < _DEEPEST and not is_memory:
            plain = {
                _cut(str(name)): _plain(value[name], depth + 1, is_memory=name in _MEMORY)
                for name in list(value)[:_MOST]
            }
        case list() | tuple() | set() | frozenset() if depth < _DEEPEST and not is_memory:
            plain = [_plain(member, depth + 1) for member in list(value)[:_MOST]]
        case bytes():
            plain = f"<{len(value)} bytes>"
        case _:
            plain = f"<{type(value).__name__}>"
    return plain


def _cut(text: str) -> str:
    short = text if len(text) <= _LONGEST else f"{text[:_LONGEST]}… ({len(text)} characters)"
    # A file name that is not UTF-8 comes as lone surrogates, which no stream takes.
    return short.encode("utf-8", "backslashreplace").decode()


def _json_line(_: WrappedLogger, __: str, event: EventDict) -> str:
    return msgspec.json.encode(event).decode()


def _visible(_: WrappedLogger, __: str, event: EventDict) -> EventDict:
    """Escape control characters: a terminal would obey those in a file name."""
    trace = event.pop("exception", None)
    shown: EventDict = {name: _printable(value) for name, value in event.items()}
    if trace is not None:
        shown["exception"] = "\n".join(_printable(line) for line in trace.split("\n"))
    return shown


def _printable(value: Any) -> Any:
    if not isinstance(value, str) or value.isprintable():
        return value
    return "".join(
        letter if letter.isprintable() else letter.encode("unicode_escape").decode() for letter in value
    )


def _console(*, color: bool) -> structlog.dev.ConsoleRenderer:
    return structlog.dev.ConsoleRenderer(
        colors=color, sort_keys=False, exception_formatter=structlog.dev.plain_traceback
    )


class RateLimiter:
    """Lets one event of a kind pass per interval, and counts the suppressed ones."""

    def __init__(self, every_s: float = 10.0) -> None:
        """Create a limiter.

        Args:
            every_s: Seconds between two events of a kind. A person can follow a log of six lines a minute.
        """
        self._every_s = every_s
        # kind -> when the last one passed, and how many were suppressed since.
        self._passed: dict[str, tuple[float, int]] = {}

    def suppressed(self, kind: str, now: float) -> int | None:
        """Return how many were suppressed since the last that passed; None: this one is suppressed, too.

        Args:
            kind: One of a small number of kinds, as each is remembered.
            now: Seconds of a monotonic clock.
        """
        before = self._passed.get(kind)
        if before is not None and now - before[0] < self._every_s:
            self._passed[kind] = before[0], before[1] + 1
            return None
        self._passed[kind] = now, 0
        return 0 if before is None else before[1]


class SlowLog:
    """Logs slow work, at most one line per kind in ten seconds."""

    def __init__(self) -> None:
        self._limiter = RateLimiter()

    def warn(self, event: str, agent: str | None, trace: TimeTrace, now: float, **facts: object) -> None:
        """Log slow work, unless work of the same kind was just logged.

        Args:
            event: The log event. Event and agent together are the kind.
            agent: The agent's id; None if the work is for no agent.
            trace: The measured times.
            now: Seconds of a monotonic clock.
            facts: Other values to log; never text of memory or of a question.
        """
        suppressed = self._limiter.suppressed(f"{event} {agent}", now)
        if suppressed is not None:
            log.warning(
                event,
                agent=agent,
                took_ms=in_ms(trace.took_s),
                parts=slow_parts_ms(trace),
                **facts,
                left_out=suppressed,
            )
