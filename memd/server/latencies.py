"""How long the last searches of an agent took, for status."""

from collections import deque
from statistics import median

import msgspec

from memd.runtime.timing import TimeTrace, in_ms, told
from memd_client import messages as wire

LAST = 100
# Below that nobody asks where the time went, and to add up the parts would be a share of it.
WORTH_S = 0.1


class _Search(msgspec.Struct, frozen=True):
    at: float  # unix time of its end
    took_s: float
    parts: dict[str, float]


class Latencies:
    """Remembers the last hundred."""

    def __init__(self) -> None:
        self._last: deque[_Search] = deque(maxlen=LAST)

    def note(self, account: TimeTrace, at: float) -> None:
        """A search was answered, at a unix time."""
        took_s = account.took_s
        self._last.append(_Search(at, took_s, told(account) if took_s >= WORTH_S else {}))

    def report(self) -> wire.Searches | None:
        """What status says of them; None: there was none."""
        if not self._last:
            return None
        slowest = max(self._last, key=lambda one: one.took_s)
        return wire.Searches(
            count=len(self._last),
            median_ms=in_ms(median(one.took_s for one in self._last)),
            slowest=wire.Slowest(at=slowest.at, took_ms=in_ms(slowest.took_s), parts=slowest.parts),
        )
