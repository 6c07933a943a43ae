"""Finds the indexable files on the disk by their names and stats alone, and the sessions in databases of transcripts.

Directories are opened relative to one another and no symlink is followed, so a tree that changes during the scan cannot lead it
out of its roots. A place that could not be listed is distinguished from one that does not exist: files count as gone only where
the scan could look.
"""

import errno
import os
import re
import stat
import unicodedata
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import assert_never

from memd.domain_types import FoundFile, Kind, Stamp
from memd.sources.choose_files import FileCandidate, each_once
from memd.sources.safe_open import (
    FileMissing,
    FileUnreadable,
    NoRoot,
    ProcessExhausted,
    SourceError,
    is_mount_point,
    is_spelled_so,
    on_disk,
    open_directory,
    refusal,
    root_opened,
)
from memd.sources.scan_result import BlindReason, MountPoint, Scan, SkipReason, skip_of
from memd.text.memory_paths import (
    MEMORY_DIRECTORY,
    ExtraDirectory,
    Parts,
    Root,
    SessionPaths,
    SingleFile,
    Workspace,
    admits,
    admits_file,
    admits_notes,
    descends,
    descends_into,
    describes_owner,
    excluded_in,
    has_control,
    is_for_owner,
    is_markdown,
    is_plain_note,
    is_too_deep,
    is_utf8,
    name_of,
    nfc,
    only_file,
    parts_below,
    prefix_of,
    session_name,
    transcript_at,
)
from memd.text.transcript_files import first_is_free, is_database, is_database_log, transcript

_UNSOUND = re.compile(r"[\x00-\x1f\x7f-\x9f\ud800-\udfff]")
_NO_DEVICE = -1  # of a session in a database, whose stamp has no inode of a file
_LOOKS = 5  # listings of a directory of transcripts while files vanish from it


def scan(roots: Sequence[Root], *, max_bytes: int, within: Collection[Path] | None = None) -> Scan:
    """Look for indexable files.

    A file is found once: in the workspace before extra paths, then under the first of its names.

    Args:
        roots: The agent's roots, see sources.roots.
        max_bytes: Files that are larger are skipped.
        within: Scan only these files and directories, with everything below; paths as the watcher gives them, whether
            they still exist or not. None: scan everything.

    Raises:
        ProcessExhausted: no more descriptors; nothing can be said about the disk.
    """
    search = _Search(max_bytes, {root.directory: place for place, root in enumerate(roots)})
    looked: set[str] = set()
    labels: dict[str, list[SessionPaths]] = {}
    for root in roots:
        if isinstance(root, SessionPaths):
            labels.setdefault(root.label, []).append(root)
            continue
        places = [()] if within is None else _places(root, within)
        if places:
            names = (name_of(root, parts) if parts else prefix_of(root) for parts in places)
            # A name that is not UTF-8 is in no index, and could not be looked up in the store.
            looked.update(filter(is_utf8, names))
            search.look(root, places)
    for group in labels.values():
        looked |= _look_at_sessions(search, group, within)
    if within is not None and search.met_double:
        # Which name of a file, or which of two files with one name, is indexed can only be decided by a full
        # scan.
        return scan(roots, max_bytes=max_bytes)
    return search.result(None if within is None else frozenset(looked))


def _look_at_sessions(
    search: "_Search", group: Sequence[SessionPaths], within: Collection[Path] | None
) -> frozenset[str]:
    """Scan for transcripts below the roots of one label; return the prefixes that the scan covered.

    Which file of a session is indexed depends on all its files: of two that differ in nothing else, the one
    written last. So a partial scan accepts a file only if no other file can be of its session, and if it is
    live, uncompressed and in its proper directory, as growing files are. Otherwise it scans all roots of the
    label.
    """
    if within is not None:
        wanted = [
            (root, parts)
            for root in group
            for parts in _places(root, within)
            if (root.file is None or not parts or nfc(parts[0]) == nfc(root.file))
            # Notes may be in between: an edited one is no reason to scan thousands of transcripts.
            and (admits(root, parts) or descends(root, parts))
        ]
        if not wanted:
            return frozenset()
        if all(search.meets_first(root, parts, group) for root, parts in wanted):
            return frozenset(name_of(root, parts) for root, parts in wanted)
    for root in group:
        search.look(root, [()])
    return frozenset({prefix_of(group[0])})


