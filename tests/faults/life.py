"""What a process does with the index of a workspace before it ends: to the end of the work, or until a signal comes."""

import sys
from pathlib import Path

import uvloop

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd.runtime import logs
from tests.daemon.inprocess import configure, running
from tests.fakes import HashingProvider
from tests.faults.scratch import ScratchDirectory

TIMEOUT_S = 60.0  # until a process counts as hung

# Small chunks, so that small notes have several of them.
_SETTINGS = """
chunking = { tokens = 40, overlap = 10 }
sync = { watch_debounce_ms = 20, watch_max_wait_ms = 60 }
"""


class Home(ScratchDirectory, frozen=True):
    """A scratch directory with a workspace, and with the state of a daemon."""

    @property
    def workspace(self) -> Path:
        """Where the notes are."""
        return self.directory / "workspace"

    @property
    def databases(self) -> tuple[Path, ...]:
        """What can be killed while it is written."""
        return self.index("main"), Path(f"{self.index('main')}.next"), self.state / "embeddings.sqlite"

    def index(self, agent: str) -> Path:
        """The index of an agent."""
        return self.state / "agents" / f"{agent}.sqlite"

    def configure(self, *, fresh: bool) -> None:
        """Let agent main have the workspace, and another one, too, whose index may be new."""
        configure(self.directory, self.settings(fresh=fresh))

    def settings(self, *, fresh: bool) -> str:
        """What stands below the workspace of agent main."""
        other = f'[agents.fresh]\nworkspace = "{self.workspace}"\n{_SETTINGS}' if fresh else ""
        return _SETTINGS + other


def embedder() -> HashingProvider:
    """What embeds; small vectors, for there is much to compare."""
    return HashingProvider(dimensions=48)


def busy(home: Home, *, fresh: bool = False, rebuild: bool = False) -> int:
    """Be the daemon until everything is indexed, with its vectors, and end in order.

    Args:
        home: Where.
        fresh: With the other agent.
        rebuild: Then build the indexes anew, too.
    """
    logs.configure("info", sys.stderr, terminal=False, color=False)
    uvloop.run(_busy(home, fresh=fresh, rebuild=rebuild))
    return 0


async def _busy(home: Home, *, fresh: bool, rebuild: bool) -> None:
    async with running(home.directory, embedder(), settings=home.settings(fresh=fresh)) as memd:
        for is_again in (False, True)[: 1 + rebuild]:
            if is_again:
                await memd.reindex()
                while any(agent.rebuild for agent in (await memd.status()).agents.values()):
                    pass
            report = await memd.sync()
            assert report.vectors == "complete", report


def whole(home: Home) -> int:
    """Be the daemon until a signal comes."""
    return daemon.main(
        config=home.directory / "config.toml", state_dir=home.state, socket=home.socket, choose=_choose
    )


def _choose(_: AgentSettings) -> ProviderChoice:
    return ProviderChoice(embedder(), None)
