"""How long it takes to see that nothing has changed."""

from collections.abc import Iterator
from pathlib import Path

from tests.benchmarks import baseline, notes
from tests.benchmarks.figures import Figure, milliseconds, repeated
from tests.daemon.process import Daemon

FILES = 10_000
TIMES = 9
BASELINE_TIMES = 3


def measure(home: Path) -> Iterator[Figure]:
    """A pass over many small files, none of which changed.

    Args:
        home: An empty directory, whose path is short enough for a socket.
    """
    daemon = Daemon(home)
    notes.small(daemon.workspace, files=FILES)
    files = sorted(daemon.workspace.rglob("*.md"))
    connection = baseline.open_file(home / "baseline.sqlite")
    for file in files:
        baseline.index_file(connection, str(file), file.read_bytes(), [])
    with daemon.start(), daemon.client(timeout=None) as client:
        client.sync()
        memd = repeated(lambda: client.sync(vectors=False), TIMES)
    other = repeated(lambda: baseline.changed(connection, files), BASELINE_TIMES)
    connection.close()
    yield milliseconds(f"rescan of {FILES:,} unchanged files", memd, other)
