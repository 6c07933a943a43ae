"""The engines of a daemon: one for all agents whose settings ask for the same, closed when nobody needs it."""

import asyncio
import contextlib
from collections.abc import Callable, Iterator

import msgspec
import structlog

from memd.config.settings import AgentSettings
from memd.embedding.for_agent import AgentProviders
from memd.embedding.provider_pair import ProviderPair
from memd.embedding.queue.cache import CacheBound
from memd.embedding.running_provider import ProviderParts, RunningProvider
from memd.providers.choose import ProviderChoice, shared
from memd.runtime.threads import beside
from memd.store.embeddings import Space

log = structlog.get_logger()

Choose = Callable[[AgentSettings], ProviderChoice]


class ProviderRegistry:
    """Engines, and the agents they are for."""

    def __init__(self, tools: ProviderParts, choose: Choose) -> None:
        """There are none yet.

        Args:
            tools: What they are made with.
            choose: What settings mean; may read files, and is called on a thread.
        """
        self.changes = tools.changes  # of any of them
        self._tools = msgspec.structs.replace(tools, bound=CacheBound(self._max_entries))
        self._choose = choose
        self._engines: dict[str, ProviderPair] = {}
        self._supplies: set[AgentProviders] = set()
        self._making = asyncio.Lock()
        self._kept = 0
        self._sweeping: asyncio.Task[None] | None = None
        self._is_swept = True  # nobody has let go of any since a sweep looked

    async def supply(self, settings: AgentSettings) -> AgentProviders:
        """What embeds for one more agent."""
        wanted = shared(settings)
        async with self._making:
            if wanted not in self._engines:
                choice = await beside(self._choose, settings)
                engine = ProviderPair(settings, choice, self._tools)
                try:
                    await engine.begin()
                except (
                    BaseException
                ):  # half begun, it would be found here for as long as anybody asks for the same
                    await engine.close()
                    raise
                self._engines[wanted] = engine
        supply = AgentProviders(settings, self._engines[wanted], self, self._tools.cache)
        self._supplies.add(supply)
        return supply

    def _max_entries(self) -> int:
        """The cache is that of all agents: the largest of their numbers counts."""
        return max((supply.settings.cache.max_entries for supply in self._supplies), default=0)

    @property
    def worker_pids(self) -> list[int]:
        """The processes that embed for any of them."""
        each = (member.worker_pid for engine in self._engines.values() for member in engine.members)
        return [pid for pid in each if pid is not None]

    async def renew(self) -> None:
        """Look again what the settings of all that are in use mean: a key may be another one, and is tried at once.

        Raises:
            what the first one failed with, after all others were looked at.
        """
        failures: list[Exception] = []
        async with self._making:
            for engine in list(self._engines.values()):
                try:
                    await engine.renew(await beside(self._choose, engine.settings))
                except Exception as failure:  # noqa: BLE001 - raised when the others have had their turn
                    failures.append(failure)
        self._is_swept = False
        await self._sweep()
        if failures:
            raise failures[0]

    async def close(self) -> None:
        """End all of them at once."""
        self._kept += 1  # from here on nobody else closes any
        if self._sweeping is not None:
            await asyncio.wait([self._sweeping])
        await asyncio.gather(*(engine.close() for engine in self._engines.values()))

    # --- who needs which

    @contextlib.contextmanager
    def kept(self) -> Iterator[None]:
        """Close none meanwhile: an agent that changes its settings still needs what its index was made with."""
        self._kept += 1
        try:
            yield
        finally:
            self._kept -= 1
            self.sweep_soon()

    def release(self, supply: AgentProviders) -> None:
        """An agent needs nothing any more."""
        self._supplies.discard(supply)
        self.sweep_soon()

    def sweep_soon(self) -> None:
        """Close those that no agent needs any more."""
        self._is_swept = False
        if not self._kept and (self._sweeping is None or self._sweeping.done()):
            self._sweeping = self._tools.tasks.create_task(self._sweep())

    async def _sweep(self) -> None:
        # To close one takes its time, in which others may be let go of.
        while not (self._is_swept or self._kept):
            await self._close_unneeded()

    async def _close_unneeded(self) -> None:
        async with self._making:
            if self._kept:
                return
            self._is_swept = True
            needed = {supply.engine for supply in self._supplies}
            for supply in self._supplies:
                for space in supply.held:
                    owner = self._owner_of(space, supply.engine)
                    needed |= set() if owner is None else {owner}
            for wanted, engine in list(self._engines.items()):
                if engine not in needed:
                    del self._engines[wanted]
                    log.info("embed.engine_closed", provider=engine.name)
                    await engine.close()

    # --- who has which space

    def member_of(self, space: Space, first: ProviderPair) -> RunningProvider | None:
        """Who embeds in a space: somebody of this engine, else of another one that is still there."""
        owner = self._owner_of(space, first)
        return None if owner is None else owner.member_of(space)

    def _owner_of(self, space: Space, first: ProviderPair) -> ProviderPair | None:
        engines = (first, *self._engines.values())
        return next((engine for engine in engines if engine.member_of(space) is not None), None)
