"""What building an index anew would cost, without building it."""

from collections.abc import Collection, Sequence

import msgspec

from memd.errors import MemdError
from memd.indexing.index_notes import read_and_cut, unexpected
from memd.indexing.index_transcripts import read_and_cut_session
from memd.indexing.rules import IndexingRules
from memd.model import Chunk, FoundFile, Kind, TextHash, embedded_text
from memd.runtime.threads import NoMemory, Threads
from memd.sources.safe_open import SourceError
from memd.sources.scan import scan
from memd.store.embeddings import KnownVectors
from memd.store.parts import hash_of
from memd.text.tokens import estimate_tokens


class RebuildCost(msgspec.Struct, frozen=True):
    """How much there is to do."""

    files: int
    chunks: int
    cached: int  # chunks whose vector is known
    to_embed: int  # texts, each counted once
    tokens: int  # estimated, of the texts to embed


async def cost(
    treatment: IndexingRules,
    vectors: KnownVectors | None,
    *,
    held: frozenset[TextHash] = frozenset(),
    force: bool,
    embeds: bool,
    with_parts: bool = False,
    threads: Threads,
) -> RebuildCost:
    """Read and cut every file, and see which texts have a vector. A file that cannot be read or cut costs nothing.

    Args:
        treatment: Of the agent.
        vectors: What is known; None where there is no provider, or no cache.
        held: Texts whose vectors the index has and hands on.
        force: Nothing that is known would be used.
        embeds: Whether there is a provider; without one nothing is embedded.
        with_parts: Whether parts of chunks are embedded, too.
        threads: Where files are read.

    Raises:
        NoMemory, Exhausted: there is no memory, or no file descriptor, to read a file with.
        NoThread: the system gives no thread.
    """
    found = (await threads.run(scan, treatment.roots, max_bytes=treatment.max_bytes)).found
    texts: dict[TextHash, int] = {}
    chunks: list[TextHash] = []
    files = 0
    for file in found.values():
        try:
            cut = await threads.run(_chunks_of, file, treatment)
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
    settled = known | refused
    missing = {text_hash: tokens for text_hash, tokens in texts.items() if text_hash not in settled}
    if not embeds:
        missing = {}
    cached = sum(text_hash in known for text_hash in chunks)
    return RebuildCost(files, len(chunks), cached, len(missing), sum(missing.values()))


def _chunks_of(file: FoundFile, treatment: IndexingRules) -> Sequence[Chunk]:
    if file.kind is Kind.SESSION:
        return read_and_cut_session(file, treatment).chunks
    return read_and_cut(file, treatment).chunks


async def _known(
    texts: Collection[TextHash], vectors: KnownVectors | None
) -> tuple[frozenset[TextHash], frozenset[TextHash]]:
    """The texts whose vectors are kept, and those that no provider takes."""
    if vectors is None:
        return frozenset(), frozenset()
    hashes = list(texts)
    return await vectors.held(hashes), await vectors.refused(hashes)
