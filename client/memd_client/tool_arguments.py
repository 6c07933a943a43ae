"""Parses the arguments that a model passes to a memory tool. Pure.

Models write numbers as strings, integers as 6.0, null for arguments that they leave out, and names in other
spellings. Values whose meaning is beyond doubt are accepted; for others the error says what to write instead.
"""

import json
import math
import re
from collections.abc import Mapping, Sequence
from types import MappingProxyType
from typing import Any, Literal, TypedDict

import msgspec

SEARCH = "memory_search"
GET = "memory_get"
APPEND = "memory_append"

MAX_RESULTS = 50
LONGEST_QUERY = 2_000  # characters; questions are shorter, and more text would only blur the search
_LONGEST_PATH = 4_096
_MOST_LINES = 2**31 - 1
# The largest integer of any JSON parser; positions within a long turn are far larger than line numbers.
_LAST_LINE = 2**53 - 1
_SHOWN = 60  # characters shown of an invalid value
_NAMED = 5  # unknown arguments that are named

_PARAMETERS: Mapping[str, tuple[str, ...]] = MappingProxyType(
    {
        SEARCH: ("query", "maxResults", "minScore", "since", "until", "sort", "tags", "path"),
        GET: ("path", "from", "startLine", "lines"),
    }
)
_NUMBER = re.compile(r"[+-]?(\d{1,18}(\.\d{0,18})?|\.\d{1,18})")
_PLACE = re.compile(
    r"(?P<path>.+?)(?:#L(?P<first>\d{1,9})(?:-L?(?P<last>\d{1,9}))?|:(?P<start>\d{1,9})(?:-(?P<end>\d{1,9}))?)",
    re.DOTALL,
)


class Unusable(ValueError):
    """The arguments are invalid.

    Attributes:
        message: What is wrong, in one sentence.
        action: What the model can call instead.
    """

    def __init__(self, message: str, action: str) -> None:
        super().__init__(f"{message} {action}")
        self.message = message
        self.action = action


class Filters(TypedDict):
    """The filters among the arguments of Client.search."""

    since: str | None
    until: str | None
    sort: Literal["relevance", "time"]
    tags: Sequence[str]
    path: Sequence[str]


class SearchCall(msgspec.Struct, frozen=True):
    """A call of memory_search."""

    query: str
    max_results: int | None = None  # None: as configured
    min_score: float | None = None
    remarks: tuple[str, ...] = ()  # on arguments that were changed
    since: str | None = None
    until: str | None = None
    sort: Literal["relevance", "time"] = "relevance"
    tags: tuple[str, ...] = ()
    path: tuple[str, ...] = ()

    @property
    def filters(self) -> "Filters":
        """The filters and the order, as arguments of Client.search."""
        return {
            "since": self.since,
            "until": self.until,
            "sort": self.sort,
            "tags": self.tags,
            "path": self.path,
        }


class GetCall(msgspec.Struct, frozen=True):
    """A call of memory_get."""

    path: str
    start_line: int = 1
    lines: int | None = None  # None: as many as fit into a reply
    remarks: tuple[str, ...] = ()

    def place(self) -> "GetCall | None":
        """Return the call that is meant if the path is a citation, ``path#L3-L9`` or ``path:3-9``; None if it is none."""
        place = _PLACE.fullmatch(self.path)
        if place is None:
            return None
        first, last = _range(place)
        first = max(first, 1)
        last = max(last, first)
        has_range = self.start_line != 1 or self.lines is not None
        start_line, lines = (self.start_line, self.lines) if has_range else (first, last - first + 1)
        return GetCall(place["path"], start_line, lines, self.remarks)


def is_backwards(path: str) -> bool:
    """Return whether a path is a citation whose last line precedes its first."""
    place = _PLACE.fullmatch(path)
    if place is None:
        return False
    first, last = _range(place)
    return last < first


def _range(place: re.Match[str]) -> tuple[int, int]:
    """Return the first and the last line that a citation names."""
    first = int(place["first"] or place["start"])
    return first, int(place["last"] or place["end"] or first)


