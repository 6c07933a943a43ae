"""What is written to the log, how often slow work is, and that writing never hurts."""

import contextlib
import io
import json
import logging
import os
import re
from collections.abc import Callable, Iterator, Mapping
from enum import IntEnum
from pathlib import Path
from types import MappingProxyType
from typing import Any

import numpy as np
import pytest
import structlog
from hypothesis import given
from hypothesis import strategies as st

from memd.domain_types import Chunk, TextHash
from memd.errors import MemdError
from memd.runtime import logs
from memd.runtime.logs import RateLimiter, SlowLog
from memd.runtime.profiling import TimeTrace
from tests.bounds import shipped
from tests.clock import Clock

log = structlog.get_logger()  # as every module has one, made before the configuration


@pytest.fixture(autouse=True)
def _restored() -> Iterator[None]:
    """Logging is global: each test leaves it as it found it."""
    root, ours = logging.getLogger(), logging.getLogger("memd")
    handlers, levels = root.handlers[:], (root.level, ours.level)
    yield
    root.handlers[:] = handlers
    root.setLevel(levels[0])
    ours.setLevel(levels[1])
    structlog.reset_defaults()


@pytest.fixture
def stream() -> io.StringIO:
    """A log that is not a terminal, from level info."""
    stream = io.StringIO()
    logs.configure("info", stream, terminal=False, color=False)
    return stream


def _events(stream: io.StringIO) -> list[dict[str, Any]]:
    return [json.loads(line) for line in stream.getvalue().splitlines()]


