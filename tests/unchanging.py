"""A configuration whose file nobody reads again."""

from memd.config.reload import Configuration
from memd.config.settings import Config, DaemonSettings

_EMPTY = Config(daemon=DaemonSettings(), agents={}, file=None)


def unchanging(config: Config = _EMPTY) -> Configuration:
    """What is in force, and stays so."""

    async def applied(old: Config, new: Config) -> None:
        assert old == new

    return Configuration(config, lambda: config, lambda: (), applied)


async def nothing_changed() -> tuple[str, ...]:
    """What a reload of it comes to."""
    return ()
