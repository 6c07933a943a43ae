"""What breaks degrades one capability, is named, and heals by itself (invariant 6)."""

import asyncio
import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
import structlog

from memd.agent import build
from memd.indexing.watch_changes import follow
from memd.providers.provider import EmbedUnavailable, Vector
from memd.runtime import timers
from memd.store.embedding_cache import EmbeddingStore
from memd.text.thesaurus import thesaurus
from memd_client import AsyncClient, RequestFailed
from memd_client.messages import Health
from tests.daemon.contents import contents, differences
from tests.daemon.inprocess import running, write
from tests.daemon.process import Daemon
from tests.daemon.trouble import BLUE, RED, bugs, comes_true, finds, harm_store, is_well, many_notes
from tests.fakes import HashingProvider
from tests.fakes.cross_encoder import write as write_model
from tests.fakes.http import Request, Response, Server
from tests.wait import until, until_async

# --- the keyword index


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    "harm",
    [
        "DROP TABLE keywords",
        "DELETE FROM keywords_data",
        "DELETE FROM keywords_data WHERE id > 10",
        "UPDATE keywords_data SET block = randomblob(length(block)) WHERE id > 10",
        "DROP TABLE keywords_docsize",
    ],
)
async def test_a_broken_keyword_index_is_rebuilt(home: Path, harm: str) -> None:
    """Vectors answer meanwhile, the reply names the part, and soon everything is as before, with no help."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        assert await is_well(client)
        harm_store(home / "state/agents/main.sqlite", harm)
        found = await client.search("lighthouse red")
        assert {one.part for one in found.degraded} >= {"keyword"}
        assert found.mode == "vector"
        assert found.results[0].path == "memory/a.md"
        await comes_true(lambda: is_well(client))
        write(home, "memory/b.md", BLUE)
        await client.sync()
        assert await finds(client, "chapel blue", "memory/b.md")
        assert len((await client.status()).agents["main"].damaged) == 1
    assert {path.name for path in (home / "state/agents").iterdir()} == {
        "main.sqlite",
        "main.sqlite.damaged-1",
    }


async def test_edits_while_the_keyword_index_is_broken_are_not_lost(home: Path) -> None:
    """A note that is written before anybody has searched is taken in when the index is whole again."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        harm_store(home / "state/agents/main.sqlite", "DROP TABLE keywords")
        write(home, "memory/b.md", BLUE)
        await comes_true(lambda: finds(client, "chapel blue", "memory/b.md"))
        await comes_true(lambda: is_well(client))


# --- the provider


async def test_without_a_provider_search_goes_by_keywords(home: Path) -> None:
    """With provider = none everything is indexed and found, nothing waits, and nothing is called broken."""
    write(home, "memory/a.md", RED)
    async with running(home, settings='provider = "none"') as client:
        report = await client.sync()
        assert (report.files, report.vectors, report.waiting_chunks) == (1, "complete", 0)
        found = await client.search("lighthouse red")
        assert (found.mode, found.provider, found.degraded) == ("keyword", "none", [])
        assert found.results[0].path == "memory/a.md"
        status = (await client.status()).agents["main"]
        assert (status.provider, status.vectors.waiting) == ("none", 0)
        assert status.provider_health.ok
        assert status.vector.ok


