"""Where a trial happens: the directories that a daemon indexes, those beside them, and what the daemon is told."""

import os
import tempfile
import time
from pathlib import Path
from typing import Literal

import msgspec

from tests.daemon.agentday import AGENTS, ELSEWHERE
from tests.faults import history
from tests.faults.scratch import ScratchDirectory
from tests.wait import until

Form = Literal["usual", "coarse", "few"]
"""What the configuration says: as at first, larger chunks (the index is built anew), fewer hits."""

ROOTS = ("workspace", "extra")
"""The directories of notes that may go away and come back."""
SINGLE = "single/PLAN.md"
"""An extra path that is one file."""
NOISE = "noise-"
"""What the names of the notes begin with that another process writes all the time, and of which nothing is judged."""


class Setting(msgspec.Struct, frozen=True):
    """What is the same for all of a trial."""

    # The sources are on a disk, which gives inodes anew; else in memory, which never does.
    on_disk: bool = False
    slow: bool = False  # events rest for as long as by default before they are taken in by themselves
    stirred: bool = False  # another process asks and writes all the while
    sessions: bool = True  # transcripts are a source
    vectors: bool = True


class Places(ScratchDirectory, frozen=True):
    """A scratch directory with a daemon, and the sources, which may lie elsewhere."""

    sources: Path
    setting: Setting

    @property
    def home(self) -> Path:
        """Of the programs that leave transcripts."""
        return self.sources / "home"

    @property
    def config(self) -> Path:
        """What the daemons are told."""
        return self.directory / "config.toml"

    @property
    def index(self) -> Path:
        """What is judged."""
        return self.state / "agents" / "main.sqlite"

    def root(self, name: str) -> Path:
        """One of the directories of notes."""
        return self.sources / name

    def name(self, root: str) -> str:
        """What the names of its notes in the index begin with."""
        return "" if root == "workspace" else f"{self.sources / root}/"

    def make(self) -> None:
        """Make the directories."""
        for name in ("home", "workspace/memory", "extra", "single", "outside"):
            (self.sources / name).mkdir(parents=True)

    def move_in(self) -> None:
        """Let this process find the transcripts at home."""
        for name in ELSEWHERE:
            os.environ.pop(name, None)
        os.environ["HOME"] = str(self.home)

    def configure(self, form: Form) -> None:
        """Write the configuration, as an editor saves it."""
        part = self.config.with_name("config.part")
        part.write_text(self._told(form), encoding="utf-8")
        part.replace(self.config)

    def _told(self, form: Form) -> str:
        rest = 'sources = ["memory"]\n'
        if self.setting.sessions:
            presets = ", ".join(f'"{agent}"' for agent in AGENTS)
            rest = (
                f'sources = ["memory", "sessions"]\nsessions = {{ presets = [{presets}], delta_bytes = 0 }}\n'
            )
        pace = "" if self.setting.slow else "watch_debounce_ms = 20, watch_max_wait_ms = 60, "
        return (
            f'[agents.main]\nworkspace = "{self.sources}/workspace"\n'
            f'extra_paths = ["{self.sources}/extra", "{self.sources / SINGLE}"]\n'
            + ("" if self.setting.vectors else 'provider = "none"\n')
            + rest
            + f"chunking = {{ tokens = {90 if form == 'coarse' else 45}, overlap = 10 }}\n"
            # All chunks are candidates: which of those that are equally near are left out depends on what came first.
            + f"query = {{ max_results = {3 if form == 'few' else 6}, hybrid = {{ candidate_multiplier = 20 }} }}\n"
            # No look on a timer makes good what a search should have known.
            + f"sync = {{ {pace}wait_ms = 10000, interval_minutes = 600 }}\n"
            + '[daemon]\nlog_level = "info"\n'
        )


def places(setting: Setting) -> Places:
    """New ones."""
    directory = history.scratch()
    sources = Path(tempfile.mkdtemp(prefix="memd-")) if setting.on_disk else directory / "sources"
    made = Places(directory, sources.resolve(), setting)
    made.make()
    return made


def pause(rest_s: float) -> None:
    """Do nothing for so long."""
    moment = time.monotonic() + rest_s
    until(lambda: time.monotonic() >= moment, rest_s + 60)
