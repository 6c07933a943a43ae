"""Tells the service manager the state of the daemon, by the datagrams of sd_notify(3)."""

import os
import socket
import time
from collections.abc import Mapping, MutableMapping

# Sending waits only while the manager's queue is full; the daemon must not wait long for it.
_TIMEOUT_S = 0.5


class Notifier:
    """Sends to the socket that the environment names. Without one, or with a dead one, it does nothing.

    Args:
        environ: The environment; the variable is removed from it, so that no child process sends for the daemon.
    """

    def __init__(self, environ: MutableMapping[str, str]) -> None:
        address = environ.pop("NOTIFY_SOCKET", "")
        # A leading @ stands for the NUL byte of Linux' abstract sockets.
        self._address = "\0" + address[1:] if address.startswith("@") else address

    @property
    def is_heard(self) -> bool:
        """Whether there is a manager."""
        return self._address.startswith(("/", "\0"))

    def ready(self, status: str = "") -> None:
        """The daemon answers requests; after a reload too."""
        self._send("READY=1", f"STATUS={_one_line(status)}")

    def status(self, status: str) -> None:
        """One line for ``systemctl status``."""
        self._send(f"STATUS={_one_line(status)}")

    def reloading(self) -> None:
        """A reload begins; ``ready`` ends it. The time stamp is what ``Type=notify-reload`` needs."""
        self._send("RELOADING=1", f"MONOTONIC_USEC={time.clock_gettime_ns(time.CLOCK_MONOTONIC) // 1000}")

    def stopping(self) -> None:
        """The daemon ends on purpose."""
        self._send("STOPPING=1")

    def watchdog(self) -> None:
        """The daemon makes progress."""
        self._send("WATCHDOG=1")

    def _send(self, *lines: str) -> None:
        if not self.is_heard:
            return
        message = "\n".join(lines).encode(errors="replace")
        try:
            with socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM) as manager:
                manager.settimeout(_TIMEOUT_S)
                manager.sendto(message, self._address)
        except OSError:
            return  # a manager that does not listen is no reason to fail


def watchdog_interval_s(environ: Mapping[str, str]) -> float | None:
    """How often to call ``Notifier.watchdog``, in seconds: half the time-out of the manager. None: it has none."""
    limit = environ.get("WATCHDOG_USEC", "")
    meant_for = environ.get("WATCHDOG_PID", "")
    if meant_for not in {"", str(os.getpid())}:
        return None
    return int(limit) / 2_000_000 if limit.isascii() and limit.isdecimal() and int(limit) > 0 else None


def _one_line(status: str) -> str:
    """The status on one line: a line end would begin another assignment."""
    return " ".join(status.split())