async def test_a_question_without_a_vector_is_answered_by_keywords(home: Path) -> None:
    """When the provider fails at a question, keywords answer and the reply says so; the next one is hybrid again."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        await client.sync()
        provider.fail_next(1)
        found = await client.search("lighthouse red")
        assert [one.part for one in found.degraded] == ["query_embedding"]
        assert (found.mode, found.results[0].path) == ("keyword", "memory/a.md")
        found = await client.search("lighthouse red")
        assert (found.mode, found.degraded) == ("hybrid", [])


class StuckAtQuestions(HashingProvider):
    """Embeds passages in one place and questions in another, as the bundled model does."""

    is_stuck = False

    async def embed_query(self, text: str) -> Vector:
        if self.is_stuck:
            raise EmbedUnavailable("The bundled model has been at one question for 3 s.")
        return await super().embed_query(text)


async def test_a_model_that_is_stuck_at_a_question_is_shown_until_it_answers(home: Path) -> None:
    """Also where passages go on being embedded; it recovers although nobody asks anything more."""
    provider = StuckAtQuestions()
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "complete"
        provider.is_stuck = True
        assert (await client.search("lighthouse red")).mode == "keyword"
        write(home, "memory/b.md", BLUE)
        assert (await client.sync()).vectors == "complete"
        status = (await client.status()).agents["main"]
        assert status.provider_health == Health(
            ok=False, reason="The bundled model has been at one question for 3 s."
        )
        assert (status.vector.available, status.vector.reason) == (False, status.provider_health.reason)
        provider.is_stuck = False

        async def is_healthy() -> bool:
            return (await client.status()).agents["main"].provider_health.ok

        await comes_true(is_healthy)
        assert set(provider.questions) == {"warm-up"}


async def test_text_is_searchable_while_the_provider_is_down(home: Path) -> None:
    """No vector can be had: text is found by keywords, sync and status say what waits and why, then it heals."""
    provider = HashingProvider()
    provider.fail_next(1_000_000)
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        report = await client.sync()
        assert (report.vectors, report.waiting_chunks) == ("waiting", 1)
        assert report.reason is not None
        assert "lets this request fail" in report.reason
        found = await client.search("lighthouse red")
        assert (found.mode, found.results[0].path) == ("keyword", "memory/a.md")
        assert {one.part for one in found.degraded} == {"vector"}
        assert not (await client.status()).agents["main"].provider_health.ok
        provider.fail_next(0)
        await comes_true(lambda: is_well(client))
        report = await client.sync()
        assert (report.vectors, report.reason) == ("complete", None)
        assert (await client.status()).agents["main"].provider_health.ok


async def test_a_provider_is_well_when_nothing_wants_it(home: Path) -> None:
    """When what could not be embedded is gone from the disk, nothing is called broken any more."""
    provider = HashingProvider()
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        await client.sync()
        provider.fail_next(1_000_000)
        note = write(home, "memory/b.md", BLUE)
        assert (await client.sync()).vectors == "waiting"
        note.unlink()
        assert (await client.sync(vectors=False)).waiting_chunks == 0

        async def is_healthy() -> bool:
            return (await client.status()).agents["main"].provider_health.ok

        await comes_true(is_healthy)


async def test_what_waits_is_embedded_by_the_next_daemon(home: Path) -> None:
    """Chunks that had no vector when a daemon ended get one from the next, though no file has changed."""
    provider = HashingProvider()
    provider.fail_next(1_000_000)
    write(home, "memory/a.md", RED)
    async with running(home, provider) as client:
        assert (await client.sync()).vectors == "waiting"
    async with running(home) as client:
        report = await client.sync()
        assert (report.vectors, report.changed) == ("complete", 0)
        assert await is_well(client)


async def test_a_text_that_is_rejected_holds_nobody_up(home: Path) -> None:
    """One text that can never be embedded is set aside and counted; it is found by keywords, the others by both."""
    provider = HashingProvider(rejects=["porcupine"])
    for name, text in (("a", RED), ("b", "A porcupine was there."), ("c", BLUE)):
        write(home, f"memory/{name}.md", text)
    async with running(home, provider) as client:
        report = await client.sync()
        assert (report.vectors, report.waiting_chunks) == ("complete", 0)
        assert (await client.search("porcupine")).results[0].path == "memory/b.md"
        status = (await client.status()).agents["main"]
        assert (status.vectors.done, status.skipped) == (2, {"text cannot be embedded": 1})


# --- roots


async def test_a_workspace_that_vanishes_whole_loses_nothing(home: Path) -> None:
    """Renamed away, its notes stay in the index though they cannot be read; renamed back, they can, edits included."""
    many_notes(home / "workspace", 20)
    write(home, "memory/a.md", RED)
    away = home / "away"
    async with running(home) as client:
        chunks = (await client.sync()).chunks
        (home / "workspace").rename(away)
        report = await client.sync()
        assert (report.files, report.chunks, report.removed) == (21, chunks, 0)
        assert await finds(client, "lighthouse painted red", "memory/a.md")
        with pytest.raises(RequestFailed, match="cannot be read just now: its directory is not there"):
            await client.get("memory/a.md")
        (away / "memory" / "a.md").write_text("The lighthouse was painted green.\n")
        away.rename(home / "workspace")

        async def is_green() -> bool:
            return "green" in (await client.search("lighthouse painted green")).results[0].snippet

        await comes_true(is_green)
        assert (await client.sync()).files == 21


async def test_a_workspace_that_is_gone_at_the_start_loses_nothing(home: Path) -> None:
    """A daemon that starts before its disk is mounted keeps what it knew, and goes on when the disk is there."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
    (home / "workspace").rename(home / "away")
    async with running(home) as client:
        assert (await client.sync()).files == 1
        assert await finds(client, "lighthouse red", "memory/a.md")
        (home / "away").rename(home / "workspace")
        write(home, "memory/b.md", BLUE)
        report = await client.sync()
        assert report.files == 2
        assert await finds(client, "chapel blue", "memory/b.md")


