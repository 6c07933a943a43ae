"""The cost of a rebuild, and the confirmation that it needs."""

import asyncio
from collections.abc import AsyncIterator, Collection
from contextlib import asynccontextmanager
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, Self, cast

import pytest
from structlog.testing import capture_logs

from memd.chunk import markdown
from memd.config.settings import AgentSettings, Chunking, SessionSettings
from memd.domain_types import Chunk, Document, FoundFile, TextHash
from memd.embedding.registry import AgentQueues
from memd.indexing.index_notes import read_and_cut
from memd.indexing.index_transcripts import read_and_cut_session
from memd.indexing.rules import IndexingRules, rules_of
from memd.providers.provider import Identity, space_of
from memd.rebuild.cost import CostEstimate, RebuildCost, RebuildPermission, cost
from memd.runtime.threads import NoMemory, NoThread, Threads
from memd.sources.roots import roots_of
from memd.sources.safe_open import FileUnreadable
from memd.store.chunk_parts import hash_of
from memd.store.index import Index
from memd.store.meta import Fingerprint


class Counted(frozenset[TextHash]):
    """Texts that count how often they are put together with others."""

    unions = 0

    def __or__(self, others: Collection[TextHash]) -> Self:  # type: ignore[override]
        Counted.unions += 1
        return type(self)({*self, *others})


class Known:
    """A cache that has some texts."""

    def __init__(self, most: int) -> None:
        self._most = most

    async def held(self, hashes: Collection[TextHash]) -> Counted:
        return Counted(list(hashes)[: self._most])

    async def refused(self, hashes: Collection[TextHash]) -> Counted:
        return Counted(list(hashes)[-1:])


async def counted(directory: Path, notes: int) -> RebuildCost:
    """What an index of so many notes costs, of which three are cached and one is refused."""
    (directory / "memory").mkdir(parents=True)
    for number in range(notes):
        (directory / "memory" / f"{number}.md").write_text(f"The heron {number} waits at the lock.\n")
    settings = AgentSettings(workspace=directory)
    rules = rules_of(settings, roots_of(settings))
    return await cost(rules, Known(3), force=False, embeds=True, threads=Threads(1, "cost"))  # type: ignore[arg-type]  # what it asks of a cache


async def test_what_is_known_is_not_embedded_again(tmp_path: Path) -> None:
    """A dry run counts what is cached, and leaves out what nobody embeds."""
    told = await counted(tmp_path, 10)
    assert (told.files, told.chunks, told.cached, told.to_embed) == (10, 10, 3, 6)
    assert told.tokens > 0


async def test_a_dry_run_puts_what_is_known_together_once(tmp_path: Path) -> None:
    """Doing so for each text would keep the event loop from its work for ten seconds, with 20,000 of them."""
    Counted.unions = 0
    await counted(tmp_path / "few", 5)
    few, Counted.unions = Counted.unions, 0
    await counted(tmp_path / "many", 50)
    assert Counted.unions == few


