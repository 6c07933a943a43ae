"""Decides which paths are memory, and what their names in the index are. Pure rules about names.

A path below a root is a tuple of its parts. The name in the index consists of them in Unicode form NFC, because file systems spell
the same name differently: relative to the workspace for files in it, absolute for extra paths. A transcript has the name of its
session, sessions/<label>/<id>.jsonl, wherever it is moved and however it is compressed.
"""

import os
import re
import unicodedata
from collections.abc import Callable, Collection, Iterable
from pathlib import Path
from typing import assert_never

import msgspec

from memd.text import transcript_files
from memd.text.transcript_files import Layout, Transcript
from memd_client.copied_names import original_name

Parts = tuple[str, ...]

MEMORY_DIRECTORY = "memory"
SESSIONS = "sessions"

_CURATED = frozenset({"memory.md", "user.md"})
OF_OWNER = _CURATED | {"gemini.md", "memory_summary.md"}
# In each of these names, so that nearly all others need no closer look.
_HINT = re.compile("memory|user|gemini", re.IGNORECASE)
# Directories whose name begins with a dot are skipped, too.
_PRUNED = frozenset({"node_modules", "venv", "__pycache__", "site-packages"})
# Deeper trees are accidents (a loop of bind mounts), and each level costs the scan an open directory.
_MAX_DEPTH = 64
# Longest path of a directory: with the name of a file, Linux watches no longer ones.
_MAX_BYTES = 4096 - 256
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f]")
_SURROGATE = re.compile(r"[\ud800-\udfff]")


class ExcludeGlobs(msgspec.Struct, frozen=True):
    """The compiled globs of a configuration; see exclude_of."""

    below: re.Pattern[str] | None = None  # matched against the path below the root
    absolute: re.Pattern[str] | None = None  # matched against the whole path

    def matches(self, path: str) -> bool:
        """Return whether a glob matches a path in the index, relative or absolute."""
        if self.absolute is not None and path.startswith("/") and self.absolute.match(path):
            return True
        return self.below is not None and self.below.match(path) is not None


class Workspace(msgspec.Struct, frozen=True):
    """The workspace of an agent: MEMORY.md and USER.md in it, with copies of them, and memory/ below it."""

    directory: Path  # absolute, symlinks resolved once; nothing below is followed
    exclude: ExcludeGlobs = ExcludeGlobs()


class ExtraDirectory(msgspec.Struct, frozen=True):
    """An extra path that is a directory: every Markdown file below it."""

    directory: Path
    exclude: ExcludeGlobs = ExcludeGlobs()
    way: Parts = ()  # only notes below these directories; * matches any one


class SingleFile(msgspec.Struct, frozen=True):
    """An extra path that is a single file."""

    directory: Path
    file: str  # as the disk spells it
    exclude: ExcludeGlobs = ExcludeGlobs()
    # Only for its owner whatever its name, because a symlink with such a name leads to it.
    is_owners: bool = False


class SessionPaths(msgspec.Struct, frozen=True):
    """A directory of transcripts. Several may have one label, such as the live and the archived ones of an agent."""

    directory: Path
    label: str  # part of all names: sessions/<label>/<id>.jsonl
    layout: Layout
    subagents: bool = False  # whether transcripts of subagents are included
    exclude: ExcludeGlobs = ExcludeGlobs()
    file: str | None = None  # only this file, as the disk spells it
    archived: bool = False  # contains transcripts of ended sessions
    expected: bool = True  # expected to exist; while it is missing, its files stay indexed


Root = Workspace | ExtraDirectory | SingleFile | SessionPaths


# --- names -------------------------------------------------------------------------------------------------------


def nfc(name: str) -> str:
    """Return the name in Unicode form NFC."""
    return name if name.isascii() else unicodedata.normalize("NFC", name)


def is_markdown(name: str) -> bool:
    """Return whether a name ends in .md, in any case.

    NOTES.MD means the same, and on many file systems it is the same file.
    """
    return name[-3:].lower() == ".md"


def is_curated(name: str) -> bool:
    """Return whether a path in the index is that of a MEMORY.md or USER.md, or of a copy of one.

    In any letter case and at any depth: an extra path may contain a workspace, and what describes the owner
    must not reach a group because of its position.
    """
    return _is_called(_CURATED, name)


def describes_owner(name: str) -> bool:
    """Return whether a note is only for its owner, by its path in the index: a curated one, or that of another agent.

    Gemini CLI stores what it should remember of its user in GEMINI.md, Codex what it concludes in
    memory_summary.md. What synchronises, copies or merges files puts a copy beside its original, under a name made
    from its name: MEMORY.sync-conflict-20261123-161318-BTMRC5A.md.
    """
    return _is_called(OF_OWNER, name)


def _is_called(names: frozenset[str], path: str) -> bool:
    name = path.rpartition("/")[2]
    return _HINT.search(name) is not None and original_name(nfc(name)).lower() in names


def is_for_owner(root: Root, name: str) -> bool:
    """Return whether a note is only for its owner, by its path in the index and by how it was configured."""
    return describes_owner(name) or (isinstance(root, SingleFile) and root.is_owners)


def has_control(name: str) -> bool:
    """Return whether a name contains control characters: nobody could cite it, and it could forge the output of a tool."""
    return _CONTROL.search(name) is not None


def is_utf8(name: str) -> bool:
    """Return whether a name from the disk is valid UTF-8; Python represents other bytes as lone surrogates."""
    return name.isascii() or _SURROGATE.search(name) is None


def as_text(path: Path | str) -> str:
    """Return a path as text that can be stored and sent; bytes that are not UTF-8 are escaped."""
    return os.fsencode(path).decode(errors="backslashreplace")


