"""What the disk says: which notes there are, found by plain rules and without any code of memd but for decoding bytes."""

import os
import re
import stat
import unicodedata
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path

import msgspec

from memd.sources.notes import lines_of
from memd_client.note_encoding import decode_note
from tests.faults.differential.places import NOISE, ROOTS, SINGLE, Places

TOKEN = re.compile(r"wombat\d{5}x")
_PRUNED = ("node_modules", "venv", "__pycache__", "site-packages")

Lines = tuple[str, ...]


class Truth(msgspec.Struct, frozen=True):
    """What must be found, and where."""

    where: Mapping[str, frozenset[str]]  # token -> the names in the index under which it may be found
    # The names that several files claim, by two Unicode forms: README says that one of them is indexed, and not which. And
    # those of files that were written to in a way of which Linux tells nobody.
    doubtful: frozenset[str]
    notes: Mapping[str, Lines]  # by each of the names it may have; of the doubtful none
    # Roots that are not there: what was known of them may be kept, and the reply is stale.
    missing: frozenset[str]

    def is_kept(self, name: str, places: Places) -> bool:
        """Whether a note of this name may still be in the index though it is not on the disk."""
        return any(
            name.startswith(places.name(root))
            if root != "workspace"
            else not name.startswith(("/", "sessions/"))
            for root in self.missing
        )


def token(number: int) -> str:
    """A word like no other."""
    return f"wombat{number:05}x"


def look(
    places: Places, said: Mapping[str, frozenset[str]], untold: Collection[tuple[int, int]] = ()
) -> Truth:
    """See what is on the disk.

    Args:
        places: Where.
        said: Token -> names, of what is in transcripts.
        untold: Device and inode of files of which less is known.
    """
    names: dict[tuple[int, int], set[str]] = defaultdict(set)
    lines: dict[tuple[int, int], Lines] = {}
    spelled: dict[str, set[str]] = defaultdict(set)
    for name, file in _candidates(places):
        try:
            status = file.lstat()
            if not stat.S_ISREG(status.st_mode):
                continue
            identity = (status.st_dev, status.st_ino)
            if identity not in lines:
                lines[identity] = lines_of(decode_note(file.read_bytes()).text.replace("\0", ""))
        except FileNotFoundError:
            continue  # the process beside has taken it away
        names[identity].add(unicodedata.normalize("NFC", name))
        spelled[unicodedata.normalize("NFC", name)].add(name)
    for name in _directories(places):
        spelled[unicodedata.normalize("NFC", name)].add(name)
    doubtful = frozenset(
        name
        for identity, each in names.items()
        for name in each
        if identity in untold or any(len(spelled[above]) > 1 for above in _with_directories(name))
    )
    where: dict[str, set[str]] = defaultdict(set)
    for identity, each in names.items():
        for word in TOKEN.findall("\n".join(lines[identity])):
            where[word] |= each
    for word, sessions in said.items():
        where[word].update(sessions)
    return Truth(
        {word: frozenset(each) for word, each in where.items()},
        doubtful,
        {name: lines[identity] for identity, each in names.items() for name in each - doubtful},
        frozenset(root for root in ROOTS if not places.root(root).is_dir()),
    )


def _with_directories(name: str) -> Iterator[str]:
    while name.strip("/"):
        yield name
        name = name.rpartition("/")[0]


def _directories(places: Places) -> Iterator[str]:
    """The directories below the roots, by the names that notes in them begin with, but for their Unicode form."""
    for root in ROOTS:
        for above, directories, _ in os.walk(places.root(root)):
            for each in directories:
                file = Path(above, each)
                yield file.relative_to(places.root(root)).as_posix() if root == "workspace" else str(file)


def _candidates(places: Places) -> Iterator[tuple[str, Path]]:
    """What is called like a note, with its name in the index but for its Unicode form."""
    workspace, extra = places.root("workspace"), places.root("extra")
    if workspace.is_dir():
        for entry in sorted(os.listdir(workspace)):  # noqa: PTH208 - names are wanted
            if entry.lower() in {"memory.md", "user.md"}:
                yield entry, workspace / entry
    if not (workspace / "memory").is_symlink():
        for file in _markdown(workspace / "memory"):
            yield file.relative_to(workspace).as_posix(), file
    for file in _markdown(extra):
        yield str(file), file
    yield str(places.sources / SINGLE), places.sources / SINGLE


def _markdown(directory: Path) -> Iterator[Path]:
    for above, directories, files in os.walk(directory):
        directories[:] = sorted(
            each for each in directories if not each.startswith(".") and each not in _PRUNED
        )
        for file in sorted(files):
            # A name with a control character could not be cited: it is counted, and not indexed.
            if file.lower().endswith(".md") and not file.startswith((".", NOISE)) and file.isprintable():
                yield Path(above, file)
