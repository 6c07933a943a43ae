"""What a person says to the embedding of a daemon, and what its status says, with a provider over HTTP."""

import asyncio
from collections.abc import Callable
from pathlib import Path

import pytest

from memd_client import AsyncClient
from memd_client.errors import RequestFailed
from memd_client.messages import Embedding
from tests.daemon.inprocess import configure, write
from tests.daemon.inprocess import running as running_local
from tests.daemon.remote import reload, running, says, status
from tests.daemon.trouble import comes_true
from tests.fakes.embedding_server import KEY, EmbeddingServer, broken, no_quota
from tests.wait import until_async


def settings(server: EmbeddingServer, remote: str = "") -> str:
    """TOML of an agent that is embedded by the local server."""
    return f'provider = "openai"\nremote = {{ base_url = "{server.base_url("openai")}", api_key = "{KEY}"{remote} }}'


def notes(home: Path, count: int) -> None:
    """So many notes of one chunk."""
    for number in range(count):
        write(home, f"memory/{number}.md", f"note {number} about lighthouse {number}\n")


def embedded(server: EmbeddingServer) -> list[str]:
    """What was sent of the notes, not counting what tells which model it is."""
    return [text for text in server.embedded() if "about lighthouse" in text]


async def comes(client: AsyncClient, is_wanted: Callable[[Embedding], bool]) -> Embedding:
    """The first status of the embedding of which this is true."""
    async with asyncio.timeout(60):
        while True:
            now = (await status(client)).embedding
            if now is not None and is_wanted(now):
                return now


async def complete(client: AsyncClient) -> None:
    """Until all vectors are there."""
    async with asyncio.timeout(60):
        while (await client.sync()).vectors != "complete":
            pass


async def known(client: AsyncClient) -> None:
    """Until the daemon knows what the model is like."""
    await comes(client, lambda _: True)


async def test_a_pause_lasts_over_a_restart(home: Path) -> None:
    """Notes are searchable by their words meanwhile, nothing is sent, and resume sends it."""
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await known(client)
            report = await client.embed("pause")
            assert report.agents["main"].state == "paused"
            notes(home, 3)
            said = await client.sync()
            assert (said.vectors, said.waiting_chunks) == ("waiting", 3)
            assert "memd-ctl embed resume" in str(said.reason)
        async with running(home) as client:
            await comes(client, lambda now: now.state == "paused")
            assert (await status(client)).provider_health.ok
            assert (await client.search("lighthouse 2")).results[0].path == "memory/2.md"
            assert embedded(server) == []
            assert (await client.embed("resume")).agents["main"].state == "working"
            await complete(client)
            assert len(embedded(server)) == 3


async def test_a_pause_holds_while_the_model_changes(home: Path) -> None:
    """Nothing goes out any more, to the new model or to the one that still answers; resume has both go on."""
    with EmbeddingServer() as server:
        configure(home, settings(server))
        notes(home, 3)
        async with running(home) as client:
            await complete(client)
            server.plan = lambda seen: (
                broken("openai")
                if b"another" in seen.request.body and "about lighthouse" in str(seen.texts)
                else None
            )
            configure(home, settings(server).replace("\n", '\nmodel = "another"\n', 1))
            reload()
            await says(client, "trouble")
            server.plan = lambda _: None
            assert (await client.embed("pause")).agents["main"].state == "paused"
            asked = len(embedded(server))
            write(home, "memory/fresh.md", "a fresh note about lighthouse 9\n")
            assert (await client.sync()).vectors == "waiting"
            assert embedded(server)[asked:] == []
            await client.embed("resume")
            await complete(client)
            assert "a fresh note about lighthouse 9" in str(embedded(server)[asked:])


async def test_a_first_index_waits_for_its_confirmation(home: Path) -> None:
    """Status says how much it is and how to confirm; a dry run says that it would be asked."""
    notes(home, 30)
    with EmbeddingServer() as server:
        configure(home, settings(server, ", confirm_above_chunks = 20"))
        async with running(home) as client:
            now = await comes(client, lambda one: one.state == "waiting_for_confirmation")
            assert now.chunks == 30
            assert now.tokens is not None
            assert now.tokens > 100
            assert "memd-ctl embed confirm --agent main" in str(now.reason)
            cost = await client.reindex(dry_run=True)
            assert (cost.to_embed, cost.cached, cost.asks) == (30, 0, ["main"])
            assert embedded(server) == []
        async with running(home) as client:
            await comes(client, lambda one: one.state == "waiting_for_confirmation")
            await client.embed("confirm", "main")
            await complete(client)
            assert len(embedded(server)) == 30
            assert (await client.reindex(dry_run=True)).asks == []


async def test_a_rebuild_waits_for_its_confirmation_and_the_old_index_answers(home: Path) -> None:
    """To embed all again is asked about before anything is forgotten; then it is done."""
    with EmbeddingServer() as server:
        configure(home, settings(server, ", confirm_above_chunks = 20"))
        async with running(home) as client:
            for upto in (15, 30):
                notes(home, upto)
                await complete(client)
            assert len(embedded(server)) == 30
            await client.reindex(force=True)
            await comes(client, lambda one: one.state == "waiting_for_confirmation")
            found = await client.search("lighthouse 7")
            assert found.mode == "hybrid"
            assert found.results[0].path == "memory/7.md"
            assert (await status(client)).vectors.done == 30
            assert len(embedded(server)) == 30
            write(home, "memory/new.md", "just written about lighthouse keepers\n")
            await complete(client)
            assert len(embedded(server)) == 31  # a note of now does not wait for the person
            await client.embed("confirm")
            await comes_true(lambda: _is_done(client, server))
            assert (await status(client)).vectors.waiting == 0


