"""Switches of the user: pauses, and confirmations of costs; they are stored."""

import asyncio
import contextlib
from collections.abc import AsyncIterator

import msgspec
import structlog

from memd.embedding.passage_queue.agent_backlog import AgentBacklog, WaitingForConfirmation
from memd.errors import MemdError, TransientError
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.embedding_cache import KnownVectors, Space
from memd.store.provider_records import ProviderStore
from memd_client.token_estimate import estimate_tokens

log = structlog.get_logger()

ANY_SPACE: Space = ("", "", "")  # pauses apply to any provider of an agent
_PAUSED = "paused"
_CONFIRMED = "confirmed"


class UserSwitch(msgspec.Struct, frozen=True):
    """The switches of one agent."""

    paused: bool
    confirmed: bool  # all waiting texts may be sent to this space


class UserSwitches:
    """The switches of all agents of one vector space, in memory after the first read."""

    def __init__(self, of_space: ProviderStore, of_any: ProviderStore) -> None:
        """Create the object; `read` loads switches.

        Args:
            of_space: The documents of the space, for confirmations.
            of_any: The documents of ANY_SPACE, for pauses.
        """
        self._of_space = of_space
        self._of_any = of_any
        self._paused: dict[str, bool] = {}  # by agent
        self._confirmed: dict[str, bool] = {}  # by agent
        # The stored confirmations; None after a failed write, which may have been done nevertheless.
        self._kept: dict[str, bool | None] = {}
        self._writing = asyncio.Lock()

    def of(self, agent: str) -> UserSwitch:
        """Return the switches of an agent, as far as they were read."""
        return UserSwitch(paused=self._paused.get(agent, False), confirmed=self._confirmed.get(agent, False))

    def let_send(self, backlog: AgentBacklog) -> bool:
        """Return whether the user's switches allow sending texts of an agent."""
        switch = self.of(backlog.agent)
        return not switch.paused and (backlog.unconfirmed is None or switch.confirmed)

    async def read(self, agent: str) -> UserSwitch:
        """Read the switches of an agent; one that cannot be read is off."""
        # setdefault: the user may have set a switch meanwhile.
        if agent not in self._paused:
            paused = await _read(self._of_any, f"{_PAUSED}:{agent}")
            self._paused.setdefault(agent, paused is True)
        if agent not in self._confirmed:
            async with self._writing:
                confirmed = await _read(self._of_space, f"{_CONFIRMED}:{agent}")
                self._confirmed.setdefault(agent, confirmed is True)
                if confirmed is not None:
                    self._kept[agent] = confirmed
        return self.of(agent)

    def forget(self, agent: str) -> None:
        """Drop the switches of an agent from memory: another provider may change them meanwhile."""
        self._paused.pop(agent, None)
        if not self.is_unsaved(agent):  # otherwise the stored value is outdated
            self._confirmed.pop(agent, None)
            self._kept.pop(agent, None)

    def is_unsaved(self, agent: str) -> bool:
        """Return whether the current confirmation of an agent differs from the stored one."""
        return agent in self._kept and self._kept[agent] != self._confirmed.get(agent)

    def has_confirmation(self, agent: str) -> bool:
        """Return whether an agent's confirmation holds, or may be the stored one."""
        return self._confirmed.get(agent, False) or self.is_unsaved(agent)

    async def pause(self, agent: str, *, paused: bool) -> None:
        """Pause or resume an agent.

        Raises:
            StoreUnavailable: the change lasts only until the daemon ends.
        """
        self._paused[agent] = paused
        await self._of_any.put_document(f"{_PAUSED}:{agent}", msgspec.json.encode(paused))

    async def confirm(self, agent: str, *, confirmed: bool) -> None:
        """Set or clear the confirmation of an agent; it is written only if the stored value differs.

        Raises:
            StoreUnavailable: the change lasts only until the daemon ends.
        """
        self._confirmed[agent] = confirmed
        self._kept.setdefault(agent, None)
        async with self._writing:
            if self._kept[agent] == confirmed:
                return
            self._kept[agent] = None
            await self._of_space.put_document(f"{_CONFIRMED}:{agent}", msgspec.json.encode(confirmed))
            self._kept[agent] = confirmed


