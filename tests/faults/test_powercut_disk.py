"""The power cuts are worth what these say: what was synced stays, what was not may be lost in every way, and SQLite knows."""

import os
from collections.abc import Callable, Sequence
from pathlib import Path
from random import Random

import apsw
import pytest

from memd.ctl import atomic_write
from tests.faults.powercut_disk import Directory, Disk, Ended, File, Left, Style, Wrote
from tests.faults.powercut_machine import Cut, Machine, restore

SURE = Style(512, "any", is_filthy=False)
STYLES = [
    Style(sector, names, is_filthy)
    for sector in (1, 512, 4096)
    for names in ("any", "first")
    for is_filthy in (False, True)
]
SEEDS = 300


def drawn(disk: Disk, style: Style = SURE) -> list[Left]:
    """What a disk may hold."""
    return [disk.lose_power(Random(seed), style) for seed in range(SEEDS)]


def disk_with(data: bytes) -> tuple[Disk, File]:
    """A directory with a file, both certain."""
    disk, file = Disk(), File(data)
    disk.make("/d", Directory())
    disk.make("/d/f", file)
    disk.settle()
    return disk, file


# --- content


@pytest.mark.parametrize("style", STYLES)
def test_what_was_synced_is_there_to_the_byte(style: Style) -> None:
    """Whatever comes, a sync leaves nothing to chance."""
    disk, file = disk_with(bytes(1000))
    file.since += [Wrote(500, b"a" * 1000), Ended(1200), Wrote(0, b"b")]
    file.sync()
    expected = b"b" + bytes(499) + b"a" * 700
    assert {left.files["/d/f"] for left in drawn(disk, style)} == {expected}


def test_writes_are_lost_in_any_subset() -> None:
    """Of three writes each can be there without the others."""
    disk, file = disk_with(bytes(3 * 512))
    file.since = [Wrote(512 * number, b"x" * 512) for number in range(3)]
    seen = {tuple(left.files["/d/f"][512 * number] for number in range(3)) for left in drawn(disk)}
    assert len(seen) == 8


@pytest.mark.parametrize(("sector", "most"), [(512, 8), (4096, 1)])
def test_a_write_is_torn_at_sectors(sector: int, most: int) -> None:
    """A sector is old or new as a whole, and of several any may be new; bytes beside the write are never touched."""
    disk, file = disk_with(b"o" * 3 * 4096)
    file.since = [Wrote(4096, b"n" * 4096)]
    kinds = set()
    for left in drawn(disk, Style(sector, "any", is_filthy=True)):
        data = left.files["/d/f"]
        assert data[:4096] == data[-4096:] == b"o" * 4096
        pieces = [data[at : at + sector] for at in range(4096, 8192, sector)]
        assert all(len(set(piece)) == 1 for piece in pieces)
        kinds.add(sum(piece[:1] == b"n" for piece in pieces))
    assert kinds <= set(range(most + 1))
    assert len(kinds) > most // 2


def test_a_write_is_torn_at_any_byte() -> None:
    """Its beginning arrived, or its end."""
    disk, file = disk_with(b"o" * 1000)
    file.since = [Wrote(0, b"n" * 1000)]
    cut = {left.files["/d/f"].count(b"n") for left in drawn(disk, Style(1, "any", is_filthy=False))}
    assert len(cut) > 20


@pytest.mark.parametrize("is_filthy", [False, True])
def test_a_file_may_have_grown_without_what_was_written(is_filthy: bool) -> None:
    """What is within it then is zeros, or anything."""
    disk, file = disk_with(b"")
    file.since = [Wrote(0, b"n" * 600), Wrote(600, b"m" * 600)]
    found = {left.files["/d/f"] for left in drawn(disk, Style(4096, "any", is_filthy))}
    assert {len(data) for data in found} == {0, 600, 1200}
    without = [data[:600] for data in found if data and data[:1] not in b"nm"]
    assert without
    assert (bytes(600) in without) is not is_filthy


def test_an_end_may_be_lost_or_be_all_there_is() -> None:
    """A file that was emptied and written anew is empty, old, new, or what the sum of them makes."""
    disk, file = disk_with(b"o" * 8)
    file.since = [Ended(0), Wrote(0, b"new")]
    assert {b"o" * 8, b"", b"new", b"newooooo"} <= {left.files["/d/f"] for left in drawn(disk)}


