"""Measures how the time of one piece of work is spent: its parts add up to the whole.

The work runs in ``with TimeTrace() as trace:``, and each part of it in ``with timed_part("keywords"):``. Tasks that are begun in the
block, and functions that run on ``memd.runtime.threads``, count for the same trace. Outside of a trace nothing is measured.
"""

import threading
import time
from collections.abc import Callable
from contextvars import ContextVar, Token
from types import TracebackType
from typing import Generic, Self, TypeVar

from memd.runtime.timers import Clock

T = TypeVar("T")

OTHER = "other"  # time of no named part
QUEUED = "queued"  # time in which a part waits for a free thread

_NOTICED_S = 0.0005  # shorter parts are not reported
_AT_ONCE = 512  # recorded events that are kept before they are added up


class TimedPart:
    """A part of the work, nested in another one. Use it as a context manager around the code that it times."""

    __slots__ = ("_before", "began", "inner", "is_over", "name", "of", "parent", "trace")

    trace: "TimeTrace"  # set when it begins; a part outside of a trace never gets one
    began: float

    def __init__(self, name: str, of: str | None = None) -> None:
        self.name = name
        self.of = of
        self.parent: TimedPart | None = None
        self.inner = 0  # running parts within it
        self.is_over = False
        self._before: Token[TimedPart | None] | None = None

    def __enter__(self) -> None:
        parent = _part.get()
        if parent is not None:
            self.begin(parent)
            self._before = _part.set(self)

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            _part.reset(self._before)
            self.trace.note(self, False)

    def begin(self, parent: "TimedPart") -> None:
        """Begin the part."""
        self.parent, self.trace = parent, parent.trace
        self.trace.note(self, True)

    def end(self) -> None:
        """End the part, and all parts in it; ending it again does nothing."""
        self.trace.note(self, False)

    def counts(self) -> bool:
        """Whether its time still counts: not if a part around it has ended."""
        part: TimedPart | None = self
        while part is not None:
            if part.is_over:
                return False
            part = part.parent
        return True

    def is_within(self, other: "TimedPart") -> bool:
        """Whether this part is the other one, or nested in it."""
        part: TimedPart | None = self
        while part is not None and part is not other:
            part = part.parent
        return part is other


_part: ContextVar[TimedPart | None] = ContextVar("part", default=None)


def timed_part(name: str, of: str | None = None) -> TimedPart:
    """Time the block as a part of the work.

    Args:
        name: A name for people, the same for all work of one kind.
        of: The path that the part worked on. Never a text of memory.
    """
    return TimedPart(name, of)


class TimeTrace:
    """Records the time of one piece of work.

    Each moment belongs to the innermost parts that run. If several run at the same time, it is counted once, under their joined
    names: ``keywords + vectors``.
    """

    def __init__(self, clock: Clock = time.monotonic) -> None:
        """Start the clock; `with` begins to record.

        Args:
            clock: Returns seconds; must be monotonic.
        """
        self.whole = TimedPart(OTHER)
        self.whole.trace = self
        self.took_s = 0.0  # set when the block ends
        self._clock = clock
        self._adding_up = threading.Lock()
        # Adding up costs more than recording, and most traces are never read.
        self._noted: list[tuple[float, TimedPart, bool]] = []
        self._before: Token[TimedPart | None] | None = None
        self._is_closed = False
        self._innermost = [self.whole]
        self._seconds: dict[str, float] = {}
        self._slowest: tuple[str, float] | None = None
        self._began = self._at = clock()

    def note(self, part: TimedPart, begins: bool) -> None:
        """Note that a part begins or ends; may be called on any thread."""
        if self._is_closed:
            return  # a part that runs on after the block does not belong to the trace
        noted = self._noted
        noted.append((self._clock(), part, begins))
        if len(noted) >= _AT_ONCE:
            self._add_up()

    def __enter__(self) -> Self:
        """Begin to measure."""
        self._before = _part.set(self.whole)
        return self

    def __exit__(
        self, kind: type[BaseException] | None, value: BaseException | None, trace: TracebackType | None
    ) -> None:
        if self._before is not None:
            _part.reset(self._before)
        ended = self._clock()
        self._is_closed = True
        self._noted.append((ended, self.whole, False))
        self.took_s = ended - self._began

    def parts(self) -> dict[str, float]:
        """Seconds by part, the longest first."""
        self._add_up()
        return dict(sorted(self._seconds.items(), key=lambda part: (-part[1], part[0])))

    def slowest(self) -> tuple[str, float] | None:
        """The path that took the longest, with its seconds, among parts that worked on a path."""
        self._add_up()
        return self._slowest

    def _add_up(self) -> None:
        with self._adding_up:
            noted = self._noted[:]  # another thread may add to it meanwhile
            for at, part, begins in noted:
                if begins:
                    self._begin(at, part)
                else:
                    self._end(at, part)
            del self._noted[: len(noted)]

    def _begin(self, at: float, part: TimedPart) -> None:
        parent = part.parent
        if parent is None or not parent.counts():
            return  # nor does this part
        self._add_time(at)
        part.began = at
        if not parent.inner:
            self._innermost.remove(parent)
        parent.inner += 1
        self._innermost.append(part)

    def _end(self, at: float, part: TimedPart) -> None:
        if not part.counts():
            return
        self._add_time(at)
        part.is_over = True
        if part.of is not None and (self._slowest is None or at - part.began > self._slowest[1]):
            self._slowest = part.of, at - part.began
        self._innermost = [one for one in self._innermost if not one.is_within(part)]
        parent = part.parent
        if parent is not None:
            parent.inner -= 1
            if not parent.inner:
                self._innermost.append(parent)

    def _add_time(self, at: float) -> None:
        """Count the time since the last change for the parts that ran."""
        # Threads may record events in another order than they read the clock.
        if at <= self._at:
            return
        name = " + ".join(sorted({part.name for part in self._innermost}))
        self._seconds[name] = self._seconds.get(name, 0.0) + at - self._at
        self._at = at


def in_ms(seconds: float) -> float:
    """Convert seconds to milliseconds, rounded for people: below ten to a tenth, else to an integer."""
    ms = seconds * 1000
    return round(ms, 1) if ms < 10 else round(ms)


def slow_parts_ms(trace: TimeTrace) -> dict[str, float]:
    """Milliseconds by part, the longest first, without negligible ones."""
    return {name: in_ms(took_s) for name, took_s in trace.parts().items() if took_s >= _NOTICED_S}


class TimedCall(Generic[T]):
    """A call that a thread makes for the current part; until the thread begins, the time counts as queued."""

    __slots__ = ("_call", "_part", "_queued")

    def __init__(self, call: Callable[[], T]) -> None:
        self._call = call
        self._part = _part.get()
        self._queued: TimedPart | None = None
        if self._part is not None:
            self._queued = TimedPart(f"{self._part.name}, {QUEUED}")
            self._queued.begin(self._part)

    def __call__(self) -> T:
        """Make the call."""
        if self._queued is None:
            return self._call()
        self._queued.end()
        before = _part.set(self._part)
        try:
            return self._call()
        finally:
            _part.reset(before)

    def give_up(self) -> None:
        """Stop waiting for a thread."""
        if self._queued is not None:
            self._queued.end()
