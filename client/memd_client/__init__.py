"""Search an agent's long-term memory: the client of memd.

    from memd_client import Client

    with Client() as memd:
        for hit in memd.search("which database did we pick?").results:
            print(hit.path, hit.start_line, hit.snippet)

AsyncClient is the same for programs with an event loop; it is imported when it is first asked for.
"""

from typing import TYPE_CHECKING

from memd_client.blocking import Client
from memd_client.conversation import __version__
from memd_client.errors import (
    ConnectionLost,
    DaemonNotRunning,
    MemdClientError,
    ProtocolMismatch,
    RequestFailed,
    TimedOut,
)
from memd_client.messages import (
    AgentStatus,
    Degraded,
    ExplainedHit,
    Explanation,
    Found,
    Health,
    Hit,
    Note,
    Pass,
    ReindexReport,
    StatusReport,
    SyncReport,
    Vectors,
)

__all__ = [
    "AgentStatus",
    "AsyncClient",
    "Client",
    "ConnectionLost",
    "DaemonNotRunning",
    "Degraded",
    "ExplainedHit",
    "Explanation",
    "Found",
    "Health",
    "Hit",
    "MemdClientError",
    "Note",
    "Pass",
    "ProtocolMismatch",
    "ReindexReport",
    "RequestFailed",
    "StatusReport",
    "SyncReport",
    "TimedOut",
    "Vectors",
    "__version__",
]

if TYPE_CHECKING:
    from memd_client.asynchronous import AsyncClient
else:  # out of sight of type checkers, which would take any misspelt name for something that this finds

    def __getattr__(name: str) -> object:
        if name == "AsyncClient":
            from memd_client.asynchronous import AsyncClient  # noqa: PLC0415  asyncio is slow

            return AsyncClient
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *__all__})
