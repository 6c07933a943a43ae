"""Gathers what waits for vectors, over all agents and files, into the jobs of a batch API."""

import contextlib
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memd.config.settings import BatchSettings
from memd.domain_types import TextHash
from memd.errors import TransientError
from memd.runtime.synchronization import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import KnownVectors
from memd.store.errors import StoreDamaged
from memd.store.index import Index

if TYPE_CHECKING:  # it needs httpx
    from memd.providers.batch.runner import BatchRunner

MOST = 200_000  # chunks of an index that are gathered at once


class BatchSubmitter:
    """What the scheduler hands to batch jobs, and what it must not ask for meanwhile."""

    def __init__(self, known: KnownVectors) -> None:
        """Hand nothing to batch jobs before `use`.

        Args:
            known: The cache, where jobs leave their vectors.
        """
        # Of the jobs; all that are used one after the other have the same one.
        self.changes = ChangeNotifier()
        self._known = known
        self._batches: BatchRunner | None = None
        self._settings = BatchSettings()

    def use(self, batches: "BatchRunner", settings: BatchSettings) -> None:
        """Have jobs from here on."""
        self._batches, self._settings, self.changes = batches, settings, batches.changes

    @property
    def batches(self) -> "BatchRunner | None":
        """The jobs; None where there are none by configuration or by provider."""
        return self._batches

    @property
    def is_enabled(self) -> bool:
        """Whether there are to be new jobs; those that were begun are finished in any case."""
        return self._settings.enabled

    @property
    def is_waited_for(self) -> bool:
        """Whether a sync waits until jobs are done."""
        return self._settings.wait

    @property
    def note(self) -> str | None:
        """What the texts in jobs wait for."""
        if self._batches is None:
            return None
        if not self._batches.jobs:
            return self._batches.reason
        where = "a batch job" if self._batches.jobs == 1 else f"{self._batches.jobs} batch jobs"
        texts = f"{where} of {self._batches.claimed:,} texts"
        return f"in {texts}" if self._settings.wait else f"handed over to {texts}"

    def reason(self, *, use_cache: bool) -> str | None:
        """Why there are no jobs, though they are configured; None: nothing is in the way."""
        if self._batches is None:
            return None
        if not use_cache:
            return "the cache is disabled, and the vectors of a job would have no place"
        if self._known.store.trouble is not None:
            return f"the cache does not work, and the vectors of a job would have no place: {self._known.store.trouble}"
        return self._batches.reason

    def is_wanted(self, waiting: int) -> bool:
        """Whether so many chunks are enough for a job, and jobs are taken."""
        return (
            self._batches is not None
            and self._settings.enabled
            and waiting >= self._settings.min_chunks
            and self._batches.is_open
            and self._known.store.trouble is None
        )

    def without_held(self, waiting: list[WaitingChunk]) -> list[WaitingChunk]:
        """Those of some chunks that are in no job."""
        batches = self._batches
        if batches is None or not batches.claimed:
            return waiting
        return [chunk for chunk in waiting if not batches.holds(chunk.hash)]

    async def held(self, index: Index) -> frozenset[TextHash]:
        """The waiting texts of an index that are in jobs: nobody may ask for them otherwise."""
        batches = self._batches
        if batches is None or not (batches.claimed or batches.holds(TextHash(b""))):
            return frozenset()
        return batches.held_of(frozenset(await index.waiting_hashes()))

    async def submit(
        self, sources: Sequence[tuple[Index, AbstractSet[TextHash]]], asking: set[TextHash]
    ) -> int:
        """Put all that waits into jobs, if it is still enough without what is cached; how many texts that were.

        Args:
            sources: Indexes, each with what of it is under way.
            asking: What is under way for any agent. What is about to be in a job stands there meanwhile.
        """
        if self._batches is None:
            return 0
        texts: dict[TextHash, str] = {}
        for index, out in sources:
            # What one index fails at is met, and told, when it is served itself.
            with contextlib.suppress(TransientError, StoreDamaged):
                for chunk in await index.waiting(MOST, frozenset(out)):
                    if chunk.hash not in asking and self._batches.takes(chunk.hash):
                        texts[chunk.hash] = chunk.text
        hashes = list(texts)
        for text_hash in (await self._known.held(hashes)) | (await self._known.refused(hashes)):
            del texts[text_hash]
        # A request may have been sent meanwhile.
        texts = {text_hash: text for text_hash, text in texts.items() if text_hash not in asking}
        if len(texts) < self._settings.min_chunks:
            return 0
        asking.update(texts)
        try:
            await self._batches.submit(texts)
        finally:
            asking.difference_update(texts)
        return len(self._batches.held_of(texts.keys()))
