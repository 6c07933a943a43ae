"""Measures how long searches and reads take; logs slow ones, and gives the status the times of the last searches."""

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
from memd.runtime.timers import Clock
from memd_client import messages as wire

What = Literal["search", "get"]

# An agent searches before it answers, so a person waits; a second is not noticed. A search takes some 10 ms
# when everything is ready; by default it may wait half a second for recent edits to be indexed.
SLOW_S = 1.0
LAST = 100  # searches that are remembered per agent
# Below that the parts are not recorded: nobody asks for them, and adding them up would take a noticeable
# share.
WORTH_S = 0.1

_EVENTS: dict[What, str] = {"search": "search.was_slow", "get": "get.was_slow"}


class TimedRequest:
    """A request that is being answered."""

    def __init__(self, facts: dict[str, object]) -> None:
        self.agent: str | None = None  # None until it is known
        self.facts = facts  # for the log: counts and names of parts, never text of memory or of a question
        self.ended = "failed"  # answered | failed | given_up (the client stopped waiting)


class RequestTimes:
    """Measures requests, logs slow ones, and remembers how long each agent's last searches took."""

    def __init__(self, *, clock: Clock = time.monotonic, now: Clock = time.time) -> None:
        """Start without any measurements.

        Args:
            clock: Returns seconds; must be monotonic.
            now: Returns Unix time.
        """
        self._clock = clock
        self._now = now
        self._slow_log = SlowLog()
        self._searches: dict[str, SearchTimes] = {}  # by agent

    @contextlib.contextmanager
    def timed(self, what: What, **facts: object) -> Iterator[TimedRequest]:
        """Measure the block, which answers a request.

        Args:
            what: The kind of request.
            facts: What is known of it in advance; see TimedRequest.facts.
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
        """Return how long an agent's last searches took; None if there were none."""
        times = self._searches.get(agent)
        return None if times is None else times.report()


class _Search(msgspec.Struct, frozen=True):
    at: float  # Unix time at which it ended
    took_s: float
    parts: dict[str, float]


class SearchTimes:
    """The times of an agent's last 100 searches."""

    def __init__(self) -> None:
        self._last: deque[_Search] = deque(maxlen=LAST)

    def add(self, trace: TimeTrace, at: float) -> None:
        """Record a search that ended at a Unix time."""
        took_s = trace.took_s
        self._last.append(_Search(at, took_s, slow_parts_ms(trace) if took_s >= WORTH_S else {}))

    def report(self) -> wire.Searches | None:
        """Return the times for the status; None if there were no searches."""
        if not self._last:
            return None
        slowest = max(self._last, key=lambda one: one.took_s)
        return wire.Searches(
            count=len(self._last),
            median_ms=in_ms(median(one.took_s for one in self._last)),
            slowest=wire.Slowest(at=slowest.at, took_ms=in_ms(slowest.took_s), parts=slowest.parts),
            last_ms=[in_ms(one.took_s) for one in self._last],
        )
