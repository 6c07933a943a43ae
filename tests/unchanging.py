"""A configuration that is never reloaded."""

from memd.config.reload import Configuration
from memd.config.settings import Config, DaemonSettings

_EMPTY = Config(daemon=DaemonSettings(), agents={}, file=None)


def unchanging(config: Config = _EMPTY) -> Configuration:
    """Return a Configuration with fixed settings."""

    async def applied(old: Config, new: Config) -> None:
        assert old == new

    return Configuration(config, lambda: config, lambda: (), applied)


async def nothing_changed() -> tuple[str, ...]:
    """Return the result of a reload that changes nothing."""
    return ()
