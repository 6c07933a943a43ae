"""Collects waiting texts of all agents and files into jobs of a batch API."""

import contextlib
from collections import Counter
from collections.abc import Sequence
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

from memd.config.settings import BatchSettings
from memd.domain_types import TextHash
from memd.errors import TransientError
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.chunks import WaitingChunk
from memd.store.embedding_cache import KnownVectors
from memd.store.errors import StoreDamaged
from memd.store.index import Index

if TYPE_CHECKING:  # it needs httpx
    from memd.providers.batch.runner import BatchRunner

MOST = 200_000  # texts of an index that are read at once


class BatchSubmitter:
    """Hands texts to batch jobs, and excludes texts in jobs from requests."""

    def __init__(self, known: KnownVectors) -> None:
        """Start without jobs; `use` sets them.

        Args:
            known: The cache, into which jobs write their vectors.
        """
        # Notified by the jobs; all that are used one after the other share it.
        self.changes = ChangeNotifier()
        self._known = known
        self._batches: BatchRunner | None = None
        self._settings = BatchSettings()

    def use(self, batches: "BatchRunner", settings: BatchSettings) -> None:
        """Use some jobs from now on."""
        self._batches, self._settings, self.changes = batches, settings, batches.changes

    @property
    def batches(self) -> "BatchRunner | None":
        """The jobs; None: disabled, or not supported by the provider."""
        return self._batches

    @property
    def is_enabled(self) -> bool:
        """Whether new jobs are created; existing ones are finished in any case."""
        return self._settings.enabled

    @property
    def is_waited_for(self) -> bool:
        """Whether a sync waits for jobs."""
        return self._settings.wait

    @property
    def note(self) -> str | None:
        """What the texts in jobs wait for; None: nothing."""
        if self._batches is None:
            return None
        if not self._batches.jobs:
            return self._batches.reason
        where = "a batch job" if self._batches.jobs == 1 else f"{self._batches.jobs} batch jobs"
        claimed = self._batches.claimed
        texts = f"{where} of {claimed:,} {'text' if claimed == 1 else 'texts'}"
        return f"in {texts}" if self._settings.wait else f"handed over to {texts}"

    def reason(self, *, use_cache: bool) -> str | None:
        """Return why no jobs are created although they are enabled; None: there is no reason."""
        if self._batches is None:
            return None
        if not use_cache:
            return "the cache is disabled, and the vectors of a job would have no place"
        if self._known.store.failure is not None:
            return f"the cache does not work, and the vectors of a job would have no place: {self._known.store.failure}"
        return self._batches.reason

    def is_wanted(self, waiting: int) -> bool:
        """Return whether a number of waiting texts is enough for a job that can be created now."""
        return (
            self._batches is not None
            and self._settings.enabled
            and waiting >= self._settings.min_chunks
            and self._batches.is_open
            and self._known.store.failure is None
        )

    def without_held(self, waiting: list[WaitingChunk]) -> list[WaitingChunk]:
        """Return the chunks that are in no job."""
        batches = self._batches
        if batches is None or not batches.claimed:
            return waiting
        return [chunk for chunk in waiting if not batches.holds(chunk.hash)]

    async def held(self, index: Index) -> frozenset[TextHash]:
        """Return the hashes of an index's waiting texts that are in jobs; they must not be requested otherwise."""
        batches = self._batches
        if batches is None or not (batches.claimed or batches.holds(TextHash(b""))):
            return frozenset()
        return batches.held_of(frozenset(await index.waiting_hashes()))

    async def submit(
        self, sources: Sequence[tuple[Index, AbstractSet[TextHash]]], asking: set[TextHash]
    ) -> Sequence[int]:
        """Create jobs of all waiting texts, if they are enough without those that are cached.

        Args:
            sources: Indexes, each with the hashes of its texts in flight.
            asking: The hashes in flight for any agent; texts that are being submitted are added meanwhile.

        Returns:
            The number of texts that are in jobs now, by source; a text of several sources counts for the first.
        """
        if self._batches is None:
            return [0] * len(sources)
        texts: dict[TextHash, str] = {}
        source_of: dict[TextHash, int] = {}
        for number, (index, out) in enumerate(sources):
            # A failure of one index is raised and reported when that index is served itself.
            with contextlib.suppress(TransientError, StoreDamaged):
                for chunk in await index.waiting(MOST, frozenset(out)):
                    if chunk.hash not in asking and self._batches.takes(chunk.hash):
                        texts[chunk.hash] = chunk.text
                        source_of.setdefault(chunk.hash, number)
        hashes = list(texts)
        for text_hash in (await self._known.held(hashes)) | (await self._known.refused(hashes)):
            del texts[text_hash]
        # Requests may have been sent meanwhile.
        texts = {text_hash: text for text_hash, text in texts.items() if text_hash not in asking}
        if len(texts) < self._settings.min_chunks:
            return [0] * len(sources)
        asking.update(texts)
        try:
            await self._batches.submit(texts)
        finally:
            asking.difference_update(texts)
        counts = Counter(source_of[text_hash] for text_hash in self._batches.held_of(texts.keys()))
        return [counts[number] for number in range(len(sources))]
