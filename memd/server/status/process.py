"""What status says of the process."""

import os
import time
from pathlib import Path

from memd.config.reload import Configuration
from memd.config.reload_policy import digest
from memd.maintenance.loop import BackgroundTasks
from memd.memory_limit.limit import MB, MemoryLimit, MemoryStatus
from memd.store.embedding_cache import EmbeddingStore
from memd_client import messages as wire


class ProcessFacts:
    """What is true of the process, whatever the agents do."""

    def __init__(
        self,
        version: str,
        socket: Path,
        configuration: Configuration,
        *,
        cache: EmbeddingStore | None = None,
        memory: MemoryLimit | None = None,
        background: BackgroundTasks | None = None,
    ) -> None:
        self.version = version
        self.cache = cache
        self._socket = socket
        self._configuration = configuration
        self._memory = memory
        self._background = background
        self._started = time.monotonic()

    @property
    def config(self) -> str | None:
        """The configuration file in use; None: built-in defaults."""
        file = self._configuration.in_force.file
        return None if file is None else str(file)

    @property
    def _cache_trouble(self) -> str | None:
        trouble = None if self.cache is None else self.cache.trouble
        return trouble or (None if self._background is None else self._background.reason)

    def report(self, agents: dict[str, wire.AgentStatus]) -> wire.StatusReport:
        """The reply to a Status request."""
        return wire.StatusReport(
            version=self.version,
            protocol=wire.PROTOCOL,
            pid=os.getpid(),
            uptime_s=round(time.monotonic() - self._started, 1),
            socket=str(self._socket),
            config=self.config,
            agents=agents,
            config_error=self._configuration.error,
            config_waiting=list(self._configuration.waiting),
            config_digest=digest(self._configuration.in_force),
            cache=health(self._cache_trouble),
            damaged=[] if self.cache is None else [str(file) for file in self.cache.damaged_files()],
            memory=None if self._memory is None else _memory(self._memory.standing()),
        )


def _memory(standing: MemoryStatus | None) -> wire.Memory | None:
    if standing is None:
        return None
    return wire.Memory(
        daemon_mb=round(standing.daemon / MB, 1),
        worker_mb=round(standing.workers / MB, 1),
        limit_mb=standing.limit // MB,
        trouble=standing.trouble,
    )


def health(trouble: str | None) -> wire.Health:
    """Health of a part; trouble is why it does not work, None: it does."""
    return wire.Health(ok=trouble is None, reason=trouble)
