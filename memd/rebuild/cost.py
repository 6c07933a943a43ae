"""Estimates what a rebuild would embed, and asks for confirmation before it."""

import contextlib
import sys
from collections.abc import AsyncIterator, Collection, Sequence

import msgspec

from memd.config.settings import AgentSettings
from memd.domain_types import Chunk, FoundFile, TextHash, embedded_text
from memd.embedding.passage_queue.scheduler import EmbeddingQueue
from memd.embedding.registry import AgentQueues
from memd.errors import MemdError
from memd.indexing.index_notes import read_and_cut, unexpected
from memd.indexing.rules import IndexingRules
from memd.providers.provider import space_of
from memd.rebuild.fingerprint import embeds_parts
from memd.runtime.threads import NoMemory, Threads
from memd.sources.safe_open import SourceError
from memd.sources.scan import scan
from memd.store.chunk_parts import hash_of
from memd.store.embedding_cache import KnownVectors
from memd.store.index import Index
from memd.store.meta import Fingerprint
from memd_client.token_estimate import estimate_tokens


class RebuildCost(msgspec.Struct, frozen=True):
    """How much a rebuild would read and embed."""

    files: int
    chunks: int
    cached: int  # chunks whose vector is known
    to_embed: int  # texts, each counted once
    tokens: int  # estimate for the texts to embed


class CostEstimate:
    """Estimates what a rebuild of one agent's index would cost now."""

    def __init__(
        self, settings: AgentSettings, rules: IndexingRules, index: Index, queues: AgentQueues, files: Threads
    ) -> None:
        """Create it without reading anything.

        Args:
            settings: The agent's settings.
            rules: How its files are read and cut.
            index: The current index.
            queues: The agent's embedding queues and cached vectors.
            files: The threads on which files are read.
        """
        self._settings = settings
        self._rules = rules
        self._index = index
        self._queues = queues
        self._files = files

    async def of_rebuild(self, *, force: bool) -> RebuildCost:
        """Read and cut all files, and count the texts without a known vector.

        Args:
            force: Whether the rebuild would embed all chunks again.

        Raises:
            NoMemory, ProcessExhausted, NoThread: see cost. StoreUnavailable, StoreDamaged.
        """
        wanted = self._queues.providers.wanted
        space = None if wanted is None else space_of(wanted)
        known = self._queues.known(space)
        # A rebuild first copies the index's vectors into the cache.
        is_kept = known is not None and not force and self._index.space == space
        return await cost(
            self._rules,
            known,
            held=frozenset(await self._index.embedded()) if is_kept else frozenset(),
            force=force,
            embeds=self._queues.embeds,
            with_parts=wanted is not None and embeds_parts(self._settings, wanted.provider),
            threads=self._files,
        )


async def cost(
    rules: IndexingRules,
    vectors: KnownVectors | None,
    *,
    held: frozenset[TextHash] = frozenset(),
    force: bool,
    embeds: bool,
    with_parts: bool = False,
    threads: Threads,
) -> RebuildCost:
    """Read and cut all files, and count the texts without a vector; files that cannot be read or cut are skipped.

    Args:
        rules: The agent's indexing rules.
        vectors: The cached vectors; None if there is no provider or no cache.
        held: Texts whose vectors the current index passes on.
        force: Whether cached vectors are ignored.
        embeds: Whether there is a provider; without one nothing is embedded.
        with_parts: Whether parts of chunks are embedded, too.
        threads: The threads on which files are read.

    Raises:
        NoMemory, ProcessExhausted: memory or file descriptors were too few to read a file.
        NoThread: no thread could be started.
    """
    found = (await threads.run(scan, rules.roots, max_bytes=rules.max_bytes)).found
    texts: dict[TextHash, int] = {}
    chunks: list[TextHash] = []
    files = 0
    for file in found.values():
        try:
            cut = await threads.run(_chunks_of, file, rules)
        except SourceError:
            continue
        except NoMemory as failure:
            unexpected(file, failure)
            continue
        except MemdError:
            raise
        except Exception as failure:  # noqa: BLE001 - logged there
            unexpected(file, failure)
            continue
        files += 1
        for chunk in cut:
            chunks.append(chunk.hash)
            texts[chunk.hash] = estimate_tokens(embedded_text(chunk.context, chunk.text))
            for begin, end in chunk.parts if with_parts else ():
                part = chunk.text[begin:end]
                texts[hash_of(part)] = estimate_tokens(part)
    known, refused = await _known(texts, None if force else vectors)
    known |= held
    needless = known | refused
    missing = {text_hash: tokens for text_hash, tokens in texts.items() if text_hash not in needless}
    if not embeds:
        missing = {}
    cached = sum(text_hash in known for text_hash in chunks)
    return RebuildCost(files, len(chunks), cached, len(missing), sum(missing.values()))


def _chunks_of(file: FoundFile, rules: IndexingRules) -> Sequence[Chunk]:
    if file.kind.is_session:
        # Imported only here, because it imports the parsers of all formats.
        from memd.indexing.index_transcripts import read_and_cut_session  # noqa: PLC0415

        return read_and_cut_session(file, rules).chunks
    return read_and_cut(file, rules).chunks


async def _known(
    texts: Collection[TextHash], vectors: KnownVectors | None
) -> tuple[frozenset[TextHash], frozenset[TextHash]]:
    """Return the texts whose vectors are cached, and those that the provider has refused."""
    if vectors is None:
        return frozenset(), frozenset()
    hashes = list(texts)
    return await vectors.held(hashes), await vectors.refused(hashes)


class RebuildPermission:
    """Asks for permission before a rebuild of one agent's index."""

    def __init__(self, agent: str, queues: AgentQueues, estimate: CostEstimate) -> None:
        """Create it; nobody is asked yet.

        Args:
            agent: The agent's id.
            queues: The agent's embedding queues.
            estimate: Estimates what a rebuild would embed.
        """
        self.asked: EmbeddingQueue | None = None  # the queue through which a person is being asked
        self._agent = agent
        self._queues = queues
        self._estimate = estimate

    @contextlib.asynccontextmanager
    async def permitted(self, wanted: Fingerprint, force: bool) -> AsyncIterator[None]:
        """Wait until the rebuild may begin; the permission lasts until the end of the block.

        Args:
            wanted: The settings and model that the new index is for.
            force: Whether all chunks are embedded again.
        """
        queue = self._queues.queue(wanted.space)
        if queue is None or not queue.confirmations.asks_before(sys.maxsize):
            yield
            return
        self.asked = queue
        try:
            price = await self._estimate.of_rebuild(force=force)
            async with queue.confirmations.permitted(self._agent, price.to_embed, price.tokens):
                self.asked = None
                yield
        finally:
            self.asked = None
