"""Finds out whether a configured path that is a symlink, or lies behind one, leads elsewhere than when the roots were made."""

import os
from collections.abc import Mapping
from pathlib import Path

import msgspec


class ChangedLink(msgspec.Struct, frozen=True):
    """A configured path that leads elsewhere than when the roots were made, or nowhere."""

    path: Path  # as configured
    before: Path  # where it led
    now: Path | None  # where it leads; None: nothing exists there

    def __str__(self) -> str:
        if self.now is None:
            return f"{self.path} leads nowhere now; what it led to before, {self.before}, is still searched"
        return f"{self.path} leads to {self.now} now, no longer to {self.before}: the agent is being started again with it"


class RootLinks:
    """The configured paths to follow when they lead elsewhere.

    A path is followed if it was a symlink, lay behind one or did not exist when the roots were made. One that was a directory
    then and was replaced by a symlink later is not: whoever may write above it could move the root.
    """

    def __init__(self, places: Mapping[Path, Path]) -> None:
        """Start with the paths as they were resolved.

        Args:
            places: Configured path -> where it led.
        """
        self._places = dict(places)
        self.changed: ChangedLink | None = None  # as the last look found it
        self.all_changed: tuple[ChangedLink, ...] = ()  # likewise

    def __bool__(self) -> bool:
        return bool(self._places)

    @property
    def is_moved(self) -> bool:
        """Whether the last look found a path that leads to another existing place, so that the roots are to be made again."""
        changed = self.changed  # read once, since a thread replaces it
        return changed is not None and changed.now is not None

    def look(self) -> None:
        """Compare where the paths lead now; may block."""
        changed = [link for path, place in self._places.items() if (link := _changed(path, place))]
        self.all_changed = tuple(changed)
        self.changed = next((link for link in changed if link.now is not None), next(iter(changed), None))


def _changed(path: Path, before: Path) -> ChangedLink | None:
    if path == before and not os.path.lexists(path):
        return None  # still missing: one system call instead of one for each directory above
    now = Path(os.path.realpath(path))
    if now == before:
        return None
    # While a symlink is being replaced, or its target is, nothing may be there for a moment.
    return ChangedLink(path, before, now if os.path.exists(now) else None)  # noqa: PTH110 - Path.exists may raise
