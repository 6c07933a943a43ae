"""A rebuild that is killed at any moment is begun again, and costs nothing twice (invariant 2)."""

import json
import tempfile
from pathlib import Path

import pytest

from tests.daemon.contents import Content, contents, differences
from tests.daemon.counted import ASKED, KILL
from tests.daemon.process import Daemon
from tests.daemon.trouble import many_notes
from tests.wait import until

SMALLER = "chunking = { tokens = 60, overlap = 10 }"


def texts_asked(file: Path) -> list[str]:
    """What was embedded, in order."""
    return [text for line in file.read_text("utf-8").splitlines() for text in json.loads(line)]


@pytest.fixture(scope="module")
def fresh() -> dict[str, list[Content]]:
    """What an index of the same notes holds that was built without trouble."""
    with tempfile.TemporaryDirectory(prefix="memd-") as scratch:
        daemon = Daemon(Path(scratch), settings=SMALLER)
        many_notes(daemon.workspace, 40)
        with daemon, daemon.client() as client:
            assert client.sync().vectors == "complete"
        return contents(daemon.state / "agents" / "main.sqlite")


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("place", "writes"),
    [
        ("main.sqlite.next-wal", 150),  # filling
        ("main.sqlite.next", 20),  # its log folded into it
        ("main.sqlite-wal", 12),  # the copy
        ("main.sqlite-wal", 100),
        ("embeddings.sqlite-wal", 3),  # vectors of it
    ],
)
def test_a_killed_rebuild_is_begun_again_and_embeds_nothing_twice(
    home: Path, fresh: dict[str, list[Content]], place: str, writes: int
) -> None:
    """The old index answers at once after the kill; then the new one is whole, and each text was embedded once."""
    asked = home / "asked"
    environ = {ASKED: str(asked)}
    daemon = Daemon(home, entry="tests.daemon.counted")
    many_notes(daemon.workspace, 40)
    with daemon.start(environ=environ), daemon.client() as client:
        assert client.sync().vectors == "complete"
    index = daemon.state / "agents" / "main.sqlite"
    daemon.configure(SMALLER)
    with daemon.start(wait=False, environ={**environ, KILL: f"{place}:{writes}"}):
        assert daemon.process.wait(60) == -9
    with daemon.start(environ=environ), daemon.client() as client:
        assert client.search("lighthouse").results
        until(lambda: client.status().agents["main"].rebuild is None, 30)
        assert client.sync().vectors == "complete"
        assert client.status().agents["main"].damaged == []
    assert [path.name for path in index.parent.iterdir()] == ["main.sqlite"]
    embedded = texts_asked(asked)
    assert len(embedded) == len(set(embedded))
    assert differences(contents(index), fresh) == []


def test_settings_that_change_back_before_a_rebuild_was_done_leave_nothing_of_it(home: Path) -> None:
    """Notes that were edited meanwhile were cut for settings that hold no more: they are cut again."""
    daemon = Daemon(home, entry="tests.daemon.counted")
    environ = {ASKED: str(home / "asked")}
    many_notes(daemon.workspace, 10)
    with daemon.start(environ=environ), daemon.client() as client:
        assert client.sync().vectors == "complete"
    daemon.configure(SMALLER)
    daemon.write("memory/edited.md", "# Edited\n\n" + "The heron waits at the lock of the canal.\n" * 20)
    with daemon.start(wait=False, environ={**environ, KILL: "main.sqlite.next-wal:20"}):
        assert daemon.process.wait(60) == -9
    daemon.configure("")
    with daemon.start(environ=environ), daemon.client() as client:
        until(lambda: "rebuild.finished" in daemon.printed(), 30)
        assert client.sync().vectors == "complete"
    assert "changed back before it was built anew" in daemon.printed()
    index = daemon.state / "agents" / "main.sqlite"
    kept = contents(index)
    index.unlink()
    with daemon.start(environ=environ), daemon.client() as client:
        client.sync()
    assert differences(kept, contents(index)) == []


def test_what_is_half_built_for_an_agent_that_is_gone_is_deleted(daemon: Daemon) -> None:
    """The next daemon needs no copy of memory that nobody will ever finish; the index of that agent stays."""
    agents = daemon.state / "agents"
    agents.mkdir(parents=True)
    for name in ("gone.sqlite", "gone.sqlite.next", "gone.sqlite.next-wal", "main.sqlite.next"):
        (agents / name).write_bytes(b"")
    with daemon.start():
        assert {file.name for file in agents.iterdir() if ".next" in file.name} == set()
    assert {file.name for file in agents.iterdir()} == {"gone.sqlite", "main.sqlite"}
