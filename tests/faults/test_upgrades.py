"""A process that is killed while it brings a store up to date leaves it old or new, and the next one goes on."""

import asyncio
from functools import partial
from itertools import count
from pathlib import Path

import apsw
import pytest

from memd.store import migrations
from memd.store.index import Index
from tests.daemon.contents import contents, differences
from tests.faults.death import At, Death, arm
from tests.faults.process import Ended, Killed, Process
from tests.store.golden.read import DIRECTORY, unpack
from tests.store.older import names

OLD, NEW = 1, migrations.newest("index")
MAIN, KEPT = "main.sqlite", f"main.sqlite.before-schema-{NEW}"
UNFINISHED = migrations.partial_copy(Path(MAIN)).name


def upgrade(file: Path, death: Death, marker: Path) -> int:
    """Open an index, which brings it up to date."""
    fate = arm(death, marker)
    asyncio.run(opened(file))
    del fate
    return 0


async def opened(file: Path) -> None:
    index = Index(file)
    await index.open()
    assert index.begun_anew is None
    await index.close()


def left_by_a_kill(directory: Path) -> Path:
    """An index of an older schema whose last change is in its log alone."""
    unpack(DIRECTORY / f"schema-{OLD}-2", directory)
    file = directory / "agents" / MAIN
    log, whole = Path(f"{file}-wal"), file.read_bytes()
    connection = apsw.Connection(str(file))
    connection.pragma("wal_autocheckpoint", 0)
    connection.execute("UPDATE files SET mtime_ns = 7")
    left = log.read_bytes()
    connection.close()
    file.write_bytes(whole)
    log.write_bytes(left)
    return file


def looked_at(file: Path) -> tuple[int, int]:
    """The schema of a database, and how many files of it have what was in the log; the file is not changed by that."""
    beside = file.with_name("looked-at")
    for suffix in ("", "-wal"):
        part = Path(f"{file}{suffix}")
        Path(f"{beside}{suffix}").write_bytes(part.read_bytes() if part.exists() else b"")
    connection = apsw.Connection(str(beside))
    try:
        assert connection.pragma("integrity_check") == "ok"
        return connection.pragma("user_version"), connection.execute(
            "SELECT count(*) FROM files WHERE mtime_ns = 7"
        ).get
    finally:
        connection.close()
        for suffix in ("", "-wal", "-shm"):
            Path(f"{beside}{suffix}").unlink(missing_ok=True)


def killed(file: Path, death: Death, scratch: Path) -> bool:
    """Let a process be killed there; whether it came so far."""
    end = Process(
        partial(upgrade, file, death, scratch / "marker"), scratch / "log", scratch / "marker"
    ).wait()
    assert isinstance(end, Killed) or end == Ended(0), (scratch / "log").read_text()
    return isinstance(end, Killed)


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("database", "at", "step"),
    [(UNFINISHED, "file", 81), (MAIN, "statement", 4), (MAIN, "log", 5), (MAIN, "file", 3)],
    ids=["copying", "migrating", "committing", "folding"],
)
def test_a_killed_upgrade_is_begun_again(tmp_path: Path, database: str, at: At, step: int) -> None:
    """Wherever it is: the store is whole, of its old schema or of the new one, and the copy is whole once it has its name."""
    expected = left_by_a_kill(tmp_path / "expected")
    changed = looked_at(expected)[1]
    asyncio.run(opened(expected))
    kills = 0
    for nth in count(1, step):
        home = tmp_path / str(nth)
        file = left_by_a_kill(home)
        if not killed(file, Death(database, at, nth, torn=nth % 2 == 0), home):
            break
        kills += 1
        kept = file.with_name(KEPT)
        schema, told = looked_at(file)
        assert (schema in {OLD, NEW}, told) == (True, changed)
        assert kept.exists() or schema == OLD
        if kept.exists():
            assert looked_at(kept) == (OLD, changed)
        assert not killed(file, Death("nothing", "file", 1), home)
        assert looked_at(file) == (NEW, changed)
        # Where the first had committed already, the second found nothing to copy.
        assert looked_at(kept) == (OLD, changed)
        assert differences(contents(file), contents(expected)) == []
        assert names(file.parent) == [MAIN, KEPT]
    assert kills > 1
