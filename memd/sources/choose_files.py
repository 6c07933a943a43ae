"""Chooses which file is indexed, where several have one name in the index, and which name, where a file has several."""

from collections.abc import Iterable, Mapping
from pathlib import Path

import msgspec

from memd.domain_types import FoundFile, Kind
from memd.sources.scan_result import SkipReason
from memd.text.memory_paths import Parts, Root, SessionPaths, Workspace, nfc, transcript_at

# Each digit -> the digit in reverse sort order.
_BACKWARDS = str.maketrans("0123456789", "9876543210")


class FileCandidate(msgspec.Struct, frozen=True, gc=False):
    """A file that may be indexed."""

    root: Root
    parts: Parts
    found: FoundFile
    device: int
    # Without other names, an inode that was seen before was reused: the first file is gone.
    has_other_names: bool
    is_archived: bool = False  # of a session in a database; names of files say it themselves


def each_once(
    candidates: Iterable[FileCandidate], order: Mapping[Path, int]
) -> tuple[dict[str, FoundFile], list[tuple[str, SkipReason]]]:
    """Return the files to index by their path in the index, and those that are left out with the reason.

    Args:
        candidates: All files that were found, in any order.
        order: The order of the directories of roots.
    """
    found: dict[str, FoundFile] = {}
    skipped: list[tuple[str, SkipReason]] = []
    by_identity: dict[tuple[int, int], FoundFile] = {}
    for candidate in sorted(candidates, key=lambda one: _rank(one, order[one.root.directory])):
        file = candidate.found
        identity = (candidate.device, file.stamp.inode)
        same = by_identity.get(identity)
        if same is not None and (candidate.has_other_names or same.location == file.location):
            # Overlapping roots lead to one file in two ways; only a second name of the file itself is
            # reported.
            if same.location != file.location:
                skipped.append(
                    (_aside(file) if file.kind is Kind.SESSION else file.path, SkipReason.SAME_FILE)
                )
        elif same is not None and _is_spelled_otherwise(same, file):
            if not _is_listed(same.file):
                del found[same.path]
                found[file.path] = by_identity[identity] = file
        elif file.path in found and file.kind is Kind.SESSION:
            skipped.append((_aside(file), SkipReason.SAME_SESSION))
        elif file.path in found:
            skipped.append((file.location, SkipReason.SAME_NAME))
        else:
            found[file.path] = file
            if file.stamp.inode:  # some file systems have no inode numbers
                by_identity[identity] = file
    return found, skipped


# Sort key: the workspace first, then by path; for files of one path: the drawbacks, false before true, the last archive, the
# one written last, the larger one, the home in use; finally by location.
_Rank = tuple[int, str, tuple[bool, ...], str, int, int, int, str]


def _rank(candidate: FileCandidate, order: int) -> _Rank:
    root, parts, found, stamp = candidate.root, candidate.parts, candidate.found, candidate.found.stamp
    below, path = "/".join(parts), found.path
    drawbacks: tuple[bool, ...]
    if found.entry:
        # A session in a database is stored there; files of it are older versions or copies.
        drawbacks = (candidate.is_archived, False, False, False, False)
        return (
            2,
            path,
            drawbacks,
            "",
            -stamp.mtime_ns,
            -stamp.size,
            order,
            f"{found.location}/{found.entry}",
        )
    if not isinstance(root, SessionPaths):
        # Of two ways to one file, the one that makes it private to its owner comes first.
        drawbacks = (found.kind is not Kind.CURATED,)
        return (int(not isinstance(root, Workspace)), path, drawbacks, "", 0, 0, 0, _spelled(below))
    session = transcript_at(root, parts)
    assert session is not None, "only transcripts are found below such a root"
    drawbacks = (session.archived, True, session.compressed, session.elsewhere, nfc(below) != below)
    # Of several archives the last one, by its date, comes first. Of two live ones a person has copied one, as
    # a backup or to continue elsewhere: the conversation continues in the one written last.
    last = session.reset.translate(_BACKWARDS)
    return (2, path, drawbacks, last, -stamp.mtime_ns, -stamp.size, order, str(root.directory / below))


def _spelled(below: str) -> str:
    """Return a sort key: NFC spellings come first, directory by directory, in the order of safe_open.spellings."""
    if below.isascii():
        return "0" + below.replace("/", "/0")
    return "/".join(f"{int(nfc(part) != part)}{part}" for part in below.split("/"))


def _is_spelled_otherwise(one: FoundFile, other: FoundFile) -> bool:
    """Return whether two names of one file differ only in case."""
    return one.location.casefold() == other.location.casefold()


def _is_listed(file: Path) -> bool:
    try:
        return file in file.parent.iterdir()
    except OSError:
        return False


def _aside(file: FoundFile) -> str:
    """Return the name under which a transcript is reported whose session is indexed from another file."""
    label = "/".join(file.path.split("/")[:2])
    return f"{label}{file.location}" if file.kind is Kind.SESSION else file.location
