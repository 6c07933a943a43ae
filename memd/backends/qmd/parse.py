"""Parses what qmd prints, in all formats it has had."""

import json
import math
import re
from collections.abc import Iterator
from typing import Any

import msgspec

from memd.backends.qmd.commands import Version
from memd.backends.qmd.process import (
    AlreadyExists,
    CollectionMissing,
    Locked,
    ProcessEnded,
    QmdBroken,
    QmdFailed,
    UnknownOption,
    last_words,
    plain,
)

_MOST_TRIES = 200  # attempts to find JSON in noisy output
_NOTHING = re.compile(
    r"^\W*no (?:results|matches|documents)(?: were)?(?: found)?\b", re.IGNORECASE | re.MULTILINE
)
_NO_COLLECTIONS = re.compile(r"^\W*no collections\b", re.IGNORECASE | re.MULTILINE)
_HEADER = re.compile(r"@@ -(\d{1,9})(?:,(\d{1,9}))? (?:\+\d{1,9}(?:,\d{1,9})? )?@@[^\n]*\n?")
_URL = re.compile(r"^qmd://+([^/]+)/(.+)$", re.DOTALL)
_INDEX = re.compile(r"\?index=[^/?]*$")
_VERSION = re.compile(r"(?<![\w.])v?(\d{1,6}(?:\.\d{1,6}){1,3})\b")
_ITEM = re.compile(r"^(?:[-*•]\s+)?([A-Za-z0-9][\w.-]*)(?: \(qmd://[^)]*\))?:?$")
_FIELD = re.compile(r"^\s+(\w+):\s*(.*)$")
# Python refuses to parse integers of thousands of digits.
_INDEXED = re.compile(r"Indexed: (\d{1,15}) new, (\d{1,15}) updated, (\d{1,15}) unchanged")
_EMBEDDED = re.compile(r"^\s*Vectors:\s*(\d{1,15})\b", re.MULTILINE)
_COUNT = re.compile(r"\s*(\d{1,15})(?!\S)")

_UNKNOWN_OPTION = re.compile(
    r"(?:unknown|unrecognized|unexpected|unsupported|invalid) (?:flag|option|argument|command)", re.IGNORECASE
)
_MISSING = re.compile(
    r"collections?\b[^\n]{0,200}?\b(?:not found|does not exist|missing|unknown)|unknown collection",
    re.IGNORECASE,
)
_EXISTS = re.compile(r"already exists", re.IGNORECASE)
_BROKEN = re.compile(r"is malformed|not a database|SQLITE_CORRUPT|UNIQUE constraint failed", re.IGNORECASE)
_LOCKED = re.compile(r"database (?:table )?is locked|SQLITE_BUSY|SQLITE_LOCKED", re.IGNORECASE)


class NoAnswer(QmdFailed):
    """The output is not what the command should print."""


class QmdEntry(msgspec.Struct, frozen=True, kw_only=True):
    """A result, as far as qmd describes it."""

    score: float  # 0..1
    collection: str | None = None
    # Below the directory of the collection; absolute if the collection is unknown.
    file: str | None = None
    docid: str | None = None  # leading digits of the hash of its content, hexadecimal
    line: int | None = None  # the line that matched, from 1
    first: int | None = None  # first line of the snippet
    count: int | None = None  # number of lines of the snippet
    snippet: tuple[str, ...] = ()  # the snippet's lines, as qmd has them


class QmdListing(msgspec.Struct, frozen=True):
    """A collection in a listing; None: the listing does not say."""

    name: str
    path: str | None = None
    pattern: str | None = None
    files: int | None = None


# --- failures -----------------------------------------------------------------------------------------------------


