"""What a check came to, and what all checks are given. Pure.

A check that could not be made counts as right and begins with "not checked": nothing is known to be wrong, and whoever
waits for an exit status of 0 (before a daemon runs, on a system without /proc) can get it. Where the reason itself is
trouble, such as a disk that does not answer or a part that crashes, the check is wrong.
"""

import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.ctl.call import Places
from memd.ctl.output.humanize import shown


class Finding(msgspec.Struct, frozen=True, kw_only=True):
    """One line of a checkup."""

    name: str  # group.check, such as state.directory or agents.main.index
    ok: bool
    detail: str
    fix: str = ""  # what to do about it, in a sentence; empty where all is well


def right(name: str, detail: str) -> Finding:
    """A passed check."""
    return Finding(name=name, ok=True, detail=detail)


def wrong(name: str, detail: str, fix: str) -> Finding:
    """A failed check, with what to do about it."""
    return Finding(name=name, ok=False, detail=detail, fix=fix)


def unchecked(name: str, why: str) -> Finding:
    """The check could not be made, which is no fault."""
    return Finding(name=name, ok=True, detail=f"not checked: {why}")


class DoctorContext(msgspec.Struct, frozen=True, kw_only=True):
    """What checks are given of the process and its user."""

    places: Places
    environ: Mapping[str, str]
    platform: str  # as in sys.platform
    uid: int
    flags: tuple[str, ...]  # of the command line, that another memd-ctl needs as well
    prefix: str  # the directory of this installation

    def ctl(self, *words: str) -> str:
        """A command line of memd-ctl for the same daemon, as a shell takes it."""
        return shlex.join(("memd-ctl", *self.flags, *words))

    def pip(self, *words: str) -> str:
        """A command line of pip for this installation."""
        return shlex.join((f"{self.prefix}/bin/pip", *words))

    def restart(self) -> str:
        """The command lines that end the daemon and start it again."""
        return f"{self.ctl('down')} && {self.ctl('up')}"

    def shown(self, path: str | Path) -> str:
        """A path for a person."""
        return shown(path, self.places.home)


def quoted(path: str | Path) -> str:
    """A path as a shell takes it."""
    return shlex.quote(str(path))
