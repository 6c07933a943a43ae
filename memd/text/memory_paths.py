"""Decides which paths are memory, and what their names in the index are. Pure rules about names.

A path below a root is a tuple of its parts. The name in the index consists of them in Unicode form NFC, because file systems spell
the same name differently: relative to the workspace for files in it, absolute for extra paths. A transcript has the name of its
session, sessions/<label>/<id>.jsonl, wherever it is moved and however it is compressed.
"""

import os
import re
import unicodedata
from collections.abc import Collection, Iterable
from pathlib import Path
from typing import assert_never

import msgspec

from memd.text import transcript_files
from memd.text.transcript_files import Layout, Transcript

Parts = tuple[str, ...]

MEMORY_DIRECTORY = "memory"
SESSIONS = "sessions"

_CURATED = frozenset({"memory.md", "user.md"})
OF_OWNER = _CURATED | {"gemini.md", "memory_summary.md"}
_PRUNED = frozenset({"node_modules", "venv", "__pycache__", "site-packages"})  # others begin with a dot
# Deeper trees are accidents (a loop of bind mounts), and each level costs the scan an open directory.
_MAX_DEPTH = 64
# Of the path of a directory: with the name of a file, Linux takes no longer one to watch.
_MAX_BYTES = 4096 - 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class ExcludeGlobs(msgspec.Struct, frozen=True):
    """The globs of a configuration, ready to be matched; see exclude_of."""

    below: re.Pattern[str] | None = None  # against the path below the root
    absolute: re.Pattern[str] | None = None  # against the whole path

    def matches(self, path: str) -> bool:
        """Whether one of them matches a name in the index: a relative one, an absolute one."""
        if self.absolute is not None and path.startswith("/") and self.absolute.match(path):
            return True
        return self.below is not None and self.below.match(path) is not None


class Workspace(msgspec.Struct, frozen=True):
    """The workspace of an agent: MEMORY.md and USER.md in it, and memory/ below it."""

    directory: Path  # absolute, symlinks resolved once; nothing below is followed
    exclude: ExcludeGlobs = ExcludeGlobs()


class ExtraDirectory(msgspec.Struct, frozen=True):
    """An extra path that is a directory: every Markdown file below it."""

    directory: Path
    exclude: ExcludeGlobs = ExcludeGlobs()
    way: Parts = ()  # the notes lie below these directories alone; * is any one


class SingleFile(msgspec.Struct, frozen=True):
    """An extra path that is a file: this one, in its directory."""

    directory: Path
    file: str  # as the disk spells it
    exclude: ExcludeGlobs = ExcludeGlobs()
    is_owners: bool = False  # for its owner's eyes, whatever its name: a symlink of such a name leads to it


class SessionPaths(msgspec.Struct, frozen=True):
    """A directory of transcripts. Several may have one label, as the live and the archived ones of an agent."""

    directory: Path
    label: str  # of all names: sessions/<label>/<id>.jsonl
    layout: Layout
    subagents: bool = False  # with what other agents did for an agent
    exclude: ExcludeGlobs = ExcludeGlobs()
    file: str | None = None  # this one alone, as the disk spells it
    archived: bool = False  # of sessions that are over
    expected: bool = True  # to be there; its files are kept while it is not


Root = Workspace | ExtraDirectory | SingleFile | SessionPaths


# --- names -------------------------------------------------------------------------------------------------------


