"""Embeds questions on a thread in the daemon, with its own copy of the model."""

import asyncio
from collections.abc import Callable
from typing import Generic, TypeVar

import structlog

from memd.providers.provider import EmbedUnavailable
from memd.runtime.threads import ResourceShortage, Threads

log = structlog.get_logger()

Model = TypeVar("Model")
Answer = TypeVar("Answer")

SLOW_S = 2.0  # a question takes 6 ms, and tenths of a second on a busy machine
STUCK_S = 10.0
REPLACED = 2  # threads that may be abandoned: each keeps its copy of the model, and perhaps a core


class QueryThread(Generic[Model]):
    """Runs one question at a time on a thread with its model.

    A thread cannot be ended from outside. A stuck one is abandoned, and another thread with its own model answers later questions.
    After some of these the model must be at fault, and questions fail at once. A thread that still loads its model is not stuck:
    another one would load it from the same slow disk.
    """

    def __init__(
        self,
        load: Callable[[], Model],
        *,
        slow_s: float = SLOW_S,
        stuck_s: float = STUCK_S,
        wait_s: float = SLOW_S,
    ) -> None:
        """Create the object without a thread; the first question starts one, which loads the model.

        Args:
            load: Loads the model; called on the thread that uses it.
            slow_s: Callers do not wait for a running question that has taken longer.
            stuck_s: A question that takes longer is considered stuck.
            wait_s: The longest wait for an answer.
        """
        self._load = load
        self._slow_s = slow_s
        self._stuck_s = stuck_s
        self._wait_s = wait_s
        self._given_up = 0
        self._thread: _ModelThread[Model] = _ModelThread()

    async def ask(self, use: Callable[[Model], Answer]) -> Answer:
        """Call `use` with the model on a thread, and return its result; the call continues if the caller is cancelled.

        Raises:
            EmbedUnavailable: an earlier question or this one takes too long, the model is still being loaded, or no thread can be
                started.
        """
        thread = self._thread
        busy_s = thread.threads.busy_s()
        if busy_s > self._stuck_s and self._given_up < REPLACED and not thread.is_loading:
            self._given_up += 1
            thread = self._thread = _ModelThread()
            log.error("embed.question_stuck", stuck_s=round(busy_s, 1), times=self._given_up)
        elif busy_s > self._slow_s:
            raise EmbedUnavailable(self._why(thread, busy_s))
        try:
            # The caller sends one question at a time: waiting on would block all later ones.
            async with asyncio.timeout(self._wait_s):
                return await thread.threads.run(thread.answered, self._load, use)
        except TimeoutError as late:
            raise EmbedUnavailable(self._why(thread, max(self._wait_s, thread.threads.busy_s()))) from late
        except ResourceShortage as failure:
            raise EmbedUnavailable(str(failure)) from failure

    def _why(self, thread: "_ModelThread[Model]", busy_s: float) -> str:
        if thread.is_loading:
            return f"The bundled model has been loading for {busy_s:.0f} s."
        still = f"The bundled model has been at one question for {busy_s:.0f} s"
        return f"{still}: restart memd." if self._given_up == REPLACED else f"{still}."

    def forget(self) -> None:
        """Drop the model; a running question ends normally."""
        self._thread = _ModelThread()


class _ModelThread(Generic[Model]):
    """A thread with its model."""

    def __init__(self) -> None:
        self._model: Model | None = None  # used by the thread only
        self.is_loading = False  # set by the thread
        self.threads = Threads(1, "memd-question")

    def answered(self, load: Callable[[], Model], use: Callable[[Model], Answer]) -> Answer:
        if self._model is None:
            self.is_loading = True
            try:
                self._model = load()
            finally:
                self.is_loading = False
        return use(self._model)
