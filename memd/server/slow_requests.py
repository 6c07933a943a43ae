"""Searches and readings that took long, told with where the time went."""

import asyncio
import contextlib
import time
from collections.abc import Callable, Iterator
from typing import Literal

import structlog

from memd.runtime.rate_limit import RateLimiter
from memd.runtime.timing import TimeTrace, in_ms, told
from memd.server.latencies import Latencies
from memd_client import messages as wire

log = structlog.get_logger()

What = Literal["search", "get"]

# An agent asks before it answers, so a person waits for it: for a second without wondering. A search that has all it
# needs takes some ten milliseconds; it waits for half a second for what was just written, as configured by default.
SLOW_S = 1.0

_EVENTS: dict[What, str] = {"search": "search.was_slow", "get": "get.was_slow"}


class TimedRequest:
    """A request that is being answered."""

    def __init__(self, facts: dict[str, object]) -> None:
        self.agent: str | None = None  # once that is known
        self.facts = facts  # counts, names of parts; never a text of memory, nor of a question
        self.ended = "failed"  # answered | failed | given_up (nobody waited for it any more)


class SlowRequests:
    """Measures requests, remembers how long those of each agent took, and tells of slow ones."""

    def __init__(
        self, *, clock: Callable[[], float] = time.monotonic, now: Callable[[], float] = time.time
    ) -> None:
        """Nothing was asked yet.

        Args:
            clock: Seconds, monotonic.
            now: Unix time.
        """
        self._clock = clock
        self._now = now
        self._seldom = RateLimiter()
        self._latencies: dict[str, Latencies] = {}

    @contextlib.contextmanager
    def timed(self, what: What, **facts: object) -> Iterator[TimedRequest]:
        """Measure the block that answers a request.

        Args:
            what: Was asked.
            facts: What is known of it; see Timed.facts.
        """
        request, account = TimedRequest(facts), TimeTrace(self._clock)
        try:
            with account:
                yield request
            request.ended = "answered"
        except asyncio.CancelledError:
            request.ended = "given_up"
            raise
        finally:
            self._note(what, request, account)

    def _note(self, what: What, request: TimedRequest, account: TimeTrace) -> None:
        if what == "search" and request.ended == "answered" and request.agent is not None:
            self._latencies.setdefault(request.agent, Latencies()).note(account, self._now())
        if account.took_s <= SLOW_S:
            return
        left_out = self._seldom.left_out(f"{what} {request.agent}", self._clock())
        if left_out is None:
            return
        log.warning(
            _EVENTS[what],
            agent=request.agent,
            took_ms=in_ms(account.took_s),
            parts=told(account),
            ended=request.ended,
            **request.facts,
            left_out=left_out,
        )

    def searches(self, agent: str) -> wire.Searches | None:
        """What status says of an agent's searches."""
        latencies = self._latencies.get(agent)
        return None if latencies is None else latencies.report()
