"""Vectors back into the cache from the indexes that hold them: they were paid for."""

from itertools import islice

import structlog

from memd.maintenance.loop import BackgroundTask
from memd.store.embedding_cache import EmbeddingStore, KnownVectors
from memd.store.errors import StoreDamaged, StoreUnavailable
from memd.store.index import Index

log = structlog.get_logger()

BATCH = 400  # texts that are looked up at once


async def refill(index: Index, cache: EmbeddingStore) -> int:
    """Put into the cache what the index has and the cache has not; how many vectors.

    As far as both can be read: what cannot be had is embedded again when it is wanted.
    """
    done = 0
    try:
        fingerprint = await index.fingerprint()
        if fingerprint is None or fingerprint.space is None:
            return 0
        known = KnownVectors(cache, fingerprint.space)
        hashes = iter(await index.embedded())
        while some := list(islice(hashes, BATCH)):
            there = await known.get(some)
            missing = await index.vectors_of([one for one in some if one not in there])
            if missing:
                await known.put(missing)
                done += len(missing)
    except (StoreDamaged, StoreUnavailable) as trouble:
        log.warning("cache.refill_cut_short", index=index.file.name, reason=str(trouble))
    if done:
        log.info("cache.refilled", index=index.file.name, vectors=done)
    return done


def refill_cache(index: Index, cache: EmbeddingStore) -> BackgroundTask:
    """Refill the cache where it is new or the daemon before was killed, and each time it had to begin anew.

    After a power cut it may lack what the index has: nobody waits for the disk when a vector is cached.
    """
    seen = 0  # also what was lost before this index was opened
    is_first = not cache.ended_cleanly

    async def due() -> None:
        nonlocal seen, is_first
        if not is_first:
            seen = await cache.renewed.since(seen)
        is_first = False

    async def run() -> None:
        await refill(index, cache)

    return BackgroundTask("refilling the cache", run, due)
