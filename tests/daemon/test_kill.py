"""A daemon that is killed again and again starts with nothing missing and nothing half-indexed (invariant 2)."""

import hashlib
import os
import time
from pathlib import Path
from random import Random

import apsw
import pytest

from tests.daemon.contents import contents, differences
from tests.daemon.process import Daemon
from tests.wait import until

NOTES = 300
EDITS = 120  # in each round
KILLS = 10  # the many are in tests/faults, where they cost less
MID_PASS = 4  # of them, at least

_WORDS = [
    "lighthouse",
    "harbour",
    "ledger",
    "migration",
    "kettle",
    "violin",
    "orchard",
    "compass",
    "数据库",
    "迁移",
    "灯塔",
    "港口",
    "naïve",
    "Zürich",
    "café",
    "résumé",
]


def section(rng: Random) -> str:
    """A heading with a paragraph."""
    words = " ".join(rng.choices(_WORDS, k=rng.randrange(20, 120)))
    return f"## {rng.choice(_WORDS)} {rng.randrange(10_000)}\n\n{words}.\n\n"


def note(rng: Random) -> str:
    """A note of a few chunks."""
    return "".join(section(rng) for _ in range(rng.randrange(1, 6)))


class Workspace:
    """The notes of a daemon, which change at random."""

    def __init__(self, directory: Path, rng: Random) -> None:
        self._directory = directory
        self._rng = rng
        for number in range(NOTES):
            self._write(f"memory/{number % 7}/{number:03}.md", note(rng))
        self._write("MEMORY.md", note(rng))

    def edit(self, count: int) -> None:
        """Change, add, remove and move so many notes."""
        notes = sorted(self.on_disk())
        for path in self._rng.sample(notes, min(count, len(notes))):
            file = self._directory / path
            text = file.read_text("utf-8")
            match self._rng.randrange(10):
                case 0 | 1 | 2:
                    self._write(path, text + section(self._rng))
                case 3 | 4:
                    self._write(path, section(self._rng) + text)
                case 5:
                    self._write(path, note(self._rng))
                case 6:
                    self._write(f"memory/new/{self._rng.randrange(10**6):06}.md", note(self._rng))
                case 7 if len(notes) > NOTES - EDITS:
                    file.unlink()
                case 8:
                    file.rename(self._directory / "memory" / f"moved-{self._rng.randrange(10**6):06}.md")
                case _:
                    self._write(path, "\n" + text.replace("harbour", "haven"))

    def on_disk(self) -> dict[str, bytes]:
        """The hash of each note by its name in the index."""
        return {
            str(file.relative_to(self._directory)): hashlib.sha256(file.read_bytes()).digest()
            for file in self._directory.rglob("*.md")
        }

    def _write(self, path: str, text: str) -> None:
        file = self._directory / path
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(text, encoding="utf-8")


class Onlooker:
    """Looks into the index of a daemon that runs, without touching it."""

    def __init__(self, file: Path) -> None:
        self._connection = apsw.Connection(
            f"file:{file}?mode=ro", flags=apsw.SQLITE_OPEN_READONLY | apsw.SQLITE_OPEN_URI
        )
        self._connection.set_busy_timeout(1000)

    def close(self) -> None:
        self._connection.close()

    def files(self) -> dict[str, bytes]:
        """The hash of each file in the index, by its name."""
        return dict(self._connection.execute("SELECT path, hash FROM files").fetchall())  # type: ignore[arg-type]  # apsw types a row as any tuple

    def waiting(self) -> int:
        """Chunks without a vector."""
        count: int = self._connection.execute("SELECT count(*) FROM chunks WHERE vector = 0").get
        return count


def run_and_kill(daemon: Daemon, workspace: Workspace, rng: Random) -> bool:
    """Start, wait for a random share of the work to be done, kill; whether a pass was under way."""
    wanted = workspace.on_disk()
    logged = len(daemon.printed())
    daemon.start(wait=False)
    until(lambda: "agent.started" in daemon.printed()[logged:] or daemon.process.poll() is not None, 20)
    assert daemon.process.poll() is None, daemon.printed()[logged:]
    onlooker = Onlooker(daemon.state / "agents" / "main.sqlite")
    try:
        before = onlooker.files()
        to_do = {path for path in before.keys() | wanted.keys() if before.get(path) != wanted.get(path)}
        enough = rng.randrange(1, max(2, len(to_do) * 3 // 4))

        def is_done_so_far() -> bool:
            now = onlooker.files()
            left = sum(now.get(path) != wanted.get(path) for path in to_do)
            return len(to_do) - left >= enough

        until(is_done_so_far, 20)
        if rng.random() < 0.25:
            workspace.edit(10)  # of which the watcher tells
            until(lambda: not onlooker.waiting(), 20)
        # Anywhere between two commits, not only right after one.
        moment = time.monotonic() + rng.uniform(0, 0.01)
        until(lambda: time.monotonic() >= moment)
        daemon.kill()
    finally:
        onlooker.close()
    return "sync.finished" not in daemon.printed()[logged:]


@pytest.mark.long
def test_ten_kills_leave_the_index_of_a_fresh_start(home: Path, daemon: Daemon) -> None:
    """After kills in the middle of indexing, with edits in between, a clean start equals a fresh index in every row."""
    rng = Random(20)
    workspace = Workspace(daemon.workspace, rng)
    in_a_pass = 0
    for _ in range(KILLS):
        in_a_pass += run_and_kill(daemon, workspace, rng)
        workspace.edit(EDITS)
    assert in_a_pass >= MID_PASS
    indexes = []
    fresh = Daemon(home / "fresh")
    fresh.workspace = daemon.workspace
    fresh.configure("")
    for each in (daemon, fresh):
        with each.start(), each.client() as client:
            assert client.sync().vectors == "complete"
            status = client.status().agents["main"]
            assert status.vectors.waiting == 0
            assert (status.skipped, status.rebuild) == ({}, None)
        assert each.stop() == 0
        indexes.append(contents(each.state / "agents" / "main.sqlite"))
    assert indexes[0].keys() == workspace.on_disk().keys()
    assert all(chunk.vector is not None for chunks in indexes[0].values() for chunk in chunks)
    assert differences(indexes[0], indexes[1]) == []
    assert os.listdir(daemon.state / "agents") == ["main.sqlite"]  # noqa: PTH208 - names alone
