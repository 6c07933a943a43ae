"""Measures the memory of memd's processes, and keeps it below the memory limit, if there is one."""

import asyncio
import contextlib
import os
import sys
import time
from collections.abc import Collection, Mapping
from math import ceil
from pathlib import Path
from typing import Protocol

import msgspec
import structlog

from memd.errors import MemdError
from memd.memory_limit import policy
from memd.memory_limit.policy import AgentVectors, MemorySeen
from memd.runtime import malloc
from memd.runtime.timers import Clock, until_next_tick_s

log = structlog.get_logger()


LOOK_S = 6.0  # between two checks; other checks run every 2 s, at the same moments
REFUSED_S = 60.0  # how long vectors that could not be read stay on disk
SQUEEZED_S = 60.0  # between two attempts to release SQLite's memory
TIMEOUT_S = 10.0  # timeout for one agent, whose disk may be dead, so that the others get their turn
LOG_AGAIN_S = 3600.0  # between two log lines that say that the limit cannot be kept
MB = 1_000_000


def resident_bytes(pid: int, *, platform: str = sys.platform) -> int | None:
    """Return a process's resident memory in bytes, as `top` shows it, shared memory included; None if it has ended.

    Args:
        pid: A process of this user.
        platform: A value of sys.platform.
    """
    if platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return None
    # Imported only here: Linux needs no library for it, and this one takes 3 MB itself.
    import psutil  # noqa: PLC0415

    try:
        held: int = psutil.Process(pid).memory_info().rss
    except psutil.Error:
        return None
    return held


class ResidentVectors(Protocol):
    """The vectors of an agent, in memory or on disk."""

    @property
    def asked_at(self) -> float | None:
        """Monotonic time of the last search that wanted them; None: there was none."""
        ...

    @property
    def resident_bytes(self) -> int:
        """Bytes of memory that the vectors take now."""
        ...

    @property
    def whole_bytes(self) -> int:
        """Bytes of memory that the vectors take, or would take if loaded."""
        ...

    @property
    def is_shelved(self) -> bool:
        """Whether they are on disk only."""
        ...

    async def shelve(self) -> None:
        """Free their memory, and search on disk from now on."""
        ...

    async def unshelve(self) -> None:
        """Load them into memory again.

        Raises:
            MemdError: they cannot be read.
        """
        ...

    async def release_pages(self) -> None:
        """Release cached pages of their file."""
        ...


class VectorOwners(Protocol):
    """The agents of a daemon."""

    def vectors(self) -> Mapping[str, ResidentVectors]:
        """Return each agent's vectors."""
        ...


class WorkerOwner(Protocol):
    """Starts worker processes."""

    @property
    def worker_pids(self) -> Collection[int]:
        """Process ids of the running workers."""
        ...


class MemoryMeter(Protocol):
    """Measures the memory of memd's processes."""

    def held(self) -> tuple[int, int] | None:
        """Return the bytes held by this process and by its workers; None if the system does not say."""
        ...


class ProcessMemory:
    """Measures this process and its workers with figures of the operating system."""

    def __init__(self, workers: WorkerOwner) -> None:
        self._workers = workers

    def held(self) -> tuple[int, int] | None:
        """See MemoryMeter."""
        own = resident_bytes(os.getpid())
        if own is None:
            return None
        return own, sum(resident_bytes(pid) or 0 for pid in self._workers.worker_pids)


class MemoryStatus(msgspec.Struct, frozen=True):
    """Memory that memd's processes hold, in bytes."""

    daemon: int
    workers: int
    limit: int  # 0: no limit
    reason: str | None  # why the limit is exceeded, and what to do; None: it is kept


