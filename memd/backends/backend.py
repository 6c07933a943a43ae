"""The interface of a backend: what answers an agent's searches."""

import asyncio
from collections.abc import Mapping
from datetime import datetime
from pathlib import Path
from typing import Protocol

import msgspec

from memd.config.settings import AgentSettings
from memd.domain_types import NO_FILTER, DegradedPart, FallbackUse, FoundHit, Kind, SearchFilter, Trace
from memd.index_service import IndexService
from memd.indexing.rules import IndexingRules
from memd.store.index import Index


class IndexedAgent(msgspec.Struct, frozen=True):
    """An agent with its index and its settings, as a backend needs them."""

    id: str
    settings: AgentSettings
    rules: IndexingRules  # which files are indexed, and how they are read
    index: Index
    index_service: IndexService  # keeps the index up to date


class BackendEnvironment(msgspec.Struct, frozen=True):
    """What backends that run external programs need from this process."""

    environ: Mapping[str, str]
    home: Path  # replaces ~ in paths
    # Held while an external program embeds: its model may use the whole machine, so only one embeds at a
    # time.
    embed_slot: asyncio.Lock = msgspec.field(default_factory=asyncio.Lock)


class BackendQuestion(msgspec.Struct, frozen=True, kw_only=True):
    """A search, with defaults from the configuration filled in."""

    text: str
    kinds: frozenset[Kind]  # what the caller may see
    max_results: int
    min_score: float
    mode: str = "hybrid"  # hybrid | keyword | vector: how hits are found
    now: datetime | None = None  # local time, without a zone, at which the question is asked; None: unknown
    wanted: SearchFilter = NO_FILTER  # only files and turns that pass this filter are searched
    by_time: bool = False  # order hits by time, newest first
    included: frozenset[str] = frozenset()  # names of the included memories that the caller may see


class BackendAnswer(msgspec.Struct, frozen=True, kw_only=True):
    """The hits of a search, and which backend and provider found them."""

    hits: tuple[FoundHit, ...] = ()
    backend: str
    provider: str
    model: str
    mode: str  # hybrid | keyword | vector
    stale: bool = False
    degraded: tuple[DegradedPart, ...] = ()
    fallback: FallbackUse | None = None  # None: the configured backend and provider answered


MAX_CHARS = 12_000  # default limit of one excerpt


class Excerpt(msgspec.Struct, frozen=True):
    """Consecutive lines of a file."""

    text: str
    start_line: int
    end_line: int  # 0: the excerpt is empty
    next_line: int | None  # start_line of the next excerpt; None: the end was reached
    # Lines of a note, or the last line of a transcript that has text; None: unknown.
    total_lines: int | None = None


class VectorSearchStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Whether vector search is available."""

    ok: bool = True
    reason: str | None = None  # why it is not available
    enabled: bool = True  # whether the configuration asks for it
    available: bool = True


class ProgramStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Status of the external program that a backend runs."""

    command: str  # path or name of the program
    version: str | None
    search_mode: str  # current search mode; "search" (keywords only) as long as there are no vectors
    collections: tuple[str, ...]
    files: int | None  # files in its collections, by its own count; None: unknown
    exported: int  # files that memd keeps for it
    left_alone: int  # unknown files in the export directories, which memd does not touch
    updating: bool
    last_update: float | None  # Unix time of the last update that succeeded
    update_failure: str | None
    last_embed: float | None  # Unix time of the last embedding that succeeded
    warnings: tuple[str, ...]


class BackendStandIn(msgspec.Struct, frozen=True, kw_only=True):
    """Says that a backend answers in place of the configured one."""

    instead_of: str
    reason: str
    # Unix time of the first failure in a row; None: the configured backend is not ready yet
    since: float | None = None
    retry_at: float | None = None  # Unix time from which a search tries the configured backend again


class IncludedState(msgspec.Struct, frozen=True):
    """Whether an included memory is searched."""

    name: str
    reason: str | None  # why it is not searched now; None: it is


class BackendStatus(msgspec.Struct, frozen=True, kw_only=True):
    """Which backend answers now, and its status."""

    backend: str
    provider: str
    model: str
    vector: VectorSearchStatus
    stand_in: BackendStandIn | None = None  # None: the configured backend answers
    program: ProgramStatus | None = None  # None: no external program is running for it
    included: tuple[IncludedState, ...] = ()


class Backend(Protocol):
    """Answers the searches of one agent."""

    async def search(self, question: BackendQuestion) -> BackendAnswer:
        """Return the hits, best first; a part that fails does not raise, but is listed in `degraded`."""
        ...

    async def explain(self, question: BackendQuestion) -> tuple[BackendAnswer, Trace]:
        """Return the hits, and how each candidate was ranked."""
        ...

    async def get(
        self,
        path: str,
        *,
        start_line: int,
        lines: int,
        kinds: frozenset[Kind],
        max_chars: int = MAX_CHARS,
    ) -> Excerpt | None:
        """Return lines of an indexed file, or None if the file is not indexed or the caller may not see its kind."""
        ...

    async def warm(self) -> None:
        """Prepare everything before the first search; failures are logged and shown in the status."""
        ...

    def status(self) -> BackendStatus:
        """Return the status as known now, without asking anything or waiting."""
        ...

    async def close(self) -> None:
        """Stop all work that the backend has started."""
        ...
