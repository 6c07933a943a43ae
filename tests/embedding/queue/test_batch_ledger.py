"""The ledger of jobs on its real file."""

from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from memd.embedding.queue.batch_ledger import StoredLedger
from memd.model import TextHash
from memd.providers.batch.batch_state import BatchState
from memd.providers.batch.ledger import Ledger, LedgerJob
from memd.store.embeddings import EmbeddingStore
from memd.store.provider_records import ProviderStore

SPACE = ("voyage", "large", "k")
ONE, TWO = (TextHash(bytes([number]) * 32) for number in (1, 2))


@pytest.fixture
async def store(tmp_path: Path) -> AsyncIterator[ProviderStore]:
    opened = EmbeddingStore(tmp_path / "embeddings.sqlite")
    await opened.open()
    yield ProviderStore(opened, SPACE)
    await opened.close()


async def test_a_job_goes_through_it(store: ProviderStore) -> None:
    """Begun, created, brought in parts, ended; the standing is remembered with its end."""
    ledger: Ledger = StoredLedger(store, clock=lambda: 77.0)
    await ledger.begin(LedgerJob("a", 2, 10.0), {ONE: 0.5, TWO: 0.5}, "a.jsonl")
    await ledger.created("a", "batch_1", 20.0)
    assert await ledger.jobs() == [LedgerJob("a", 2, 20.0, "batch_1")]
    await ledger.keep("a", {ONE: b"\0\0\x80\x3f"})
    assert (await ledger.missing("a")).keys() == {TWO}
    assert await ledger.kept([ONE, TWO]) == {ONE}
    standing = BatchState(failures=1, reason="the job has failed", at=5.0, was_late=True)
    await ledger.end("a", standing)
    assert await ledger.jobs() == []
    assert await StoredLedger(store).standing() == standing


async def test_nothing_remembered_is_a_good_standing(store: ProviderStore) -> None:
    """So is what cannot be read, whoever wrote it."""
    ledger = StoredLedger(store)
    assert await ledger.standing() == BatchState()
    for content in (b"", b"{", b'{"is_on": "perhaps"}', b"[]"):
        await store.put_document("batch", content)
        assert await ledger.standing() == BatchState()
    off = BatchState(is_on=False, failures=2, reason="x", at=1.0)
    await ledger.put_standing(off)
    assert await ledger.standing() == off