def test_an_event_is_one_json_document_a_line(stream: io.StringIO) -> None:
    """Time in UTC, level and name come first."""
    log.info("sync.finished", files=3, took_s=0.5, agent="main", failed=None, forced=True)
    (event,) = _events(stream)
    assert re.fullmatch(r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{6}Z", event["timestamp"])
    assert list(event) == ["timestamp", "level", "event", "files", "took_s", "agent", "failed", "forced"]
    assert list(event.values())[1:] == ["info", "sync.finished", 3, 0.5, "main", None, True]


@pytest.mark.parametrize("level", ["debug", "info", "warning", "error"])
def test_events_below_the_level_are_not_written(level: logs.Level) -> None:
    """The level is the least that is written."""
    stream = io.StringIO()
    logs.configure(level, stream, terminal=False, color=False)
    order = ["debug", "info", "warning", "error"]
    for name in order:
        getattr(log, name)("a.happened")
    assert [event["level"] for event in _events(stream)] == order[order.index(level) :]


def test_a_change_of_level_reaches_loggers_that_exist(stream: io.StringIO) -> None:
    """A logger bound long ago follows a reload."""
    bound = log.bind(agent="main")
    bound.debug("a.hidden")
    logs.set_level("debug")
    bound.debug("a.seen")
    logs.set_level("error")
    bound.warning("b.hidden")
    assert [event["event"] for event in _events(stream)] == ["a.seen"]


def test_a_new_configuration_replaces_the_old_one(stream: io.StringIO) -> None:
    """An event is written once, to the newest stream, by loggers that exist too."""
    bound = log.bind(agent="main")
    newer = io.StringIO()
    logs.configure("info", newer, terminal=False, color=False)
    bound.info("a.happened")
    logging.getLogger("httpx").warning("slow")
    assert stream.getvalue() == ""
    assert [event["event"] for event in _events(newer)] == ["a.happened", "slow"]


def test_a_logger_that_was_used_follows_any_later_configuration(stream: io.StringIO) -> None:
    """It remembers nothing, so that tests of other parts can look at their events too."""
    log.info("a.happened")
    structlog.reset_defaults()
    with structlog.testing.capture_logs() as captured:
        log.info("b.happened")
    assert [event["event"] for event in captured] == ["b.happened"]


def test_libraries_speak_from_warning_on(stream: io.StringIO) -> None:
    """Their lines have the same shape and name the library."""
    logs.set_level("debug")
    for library in ("watchfiles", "httpx", "asyncio"):
        logging.getLogger(library).info("quiet")
        logging.getLogger(library).warning("trouble %d", 5)
    assert [(event["logger"], event["level"], event["event"]) for event in _events(stream)] == [
        ("watchfiles", "warning", "trouble 5"),
        ("httpx", "warning", "trouble 5"),
        ("asyncio", "warning", "trouble 5"),
    ]
    assert all(event["timestamp"].endswith("Z") for event in _events(stream))


def test_libraries_are_no_louder_than_memd(stream: io.StringIO) -> None:
    """At level error their warnings are left out too."""
    logs.set_level("error")
    logging.getLogger("httpx").warning("slow")
    assert stream.getvalue() == ""


def test_an_exception_has_a_traceback_without_locals(stream: io.StringIO) -> None:
    """Where it happened is written; what variables held is not."""
    note = "memory " + "text"
    for write in (log.exception, logging.getLogger("asyncio").exception):
        try:
            os.environ["NO_SUCH_KEY"]
        except KeyError:
            write("a.failed")
    assert note not in stream.getvalue()
    for event in _events(stream):
        assert event["event"] == "a.failed"
        assert event["exception"].startswith("Traceback (most recent call last):\n")
        assert "test_logs.py" in event["exception"]
        assert event["exception"].endswith("KeyError: 'NO_SUCH_KEY'")
        assert "exc_info" not in event


@pytest.mark.parametrize("as_value", [True, False])
def test_an_exception_may_be_given(stream: io.StringIO, *, as_value: bool) -> None:
    """One that was caught elsewhere, as a value or for its traceback."""
    failure = OSError(28, "No space left on device")
    if as_value:
        log.error("a.failed", error=failure)
        assert _events(stream)[0]["error"] == "OSError: [Errno 28] No space left on device"
    else:
        log.error("a.failed", exc_info=failure)
        assert _events(stream)[0]["exception"] == "OSError: [Errno 28] No space left on device"


def test_a_group_of_exceptions_is_told_in_full(stream: io.StringIO) -> None:
    """What ended several tasks at once is all there."""
    log.error("a.failed", exc_info=ExceptionGroup("tasks", [MemdError("one"), OSError(2, "two")]))
    assert "memd.errors.MemdError: one" in _events(stream)[0]["exception"]
    assert "[Errno 2] No such file or directory" in _events(stream)[0]["exception"]


def _nested(depth: int, inside: object = 1) -> object:
    """Something in so many lists."""
    return inside if not depth else [_nested(depth - 1, inside)]


DEEPEST = shipped("memd.runtime.logs._DEEPEST")
LONGEST, MOST = shipped("memd.runtime.logs._LONGEST"), shipped("memd.runtime.logs._MOST")


class _Colour(IntEnum):
    RED = 3


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("x" * LONGEST, "x" * LONGEST),
        ("x" * (LONGEST + 1), "x" * LONGEST + f"… ({LONGEST + 1} characters)"),
        (list(range(MOST + 1)), list(range(MOST))),
        (_nested(DEEPEST), _nested(DEEPEST)),
        (_nested(DEEPEST + 1), _nested(DEEPEST, "<list>")),
        ({str(n): n for n in range(MOST + 1)}, {str(n): n for n in range(MOST)}),
        (Path("memory/笔记.md"), "memory/笔记.md"),
        ("name\udcff", "name\\udcff"),
        (b"\x00" * 32, "<32 bytes>"),
        (2**64, "<65 bits>"),
        (2**63, "<64 bits>"),
        (2**63 - 1, 2**63 - 1),
        (float("nan"), None),
        (np.int64(7), 7),
        (np.float32(0.5), 0.5),
        (np.zeros(3), "<ndarray>"),
        (_Colour.RED, 3),
        (("a", {"b"}, frozenset({1})), ["a", ["b"], [1]]),
        (MappingProxyType({"a": Path("b"), 3: None}), {"a": "b", "3": None}),
        (list(range(60)), list(range(50))),
        ({"a": {"b": {"c": {"d": {}}}}}, {"a": {"b": {"c": {"d": "<dict>"}}}}),
        (object(), "<object>"),
        (Chunk(1, 2, "memory", "", TextHash(b"")), "<Chunk>"),
    ],
)
def test_a_value_is_written_plainly(stream: io.StringIO, value: Any, written: Any) -> None:
    """Short and plain, whatever it was; of an object only its type, since its repr may hold memory."""
    log.info("a.happened", value=value)
    assert _events(stream)[0]["value"] == written


