"""Turns signals and requests of clients into a stream of actions: reload, stop."""

import asyncio
import signal
from collections.abc import Callable
from enum import Enum, auto


class SignalAction(Enum):
    """What a signal, or a client, asks the daemon to do."""

    STOP = auto()  # SIGTERM, SIGINT
    RELOAD = auto()  # SIGHUP


class Signals:
    """The requested actions, in the order of their arrival."""

    def __init__(self, loop: asyncio.AbstractEventLoop, on_stop: Callable[[], None] | None = None) -> None:
        """Listen from now on; call it on the loop of the main thread.

        Args:
            loop: Of the main thread.
            on_stop: Called as soon as a stop is requested, whether or not a task waits for the next action.
        """
        self._wishes: asyncio.Queue[SignalAction] = asyncio.Queue()
        self._on_stop = on_stop
        for number, wish in (
            (signal.SIGTERM, SignalAction.STOP),
            (signal.SIGINT, SignalAction.STOP),
            (signal.SIGHUP, SignalAction.RELOAD),
        ):
            loop.add_signal_handler(number, self.want, wish)

    def want(self, wish: SignalAction) -> None:
        """Request an action after those that wait."""
        self._wishes.put_nowait(wish)
        if wish is SignalAction.STOP and self._on_stop is not None:
            self._on_stop()

    async def next(self) -> SignalAction:
        """Wait for the next action; several reloads in a row are one."""
        wish = await self._wishes.get()
        while wish is SignalAction.RELOAD and not self._wishes.empty():
            wish = self._wishes.get_nowait()
        return wish
