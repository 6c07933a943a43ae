"""Embeds questions on a thread in the daemon, with a copy of the model that a question may get stuck in."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from memd.embed.provider import EmbedUnavailable
from memd.threads import Starved, Threads

log = structlog.get_logger()

Model = TypeVar("Model")
Answer = TypeVar("Answer")

SLOW_S = 2.0  # a question takes 6 ms, and tenths of a second beside very busy programs
STUCK_S = 10.0
REPLACED = 2  # threads that may be given up: each keeps its copy of the model, and perhaps a core


class Questions(Generic[Model]):
    """One question at a time, each on the thread and the model of this moment.

    A thread cannot be ended from outside. One that is stuck is given up, and another one with a model of its own answers
    the next questions; after some of them it is the model that is at fault, and nobody waits for it any more.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        *,
        slow_s: float = SLOW_S,
        stuck_s: float = STUCK_S,
        wait_s: float = SLOW_S,
    ) -> None:
        """Nothing is loaded yet.

        Args:
            load: Gives a model; called on the thread that uses it.
            slow_s: Nobody waits behind a question that has taken longer.
            stuck_s: One that takes longer is never answered.
            wait_s: Nobody waits for an answer for longer.
        """
        self._load = load
        self._slow_s = slow_s
        self._stuck_s = stuck_s
        self._wait_s = wait_s
        self._given_up = 0
        self._seat = _Seat(load)

    async def ask(self, use: Callable[[Model], Answer]) -> Answer:
        """What use gives for the model; it runs on a thread, also when nobody waits for it any more.

        Raises:
            EmbedUnavailable: the model is at another question, and has been for long, or at this one; or no thread can
                be started.
        """
        busy_s = self._seat.threads.busy_s()
        if busy_s > self._stuck_s and self._given_up < REPLACED:
            self._given_up += 1
            self._seat = _Seat(self._load)
            log.error("embed.question_stuck", stuck_s=round(busy_s, 1), times=self._given_up)
        elif busy_s > self._slow_s:
            raise EmbedUnavailable(self._why(busy_s))
        seat = self._seat
        try:
            # Who asks puts one question at a time: waiting on would keep all later ones from here for ever.
            async with asyncio.timeout(self._wait_s):
                return await seat.threads.run(seat.answered, use)
        except TimeoutError as late:
            raise EmbedUnavailable(self._why(max(self._wait_s, seat.threads.busy_s()))) from late
        except Starved as failure:
            raise EmbedUnavailable(str(failure)) from failure

    def _why(self, busy_s: float) -> str:
        still = f"The bundled model has been at one question for {busy_s:.0f} s"
        return f"{still}: restart memd." if self._given_up == REPLACED else f"{still}."

    def forget(self) -> None:
        """Let go of the model; a question that is under way comes to its end."""
        self._seat = _Seat(self._load)


class _Seat(Generic[Model]):
    """A thread with its model."""

    def __init__(self, load: Callable[[], Model]) -> None:
        self._load = load
        self._model: Model | None = None  # touched on the thread alone
        self.threads = Threads(1, "memd-question")

    def answered(self, use: Callable[[Model], Answer]) -> Answer:
        if self._model is None:
            self._model = self._load()
        return use(self._model)
