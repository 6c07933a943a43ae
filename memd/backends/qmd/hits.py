"""Maps qmd's results to indexed files and to their current lines. Pure."""

import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from itertools import chain, zip_longest
from pathlib import Path, PurePosixPath

from memd.backends.qmd.collections import WantedCollection
from memd.backends.qmd.export import IndexedPage
from memd.backends.qmd.export import ManifestEntry as Exported
from memd.backends.qmd.parse import QmdEntry
from memd.domain_types import FoundHit, Kind
from memd.search.snippet import window
from memd.search.terms import held
from memd.store.files import KnownFile
from memd.text.memory_paths import Root, SessionPaths, admits, find_place, name_of, parts_below

_NOT_A_WORD = re.compile(r"[\W_]+")


def path_of_entry(
    entry: QmdEntry,
    collections: Mapping[str, WantedCollection],
    roots: Sequence[Root],
    made_of: Callable[[Path], str | None],
) -> str | None:
    """Return the path in the index of a result's file.

    Args:
        entry: The result.
        collections: The collections that were searched, by name.
        roots: The agent's roots.
        made_of: Returns the source of an exported file.

    Returns:
        None if the agent can have no such file.
    """
    if entry.file is None:
        return None
    collection = collections.get(entry.collection or "")
    below = PurePosixPath(entry.file)
    if ".." in below.parts or (collection is None and not below.is_absolute()):
        return None
    file = Path(below) if collection is None else collection.directory / below.as_posix().lstrip("/")
    if collection is not None and collection.exported:
        return made_of(file)
    for root in roots:
        parts = parts_below(root, file)
        if parts is not None and not isinstance(root, SessionPaths) and admits(root, parts):
            return name_of(root, parts)
    return made_of(file) if collection is None else None


def similar_path_finder(
    collections: Mapping[str, WantedCollection],
    roots: Sequence[Root],
    known: Iterable[KnownFile],
    exported: Mapping[str, Exported],
    base: Path,
) -> Callable[[QmdEntry], str | None]:
    """Return a function that finds the one indexed file that a changed name or a content hash stands for.

    Older versions of qmd print names in lower case, with hyphens for special characters, or print no name at
    all.

    Args:
        collections: The collections that were searched, by name.
        roots: The agent's roots.
        known: The indexed files.
        exported: The exported files, by path in the index.
        base: The directory of exported files.

    Returns:
        A function that returns None if there is no such file, or several.
    """
    named: dict[tuple[str | None, str], list[str]] = {}
    hashes: dict[str, str] = {}
    for one in known:
        copy = exported.get(one.path)
        hashes[one.path] = copy.sha256 if copy else one.hash.hex()
        file = _file(one, copy, roots, base)
        if file is None:
            continue
        named.setdefault((None, _slug(file.name)), []).append(one.path)
        for name, collection in collections.items():
            if file.is_relative_to(collection.directory):
                below = _slug(file.relative_to(collection.directory).as_posix())
                named.setdefault((name, below), []).append(one.path)

    def find(entry: QmdEntry) -> str | None:
        if entry.file is None:
            alike = list(hashes)
        elif entry.collection in collections:
            alike = named.get((entry.collection, _slug(entry.file)), [])
        else:
            alike = named.get((None, _slug(PurePosixPath(entry.file).name)), [])
        if entry.docid is not None and (entry.file is None or len(alike) > 1):
            alike = [path for path in alike if hashes[path].startswith(entry.docid)]
        return alike[0] if len(alike) == 1 else None

    return find


def _file(one: KnownFile, copy: Exported | None, roots: Sequence[Root], base: Path) -> Path | None:
    """Return the file that qmd has read for an indexed file."""
    if copy is not None:
        return base / copy.file
    place = None if one.kind.is_session else find_place(one.path, roots)
    return None if place is None else place[0].directory.joinpath(*place[1])


def _slug(name: str) -> str:
    return _NOT_A_WORD.sub("-", name.casefold()).strip("-")


_NEAR = 3  # lines around qmd's line that are kept, if its snippet is not found
_SHORTEST = 4  # shortest line that is searched for elsewhere


def locate(lines: Sequence[str], entry: QmdEntry) -> tuple[int, int] | None:
    """Return the current line range of a result's snippet.

    qmd may have read an older version of the file, so the snippet's lines are compared with the current ones,
    and searched for if they have moved.

    Args:
        lines: All lines of the file.
        entry: The result.

    Returns:
        (first, last), from 1; None: the snippet is not in the file.
    """
    if not lines:
        return None
    shown = [_bare(line) for line in entry.snippet]
    while shown and not shown[-1]:
        shown.pop()
    if not any(shown):
        at = entry.line or entry.first
        if at is None:
            return (1, len(lines))
        return (at, min(len(lines), at + (entry.count or 1) - 1)) if at <= len(lines) else None
    if entry.first is not None and _fits(lines, entry.first, shown):
        return entry.first, min(len(lines), entry.first + len(shown) - 1)
    first = _found(lines, shown)
    return None if first is None else (first, min(len(lines), first + len(shown) - 1))