@pytest.mark.parametrize("name", ["text", "texts", "snippet", "query", "content", "args", "kwargs"])
@pytest.mark.parametrize("value", ["my secret", ["my secret"], {"my secret": "my secret"}, ("my secret",)])
def test_a_name_that_carries_memory_is_not_written(stream: io.StringIO, name: str, value: Any) -> None:
    """Only how much there was, where that can be told."""
    log.info("a.happened", **{name: value})
    assert "secret" not in stream.getvalue()
    assert _events(stream)[0][name] in {"<9 characters>", "<list>", "<dict>", "<tuple>"}


def test_a_count_under_such_a_name_is_written(stream: io.StringIO) -> None:
    """A number holds no memory."""
    log.info("a.happened", texts=32)
    assert _events(stream)[0]["texts"] == 32


def test_a_long_message_of_an_exception_is_cut(stream: io.StringIO) -> None:
    """One of memd's own is for people, who want to read other lines as well."""
    log.error("a.failed", exc_info=MemdError("word " * 1000))
    assert len(_events(stream)[0]["exception"]) < 600


@pytest.mark.parametrize("given", [(), ("a note",), ({"a": "note"},)])
def test_a_librarys_line_keeps_what_stands_in_its_source(stream: io.StringIO, given: tuple[Any, ...]) -> None:
    """What it was made of at run time may be anybody's text: of that, only how much there was."""
    foreign = logging.getLogger("httpx")
    note = "a " + "note".lower()
    foreign.warning("went on after %s", *given)
    foreign.warning(f"{note} in a line")
    foreign.warning("%s failed after %d tries, for %s", note, 3, ValueError(note))
    lines = [event["event"] for event in _events(stream)]
    assert "note" not in "".join(lines)
    assert lines[0].startswith("went on after ")
    assert re.fullmatch(r"<16 characters> \(test_logs\.py:\d+\)", lines[1])
    assert lines[2] == "<6 characters> failed after 3 tries, for ValueError: <6 characters>"


@pytest.mark.parametrize("color", [True, False])
def test_a_terminal_gets_lines_for_people(*, color: bool) -> None:
    """Colours only where they are wanted; nothing in a name steers the terminal."""
    stream = io.StringIO()
    logs.configure("info", stream, terminal=True, color=color)
    log.info("sync.finished", title="笔记", files=3, path=Path("a\x1b[2J\x07b"))
    logging.getLogger("httpx").warning("line\x1b[2J\nline")
    log.error("a.failed", exc_info=MemdError("bad\x1b[2J"))
    written = stream.getvalue()
    assert ("\x1b[" in written) is color
    plain = re.sub(r"\x1b\[[\d;]*m", "", written)
    assert "\x1b" not in plain
    assert "\x07" not in plain
    assert re.search(r"^\S+Z \[info +\] sync.finished +title=笔记 files=3 path=\S+$", plain, re.MULTILINE)
    assert r"line\x1b[2J\nline" in plain
    assert re.search(r"^memd.errors.MemdError: bad\\x1b\[2J$", plain, re.MULTILINE)


@pytest.mark.parametrize(
    ("environ", "terminal", "wanted"),
    [
        ({}, True, True),
        ({}, False, False),
        ({"NO_COLOR": "1"}, True, False),
        ({"NO_COLOR": ""}, True, True),
        ({"TERM": "dumb"}, True, False),
        ({"TERM": "xterm-256color"}, True, True),
    ],
)
def test_colours_are_for_terminals(environ: Mapping[str, str], *, terminal: bool, wanted: bool) -> None:
    """And not where NO_COLOR is set to anything."""
    assert logs.wants_color(environ, terminal=terminal) is wanted


