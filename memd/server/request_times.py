"""How long searches and readings took: slow ones are logged, and status shows the last searches of an agent."""

import asyncio
import contextlib
import time
from collections import deque
from collections.abc import Iterator
from statistics import median
from typing import Literal

import msgspec

from memd.runtime.logs import SlowLog
from memd.runtime.profiling import TimeTrace, in_ms, slow_parts_ms
from memd.runtime.timing import Clock
from memd_client import messages as wire

What = Literal["search", "get"]

# An agent asks before it answers, so a person waits for it: for a second without wondering. A search that has all it
# needs takes some ten milliseconds; it waits for half a second for what was just written, as configured by default.
SLOW_S = 1.0
LAST = 100  # searches of an agent that are remembered
# Below that nobody asks where the time went, and to add up the parts would be a share of it.
WORTH_S = 0.1

_EVENTS: dict[What, str] = {"search": "search.was_slow", "get": "get.was_slow"}


class TimedRequest:
    """A request that is being answered."""

    def __init__(self, facts: dict[str, object]) -> None:
        self.agent: str | None = None  # once that is known
        self.facts = facts  # counts, names of parts; never a text of memory, nor of a question
        self.ended = "failed"  # answered | failed | given_up (nobody waited for it any more)


class RequestTimes:
    """Measures requests, logs slow ones, and remembers how long the last searches of each agent took."""

    def __init__(self, *, clock: Clock = time.monotonic, now: Clock = time.time) -> None:
        """Begin to measure.

        Args:
            clock: Seconds, monotonic.
            now: Unix time.
        """
        self._clock = clock
        self._now = now
        self._slow_log = SlowLog()
        self._searches: dict[str, SearchTimes] = {}  # by agent

    @contextlib.contextmanager
    def timed(self, what: What, **facts: object) -> Iterator[TimedRequest]:
        """Measure the block that answers a request.

        Args:
            what: Which request.
            facts: What is known of it; see TimedRequest.facts.
        """
        request, trace = TimedRequest(facts), TimeTrace(self._clock)
        try:
            with trace:
                yield request
            request.ended = "answered"
        except asyncio.CancelledError:
            request.ended = "given_up"
            raise
        finally:
            self._note(what, request, trace)

    def _note(self, what: What, request: TimedRequest, trace: TimeTrace) -> None:
        if what == "search" and request.ended == "answered" and request.agent is not None:
            self._searches.setdefault(request.agent, SearchTimes()).add(trace, self._now())
        if trace.took_s > SLOW_S:
            now = self._clock()
            self._slow_log.warn(
                _EVENTS[what], request.agent, trace, now, ended=request.ended, **request.facts
            )

    def searches(self, agent: str) -> wire.Searches | None:
        """How long the last searches of an agent took; None: there was none."""
        times = self._searches.get(agent)
        return None if times is None else times.report()


class _Search(msgspec.Struct, frozen=True):
    at: float  # unix time of its end
    took_s: float
    parts: dict[str, float]


class SearchTimes:
    """How long the last hundred searches of one agent took."""

    def __init__(self) -> None:
        self._last: deque[_Search] = deque(maxlen=LAST)

    def add(self, trace: TimeTrace, at: float) -> None:
        """Remember a search that was answered at a unix time."""
        took_s = trace.took_s
        self._last.append(_Search(at, took_s, slow_parts_ms(trace) if took_s >= WORTH_S else {}))

    def report(self) -> wire.Searches | None:
        """As status shows them; None: there was none."""
        if not self._last:
            return None
        slowest = max(self._last, key=lambda one: one.took_s)
        return wire.Searches(
            count=len(self._last),
            median_ms=in_ms(median(one.took_s for one in self._last)),
            slowest=wire.Slowest(at=slowest.at, took_ms=in_ms(slowest.took_s), parts=slowest.parts),
            last_ms=[in_ms(one.took_s) for one in self._last],
        )
