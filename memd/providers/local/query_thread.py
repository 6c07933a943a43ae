"""Embeds questions on a thread in the daemon, with a copy of the model that a question may get stuck in."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from memd.providers.provider import EmbedUnavailable
from memd.runtime.threads import ResourceShortage, Threads

log = structlog.get_logger()

Model = TypeVar("Model")
Answer = TypeVar("Answer")

SLOW_S = 2.0  # a question takes 6 ms, and tenths of a second beside very busy programs
STUCK_S = 10.0
REPLACED = 2  # threads that may be given up: each keeps its copy of the model, and perhaps a core


class QueryThread(Generic[Model]):
    """One question at a time, each on the thread and the model of this moment.

    A thread cannot be ended from outside. One that is stuck is given up, and another one with a model of its own answers
    the next questions; after some of them it is the model that is at fault, and nobody waits for it any more. A thread that
    still loads its model is not stuck: another one would load it from the same slow disk.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        *,
        slow_s: float = SLOW_S,
        stuck_s: float = STUCK_S,
        wait_s: float = SLOW_S,
    ) -> None:
        """Start no thread: the first question does, and loads the model.

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
        self._seat: _Seat[Model] = _Seat()

    async def ask(self, use: Callable[[Model], Answer]) -> Answer:
        """What use gives for the model; it runs on a thread, also when nobody waits for it any more.

        Raises:
            EmbedUnavailable: the model is at another question, and has been for long, or at this one; or it is still
                being loaded; or no thread can be started.
        """
        seat = self._seat
        busy_s = seat.threads.busy_s()
        if busy_s > self._stuck_s and self._given_up < REPLACED and not seat.is_loading:
            self._given_up += 1
            seat = self._seat = _Seat()
            log.error("embed.question_stuck", stuck_s=round(busy_s, 1), times=self._given_up)
        elif busy_s > self._slow_s:
            raise EmbedUnavailable(self._why(seat, busy_s))
        try:
            # Who asks puts one question at a time: waiting on would keep all later ones from here for ever.
            async with asyncio.timeout(self._wait_s):
                return await seat.threads.run(seat.answered, self._load, use)
        except TimeoutError as late:
            raise EmbedUnavailable(self._why(seat, max(self._wait_s, seat.threads.busy_s()))) from late
        except ResourceShortage as failure:
            raise EmbedUnavailable(str(failure)) from failure

    def _why(self, seat: "_Seat[Model]", busy_s: float) -> str:
        if seat.is_loading:
            return f"The bundled model has been loading for {busy_s:.0f} s."
        still = f"The bundled model has been at one question for {busy_s:.0f} s"
        return f"{still}: restart memd." if self._given_up == REPLACED else f"{still}."

    def forget(self) -> None:
        """Let go of the model; a question that is under way comes to its end."""
        self._seat = _Seat()


class _Seat(Generic[Model]):
    """A thread with its model."""

    def __init__(self) -> None:
        self._model: Model | None = None  # touched on the thread alone
        self.is_loading = False  # set on the thread
        self.threads = Threads(1, "memd-question")

    def answered(self, load: Callable[[], Model], use: Callable[[Model], Answer]) -> Answer:
        if self._model is None:
            self.is_loading = True
            try:
                self._model = load()
            finally:
                self.is_loading = False
        return use(self._model)
