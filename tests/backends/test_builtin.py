"""What the built-in backend says of an index, and of files, that it cannot read."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest

from memd.backends.backend import BackendQuestion
from memd.backends.builtin import Builtin
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import Kind
from memd.providers.provider import Identity, space_of
from memd.search.searcher import Searched
from memd.store.errors import StoreDamaged, StoreUnavailable
from tests.backends.qmd.bench import Bench, indexing
from tests.embedding.supplies import silent

ALL = frozenset(Kind)
NOTE = "memory/2026-02-09.md"
QUESTION = BackendQuestion(text="kestrel", kinds=ALL, max_results=6, min_score=0.0)


@pytest.fixture
async def bench(tmp_path: Path) -> AsyncIterator[Bench]:
    """An agent with one note, and no program of another engine."""
    async with indexing(tmp_path, "/no/qmd") as one:
        one.write(NOTE, "the kestrel nests here\n")
        await one.settle()
        yield one


class Damaged:
    """An index, and what searches it, of which nothing can be read."""

    def __getattr__(self, name: str) -> Callable[..., Awaitable[Any]]:
        async def fail(*_: object, **__: object) -> None:
            raise StoreDamaged("page 7 is not what was written")

        return fail


class DamagedIndex(Damaged):
    """That tells of its damage where the sound one would."""

    def __init__(self, bench: Bench) -> None:
        self.damage = bench.index.damage


@pytest.mark.parametrize(
    "ask",
    [
        lambda one: one.search(QUESTION),
        lambda one: one.explain(QUESTION),
        lambda one: one.get(NOTE, start_line=1, lines=9, kinds=ALL),
    ],
    ids=["search", "explain", "get"],
)
async def test_damage_is_reported_and_answered_as_what_mends_itself(
    bench: Bench, ask: Callable[[Builtin], Awaitable[object]]
) -> None:
    """It is not answered as if there were nothing, nor as a fault of the question."""
    agent = msgspec.structs.replace(bench.agent, index=cast("Any", DamagedIndex(bench)))
    backend = Builtin(agent, cast("Any", Damaged()), silent(bench.settings))
    with pytest.raises(StoreUnavailable, match="damaged and is being rebuilt: page 7"):
        await ask(backend)
    assert bench.index.damage.reason == "page 7 is not what was written"


@pytest.mark.parametrize("part", ["", "keyword_trouble", "vector_trouble"])
async def test_what_a_search_met_is_reported(bench: Bench, part: str) -> None:
    """The broken part is built anew; the answer of the others stands. What is sound is left alone."""

    class Searching:
        async def search(self, *_: object, **__: object) -> Searched:
            return Searched(
                hits=(),
                mode="hybrid",
                degraded=(),
                keyword_trouble="malformed" if part == "keyword_trouble" else None,
                vector_trouble="a block is short" if part == "vector_trouble" else None,
                provider="",
                model="",
                space=None,
            )

    answer = await Builtin(bench.agent, cast("Any", Searching()), silent(bench.settings)).search(QUESTION)
    assert (answer.backend, answer.hits) == ("builtin", ())
    damage = bench.index.damage
    assert (damage.keyword is not None) == (part == "keyword_trouble")
    assert damage.reason == {"keyword_trouble": "malformed", "vector_trouble": "a block is short"}.get(part)
    assert (damage.reported.version > 0) == bool(part)


@pytest.mark.parametrize(("provider", "is_wanted"), [("none", False), ("auto", True)])
async def test_keywords_alone_are_no_fault_where_they_are_wanted(
    bench: Bench, provider: str, is_wanted: bool
) -> None:
    """Without a provider: vectors are off where the settings say so, and fail where they do not."""
    settings = msgspec.structs.replace(bench.settings, provider=provider)
    vector = Builtin(bench.agent, cast("Any", Damaged()), silent(settings)).status().vector
    assert (vector.ok, vector.enabled, vector.available) == (not is_wanted, is_wanted, False)


@pytest.mark.parametrize("built", [False, True])
async def test_questions_are_compared_with_the_vectors_that_there_are(bench: Bench, built: bool) -> None:
    """Those of the model of before, while the index is built anew; without any, those that are to come."""
    held, wanted = ("fake", "of before", "k"), Identity("fake", "of now", "k", 8)
    asked: list[object] = []

    def is_answering(space: object) -> bool:
        asked.append(space)
        return False

    providers = SimpleNamespace(
        settings=bench.settings, embeds=True, wanted=wanted, is_answering=is_answering, reason="no answer",
        provider_name="fake", model_name="of now",
    )  # fmt: skip
    index = cast("Any", SimpleNamespace(extension_trouble=None, space=held if built else None))
    agent = msgspec.structs.replace(bench.agent, index=index)
    vector = Builtin(agent, cast("Any", Damaged()), cast("Any", providers)).status().vector
    assert (vector.available, vector.reason) == (False, "no answer")
    assert asked == [held if built else space_of(wanted)]


async def test_a_note_is_blocked_for_the_reason_that_there_is(bench: Bench) -> None:
    """Its directory, where that is away as on a disk that is not mounted; else what is wrong with the file itself."""
    found = await bench.builtin.get(NOTE, start_line=1, lines=9, kinds=ALL)
    assert found is not None
    assert found.text == "the kestrel nests here"
    rules = msgspec.structs.replace(bench.rules, max_bytes=9)  # it has grown since the index was looked at
    agent = msgspec.structs.replace(bench.agent, rules=rules)
    backend = Builtin(agent, cast("Any", Damaged()), silent(bench.settings))
    with pytest.raises(FilesBlocked, match=r"2026-02-09\.md cannot be read just now: (?!its directory)"):
        await backend.get(NOTE, start_line=1, lines=9, kinds=ALL)
    shutil.rmtree(bench.workspace)
    with pytest.raises(FilesBlocked, match="cannot be read just now: its directory is not there"):
        await bench.builtin.get(NOTE, start_line=1, lines=9, kinds=ALL)
