"""So many at a time, in the order they came; whoever is in a hurry goes before the others, though not always."""

import asyncio
import contextlib
from collections import deque
from collections.abc import AsyncIterator, Callable

Place = tuple[str, asyncio.Future[None]]


class FairSlots:
    """Two queues for some places: after somebody from the quick one it is the turn of the long one, if anybody is there."""

    def __init__(self, places: Callable[[], int] = lambda: 1) -> None:
        """All places are free.

        Args:
            places: How many there are just now; when they become fewer, nobody is sent away.
        """
        self._places = places
        self._quick: deque[Place] = deque()
        self._long: deque[Place] = deque()
        self._taken = 0
        self._was_quick = False  # whoever got a place last came from the quick queue

    @property
    def waiting(self) -> int:
        """How many wait for a place."""
        return sum(not given.done() for _, given in [*self._quick, *self._long])

    async def take(self, who: str, *, quick: bool) -> None:
        """Wait for a place and have it, until it is given back.

        Args:
            who: By which hurry finds whoever waits.
            quick: Wait in the quick queue.
        """
        if self._taken >= self._places() or self.waiting:
            await self._wait(who, self._quick if quick else self._long)
        else:
            self._taken, self._was_quick = self._taken + 1, quick

    def give_back(self) -> None:
        """Leave a place to the next."""
        self._taken -= 1
        self._fill()

    @contextlib.asynccontextmanager
    async def turn(self, who: str, *, quick: bool) -> AsyncIterator[None]:
        """Have a place for as long as the block takes; the arguments are those of take."""
        await self.take(who, quick=quick)
        try:
            yield
        finally:
            self.give_back()

    def hurry(self, who: str) -> None:
        """Let somebody who waits in the long queue wait in the quick one instead."""
        hurried = [place for place in self._long if place[0] == who]
        for place in hurried:
            self._long.remove(place)
        self._quick.extend(hurried)

    async def _wait(self, who: str, queue: deque[Place]) -> None:
        place = who, asyncio.get_running_loop().create_future()
        queue.append(place)
        self._fill()  # there may be more places than there were
        try:
            await place[1]
        except asyncio.CancelledError:
            if not place[1].cancelled():
                self.give_back()  # it was given the place and cannot take it
            raise

    def _fill(self) -> None:
        # Whoever was cancelled while waiting still stands in a queue.
        while (self._quick or self._long) and self._taken < self._places():
            queue = self._long if not self._quick or (self._was_quick and self._long) else self._quick
            _, given = queue.popleft()
            if not given.cancelled():
                self._was_quick = queue is self._quick
                self._taken += 1
                given.set_result(None)
