"""From what happens on the disk to marks: what is seen as it happens, and what has to be looked for."""

import asyncio
from collections.abc import AsyncGenerator, Callable
from contextlib import aclosing

from memd.indexing.changes.pending import Dirty
from memd.indexing.changes.poll import Look, PollPace, Unseen, poll
from memd.watch.watcher import Changed, Event, Rescan, WatcherHealth


async def follow(
    events: AsyncGenerator[Event, None],
    dirty: Dirty,
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
    unseen = Unseen()
    async with asyncio.TaskGroup() as tasks:
        tasks.create_task(poll(unseen, dirty, look, pace=pace or PollPace()))
        async with aclosing(events):
            async for event in events:
                match event:
                    case Changed():
                        dirty.mark(event.paths)
                    case Rescan():
                        dirty.mark_all()
                    case WatcherHealth():
                        tell(event)
                        unseen.be(event.unseen)
