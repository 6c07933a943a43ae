"""Notes are saved in every way that editors save them, and found as they are."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.daemon.fresh import PATIENT, QUICK, becomes_fresh, holding
from tests.daemon.process import Daemon
from tests.wait import until

Save = Callable[[Path, bytes], None]


def in_place(file: Path, raw: bytes) -> None:
    """Write over what is there, then cut off the rest, as few do."""
    with file.open("r+b") as opened:
        opened.write(raw)
        opened.truncate()


def truncated(file: Path, raw: bytes) -> None:
    """Empty it, then write: nano, `echo >`, VS Code."""
    file.write_bytes(raw)


def slowly(file: Path, raw: bytes) -> None:
    """Empty it, and write in pieces that reach the disk one by one."""
    with file.open("wb", buffering=0) as opened:
        for start in range(0, len(raw), 7):
            opened.write(raw[start : start + 7])
            os.fsync(opened.fileno())


def renamed_over(file: Path, raw: bytes) -> None:
    """Write beside and rename: what libraries call an atomic write."""
    beside = file.with_name(f".{file.name}.tmp{os.getpid()}")
    beside.write_bytes(raw)
    beside.replace(file)


def renamed_from_elsewhere(file: Path, raw: bytes) -> None:
    """Write beside the memory directory, and rename into it."""
    beside = file.parents[1] / "upload.part"
    beside.write_bytes(raw)
    beside.replace(file)


def with_backup(file: Path, raw: bytes) -> None:
    """Try the directory with a file called 4913, move the old text to a backup, write anew, delete the backup: vim."""
    swap, probe = file.with_name(f".{file.name}.swp"), file.with_name("4913")
    swap.write_bytes(b"b0VIM 9.0")
    probe.touch()
    probe.unlink()
    backup = file.with_name(f"{file.name}~")
    file.rename(backup)
    file.write_bytes(raw)
    backup.unlink()
    swap.unlink()


def with_kept_backup(file: Path, raw: bytes) -> None:
    """Leave the text of before beside it: Emacs, and vim where it is told to."""
    backup = file.with_name(f"{file.name}~")
    file.rename(backup)
    file.write_bytes(raw)
    file.with_name(f".#{file.name}").symlink_to("somebody@host.1234:1700000000")
    file.with_name(f"#{file.name}#").write_bytes(raw)


def deleted_and_written(file: Path, raw: bytes) -> None:
    """Delete, then create: the new file may get the number of the old one."""
    file.unlink()
    file.write_bytes(raw)


def linked_over(file: Path, raw: bytes) -> None:
    """Give the new text a hard link by the name, and take its first name away."""
    beside = file.with_name("new.tmp")
    beside.write_bytes(raw)
    file.unlink()
    file.hardlink_to(beside)
    beside.unlink()


def with_the_old_time(file: Path, raw: bytes) -> None:
    """Write a text of the same length, and set the time back to what it was: `touch -r`, some syncing tools."""
    times = file.stat()
    beside = file.with_name("sync.tmp")
    beside.write_bytes(raw)
    os.utime(beside, ns=(times.st_atime_ns, times.st_mtime_ns))
    beside.replace(file)


SAVES: list[Save] = [
    in_place,
    truncated,
    slowly,
    renamed_over,
    renamed_from_elsewhere,
    with_backup,
    with_kept_backup,
    deleted_and_written,
    linked_over,
    with_the_old_time,
]


@pytest.mark.parametrize("searching", [True, False], ids=["asked at once", "told by the watcher"])
def test_every_way_of_saving(daemon: Daemon, searching: bool) -> None:
    """The new text is found and the old one is not, at once by who asks at once, and soon by the watcher alone."""
    words = {save.__name__.replace("_", ""): save for save in SAVES}
    notes = {
        word: daemon.write(f"memory/{word}.md", f"# Note\n\n{word}before stands here.\n") for word in words
    }
    # The usual debounce is long: only the search itself can be so quick.
    settings = PATIENT if searching else QUICK
    daemon.configure(settings)
    with daemon.start(), daemon.client() as client:
        client.sync()
        assert all(holding(client, f"{word}before") == {f"memory/{word}.md"} for word in words)
        for word, save in words.items():
            save(notes[word], f"# Note\n\n{word}behind stands here.\n".encode())
            if searching:
                assert holding(client, f"{word}behind") == {f"memory/{word}.md"}
                assert holding(client, f"{word}before") == set()
        fresh = becomes_fresh(daemon, client, settings)
    assert fresh.texts() == {f"memory/{word}.md": f"# Note\n\n{word}behind stands here." for word in words}
    assert fresh.skipped == {}


def test_a_time_that_is_set_back(daemon: Daemon) -> None:
    """A text of the same length that is written in place is found though the file claims to be as old as before."""
    note = daemon.write("memory/a.md", "# Note\n\nquokka stands here\n")
    os.utime(note, ns=(1_600_000_000 * 10**9 + 1, 1_600_000_000 * 10**9 + 1))
    daemon.configure(QUICK)
    with daemon.start(), daemon.client() as client:
        client.sync()
        before = note.stat()
        in_place(note, b"# Note\n\nwombat stands here\n")
        os.utime(note, ns=(before.st_atime_ns, before.st_mtime_ns))
        until(lambda: holding(client, "wombat") == {"memory/a.md"}, 20)
        assert becomes_fresh(daemon, client).skipped == {}


def test_what_editors_leave_beside_is_no_note(daemon: Daemon) -> None:
    """Backups, swap files, locks and probes are neither indexed nor counted."""
    left = [
        "a.md~",
        ".a.md.swp",
        ".a.md.swx",
        "4913",
        "#a.md#",
        "a.md.bak",
        "a.md.orig",
        "a.md.tmp",
        ".a.md",
        "a.md.part",
    ]
    daemon.configure(QUICK)
    with daemon.start(), daemon.client() as client:
        client.sync()
        daemon.write("memory/a.md", "the note itself")
        for name in left:
            daemon.write(f"memory/{name}", "the note itself")
        assert holding(client, "itself") == {"memory/a.md"}
        fresh = becomes_fresh(daemon, client)
    assert list(fresh.contents) == ["memory/a.md"]
    assert fresh.skipped == {}