def checked(ended: ProcessEnded, what: str, unsaid: tuple[str, ...] | None = None) -> str:
    """Return the stdout of a command that succeeded.

    Args:
        ended: The result of the process.
        what: The command, for the message.
        unsaid: Words of a question, which the message must not repeat; it then quotes nothing from stdout
            either, which may contain notes. None: the command is no search.

    Raises:
        QmdFailed: the command failed; the subclass says how.
    """
    if ended.status == 0:
        return ended.stdout
    if ended.status < 0:
        raise QmdFailed(f"{what} was ended by signal {-ended.status}")
    said = f"{ended.stdout}\n{ended.stderr}" if len(ended.stdout) < 20_000 else ended.stderr
    words = last_words(ended.stderr, unsaid or ())
    if not words and unsaid is None:
        words = last_words(ended.stdout)
    message = f"{what} ended with exit status {ended.status}" + (f": {words}" if words else "")
    for pattern, kind in (
        (_LOCKED, Locked),
        (_BROKEN, QmdBroken),
        (_MISSING, CollectionMissing),
        (_UNKNOWN_OPTION, UnknownOption),
        (_EXISTS, AlreadyExists),
    ):
        if pattern.search(said):
            raise kind(message)
    raise QmdFailed(message)


# --- results ------------------------------------------------------------------------------------------------------


def entries(stdout: str, what: str) -> list[QmdEntry]:
    """Return the results of a search in the order in which qmd printed them.

    Other output before and after them is ignored, as are results without a file.

    Args:
        stdout: The output of the search.
        what: The command, for the message.

    Raises:
        NoAnswer: there are no results, and no message says that there are none.
    """
    found = _results(stdout)
    if found is not None:
        return [entry for one in found if (entry := _entry(one)) is not None]
    if _NOTHING.search(stdout):
        return []
    raise NoAnswer(f"{what} printed {'nothing' if not stdout.strip() else 'no JSON'} where results were due")


def _results(stdout: str) -> list[dict[str, Any]] | None:
    """Return the first list of results in a text; an empty list if lists contain none; None if there is no list."""
    empty: list[dict[str, Any]] | None = None
    for value in _values(stdout):
        listed = value.get("results") if isinstance(value, dict) else value
        if not isinstance(listed, list) or not all(isinstance(one, dict) for one in listed):
            continue
        if listed and any(_entry(one) is not None for one in listed):
            return listed
        empty = []
    return empty


def _values(text: str) -> Iterator[Any]:
    """Yield the outermost JSON lists and objects in a text."""
    decode = json.JSONDecoder().raw_decode
    at, tries = 0, 0
    while tries < _MOST_TRIES:
        begin = min((place for mark in "[{" if (place := text.find(mark, at)) >= 0), default=-1)
        if begin < 0:
            return
        tries += 1
        try:
            value, at = decode(text, begin)
        except (ValueError, RecursionError):
            at = begin + 1
        else:
            yield value


def _entry(one: dict[str, Any]) -> QmdEntry | None:
    collection, file = _place(one)
    docid = _text(one.get("docid")) or _text(one.get("hash"))
    docid = docid.removeprefix("#").lower() if docid and re.fullmatch(r"#?[0-9a-fA-F]{4,64}", docid) else None
    if file is None and docid is None:
        return None
    shown = _text(one.get("snippet")) or _text(one.get("body")) or _text(one.get("text")) or ""
    first = count = None
    header = _HEADER.match(shown)
    if header is not None:
        first, count = int(header[1]), int(header[2] or 1)
        shown = shown[header.end() :]
    return QmdEntry(
        score=_score(one.get("score")),
        collection=collection,
        file=file,
        docid=docid,
        line=_line(one.get("line")) or _line(one.get("startLine")) or _line(one.get("start_line")),
        first=first or None,
        count=count,
        snippet=tuple(shown.split("\n")) if shown.strip() else (),
    )


