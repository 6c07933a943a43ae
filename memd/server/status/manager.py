"""What the service manager is told while the daemon runs: one line of status, and that the event loop is alive."""

import asyncio

from memd.agent.agents import Agents
from memd.runtime.sd_notify import Notifier
from memd.runtime.ticks import until_next_tick_s


async def tell_manager(notifier: Notifier, agents: Agents, watchdog_s: float | None) -> None:
    """Tell the service manager, where there is one, what goes on, and that the loop runs."""
    if not notifier.is_heard:
        return
    said = ""
    while True:
        indexing = [
            f"{agent.id} {agent.sync.progress[0]}/{agent.sync.progress[1]}"
            for agent in agents.all().values()
            if agent.sync.progress
        ]
        status = f"indexing {', '.join(indexing)}" if indexing else "ready"
        if status != said:
            notifier.status(status)
            said = status
        if watchdog_s is not None:
            notifier.watchdog()
        beat_s = min(watchdog_s or 2.0, 2.0)
        await asyncio.sleep(until_next_tick_s(asyncio.get_running_loop().time(), beat_s))