def _places(root: Root, within: Collection[Path]) -> list[Parts]:
    """Return the parts below the root to scan; none is below another one."""
    places: set[Parts] = set()
    for path in within:
        parts = parts_below(root, path)
        if parts is not None:
            places.add(parts)
        elif root.directory.is_relative_to(path):
            places.add(())
    return sorted(place for place in places if not any(place[:n] in places for n in range(len(place))))


class _Search:
    """The state of one scan."""

    def __init__(self, max_bytes: int, order: Mapping[Path, int]) -> None:
        self._max_bytes = max_bytes
        self._order = order  # the order of the directories of roots
        self._candidates: list[FileCandidate] = []
        self._skipped: dict[str, SkipReason] = {}
        self._blind: dict[str, BlindReason] = {}
        self._mounts: set[MountPoint] = set()
        self._linked: set[tuple[Path, int]] = set()
        self.met_double = False

    def meets_first(self, root: SessionPaths, parts: Parts, group: Iterable[SessionPaths]) -> bool:
        """Return whether a transcript is there that takes precedence over all others of its session; it is added then."""
        session = transcript_at(root, parts) if admits(root, parts) else None
        if session is None or session.archived or session.compressed or session.elsewhere:
            return False
        if any(_has_other(other, root, parts, session.id) for other in group):
            return False
        before = len(self._candidates)
        with suppress(SourceError), root_opened(root.directory) as base:
            self._place(root, base, (), parts)
        return len(self._candidates) > before

    def look(self, root: Root, places: Iterable[Parts]) -> None:
        """Scan places below a root; empty parts mean all of it."""
        flaw = _flaw(str(root.directory))
        if flaw is not None and not isinstance(root, Workspace):
            self._skip(_shown(root, ()), flaw)
            return

        def note(place: Path, opened: int) -> None:
            if is_mount_point(opened):
                self._mounts.add(MountPoint(str(place), prefix_of(root)))

        try:
            with root_opened(root.directory, note) as base:
                for parts in places:
                    if parts:
                        self._place(root, base, (), parts)
                    else:
                        self._whole(root, base)
        except NoRoot:
            if not isinstance(root, SessionPaths) or root.expected:
                self._blind[prefix_of(root)] = BlindReason.ABSENT
        except FileUnreadable:
            self._skip(_shown(root, ()) or str(root.directory), SkipReason.UNREADABLE)
            self._blind[prefix_of(root)] = BlindReason.CLOSED

    def result(self, looked: frozenset[str] | None) -> Scan:
        """Return the result, with each file once."""
        found = {candidate.found.path: candidate.found for candidate in self._candidates}
        identities = {(candidate.device, candidate.found.stamp.inode) for candidate in self._candidates}
        # Nearly always each file has one name, and each name one file: then no order is needed.
        if not len(found) == len(identities) == len(self._candidates):
            found, doubles = each_once(self._candidates, self._order)
            for name, why in doubles:
                self._skip(name, why)
        return Scan(
            found={path: found[path] for path in sorted(found)},
            skipped=dict(sorted(self._skipped.items())),
            blind=self._blind,
            mounts=frozenset(self._mounts),
            looked=looked,
            linked=frozenset(self._linked),
        )

    def _whole(self, root: Root, base: int) -> None:
        match root:
            case Workspace():
                self._directory(root, base, (), ".", deep=False)
                self._place(root, base, (), (MEMORY_DIRECTORY,))
            case ExtraDirectory():
                self._directory(root, base, (), ".", deep=True)
            case SingleFile():
                self._place(root, base, (), (root.file,))
            case SessionPaths(file=None):
                self._directory(root, base, (), ".", deep=True)
            case SessionPaths():
                self._place(root, base, (), (only_file(root) or "",))
            case _:
                assert_never(root)

    def _place(self, root: Root, above: int, done: Parts, rest: Parts) -> None:
        """Scan one file or directory, and check the directories above it."""
        parts = (*done, *rest[:1])
        try:
            name = on_disk(above, rest[0])
            self.met_double |= _has_twin(above, name, rest[0])
            parts = (*done, name)
            if not _is_configured(root, parts) and not is_spelled_so(above, name):
                raise FileNotFoundError(errno.ENOENT, os.strerror(errno.ENOENT))
            if len(rest) == 1:
                self._single(root, above, parts)
            elif descends_into(root, parts):
                inner = open_directory(above, name)
                try:
                    self._note_mount(root, inner, parts)
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
            self._skip(name_of(root, parts), SkipReason.NOT_MARKDOWN)
        elif _is_of_database(root, parts):
            self._database(root, parts)
        elif isinstance(root, SessionPaths) and root.file is not None and transcript_at(root, parts) is None:
            self._skip(_shown(root, parts), SkipReason.NOT_TRANSCRIPT)
        elif self._may_hold(root, parts):
            self._file(root, _location(root, parts), parts, status)

    def _directory(self, root: Root, above: int, parts: Parts, name: str, *, deep: bool) -> None:
        try:
            here = open_directory(above, name)
            try:
                self._note_mount(root, here, parts)
                self._list(root, here, parts, deep=deep)
            finally:
                os.close(here)
        except OSError as failure:
            self._failed(failure, root, parts)

    def _list(self, root: Root, here: int, above: Parts, *, deep: bool, looks: int = _LOOKS) -> None:
        vanished: list[Parts] = []
        with os.scandir(here) as listing:
            entries = list(listing)
        directory = os.path.join(_location(root, above), "")  # noqa: PTH118 -- ends with one slash
        if admits_notes(root, above):
            entries = self._plain_notes(root, directory, above, entries)
        for entry in entries:
            parts = (*above, entry.name)
            try:
                if not entry.is_dir(follow_symlinks=False):
                    self._entry(root, directory + entry.name, parts, entry)
                elif deep and self._may_descend(root, parts):
                    self._directory(root, here, parts, entry.name, deep=True)
            except OSError as failure:
                if isinstance(failure, FileNotFoundError):
                    vanished.append(parts)
                self._failed(failure, root, parts)
        # Such a file may have been compressed or archived, under a name that was not in the listing yet.
        if vanished and isinstance(root, SessionPaths) and looks > 1:
            self._list(root, here, above, deep=False, looks=looks - 1)
        elif isinstance(root, SessionPaths):
            self._blind |= {
                name_of(root, parts): BlindReason.MOVING for parts in vanished if admits(root, parts)
            }

    def _plain_notes(
        self, root: Root, directory: str, above: Parts, entries: Iterable[os.DirEntry[str]]
    ) -> list[os.DirEntry[str]]:
        """Add the notes of a directory about which nothing is special; return all other entries.

        What depends on the directory alone is decided once: that takes half of the time of a scan.
        """
        prefix = os.path.join(name_of(root, above), "")  # noqa: PTH118 -- ends with one slash
        is_excluded = excluded_in(root, above)
        others: list[os.DirEntry[str]] = []
        for entry in entries:
            name = entry.name
            if not is_plain_note(name) or not entry.is_file(follow_symlinks=False):
                others.append(entry)
                continue
            if is_excluded is not None and is_excluded(name):
                continue
            try:
                status = entry.stat(follow_symlinks=False)
            except OSError:
                others.append(entry)
                continue
            if not stat.S_ISREG(status.st_mode) or status.st_size > self._max_bytes or status.st_nlink > 1:
                others.append(entry)
                continue
            kind = Kind.CURATED if describes_owner(name) else Kind.NOTE
            found = FoundFile(prefix + name, directory + name, kind, Stamp.of(status))
            self._candidates.append(
                FileCandidate(root, (*above, name), found, status.st_dev, has_other_names=False)
            )
        return others

    def _file(self, root: Root, location: str, parts: Parts, status: os.stat_result) -> None:
        if not stat.S_ISREG(status.st_mode):
            self._skip(_shown(root, parts), SkipReason.NOT_REGULAR)
            return
        path = name_of(root, parts)
        kind = _kind(root, path)
        # Transcripts are read piece by piece, whatever their length.
        if status.st_size > self._max_bytes and kind is not Kind.SESSION:
            self._skip(path, SkipReason.TOO_LARGE)
            return
        if status.st_nlink > 1:
            self.met_double = True
            self._linked.add((Path(location), status.st_ino))
        found = FoundFile(path, location, kind, Stamp.of(status))
        self._candidates.append(FileCandidate(root, parts, found, status.st_dev, status.st_nlink > 1))

    def _entry(self, root: Root, location: str, parts: Parts, entry: os.DirEntry[str]) -> None:
        """Add an entry that is not a directory."""
        if entry.is_symlink():
            self._symlink(root, parts)
        elif _is_of_database(root, parts):
            self._database(root, parts)
        elif self._may_hold(root, parts):
            self._file(root, location, parts, entry.stat(follow_symlinks=False))

    def _database(self, root: Root, parts: Parts) -> None:
        """Add the sessions in a database; while it cannot be read, indexed ones stay."""
        if (
            not isinstance(root, SessionPaths)
            or not is_database(root.layout, parts)
            or not admits(root, parts)
        ):
            return  # a write to its log is a reason to read the database
        # The parsers are imported where a transcript is read first: most starts read none.
        from memd.sources.transcripts.database_reader import list_sessions  # noqa: PLC0415

        location = _location(root, parts)
        try:
            listing = list_sessions(root, parts)
        except FileMissing:
            return
        except SourceError as trouble:
            self._skip(_shown(root, parts), skip_of(trouble))
            self._blind[prefix_of(root)] = BlindReason.CLOSED
            return
        for session in listing.sessions:
            path = session_name(root, parts, session.id)
            if path is None:
                self._skip(f"{_shown(root, parts)}/{session.id}", SkipReason.CONTROL)
                continue
            if session.is_subagent and not root.subagents:
                continue
            kind = Kind.SHARED_SESSION if session.is_shared else Kind.SESSION
            found = FoundFile(path, location, kind, session.stamp, session.id)
            self._candidates.append(
                FileCandidate(
                    root, parts, found, _NO_DEVICE, has_other_names=False, is_archived=session.archived
                )
            )

    def _symlink(self, root: Root, parts: Parts) -> None:
        """Count a symlink whose name is that of a note, or without a suffix may be that of a directory of notes."""
        if admits_file(root, parts) or ("." not in parts[-1] and descends_into(root, parts)):
            self._skip(_shown(root, parts), SkipReason.SYMLINK)

    def _may_hold(self, root: Root, parts: Parts) -> bool:
        """Return whether the name is that of a note; a name with invalid characters only is counted."""
        if admits_file(root, parts):
            return True
        if not isinstance(root, SessionPaths) and not is_markdown(parts[-1]):
            return False
        flaw = _flaw(parts[-1])
        if flaw is not None and admits_file(root, _mended(parts)):
            self._skip(_shown(root, parts), flaw)
        return False

    def _may_descend(self, root: Root, parts: Parts) -> bool:
        if descends_into(root, parts):
            return True
        if is_too_deep(root, parts):
            self._skip(_shown(root, parts), SkipReason.TOO_DEEP)
        flaw = _flaw(parts[-1])
        if flaw is not None and descends_into(root, _mended(parts)):
            self._skip(_shown(root, parts), flaw)
        return False

    def _note_mount(self, root: Root, here: int, parts: Parts) -> None:
        if parts and is_mount_point(here):
            place = _location(root, parts)
            self._mounts.add(MountPoint(place, _prefix(root, parts)))

    def _failed(self, failure: OSError, root: Root, parts: Parts) -> None:
        """Distinguish a vanished place from one that could not be listed."""
        error = refusal(failure, _location(root, parts))
        if isinstance(error, ProcessExhausted):
            raise error from failure
        if isinstance(error, FileUnreadable):
            self._skip(_shown(root, parts) or str(root.directory), SkipReason.UNREADABLE)
            self._blind[_prefix(root, parts)] = BlindReason.CLOSED

    def _skip(self, name: str, why: SkipReason) -> None:
        self._skipped[os.fsencode(name).decode(errors="backslashreplace")] = why