def _place(one: dict[str, Any]) -> tuple[str | None, str | None]:
    file = next(
        (text for key in ("file", "path", "displayPath", "filepath") if (text := _text(one.get(key)))), None
    )
    collection = _text(one.get("collection"))
    if file is None:
        return collection, None
    url = _URL.match(file)
    if url is not None:
        return url[1], _INDEX.sub("", url[2])
    if collection is None and not file.startswith("/") and "/" in file:
        collection, _, file = file.partition("/")
    elif collection is not None:
        file = file.removeprefix(f"{collection}/")
    return collection, file


def _text(value: Any) -> str | None:
    # JSON may contain lone surrogates, which occur in no file name and cannot be stored.
    return value.encode("utf-8", "replace").decode() if isinstance(value, str) and value else None


def _line(value: Any) -> int | None:
    return value if isinstance(value, int) and not isinstance(value, bool) and 1 <= value < 10**9 else None


def _score(value: Any) -> float:
    try:
        score = float(value)
    except (TypeError, ValueError, OverflowError):
        return 0.0
    return min(1.0, max(0.0, score)) if math.isfinite(score) else 0.0


# --- collections, counts ------------------------------------------------------------------------------------------


def collections(stdout: str) -> list[QmdListing]:
    """Parse a listing of collections: JSON with names or objects, or text.

    Raises:
        NoAnswer: nothing was printed.
    """
    if not stdout.strip():
        raise NoAnswer("qmd collection list printed nothing")
    for value in _values(stdout):
        listed = _listed(value)
        if listed is not None:
            return listed
    return [] if _NO_COLLECTIONS.search(stdout) else _from_text(stdout)


def _listed(value: Any) -> list[QmdListing] | None:
    if isinstance(value, dict):
        value = value.get("collections", value)
    if isinstance(value, dict):  # by name
        value = [{"name": name, **one} for name, one in value.items() if isinstance(one, dict)]
        return [one for each in value if (one := _one(each)) is not None] or None
    if not isinstance(value, list):
        return None
    found = [one for each in value if (one := _one(each)) is not None]
    return found if len(found) == len(value) else None


def _one(value: Any) -> QmdListing | None:
    name = _text(value.get("name") if isinstance(value, dict) else value)
    if name is None:
        return None
    if not isinstance(value, dict):
        return QmdListing(name)

    def text(*keys: str) -> str | None:
        return next((found for key in keys if (found := _text(value.get(key)))), None)

    files = value.get("files", value.get("documents"))
    return QmdListing(
        name,
        text("path", "pwd", "directory", "dir"),
        text("pattern", "mask", "glob"),
        files if isinstance(files, int) and 0 <= files < 10**15 else None,
    )


def _from_text(stdout: str) -> list[QmdListing]:
    """Parse a text listing: a name at the start of a line, with its fields indented below."""
    found: list[QmdListing] = []
    fields: dict[str, str] = {}

    def finish() -> None:
        if found:
            files = _COUNT.match(fields.get("files", ""))
            found[-1] = QmdListing(
                found[-1].name,
                fields.get("path") or fields.get("directory"),
                fields.get("pattern") or fields.get("mask") or fields.get("glob"),
                None if files is None else int(files[1]),
            )
        fields.clear()

    for raw in stdout.split("\n"):
        line = raw.rstrip()
        field = _FIELD.match(line)
        if field is not None:
            fields[field[1].lower()] = plain(field[2])
        elif (item := _ITEM.match(plain(line))) is not None and not line[:1].isspace():
            finish()
            found.append(QmdListing(item[1]))
    finish()
    return found


def version(stdout: str) -> Version | None:
    """Return the version in the output of `qmd --version`; None if there is none."""
    found = _VERSION.search(stdout)
    return None if found is None else tuple(map(int, found[1].split(".")))


def files_indexed(stdout: str) -> int | None:
    """Return how many files an update found in all collections; None if it does not say."""
    found = _INDEXED.findall(stdout)
    return sum(int(number) for each in found for number in each) if found else None


def vectors(stdout: str) -> int | None:
    """Return how many vectors a status reports; None if it does not say."""
    found = _EMBEDDED.search(stdout)
    return None if found is None else int(found[1])
