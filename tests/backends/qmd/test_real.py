"""What memd expects of qmd, asked of qmd itself."""

import asyncio
from pathlib import Path

import pytest

from memd.backends.qmd import commands, parse
from memd.config.settings import Redact, SessionSettings, UserRule
from memd.domain_types import Kind
from tests.backends.qmd.bench import Bench, serving, transcript
from tests.realqmd import RealQmd
from tests.wait import until_async

pytestmark = pytest.mark.long  # it is installed by npm, and takes seconds for each of its answers

NOTES = {
    "MEMORY.md": "# Memory\n\nWe picked PostgreSQL for the database, because of transactions.\n",
    "memory/birds.md": "# Birds\n\nA kestrel hovers.\n\nA heron waits.\n",
    "memory/会议 记录.md": "# 会议\n\n数据库选型:我们选择了 PostgreSQL,因为需要事务。\n下周发布新版本。\n",
}


def nothing_own(bench: Bench) -> None:
    """From here on, hits are qmd's alone."""
    assert not bench.qmd.updater.is_behind


async def test_questions_in_english_and_chinese_are_answered(tmp_path: Path, real_qmd: RealQmd) -> None:
    """Put as people put them, over several collections at once; with true lines and scores between 0 and 1."""
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=real_qmd.environ(tmp_path)) as bench:
        nothing_own(bench)
        answer = await bench.ask("which database did we pick?")
        assert answer.hits[0].path == "MEMORY.md"
        assert answer.hits[0].snippet.split("\n")[-1] == NOTES["MEMORY.md"].split("\n")[2]
        assert (answer.hits[0].start_line, answer.hits[0].end_line) == (1, 3)
        assert 0 < answer.hits[0].score <= 1
        assert (await bench.found("我们的数据库是怎么选的?"))[0] == "memory/会议 记录.md"
        assert await bench.found("缓存策略") == []
        assert set(await bench.found("PostgreSQL")) == {"MEMORY.md", "memory/会议 记录.md"}
        assert await bench.found("PostgreSQL", kinds=frozenset({Kind.NOTE})) == ["memory/会议 记录.md"]
        assert bench.qmd.program_status.version == "2.8.3"
        assert bench.qmd.program_status.files == 3


async def test_awkward_names_and_questions_are_no_trouble(tmp_path: Path, real_qmd: RealQmd) -> None:
    """Spaces, capitals, brackets, Chinese; options, excluded words and very long questions."""
    names = ["My Notes (v2)", "a,b[1] #100%?", "---", "会议 记录", "cafe\u0301", "$x", "UPPER.case"]
    notes = {f"memory/{name}.md": f"# {n}\n\nthe plover number {n}\n" for n, name in enumerate(names)}
    async with serving(tmp_path, real_qmd.program, notes=notes, environ=real_qmd.environ(tmp_path)) as bench:
        nothing_own(bench)
        found = await bench.found("plover", max_results=20)
        assert set(found) == {f"memory/{name}.md" for name in [*names[:4], "caf\u00e9", *names[5:]]}
        for question in ("x" * 100_000, 'plo"ver', "lex: x\nexpand: y"):
            await bench.ask(question)
        assert await bench.found("--help") == []
        assert len(await bench.found("-plover", max_results=20)) == len(names)


async def test_changes_are_followed(tmp_path: Path, real_qmd: RealQmd) -> None:
    """A note that is changed, removed or new is so for qmd too, after an update that nobody asked for."""
    settings = {"debounce_seconds": 0.05}
    environ = real_qmd.environ(tmp_path)
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=environ, qmd=settings) as bench:
        bench.write("memory/birds.md", "# Birds\n\nA bittern booms.\n")
        bench.write("memory/new.md", "An avocet wades.\n")
        (bench.workspace / "MEMORY.md").unlink()
        assert await bench.found("heron") == []
        assert await bench.found("bittern") == ["memory/birds.md"]
        await bench.ready()
        assert await bench.found("avocet") == ["memory/new.md"]
        assert await bench.found("database") == []
        said = await bench.qmd.runner.ask(
            commands.search("search", "bittern", bench.qmd.program_status.collections, 5), timeout_s=60
        )
        assert [entry.file for entry in parse.entries(said, "qmd search")] == ["birds.md"]


async def test_what_is_gone_is_in_no_file_of_it(tmp_path: Path, real_qmd: RealQmd) -> None:
    """After it has cleaned up; it goes on answering."""
    settings = {"debounce_seconds": 0.05}
    environ = real_qmd.environ(tmp_path)
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=environ, qmd=settings) as bench:
        bench.write("memory/birds.md", "# Birds\n\nA bittern booms.\n")
        (bench.workspace / "MEMORY.md").unlink()
        await bench.ready()
        await bench.qmd.updater.clean()
        files = [file for file in bench.directory.rglob("*") if file.is_file()]
        assert any(b"bittern" in file.read_bytes() for file in files)
        held = [
            file for file in files if b"hovers" in file.read_bytes() or b"transactions" in file.read_bytes()
        ]
        assert held == []
        assert await bench.found("bittern") == ["memory/birds.md"]


