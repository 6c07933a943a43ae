"""The files of a service: their templates, memd's signature in them, and how installed ones differ from wanted ones."""

import hashlib
import re
import stat
from collections.abc import Sequence
from importlib import resources
from pathlib import Path
from typing import Literal

import msgspec

import memd
from memd.ctl.failures import Failed
from memd.ctl.service.supervisor import ServiceUnit, Supervisor


def template(name: str) -> str:
    """The text of a unit, by its path below the project: ``systemd/memd.service``.

    A wheel has them beside the code. An installation that runs from a clone has them where they are in the clone.

    Raises:
        Failed: it is in neither place.
    """
    packaged = resources.files("memd") / "units" / name
    if packaged.is_file():
        return packaged.read_text("utf-8")
    cloned = Path(memd.__path__[0]).parent / name
    try:
        return cloned.read_text("utf-8")
    except OSError as error:
        raise Failed(
            "broken_installation",
            f"This installation of memd lacks {name}: it is neither in {packaged} nor at {cloned}.",
            "Install it anew: pip install --force-reinstall memd-daemon",
        ) from error


Author = Literal["memd", "edited", "other"]
"""Of a file: as memd wrote it, changed since, or never written by memd."""

_WORDS = "Written by memd-ctl service install; sha256 of the other lines:"
_MARK = re.compile(rf"^.*{re.escape(_WORDS)} ([0-9a-f]{{64}}).*\n", re.MULTILINE)


def marked(text: str, *, opening: str = "# ", closing: str = "", line: int = 0) -> str:
    """A text with the mark in it.

    Args:
        text: Lines, each with its end.
        opening: What begins a comment.
        closing: What ends one.
        line: How many lines stay before it.
    """
    lines = text.splitlines(keepends=True)
    lines.insert(line, f"{opening}{_WORDS} {_digest(text)}{closing}\n")
    return "".join(lines)


def author(text: str) -> Author:
    """Whether memd wrote a text, and whether it is unchanged since."""
    found = _MARK.search(text)
    if found is None:
        return "other"
    rest = text[: found.start()] + text[found.end() :]
    return "memd" if _digest(rest) == found.group(1) else "edited"


def _digest(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


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
