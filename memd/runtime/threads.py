"""A bounded number of threads for one purpose, so that work which hangs blocks no other work."""

import asyncio
import contextlib
import threading
import time
from collections import deque
from collections.abc import Callable
from functools import partial
from typing import Any, Generic, ParamSpec, TypeVar

from memd.errors import TransientError
from memd.runtime.profiling import TimedCall

P = ParamSpec("P")
T = TypeVar("T")

IDLE_S = 5.0  # how long an idle thread waits before it ends
BIRTH_S = 10.0  # a thread that has not begun by then has most likely failed for lack of memory


class _Thread(threading.Thread):
    """A thread that is started without a wait.

    `threading.Thread.start` waits until the thread has begun. If memory is too short for that, it waits for ever, and blocks the
    event loop.
    """

    def __init__(self, **options: Any) -> None:
        super().__init__(**options)
        self._started = _Unawaited()


class _Unawaited(threading.Event):
    def wait(self, timeout: float | None = None) -> bool:  # noqa: ARG002 - as the base class has it
        return self.is_set()


class ResourceShortage(TransientError):
    """The system has too few resources for the work at the moment."""


class NoThread(ResourceShortage):
    """No thread could be started; the work has not begun."""


class NoMemory(ResourceShortage):
    """There was too little memory; the work was aborted."""


class _Job(Generic[T]):
    """A call for a thread, and the future of the event loop that waits for its result.

    With a future of `concurrent.futures` that is copied to one of the loop, a call takes 1.4 times as much of the processor.
    """

    __slots__ = ("call", "future", "loop")

    def __init__(self, call: Callable[[], T]) -> None:
        self.call = call
        self.loop = asyncio.get_running_loop()
        self.future: asyncio.Future[T] = self.loop.create_future()

    def made(self) -> Callable[[], None]:
        """Make the call; return a function for the event loop that sets its result."""
        try:
            result = self.call()
        except MemoryError as failure:
            short = NoMemory("no memory is left")
            short.__cause__ = failure
            return partial(self.fail, short)
        except BaseException as failure:  # noqa: BLE001 - it is raised where the result is awaited
            return partial(self.fail, failure)
        return partial(self._succeed, result)

    def deliver(self, outcome: Callable[[], None]) -> None:
        """Have the event loop set the result; nobody waits for it if the loop is closed."""
        with contextlib.suppress(RuntimeError):
            self.loop.call_soon_threadsafe(outcome)

    def fail(self, failure: BaseException) -> None:
        """Raise an exception where the result is awaited."""
        if not self.future.done():
            self.future.set_exception(failure)

    def _succeed(self, result: T) -> None:
        if not self.future.done():
            self.future.set_result(result)


