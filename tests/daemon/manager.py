"""A fake service manager for daemons."""

import os
import socket
import subprocess
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from memd.runtime.startup import prepare_environment
from memd_client import Client, MemdClientError
from tests.daemon.process import ROOT, Daemon
from tests.server.given import as_manager


class Manager:
    """The service manager's end of sd_notify(3): the messages received, and whether the daemon answered at that moment."""

    def __init__(self, directory: Path, answers: Path) -> None:
        self.address = directory / "notify"
        self.heard: list[dict[str, str]] = []
        self.answered_when_ready: bool | None = None
        self._answers = answers
        self._socket = socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM)
        self._socket.bind(str(self.address))
        self._thread = threading.Thread(target=self._listen)
        self._thread.start()

    def _listen(self) -> None:
        while datagram := self._socket.recv(4096).decode():
            message = dict(line.partition("=")[::2] for line in datagram.split("\n"))
            if "READY" in message and self.answered_when_ready is None:
                try:
                    with Client(socket=self._answers, timeout=60) as client:
                        self.answered_when_ready = client.status().pid > 0
                except MemdClientError:
                    self.answered_when_ready = False
            self.heard.append(message)

    def states(self, name: str) -> list[str]:
        """Return all values received under a name."""
        return [message[name] for message in list(self.heard) if name in message]

    def close(self) -> None:
        with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as last:
            last.sendto(b"", str(self.address))
        self._thread.join()
        self._socket.close()


@contextmanager
def managed(daemon: Daemon) -> Iterator[Manager]:
    """Run a service manager for a daemon."""
    manager = Manager(daemon.home, daemon.socket)
    try:
        yield manager
    finally:
        manager.close()


class Given(Daemon):
    """A daemon that gets its sockets from the test."""

    def begin(self, *passed: socket.socket, **variables: str) -> None:
        """Start it with these sockets as descriptors from 3 on.

        Args:
            passed: The sockets.
            variables: Of the environment, where they are not to tell the truth.
        """
        whole = dict(os.environ)
        prepare_environment(whole)
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(
                as_manager(passed, variables, self.command),
                pass_fds=[one.fileno() for one in passed],
                env=whole,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                cwd=ROOT,
            )
