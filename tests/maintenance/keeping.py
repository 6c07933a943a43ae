"""A maintenance task as an agent keeps it running."""

from random import Random

from memd.maintenance.loop import FIRST_WAIT_S, BackgroundTask, BackgroundTasks


async def keep(task: BackgroundTask, *, first_wait_s: float = FIRST_WAIT_S) -> None:
    """Run a task whenever it is due, for ever."""
    await BackgroundTasks("main", Random(1), first_wait_s=first_wait_s).keep(task)
