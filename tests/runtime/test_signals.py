import asyncio
import os
import signal

from memd.runtime.signals import SignalAction, Signals


async def test_wishes_come_in_their_order() -> None:
    """SIGHUP asks for a reload, SIGTERM and SIGINT for the end."""
    signals = Signals(asyncio.get_running_loop())
    for number, wish in (
        (signal.SIGHUP, SignalAction.RELOAD),
        (signal.SIGTERM, SignalAction.STOP),
        (signal.SIGINT, SignalAction.STOP),
    ):
        os.kill(os.getpid(), number)
        async with asyncio.timeout(60):
            assert await signals.next() is wish


async def test_a_stop_is_heard_before_anybody_asks() -> None:
    """What is to happen at once on a stop happens at once, and not on a reload; several reloads are one."""
    heard: list[str] = []
    stopping = asyncio.Event()

    def on_stop() -> None:
        heard.append("stop")
        stopping.set()

    signals = Signals(asyncio.get_running_loop(), on_stop)
    for number in (signal.SIGHUP, signal.SIGHUP, signal.SIGTERM):
        os.kill(os.getpid(), number)
    async with asyncio.timeout(60):
        await stopping.wait()
        assert heard == ["stop"]
        assert await signals.next() is SignalAction.STOP
