"""What is installed, and how it differs from what would be."""

import stat
from collections.abc import Sequence
from pathlib import Path
from typing import Literal

import msgspec

from memd.ctl.service.supervisor import ServiceUnit, Supervisor
from memd.ctl.service.written_by import author

State = Literal["missing", "current", "outdated", "edited", "foreign", "unreadable"]
"""Of a file: not there; as it would be written; as memd wrote it, for something else; changed since; not memd's; unknown."""

_MOST_BYTES = 1 << 20


class InstalledUnits(msgspec.Struct, frozen=True, kw_only=True):
    """A file of the service, as it is on the disk."""

    path: Path
    state: State
    differing: tuple[str, ...] = ()  # the names of settings
    reason: str = ""  # why it cannot be read
    text: str = ""

    @property
    def is_ours(self) -> bool:
        """Whether memd may replace and remove it."""
        return self.state in {"current", "outdated"}


def look(supervisor: Supervisor, wanted: Sequence[ServiceUnit]) -> tuple[InstalledUnits, ...]:
    """All files that an installation may consist of, the one that holds the command first.

    Args:
        supervisor: Whose files.
        wanted: What would be written. One that would not be, and is there, is out of date.
    """
    texts = {unit.path: unit.text for unit in wanted}
    return tuple(_look(supervisor, path, texts.get(path)) for path in supervisor.unit_paths())


def _look(supervisor: Supervisor, path: Path, wanted: str | None) -> InstalledUnits:
    try:
        # A link to /dev/null is how systemd masks a unit.
        status = path.stat()
        if not stat.S_ISREG(status.st_mode) or status.st_size > _MOST_BYTES:
            return InstalledUnits(path=path, state="foreign")
        text = path.read_text("utf-8")
    except FileNotFoundError:
        dangling = path.is_symlink()
        return InstalledUnits(path=path, state="foreign" if dangling else "missing")
    except UnicodeDecodeError:
        return InstalledUnits(path=path, state="foreign")
    except OSError as error:
        return InstalledUnits(path=path, state="unreadable", reason=error.strerror or str(error))
    if text == wanted:
        return InstalledUnits(path=path, state="current", text=text)
    differing = supervisor.differing(text, wanted or "")
    states: dict[str, State] = {"memd": "outdated", "edited": "edited", "other": "foreign"}
    return InstalledUnits(path=path, state=states[author(text)], differing=differing, text=text)
