"""A store whose files or directory the user may not write, or not read: modes count only for users other than root."""

import asyncio
import encodings.utf_8_sig  # noqa: F401 - the other user may not read the interpreter's files
import importlib.readers  # noqa: F401 - likewise
from pathlib import Path

import msgspec
import pytest

from memd.domain_types import Kind
from memd.errors import MemdError
from memd.store.index import Index
from memd.store.meta import Fingerprint
from tests.otheruser import as_other_user, shared_directory
from tests.store.conftest import chunk_of, found_file, ranked

FINGERPRINT = Fingerprint("c", "t", ("memory",))
BEFORE, MEANWHILE, AFTER = "apples before", "pears meanwhile", "plums after"


class Told(msgspec.Struct):
    """What came of a store."""

    at_open: str = "opened"  # or the kind of error
    found: list[str] = []  # of the words that were indexed before, while nothing may be written
    write: str = "written"  # what a write came to then
    after: list[str] = []  # the notes that are found when all is as it was
    damaged: list[str] = []  # files that were set aside


async def _put(index: Index, path: str, text: str) -> None:
    await index.replace(found_file(path), text.encode(), [chunk_of(text)], {}, frozenset())


async def _found(index: Index) -> list[str]:
    kinds = frozenset({Kind.NOTE})
    found = []
    for word in (BEFORE, MEANWHILE, AFTER):
        found += [word for _ in await ranked(index, word.split()[0], 5, kinds)]
    return found


def _allow(directory: Path, modes: dict[str, int]) -> None:
    """Give modes by name; that of the directory first where it may be passed then, and last where not."""
    for name, mode in sorted(modes.items(), key=lambda one: (one[0] == ".") != bool(one[1] & 0o100)):
        if (directory / name).exists():
            (directory / name).chmod(mode)


def _set_aside(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.glob("*damaged*"))


async def _live(directory: Path, modes: dict[str, int], *, has_log: bool) -> Told:
    told = Told()
    file = directory / "main.sqlite"
    first = Index(file)
    await first.open()
    await first.adopt(FINGERPRINT)
    await _put(first, "memory/a.md", BEFORE)
    if has_log:  # as a daemon leaves it that is killed
        kept = {
            name: (directory / name).read_bytes()
            for name in ("main.sqlite", "main.sqlite-wal", "main.sqlite-shm")
        }
    await first.close()
    if has_log:
        for name, data in kept.items():
            (directory / name).write_bytes(data)
    _allow(directory, modes)
    index = Index(file)
    try:
        await index.open()
    except MemdError as error:
        told.at_open = type(error).__name__
    if told.at_open == "opened":
        await index.adopt(FINGERPRINT)
        told.found = await _found(index)
        try:
            await _put(index, "memory/b.md", MEANWHILE)
        except MemdError as error:
            told.write = type(error).__name__
    _allow(directory, {name: 0o700 if name == "." else 0o600 for name in modes})
    if told.at_open != "opened":
        await index.open()
        await index.adopt(FINGERPRINT)
    await _put(index, "memory/c.md", AFTER)
    told.after = await _found(index)
    await index.close()
    told.damaged = _set_aside(directory)
    return told


class Case(msgspec.Struct, frozen=True):
    """What may be done with a store for a while."""

    modes: dict[str, int]  # of its files, and of its directory: "."
    readable: bool
    has_log: bool = False  # of a daemon that was killed

    def __str__(self) -> str:
        said = ", ".join(f"{name} {mode:04o}" for name, mode in self.modes.items())
        return f"{said}, {'killed' if self.has_log else 'closed'}"


CASES = [
    Case(modes, readable, has_log)
    for modes, readable in (
        ({"main.sqlite": 0o400}, True),
        ({".": 0o500}, True),
        ({"main.sqlite": 0o400, ".": 0o500}, True),
        ({"main.sqlite": 0o000}, False),
        ({"main.sqlite": 0o200}, False),
        ({".": 0o000}, False),
    )
    for has_log in (False, True)
]


def lived(above: str) -> object:
    """What comes of a store in each case, for another user."""
    found = []
    for number, case in enumerate(CASES):
        directory = Path(above, str(number))
        directory.mkdir()
        found.append(asyncio.run(_live(directory, case.modes, has_log=case.has_log)))
    return msgspec.to_builtins(found)


@pytest.fixture(scope="module")
def outcomes() -> list[Told]:
    """What came of each case."""
    with shared_directory() as directory:
        return msgspec.convert(as_other_user(__name__, lived.__name__, str(directory)), list[Told])


@pytest.mark.parametrize("number", range(len(CASES)), ids=lambda number: str(CASES[number]))
def test_what_may_not_be_written_is_read_and_written_again_when_it_may(
    outcomes: list[Told], number: int
) -> None:
    """It is never called damaged; a write says that it cannot be done, and the first one that can be is done."""
    case, told = CASES[number], outcomes[number]
    if case.readable:
        assert (told.at_open, told.found) == ("opened", [BEFORE])
        # In a directory that may not be written, files that are there may be.
        assert told.write in (
            {"written", "StoreUnavailable"} if case.modes == {".": 0o500} else {"StoreUnavailable"}
        )
    else:
        assert told.at_open == "StoreUnavailable"
    meanwhile = [MEANWHILE] if case.readable and told.write == "written" else []
    assert told.after == [BEFORE, *meanwhile, AFTER]
    assert told.damaged == []