async def test_a_file_that_memd_fails_at_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As a pass skips it: the others are counted. No memory for a note is none for any file, and fails the count."""
    failure: Exception = ValueError("nobody foresaw this")
    cut = markdown.chunk

    def cut_or_fail(document: Document, *how: int) -> list[Chunk]:
        if any("heron 3" in line for line in document.lines):
            raise failure
        return cut(document, *how)

    monkeypatch.setattr(markdown, "chunk", cut_or_fail)
    with capture_logs() as logs:
        assert (await counted(tmp_path / "one", 5)).files == 4
    # With its place, for whoever is to mend it.
    assert [(one["event"], one["exc_info"]) for one in logs] == [("sync.file_failed", failure)]
    failure = MemoryError()
    with pytest.raises(NoMemory):
        await counted(tmp_path / "two", 5)


WANTED = Fingerprint("c1", "t1", ("memory",), "openai", "m", "1", 8)


class Queue:
    """Asks before anything is sent, or before nothing."""

    def __init__(self, *, asks: bool) -> None:
        self.asked: list[tuple[str, int, int]] = []
        self.confirmed = asyncio.Event()
        self._asks = asks

    @property
    def confirmations(self) -> Self:
        return self

    def asks_before(self, _: int) -> bool:
        return self._asks

    @asynccontextmanager
    async def permitted(self, agent: str, texts: int, tokens: int) -> AsyncIterator[None]:
        self.asked.append((agent, texts, tokens))
        await self.confirmed.wait()
        yield


def permission_of(queue: Queue | None, estimated: list[bool]) -> RebuildPermission:
    async def of_rebuild(*, force: bool) -> RebuildCost:
        estimated.append(force)
        return RebuildCost(files=1, chunks=7, cached=2, to_embed=5, tokens=500)

    queues: Any = SimpleNamespace(queue=lambda space: queue if space == WANTED.space else None)
    estimate: Any = SimpleNamespace(of_rebuild=of_rebuild)
    return RebuildPermission("main", cast("AgentQueues", queues), cast("CostEstimate", estimate))


@pytest.mark.parametrize("queue", [None, Queue(asks=False)])
async def test_where_nothing_costs_nobody_is_asked(queue: Queue | None) -> None:
    """Nor are all files read to find out what it would cost."""
    estimated: list[bool] = []
    async with permission_of(queue, estimated).permitted(WANTED, force=True):
        pass
    assert estimated == []


@pytest.mark.parametrize("force", [False, True])
async def test_a_person_is_asked_with_what_it_costs_and_the_rebuild_waits(*, force: bool) -> None:
    """Through whom is known meanwhile: if another queue is to embed, nobody can answer this one any more."""
    queue, estimated, begun = Queue(asks=True), list[bool](), asyncio.Event()
    permission = permission_of(queue, estimated)

    async def rebuild() -> None:
        async with permission.permitted(WANTED, force=force):
            assert permission.asked is None
            begun.set()

    building = asyncio.create_task(rebuild())
    for _ in range(5):
        await asyncio.sleep(0)
    assert (queue.asked, estimated) == ([("main", 5, 500)], [force])
    assert permission.asked is cast("Any", queue)
    assert not begun.is_set()
    queue.confirmed.set()
    await building
    assert begun.is_set()


async def test_a_question_that_is_given_up_is_asked_no_more() -> None:
    """The rebuild was cancelled while it waited."""
    queue = Queue(asks=True)
    permission = permission_of(queue, [])

    async def rebuild() -> None:
        async with permission.permitted(WANTED, force=False):
            raise AssertionError

    building = asyncio.create_task(rebuild())
    for _ in range(5):
        await asyncio.sleep(0)
    building.cancel()
    await asyncio.wait([building])
    assert permission.asked is None


class NoCache(Known):
    """A cache that has nothing, and remembers what it was asked for."""

    def __init__(self) -> None:
        super().__init__(0)
        self.asked: list[TextHash] = []

    async def refused(self, hashes: Collection[TextHash]) -> Counted:
        self.asked = list(hashes)
        return Counted()


async def test_what_the_index_has_is_kept_unless_all_is_wanted_anew(tmp_path: Path) -> None:
    """A rebuild puts it into the cache first; vectors of another model are none of those that are wanted."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "memory" / "a.md").write_text("The heron waits at the lock.\n")
    settings, cache = AgentSettings(workspace=tmp_path), NoCache()
    wanted = Identity("openai", "m", "1", 8)

    async def embedded() -> list[TextHash]:
        return cache.asked

    index: Any = SimpleNamespace(space=space_of(wanted), embedded=embedded)
    providers = SimpleNamespace(wanted=wanted)
    queues: Any = SimpleNamespace(providers=providers, known=lambda _: cache, embeds=True)
    estimate = CostEstimate(
        settings, rules_of(settings, roots_of(settings)), index, queues, Threads(1, "cost")
    )

    async def to_embed(*, force: bool) -> int:
        return (await estimate.of_rebuild(force=force)).to_embed

    assert await to_embed(force=False) == 1  # the index has nothing yet
    assert await to_embed(force=False) == 0
    assert await to_embed(force=True) == 1
    index.space = ("openai", "another model", "1")
    assert await to_embed(force=False) == 1


