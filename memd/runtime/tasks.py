"""Functions that asyncio lacks: wait for the first of several awaitables, and tell whose cancellation a CancelledError is."""

import asyncio
from collections.abc import Awaitable


async def first_of(*waits: Awaitable[object]) -> None:
    """Wait until the first awaitable is done, and cancel the others.

    Raises:
        Whatever the first one raised.
    """
    tasks = [asyncio.ensure_future(wait) for wait in waits]
    try:
        done, _ = await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        for task in done:
            task.result()
    finally:
        for task in tasks:
            task.cancel()
        await asyncio.wait(tasks)


def is_cancelled() -> bool:
    """Whether the current task itself was cancelled, when it meets a CancelledError: else what it waited for was."""
    task = asyncio.current_task()
    return task is not None and task.cancelling() > 0
