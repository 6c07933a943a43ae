"""A disk with a volatile cache, as a model: what it holds for certain, what it was told since, and what a power cut leaves.

What is assumed of a real one is what SQLite assumes (sqlite.org/atomiccommit.html, psow.html): a sync of a file makes
its content last, a sync of a directory the names in it, and nothing else is promised. Before it, each write may be
there or not, in any subset and not only the first ones; torn at its sectors, or at any byte; a file may be longer than
what is known of it, with anything in between. Bytes that nobody wrote to stay as they were (powersafe overwrite). A
rename, or an exchange of two names, is whole or not at all. A file without a lasting name is gone, whatever of it was synced.
"""

from collections.abc import Iterable, Mapping
from pathlib import PurePosixPath
from random import Random
from typing import Literal

import msgspec

Order = Literal["any", "first"]

_KEPT = (0.0, 0.0, 0.1, 0.5, 0.9, 1.0, 1.0)  # of the writes to a file; nothing and all are the commonest


class Wrote(msgspec.Struct, frozen=True):
    """Bytes went into a file."""

    offset: int
    data: bytes


class Ended(msgspec.Struct, frozen=True):
    """A file was told to end there."""

    size: int


class Named(msgspec.Struct, frozen=True):
    """Names of one directory came, went, or became others, in one step."""

    directory: str
    gone: tuple[tuple[str, "Node"], ...] = ()
    came: tuple[tuple[str, "Node"], ...] = ()


class Directory(msgspec.Struct, eq=False):
    """A directory; what is in it goes by whole paths."""


class File(msgspec.Struct, eq=False):
    """The content of a file, whatever it is called."""

    lasting: bytes = b""
    since: list[Wrote | Ended] = []

    def sync(self) -> None:
        """Make it last."""
        data = bytearray(self.lasting)
        for change in self.since:
            _apply(data, change)
        self.lasting, self.since = bytes(data), []


Node = File | Directory


class Style(msgspec.Struct, frozen=True):
    """How the disk treats what it was not asked to sync."""

    sector: int  # bytes; a write is torn at multiples of it. 1: at one place, anywhere
    names: Order  # whether names come and go in any subset, or the first ones, as with a journal of the file system
    is_filthy: bool  # what nobody wrote, and is within the file, is anything; else zeros


class Left(msgspec.Struct, frozen=True):
    """What a disk holds after its power went."""

    files: dict[str, bytes]  # by path
    directories: list[str]
    harm: dict[str, int]  # how many changes to each were not there yet, those that were lost or torn alone


class Disk:
    """What is under one directory, with all that is not certain of it."""

    def __init__(self) -> None:
        self._names: dict[str, Node] = {}  # as everybody sees them
        self._lasting: dict[str, Node] = {}
        self._since: list[Named] = []

    def holds(self, path: str) -> Node | None:
        """What a path leads to now."""
        return self._names.get(path)

    @property
    def paths(self) -> list[str]:
        """All that there is now."""
        return list(self._names)

    def settle(self) -> None:
        """Let all that there is be certain, as long after everything was written."""
        for node in self._names.values():
            if isinstance(node, File):
                node.sync()
        self._lasting, self._since = dict(self._names), []

    def make(self, path: str, node: Node) -> None:
        """A file or directory is there."""
        self._names[path] = node
        self._since.append(Named(_parent(path), came=((path, node),)))

    def remove(self, path: str) -> None:
        """A name is gone."""
        if (node := self._names.pop(path, None)) is not None:
            self._since.append(Named(_parent(path), gone=((path, node),)))

    def rename(self, path: str, to: str) -> None:
        """A name became another, of which there may have been one.

        Raises:
            ValueError: of a directory, or into another one: nobody does that here.
        """
        node = self._names.pop(path)
        if isinstance(node, Directory) or _parent(path) != _parent(to):
            raise ValueError(f"{path} became {to}, and the model knows no such renaming")
        self._names[to] = node
        self._since.append(Named(_parent(path), gone=((path, node),), came=((to, node),)))

    def exchange(self, path: str, other: str) -> None:
        """Two files of one directory took each other's names.

        Raises:
            ValueError: of directories, or of two directories: nobody does that here.
        """
        one, two = self._names[path], self._names[other]
        if not (isinstance(one, File) and isinstance(two, File)) or _parent(path) != _parent(other):
            raise ValueError(f"{path} and {other} were exchanged, and the model knows no such renaming")
        self._names |= {path: two, other: one}
        self._since.append(Named(_parent(path), came=((path, two), (other, one))))

    def link(self, path: str, to: str) -> None:
        """A file has one more name."""
        self.make(to, self._names[path])

    def sync_directory(self, directory: str) -> None:
        """Make the names in it last."""
        _name_all(self._lasting, (one for one in self._since if one.directory == directory))
        self._since = [one for one in self._since if one.directory != directory]

    def as_now(self) -> "Disk":
        """Another one that is as this is now, whatever happens to this."""
        copies: dict[Node, Node] = {}

        def copy(node: Node) -> Node:
            if node not in copies:
                copies[node] = File(node.lasting, [*node.since]) if isinstance(node, File) else node
            return copies[node]

        def copy_all(names: Mapping[str, Node]) -> dict[str, Node]:
            return {path: copy(node) for path, node in names.items()}

        other = Disk()
        other._names, other._lasting = copy_all(self._names), copy_all(self._lasting)
        other._since = [
            Named(
                one.directory,
                tuple((path, copy(node)) for path, node in one.gone),
                tuple((path, copy(node)) for path, node in one.came),
            )
            for one in self._since
        ]
        return other

    def lose_power(self, rng: Random, style: Style) -> Left:
        """What is found after the power went; the disk itself goes on."""
        names = dict(self._lasting)
        kept = _kept_names(self._since, rng, style)
        _name_all(names, kept)
        harm: dict[str, int] = {}
        if lost := len(self._since) - len(kept):
            harm["names"] = lost
        files: dict[str, bytes] = {}
        directories: list[str] = []
        for path, node in sorted(names.items()):
            if any(
                not isinstance(names.get(above), Directory) for above in _within(path, names, self._names)
            ):
                continue
            if isinstance(node, Directory):
                directories.append(path)
                continue
            files[path], lost = _left(node, rng, style)
            if lost:
                harm[path] = lost
        return Left(files, directories, harm)


