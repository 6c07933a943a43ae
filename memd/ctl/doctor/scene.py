"""Where a checkup takes place."""

import shlex
from collections.abc import Mapping
from pathlib import Path

import msgspec

from memd.ctl.call import Places
from memd.ctl.output.humanize import shown


class Scene(msgspec.Struct, frozen=True, kw_only=True):
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
