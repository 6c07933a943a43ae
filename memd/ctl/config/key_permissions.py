"""Which files that hold keys others may read."""

import stat
from collections.abc import Iterator
from pathlib import Path

from memd.config.settings import Config


def exposed(config: Config) -> Iterator[tuple[Path, int]]:
    """Files with a key in them that not only their owner may read, and their modes."""
    agents = config.agents.values()
    in_file = any(agent.remote.api_key or agent.remote.headers for agent in agents)
    files = [config.file] if in_file and config.file is not None else []
    named = dict.fromkeys(Path(agent.remote.api_key_file) for agent in agents if agent.remote.api_key_file)
    for file in (*files, *named):
        try:
            mode = stat.S_IMODE(file.stat().st_mode)
        except OSError:  # what cannot be read is told elsewhere
            continue
        if mode & (stat.S_IRGRP | stat.S_IROTH):
            yield file, mode
