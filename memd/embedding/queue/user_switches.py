"""Pauses and confirmations of a person, kept over a restart."""

import asyncio
from collections.abc import Callable
from typing import Protocol

import msgspec
import structlog

from memd.errors import MemdError, TransientError
from memd.store.embedding_cache import Space

log = structlog.get_logger()

_ANY: Space = ("", "", "")  # a pause is meant for whatever provider an agent has
_PAUSED = "paused"
_CONFIRMED = "confirmed"


class SpaceDocuments(Protocol):
    """Small documents of one embedding space."""

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer.
        """
        ...

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name.

        Raises:
            StoreUnavailable, StoreDamaged, StoreNewer.
        """
        ...


class TransientDocuments:
    """Documents that last as long as the process."""

    def __init__(self) -> None:
        self._kept: dict[str, bytes] = {}

    async def document(self, name: str) -> bytes | None:
        """A document that was put, or None."""
        return self._kept.get(name)

    async def put_document(self, name: str, content: bytes) -> None:
        """Keep a document in the place of the one of that name."""
        self._kept[name] = content


def forgetful(_: Space) -> SpaceDocuments:
    """Documents in memory alone, for each call others."""
    return TransientDocuments()


class UserSwitch(msgspec.Struct, frozen=True):
    """The switches of one agent."""

    paused: bool = False
    confirmed: bool = False  # whatever there is to embed in this space may be sent


class UserSwitches:
    """The switches of all agents of one embedding space, in memory once they were read."""

    def __init__(self, space: Space, documents: Callable[[Space], SpaceDocuments]) -> None:
        """Read nothing before `read`.

        Args:
            space: The provider, model and key that a confirmation is for.
            documents: Where the documents of a space are.
        """
        self._of_space = documents(space)
        self._of_any = documents(_ANY)
        self._paused: dict[str, bool] = {}  # by agent
        self._confirmed: dict[str, bool] = {}  # by agent
        # Of these, what the document says; None where a write has not succeeded, which may have been done all the same.
        self._kept: dict[str, bool | None] = {}
        self._writing = asyncio.Lock()

    def of(self, agent: str) -> UserSwitch:
        """The switches of an agent, as far as they were read."""
        return UserSwitch(paused=self._paused.get(agent, False), confirmed=self._confirmed.get(agent, False))

    async def read(self, agent: str) -> UserSwitch:
        """Read the switches of an agent; one that cannot be read is off."""
        # Where setdefault finds something, a person was quicker.
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
        """Read again what is wished for an agent: it may be asked for at another provider meanwhile."""
        self._paused.pop(agent, None)
        if not self.is_unkept(agent):  # else what would be read is not what was wished
            self._confirmed.pop(agent, None)
            self._kept.pop(agent, None)

    def is_unkept(self, agent: str) -> bool:
        """Whether a confirmation, or that there is none any more, holds only until the daemon ends."""
        return agent in self._kept and self._kept[agent] != self._confirmed.get(agent)

    async def pause(self, agent: str, *, paused: bool) -> None:
        """Pause an agent, or no longer.

        Raises:
            StoreUnavailable: it holds until the daemon ends.
        """
        self._paused[agent] = paused
        await self._of_any.put_document(f"{_PAUSED}:{agent}", msgspec.json.encode(paused))

    async def confirm(self, agent: str, *, confirmed: bool) -> None:
        """Let an agent send whatever it has, or no longer. Nothing is written where that is known to be written.

        Raises:
            StoreUnavailable: it holds until the daemon ends.
        """
        self._confirmed[agent] = confirmed
        self._kept.setdefault(agent, None)
        async with self._writing:
            if self._kept[agent] == confirmed:
                return
            self._kept[agent] = None
            await self._of_space.put_document(f"{_CONFIRMED}:{agent}", msgspec.json.encode(confirmed))
            self._kept[agent] = confirmed


async def _read(documents: SpaceDocuments, name: str) -> bool | None:
    """What a document says; False where there is none, None where that cannot be known."""
    try:
        content = await documents.document(name)
    except (TransientError, MemdError) as failure:
        log.warning("embed.wish_unreadable", switch=name.partition(":")[0], reason=str(failure))
        return None
    try:
        return content is not None and msgspec.json.decode(content, type=bool)
    except msgspec.DecodeError:
        return False
