"""A daemon that is asked for everything while its files turn into ways out and back."""

import json
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from contextlib import ExitStack, contextmanager, suppress
from datetime import UTC, datetime
from pathlib import Path
from random import Random

import msgspec

from memd_client import RequestFailed, TimedOut
from memd_client.context.daily_note import NoteNotWritten, append_daily_note
from memd_client.context.session_kind import SessionKind
from memd_client.context.workspace import bootstrap_workspace
from memd_client.messages import Failure, Get, Note, Reply
from tests.daemon.process import ROOT, Daemon
from tests.fakes.qmd_standin import Standin
from tests.security.overheard import heard
from tests.security.world import INSIDE, OUTSIDE_STEM, World
from tests.server.stranger import Stranger
from tests.wait import until

NOW = datetime(2026, 3, 2, 12, tzinfo=UTC)
QUESTIONS = ("what does the vault open with", "vault", "the word", "opens with the word of the vault")
_KINDS: tuple[SessionKind, ...] = ("main", "group")
_AT_ONCE = 60  # requests on one connection
_TIMEOUT_S = 60.0

_SETTINGS = """
workspace = "{inside}/workspace"
extra_paths = ["{inside}/extra", "{inside}/one/one.md"]
sources = ["memory", "sessions"]
sync = {{ watch_debounce_ms = 20, watch_max_wait_ms = 60, wait_ms = 50, interval_minutes = 600 }}
sessions = {{ presets = ["openclaw", "claude-code", "codex", "gemini"], delta_bytes = 0, idle_seconds = 0 }}
"""
# One whose searches go to another program, which gets copies of all that may be shown.
_COPIED = """
backend = "qmd"
qmd = {{ command = "{home}/bin/qmd", debounce_seconds = 0, timeout_ms = 20000, cooldown_seconds = 0 }}
redact = {{ mode = "all" }}
"""


class Tally(msgspec.Struct):
    """What was done, and what was let out."""

    swaps: dict[str, int]
    mounts: dict[str, int]
    done: Counter[str]
    leaks: list[str]

    @property
    def total_swaps(self) -> int:
        """Of all kinds."""
        return sum(self.swaps.values())