def _kind(root: Root, path: str) -> Kind:
    if isinstance(root, SessionPaths):
        return Kind.SESSION
    return Kind.CURATED if is_for_owner(root, path) else Kind.NOTE


def _has_other(other: SessionPaths, root: SessionPaths, parts: Parts, session: str) -> bool:
    """Return whether another file of the same name and session is below a first directory of a root."""
    if not first_is_free(other.layout, parts):
        return False
    own = None if other.directory != root.directory else parts[0]
    try:
        with os.scandir(other.directory) as listing:
            return any(
                os.path.lexists(f"{entry.path}/{'/'.join(parts[1:])}")
                and (there := transcript(other.layout, (entry.name, *parts[1:]))) is not None
                and there.id == session
                for entry in listing
                if entry.name != own and entry.is_dir(follow_symlinks=False)
            )
    except OSError:
        return False  # a full scan finds no more there


def _is_of_database(root: Root, parts: Parts) -> bool:
    return isinstance(root, SessionPaths) and (
        is_database(root.layout, parts) or is_database_log(root.layout, parts)
    )


def _location(root: Root, parts: Parts) -> str:
    """Return the absolute path on disk of the place at these parts below a root."""
    return str(root.directory.joinpath(*parts))


def _prefix(root: Root, parts: Parts) -> str:
    """Return the prefix of the paths below a place. Names of transcripts do not contain their directories."""
    return name_of(root, parts) if parts and not isinstance(root, SessionPaths) else prefix_of(root)