def read(name: object, arguments: object) -> SearchCall | GetCall:
    """Parse a call.

    Args:
        name: The tool's name.
        arguments: An object, or its JSON text, as some APIs pass it; None: no arguments.

    Raises:
        Unusable: the arguments are invalid.
    """
    if not isinstance(name, str) or name not in _PARAMETERS:
        raise no_such_tool(name, (SEARCH, GET))
    given, remarks = _named(name, _mapping(name, arguments))
    if name == SEARCH:
        return _search(given, remarks)
    return _get(given, remarks)


def no_such_tool(name: object, tools: Sequence[str]) -> Unusable:
    """Return the error for a call of an unknown tool; `tools` are the known ones, two or more."""
    *others, last = tools
    return Unusable(
        f"There is no tool {_shown(name)}.", f"The memory tools are {', '.join(others)} and {last}."
    )


def _search(given: Mapping[str, Any], remarks: list[str]) -> SearchCall:
    query = _text(
        SEARCH, "query", given.get("query"), 'the question as text, such as "which database did we pick?"'
    )
    query = query.strip()
    if len(query) > LONGEST_QUERY:
        remarks.append(
            f"query has {len(query):,} characters; only the first {LONGEST_QUERY:,} were searched for"
        )
        query = query[:LONGEST_QUERY]
    max_results = _whole(
        SEARCH, "maxResults", given.get("maxResults"), f"a whole number from 1 to {MAX_RESULTS}"
    )
    if max_results is not None and max_results < 1:
        raise _wrong(SEARCH, "maxResults", given["maxResults"], f"a whole number from 1 to {MAX_RESULTS}")
    if max_results is not None and max_results > MAX_RESULTS:
        remarks.append(f"maxResults is at most {MAX_RESULTS}")
        max_results = MAX_RESULTS
    min_score = _number(SEARCH, "minScore", given.get("minScore"), "a number from 0 to 1")
    if min_score is not None and not 0 <= min_score <= 1:
        raise _wrong(SEARCH, "minScore", given["minScore"], "a number from 0 to 1")
    sort = _texts("sort", given.get("sort")) or ("relevance",)
    if sort not in {("relevance",), ("time",)}:
        raise _wrong(SEARCH, "sort", given["sort"], '"relevance" or "time"')
    since, until = (_texts(name, given.get(name)) for name in ("since", "until"))
    return SearchCall(
        query,
        max_results,
        min_score,
        tuple(remarks),
        since=since[0] if since else None,
        until=until[0] if until else None,
        sort="time" if sort == ("time",) else "relevance",
        tags=_texts("tags", given.get("tags")),
        path=_texts("path", given.get("path")),
    )


def _texts(parameter: str, value: Any) -> tuple[str, ...]:
    """Parse a list of texts, or a single one; empty if there is none."""
    given = value if isinstance(value, list) else [value]
    if not all(one is None or isinstance(one, str) for one in given):
        raise _wrong(SEARCH, parameter, value, "a text" if parameter in {"since", "until"} else "texts")
    return tuple(_sendable(one.strip()) for one in given if one and one.strip())


def _get(given: Mapping[str, Any], remarks: list[str]) -> GetCall:
    path = _text(GET, "path", given.get("path"), "a path as memory_search gave it")
    if len(path) > _LONGEST_PATH:
        raise Unusable(
            f"path has {len(path):,} characters; no path has more than {_LONGEST_PATH:,}.",
            "Call memory_get again with a path as memory_search gave it.",
        )
    wanted = "a whole number from 1 up"
    start_line = _whole(GET, "from", given.get("from"), wanted)
    if start_line is None:
        start_line = _whole(GET, "startLine", given.get("startLine"), wanted)
    lines = _whole(GET, "lines", given.get("lines"), wanted)
    # 0 and less mean the first line, and one line.
    return GetCall(
        path,
        1 if start_line is None else min(max(start_line, 1), _LAST_LINE),
        None if lines is None else min(max(lines, 1), _MOST_LINES),
        tuple(remarks),
    )