def _closed() -> io.TextIOWrapper:
    stream = io.TextIOWrapper(io.BytesIO())
    stream.close()
    return stream


def _closed_descriptor() -> io.TextIOWrapper:
    descriptor = os.open(os.devnull, os.O_WRONLY)
    stream = io.TextIOWrapper(io.FileIO(descriptor, "w", closefd=False), write_through=True)
    os.close(descriptor)
    return stream


def _broken_pipe() -> io.TextIOWrapper:
    reader, writer = os.pipe()
    os.close(reader)
    return io.TextIOWrapper(io.FileIO(writer, "w"), write_through=True)


def _full_disk() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.FileIO("/dev/full", "w"), write_through=True)


def _ascii() -> io.TextIOWrapper:
    return io.TextIOWrapper(io.BytesIO(), encoding="ascii", write_through=True)


@pytest.mark.parametrize("make", [_closed, _closed_descriptor, _broken_pipe, _full_disk, _ascii])
@pytest.mark.parametrize("terminal", [True, False])
def test_a_stream_that_cannot_be_written_is_no_failure(
    make: Callable[[], io.TextIOWrapper], capfd: pytest.CaptureFixture[str], *, terminal: bool
) -> None:
    """Events are lost, and nobody hears of it."""
    stream = make()
    logs.configure("info", stream, terminal=terminal, color=False)
    log.info("a.happened", title="笔记")
    log.error("a.failed", exc_info=OSError("x"))
    logging.getLogger("httpx").warning("slow")
    assert capfd.readouterr() == ("", "")
    with contextlib.suppress(OSError):
        stream.close()  # what could not be written is tried once more


def test_a_value_that_cannot_be_told_loses_its_event_only(stream: io.StringIO) -> None:
    """Code that logs goes on, and so does the log."""

    class Broken(MemdError):
        def __str__(self) -> str:
            raise RuntimeError

    log.info("a.lost", value=Broken())
    log.info("a.kept")
    assert [event["event"] for event in _events(stream)] == ["a.kept"]


def test_without_a_stream_nothing_is_written(capfd: pytest.CaptureFixture[str]) -> None:
    """A process without stderr logs nowhere, not even by logging's last resort."""
    logs.configure("debug", None, terminal=False, color=False)
    log.error("a.failed")
    logging.getLogger("asyncio").error("trouble")
    assert capfd.readouterr() == ("", "")


def test_handlers_of_others_stay(stream: io.StringIO) -> None:
    """Only what memd put there is replaced."""
    other = logging.NullHandler()
    logging.getLogger().addHandler(other)
    logs.configure("info", stream, terminal=False, color=False)
    assert other in logging.getLogger().handlers
    log.info("a.happened")
    assert len(_events(stream)) == 1


SECRET = "purple-giraffe"
_TEXTS = st.text(max_size=20) | st.sampled_from(["\ud800", "\x1b[31m", "\n", "\u2028", "a" * 2000])
_VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | _TEXTS
    | st.binary(max_size=20)
    | st.builds(ValueError, _TEXTS)
    | st.builds(Path, st.text(st.characters(exclude_characters="\0"), max_size=9)),
    lambda inner: (
        st.lists(inner, max_size=4)
        | st.dictionaries(_TEXTS | st.integers(), inner, max_size=4)
        | st.tuples(inner, inner)
    ),
    max_leaves=30,
)
_PLAIN_NAMES = st.from_regex(r"[a-d]{1,3}", fullmatch=True)
_MEMORY_NAMES = st.sampled_from(["text", "texts", "snippet", "query", "content", "args", "kwargs"])


