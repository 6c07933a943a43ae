"""What building an index anew would cost, told without touching anything."""

from pathlib import Path

import apsw
import pytest

from memd.domain_types import embedded_text
from memd_client import AsyncClient
from memd_client.messages import ReindexReport
from memd_client.token_estimate import estimate_tokens
from tests.daemon.contents import contents
from tests.daemon.inprocess import running, write
from tests.fakes import HashingProvider

INDEX = "state/agents/main.sqlite"
SLOW = "sync = { watch_debounce_ms = 60000, watch_max_wait_ms = 600000, interval_minutes = 0 }"


def cached(home: Path) -> list[tuple[object, ...]]:
    """The cache of vectors, with the time at which each was used last."""
    connection = apsw.Connection(str(home / "state/embeddings.sqlite"), flags=apsw.SQLITE_OPEN_READONLY)
    connection.set_busy_timeout(10_000)
    try:
        return connection.execute("SELECT hash, used_at FROM cache ORDER BY hash").fetchall()
    finally:
        connection.close()


def notes(home: Path) -> None:
    """Three files, of which two hold the same."""
    write(home, "memory/a.md", "The lighthouse was painted red.\n")
    write(home, "memory/b.md", "数据库选的是 PostgreSQL。\n")
    write(home, "memory/c/b.md", "数据库选的是 PostgreSQL。\n")


async def cost(client: AsyncClient, *, force: bool = False) -> ReindexReport:
    return await client.reindex(force=force, dry_run=True)


async def test_it_tells_what_is_not_indexed_yet_and_changes_nothing(home: Path) -> None:
    """An edit of which the index knows nothing is counted; index, cache and provider are as before."""
    provider = HashingProvider()
    notes(home)
    async with running(home, provider, settings=SLOW) as client:
        await client.sync()
        report = await cost(client)
        assert (report.files, report.chunks, report.cached, report.to_embed) == (3, 3, 3, 0)
        write(home, "memory/a.md", "The lighthouse was painted green.\n")
        write(home, "memory/new.md", "A chapel of stone.\n")
        (home / "workspace/memory/b.md").unlink()
        index, cache, asked = contents(home / INDEX), cached(home), len(provider.requests)
        before = (await client.status()).agents["main"]
        report = await cost(client)
        assert report == ReindexReport(
            agents=["main"],
            dry_run=True,
            files=3,
            chunks=3,
            cached=1,
            to_embed=2,
            tokens=report.tokens,
        )
        assert report.tokens >= sum(
            estimate_tokens(embedded_text("", text))
            for text in ("The lighthouse was painted green.", "A chapel of stone.")
        )
        assert (contents(home / INDEX), cached(home), len(provider.requests)) == (index, cache, asked)
        after = (await client.status()).agents["main"]
        assert (after.last_pass, after.files, after.rebuild) == (before.last_pass, before.files, None)


async def test_force_counts_every_text_once(home: Path) -> None:
    """Kept vectors do not count then, and a text that stands in two files is embedded once."""
    notes(home)
    async with running(home) as client:
        await client.sync()
        report = await cost(client, force=True)
    assert (report.chunks, report.cached, report.to_embed) == (3, 0, 2)
    assert report.tokens > 0


async def test_what_no_provider_takes_is_not_counted(home: Path) -> None:
    """It is set aside; forced, it would be tried again."""
    notes(home)
    async with running(home, HashingProvider(rejects=["lighthouse"])) as client:
        await client.sync()
        assert (await cost(client)).to_embed == 0
        assert (await cost(client, force=True)).to_embed == 2


@pytest.mark.parametrize(
    ("settings", "to_embed"), [('provider = "none"', 0), ("cache = { enabled = false }", 2)]
)
async def test_without_provider_or_cache(home: Path, settings: str, to_embed: int) -> None:
    """Nothing would be embedded where nothing can; everything where nothing is kept."""
    notes(home)
    async with running(home, settings=settings) as client:
        await client.sync()
        report = await cost(client)
    assert (report.chunks, report.cached, report.to_embed) == (3, 0, to_embed)
    assert (report.tokens == 0) is (to_embed == 0)
