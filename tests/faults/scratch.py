"""The scratch directory of a daemon that a test kills."""

from pathlib import Path

import msgspec


class ScratchDirectory(msgspec.Struct, frozen=True):
    """A scratch directory with the state of a daemon."""

    directory: Path  # short enough for a socket

    @property
    def state(self) -> Path:
        """Where the daemon keeps what is its own."""
        return self.directory / "state"

    @property
    def socket(self) -> Path:
        """Where it listens."""
        return self.directory / "s"

    @property
    def log(self) -> Path:
        """What the daemons printed."""
        return self.directory / "log"

    @property
    def marker(self) -> Path:
        """Where a daemon tells where it stopped."""
        return self.directory / "marker"