@given(st.dictionaries(_PLAIN_NAMES, _VALUES, max_size=5), st.booleans())
def test_whatever_is_logged_is_one_line(values: dict[str, Any], terminal: bool) -> None:
    """A JSON document of bounded size, or a line that no control character of a value gets into."""
    stream = io.StringIO()
    logs.configure("info", stream, terminal=terminal, color=False)
    log.info("a.happened", **values)
    written = stream.getvalue()
    assert written.endswith("\n")
    assert written.encode()
    assert written.count("\n") == 1
    if terminal:
        assert written.rstrip("\n").isprintable()
    else:
        assert set(json.loads(written)) == {"timestamp", "level", "event", *values}


def _wrapped(value: Any, shapes: list[str]) -> Any:
    for shape in shapes:
        match shape:
            case "list":
                value = [value, 1]
            case "tuple":
                value = (0, value)
            case "set":
                value = frozenset({str(value)})
            case "key":
                value = {str(value): 1}
            case _:
                value = {"a": value}
    return value


@given(
    _MEMORY_NAMES,
    st.lists(st.sampled_from(["list", "tuple", "set", "key", "dict"]), max_size=5),
    st.sampled_from([SECRET, SECRET.encode(), Chunk(1, 1, SECRET, "", TextHash(b""))]),
    st.booleans(),
)
def test_memory_is_not_written_in_any_shape(
    name: str, shapes: list[str], secret: Any, terminal: bool
) -> None:
    """Under a name that carries memory, nothing of a value is told but what it is and how long."""
    stream = io.StringIO()
    logs.configure("info", stream, terminal=terminal, color=False)
    log.info("a.happened", **{name: _wrapped(secret, shapes)})
    log.info("a.happened", asked={name: _wrapped(secret, shapes[:2])})
    assert "giraffe" not in stream.getvalue()
    assert stream.getvalue().count("\n") == 2


def test_a_value_without_end_is_cut() -> None:
    """Lists in lists, long texts and large tables make a bounded line."""
    endless: list[Any] = []
    endless.append(endless)
    wide = {str(n): ["x" * 1000] * 100 for n in range(100)}
    stream = io.StringIO()
    logs.configure("info", stream, terminal=False, color=False)
    log.info("a.happened", endless=endless, wide=wide, number=10**4000)
    assert len(stream.getvalue()) < 2_000_000


@pytest.mark.parametrize(
    ("times", "expected"),
    [
        ([], []),
        ([5.0], [0]),
        ([5.0, 14.9, 15.0], [0, None, 1]),
        ([5.0, 5.0, 6.0, 7.0, 100.0, 101.0, 110.0], [0, None, None, None, 3, None, 1]),
        ([0.0, 20.0, 40.0], [0, 0, 0]),
    ],
)
def test_one_is_told_in_ten_seconds(times: list[float], expected: list[int | None]) -> None:
    """The next one says how many were left out in between."""
    limiter = RateLimiter(10.0)
    assert [limiter.suppressed("search", at) for at in times] == expected


def test_kinds_do_not_hide_one_another() -> None:
    """A flood of one is no reason not to hear of another."""
    limiter = RateLimiter()
    assert [limiter.suppressed("search", 1.0) for _ in range(5)] == [0, None, None, None, None]
    assert limiter.suppressed("get", 1.0) == 0
    assert limiter.suppressed("search", 12.0) == 4


def test_slow_work_is_logged_once_in_ten_seconds_for_each_agent() -> None:
    """The next line says how many there were in between."""
    clock = Clock()
    trace = TimeTrace(clock)
    clock.run(3)
    slow_log = SlowLog()
    with structlog.testing.capture_logs() as logged:
        for agent in ("one", "one", "other", "one"):
            slow_log.warn("search.was_slow", agent, trace, clock.now, hits=2)
        clock.run(10)
        slow_log.warn("search.was_slow", "one", trace, clock.now, hits=0)
    assert [(one["agent"], one["hits"], one["left_out"]) for one in logged] == [
        ("one", 2, 0),
        ("other", 2, 0),
        ("one", 0, 2),
    ]