@pytest.mark.parametrize(
    ("parts", "provider", "are_counted"),
    [("auto", "local", True), ("auto", "openai", False), ("on", "openai", True), ("off", "local", False), ("on", None, False)],
)  # fmt: skip
async def test_parts_are_counted_where_they_would_be_embedded(
    tmp_path: Path, parts: Literal["auto", "on", "off"], provider: str | None, *, are_counted: bool
) -> None:
    """By the local model, or where the settings say so; without a provider nobody is to embed them."""
    (tmp_path / "memory").mkdir()
    long = "\n\n".join(f"The heron {n} waits at the lock until the rain is over." for n in range(6))
    (tmp_path / "memory" / "a.md").write_text(long)
    settings = AgentSettings(workspace=tmp_path, chunking=Chunking(parts=parts))
    wanted = None if provider is None else Identity(provider, "m", "1", 8)
    providers = SimpleNamespace(wanted=wanted)
    queues: Any = SimpleNamespace(providers=providers, known=lambda _: None, embeds=True)
    rules = rules_of(settings, roots_of(settings))
    estimate = CostEstimate(settings, rules, cast("Index", None), queues, Threads(1, "cost"))
    told = await estimate.of_rebuild(force=False)
    assert told.chunks < told.to_embed if are_counted else told.chunks == told.to_embed


async def counted_of(directory: Path, **how: Any) -> RebuildCost:
    """What all below a directory costs, transcripts among it, with what is known of no text."""
    sessions = SessionSettings(paths=(directory / "chats",))
    settings = AgentSettings(workspace=directory, sources=("memory", "sessions"), sessions=sessions)
    rules = rules_of(settings, roots_of(settings))
    return await cost(rules, None, **{"force": False, "embeds": True, "threads": Threads(1, "cost"), **how})


async def test_transcripts_and_parts_are_counted_and_what_cannot_be_read_is_not(tmp_path: Path) -> None:
    """Texts are counted once, wherever they stand; nothing is embedded where nobody embeds."""
    (tmp_path / "memory").mkdir()
    (tmp_path / "chats").mkdir()
    long = "\n\n".join(f"The heron {n} waits at the lock until the rain is over." for n in range(6))
    (tmp_path / "memory" / "a.md").write_text(long)
    (tmp_path / "memory" / "b.md").write_bytes(b"\xff\xfe\x00binary\x00")
    (tmp_path / "chats" / "a.jsonl").write_text('{"role": "user", "content": "which heron?"}\n')
    plain = await counted_of(tmp_path)
    assert (plain.chunks, plain.cached) == (plain.to_embed, 0)
    with_parts = await counted_of(tmp_path, with_parts=True)
    assert (with_parts.files, with_parts.chunks) == (plain.files, plain.chunks)
    assert with_parts.to_embed > plain.to_embed + 1
    assert 1.5 * plain.tokens < with_parts.tokens < 2.5 * plain.tokens
    nobody = await counted_of(tmp_path, embeds=False)
    assert (nobody.chunks, nobody.to_embed, nobody.tokens) == (plain.chunks, 0, 0)
    held = frozenset({hash_of("no text of these")})
    assert await counted_of(tmp_path, held=held) == plain
    (tmp_path / "memory" / "a.md").unlink()
    assert (await counted_of(tmp_path)).chunks == plain.chunks - 1


@pytest.mark.parametrize(
    ("failure", "is_raised"),
    [(NoMemory("none is left"), False), (NoThread("too many"), True), (KeyError("a defect"), False)],
)
async def test_what_fails_at_a_transcript_is_its_own_trouble_unless_it_is_none(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, failure: Exception, *, is_raised: bool
) -> None:
    """One may be too large for any memory; where the system gives no thread, nothing can be counted."""
    (tmp_path / "chats").mkdir()
    for name in "ab":
        (tmp_path / "chats" / f"{name}.jsonl").write_text('{"role": "user", "content": "which heron?"}\n')
    read = read_and_cut_session

    def fails(found: FoundFile, rules: IndexingRules) -> Any:
        if found.file.name == "a.jsonl":
            raise failure
        return read(found, rules)

    monkeypatch.setattr("memd.indexing.index_transcripts.read_and_cut_session", fails)
    if is_raised:
        with pytest.raises(NoThread):
            await counted_of(tmp_path)
    else:
        assert (await counted_of(tmp_path)).files == 1


async def test_a_file_that_may_not_be_read_costs_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The others are counted."""
    (tmp_path / "memory").mkdir()
    for name in "ab":
        (tmp_path / "memory" / f"{name}.md").write_text(name)
    read = read_and_cut

    def fails(found: FoundFile, rules: IndexingRules) -> Any:
        if found.file.name == "a.md":
            raise FileUnreadable("memory/a.md", "so it is")
        return read(found, rules)

    monkeypatch.setattr("memd.rebuild.cost.read_and_cut", fails)
    (tmp_path / "chats").mkdir()
    assert (await counted_of(tmp_path)).files == 1
