"""The daemon that follows the files of a trial, and those that never saw them before, to compare it with."""

import os
import shutil
import signal
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from pathlib import Path

from memd import daemon
from memd.config.settings import AgentSettings
from memd.providers.choose import ProviderChoice
from memd_client import Client, MemdClientError
from memd_client.messages import AgentStatus, Found
from tests.faults.differential.places import Form, Places
from tests.faults.life import TIMEOUT_S, embedder
from tests.faults.process import Ended, Process
from tests.faults.verdict import Diverged
from tests.wait import until

_IN_ORDER = Ended(0)


class Daemon:
    """A daemon on the places of a trial that is stopped, killed and started again."""

    def __init__(self, places: Places) -> None:
        """None runs yet."""
        self._places = places
        self._process: Process | None = None
        self._client: Client | None = None

    @property
    def client(self) -> Client:
        """Of the daemon that runs."""
        assert self._client is not None
        return self._client

    @property
    def runs(self) -> bool:
        return self._process is not None

    def start(self) -> None:
        """Start one, and wait until it answers."""
        places = self._places
        self._process = started(places, places.state, places.socket, places.log)
        self._client = Client(places.socket, timeout=TIMEOUT_S)

    def reload(self, form: Form) -> None:
        """Have it read its configuration anew."""
        assert self._process is not None
        said = self._said_reloaded()
        self._places.configure(form)
        os.kill(self._process.pid, signal.SIGHUP)
        until(lambda: self._said_reloaded() > said, TIMEOUT_S)

    def _said_reloaded(self) -> int:
        return self._places.log.read_bytes().count(b"config.reloaded")

    def stop(self, *, kill: bool) -> None:
        """End it, in order or not.

        Raises:
            Diverged: it was told to end, and did not do so in order.
        """
        if self._process is None:
            return
        process, self._process = self._process, None
        self.client.close()
        if kill:
            process.discard()
        elif (end := process.terminate_after(0)) != _IN_ORDER:
            raise Diverged(f"the daemon that was to stop: {end}\n{tail(self._places.log)}")


def started(places: Places, state: Path, socket: Path, log: Path) -> Process:
    """A daemon that answers.

    Raises:
        Diverged: it does not.
    """
    process = Process(partial(_serve, places, state, socket), log, log.with_suffix(".marker"))

    def answers() -> bool:
        if isinstance(process.poll(), Ended):
            raise Diverged(f"a daemon ended at its start:\n{tail(log)}")
        try:
            with Client(socket, timeout=1.0) as client:
                return client.status().pid == process.pid
        except MemdClientError:
            return False

    try:
        until(answers, TIMEOUT_S)
    except BaseException:
        process.discard()
        raise
    return process


def _serve(places: Places, state: Path, socket: Path) -> int:
    places.move_in()

    def choose(wanted: AgentSettings) -> ProviderChoice:
        return (
            ProviderChoice(None, "provider = none")
            if wanted.provider == "none"
            else ProviderChoice(embedder(), None)
        )

    return daemon.main(config=places.config, state_dir=state, socket=socket, choose=choose)


@contextmanager
def fresh(places: Places) -> Iterator[tuple[Client, Path]]:
    """A daemon with nothing but the sources, and its index."""
    state, socket = places.directory / "fresh", places.directory / "f"
    shutil.rmtree(state, ignore_errors=True)
    socket.unlink(missing_ok=True)
    process = started(places, state, socket, places.directory / "fresh.log")
    try:
        with Client(socket, timeout=TIMEOUT_S) as client:
            complete(client)
            yield client, state / "agents" / "main.sqlite"
    finally:
        process.discard()


def complete(client: Client, *, force: bool = False) -> AgentStatus:
    """Have everything indexed; what the daemon says of itself then.

    Raises:
        Diverged: it is not.
    """
    until(lambda: client.status().agents["main"].rebuild is None, TIMEOUT_S)
    report = client.sync(force=force)
    if report.vectors != "complete":
        raise Diverged(f"a sync has not indexed everything: {report}")
    status = client.status().agents["main"]
    if status.last_pass is None or status.last_pass.failed is not None:
        raise Diverged(f"a sync has succeeded, and its pass has not: {status.last_pass}")
    return status


def ask(client: Client, questions: Sequence[str]) -> list[Found]:
    """Their answers."""
    return [client.search(question, max_results=50, min_score=0, max_chars=0) for question in questions]


def tail(log: Path) -> str:
    """The end of what daemons printed."""
    return log.read_text("utf-8", "replace")[-4000:] if log.exists() else ""