async def test_a_rebuild_that_waits_for_its_confirmation_survives_a_reload(home: Path) -> None:
    """With another key it asks whoever embeds from then on, and the confirmation of then lets it go on."""
    notes(home, 30)
    key = home / "key"
    key.write_text(KEY, encoding="utf-8")
    with EmbeddingServer() as server:
        remote = (
            f'base_url = "{server.base_url("openai")}", api_key_file = "{key}", confirm_above_chunks = 20'
        )
        configure(home, f'provider = "openai"\nremote = {{ {remote} }}')
        async with running(home) as client:
            await comes(client, lambda one: one.state == "waiting_for_confirmation")
            await client.embed("confirm")
            await complete(client)
            await comes(client, lambda one: one.state == "working")
            await client.reindex(force=True)
            await comes(client, lambda one: one.state == "waiting_for_confirmation")
            asked, server.key = len(server.seen), "sk-another-0123456789"
            key.write_text(server.key, encoding="utf-8")
            reload()
            await until_async(lambda: len(server.seen) > asked, 20)
            await comes(client, lambda one: one.state == "waiting_for_confirmation")
            await client.embed("confirm")
            await comes_true(lambda: _is_rebuilt(client, chunks=30))
            assert len(embedded(server)) == 60


@pytest.mark.parametrize("is_known", [True, False])
async def test_resume_asks_a_provider_again_that_has_refused(home: Path, *, is_known: bool) -> None:
    """Once a quota was paid for all is well at a word, also where nothing waits or the model was never met."""
    notes(home, 1)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        if not is_known:
            server.plan = lambda seen: no_quota(seen.provider)
        async with running(home) as client:
            if is_known:
                await complete(client)
                server.plan = lambda seen: no_quota(seen.provider)
                await client.search("lighthouse 0")
            await says(client, "quota")
            server.plan = lambda _: None
            now = (await client.embed("resume")).agents["main"]
            assert now.state == "working" if is_known else "quota" in str(now.reason)
            await complete(client)
            await comes_true(lambda: _is_well(client))


async def _is_well(client: AsyncClient) -> bool:
    return (await status(client)).provider_health.ok


async def _is_done(client: AsyncClient, server: EmbeddingServer) -> bool:
    now = await status(client)
    return len(embedded(server)) == 62 and now.rebuild is None and now.vectors.done == 31


async def test_batch_jobs_are_told(home: Path) -> None:
    """Off after two failures, with count, limit, reason and time; on again when a person says so."""
    with EmbeddingServer() as server:
        server.batch_outcome = "failed"
        configure(
            home, settings(server, ", batch = { enabled = true, min_chunks = 10, poll_interval_ms = 100 }")
        )
        async with running(home) as client:
            await known(client)
            for start in (0, 20):
                notes(home, start + 20)
                await complete(client)
            now = await comes(client, lambda one: one.batch is not None and not one.batch.on)
            assert now.batch is not None
            assert (now.batch.enabled, now.batch.failures, now.batch.limit) == (True, 2, 2)
            assert now.batch.reason
            assert now.batch.at
        async with running(home) as client:
            now = await comes(client, lambda one: one.batch is not None and not one.batch.on)
            report = await client.embed("batch_on")
            batch = report.agents["main"].batch
            assert batch is not None
            assert (batch.on, batch.failures) == (True, 0)


async def test_who_may_not_say_it_is_denied(home: Path) -> None:
    """A conversation that others read along cannot pause an agent or spend its owner's money."""
    async with running_local(home) as client:
        with pytest.raises(RequestFailed) as refusal:
            await client.embed("pause", session_key="agent:main:telegram:group:1")
        assert refusal.value.code == "denied"
        assert (await client.embed("pause")).agents["main"].state == "paused"
        assert (await client.embed("resume")).agents["main"].state == "working"
        with pytest.raises(RequestFailed, match="no batch jobs"):
            await client.embed("batch_on")


async def test_where_nothing_is_embedded_there_is_nothing_to_say(home: Path) -> None:
    """That is told, and no success."""
    async with running_local(home, settings='provider = "none"') as client:
        with pytest.raises(RequestFailed, match="nothing is embedded"):
            await client.embed("pause")


async def test_what_an_index_has_is_not_paid_for_again(home: Path) -> None:
    """Also where the cache has lost it: a rebuild takes it from the index, and a dry run says so."""
    notes(home, 3)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await complete(client)
        for file in (home / "state").glob("embeddings.sqlite*"):
            file.unlink()
        async with running(home) as client:
            await complete(client)
            cost = await client.reindex(dry_run=True)
            assert (cost.cached, cost.to_embed) == (3, 0)
            await client.reindex()
            await comes_true(lambda: _is_rebuilt(client))
            assert len(embedded(server)) == 3


async def _is_rebuilt(client: AsyncClient, chunks: int = 3) -> bool:
    now = await status(client)
    return now.rebuild is None and now.vectors.done == chunks
