"""Measures the memory of memd's processes, and keeps it below the memory limit, while there is one."""

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
from memd.runtime.timing import Clock, until_next_tick_s

log = structlog.get_logger()


LOOK_S = 6.0  # between two looks; whoever else looks does so every two seconds, at the same moments
REFUSED_S = 60.0  # for which vectors that could not be read stay where they are
SQUEEZED_S = 60.0  # between two attempts to do without what SQLite keeps
PATIENCE_S = 10.0  # with one agent, whose disk may be dead: the others are looked after, too
LOG_AGAIN_S = 3600.0  # between two lines of the log that say the limit cannot be kept
MB = 1_000_000


def resident_bytes(pid: int, *, platform: str = sys.platform) -> int | None:
    """Memory that a process holds, as `top` has it: what it shares with others counts whole. None: it is gone.

    Args:
        pid: Of a process of this user.
        platform: As sys.platform has it.
    """
    if platform == "linux":
        try:
            return int(Path(f"/proc/{pid}/statm").read_bytes().split()[1]) * os.sysconf("SC_PAGE_SIZE")
        except (OSError, IndexError):
            return None
    # Only here: Linux needs no library for it, and this one takes 3 MB itself.
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
        """When a search last wanted them, of the monotonic clock; None: none has."""
        ...

    @property
    def resident_bytes(self) -> int:
        """Memory that they take."""
        ...

    @property
    def whole_bytes(self) -> int:
        """Memory that they take, or would take."""
        ...

    @property
    def is_shelved(self) -> bool:
        """Whether they are on disk only."""
        ...

    async def shelve(self) -> None:
        """Give up their memory."""
        ...

    async def unshelve(self) -> None:
        """Have them in memory again; raises a MemdError if they cannot be read."""
        ...

    async def release_pages(self) -> None:
        """Do without what is kept of their file in memory."""
        ...


class VectorOwners(Protocol):
    """The agents of a daemon."""

    def vectors(self) -> Mapping[str, ResidentVectors]:
        """The vectors of each agent, of this moment."""
        ...


class WorkerOwner(Protocol):
    """Who starts processes that work for this one."""

    @property
    def worker_pids(self) -> Collection[int]:
        """Those of this moment."""
        ...


class MemoryMeter(Protocol):
    """Measures the processes of memd."""

    def held(self) -> tuple[int, int] | None:
        """Bytes that this process holds, and that its workers hold; None: the system does not tell."""
        ...


class ProcessMemory:
    """What this process and its workers hold, by the operating system."""

    def __init__(self, workers: WorkerOwner) -> None:
        self._workers = workers

    def held(self) -> tuple[int, int] | None:
        """See MemoryMeter."""
        own = resident_bytes(os.getpid())
        if own is None:
            return None
        return own, sum(resident_bytes(pid) or 0 for pid in self._workers.worker_pids)


class MemoryStatus(msgspec.Struct, frozen=True):
    """What the processes of memd hold, in bytes."""

    daemon: int
    workers: int
    limit: int  # 0: none
    trouble: str | None  # why it is more, and what to do about it


