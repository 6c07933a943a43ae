"""A real daemon with mounts and limits of its own: nothing of them is left when it has ended."""

import subprocess
from pathlib import Path

from tests.daemon.process import Daemon
from tests.wait import until

_LIMITS = "/proc/sys/user"


class Namespaced(Daemon):
    """A daemon in a user and a mount namespace, where it is root whoever started it."""

    @property
    def command(self) -> list[str]:
        """What starts it."""
        return ["unshare", "--user", "--map-root-user", "--mount", *super().command]

    def inside(self, *command: str | Path) -> None:
        """Run a command where the daemon is."""
        assert self._succeeds(*command)

    def unmount(self, point: Path) -> None:
        """Take a mount away, as soon as the daemon does not happen to be reading below it."""
        until(lambda: self._succeeds("umount", point), 20)

    def _succeeds(self, *command: str | Path) -> bool:
        into = ["nsenter", "--target", str(self.process.pid), "--user", "--mount", "--preserve-credentials"]
        return subprocess.run([*into, *map(str, command)], check=False, timeout=60).returncode == 0

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
