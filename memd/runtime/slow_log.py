"""Logs work that took long, with where its time went; each kind of it once in a while."""

import structlog

from memd.runtime.timing import TimeTrace, in_ms, told

log = structlog.get_logger()


class RateLimiter:
    """Lets one of many through in a while, each kind by itself, and counts the others."""

    def __init__(self, every_s: float = 10.0) -> None:
        """Make a limiter that has let nothing through.

        Args:
            every_s: Seconds from one to the next. A person can follow a log of six lines a minute.
        """
        self._every_s = every_s
        self._passed: dict[str, tuple[float, int]] = {}  # kind -> when one was, and how many were not since

    def suppressed(self, kind: str, now: float) -> int | None:
        """How many were suppressed before this one, which is let through; None: this one is suppressed, too.

        Args:
            kind: One of few: each is remembered.
            now: Seconds, monotonic.
        """
        before = self._passed.get(kind)
        if before is not None and now - before[0] < self._every_s:
            self._passed[kind] = before[0], before[1] + 1
            return None
        self._passed[kind] = now, 0
        return 0 if before is None else before[1]


class SlowLog:
    """Logs slow work: one line of a kind in ten seconds."""

    def __init__(self) -> None:
        self._limiter = RateLimiter()

    def warn(self, event: str, agent: str | None, trace: TimeTrace, now: float, **facts: object) -> None:
        """Log a piece of work that was slow, unless one of its kind was just logged.

        Args:
            event: The log event. Together with the agent it is the kind.
            agent: Whose work it was; None: of no agent.
            trace: Of its time.
            now: Seconds, monotonic.
            facts: What else the line says; never a text of memory, nor of a question.
        """
        suppressed = self._limiter.suppressed(f"{event} {agent}", now)
        if suppressed is not None:
            log.warning(
                event,
                agent=agent,
                took_ms=in_ms(trace.took_s),
                parts=told(trace),
                **facts,
                left_out=suppressed,
            )