def _shown(root: Root, parts: Parts) -> str:
    """Return the name under which a skipped place is reported: below its root's prefix, so that scans of it cover it."""
    if isinstance(root, SessionPaths):
        return f"{prefix_of(root)}{_location(root, parts)}"
    return name_of(root, parts) if parts else prefix_of(root)


def _flaw(name: str) -> SkipReason | None:
    if not is_utf8(name):
        return SkipReason.NOT_UTF8
    return SkipReason.CONTROL if has_control(name) else None


def _mended(parts: Parts) -> Parts:
    return (*parts[:-1], _UNSOUND.sub("_", parts[-1]))


def _is_configured(root: Root, parts: Parts) -> bool:
    """Return whether a name comes from a root's own settings; it then applies in any case of its letters."""
    match root:
        case Workspace():
            return parts == (MEMORY_DIRECTORY,)
        case ExtraDirectory():
            return len(parts) <= len(root.way)
        case SingleFile():
            return True
        case SessionPaths():
            return only_file(root) is not None


def _has_twin(directory: int, name: str, asked: str) -> bool:
    """Return whether the directory has another file whose name differs only in its Unicode form."""
    if name.isascii():
        return False
    spellings = {name, asked, unicodedata.normalize("NFD", name)}
    return len(spellings) > 1 and len({_inode(directory, spelling) for spelling in spellings} - {None}) > 1


def _inode(directory: int, name: str) -> int | None:
    try:
        return os.stat(name, dir_fd=directory, follow_symlinks=False).st_ino
    except FileNotFoundError:
        return None
