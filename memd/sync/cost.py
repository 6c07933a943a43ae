"""What building an index anew would cost, without building it."""

import asyncio
from collections.abc import Sequence

import msgspec

from memd.config import AgentSettings
from memd.model import TextHash, embedded_text
from memd.paths import Root
from memd.sources.fence import SourceError
from memd.sources.scan import scan
from memd.store.embeddings import KnownVectors
from memd.sync.apply import read_and_cut
from memd.text import estimate_tokens


class Cost(msgspec.Struct, frozen=True):
    """How much there is to do."""

    files: int
    chunks: int
    cached: int  # chunks whose vector is known
    to_embed: int  # texts, each counted once
    tokens: int  # estimated, of the texts to embed


async def cost(
    roots: Sequence[Root],
    settings: AgentSettings,
    max_bytes: int,
    vectors: KnownVectors | None,
    *,
    force: bool,
) -> Cost:
    """Read and cut every file, and see which texts have a vector.

    Args:
        roots: Of the agent.
        settings: Of the agent.
        max_bytes: Of a file that is indexed.
        vectors: What is known; None where there is no provider, or no cache.
        force: Nothing that is known would be used.
    """
    found = (await asyncio.to_thread(scan, roots, max_bytes=max_bytes)).found
    texts: dict[TextHash, int] = {}
    chunks: list[TextHash] = []
    for file in found.values():
        try:
            cut = await asyncio.to_thread(read_and_cut, file, roots, settings.chunking, max_bytes)
        except SourceError:
            continue
        for chunk in cut.chunks:
            chunks.append(chunk.hash)
            texts[chunk.hash] = estimate_tokens(embedded_text(chunk.context, chunk.text))
    known = set() if vectors is None or force else set(await vectors.get(list(texts)))
    missing = [tokens for text_hash, tokens in texts.items() if text_hash not in known]
    cached = sum(text_hash in known for text_hash in chunks)
    return Cost(len(found), len(chunks), cached, len(missing), sum(missing))
