"""A real user manager of systemd, in namespaces and a control group of its own: nothing is left when it has ended."""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

from tests.ctl.conftest import Ran
from tests.ctl.real import TIMEOUT_S
from tests.daemon.process import ROOT
from tests.wait import until

_CGROUPS = Path("/sys/fs/cgroup")
_HOME, _PREFIX, _SOURCES = Path("/srv/home"), Path("/srv/memd"), Path("/srv/sources")
# A manager runs only where the system has been booted with systemd, which /run/systemd/system tells. It may not be the first
# process of its namespace. The home, the installation and the sources of an editable one are not below /tmp, of which a
# hardened service has one of its own.
_INSIDE = f"""
set -e
for group in $GROUPS; do echo 0 > $group/cgroup.procs; done
mount --make-rprivate /
mount --make-rshared /
mount -t tmpfs none /run
mkdir -p /run/systemd/system /run/systemd/unit-root /run/user/0
chmod 700 /run/user/0
mount -t tmpfs none /srv
mkdir {_HOME} {_PREFIX} {_SOURCES}
mount --bind "$HOME" {_HOME}
mount --bind "$PREFIX" {_PREFIX}
mount --bind "$SOURCES" {_SOURCES}
touch /run/console; mount --bind /run/console /dev/console; cd /
export XDG_RUNTIME_DIR=/run/user/0 HOME={_HOME} PYTHONPATH={_SOURCES}:{_SOURCES}/client
/lib/systemd/systemd --user --log-target=console
"""


class UserManager:
    """A user who is logged in, with a home directory and the service manager."""

    def __init__(self, home: Path, process: "subprocess.Popen[bytes]") -> None:
        self.home = home
        self.seen_home = _HOME  # as that user finds it
        self.units = home / ".config" / "systemd" / "user"
        self.state = home / ".local" / "state" / "memd"
        self._process = process
        kept = {name: os.environ[name] for name in ("PATH", "LANG") if name in os.environ}
        self.environ: Mapping[str, str] = {**kept, "HOME": str(_HOME), "XDG_RUNTIME_DIR": "/run/user/0"}

    def answers(self) -> bool:
        """Whether the manager takes orders."""
        inside = self._find_inside()
        return inside is not None and self.run("systemctl", "--user", "is-system-running").code == 0

    def run(self, *words: str) -> Ran:
        """Run a command as that user."""
        into = ["nsenter", "--target", str(self._find_inside()), "--mount", "--pid", "--", *words]
        done = subprocess.run(into, env=self.environ, capture_output=True, timeout=TIMEOUT_S, check=False)
        return Ran(done.returncode, done.stdout.decode(), done.stderr.decode())

    def ctl(self, *words: str) -> Ran:
        """Run memd-ctl as that user."""
        return self.run(f"{_PREFIX}/bin/python3", "-m", "memd.ctl", *words)

    def data(self, *words: str) -> Any:
        """What a command of memd-ctl gives as JSON, whatever its exit status."""
        ran = self.ctl(*words, "--json")
        answer = json.loads(ran.out)
        assert answer["ok"], ran
        return answer["data"]

    def shown(self, unit: str, name: str) -> str:
        """A property of a unit."""
        return self.run("systemctl", "--user", "show", unit, f"--property={name}", "--value").out.strip()

    def seen(self, path: str) -> Path:
        """Where this process finds what that user finds at a path."""
        return Path(f"/proc/{self._find_inside()}/root") / path.removeprefix("/")

    def _find_inside(self) -> int | None:
        """The first process of its namespaces."""
        pid = self._process.pid
        children = Path(f"/proc/{pid}/task/{pid}/children").read_text(encoding="ascii").split()
        return int(children[0]) if children else None


@contextmanager
def user_manager(directory: Path) -> Iterator[UserManager]:
    """A user manager with an empty home directory below a short path."""
    assert os.getuid() == 0, "only root may make namespaces with a /run of their own"
    home = directory / "home"
    home.mkdir()
    groups = _groups(f"memd-test-{os.getpid()}")
    with (directory / "manager.log").open("wb") as log:
        process = subprocess.Popen(
            ["unshare", "--mount", "--pid", "--fork", "--mount-proc", "--kill-child", "sh", "-c", _INSIDE],
            env={
                "PATH": os.environ["PATH"],
                "HOME": str(home),
                "PREFIX": sys.prefix,
                "SOURCES": str(ROOT),
                "GROUPS": " ".join(map(str, groups)),
            },
            stdin=subprocess.DEVNULL,
            stdout=log,
            stderr=log,
        )
    try:
        manager = UserManager(home, process)
        try:
            until(manager.answers, 30)
        except AssertionError:
            raise AssertionError((directory / "manager.log").read_text("utf-8", "replace")) from None
        yield manager
    finally:
        process.kill()
        process.wait(60)
        for group in groups:
            _remove(group)


def _groups(name: str) -> list[Path]:
    """A control group of that name in each hierarchy that takes processes."""
    made = []
    for hierarchy in (_CGROUPS, *sorted(_CGROUPS.iterdir())):
        if (hierarchy / "cgroup.procs").exists() and hierarchy.name != "cpuset":
            with suppress(OSError):
                (hierarchy / name).mkdir()
                made.append(hierarchy / name)
    return made


def _remove(group: Path) -> None:
    """Remove a control group with all that are in it, once its last process is gone."""

    def is_removed() -> bool:
        for directory, _, _ in os.walk(group, topdown=False):
            with suppress(OSError):
                Path(directory).rmdir()
        return not group.exists()

    until(is_removed, 20)
