"""A scratch directory with two agents: one with notes and transcripts, one with notes alone."""

import hashlib
import os
from collections.abc import Mapping
from pathlib import Path

from tests.daemon.agentday import AGENTS, ELSEWHERE
from tests.faults.mixed.course import Form
from tests.faults.scratch import ScratchDirectory

MINE = ("main", "notes")
"""The agents."""
FRESH = {"main": "freshmain", "notes": "freshnotes"}
"""The agents that have the same files, and whose indexes are made at the end."""

_PRESETS = ", ".join(f'"{agent}"' for agent in AGENTS)
_SYNC = "sync = { watch_debounce_ms = 20, watch_max_wait_ms = 60 }"
_TALKATIVE = f"""sources = ["memory", "sessions"]
sessions = {{ presets = [{_PRESETS}], delta_bytes = 3000, delta_messages = 10, idle_seconds = 0.3 }}
{_SYNC}
"""


class Household(ScratchDirectory, frozen=True):
    """Where everything is."""

    def workspace(self, agent: str) -> Path:
        """Where the notes of an agent are."""
        return self.directory / agent

    @property
    def home(self) -> Path:
        """Where four other programs have their transcripts."""
        return self.directory / "home"

    @property
    def config(self) -> Path:
        """What the daemon is told."""
        return self.directory / "config.toml"

    @property
    def outside(self) -> Path:
        """What the process that writes and asks printed."""
        return self.directory / "outside"

    @property
    def begun(self) -> Path:
        """There when that process has begun, and can be told to end."""
        return self.directory / "begun"

    @property
    def quiet(self) -> Path:
        """There when that process writes no more."""
        return self.directory / "quiet"

    @property
    def seen(self) -> Path:
        """What it met."""
        return self.directory / "seen.json"

    def index(self, agent: str) -> Path:
        """The index of an agent."""
        return self.state / "agents" / f"{agent}.sqlite"

    @property
    def databases(self) -> tuple[Path, ...]:
        """What can be killed while it is written."""
        indexes = [self.index(agent) for agent in MINE]
        return (*indexes, *(Path(f"{one}.next") for one in indexes), self.state / "embeddings.sqlite")

    def make(self) -> None:
        """Make the directories."""
        for directory in (self.home, *(self.workspace(agent) / "memory" for agent in MINE)):
            directory.mkdir(parents=True)

    def move_in(self) -> None:
        """Let this process find the transcripts at home."""
        for name in ELSEWHERE:
            os.environ.pop(name, None)
        os.environ["HOME"] = str(self.home)

    def configure(self, form: Form, *, fresh: bool = False) -> None:
        """Write the configuration, as an editor saves it."""
        part = self.config.with_name("config.part")
        part.write_text(self._settings(form, fresh=fresh), encoding="utf-8")
        part.replace(self.config)

    def _settings(self, form: Form, *, fresh: bool) -> str:
        if form == "broken":
            return "[agents.main]\nworkspace = \n"
        tokens = 120 if form == "coarse" else 80
        chunking = f"chunking = {{ tokens = {tokens}, overlap = 10 }}\n"
        rule = 'redact = { extra = [{ name = "own", pattern = "house-[0-9]{5}" }] }\n'
        told = {
            "main": _TALKATIVE + chunking + (rule if form == "stricter" else ""),
            "notes": f"{_SYNC}\n{chunking}",
        }
        lines = [self._agent(agent, agent, settings) for agent, settings in told.items()]
        if form == "more":
            lines.append(self._agent("more", "notes", "query = { max_results = 9 }\n"))
        if fresh:
            lines += [self._agent(FRESH[agent], agent, settings) for agent, settings in told.items()]
        return "\n".join(lines)

    def _agent(self, name: str, whose: str, settings: str) -> str:
        return f'[agents.{name}]\nworkspace = "{self.workspace(whose)}"\n{settings}'

    def sources(self) -> dict[str, str]:
        """Each file of the agents and of the other programs, with what tells a change of it."""
        roots = (self.home, *(self.workspace(agent) for agent in MINE))
        return {
            file.relative_to(self.directory).as_posix(): _stamp(file)
            for root in roots
            for file in sorted(root.rglob("*"))
            if file.is_file()
        }


def changed(before: Mapping[str, str], after: Mapping[str, str]) -> list[str]:
    """The files that are not what they were."""
    return sorted(path for path in before.keys() | after.keys() if before.get(path) != after.get(path))


def _stamp(file: Path) -> str:
    found = file.stat()
    content = hashlib.sha256(file.read_bytes()).hexdigest()
    return f"{content} {found.st_ino} {found.st_mode:o} {found.st_mtime_ns}"
