"""Batches against the local server, with a real ledger."""

import hashlib
import time
from collections.abc import AsyncIterator, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from random import Random

import msgspec
import numpy as np

from memd.config.settings import BatchSettings, Remote
from memd.domain_types import TextHash
from memd.providers.api_keys import ProviderAddress, account
from memd.providers.batch.client import BatchClient, BatchTimeouts, batch_dialect
from memd.providers.batch.dialect import BatchDialect, BatchLimits
from memd.providers.batch.gemini import GeminiBatches
from memd.providers.batch.job import VectorForm
from memd.providers.batch.ledger import Ledger
from memd.providers.batch.openai import OpenAIBatches
from memd.providers.batch.runner import BatchRunner
from memd.providers.cosine_calibration import Bias, BiasLine
from memd.providers.provider import Calibration, Vectors
from memd.providers.remote import gemini, openai
from memd.providers.remote.dialect import Dialect
from memd.providers.remote.http import HttpConnections
from memd.providers.remote.identify_model import ModelIdentity
from memd.providers.remote.provider import RemoteProvider
from memd.providers.remote.retrying_client import RetryingClient, RetryPolicy
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.embedding_cache import EmbeddingStore, KnownVectors, Space
from memd.store.int16_vectors import rounded
from memd.store.provider_records import ProviderStore
from tests.fakes import HashingProvider
from tests.fakes.embedding_server import KEY, EmbeddingServer
from tests.wait import until_async, until_awaited

DIMENSIONS = 32
PROVIDERS = ["openai", "gemini", "voyage"]
QUICK = RetryPolicy(attempts=3, first_s=0.001, longest_asked_s=0.2, timeouts=2)
SOON = BatchTimeouts(
    request_s=10.0,
    first_s=0.002,
    longest_s=0.01,
    longest_asked_s=0.3,
    cancel_s=5.0,
    gone_s=2.5,
    appear_s=0.02,
    forget_s=60,
)
_DIALECTS: dict[str, tuple[ProviderAddress, Callable[[str, Remote], Dialect], str | None]] = {
    "openai": (openai.HOME, openai.openai, None),
    "gemini": (gemini.HOME, gemini.gemini, gemini.KEY_HEADER),
    "voyage": (openai.VOYAGE_HOME, openai.voyage, None),
}


def hash_of(text: str) -> TextHash:
    """As chunks have it."""
    return TextHash(hashlib.sha256(text.encode("utf-8", "surrogatepass")).digest())


def texts_of(count: int, word: str = "note") -> dict[TextHash, str]:
    """Some texts, each with a vector of its own."""
    return {hash_of(text): text for text in (f"{word} {number} 灯塔 {number * 7}" for number in range(count))}


def vector_of(text: str, dimensions: int = DIMENSIONS) -> bytes:
    """What must be kept of a text."""
    row = HashingProvider(dimensions=dimensions).embed([text])[0].astype(np.float64)
    return rounded({text: (row / np.linalg.norm(row)).astype("<f4").tobytes()})[text]


def dialect_of(name: str, base_url: str, *, most: int = 50_000, most_bytes: int = 90_000_000) -> BatchDialect:
    """A provider's batch API with limits of the test's."""
    found = batch_dialect(_DIALECTS[name][1]("", Remote()), base_url)
    assert isinstance(found, OpenAIBatches | GeminiBatches)
    return msgspec.structs.replace(found, limits=BatchLimits(most, most_bytes))


class RecordingLedger(ProviderStore):
    """Counts what is kept, and then fails if it is to."""

    def __init__(self, store: EmbeddingStore, space: Space, fault: Exception | None) -> None:
        super().__init__(store, space)
        self.delivered: list[TextHash] = []
        self._fault = fault

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        await super().keep(job_id, vectors)
        if self._fault is not None:
            raise self._fault
        self.delivered.extend(vectors)


class JobCounts(ChangeNotifier):
    """Notes how many jobs there are at each change."""

    def __init__(self) -> None:
        super().__init__()
        self.batches: BatchRunner | None = None
        self.seen: list[int] = []

    def notify(self) -> None:
        assert self.batches is not None
        self.seen.append(self.batches.jobs)
        super().notify()