def _parent(path: str) -> str:
    return str(PurePosixPath(path).parent)


def _within(path: str, *known: Mapping[str, Node]) -> list[str]:
    """The directories above a path that the disk has ever had; those above the disk itself are none of its matter."""
    above = [str(one) for one in PurePosixPath(path).parents]
    return [one for one in above if any(one in names for names in known)]


def _name_all(names: dict[str, Node], changes: Iterable[Named]) -> None:
    for change in changes:
        for path, node in change.gone:
            if names.get(path) is node:
                del names[path]
        names.update(change.came)


def _kept_names(since: list[Named], rng: Random, style: Style) -> list[Named]:
    if style.names == "first":
        return since[: rng.randrange(len(since) + 1)]
    share = rng.choice(_KEPT)
    return [one for one in since if rng.random() < share]


def _apply(data: bytearray, change: Wrote | Ended) -> None:
    size = change.size if isinstance(change, Ended) else change.offset
    if isinstance(change, Ended):
        del data[size:]
    if size > len(data):
        data.extend(bytes(size - len(data)))
    if isinstance(change, Wrote):
        data[size : size + len(change.data)] = change.data


def _left(file: File, rng: Random, style: Style) -> tuple[bytes, int]:
    """What is left of a file, and how many changes are not there, or not whole."""
    data = bytearray(file.lasting)
    share = rng.choice(_KEPT)
    lost = 0
    for change in file.since:
        if rng.random() < share:
            _reach(data, change.offset if isinstance(change, Wrote) else change.size, rng, style)
            _apply(data, change)
            continue
        lost += 1
        if isinstance(change, Ended):
            continue
        how = rng.random()
        if how < 0.4:
            for piece in _torn(change, rng, style):
                _reach(data, piece.offset, rng, style)
                _apply(data, piece)
        elif how < 0.5:  # of what was written only the new size arrived
            _reach(data, change.offset + len(change.data), rng, style)
    return bytes(data), lost


def _reach(data: bytearray, size: int, rng: Random, style: Style) -> None:
    """Let a file be at least so long."""
    missing = size - len(data)
    if missing > 0:
        data.extend(rng.randbytes(missing) if style.is_filthy else bytes(missing))


def _torn(change: Wrote, rng: Random, style: Style) -> list[Wrote]:
    """The pieces of a write that arrived."""
    end = change.offset + len(change.data)
    if style.sector == 1:
        at = rng.randrange(change.offset, end + 1)
        pieces = [(change.offset, at)] if rng.random() < 0.5 else [(at, end)]
    else:
        first = change.offset - change.offset % style.sector
        starts = range(first, end, style.sector)
        pieces = [
            (max(start, change.offset), min(start + style.sector, end))
            for start in starts
            if rng.random() < 0.5
        ]
    return [Wrote(start, change.data[start - change.offset : stop - change.offset]) for start, stop in pieces]