def _mapping(name: str, arguments: object) -> Mapping[Any, Any]:
    if arguments is None:
        return {}
    if isinstance(arguments, str | bytes):
        try:
            # Not msgspec, which rejects lone surrogates: these are no reason to refuse a call.
            arguments = json.loads(arguments) if arguments.strip() else {}
        except (ValueError, RecursionError) as error:
            raise Unusable(
                f"The arguments of {name} are not JSON: {error}.", f"Call {name} again with a JSON object."
            ) from error
    if isinstance(arguments, Mapping):
        return arguments
    raise Unusable(
        f"The arguments of {name} are {_shown(arguments)}.", f"Call {name} again with a JSON object."
    )


def _named(name: str, arguments: Mapping[Any, Any]) -> tuple[dict[str, Any], list[str]]:
    """Return the arguments by their proper names, without null values, and remarks on unknown ones."""
    known = {_folded(parameter): parameter for parameter in _PARAMETERS[name]}
    given: dict[str, Any] = {}
    unknown: list[str] = []
    for key, value in arguments.items():
        spelled = _sendable(key) if isinstance(key, str) else _shown(key)
        parameter = known.get(_folded(spelled))
        if parameter is None:
            unknown.append(spelled[:_SHOWN])
        elif value is not None and (key == parameter or parameter not in given):
            given[parameter] = value
    if not unknown:
        return given, []
    others = f" and {len(unknown) - _NAMED} more" if len(unknown) > _NAMED else ""
    ignored = f"{', '.join(unknown[:_NAMED])}{others}"
    return given, [f"{name} takes {', '.join(_PARAMETERS[name])}; these were ignored: {ignored}"]


def _folded(key: str) -> str:
    """Return a name without the differences between maxResults, max_results and MaxResults."""
    return key.replace("_", "").replace("-", "").strip().lower()


def _text(tool: str, parameter: str, value: Any, wanted: str) -> str:
    if isinstance(value, int | float) and not isinstance(value, bool) and abs(value) < 10**_SHOWN:
        value = str(value)
    if value is None or (isinstance(value, str) and not value.strip()):
        raise Unusable(f"{parameter} is missing or empty.", f"Call {tool} again with {parameter}: {wanted}.")
    if not isinstance(value, str):
        raise Unusable(
            f"{parameter} is {_shown(value)}; it must be {wanted}.",
            f"Call {tool} again with {parameter}: {wanted}.",
        )
    return _sendable(value)


def _whole(tool: str, parameter: str, value: Any, wanted: str) -> int | None:
    number = _number(tool, parameter, value, wanted)
    if number is None or isinstance(number, int):
        return number
    if not number.is_integer():
        raise _wrong(tool, parameter, value, wanted)
    return int(number)


def _number(tool: str, parameter: str, value: Any, wanted: str) -> int | float | None:
    match value:
        case None:
            return None
        case bool():
            pass
        case int():
            return value
        case float() if math.isfinite(value):
            return value
        case str() if _NUMBER.fullmatch(value.strip()):
            return float(value) if "." in value else int(value)
        case str() if not value.strip():
            return None
        case _:
            pass
    raise _wrong(tool, parameter, value, wanted)


def _wrong(tool: str, parameter: str, value: Any, wanted: str) -> Unusable:
    return Unusable(
        f"{parameter} is {_shown(value)}; it must be {wanted}.",
        f"Call {tool} again with {parameter} as {wanted}, or without it.",
    )


def _shown(value: Any) -> str:
    """Return the beginning of a value as JSON, or the kind of value that it is."""
    match value:
        case bool():
            return str(value).lower()
        case int() if abs(value) >= 10**_SHOWN:
            return "a number beyond all bounds"
        case int() | float():
            return str(value)
        case str():
            return f'"{_sendable(value[:_SHOWN])}{"..." if len(value) > _SHOWN else ""}"'
        case Mapping():
            return "an object"
        case list() | tuple():
            return "a list"
        case _:
            return f"of type {type(value).__name__}"


def _sendable(text: str) -> str:
    """Replace lone surrogates, which JSON can contain and a message cannot."""
    return text.encode("utf-8", "replace").decode()