# --- names


def test_a_file_whose_name_is_not_certain_may_be_gone() -> None:
    """However certain its content is; a sync of its directory makes it stay."""
    disk, _ = disk_with(b"")
    new = File(b"new")
    disk.make("/d/new", new)
    assert {left.files.get("/d/new") for left in drawn(disk)} == {b"new", None}
    disk.sync_directory("/d")
    assert {left.files.get("/d/new") for left in drawn(disk)} == {b"new"}


def test_a_rename_is_whole_or_not_at_all() -> None:
    """The file is under one of both names, and what it replaced is gone only with it."""
    disk, _ = disk_with(b"new")
    disk.make("/d/g", File(b"old"))
    disk.settle()
    disk.rename("/d/f", "/d/g")
    found = {(left.files.get("/d/f"), left.files.get("/d/g")) for left in drawn(disk)}
    assert found == {(b"new", b"old"), (None, b"new")}


def test_a_removed_file_may_be_back_beside_a_new_one() -> None:
    """Names come and go in any subset, or, with a journal, in their order."""
    disk, _ = disk_with(b"old")
    disk.remove("/d/f")
    disk.make("/d/g", File(b"new"))
    disk.make("/d/f", File(b"another"))
    everything = {b"old", b"new", b"another"}
    at_will = {tuple(sorted(everything & set(left.files.values()))) for left in drawn(disk)}
    in_order = {
        tuple(sorted(everything & set(left.files.values())))
        for left in drawn(disk, Style(512, "first", is_filthy=False))
    }
    # The other file has lasting content and no certain name; what is lost is told.
    assert (b"new", b"old") in at_will
    assert (b"new", b"old") not in in_order
    assert {(b"old",), (), (b"new",), (b"another", b"new")} == in_order


def test_all_is_gone_with_a_directory() -> None:
    """Files in a directory that is not certain are lost with it, certain or not."""
    disk = Disk()
    disk.make("/d", Directory())
    disk.make("/d/f", File(b"x"))
    disk.sync_directory("/d")
    assert {tuple(left.files) for left in drawn(disk)} == {(), ("/d/f",)}


# --- a machine


def run(directory: Path, seed: int, work: Callable[[], None], *, ignores_syncs: bool = False) -> list[Cut]:
    """The power cuts of some work in a directory."""
    directory.mkdir()
    machine = Machine(directory, seed, ignores_syncs=ignores_syncs)
    with machine.watching():
        work()
    machine.lose_power("at the end")
    return machine.cuts()


def rows_left(cut: Cut, file: Path) -> list[int] | None:
    """The rows of a database that a power cut left; None: it is damaged."""
    for old in file.parent.iterdir():
        old.unlink()
    file.parent.rmdir()
    restore(cut.left, file.parent)
    file.parent.mkdir(exist_ok=True)
    connection = apsw.Connection(str(file))
    try:
        if connection.pragma("integrity_check") != "ok":
            return None
        if not connection.execute("SELECT 1 FROM sqlite_schema WHERE name = 'held'").get:
            return []
        return [number for (number,) in connection.execute("SELECT number FROM held ORDER BY number")]
    except apsw.Error:
        return None
    finally:
        connection.close()


def transactions(file: Path, synchronous: str) -> Callable[[], None]:
    """Work that writes rows, a few a transaction, and folds its log in now and then."""

    def work() -> None:
        connection = apsw.Connection(str(file))
        connection.pragma("journal_mode", "wal")
        connection.pragma("synchronous", synchronous)
        connection.execute("CREATE TABLE held (number INTEGER PRIMARY KEY, text)")
        for number in range(0, 60, 3):
            with connection:
                rows = [(number + more, f"{number + more}" * 700) for more in range(3)]
                connection.executemany("INSERT INTO held VALUES (?, ?)", rows)
            with connection:
                connection.execute("UPDATE held SET text = text || ? WHERE number % 7 = 0", (number,))
            if number % 12 == 0:
                connection.execute(f"PRAGMA wal_checkpoint({'TRUNCATE' if number % 24 else 'PASSIVE'})")
        connection.close()

    return work


