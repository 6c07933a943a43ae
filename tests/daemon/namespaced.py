"""A real daemon with mounts and limits of its own: nothing of them is left when it has ended."""

import subprocess
from pathlib import Path

from tests.daemon.process import Daemon

_LIMITS = "/proc/sys/user"


class Namespaced(Daemon):
    """A daemon in a user and a mount namespace, where it is root whoever started it."""

    @property
    def command(self) -> list[str]:
        """What starts it."""
        return ["unshare", "--user", "--map-root-user", "--mount", *super().command]

    def inside(self, *command: str | Path) -> None:
        """Run a command where the daemon is."""
        into = ["nsenter", "--target", str(self.process.pid), "--user", "--mount", "--preserve-credentials"]
        subprocess.run([*into, *map(str, command)], check=True, timeout=20)

    def as_seen(self, path: Path) -> Path:
        """Where this process finds what the daemon finds at a path."""
        return Path(f"/proc/{self.process.pid}/root") / path.relative_to("/")

    def limit(self, name: str, value: int) -> None:
        """Set a limit of the daemon's user namespace, as one of fs.inotify would for the whole user.

        Args:
            name: Of a file in /proc/sys/user.
            value: The new limit.
        """
        self.inside("sh", "-c", f"echo {value} > {_LIMITS}/{name}")