# --- files of memd's own


def _garbage(file: Path) -> None:
    file.write_bytes(random.Random(3).randbytes(60_000))


def _nothing(file: Path) -> None:
    file.write_bytes(b"")


def _half(file: Path) -> None:
    file.write_bytes(file.read_bytes()[: file.stat().st_size // 2])


def _flipped(file: Path) -> None:
    """Noise here and there behind the first page: what is wrong shows only when it is read."""
    whole, rng = bytearray(file.read_bytes()), random.Random(6)
    for _ in range(200):
        whole[rng.randrange(4096, len(whole))] = rng.randrange(256)
    file.write_bytes(whole)


def _deleted(file: Path) -> None:
    file.unlink()


def _foreign(file: Path) -> None:
    """A sound database with nothing in it that memd put there."""
    file.unlink()
    harm_store(file, "CREATE TABLE files (surprise); PRAGMA user_version = 1")


@pytest.mark.rows(3)
@pytest.mark.parametrize("name", ["agents/main.sqlite", "embeddings.sqlite"])
@pytest.mark.parametrize("harm", [_garbage, _nothing, _half, _flipped, _deleted, _foreign])
async def test_a_damaged_store_is_no_reason_not_to_start(
    home: Path, name: str, harm: Callable[[Path], None]
) -> None:
    """Whatever a file of memd's holds at the start: soon all is found and embedded again."""
    many_notes(home / "workspace", 10)
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
    harm(home / "state" / name)
    with structlog.testing.capture_logs() as logs:
        async with running(home) as client:
            await comes_true(lambda: is_well(client))
            write(home, "memory/b.md", BLUE)
            await comes_true(lambda: finds(client, "chapel blue novelty", "memory/b.md"))
            await comes_true(lambda: is_well(client))
            report = await client.sync()
            assert (report.files, report.vectors) == (12, "complete")
    assert bugs(logs) == []


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("name", "harm"),
    [
        ("agents/main.sqlite", "DROP TABLE files"),
        ("agents/main.sqlite", "DROP TABLE chunks"),
        ("agents/main.sqlite", "DROP TABLE vectors_chunks"),
        ("agents/main.sqlite", "DROP TABLE vectors"),
        ("agents/main.sqlite", "DROP TABLE meta"),
        ("embeddings.sqlite", "DROP TABLE cache"),
        ("embeddings.sqlite", "DROP TABLE set_aside"),
    ],
)
async def test_damage_under_the_running_daemon_heals(home: Path, name: str, harm: str) -> None:
    """A table that goes while the daemon runs is missed for a moment at most; what is written meanwhile is found."""
    write(home, "memory/a.md", RED)
    with structlog.testing.capture_logs() as logs:
        async with running(home) as client:
            await client.sync()
            harm_store(home / "state" / name, harm)
            write(home, "memory/b.md", BLUE)
            await comes_true(lambda: finds(client, "chapel lighthouse", "memory/a.md", "memory/b.md"))
            await comes_true(lambda: is_well(client))
            assert (await client.sync()).vectors == "complete"
    assert bugs(logs) == []


# --- rebuilds


async def test_other_settings_rebuild_the_index_while_the_old_one_serves(home: Path) -> None:
    """After a change of the chunk size, every search in between finds; what did not change is not embedded again."""
    many_notes(home / "workspace", 60)
    write(home, "memory/a.md", RED)
    first, second = HashingProvider(), HashingProvider()
    async with running(home, first) as client:
        before = await client.sync()
    async with running(home, second, settings="chunking = { tokens = 60, overlap = 0 }") as client:
        seen_rebuilding = 0

        async def is_rebuilt() -> bool:
            nonlocal seen_rebuilding
            found = await client.search("lighthouse painted red")
            assert found.results[0].path == "memory/a.md"
            seen_rebuilding += any(one.part == "rebuild" for one in found.degraded)
            return (await client.status()).agents["main"].rebuild is None

        await comes_true(is_rebuilt)
        after = await client.sync()
        assert after.vectors == "complete"
        assert await is_well(client)
    assert seen_rebuilding > 0
    assert after.chunks > 2 * before.chunks
    embedded = {text for request in first.requests for text in request}
    again = {text for request in second.requests for text in request}
    assert again
    assert not embedded & again
    assert [path.name for path in (home / "state/agents").iterdir()] == ["main.sqlite"]


@pytest.mark.long
def test_a_kill_in_the_middle_of_a_rebuild_leaves_no_trace(daemon: Daemon) -> None:
    """Killed while it built beside, it serves the old index at the next start, builds again, and equals a fresh one."""
    many_notes(daemon.workspace, 150)
    daemon.start()
    with daemon.client() as client:
        client.sync()
    daemon.kill()
    settings = "chunking = { tokens = 60, overlap = 10 }"
    daemon.configure(settings)
    beside = daemon.state / "agents" / "main.sqlite.next"
    daemon.start(wait=False)
    until(lambda: Path(f"{beside}-wal").exists() and Path(f"{beside}-wal").stat().st_size > 500_000, 20)
    daemon.kill()
    assert beside.exists()
    daemon.start()
    with daemon.client() as client:
        assert client.search("lighthouse").results
        until(lambda: client.status().agents["main"].rebuild is None, 20)
        assert client.sync().vectors == "complete"
    assert daemon.stop() == 0
    fresh = Daemon(daemon.home / "fresh")
    fresh.workspace = daemon.workspace
    fresh.configure(settings)
    with fresh, fresh.client() as client:
        assert client.sync().vectors == "complete"
    files = [each.state / "agents" / "main.sqlite" for each in (daemon, fresh)]
    assert differences(contents(files[0]), contents(files[1])) == []
    assert [path.name for path in beside.parent.iterdir()] == ["main.sqlite"]


async def test_what_was_built_beside_is_deleted_where_nobody_wants_it(home: Path) -> None:
    """With the old settings back after a kill, nothing is rebuilt, and the rest of the attempt goes."""
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
    for suffix in ("", "-wal", "-shm"):
        (home / f"state/agents/main.sqlite.next{suffix}").write_bytes(b"half an index")
    async with running(home) as client:
        await client.sync()
        assert await is_well(client)
    assert [path.name for path in (home / "state/agents").iterdir()] == ["main.sqlite"]


@pytest.mark.parametrize("rebuilds", [3, pytest.param(12, marks=pytest.mark.long)])
async def test_no_search_falls_between_two_indexes(home: Path, rebuilds: int) -> None:
    """While the index is replaced again and again, every search finds, whatever moment it meets."""
    many_notes(home / "workspace", 20)
    write(home, "memory/a.md", RED)
    async with running(home) as client:
        await client.sync()
        ended = asyncio.Event()

        async def search_on() -> int:
            count = 0
            async with AsyncClient(socket=home / "s", timeout=60) as own:
                while not ended.is_set():
                    assert await finds(own, "lighthouse painted red", "memory/a.md")
                    count += 1
            return count

        async def is_rebuilt() -> bool:
            return (await client.status()).agents["main"].rebuild is None

        searching = [asyncio.create_task(search_on()) for _ in range(3)]
        for _ in range(rebuilds):
            await client.reindex()
            await comes_true(is_rebuilt)
        ended.set()
        counts = await asyncio.gather(*searching)
    assert min(counts) > rebuilds


async def test_what_memd_fails_at_beside_requests_is_told_and_ends_nothing(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Following the files, and saving vectors: both are taken up again after a pause, and notes are found meanwhile."""
    failing, attempts = {"watcher", "cache"}, 0
    save = EmbeddingStore.run

    async def following(*args: Any, **more: Any) -> None:
        nonlocal attempts
        attempts += 1
        if "watcher" in failing:
            raise ValueError("nobody foresaw this")
        await follow(*args, **more)

    async def saving(store: EmbeddingStore) -> None:
        if "cache" in failing:
            raise ValueError("nobody foresaw that")
        await save(store)

    monkeypatch.setattr(build, "follow", following)
    monkeypatch.setattr(EmbeddingStore, "run", saving)
    monkeypatch.setattr(timers, "delay_s", lambda *_, **__: 0.2)
    write(home, "memory/a.md", "# A\n\nthe walnut project\n")
    async with running(home) as client:
        await client.sync()
        status = await client.status()
        assert not status.agents["main"].watcher.ok
        assert "watching the files failed" in str(
            status.agents["main"].watcher.reason
        ) or "ValueError" in str(status.agents["main"].watcher.reason)
        assert "saving vectors to the cache failed" in str(status.daemon_health.reason)
        write(home, "memory/b.md", "# B\n\nthe chestnut project\n")
        assert [hit.path for hit in (await client.search("chestnut")).results] == ["memory/b.md"]
        failing.clear()
        before = attempts
        await until_async(lambda: attempts > before)

        async def is_followed() -> bool:
            now = await client.status()
            return now.agents["main"].watcher.ok and now.daemon_health.ok

        await comes_true(is_followed)
        write(home, "memory/c.md", "# C\n\nthe hazelnut project\n")
        assert [hit.path for hit in (await client.search("hazelnut")).results] == ["memory/c.md"]


# --- the reranker


def test_a_reranker_orders_what_a_conversation_may_see_and_its_failure_is_named(home: Path) -> None:
    """It is sent texts as they are indexed, without secrets and curated files; without it there is the usual order."""
    sent: list[dict[str, Any]] = []

    async def shortest_first(request: Request) -> Response:
        sent.append(json.loads(request.body))
        texts = sent[-1]["documents"]
        scores = [{"index": n, "relevance_score": -len(text)} for n, text in enumerate(texts)]
        return Response(body=json.dumps({"results": scores}).encode())

    with Server(shortest_first) as server:
        settings = f"""
redact = {{ mode = "all" }}
scope = {{ default = "allow", rules = [] }}
rerank = {{ provider = "compatible", base_url = "{server.url}", timeout_ms = 10000 }}
"""
        with Daemon(home, settings=settings) as daemon, daemon.client() as client:
            daemon.write("memory/a.md", "The lighthouse was painted red, and its door was painted white.\n")
            daemon.write("memory/b.md", "lighthouse painted, password: tX9-vv2-Qm71 as before\n")
            daemon.write("MEMORY.md", "The lighthouse painted.\n")
            client.sync()
            paths = [hit.path for hit in client.search("lighthouse painted").results]
            assert paths == ["MEMORY.md", "memory/b.md", "memory/a.md"]
            assert (sent[0]["query"], len(sent[0]["documents"])) == ("lighthouse painted", 3)
            assert "tX9" not in str(sent)
            sent.clear()
            group = "agent:main:telegram:group:7"
            assert len(client.search("lighthouse painted", session_key=group).results) == 2
            assert len(sent) == 1
            assert not any("The lighthouse painted." in text for one in sent for text in one["documents"])
            server.refuse()
            found = client.search("lighthouse painted")
            assert [
                (one.part, "cannot be reached" in one.reason or "broke off" in one.reason)
                for one in found.degraded
            ] == [("rerank", True)]
            assert {hit.path for hit in found.results} == {"MEMORY.md", "memory/a.md", "memory/b.md"}


def test_a_cross_encoder_on_this_machine_orders_the_hits_and_explain_shows_their_new_places(
    home: Path,
) -> None:
    """Its files are named relative to the configuration; the place of a candidate is the one it had, its row the one it has."""
    write_model(home / "model")
    settings = 'rerank = { provider = "onnx", model = "model", timeout_ms = 10000 }'
    with Daemon(home, settings=settings) as daemon, daemon.client() as client:
        daemon.write("memory/a.md", "The red shed has a roof.\n")
        daemon.write("memory/b.md", "A cat sits on the roof.\n")
        client.sync()
        asked = "red shed roof cat"
        explained = client.explain(asked)
        found = client.search(asked)
        assert found.degraded == explained.found.degraded == []
        assert [hit.path for hit in found.results] == ["memory/b.md", "memory/a.md"]
        assert [(one.path, one.place) for one in explained.candidates] == [
            ("memory/b.md", 2),
            ("memory/a.md", 1),
        ]
    (home / "model/onnx/model.onnx").unlink()
    with Daemon(home, settings=settings) as daemon, daemon.client() as client:
        (part,) = client.search(asked).degraded
        assert (part.part, "there is no ONNX file" in part.reason) == ("rerank", True)


async def test_a_thesaurus_that_cannot_be_read_is_told_until_it_can(
    home: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The status says why as the answers do, before the first search, too; a group hears only that it is so."""
    write(home, "memory/a.md", "# Landlord\n\n房东的电话 400\n")
    thesaurus.cache_clear()
    with monkeypatch.context() as patched:
        patched.setattr("memd.text.thesaurus.FILE", tmp_path / "missing.txt")
        async with running(home) as client:
            await client.sync()
            told = (await client.status()).synonyms
            assert not told.ok
            assert told.reason is not None
            assert "missing.txt" in told.reason
            assert told.reason.endswith("install memd anew if this lasts")
            found = await client.search("landlord phone")
            assert [one.reason for one in found.degraded if one.part == "synonyms"] == [told.reason]
            group = (await client.status(session_key="agent:main:telegram:group:4711")).synonyms
            assert group == Health(ok=False)
            patched.undo()
            assert (await client.status()).synonyms.ok
            assert not [
                one for one in (await client.search("landlord phone")).degraded if one.part == "synonyms"
            ]
            patched.setattr("memd.text.thesaurus.FILE", tmp_path / "missing.txt")
            assert (await client.status()).synonyms.ok  # it is in memory
