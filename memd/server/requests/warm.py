"""Answers `warm`: has the index brought up to date once before a session begins."""

from memd.server.requests.caller import Caller
from memd.server.requests.sync import RequestDeadline, sync_report
from memd_client import messages as wire

WARM_MS = 5000  # a session does not wait for longer before it begins
WARM_KEYS = 10_000  # session keys that are remembered as warmed


class WarmedSessions:
    """The sessions whose agents were brought up to date, by (agent, session key); the oldest are forgotten."""

    def __init__(self) -> None:
        self._warmed: dict[tuple[str, str], None] = {}  # in the order they came

    async def warm(self, request: wire.Warm, caller: Caller) -> wire.SyncReport:
        """Look at the disk for a session that asks for the first time; others are told no numbers."""
        allowed = await caller.agent(request.agent)
        if allowed is None:
            return wire.SyncReport()
        agent, key = allowed.agent, (allowed.agent.id, request.session_key)
        passes = None
        if key not in self._warmed:
            passes = await RequestDeadline(WARM_MS).gather(agent.sync.settled(agent.sync.request()))
            self._warmed[key] = None
            while len(self._warmed) > WARM_KEYS:
                del self._warmed[next(iter(self._warmed))]
        return await sync_report([agent], passes or ()) if allowed.granted.direct else wire.SyncReport()