async def _read(documents: ProviderStore, name: str) -> bool | None:
    """Read a stored switch; False if there is none, None if it is unknown."""
    try:
        content = await documents.document(name)
    except (TransientError, MemdError) as failure:
        log.warning("embed.wish_unreadable", switch=name.partition(":")[0], reason=str(failure))
        return None
    try:
        return content is not None and msgspec.json.decode(content, type=bool)
    except msgspec.DecodeError:
        return False


SAMPLE = 400  # chunks by which the tokens of all waiting texts are estimated


class CostConfirmations:
    """Requires confirmation by the user before many texts are sent to one provider."""

    def __init__(
        self, above: int | None, switches: UserSwitches, known: KnownVectors, progress: ChangeNotifier
    ) -> None:
        """Create the object.

        Args:
            above: More uncached texts than this require confirmation; None: none is required.
            switches: Store the confirmations.
            known: The cache, whose texts need not be sent.
            progress: Notified when a confirmation is required; waiters for confirmations wait on it.
        """
        self._above = above
        self._switches = switches
        self._known = known
        self._progress = progress
        self._rebuilds: dict[str, WaitingForConfirmation] = {}  # rebuilds that wait, by agent
        self._rebuilding: dict[str, int] = {}  # the number of permitted rebuilds that are running, by agent

    @property
    def may_ask(self) -> bool:
        """Whether any number of texts requires confirmation."""
        return self._above is not None

    def asks_before(self, texts: int) -> bool:
        """Return whether this number of texts requires confirmation."""
        return self._above is not None and texts > self._above

    def asked_before_rebuild(self, agent: str) -> WaitingForConfirmation | None:
        """Return the confirmation that a rebuild waits for; None: none."""
        return self._rebuilds.get(agent)

    def is_in_use(self, agent: str) -> bool:
        """Return whether a rebuild uses a confirmation, or waits for one."""
        return bool(self._rebuilding.get(agent)) or agent in self._rebuilds

    @contextlib.asynccontextmanager
    async def permitted(self, agent: str, texts: int, tokens: int) -> AsyncIterator[None]:
        """Wait until a rebuild that sends this number of texts may run; its confirmation is kept in the context."""
        switch = await self._switches.read(agent)
        try:
            if self.asks_before(texts) and not switch.confirmed:
                log.info("embed.confirmation_wanted", agent=agent, texts=texts, tokens=tokens)
                self._rebuilds[agent] = WaitingForConfirmation(texts, tokens)
                self._progress.notify()
                while not self._switches.of(agent).confirmed:
                    await self._progress.next()
            self._rebuilding[agent] = self._rebuilding.get(agent, 0) + 1
        finally:
            self._rebuilds.pop(agent, None)
        try:
            yield
        finally:
            self._rebuilding[agent] -= 1

    async def wanted(self, backlog: AgentBacklog, waiting: int) -> WaitingForConfirmation | None:
        """Return the confirmation required before more texts of an agent are sent; None: none is required.

        Args:
            backlog: The agent's backlog.
            waiting: The number of its waiting texts, cached or not.

        Raises:
            StoreUnavailable, StoreDamaged: the index cannot be read.
        """
        if not self.asks_before(backlog.sent + waiting) or self._switches.of(backlog.agent).confirmed:
            return None
        index = backlog.source.index
        hashes = set(await index.waiting_hashes()).difference(backlog.held, backlog.out)
        if backlog.source.use_cache:
            some = list(hashes)
            hashes -= await self._known.held(some) | await self._known.refused(some)
        if not self.asks_before(backlog.sent + len(hashes)):
            return None
        before = backlog.unconfirmed
        sent = 0 if self.asks_before(len(hashes)) else backlog.sent
        if before is not None and (before.chunks, before.sent) == (len(hashes), sent):
            return before
        sample = await index.waiting(SAMPLE, backlog.held.union(backlog.out))
        mean = sum(estimate_tokens(chunk.text) for chunk in sample) / max(1, len(sample))
        asked = WaitingForConfirmation(len(hashes), round(mean * len(hashes)), sent)
        if before is None:
            log.info(
                "embed.confirmation_wanted", agent=backlog.agent, texts=asked.chunks, tokens=asked.tokens
            )
        return asked
