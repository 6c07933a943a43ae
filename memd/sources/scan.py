"""Which indexable files are on the disk, told by names and stats alone.

Directories are opened relative to one another and no symlink is followed, so a tree that changes during the scan
cannot lead it out of its roots. What could not be looked into is told apart from what is not there: files are
missed only where the scan could see.
"""

import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from enum import StrEnum
from pathlib import Path
from typing import assert_never

import msgspec

from memd.model import FoundFile, Kind, Stamp
from memd.paths import (
    MEMORY_DIRECTORY,
    VENV_MARK,
    Parts,
    Root,
    SingleFile,
    Tree,
    Workspace,
    admits_file,
    descends_into,
    has_control,
    is_curated,
    is_markdown,
    is_under_any,
    is_utf8,
    name_of,
    nfc,
    parts_below,
    prefix_of,
)
from memd.sources.fence import (
    Exhausted,
    Missing,
    OutsideFence,
    SourceError,
    Unreadable,
    on_disk,
    open_directory,
    refusal,
    root_opened,
)
from memd.sources.notes import TooLarge

_UNSOUND = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")


class Skip(StrEnum):
    """Why a file is not indexed although its place and name would have it so."""

    TOO_LARGE = "too large"
    SYMLINK = "symlink"
    UNREADABLE = "unreadable"
    NOT_REGULAR = "not a regular file"
    NOT_MARKDOWN = "not a Markdown file"
    NOT_UTF8 = "name is not UTF-8"
    CONTROL = "control character in the name"
    SAME_NAME = "same name in another Unicode form"
    SAME_FILE = "same file under another name"


# Which of several is indexed depends on the others: with one of these about, a partial scan tells too little.
DOUBLES = frozenset({Skip.SAME_NAME, Skip.SAME_FILE})


class Anchor(msgspec.Struct, frozen=True):
    """A directory that may be a mount point, as a scan met it."""

    device: int
    inode: int
    empty: bool  # nothing at all in it, not even a hidden file
    mounted: bool = False  # another device than the directory above


class Scan(msgspec.Struct, frozen=True):
    """What a scan saw, by names in the index."""

    found: Mapping[str, FoundFile]  # in the order of their names
    skipped: Mapping[str, Skip]  # a file, or a directory with all that lies below
    missing_roots: frozenset[Path]
    blind: frozenset[str]  # prefixes: the scan could not look there, so what is known below stays
    # Prefix -> the directory whose loss would take everything below: the roots, memory/, and all mount points that
    # the scan met.
    anchors: Mapping[str, Anchor]
    looked: frozenset[str] | None  # prefixes of a partial scan; None: everywhere

    def covers(self, name: str) -> bool:
        """Whether the scan was about this name: it is found, skipped, or not there, unless the scan was blind."""
        return self.looked is None or is_under_any(name, self.looked)


def scan(roots: Sequence[Root], *, max_bytes: int, within: Collection[Path] | None = None) -> Scan:
    """Look for indexable files.

    A file is found once: in the workspace before extra paths, then under the first of its names.

    Args:
        roots: As sources.roots gives them.
        max_bytes: Files that are larger are skipped.
        within: Look only at these files and directories, and what lies below them; paths as the watcher gives
            them, whether they still exist or not. None: everywhere.

    Raises:
        Exhausted: no more descriptors; nothing can be said about the disk.
    """
    search = _Search(max_bytes)
    looked: set[str] = set()
    for root in roots:
        places = [()] if within is None else _places(root, within)
        if places:
            names = (name_of(root, parts) if parts else prefix_of(root) for parts in places)
            # What is no UTF-8 is the name of nothing in the index, and the store could not even be asked for it.
            looked.update(filter(is_utf8, names))
            search.look(root, places)
    if within is not None and search.met_double:
        # Which of its names a file goes by, or which of two files has a name, can be told only by looking at all of them.
        return scan(roots, max_bytes=max_bytes)
    return search.result(None if within is None else frozenset(looked))


def _places(root: Root, within: Collection[Path]) -> list[Parts]:
    """The parts below the root to look at, none below another."""
    places: set[Parts] = set()
    for path in within:
        parts = parts_below(root, path)
        if parts is not None:
            places.add(parts)
        elif root.directory.is_relative_to(path):
            places.add(())
    return sorted(place for place in places if not any(place[:n] in places for n in range(len(place))))


class _Candidate(msgspec.Struct, frozen=True, gc=False):
    rank: tuple[bool, str, bool, str]  # the workspace first, then by name, the NFC spelling before others
    found: FoundFile
    device: int
    # Without other names, a number that was met before was given anew: the first file is gone meanwhile.
    has_other_names: bool