class Rig(msgspec.Struct):
    """What a test sees."""

    batches: BatchRunner
    store: EmbeddingStore
    known: KnownVectors
    ledger: Ledger
    delivered: list[TextHash]  # in order
    changes: list[int]  # how many jobs there were at each change

    async def kept(self, texts: Mapping[TextHash, str]) -> dict[TextHash, bytes]:
        """The vectors that are safe."""
        return dict((await self.known.look_up(list(texts))).vectors)


@asynccontextmanager
async def batching(
    name: str,
    base_url: str,
    file: Path,
    *,
    settings: BatchSettings | None = None,
    most: int = 50_000,
    most_bytes: int = 90_000_000,
    key: str = KEY,
    dimensions: int = DIMENSIONS,
    wrap: Callable[[Ledger], Ledger] = lambda ledger: ledger,
    timeouts: BatchTimeouts = SOON,
    keep_fault: Exception | None = None,
    clock: Callable[[], float] = time.time,
    without: BiasLine | None = None,
) -> AsyncIterator[Rig]:
    """One life of a daemon, as far as batches go."""
    home, _, header = _DIALECTS[name]
    whom = account(name, home, Remote(base_url=base_url, api_key=key), {}, lambda _: "")
    session = HttpConnections(name, whom, header, 8)
    store = EmbeddingStore(file)
    await store.open()
    dialect = dialect_of(name, base_url, most=most, most_bytes=most_bytes)
    space = (name, dialect.embeddings.model, "k")
    recording = RecordingLedger(store, space, keep_fault)
    ledger = wrap(recording)
    changes = JobCounts()
    batches = BatchRunner(
        BatchClient(dialect, session, key, rng=Random(5), clock=clock, retries=QUICK, timeouts=timeouts),
        ledger,
        settings or BatchSettings(enabled=True, poll_interval_ms=2),
        VectorForm(dimensions, without),
        changes,
    )
    changes.batches = batches
    try:
        await batches.resume()
        yield Rig(batches, store, KnownVectors(store, space), ledger, recording.delivered, changes.seen)
    finally:
        await batches.close()
        await session.close()
        await store.close()


async def directly(name: str, base_url: str, bias: Bias | None, texts: Sequence[str]) -> Vectors:
    """What plain requests give."""
    home, make, header = _DIALECTS[name]
    remote = Remote(base_url=base_url, api_key=KEY)
    whom = account(name, home, remote, {}, lambda _: "")
    provider = RemoteProvider(
        RetryingClient(make("", remote), whom, HttpConnections(name, whom, header, 8)),
        ModelIdentity(DIMENSIONS, Calibration(), b"", bias=bias),
        query_timeout_s=5.0,
    )
    try:
        return await provider.embed_passages(texts)
    finally:
        await provider.close()


async def done(rig: Rig, jobs: int = 0) -> None:
    """Wait until no more than so many jobs are left."""
    await until_async(lambda: rig.batches.jobs <= jobs, 20)


async def begun(rig: Rig, server: EmbeddingServer, texts: Mapping[TextHash, str]) -> None:
    """Have texts embedded by a job, and wait until the provider was asked how far it is."""
    await rig.batches.submit(texts)
    await until_async(lambda: server.requests("poll"), 20)


async def until_forgotten(rig: Rig) -> None:
    """Wait until the ledger has no job."""
    await done(rig)

    async def is_forgotten() -> bool:
        return not await rig.ledger.jobs()

    await until_awaited(is_forgotten, 20)


async def through(rig: Rig, texts: Mapping[TextHash, str]) -> None:
    """Have texts embedded by jobs, and wait until the ledger has none."""
    await rig.batches.submit(texts)
    await until_forgotten(rig)


async def until_cleared(rig: Rig) -> None:
    """Wait until the ledger has no file."""

    async def is_cleared() -> bool:
        return not await rig.ledger.files()

    await until_awaited(is_cleared, 20)