async def test_an_index_that_was_dropped_is_made_again(tmp_path: Path, real_qmd: RealQmd) -> None:
    """Its collections are not in it; meanwhile nothing is missed."""
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=real_qmd.environ(tmp_path)) as bench:
        await bench.qmd.updater.drop_index("rubbish")
        assert await bench.found("heron") == ["memory/birds.md"]
        await bench.qmd.updater.update()
        nothing_own(bench)
        assert await bench.found("heron") == ["memory/birds.md"]
        assert bench.qmd.program_status.files == 3


async def test_searching_goes_on_while_qmd_updates(tmp_path: Path, real_qmd: RealQmd) -> None:
    """No lock stops it."""
    notes = NOTES | {f"memory/{n}.md": f"# {n}\n\n{'words ' * 50}\n" for n in range(300)}
    async with serving(tmp_path, real_qmd.program, notes=notes, environ=real_qmd.environ(tmp_path)) as bench:
        runner = bench.qmd.runner
        updating = asyncio.create_task(runner.ask(commands.UPDATE, timeout_s=60, quiet=True))
        found = await asyncio.gather(*(bench.found("heron") for _ in range(6)))
        assert found == [["memory/birds.md"]] * 6
        assert "All collections updated" in await updating


async def test_its_lists_and_refusals_are_understood(tmp_path: Path, real_qmd: RealQmd) -> None:
    """What is there, what is there already, and what is not."""
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=real_qmd.environ(tmp_path)) as bench:
        runner = bench.qmd.runner
        listed = parse.collections(await runner.ask(commands.LIST, timeout_s=60))
        assert [(one.name, one.files) for one in listed] == [("memory-root-main", 1), ("memory-dir-main", 2)]
        await runner.ask(commands.remove("memory-dir-main"), timeout_s=60)
        assert await bench.found("heron") == ["memory/birds.md"]
        raised = await asyncio.gather(
            runner.ask(commands.remove("nothing"), timeout_s=60),
            runner.ask(commands.search("search", "x", ["nothing"], 5), timeout_s=60),
            runner.ask(commands.add(bench.workspace, "memory-root-main", "*.md"), timeout_s=60),
            runner.ask(commands.add(bench.workspace, "other", "{MEMORY,USER}.md"), timeout_s=60),
            return_exceptions=True,
        )
        assert [type(one).__name__ for one in raised] == ["CollectionMissing"] * 2 + ["AlreadyExists"] * 2


async def test_sessions_and_redacted_notes_are_found(tmp_path: Path, real_qmd: RealQmd) -> None:
    """By the pages that memd has made of them, in a qmd that knows no secret."""
    transcript(
        tmp_path / "talks", "one", "hello", "hi", "where does the kestrel nest?", "in the tower, swordfish"
    )
    redact = Redact(mode="all", extra=(UserRule(name="word", pattern="swordfish"),))
    async with serving(
        tmp_path,
        real_qmd.program,
        notes=NOTES | {"memory/code.md": "the kestrel code is swordfish\n"},
        environ=real_qmd.environ(tmp_path),
        redact=redact,
        sources=("memory", "sessions"),
        sessions=SessionSettings(paths=(tmp_path / "talks",)),
    ) as bench:
        nothing_own(bench)
        answer = await bench.ask("kestrel")
        assert {hit.path for hit in answer.hits} == {
            "memory/birds.md",
            "memory/code.md",
            "sessions/talks/one.jsonl",
        }
        assert "swordfish" not in str(answer.hits)
        held = [file.read_bytes() for file in bench.directory.rglob("*") if file.is_file()]
        assert held
        assert not any(b"swordfish" in data for data in held)


async def test_without_models_it_searches_by_words_and_says_so(tmp_path: Path, real_qmd: RealQmd) -> None:
    """Vectors are those that it has, not those that it was told to make."""
    environ = real_qmd.environ(tmp_path)
    settings = {"search_mode": "vsearch"}
    async with serving(tmp_path, real_qmd.program, notes=NOTES, environ=environ, qmd=settings) as bench:
        await until_async(lambda: bench.qmd.status().vector.reason != "qmd has not embedded anything yet", 60)
        answer = await bench.ask("heron")
        assert [hit.path for hit in answer.hits] == ["memory/birds.md"]
        assert answer.mode == "keyword"
        assert [one.part for one in answer.degraded] == ["vector"]
