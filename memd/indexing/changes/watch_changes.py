"""From what happens on the disk to marks: what is seen as it happens, and what has to be looked for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from memd.indexing.changes.pending import PendingChanges
from memd.indexing.changes.poll import Look, PolledPlaces, PollPace, poll
from memd.watch.watcher import Event, PathsChanged, RescanNeeded, WatcherHealth


async def follow(
    events: AsyncGenerator[Event, None],
    dirty: PendingChanges,
    look: Look,
    tell: Callable[[WatcherHealth], None],
    *,
    pace: PollPace | None = None,
) -> None:
    """Mark every change of memory, for ever.

    Args:
        events: Of watch.
        dirty: Where to mark.
        look: How to look where no events come from; see poll.
        tell: Who is told whether changes are seen.
        pace: How often to look there.
    """
    unseen = PolledPlaces()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(poll(unseen, dirty, look, pace=pace or PollPace()))
        async with aclosing(events):
            async for event in events:
                match event:
                    case PathsChanged():
                        dirty.mark(event.paths)
                    case RescanNeeded():
                        dirty.mark_all()
                    case WatcherHealth():
                        tell(event)
                        unseen.be(event.unseen)
