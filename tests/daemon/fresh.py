"""Builds a new index of the same files beside a daemon's index, which must be equal."""

import asyncio
import itertools
from pathlib import Path

from memd_client import AsyncClient, Client
from memd_client.messages import AgentStatus
from tests.daemon.contents import Content, contents, differences
from tests.daemon.inprocess import running
from tests.daemon.process import Daemon
from tests.wait import until

# However busy the machine, a search waits until what is known to have changed is indexed.
PATIENT = "sync = { wait_ms = 10000 }"
# And changes that the watcher tells of are taken in at once.
QUICK = "sync = { watch_debounce_ms = 50, watch_max_wait_ms = 200, wait_ms = 10000 }"


class Fresh:
    """The index of a daemon that has never seen the workspace before."""

    def __init__(self, daemon: Daemon, settings: str = QUICK) -> None:
        """Let a second daemon, in this process, index the workspace of the first.

        Args:
            daemon: Whose workspace.
            settings: TOML of [agents.main], below the workspace.
        """
        names = (daemon.home / f"fresh{number}" for number in itertools.count())
        home = next(name for name in names if not name.exists())
        home.mkdir()
        (home / "workspace").symlink_to(daemon.workspace)
        self.skipped = asyncio.run(_skipped(home, settings))
        self.contents = contents(home / "state" / "agents" / "main.sqlite")

    def texts(self) -> dict[str, str]:
        """The chunks of each file, joined."""
        return {path: "\n".join(chunk.text for chunk in chunks) for path, chunks in self.contents.items()}


async def _skipped(home: Path, settings: str) -> dict[str, int]:
    async with running(home, settings=settings), AsyncClient(socket=home / "s", timeout=120) as client:
        assert (await client.sync()).vectors == "complete"
        return (await client.status()).agents["main"].skipped


def index_of(daemon: Daemon) -> Path:
    """Return the index file of the daemon's agent."""
    return daemon.state / "agents" / "main.sqlite"


def becomes_fresh(daemon: Daemon, client: Client, settings: str = QUICK) -> Fresh:
    """Wait until a daemon's index, updated by its watcher alone, equals a fresh one.

    Args:
        daemon: That runs.
        client: Of it.
        settings: What it runs with.

    Raises:
        AssertionError: it does not, and how it differs.
    """
    fresh = Fresh(daemon, settings)
    told: list[str] = []

    def is_equal() -> bool:
        told[:] = _differences(daemon, client, fresh)
        return not told

    try:
        until(is_equal, 30)
    except AssertionError:
        raise AssertionError(f"not the index of a fresh start: {told[:20]}") from None
    return fresh


def _differences(daemon: Daemon, client: Client, fresh: Fresh) -> list[str]:
    status: AgentStatus = client.status().agents["main"]
    if status.dirty or status.vectors.waiting:
        return ["it is at work"]
    if status.skipped != fresh.skipped:
        return [f"skipped: {status.skipped} and {fresh.skipped}"]
    try:
        found: dict[str, list[Content]] = contents(index_of(daemon))
    except AssertionError as torn:  # a write came between two of its questions
        return [str(torn)]
    return differences(found, fresh.contents)


def holding(client: Client, word: str) -> set[str]:
    """Return the notes that a search for a word finds and that show it."""
    hits = client.search(word, max_results=50, min_score=0).results
    return {hit.path for hit in hits if word in hit.snippet}
