"""What the built-in backend says of an index, and of files, that it cannot read."""

import shutil
from collections.abc import AsyncIterator, Awaitable, Callable
from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.backends.backend import BackendQuestion
from memd.backends.builtin import Builtin
from memd.backends.indexed_text import FilesBlocked
from memd.domain_types import DegradedPart, Kind, Turn
from memd.providers.provider import Identity, space_of
from memd.search.make_hits import Searched
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
        lambda one: one.propose(QUESTION, is_explained=False),
        lambda one: one.get(NOTE, start_line=1, lines=9, kinds=ALL),
    ],
    ids=["search", "explain", "propose", "get"],
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


@pytest.mark.parametrize("part", ["", "keyword_damage", "vector_damage"])
async def test_what_a_search_met_is_reported(bench: Bench, part: str) -> None:
    """The broken part is built anew; the answer of the others stands. What is sound is left alone."""

    class Searching:
        async def search(self, *_: object, **__: object) -> Searched:
            return Searched(
                hits=(),
                mode="hybrid",
                degraded=(),
                keyword_damage="malformed" if part == "keyword_damage" else None,
                vector_damage="a block is short" if part == "vector_damage" else None,
                provider="",
                model="",
                space=None,
            )

    answer = await Builtin(bench.agent, cast("Any", Searching()), silent(bench.settings)).search(QUESTION)
    assert (answer.backend, answer.hits) == ("builtin", ())
    damage = bench.index.damage
    assert (damage.keyword is not None) == (part == "keyword_damage")
    assert damage.reason == {"keyword_damage": "malformed", "vector_damage": "a block is short"}.get(part)
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


@pytest.mark.parametrize(
    ("wanted", "extension", "expected"),
    [
        (None, None, (False, False, "keyword search only, until the embedding provider has answered")),
        (True, "no sqlite-vec", (False, True, "no sqlite-vec; vectors are compared in memory")),
        (True, None, (True, True, None)),
    ],
)
async def test_how_well_vectors_are_searched_is_told(
    bench: Bench, wanted: bool | None, extension: str | None, expected: tuple[bool, bool, str | None]
) -> None:
    """Not before the model is known; without the extension in another way."""
    providers = SimpleNamespace(
        settings=bench.settings, embeds=True, wanted=wanted and Identity("fake", "m", "k", 8),
        is_answering=lambda _: True, reason="no answer", provider_name="fake", model_name="m",
    )  # fmt: skip
    index = cast("Any", SimpleNamespace(extension_trouble=extension, space=None))
    agent = msgspec.structs.replace(bench.agent, index=index)
    status = Builtin(agent, cast("Any", Damaged()), cast("Any", providers)).status()
    assert (status.backend, status.provider, status.model) == ("builtin", "fake", "m")
    vector = status.vector
    assert (vector.ok, vector.available, vector.reason) == expected
    assert vector.enabled


@pytest.mark.parametrize(
    ("trouble", "extension", "logged"),
    [
        (None, None, []),
        ("malformed", None, ["backend.warm_up_failed"]),
        (None, "no sqlite-vec", ["backend.vectors_limited"]),
        (StoreUnavailable("busy"), "no sqlite-vec", ["backend.warm_up_failed"]),
        (StoreDamaged("page 7"), None, ["backend.warm_up_failed"]),
    ],
)
async def test_what_is_broken_is_told_before_anybody_asks(
    bench: Bench, trouble: str | Exception | None, extension: str | None, logged: list[str]
) -> None:
    """And has the index built anew, where that is what is broken."""

    class Warming:
        async def warm(self) -> str | None:
            if isinstance(trouble, Exception):
                raise trouble
            return trouble

    damage = bench.index.damage
    index = cast("Any", SimpleNamespace(extension_trouble=extension, damage=damage))
    backend = Builtin(
        msgspec.structs.replace(bench.agent, index=index), cast("Any", Warming()), silent(bench.settings)
    )
    with capture_logs() as logs:
        await backend.warm()
    assert [one["event"] for one in logs if one["event"].startswith("backend.")] == logged
    assert (damage.keyword is not None) is (trouble == "malformed")
    assert (damage.reason is not None) is (trouble == "malformed" or isinstance(trouble, StoreDamaged))


async def test_what_is_wrong_beside_the_search_is_told_with_each_answer(bench: Bench) -> None:
    """With a trace, too: nobody sees changes, a rebuild fails, the store does not take what is written."""
    found = Searched(
        hits=(), mode="keyword", degraded=(DegradedPart("provider", "down"),), keyword_damage=None,
        vector_damage=None, provider="fake", model="m", space=None,
    )  # fmt: skip
    asked: list[dict[str, Any]] = []

    class Searching:
        async def search(self, *_: object, **how: Any) -> Searched:
            asked.append(how)
            return found

        async def explain(self, *_: object, **how: Any) -> tuple[Searched, str]:
            asked.append(how)
            return found, "a trace"

    is_fresh = True

    async def catch_up() -> bool:
        return is_fresh

    health = SimpleNamespace(watcher=None, rebuild=None, store=None)
    sync = cast("Any", SimpleNamespace(health=health, catch_up=catch_up))
    backend = Builtin(
        msgspec.structs.replace(bench.agent, index_service=sync),
        cast("Any", Searching()),
        silent(bench.settings),
    )
    answer = await backend.search(QUESTION)
    assert (answer.degraded, answer.stale) == ((DegradedPart("provider", "down"),), False)
    assert (answer.provider, answer.model, answer.mode, answer.fallback) == ("fake", "m", "keyword", None)
    is_fresh = False
    health.watcher, health.rebuild, health.store = "not seen", "no room", "full"
    answer, trace = await backend.explain(QUESTION)
    assert (cast("object", trace), answer.stale) == ("a trace", True)
    assert [(one.part, one.reason) for one in answer.degraded] == [
        ("provider", "down"),
        ("watcher", "not seen"),
        ("rebuild", "no room"),
        ("store", "full"),
    ]
    assert all(how["kinds"] == ALL and how["max_results"] == 6 for how in asked)