class MemoryLimit:
    """Looks at what memd holds every few seconds, while there is a limit; else it does nothing at all."""

    def __init__(
        self,
        agents: VectorOwners,
        memory: MemoryMeter,
        *,
        clock: Clock = time.monotonic,
        look_s: float = LOOK_S,
        patience_s: float = PATIENCE_S,
    ) -> None:
        """There is no limit yet.

        Args:
            agents: Whose vectors they are.
            memory: Measures what memd holds.
            clock: The one that the vectors go by.
            look_s: Seconds between two looks.
            patience_s: Seconds for which one agent may keep the others waiting.
        """
        self._agents = agents
        self._memory = memory
        self._clock = clock
        self._look_s = look_s
        self._patience_s = patience_s
        self._limit_bytes = 0
        self._changed = asyncio.Event()
        self._seen: tuple[MemorySeen, ...] = ()
        self._given_up: dict[str, float] = {}  # agent -> when its vectors were
        self._refused: dict[str, float] = {}  # agent -> when its vectors could not be read
        self._gave_up = False  # vectors, at the last look
        self._squeezed_at = policy.NEVER
        self._logged_at = policy.NEVER
        self._trouble: str | None = None

    @property
    def is_set(self) -> bool:
        """Whether there is a limit."""
        return self._limit_bytes > 0

    def follow(self, limit_mb: int) -> None:
        """Keep to another limit from now on; 0: none."""
        if limit_mb * MB != self._limit_bytes:
            self._limit_bytes = limit_mb * MB
            self._seen, self._trouble, self._logged_at = (), None, policy.NEVER
            self._given_up.clear()
            if limit_mb:
                malloc.return_large_blocks()
            self._changed.set()

    def standing(self) -> MemoryStatus | None:
        """How it is at this moment; None: the system does not tell."""
        held = self._memory.held()
        return None if held is None else MemoryStatus(*held, self._limit_bytes, self._trouble)

    async def run(self) -> None:
        """Keep to the limit, for ever."""
        while True:
            self._changed.clear()
            await self._look()
            # Vectors that could not be read when the limit went are asked for again.
            is_done = not self.is_set and not any(one.is_shelved for one in self._agents.vectors().values())
            with contextlib.suppress(TimeoutError):
                wait_s = until_next_tick_s(asyncio.get_running_loop().time(), self._look_s)
                async with asyncio.timeout(None if is_done else wait_s):
                    await self._changed.wait()

    async def _look(self) -> None:
        held = self._memory.held() if self.is_set else None
        if held is None:
            # Of no limit, and of one that nobody can measure, it is the same that follows.
            decision = policy.decide(0, (), self._holdings())
        else:
            rest = sum(held) - self._in_vectors()
            self._seen = policy.seen_lately(self._seen, MemorySeen(self._clock(), rest))
            decision = policy.decide(self._limit_bytes, self._seen, self._holdings())
        for agent in decision.give_up:
            await self._give_up(agent)
        if decision.give_up or self._gave_up:
            # Once more after a while: a search may have held on to them until now.
            self._gave_up = bool(decision.give_up)
            await malloc.give_back_beside()
        for agent in decision.take_back:
            await self._take_back(agent)
        if held is not None:
            await self._judge()

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

    async def _give_up(self, agent: str) -> None:
        vectors = self._agents.vectors().get(agent)
        if vectors is not None:
            freed = vectors.resident_bytes
            with contextlib.suppress(TimeoutError):  # the next look tries it again
                async with asyncio.timeout(self._patience_s):
                    await vectors.shelve()
                self._given_up[agent] = self._clock()
                log.info("memory.vectors_given_up", agent=agent, mb=round(freed / MB, 1))

    async def _take_back(self, agent: str) -> None:
        vectors = self._agents.vectors().get(agent)
        if vectors is None:
            return
        try:
            async with asyncio.timeout(self._patience_s):
                await vectors.unshelve()
        except (MemdError, TimeoutError) as failure:
            # They go on being searched on disk, as far as that can be read.
            self._refused[agent] = self._clock()
            log.warning(
                "memory.vectors_left_on_disk",
                agent=agent,
                reason=str(failure) or f"its index has not answered for {self._patience_s:g} s",
            )
        else:
            self._refused.pop(agent, None)
            log.info("memory.vectors_taken_back", agent=agent, mb=round(vectors.resident_bytes / MB, 1))

    async def _judge(self) -> None:
        """Say whether the limit is kept, after what can be done was done."""
        held = self._held_bytes()
        if held > self._limit_bytes and self._clock() - self._squeezed_at >= SQUEEZED_S:
            self._squeezed_at = self._clock()
            await self._squeeze()
            held = self._held_bytes()
        if self._changed.is_set():
            return  # there is another limit by now, which the next look is for
        if held > self._limit_bytes and not self._in_vectors():
            # What embeds comes and goes: a limit that had room for it lately is the one to set.
            most = max([held, *(one.rest_bytes for one in self._seen)])
            self._trouble = _in_words(held, most, self._limit_bytes)
            if self._clock() - self._logged_at >= LOG_AGAIN_S:
                self._logged_at = self._clock()
                log.warning("memory.limit_exceeded", reason=self._trouble)
        elif self._trouble is not None and held <= policy.GIVE_UP_TO * self._limit_bytes:
            self._trouble = None
            log.info("memory.limit_kept", mb=round(held / MB), limit_mb=self._limit_bytes // MB)

    async def _squeeze(self) -> None:
        for vectors in self._agents.vectors().values():
            # An agent that is stopped holds nothing.
            with contextlib.suppress(MemdError, TimeoutError):
                async with asyncio.timeout(self._patience_s):
                    await vectors.release_pages()
        await malloc.give_back_beside()

    def _in_vectors(self) -> int:
        """Memory that vectors take which could be given up."""
        return sum(one.resident_bytes for one in self._agents.vectors().values() if not one.is_shelved)

    def _held_bytes(self) -> int:
        return sum(self._memory.held() or ())


def _in_words(held: int, most: int, limit: int) -> str:
    enough_mb = ceil(most / MB / policy.GIVE_UP_TO / 10) * 10
    return (
        f"memd holds {ceil(held / MB)} MB, the limit is {limit // MB} MB, and no vectors are left to give up. "
        f"Set daemon.memory_limit_mb to {enough_mb} or more, or to 0 for no limit"
    )