def nfc(name: str) -> str:
    """The name in Unicode form NFC."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def is_markdown(name: str) -> bool:
    """Whether the name ends in .md.

    In any case: NOTES.MD means the same, and on many file systems it is the same.
    """
    return name[-3:].lower() == ".md"


def is_curated(name: str) -> bool:
    """Whether a name in the index is that of a MEMORY.md or USER.md.

    In any letter case and at any depth: an extra path may contain a workspace, and what describes the owner must not reach a
    group because of its place.
    """
    return name.rpartition("/")[2].lower() in _CURATED


def describes_owner(name: str) -> bool:
    """Whether a note is only for its owner, by its name in the index: a curated one, and the like of other agents.

    Gemini CLI stores what it should remember of its user in GEMINI.md, Codex what it concludes in memory_summary.md.
    """
    return name.rpartition("/")[2].lower() in OF_OWNER


def is_for_owner(root: Root, name: str) -> bool:
    """Whether a note of a root is only for its owner, by its name in the index and by how it was configured."""
    return describes_owner(name) or (isinstance(root, SingleFile) and root.is_owners)


def has_control(name: str) -> bool:
    """Whether a name cannot be printed on one line: nobody could cite it, and it could forge the output of a tool."""
    return _CONTROL.search(name) is not None


def is_utf8(name: str) -> bool:
    """Whether a name from the disk is valid UTF-8; Python shows other bytes as lone surrogates."""
    return name.isascii() or _SURROGATE.search(name) is None


def prefix_of(root: Root) -> str:
    """The prefix of the names in the index of a root; empty for the workspace."""
    match root:
        case Workspace():
            return ""
        case ExtraDirectory():
            return nfc(str(root.directory))
        case SingleFile():
            return nfc(str(root.directory / root.file))
        case SessionPaths():
            return f"{SESSIONS}/{root.label}"
        case _:
            assert_never(root)


def only_file(root: Root) -> str | None:
    """The name of the single file of a root; None if the root is a directory."""
    return root.file if isinstance(root, SingleFile | SessionPaths) else None


def name_of(root: Root, parts: Parts) -> str:
    """The name in the index of the file or directory at these parts below the root.

    In a root of transcripts, directories and files that are no transcripts have their absolute path instead.
    """
    below = nfc("/".join(parts))
    if isinstance(root, Workspace):
        return below
    if isinstance(root, SessionPaths):
        session = transcript_at(root, parts)
        if session is not None:
            return nfc(f"{SESSIONS}/{root.label}/{session.id}.jsonl")
    directory = nfc(str(root.directory))
    if not below:
        return directory
    return f"{directory}{below}" if directory.endswith("/") else f"{directory}/{below}"


def session_name(root: SessionPaths, parts: Parts, identity: str) -> str | None:
    """The name in the index of a session in the database at these parts; None where its id makes no name."""
    session = transcript_files.entry(root.layout, parts, identity)
    if session is None or not _is_sound(session.id.rpartition("/")[2]):
        return None
    return nfc(f"{SESSIONS}/{root.label}/{session.id}.jsonl")


def transcript_at(root: SessionPaths, parts: Parts) -> Transcript | None:
    """The transcript at these parts below a root of transcripts, by its name; None if it is none."""
    session = transcript_files.transcript(root.layout, parts)
    return msgspec.structs.replace(session, archived=True) if session and root.archived else session


def is_session(name: str) -> bool:
    """Whether a name in the index is that of a transcript. No note of a workspace lies below sessions/."""
    return name.startswith(f"{SESSIONS}/")


def is_under(name: str, prefix: str) -> bool:
    """Whether a name in the index is the prefix or lies below it; the empty prefix is the workspace."""
    if not prefix:
        return not name.startswith("/") and not is_session(name)
    return name == prefix or name.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def is_under_any(name: str, prefixes: Collection[str]) -> bool:
    """Like is_under, for any of many prefixes; fast where they are a set."""
    if not prefixes:
        return False
    if name in prefixes or (not is_session(name) and ("/" if name.startswith("/") else "") in prefixes):
        return True
    end = name.rfind("/")
    while end > 0:
        if name[:end] in prefixes:
            return True
        end = name.rfind("/", 0, end)
    return False


def parts_below(root: Root, path: Path) -> Parts | None:
    """The parts of an absolute path below the directory of the root; None where it lies elsewhere."""
    parts, base = path.parts, root.directory.parts
    return parts[len(base) :] if parts[: len(base)] == base else None


def find_place(name: str, roots: Iterable[Root]) -> tuple[Root, Parts] | None:
    """The root a name in the index belongs to, with the parts below it.

    The name must be exactly as the index has it. That it passes here does not mean that it is indexed: only the
    store knows that.

    Returns:
        None where no root holds a file of this name, and for a transcript: where it is, its name does not tell.
    """
    if not name or nfc(name) != name or is_session(name):
        return None
    for root in roots:
        if isinstance(root, SessionPaths):
            continue
        if isinstance(root, Workspace):
            below = name if not name.startswith("/") else ""
        else:
            directory = name_of(root, ())
            below = name[len(directory) :].removeprefix("/") if is_under(name, directory) else ""
        parts = tuple(below.split("/"))
        # The comparison refuses what only resembles the name: doubled slashes, for one.
        if admits(root, parts) and name_of(root, parts) == name:
            return root, parts
    return None


# --- rules -------------------------------------------------------------------------------------------------------


def admits(root: Root, parts: Parts) -> bool:
    """Whether a regular file at these parts below the root belongs into the index."""
    return bool(parts) and descends(root, parts[:-1]) and admits_file(root, parts)


def admits_file(root: Root, parts: Parts) -> bool:
    """Like admits, for a caller who knows that the root descends into the directory of the file."""
    name = parts[-1]
    if not _is_sound(name) or (not isinstance(root, SessionPaths) and not is_markdown(name)):
        return False
    match root:
        case Workspace():
            fits = name[0] != "." and (len(parts) > 1 or is_curated(name))
        case ExtraDirectory():
            fits = name[0] != "." and len(parts) > len(root.way)
        case SingleFile():
            fits = len(parts) == 1 and nfc(name) == nfc(root.file)
        case SessionPaths():
            session = transcript_files.transcript(root.layout, parts)
            fits = session is not None and (root.subagents or not session.subagent)
            # A database, be it by its log: all the sessions in it are looked at.
            fits = fits or transcript_files.is_database(root.layout, parts)
            fits = fits or transcript_files.is_database_log(root.layout, parts)
            if root.file is not None:
                fits = fits and len(parts) == 1 and nfc(name) == nfc(root.file)
        case _:
            assert_never(root)
    return fits and not _is_excluded(root, parts, end="")


def descends(root: Root, parts: Parts) -> bool:
    """Whether files in the directory at these parts below the root can belong into the index."""
    if not parts:
        return True
    ways = () if isinstance(root, Workspace | SingleFile) else range(1, len(parts))
    return (
        all(map(_is_open, parts[:-1]))
        and all(_reaches(root, parts[:n]) for n in ways)
        and descends_into(root, parts)
    )


def descends_into(root: Root, parts: Parts) -> bool:
    """Like descends, for a caller who knows that the root descends into the directory above."""
    return _leads_on(root, parts) and not _is_deep(root, parts)


def is_too_deep(root: Root, parts: Parts) -> bool:
    """Whether the root does not descend into a directory only because it lies so deep."""
    return _is_deep(root, parts) and _leads_on(root, parts)


def _is_deep(root: Root, parts: Parts) -> bool:
    if len(parts) >= _MAX_DEPTH:
        return True
    length = len(str(root.directory)) + sum(map(len, parts)) + len(parts)
    # A character has four bytes at most: of nearly all paths, that tells enough.
    return 4 * length > _MAX_BYTES and len(os.fsencode(root.directory.joinpath(*parts))) > _MAX_BYTES


def _leads_on(root: Root, parts: Parts) -> bool:
    return _is_open(parts[-1]) and _reaches(root, parts) and not _is_excluded(root, parts, end="/")


def _reaches(root: Root, parts: Parts) -> bool:
    match root:
        case Workspace():
            return parts[0] == MEMORY_DIRECTORY
        case ExtraDirectory():
            return len(parts) > len(root.way) or root.way[len(parts) - 1] in {"*", parts[-1]}
        case SingleFile():
            return False
        case SessionPaths():
            return root.file is None and transcript_files.descends(
                root.layout, parts, subagents=root.subagents
            )
        case _:
            assert_never(root)


def _is_open(directory: str) -> bool:
    return directory not in _PRUNED and directory[:1] != "." and _is_sound(directory)


def _is_sound(part: str) -> bool:
    return part not in {"", ".", ".."} and "/" not in part and not has_control(part) and is_utf8(part)


def _is_excluded(root: Root, parts: Parts, *, end: str) -> bool:
    exclude = root.exclude
    if exclude.below is None and exclude.absolute is None:
        return False
    below = nfc("/".join(parts)) + end
    if exclude.below is not None and exclude.below.match(below):
        return True
    if exclude.absolute is None:
        return False
    directory = nfc(str(root.directory)).rstrip("/")
    return exclude.absolute.match(f"{directory}/{below}") is not None


# --- globs -------------------------------------------------------------------------------------------------------


def exclude_of(globs: Iterable[str]) -> ExcludeGlobs:
    """Globs of a configuration, ready to be matched.

    * ``*``, ``?`` and ``[...]`` stay within one part of a path, ``**`` spans directories.
    * A glob without ``/`` matches the name of any file or directory below a root.
    * One with ``/`` matches the path below its root; for the workspace that is the path in the index. One that
      begins with ``/`` matches the absolute path.
    * One that ends in ``/`` matches directories only. A directory that matches takes everything below with it.
    * An empty part and ``.`` say nothing. ``..`` matches nothing, so a configuration must not have it.

    The case of letters counts. A bracket that is never closed stands for itself.
    """
    below: list[str] = []
    absolute: list[str] = []
    for glob in map(nfc, globs):
        if glob.strip("./"):
            (absolute if glob.startswith("/") else below).append(_expression(glob))
    return ExcludeGlobs(_any_of(below), _any_of(absolute))


def _any_of(expressions: list[str]) -> re.Pattern[str] | None:
    return re.compile("|".join(f"(?:{expression})" for expression in expressions)) if expressions else None


def _expression(glob: str) -> str:
    # Directories are matched with a slash at their end, so "everything below" is: a slash, then anything.
    end = r"/.*\Z" if glob.endswith("/") else r"(?:/.*)?\Z"
    body = glob.strip("/")
    if glob.startswith("/"):
        begin = "/"
    elif "/" not in body:
        begin = "(?:.*/)?"
    else:
        begin = ""
    parts = [part for part in body.split("/") if part not in {"", "."}]
    return f"(?s:{begin}{_body(parts)}{end})"


def _body(parts: list[str]) -> str:
    expression = ""
    last = len(parts) - 1
    for at, part in enumerate(parts):
        if part == "**":
            expression += ".*" if at == last else "(?:.*/)?"
        else:
            expression += _part(part) + ("" if at == last else "/")
    return expression


_TOKEN = re.compile(r"\*\*+|\*|\?|\[(!?+)(\]?+[^\]]*)\]|(.)", re.DOTALL)
_MEMBER = re.compile(r"(\w)-(\w)|(.)", re.DOTALL)


def _part(part: str) -> str:
    literals, stars = [""], list[str]()
    for token in _TOKEN.finditer(part):
        match token.group():
            case "?":
                literals[-1] += "[^/]"
            case text if text.startswith("*"):
                stars.append("[^/]*" if text == "*" else ".*")
                literals.append("")
            case _ if token.group(3) is None:
                literals[-1] += _bracket(token.group(2), negated=bool(token.group(1)))
            case text:
                literals[-1] += re.escape(text)
    # From each ** to the next, the first fit may be kept, and within that of each *: tried in all ways, six stars would take
    # minutes. But a ** tries its next fit when a * that follows would have to pass a slash, and the last ones reach to the end.
    runs: list[list[tuple[str, str]]] = [[]]
    for star, literal in zip(stars, literals[1:], strict=True):
        if star == ".*":
            runs.append([])
        runs[-1].append((star, literal))
    *kept, last = runs
    atomic = (f"(?>{_run(run, reaches_end=False)})" for run in kept if run)
    return f"{literals[0]}{''.join(atomic)}{_run(last, reaches_end=True)}"


def _run(run: list[tuple[str, str]], *, reaches_end: bool) -> str:
    expression = ""
    for at, (star, literal) in enumerate(run, start=1):
        is_free = star == ".*" or (reaches_end and at == len(run))
        expression += f"{star}?{literal}" if is_free else f"(?>{star}?{literal})"
    return expression


def _bracket(members: str, *, negated: bool) -> str:
    allowed = ""
    for member in _MEMBER.finditer(members):
        first, last, alone = member.groups()
        if alone is not None:
            allowed += re.escape(alone)
        elif first <= last:
            allowed += f"{first}-{last}"
    if not allowed:
        return "[^/]" if negated else r"(?!)"
    # Neither kind of bracket may match the slash between two parts.
    return f"(?!/)[{'^' if negated else ''}{allowed}]"