async def test_a_question_that_is_put_to_several_memories_is_answered_as_one_that_is_not(
    bench: Bench,
) -> None:
    """What was written a moment ago takes part, or the answer is stale; damage is met in the middle, too."""
    found = Searched(
        hits=(), mode="keyword", degraded=(), keyword_damage="malformed",
        vector_damage=None, provider="fake", model="m", space=None,
    )  # fmt: skip
    asked: list[object] = []
    is_fresh = False

    class Searching:
        async def propose(self, text: str, **how: Any) -> str:
            assert how["kinds"] == ALL
            asked.append((text, how["is_explained"]))
            return "own"

        async def search_together(self, *of: object) -> Searched:
            asked.append(of)
            return found

        async def explain_together(self, *of: object) -> tuple[Searched, str]:
            asked.append(of)
            return found, "a trace"

        async def close(self) -> None:
            asked.append("closed")

    async def catch_up() -> bool:
        return is_fresh

    health = SimpleNamespace(watcher=None, rebuild=None, store="full")
    sync = cast("Any", SimpleNamespace(health=health, catch_up=catch_up))
    agent = msgspec.structs.replace(bench.agent, index_service=sync)
    backend = Builtin(agent, cast("Any", Searching()), silent(bench.settings))
    stale = await backend.propose(QUESTION, is_explained=False)
    is_fresh = True
    fresh = await backend.propose(QUESTION, is_explained=True)
    assert asked == [("kestrel", False), ("kestrel", True)]
    others = cast("Any", {"team:alice/main": "hers"})
    answer = await backend.search_together(stale, others, 6)
    assert (answer.stale, answer.degraded) == (True, (DegradedPart("store", "full"),))
    answer, trace = await backend.explain_together(fresh, others, 7)
    assert (answer.stale, cast("object", trace)) == (False, "a trace")
    assert asked[2:] == [("own", others, 6), ("own", others, 7)]
    assert bench.index.damage.keyword == "malformed"
    await backend.close()
    assert asked[-1] == "closed"


async def test_what_is_not_indexed_or_not_to_be_seen_is_not_read(bench: Bench) -> None:
    """Nor what is a note no more; of a note that is read it is told how many lines it has."""
    note = await bench.builtin.get(NOTE, start_line=9, lines=9, kinds=ALL)
    assert note is not None
    assert (note.text, note.total_lines) == ("", 1)
    assert await bench.builtin.get("memory/none.md", start_line=1, lines=9, kinds=ALL) is None
    others = ALL - {Kind.NOTE}
    assert await bench.builtin.get(NOTE, start_line=1, lines=9, kinds=others) is None
    (bench.workspace / NOTE).unlink()
    await bench.settle()
    assert await bench.builtin.get(NOTE, start_line=1, lines=9, kinds=ALL) is None


async def test_a_note_that_went_between_two_looks_is_not_there(bench: Bench) -> None:
    """The index has it still; a link in its place is followed nowhere."""
    file = bench.workspace / NOTE
    file.unlink()

    async def catch_up() -> bool:
        return True

    sync = cast("Any", SimpleNamespace(catch_up=catch_up))
    agent = msgspec.structs.replace(bench.agent, index_service=sync)
    backend = Builtin(agent, cast("Any", Damaged()), silent(bench.settings))
    assert await backend.get(NOTE, start_line=1, lines=9, kinds=ALL) is None
    (bench.workspace / "outside.md").write_text("secret")
    file.symlink_to(bench.workspace / "outside.md")
    assert await backend.get(NOTE, start_line=1, lines=9, kinds=ALL) is None


async def test_of_a_transcript_the_turns_are_given_that_were_read_last(bench: Bench) -> None:
    """Where none is on the lines that are asked for, how many lines there are."""
    turns = (Turn("1", "user", None, 3, 4, "which heron?"),)
    asked: list[tuple[object, ...]] = []

    class Held:
        async def find(self, path: str) -> SimpleNamespace:
            return SimpleNamespace(path=path, kind=Kind.SESSION)

        async def stretch(self, *where: object) -> SimpleNamespace:
            asked.append(where)
            return SimpleNamespace(turns=turns if where[1] == 3 else (), next_line=None)

        async def last_turn_line(self, path: str) -> int:
            asked.append((path,))
            return 4

    agent = msgspec.structs.replace(bench.agent, index=cast("Any", Held()))
    backend = Builtin(agent, cast("Any", Damaged()), silent(bench.settings))
    found = await backend.get("s.jsonl", start_line=3, lines=9, kinds=ALL, max_chars=99)
    assert found is not None
    assert "which heron?" in found.text
    assert (found.start_line, found.end_line, found.total_lines) == (3, 4, None)
    assert asked == [("s.jsonl", 3, 9, 99)]
    beyond = await backend.get("s.jsonl", start_line=5, lines=9, kinds=ALL)
    assert beyond is not None
    assert (beyond.text, beyond.next_line, beyond.total_lines) == ("", None, 4)
    assert asked[2:] == [("s.jsonl",)]
