"""A real daemon with mounts and limits of its own: nothing of them is left when it has ended."""

import ctypes
import os
import subprocess
from collections.abc import Callable
from functools import partial
from pathlib import Path

from tests.daemon.process import Daemon
from tests.wait import until

_LIMITS = "/proc/sys/user"
_CLONE_NEWNS, _CLONE_NEWUSER, _MS_REC, _MS_PRIVATE = (
    0x20000,
    0x10000000,
    0x4000,
    0x40000,
)  # <sched.h>, <sys/mount.h>


class Namespaced(Daemon):
    """A daemon in a user and a mount namespace, where it is root whoever started it."""

    @property
    def forked(self) -> Callable[[], int] | None:
        """It enters its namespaces, and runs."""
        main = super().forked
        return None if main is None else partial(_apart, main)

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


def _apart(main: Callable[[], int]) -> int:
    """Run in a user and a mount namespace of its own, as `unshare --user --map-root-user --mount` does."""
    user, group = os.geteuid(), os.getegid()
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.unshare(_CLONE_NEWUSER | _CLONE_NEWNS):
        raise OSError(ctypes.get_errno(), "unshare")
    for name, text in (("setgroups", "deny"), ("uid_map", f"0 {user} 1"), ("gid_map", f"0 {group} 1")):
        Path("/proc/self", name).write_text(text, encoding="ascii")
    if libc.mount(b"none", b"/", None, _MS_REC | _MS_PRIVATE, None):
        raise OSError(ctypes.get_errno(), "mount")
    return main()
