"""Threads for one purpose: a bounded number, so that work which hangs takes nobody else's."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from concurrent.futures import Future
from functools import partial
from typing import Any, ParamSpec, TypeVar

from memd.errors import TransientError
from memd.runtime.timing import TimedCall

P = ParamSpec("P")
T = TypeVar("T")

IDLE_S = 5.0  # a thread without work ends after so long
BIRTH_S = 10.0  # a thread that has not begun after so long has died of want of memory


class _Thread(threading.Thread):
    """A thread whose start waits for nothing.

    Python's waits until the thread says that it has begun: for ever, and the event loop with it, if memory was too short for
    the thread to come so far.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._started = _Unawaited()

    @property
    def has_begun(self) -> bool:
        """Whether it runs, or has run."""
        return self._started.is_set()


class _Unawaited(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as the base class has it
        return self.is_set()


class ResourceShortage(TransientError):
    """The system does not give what work needs just now."""


class NoThread(ResourceShortage):
    """It gives no thread; the work was not begun."""


class NoMemory(ResourceShortage):
    """It gives no memory; the work was broken off."""


class Threads:
    """Runs functions that may block, so many at a time and the others in the order they came.

    A call on a network mount that is gone cannot be interrupted. Its thread is lost until the mount is back, so whoever
    can meet such a call has threads of its own. There is nothing to close: threads without work end, and none keeps the
    process from ending.
    """

    def __init__(self, limit: int, name: str, *, idle_s: float = IDLE_S, birth_s: float = BIRTH_S) -> None:
        """No thread is started yet.

        Args:
            limit: How many functions run at a time.
            name: Of the threads, for whoever looks at the process.
            idle_s: How long a thread waits for more work before it ends.
            birth_s: A thread that has not begun by then never will.
        """
        self._limit = limit
        self._name = name
        self._idle_s = idle_s
        self._birth_s = birth_s
        self._changed = threading.Condition()
        self._jobs: deque[tuple[Future[Any], Callable[[], Any]]] = deque()
        self._busy_since: dict[int, float] = {}  # thread -> when it began what it is at
        self._count = 0

    @property
    def count(self) -> int:
        """How many threads there are just now."""
        return self._count

    @property
    def is_done(self) -> bool:
        """Whether nothing runs and nothing waits."""
        with self._changed:
            return not self._jobs and not self._busy_since

    def busy_s(self) -> float:
        """How long the longest call of those under way has run; 0 where there is none."""
        with self._changed:
            began = min(self._busy_since.values(), default=None)
        return 0.0 if began is None else time.monotonic() - began

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """What fn returns, or raises. A caller that is cancelled takes back what has not begun; else it runs to its end.

        Raises:
            NoThread: the system gives no thread, and there is none that could take it; it was not begun.
            NoMemory: in place of a MemoryError of fn.
        """
        future: Future[T] = Future()
        errand = TimedCall(partial(fn, *args, **kwargs))
        job = (future, errand)
        with self._changed:
            self._jobs.append(job)
            # Those that have ended their work and are about to look for more are as good as those that wait.
            if self._count - len(self._busy_since) >= len(self._jobs):
                self._changed.notify()
            elif self._count < self._limit:
                self._begin_thread(job)
        try:
            return await asyncio.wrap_future(future)
        except asyncio.CancelledError:
            errand.give_up()
            # Behind a call that hangs, what nobody waits for any more would pile up.
            if future.cancel():
                with self._changed, contextlib.suppress(ValueError):
                    self._jobs.remove(job)
            raise

    def _begin_thread(self, job: tuple[Future[Any], Callable[[], Any]]) -> None:
        """Have one thread more; without one, those that there are do the job in their time."""
        thread = _Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        except (RuntimeError, MemoryError) as failure:  # a limit of the user, the container or the system
            if not self._count:
                self._jobs.remove(job)
                raise NoThread(
                    "no thread can be started: too many are running, or memory is short"
                ) from failure
        else:
            self._count += 1
            asyncio.get_running_loop().call_later(self._birth_s, self._have_begun, thread)

    def _have_begun(self, thread: "_Thread") -> None:
        """See to it that a thread lives: one that memory was too short for ends before it has done anything."""
        if thread.has_begun:
            return
        with self._changed:
            self._count -= 1
            if not self._jobs or self._count:
                return
            job = self._jobs[0]
            try:
                self._begin_thread(job)
            except NoThread as failure:
                job[0].set_exception(failure)

    def _work(self) -> None:
        me = threading.get_ident()
        while (job := self._next()) is not None:
            future, call = job
            deliver = _done(future, call) if future.set_running_or_notify_cancel() else None
            with self._changed:
                del self._busy_since[me]
            # Only now: whoever gets the result may have more to do, for which this thread is there.
            if deliver is not None:
                deliver()
            # An idle thread holds on to nothing of what it did last.
            del job, future, call, deliver

    def _next(self) -> tuple[Future[Any], Callable[[], Any]] | None:
        """What to do next; None where there was nothing for long enough, and the thread must end."""
        with self._changed:
            while not self._jobs:
                if not self._changed.wait(self._idle_s) and not self._jobs:
                    self._count -= 1
                    return None
            self._busy_since[threading.get_ident()] = time.monotonic()
            return self._jobs.popleft()


def _done(future: Future[T], call: Callable[[], T]) -> Callable[[], None]:
    """Make a call; what tells its result."""
    try:
        result = call()
    except MemoryError as failure:
        short = NoMemory("no memory is left")
        short.__cause__ = failure
        return partial(future.set_exception, short)
    except BaseException as failure:  # noqa: BLE001 - it is raised where the result is awaited
        return partial(future.set_exception, failure)
    return partial(future.set_result, result)


_BESIDE = Threads(8, "memd-beside")


async def beside(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """What fn returns, or raises, off the event loop; where the system gives no thread, on it.

    For work that takes milliseconds and meets no network mount, and must not fail for want of a thread: it may be about
    an answer that has been paid for.
    """
    try:
        return await _BESIDE.run(fn, *args, **kwargs)
    except NoThread:
        return fn(*args, **kwargs)