def _fits(lines: Sequence[str], first: int, shown: Sequence[str]) -> bool:
    """Return whether a snippet is at the lines from `first` on."""
    if first < 1:
        return False
    there = lines[first - 1 : first - 1 + len(shown)]
    if len(there) < len(shown):
        return False
    *whole, last = shown
    return all(_bare(line) == one for line, one in zip(there, whole, strict=False)) and _begins(
        there[-1], last
    )


def _begins(line: str, shown: str) -> bool:
    """Return whether a line matches a line of a snippet, which may be truncated."""
    return _bare(line) == shown or (shown.endswith("...") and _bare(line).startswith(shown[:-3].rstrip()))


def _bare(line: str) -> str:
    return line.strip("\r\n \t\ufeff").replace("\0", "")


def _found(lines: Sequence[str], shown: Sequence[str]) -> int | None:
    """Return the first line of a snippet, found by its longest line; if there are several, where most others match."""
    offset = max(range(len(shown)), key=lambda n: len(shown[n]))
    if len(shown[offset]) < _SHORTEST:
        return None
    places = [n - offset + 1 for n, line in enumerate(lines) if _begins(line, shown[offset])]

    def agreeing(first: int) -> int:
        return sum(
            0 < first + n <= len(lines) and bool(one) and _begins(lines[first + n - 1], one)
            for n, one in enumerate(shown)
        )

    best = max(places, key=agreeing, default=None)
    return None if best is None else max(1, best)


def shown_lines(
    page: IndexedPage, place: tuple[int, int], entry: QmdEntry, terms: Sequence[str], max_chars: int
) -> tuple[int, int, str] | None:
    """Return the window around qmd's line that contains the most of the question.

    Args:
        page: The file.
        place: The line range of the snippet.
        entry: The result.
        terms: The question's terms.
        max_chars: The most characters.

    Returns:
        (first line, last line, text), in lines of the source; None: there are only blank lines.
    """
    first, last = place
    means = entry.line if entry.line is not None and first <= entry.line <= last else first
    begin, end = _around(page.lines, first, last, means, max_chars)
    text = "\n".join(page.lines[begin - 1 : end])
    if terms and not held([text], terms):
        # Found by its vector: no line is better than qmd's snippet.
        text = "\n".join(page.lines[first - 1 : end])
        begin = first
    if not text.strip():
        return None
    chosen = window(text, begin, terms, max_chars)
    numbers = [page.number(line) for line in range(chosen.start_line, chosen.end_line + 1)]
    return min(numbers), max(numbers), chosen.text


def _around(lines: Sequence[str], first: int, last: int, means: int, most: int) -> tuple[int, int]:
    """Return a line range of up to `most` characters on each side of a line."""
    begin, room = means, most
    while begin > 1 and (room := room - len(lines[begin - 2]) - 1) >= 0:
        begin -= 1
    end, room = means, most
    while end < len(lines) and (room := room - len(lines[end]) - 1) >= 0:
        end += 1
    # Long lines leave no room, but the snippet's lines stay within reach.
    return min(begin, max(first, means - _NEAR)), max(end, min(last, means + _NEAR))


def merged(of_qmd: Sequence[FoundHit], of_builtin: Sequence[FoundHit]) -> list[FoundHit]:
    """Interleave the hits of both backends by rank, as their scores are on different scales."""
    return sources_alternating(deduplicated(_alternating([of_qmd, of_builtin])))


def sources_alternating(hits: Iterable[FoundHit]) -> list[FoundHit]:
    """Interleave the hits of all sources, starting with the first hit's; the order within a source stays."""
    by_source: dict[str, list[FoundHit]] = {}
    for hit in hits:
        by_source.setdefault(hit.source, []).append(hit)
    return _alternating(by_source.values())


def _alternating(lists: Iterable[Sequence[FoundHit]]) -> list[FoundHit]:
    return [hit for hit in chain.from_iterable(zip_longest(*lists)) if hit is not None]


def deduplicated(hits: Iterable[FoundHit]) -> list[FoundHit]:
    """Remove hits that show a text or lines that an earlier hit shows."""
    kept: list[FoundHit] = []
    texts: set[str] = set()
    for hit in hits:
        overlaps = any(
            one.path == hit.path and one.start_line <= hit.end_line and hit.start_line <= one.end_line
            for one in kept
        )
        if not overlaps and hit.snippet not in texts:
            kept.append(hit)
            texts.add(hit.snippet)
    return kept


def hit_of(path: str, kind: Kind, score: float, found: tuple[int, int, str]) -> FoundHit:
    """Return a hit with qmd's score."""
    first, last, text = found
    return FoundHit(path, first, last, round(score, 4), text, kind.source, own_scale=True)