def outcomes(
    tmp_path: Path, synchronous: str, *, ignores_syncs: bool = False
) -> list[tuple[str, list[int] | None]]:
    """What is left of the rows after many power cuts, with the kind of each."""
    found: list[tuple[str, list[int] | None]] = []
    for seed in range(8):
        directory = tmp_path / str(seed)
        file = directory / "held.sqlite"
        work = transactions(file, synchronous)
        cuts = run(directory, seed, work, ignores_syncs=ignores_syncs)
        found += [(cut.kind, rows_left(cut, file)) for cut in cuts]
    return found


@pytest.mark.parametrize("synchronous", ["normal", "full"])
def test_sqlite_keeps_its_word_on_this_disk(tmp_path: Path, synchronous: str) -> None:
    """No cut damages a database that syncs: the first transactions are there, whole, and of them as many as may be."""
    found = outcomes(tmp_path, synchronous)
    assert len(found) > 100
    for kind, rows in found:
        assert kind != "at the end" or len(rows or ()) == 60
        assert rows is not None
        assert rows == list(range(len(rows)))
        assert len(rows) % 3 == 0
    assert len({len(rows) for _, rows in found if rows is not None}) > 5


@pytest.mark.parametrize(("synchronous", "ignores_syncs"), [("off", False), ("normal", True)])
def test_this_disk_damages_what_does_not_sync(tmp_path: Path, synchronous: str, ignores_syncs: bool) -> None:
    """Without syncs, or with a disk that only says that it did, databases are damaged and rows are missing in between."""
    found = outcomes(tmp_path, synchronous, ignores_syncs=ignores_syncs)
    assert sum(rows is None or rows != list(range(len(rows))) for _, rows in found) > 10


# --- names and content by Python


def saves(directory: Path, how: Sequence[str]) -> Callable[[], None]:
    """Puts a new text in place of a file, by some of the steps that it takes."""

    def work() -> None:
        for number in range(5):
            new = directory / "new"
            with new.open("wb") as stream:
                stream.write(text(number))
                stream.flush()
                if "file" in how:
                    os.fsync(stream.fileno())
            new.replace(directory / "held")
            if "directory" in how:
                descriptor = os.open(directory, os.O_RDONLY)
                os.fsync(descriptor)
                os.close(descriptor)

    return work


def text(number: int) -> bytes:
    """Several sectors."""
    return str(number).encode() * 5000


@pytest.mark.parametrize(
    ("how", "is_whole", "lasts"),
    [((), False, False), (("file",), True, False), (("file", "directory"), True, True)],
)
def test_what_python_saves_is_as_certain_as_it_makes_it(
    tmp_path: Path, how: Sequence[str], is_whole: bool, lasts: bool
) -> None:
    """A file that was not synced before it was renamed may be half; one whose directory was not may be the old one."""
    cuts = []
    for seed in range(40):
        directory = tmp_path / str(seed)
        held = str(directory / "held")
        cuts += [(cut.kind, cut.left.files.get(held)) for cut in run(directory, seed, saves(directory, how))]
    wholes = {text(number) for number in range(5)}
    assert ({data for _, data in cuts} <= wholes | {None}) is is_whole
    assert len({data for _, data in cuts} & wholes) > 3
    assert ({data for kind, data in cuts if kind == "at the end"} == {text(4)}) is lasts


def test_two_files_are_exchanged_whole_or_not_at_all(tmp_path: Path) -> None:
    """Neither name is ever missing, and neither content is ever there twice."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1" * 5000)
    other.write_bytes(b"2" * 5000)
    machine = Machine(tmp_path, 1)
    with machine.watching():
        assert atomic_write.exchange(one, other)
    left = {
        (cut.left.files[str(one)][:1], cut.left.files[str(other)][:1]) for cut in machine.cuts(draws=SEEDS)
    }
    assert left == {(b"1", b"2"), (b"2", b"1")}


def test_a_second_name_leads_to_the_same_content(tmp_path: Path) -> None:
    """What was synced by one name is there by the other, if that name is."""
    one, other = tmp_path / "one", tmp_path / "other"
    one.write_bytes(b"1" * 5000)
    machine = Machine(tmp_path, 1)
    with machine.watching():
        os.link(one, other)
    left = {cut.left.files.get(str(other)) for cut in machine.cuts(draws=SEEDS)}
    assert left == {None, b"1" * 5000}
