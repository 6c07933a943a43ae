"""A rebuild that is killed at any moment is begun again, and costs nothing twice (invariant 2)."""

import json
import tempfile
from pathlib import Path

import pytest

from tests.daemon.contents import Content, contents, differences
from tests.daemon.counted import ASKED, KILL
from tests.daemon.process import Daemon
from tests.daemon.test_degraded import many_notes
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
        assert daemon.process.wait(20) == -9
    with daemon.start(environ=environ), daemon.client() as client:
        assert client.search("lighthouse").results
        until(lambda: client.status().agents["main"].rebuild is None, 30)
        assert client.sync().vectors == "complete"
        assert client.status().agents["main"].damaged == []
    assert [path.name for path in index.parent.iterdir()] == ["main.sqlite"]
    embedded = texts_asked(asked)
    assert len(embedded) == len(set(embedded))
    assert differences(contents(index), fresh) == []