class Race:
    """One world and its daemon."""

    def __init__(self, home: Path, *, copied: bool) -> None:
        """The world is furnished; nothing runs yet.

        Args:
            home: A scratch directory.
            copied: With a second agent, whose notes are copied for another program.
        """
        home = home.resolve()
        self.world = World(home)
        self.world.furnish()
        (home / "spare.md").write_text(f"Another name of what opens the vault: {INSIDE}.\n")
        inside = self.world.inside
        self.daemon = Daemon(home, entry="tests.security.overheard")
        self.daemon.workspace = inside / "workspace"
        Standin(home / "bin")
        agents = {"main": _SETTINGS} | ({"copied": _SETTINGS + _COPIED} if copied else {})
        self._agents = list(agents)
        self.daemon.config.write_text(
            "".join(
                f"[agents.{name}]\n{text.format(inside=inside, home=home)}\n" for name, text in agents.items()
            )
        )
        self._outside = [str(self.world.outside / file) for file in self.world.files()]
        self._digest = self.world.outside_digest()
        self._done: Counter[str] = Counter()
        self._leaks: list[str] = []

    def run(self, seconds: float, seed: int, least: Mapping[str, int] | None = None) -> Tally:
        """Race for a while, then look everywhere for what must not be there.

        Args:
            seconds: For so long.
            seed: Of what is swapped for what.
            least: What is to be done at least: on a busy machine it goes on until then, for a minute more at most.

        Raises:
            AssertionError: what it has in the end is not what is inside; and whatever a reader fails with.
        """
        ended = threading.Event()
        failures: list[BaseException] = []
        with self.daemon.start(environ=_surroundings(self.world.inside)):
            names = self._names()
            # Each looks at all that there is before it begins, and what the first one does nobody else sees.
            with self._swapping(seed, "--mounts") as mounts, self._swapping(seed) as swaps:
                readers = [
                    threading.Thread(target=_guarded, args=(each, failures, ended))
                    for each in (
                        lambda: self._gets(names, Random(seed)),
                        self._searches,
                        self._syncs,
                        self._clients,
                    )
                ]
                for reader in readers:
                    reader.start()
                ended.wait(seconds)
                with suppress(AssertionError):  # then it is told by the tally
                    until(lambda: ended.is_set() or self._has_done(least or {}), _TIMEOUT_S)
                ended.set()
                for reader in readers:
                    reader.join(_TIMEOUT_S)
            if failures:
                raise failures[0]
            self._settles(names)
            self._looks_at("log", self.daemon.printed().encode())
            self._count_passes()
            assert self.daemon.stop() == 0, self.daemon.printed()
        for file in (heard(self.daemon.home), *self.daemon.state.rglob("*")):
            if file.is_file():
                self._looks_at(file.name, file.read_bytes())
        assert INSIDE in heard(self.daemon.home).read_text(), "nothing was embedded: this proves nothing"
        if self.world.outside_digest() != self._digest:
            self._leaks.append("something outside was changed")
        return Tally(swaps, mounts, self._done, self._leaks)

    def _count_passes(self) -> None:
        self._done["passes"] = self.daemon.printed().count('"sync.finished"')

    def _has_done(self, least: Mapping[str, int]) -> bool:
        self._count_passes()
        return all(self._done[what] >= count for what, count in least.items())

    # --- who asks

    def _names(self) -> list[str]:
        """What the index calls all that is inside, and a few names that are none."""
        with self.daemon.client(_TIMEOUT_S) as client:
            client.sync()
            found = {
                path
                for source in ("memory", "sessions")
                for question in QUESTIONS
                for hit in client.search(
                    question, max_results=50, min_score=0, max_chars=0, source=source
                ).results
                for path in (hit.path, *(copy.rpartition("#")[0] for copy in hit.copies))
            }
        transcripts = [name for name in found if name.startswith("sessions/")]
        assert len(transcripts) == 7, sorted(found)
        assert len(found) >= 15, sorted(found)
        return sorted(found)

    def _gets(self, names: list[str], rng: Random) -> None:
        with Stranger(self.daemon.socket) as stranger:
            stranger.greet()
            wanted = [rng.choice(names if rng.random() < 0.9 else self._outside) for _ in range(_AT_ONCE)]
            stranger.ask(*(Get(path=path) for path in wanted))
            for reply in stranger.hear_some(_AT_ONCE).values():
                if isinstance(reply, Failure):  # what is indexed, while its directory is a symlink
                    assert reply.code == "unavailable", reply
                    self._done["unavailable"] += 1
                else:
                    assert isinstance(reply, Note), reply
                    self._done["missing" if reply.missing else "read"] += 1
                self._hears("get", reply)

    def _searches(self) -> None:
        with self.daemon.client(_TIMEOUT_S) as client:
            for question in QUESTIONS:
                for agent in self._agents:
                    found = client.search(question, max_results=50, min_score=0, max_chars=0, agent=agent)
                    self._hears("search", found)
                    self._done[f"searches by {found.backend}"] += 1
                self._hears("explain", client.explain(question, max_results=50, min_score=0, agent="main"))

    def _syncs(self) -> None:
        with self.daemon.client(_TIMEOUT_S) as client:
            self._hears("status", client.status())
            try:
                self._hears("sync", client.sync(force=True, vectors=False))
            except RequestFailed as failure:
                # Where everything changes all the time, a look at everything may take longer than anybody waits.
                if failure.code != "timed_out":
                    raise
                self._done["syncs late"] += 1
            else:
                self._done["syncs"] += 1

    def _clients(self) -> None:
        """What an agent does by itself in its workspace, which is another one than the daemon's."""
        workspace = self.world.inside / "agent"
        for kind in _KINDS:
            prompt = repr(bootstrap_workspace(workspace, kind, NOW, UTC))
            self._done["prompts"] += INSIDE in prompt
            self._looks_at("prompt", prompt.encode())
        try:
            text = f"A line of {self._done['notes']}."
            self._done["notes"] += append_daily_note(workspace, text, NOW, UTC).outcome == "appended"
        except NoteNotWritten:
            self._done["notes refused"] += 1

    # --- what they look at

    def _hears(self, what: str, reply: Reply) -> None:
        self._looks_at(what, msgspec.json.encode(reply))

    def _looks_at(self, what: str, data: bytes) -> None:
        if OUTSIDE_STEM in data:
            at = data.index(OUTSIDE_STEM)
            self._leaks.append(f"{what}: {data[max(at - 80, 0) : at + 20]!r}")

    def _settles(self, names: list[str]) -> None:
        """With everything in its place again, everything is found and read again."""
        with self.daemon.client(_TIMEOUT_S) as client:
            client.sync(force=True)
            for name in names:
                assert INSIDE in client.get(name).text, name
            found = client.search(INSIDE, max_results=50, min_score=0, max_chars=0)
            assert {hit.path for hit in found.results} <= set(names)

    # --- who swaps

    @contextmanager
    def _swapping(self, seed: int, *mode: str) -> Iterator[dict[str, int]]:
        own = ["unshare", "--mount", "--propagation", "private"] if mode else []
        done: dict[str, int] = {}
        with subprocess.Popen(
            [*own, sys.executable, "-m", "tests.security.swapper", str(self.world.home), str(seed), *mode],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            cwd=ROOT,
        ) as swapper:
            assert swapper.stdout is not None
            assert swapper.stdout.readline() == b"ready\n"
            with ExitStack() as stopping:
                stopping.callback(swapper.kill)
                yield done
                out, _ = swapper.communicate(timeout=_TIMEOUT_S)
                assert swapper.returncode == 0
                done.update(json.loads(out))


def _guarded(step: Callable[[], None], failures: list[BaseException], ended: threading.Event) -> None:
    """Repeat a step until the end, which comes early when it fails."""
    try:
        while not ended.is_set():
            step()
    except (TimedOut, RequestFailed, AssertionError, OSError) as failure:
        failures.append(failure)
        ended.set()


def _surroundings(home: Path) -> dict[str, str]:
    """An environment in which the homes of all agents are in a directory."""
    return {
        "HOME": str(home),
        **dict.fromkeys(("CLAUDE_CONFIG_DIR", "CODEX_HOME", "GEMINI_CLI_HOME", "OPENCLAW_STATE_DIR"), ""),
        **dict.fromkeys(("PI_CODING_AGENT_DIR", "PI_CODING_AGENT_SESSION_DIR", "OPENCLAW_PROFILE"), ""),
    }