def prefix_of(root: Root) -> str:
    """Return the prefix of a root's paths in the index; empty for the workspace."""
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
    """Return the name of the single file of a root; None if the root is a directory."""
    return root.file if isinstance(root, SingleFile | SessionPaths) else None


def name_of(root: Root, parts: Parts) -> str:
    """Return the path in the index of the file or directory at these parts below the root.

    In a root of transcripts, directories and files that are not transcripts have their absolute path instead.
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
    """Return the path in the index of a session in the database at these parts; None if its id cannot be part of a path."""
    session = transcript_files.entry(root.layout, parts, identity)
    if session is None or not _is_sound(session.id.rpartition("/")[2]):
        return None
    return nfc(f"{SESSIONS}/{root.label}/{session.id}.jsonl")


def transcript_at(root: SessionPaths, parts: Parts) -> Transcript | None:
    """Return the transcript at these parts below a root of transcripts, by its name; None if it is not one."""
    session = transcript_files.transcript(root.layout, parts)
    return msgspec.structs.replace(session, archived=True) if session and root.archived else session


def is_session(name: str) -> bool:
    """Return whether a path in the index is that of a transcript. No note of a workspace is below sessions/."""
    return name.startswith(f"{SESSIONS}/")


def is_under(name: str, prefix: str) -> bool:
    """Return whether a path in the index is the prefix or below it; the empty prefix is the workspace."""
    if not prefix:
        return not name.startswith("/") and not is_session(name)
    return name == prefix or name.startswith(prefix if prefix.endswith("/") else f"{prefix}/")


def is_under_any(name: str, prefixes: Collection[str]) -> bool:
    """Like is_under, for any of many prefixes; fast if they are a set."""
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
    """Return the parts of an absolute path below the root's directory; None if it is elsewhere."""
    parts, base = path.parts, root.directory.parts
    return parts[len(base) :] if parts[: len(base)] == base else None


def find_place(name: str, roots: Iterable[Root]) -> tuple[Root, Parts] | None:
    """Return the root that a path in the index belongs to, with the parts below it.

    The path must be exactly as the index has it. A result does not mean that the file is indexed, which only
    the store knows.

    Returns:
        None if no root can contain such a file, and for transcripts, whose paths in the index do not say
        where they are.
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
        # The comparison rejects paths that only resemble one, for example with doubled slashes.
        if admits(root, parts) and name_of(root, parts) == name:
            return root, parts
    return None


# --- rules -------------------------------------------------------------------------------------------------------


def admits(root: Root, parts: Parts) -> bool:
    """Return whether a regular file at these parts below the root belongs into the index."""
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
            # A database, or its log: all sessions in it are examined.
            fits = fits or transcript_files.is_database(root.layout, parts)
            fits = fits or transcript_files.is_database_log(root.layout, parts)
            if root.file is not None:
                fits = fits and len(parts) == 1 and nfc(name) == nfc(root.file)
        case _:
            assert_never(root)
    return fits and not _is_excluded(root, parts, end="")


def admits_notes(root: Root, directory: Parts) -> bool:
    """Return whether `admits_file` is true of each plain note in a directory that the root descends into, if it is not excluded."""
    match root:
        case Workspace():
            return bool(directory)
        case ExtraDirectory():
            return len(directory) >= len(root.way)
        case SingleFile() | SessionPaths():
            return False
        case _:
            assert_never(root)


def excluded_in(root: Root, directory: Parts) -> Callable[[str], bool] | None:
    """Return which plain notes in a directory are excluded, by name; None: none is."""
    exclude = root.exclude
    prefix = nfc("".join(f"{part}/" for part in directory))
    above = f"{nfc(str(root.directory)).rstrip('/')}/{prefix}"
    below, absolute = exclude.below, exclude.absolute
    if absolute is not None:
        return lambda name: (
            absolute.match(above + name) is not None
            or (below is not None and below.match(prefix + name) is not None)
        )
    return None if below is None else lambda name: below.match(prefix + name) is not None


def is_plain_note(name: str) -> bool:
    """Return whether a name is that of a note, in printable ASCII, as nearly all are."""
    return name[-3:] == ".md" and name.isascii() and name[0] != "." and name.isprintable()


def descends(root: Root, parts: Parts) -> bool:
    """Return whether files in the directory at these parts below the root can belong into the index."""
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
    """Return whether the root skips a directory only because it is nested too deeply."""
    return _is_deep(root, parts) and _leads_on(root, parts)


def _is_deep(root: Root, parts: Parts) -> bool:
    if len(parts) >= _MAX_DEPTH:
        return True
    length = len(str(root.directory)) + sum(map(len, parts)) + len(parts)
    # A character has at most four bytes, which decides nearly all cases without encoding.
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
    if part in {"", ".", ".."} or "/" in part:
        return False
    # Neither control characters nor surrogates are printable.
    return part.isprintable() or (not has_control(part) and is_utf8(part))


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
    """Compile the globs of a configuration.

    * ``*``, ``?`` and ``[...]`` stay within one part of a path, ``**`` spans directories. * A glob without
    ``/`` matches the name of any file or directory below a root. * One with ``/`` matches the path below its
    root; for the workspace that is the path in the index. One that
      begins with ``/`` matches the absolute path.
    * One that ends in ``/`` matches directories only. A directory that matches includes everything below it.
    * Empty parts and ``.`` are ignored. ``..`` matches nothing, so a configuration must not contain it.

    Matching is case-sensitive. A bracket that is never closed matches itself.
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
    # From each ** to the next, the first match may be kept, and within that from each *: trying all ways, six
    # stars would take minutes. But a ** tries its next match when a following * would have to pass a slash,
    # and the last ones extend to the end.
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