class Threads:
    """Runs functions that may block, a limited number at a time; the others wait in the order of their calls.

    A call on a network mount that is gone cannot be interrupted. Its thread is lost until the mount is back, so work that can
    meet such a call has threads of its own. There is nothing to close: threads without work end, and none keeps the process
    from ending.
    """

    def __init__(self, limit: int, name: str, *, idle_s: float = IDLE_S, birth_s: float = BIRTH_S) -> None:
        """Set the bounds; threads are started when there is work.

        Args:
            limit: How many functions run at a time.
            name: Name of the threads, as tools show it.
            idle_s: How long a thread waits for more work before it ends.
            birth_s: A thread that has not begun after so many seconds is replaced; if it begins later, it ends at once.
        """
        self._limit = limit
        self._name = name
        self._idle_s = idle_s
        self._birth_s = birth_s
        self._changed = threading.Condition()
        self._jobs: deque[_Job[Any]] = deque()  # that no thread has begun
        self._busy_since: dict[int, float] = {}  # thread -> when its current call began
        self._beginning: set[threading.Thread] = set()  # started, but not begun; each is counted
        self._count = 0

    @property
    def count(self) -> int:
        """The current number of threads."""
        return self._count

    @property
    def waiting(self) -> int:
        """The current number of calls that have not begun."""
        return len(self._jobs)

    @property
    def is_done(self) -> bool:
        """Whether nothing runs and nothing waits."""
        with self._changed:
            return not self._jobs and not self._busy_since

    def busy_s(self) -> float:
        """How long the longest running call has run, in seconds; 0 if none runs."""
        with self._changed:
            began = min(self._busy_since.values(), default=None)
        return 0.0 if began is None else time.monotonic() - began

    async def run(self, fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run fn on a thread; returns and raises what fn does.

        If the caller is cancelled, a call that has not begun is dropped; one that has begun runs to its end.

        Raises:
            NoThread: no thread could be started, and no other can take the call; it was not begun.
            NoMemory: in place of a MemoryError of fn.
        """
        errand = TimedCall(partial(fn, *args, **kwargs))
        job = _Job(errand)
        with self._changed:
            self._jobs.append(job)
            if self._lacks_thread():
                try:
                    self._begin_thread()
                except NoThread:
                    self._jobs.remove(job)
                    raise
            else:
                self._changed.notify()
        try:
            return await job.future
        except asyncio.CancelledError:
            errand.give_up()
            # Otherwise calls that nobody waits for would accumulate behind one that hangs.
            with self._changed, contextlib.suppress(ValueError):
                self._jobs.remove(job)
            raise

    def _lacks_thread(self) -> bool:
        """Whether more calls wait than threads are idle, and one more thread is allowed."""
        # Threads that have ended a call and are about to take the next count as idle, too.
        return len(self._jobs) > self._count - len(self._busy_since) and self._count < self._limit

    def _begin_thread(self) -> None:
        """Start one more thread; if that fails, the existing ones take the jobs later.

        Raises:
            NoThread: it failed, and there is no other thread.
        """
        thread = _Thread(target=self._work, name=self._name, daemon=True)
        try:
            thread.start()
        # A limit of the user, the container or the system was reached.
        except (RuntimeError, MemoryError) as failure:
            if not self._count:
                raise NoThread(
                    "no thread can be started: too many are running, or memory is short"
                ) from failure
        else:
            self._count += 1
            self._beginning.add(thread)
            asyncio.get_running_loop().call_later(self._birth_s, self._have_begun, thread)

    def _have_begun(self, thread: threading.Thread) -> None:
        """Replace a thread that has not begun: memory was too short for it, or it is slow."""
        with self._changed:
            if thread not in self._beginning:
                return
            self._beginning.remove(thread)
            self._count -= 1
            if not self._lacks_thread():
                return
            try:
                self._begin_thread()
            except NoThread as failure:
                while self._jobs:
                    job = self._jobs.popleft()
                    job.deliver(partial(job.fail, failure))

    def _work(self) -> None:
        with self._changed:
            thread = threading.current_thread()
            if thread not in self._beginning:
                return  # it was replaced
            self._beginning.remove(thread)
        me = threading.get_ident()
        while (job := self._next()) is not None:
            outcome = job.made()
            with self._changed:
                del self._busy_since[me]
            # Only now: whoever gets the result may submit more work, for which this thread should count as
            # idle.
            job.deliver(outcome)
            # Drop all references, so that an idle thread keeps nothing of its last call alive.
            del job, outcome

    def _next(self) -> _Job[Any] | None:
        """Return the next job; None if there was none for idle_s, and the thread must end."""
        with self._changed:
            while not self._jobs:
                if not self._changed.wait(self._idle_s) and not self._jobs:
                    self._count -= 1
                    return None
            self._busy_since[threading.get_ident()] = time.monotonic()
            return self._jobs.popleft()


_BESIDE = Threads(8, "memd-beside")


async def beside(fn: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Run fn on a thread, or on the event loop if no thread can be started; return and raise what fn does.

    Use it for work that takes milliseconds, touches no network mount, and must not fail for lack of a thread,
    such as storing a reply that was paid for.
    """
    try:
        return await _BESIDE.run(fn, *args, **kwargs)
    except NoThread:
        return fn(*args, **kwargs)