class MemoryLimit:
    """Checks every few seconds what memd holds, while there is a limit; otherwise it only waits."""

    def __init__(
        self,
        agents: VectorOwners,
        memory: MemoryMeter,
        *,
        clock: Clock = time.monotonic,
        look_s: float = LOOK_S,
        timeout_s: float = TIMEOUT_S,
    ) -> None:
        """Create it without a limit.

        Args:
            agents: Give access to their vectors.
            memory: Measures what memd holds.
            clock: The clock of `ResidentVectors.asked_at`.
            look_s: Seconds between two checks.
            timeout_s: Timeout for one agent, in seconds.
        """
        self._agents = agents
        self._memory = memory
        self._clock = clock
        self._look_s = look_s
        self._timeout_s = timeout_s
        self._limit_bytes = 0
        self._changed = asyncio.Event()
        self._seen: tuple[MemorySeen, ...] = ()
        self._given_up: dict[str, float] = {}  # agent -> when its vectors were given up
        self._refused: dict[str, float] = {}  # agent -> when its vectors could not be read
        self._gave_up = False  # whether the last check gave up vectors
        self._squeezed_at = policy.NEVER
        self._logged_at = policy.NEVER
        self._reason: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self._limit_bytes > 0

    def follow(self, limit_mb: int) -> None:
        """Set the limit in MB; 0: no limit."""
        if limit_mb * MB != self._limit_bytes:
            self._limit_bytes = limit_mb * MB
            self._seen, self._reason, self._logged_at = (), None, policy.NEVER
            self._given_up.clear()
            if limit_mb:
                malloc.return_large_blocks()
            self._changed.set()

    def status(self) -> MemoryStatus | None:
        """Return the current state; None if the system does not say."""
        held = self._memory.held()
        return None if held is None else MemoryStatus(*held, self._limit_bytes, self._reason)

    async def run(self) -> None:
        """Enforce the limit until cancelled."""
        while True:
            self._changed.clear()
            await self._check()
            # Without a limit, continue while vectors remain on disk because they could not be read.
            is_done = not self.is_set and not any(one.is_shelved for one in self._agents.vectors().values())
            with contextlib.suppress(TimeoutError):
                wait_s = until_next_tick_s(asyncio.get_running_loop().time(), self._look_s)
                async with asyncio.timeout(None if is_done else wait_s):
                    await self._changed.wait()

    async def _check(self) -> None:
        held = self._memory.held() if self.is_set else None
        if held is None:
            # Without a limit, or if memory cannot be measured, all vectors are kept in memory.
            decision = policy.decide(0, (), self._holdings())
        else:
            rest = sum(held) - self._in_vectors()
            self._seen = policy.seen_lately(self._seen, MemorySeen(self._clock(), rest))
            decision = policy.decide(self._limit_bytes, self._seen, self._holdings())
        for agent in decision.give_up:
            await self._shelve(agent)
        if decision.give_up or self._gave_up:
            # Again at the next check: a search may have used them until now.
            self._gave_up = bool(decision.give_up)
            await malloc.give_back_beside()
        for agent in decision.take_back:
            await self._unshelve(agent)
        if held is not None:
            await self._update_reason()

    def _holdings(self) -> list[AgentVectors]:
        now = self._clock()
        return [
            AgentVectors(
                agent,
                one.resident_bytes,
                one.whole_bytes,
                one.is_shelved,
                one.asked_at,
                self._given_up.get(agent),
            )
            for agent, one in self._agents.vectors().items()
            if not one.is_shelved or now - self._refused.get(agent, policy.NEVER) >= REFUSED_S
        ]

    async def _shelve(self, agent: str) -> None:
        vectors = self._agents.vectors().get(agent)
        if vectors is not None:
            freed = vectors.resident_bytes
            with contextlib.suppress(TimeoutError):  # retried at the next check
                async with asyncio.timeout(self._timeout_s):
                    await vectors.shelve()
                self._given_up[agent] = self._clock()
                log.info("memory.vectors_given_up", agent=agent, mb=round(freed / MB, 1))

    async def _unshelve(self, agent: str) -> None:
        vectors = self._agents.vectors().get(agent)
        if vectors is None:
            return
        try:
            async with asyncio.timeout(self._timeout_s):
                await vectors.unshelve()
        except (MemdError, TimeoutError) as failure:
            # They are still searched on disk, as far as it can be read.
            self._refused[agent] = self._clock()
            log.warning(
                "memory.vectors_left_on_disk",
                agent=agent,
                reason=str(failure) or f"its index has not answered for {self._timeout_s:g} s",
            )
        else:
            log.info("memory.vectors_taken_back", agent=agent, mb=round(vectors.resident_bytes / MB, 1))

    async def _update_reason(self) -> None:
        """Release SQLite's memory if the limit is still exceeded, and record whether it is kept."""
        held = self._held_bytes()
        if held > self._limit_bytes and self._clock() - self._squeezed_at >= SQUEEZED_S:
            self._squeezed_at = self._clock()
            await self._release_sqlite_memory()
            held = self._held_bytes()
        if self._changed.is_set():
            return  # the limit has changed: the next check decides
        if held > self._limit_bytes and not self._in_vectors():
            # Workers come and go: suggest a limit that had room for the most that was held lately.
            most = max([held, *(one.rest_bytes for one in self._seen)])
            self._reason = _in_words(held, most, self._limit_bytes)
            if self._clock() - self._logged_at >= LOG_AGAIN_S:
                self._logged_at = self._clock()
                log.warning("memory.limit_exceeded", reason=self._reason)
        elif self._reason is not None and held <= policy.GIVE_UP_TO * self._limit_bytes:
            self._reason = None
            log.info("memory.limit_kept", mb=round(held / MB), limit_mb=self._limit_bytes // MB)

    async def _release_sqlite_memory(self) -> None:
        for vectors in self._agents.vectors().values():
            # An agent that was stopped holds nothing.
            with contextlib.suppress(MemdError, TimeoutError):
                async with asyncio.timeout(self._timeout_s):
                    await vectors.release_pages()
        await malloc.give_back_beside()

    def _in_vectors(self) -> int:
        """Return the bytes of vectors that could be given up."""
        return sum(one.resident_bytes for one in self._agents.vectors().values() if not one.is_shelved)

    def _held_bytes(self) -> int:
        return sum(self._memory.held() or ())


def _in_words(held: int, most: int, limit: int) -> str:
    enough_mb = ceil(most / MB / policy.GIVE_UP_TO / 10) * 10
    return (
        f"memd holds {ceil(held / MB)} MB, the limit is {limit // MB} MB, and no vectors are left to give up. "
        f"Set daemon.memory_limit_mb to {enough_mb} or more, or to 0 for no limit"
    )