class _Search:
    """One scan as it goes."""

    def __init__(self, max_bytes: int) -> None:
        self._max_bytes = max_bytes
        self._candidates: list[_Candidate] = []
        self._skipped: dict[str, Skip] = {}
        self._missing: set[Path] = set()
        self._blind: set[str] = set()
        self._anchors: dict[str, Anchor] = {}
        self.met_double = False

    def look(self, root: Root, places: Iterable[Parts]) -> None:
        """Look at places below a root; no parts mean all of it."""
        flaw = _flaw(str(root.directory))
        if flaw is not None and not isinstance(root, Workspace):
            self._skip(prefix_of(root), flaw)
            return
        try:
            with root_opened(root.directory) as base:
                self._anchor(root, base, ())
                if isinstance(root, Workspace):
                    self._anchor(root, base, (MEMORY_DIRECTORY,))
                for parts in places:
                    if parts:
                        self._place(root, base, (), parts)
                    else:
                        self._whole(root, base)
        except (Missing, OutsideFence):
            self._missing.add(root.directory)
            self._blind.add(prefix_of(root))
        except Unreadable:
            self._skip(prefix_of(root) or str(root.directory), Skip.UNREADABLE)
            self._blind.add(prefix_of(root))

    def result(self, looked: frozenset[str] | None) -> Scan:
        """What was seen, each file once."""
        found: dict[str, FoundFile] = {}
        by_identity: dict[tuple[int, int], FoundFile] = {}
        for candidate in sorted(self._candidates, key=lambda candidate: candidate.rank):
            file = candidate.found
            identity = (candidate.device, file.stamp.inode)
            same = by_identity.get(identity)
            if same is not None and (candidate.has_other_names or same.file == file.file):
                # Overlapping roots lead to one file in two ways. Only a second name of its own is worth telling.
                if same.file != file.file:
                    self._skip(file.path, Skip.SAME_FILE)
            elif file.path in found:
                self._skip(str(file.file), Skip.SAME_NAME)
            else:
                found[file.path] = file
                if file.stamp.inode:  # there are file systems that number nothing
                    by_identity[identity] = file
        return Scan(
            found=dict(sorted(found.items())),
            skipped=dict(sorted(self._skipped.items())),
            missing_roots=frozenset(self._missing),
            blind=frozenset(self._blind),
            anchors=self._anchors,
            looked=looked,
        )

    def _whole(self, root: Root, base: int) -> None:
        match root:
            case Workspace():
                self._directory(root, base, (), ".", deep=False)
                self._place(root, base, (), (MEMORY_DIRECTORY,))
            case Tree():
                self._directory(root, base, (), ".", deep=True)
            case SingleFile():
                self._place(root, base, (), (root.file,))
            case _:
                assert_never(root)

    def _place(self, root: Root, above: int, done: Parts, rest: Parts) -> None:
        """Look at one file or directory, and the way there."""
        parts = (*done, *rest[:1])
        try:
            name = on_disk(above, rest[0])
            self.met_double |= _has_twin(above, name, rest[0])
            parts = (*done, name)
            if len(rest) == 1:
                self._single(root, above, parts)
            elif descends_into(root, parts):
                inner = open_directory(above, name)
                try:
                    self._anchor_mount(root, above, inner, parts)
                    if not _is_venv(inner):
                        self._place(root, inner, parts, rest[1:])
                finally:
                    os.close(inner)
        except OSError as failure:
            self._failed(failure, root, parts)

    def _single(self, root: Root, above: int, parts: Parts) -> None:
        status = os.stat(parts[-1], dir_fd=above, follow_symlinks=False)
        if stat.S_ISLNK(status.st_mode):
            self._symlink(root, parts)
        elif stat.S_ISDIR(status.st_mode):
            if self._may_descend(root, parts):
                self._directory(root, above, parts, parts[-1], deep=True)
        elif isinstance(root, SingleFile) and not is_markdown(root.file):
            self._skip(name_of(root, parts), Skip.NOT_MARKDOWN)
        elif self._may_hold(root, parts):
            self._file(root, root.directory.joinpath(*parts), parts, status)

    def _directory(self, root: Root, above: int, parts: Parts, name: str, *, deep: bool) -> None:
        try:
            here = open_directory(above, name)
            try:
                self._anchor_mount(root, above, here, parts)
                self._list(root, here, parts, deep=deep)
            finally:
                os.close(here)
        except OSError as failure:
            self._failed(failure, root, parts)

    def _list(self, root: Root, here: int, above: Parts, *, deep: bool) -> None:
        with os.scandir(here) as listing:
            entries = list(listing)
        if above and any(entry.name == VENV_MARK for entry in entries):
            return
        directory = root.directory.joinpath(*above)
        for entry in entries:
            parts = (*above, entry.name)
            try:
                if entry.is_symlink():
                    self._symlink(root, parts)
                elif entry.is_dir(follow_symlinks=False):
                    if deep and self._may_descend(root, parts):
                        self._directory(root, here, parts, entry.name, deep=True)
                elif self._may_hold(root, parts):
                    self._file(root, directory / entry.name, parts, entry.stat(follow_symlinks=False))
            except OSError as failure:
                self._failed(failure, root, parts)

    def _file(self, root: Root, file: Path, parts: Parts, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self._skip(name_of(root, parts), Skip.NOT_REGULAR)
            return
        if status.st_size > self._max_bytes:
            self._skip(name_of(root, parts), Skip.TOO_LARGE)
            return
        self.met_double |= status.st_nlink > 1
        path = name_of(root, parts)
        kind = Kind.CURATED if is_curated(path) else Kind.NOTE
        stamp = Stamp(size=status.st_size, mtime_ns=status.st_mtime_ns, inode=status.st_ino)
        below = "/".join(parts)
        rank = (not isinstance(root, Workspace), path, nfc(below) != below, below)
        self._candidates.append(
            _Candidate(rank, FoundFile(path, file, kind, stamp), status.st_dev, status.st_nlink > 1)
        )

    def _symlink(self, root: Root, parts: Parts) -> None:
        """Count a symlink that a person may take for a note, or, having no suffix, for a directory of notes."""
        if admits_file(root, parts) or ("." not in parts[-1] and descends_into(root, parts)):
            self._skip(name_of(root, parts), Skip.SYMLINK)

    def _may_hold(self, root: Root, parts: Parts) -> bool:
        """Whether the name is that of a note; a name that only its letters spoil is counted."""
        if not is_markdown(parts[-1]):
            return False
        if admits_file(root, parts):
            return True
        flaw = _flaw(parts[-1])
        if flaw is not None and admits_file(root, _mended(parts)):
            self._skip(name_of(root, parts), flaw)
        return False

    def _may_descend(self, root: Root, parts: Parts) -> bool:
        if descends_into(root, parts):
            return True
        flaw = _flaw(parts[-1])
        if flaw is not None and descends_into(root, _mended(parts)):
            self._skip(name_of(root, parts), flaw)
        return False

    def _anchor(self, root: Root, above: int, parts: Parts) -> None:
        """Note what tells a mount point from a directory that a person emptied."""
        prefix = name_of(root, parts) if parts else prefix_of(root)
        try:
            here = open_directory(above, parts[-1] if parts else ".")
            try:
                self._anchors[prefix] = _anchor_of(here, mounted=_is_mount_point(here))
            finally:
                os.close(here)
        except OSError as failure:
            self._failed(failure, root, parts)

    def _anchor_mount(self, root: Root, above: int, here: int, parts: Parts) -> None:
        """Note a mount point below a root; roots and memory/ are noted in any case."""
        if parts and os.fstat(here).st_dev != os.fstat(above).st_dev:
            self._anchors[name_of(root, parts)] = _anchor_of(here, mounted=True)

    def _failed(self, failure: OSError, root: Root, parts: Parts) -> None:
        """Tell what is gone from what could not be looked at."""
        name = name_of(root, parts) if parts else prefix_of(root)
        error = refusal(failure, name)
        if isinstance(error, Exhausted):
            raise error from failure
        if isinstance(error, Unreadable):
            self._skip(name or str(root.directory), Skip.UNREADABLE)
            self._blind.add(name)

    def _skip(self, name: str, why: Skip) -> None:
        self._skipped[os.fsencode(name).decode(errors="backslashreplace")] = why


def skip_of(trouble: SourceError) -> Skip:
    """Why a file is not indexed that a scan found, and that could not be read."""
    match trouble:
        case TooLarge():
            return Skip.TOO_LARGE
        case OutsideFence():
            return Skip.NOT_REGULAR
        case _:
            return Skip.UNREADABLE


def _flaw(name: str) -> Skip | None:
    if not is_utf8(name):
        return Skip.NOT_UTF8
    return Skip.CONTROL if has_control(name) else None


def _mended(parts: Parts) -> Parts:
    return (*parts[:-1], _UNSOUND.sub("_", parts[-1]))


def _anchor_of(directory: int, *, mounted: bool) -> Anchor:
    status = os.fstat(directory)
    with os.scandir(directory) as listing:
        return Anchor(status.st_dev, status.st_ino, next(listing, None) is None, mounted)


def _is_mount_point(directory: int) -> bool:
    try:
        above = os.stat("..", dir_fd=directory)
    except OSError:
        return False  # it may be listed and not entered: nothing below it is found anyway
    return os.fstat(directory).st_dev != above.st_dev


def _has_twin(directory: int, name: str, asked: str) -> bool:
    """Whether the disk has a name in another Unicode form too, for another file."""
    if name.isascii():
        return False
    spellings = {name, asked, unicodedata.normalize("NFD", name)}
    return len(spellings) > 1 and len({_inode(directory, spelling) for spelling in spellings} - {None}) > 1


def _inode(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None


def _is_venv(directory: int) -> bool:
    try:
        os.stat(VENV_MARK, dir_fd=directory, follow_symlinks=False)
    except FileNotFoundError:
        return False
    return True
