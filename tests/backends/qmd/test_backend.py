import asyncio
import marshal
import os
import signal
from hashlib import sha256
from pathlib import Path
from types import SimpleNamespace
from typing import Any, NoReturn

import msgspec
import pytest

from memd.backends.backend import BackendAnswer, BackendQuestion
from memd.backends.builtin import Builtin
from memd.backends.qmd import backend
from memd.backends.qmd.export import PageReader
from memd.backends.qmd.process import QmdFailed, QmdUnavailable
from memd.config.settings import Collection, Redact, SessionSettings, UserRule
from memd.domain_types import Kind, SearchFilter
from memd.runtime.profiling import TimeTrace
from memd.store.errors import StoreDamaged, StoreUnavailable
from tests.backends.qmd.bench import PATIENCE_MS, SECRET, indexing, lives, serving, transcript
from tests.bounds import shipped
from tests.clock import Ticking
from tests.fakes.qmd_standin import USUAL, Standin, answers, delayed, dies, floods, hangs, says
from tests.wait import until_async

EVERYTHING = frozenset(Kind)
IN_GROUPS = frozenset({Kind.NOTE})
NOTES = {
    "MEMORY.md": "# Memory\n\nthe kestrel nests in the tower\n",
    "memory/birds.md": "# Birds\n\nA kestrel hovers.\nA heron waits.\n",
    "memory/other.md": "nothing of interest\n",
}


# --- what is found


async def test_hits_are_those_of_qmd_read_on_our_side(tmp_path: Path, standin: Standin) -> None:
    """With qmd's scores, true lines and our own text."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        answer = await bench.ask("heron")
        [hit] = answer.hits
        assert (hit.path, hit.start_line, hit.end_line, hit.source) == ("memory/birds.md", 1, 4, "memory")
        assert hit.snippet == "# Birds\n\nA kestrel hovers.\nA heron waits."
        assert (hit.score, hit.own_scale) == (0.5, True)
        assert (answer.backend, answer.provider, answer.model, answer.mode) == (
            "qmd",
            "qmd",
            "qmd",
            "keyword",
        )
        assert not answer.stale
        assert answer.degraded == ()
        assert answer.fallback is None


def _limit(call: dict[str, Any]) -> int:
    arguments = call["arguments"]
    return int(arguments[arguments.index("-n") + 1])


async def test_as_many_hits_are_asked_for_however_many_are_wanted(tmp_path: Path, standin: Standin) -> None:
    """For all words, and for some of them."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        assert await bench.found("where does the heron sleep?", max_results=1) == ["memory/birds.md"]
        asked = [*standin.calls("search"), *standin.calls("query")]
        assert [_limit(call) for call in asked] == 2 * [shipped("memd.backends.qmd.backend.ASKED_FOR")]


async def test_a_question_is_found_by_a_part_of_its_words(tmp_path: Path, standin: Standin) -> None:
    """Documents that hold all of them are rare; what holds less than half is no answer."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        assert await bench.found("where does the heron sleep?") == ["memory/birds.md"]
        assert await bench.found("heron telescope budget quarterly") == []


async def test_the_score_of_a_hit_of_qmd_is_unchanged(tmp_path: Path, standin: Standin) -> None:
    """Also of one that has a part of the words alone, and beside a hit of the built-in index, which has its own."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("update", delayed(600))
        bench.write("memory/new.md", "a heron at the telescope\n")
        await bench.settle()
        hits = (await bench.ask("heron waits telescope")).hits
        assert {hit.path: hit.own_scale for hit in hits} == {
            "memory/new.md": False,
            "memory/birds.md": True,
        }
        assert {hit.score for hit in hits if hit.own_scale} == {0.5}


async def test_an_old_qmd_is_asked_word_by_word(tmp_path: Path, standin: Standin) -> None:
    """One collection at a time, too: it cannot do better."""
    standin.play("--version", says("qmd 1.0.0\n"))
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        assert await bench.found("where does the heron sleep?") == ["memory/birds.md"]
        asked = [call["arguments"] for call in standin.calls("search")]
        assert all(arguments.count("-c") == 1 for arguments in asked)
        assert not standin.calls("query")
        assert {_limit(call) for call in standin.calls("search")} == {
            shipped("memd.backends.qmd.backend.ASKED_FOR")
        }


_SITTING = "One plover sits.\n"


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("printed", "found"),
    [
        ({"file": "qmd://memory-dir-main/ringed-plover.md"}, ["memory/Ringed Plover.md"]),
        ({"docid": f"#{sha256(_SITTING.encode()).hexdigest()[:6]}"}, ["memory/Ringed Plover.md"]),
        ({"file": "qmd://memory-dir-main/no-plover.md"}, []),
        ({"docid": f"#{sha256(b'another').hexdigest()[:6]}"}, []),
    ],
    ids=["in its letters", "as a hash", "of no file", "as a hash of no file"],
)
async def test_an_old_qmd_calls_files_by_other_names(
    tmp_path: Path, standin: Standin, printed: dict[str, str], found: list[str]
) -> None:
    """In letters of its own, or by their hash alone: the one file that is meant is the hit."""
    standin.play("--version", says("qmd 1.0.0\n"))
    notes = NOTES | {"memory/Ringed Plover.md": _SITTING}
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        standin.play("search", answers({**printed, "score": 0.5, "line": 1, "snippet": _SITTING}))
        assert await bench.found("plover") == found


async def test_a_note_written_just_now_is_found(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Even while qmd cannot take it in: what it does not know is asked of the built-in index, with enough hits."""
    wanted, search = [], Builtin.search

    async def counted(self: Builtin, question: BackendQuestion) -> BackendAnswer:
        wanted.append(question.max_results)
        return await search(self, question)

    monkeypatch.setattr(Builtin, "search", counted)
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("update", delayed(600))
        bench.write("memory/new.md", "a zebra crossed the yard\n")
        await bench.settle()
        answer = await bench.ask("zebra")
        assert [hit.path for hit in answer.hits] == ["memory/new.md"]
        assert wanted == [shipped("memd.backends.qmd.backend._BUILTIN_HITS")]
        assert not answer.stale
        assert await bench.found("heron") == ["memory/birds.md"]


async def test_a_search_has_qmd_take_in_what_is_new(tmp_path: Path, standin: Standin) -> None:
    """At once, and not only after the debounce."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"debounce_seconds": 3600}) as bench:
        before = len(standin.calls("update"))
        bench.write("memory/new.md", "a zebra crossed the yard\n")
        await bench.settle()
        assert await bench.found("zebra") == ["memory/new.md"]
        await until_async(lambda: len(standin.calls("update")) > before, 30)


async def test_what_has_changed_or_gone_since_is_not_shown_as_it_was(
    tmp_path: Path, standin: Standin
) -> None:
    """A line that is not there any more is no hit, a line that has moved is shown where it is now."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("update", delayed(600))
        bench.write("memory/birds.md", "new first line\n\nanother\n\nA heron waits.\n")
        (bench.workspace / "MEMORY.md").unlink()
        await bench.settle()
        [hit] = (await bench.ask("heron")).hits
        assert hit.snippet.endswith("A heron waits.")
        assert hit.end_line == 5
        assert await bench.found("kestrel") == []


async def test_files_that_qmd_never_sees_are_found(tmp_path: Path, standin: Standin) -> None:
    """It passes over some directories and endings; memd indexes them, and finds them."""
    notes = NOTES | {
        "memory/build/x.md": "an albatross",
        "memory/LOUD.MD": "loud albatross",
        "memory/heron.md": "heron",
    }
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        assert set(await bench.found("albatross")) == {"memory/build/x.md", "memory/LOUD.MD"}


async def test_what_qmd_proposes_is_filtered_and_the_built_in_search_adds_to_it(
    tmp_path: Path, standin: Standin
) -> None:
    """The answer says so; and by time the built-in search answers alone."""
    notes = {
        "memory/2026-02-09.md": "a kestrel\n",
        "memory/2026-01-01.md": "---\ntags: [bird]\n---\na kestrel in the tower\n",
        "memory/topic.md": "kestrel kestrel #bird\n",
    }
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        assert set(await bench.found("kestrel")) == set(notes)
        tagged = SearchFilter(tags=("bird",))
        assert set(await bench.found("kestrel", wanted=tagged)) == {"memory/2026-01-01.md", "memory/topic.md"}
        day_s = 1_770_595_200  # the beginning of 9 February 2026
        day = SearchFilter(since_s=day_s, until_s=day_s + 86_399, since_ns=1 << 62, until_ns=0)
        answer = await bench.ask("kestrel", wanted=day)
        assert [hit.path for hit in answer.hits] == ["memory/2026-02-09.md"]
        assert [one.reason.partition(":")[0] for one in answer.degraded if one.part == "filter"] == [
            "qmd does not filter"
        ]
        by_time = await bench.ask("kestrel", by_time=True, min_score=0.0)
        assert [hit.path for hit in by_time.hits][-2:] == ["memory/2026-02-09.md", "memory/2026-01-01.md"]
        assert (by_time.backend, by_time.fallback and by_time.fallback.instead_of) == ("builtin", "qmd")


async def test_no_more_notes_are_read_than_an_answer_may_need(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Twice the hits that are wanted of a source, and ten: some may be shown already, or be of no use."""
    notes = {f"memory/{n}.md": f"kestrel {n}\n" for n in range(17)}
    read: list[str] = []
    page = PageReader.page

    async def counted(self: PageReader, path: str, kind: Kind) -> object:
        read.append(path)
        return await page(self, path, kind)

    async with serving(tmp_path, standin.program, notes=notes) as bench:
        monkeypatch.setattr(PageReader, "page", counted)
        for wanted in (1, 3):
            read.clear()
            assert len(await bench.found("kestrel", max_results=wanted)) == wanted
            assert len(set(read)) == 2 * wanted + 10


async def test_a_hit_is_let_through_by_any_of_its_lines(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Its first and its last count as well; one beside them does not."""
    async with serving(tmp_path, standin.program, notes={"memory/a.md": "the\nkestrel\nwaits\n"}) as bench:
        answer = await bench.ask("kestrel")
        [hit] = answer.hits
        empty = msgspec.structs.replace(answer, hits=())

        async def finds_nothing(_: BackendQuestion) -> BackendAnswer:
            return empty

        monkeypatch.setattr(bench.builtin, "search", finds_nothing)
        first, last = hit.start_line, hit.end_line
        for lines, expected in (
            ([], []),
            ([(last + 1, 9)], []),
            ([(0, first - 1)], []),
            ([(last, 9)], ["memory/a.md"]),
            ([(0, first)], ["memory/a.md"]),
            ([(0, first - 1), (last, last)], ["memory/a.md"]),
        ):

            async def allowed_lines(*_: object, lines: object = lines) -> dict[str, object]:
                return {"memory/a.md": lines}

            monkeypatch.setattr(bench.index, "allowed_lines", allowed_lines)
            assert await bench.found("kestrel", wanted=SearchFilter(tags=("bird",))) == expected, lines


@pytest.mark.long
async def test_a_larger_max_results_only_appends(tmp_path: Path, standin: Standin) -> None:
    """Whatever mixture the hits are of."""
    notes = {
        f"memory/{n}.md": f"kestrel {'kestrel ' * n} {'tower' if n % 2 else ''}\nnote {n}\n"
        for n in range(12)
    }
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        most = await bench.found("kestrel tower", max_results=12)
        assert len(most) == 12
        for count in (1, 2, 5, 7, 11):
            assert await bench.found("kestrel tower", max_results=count) == most[:count]


async def test_awkward_questions_are_answered(tmp_path: Path, standin: Standin) -> None:
    """None of them is an option, a failure, or too long for an argument."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        for question in (
            "",
            "   ",
            "???",
            "-rf",
            "--help",
            "zz\0qq",
            "x" * 100_000,
            "数据库\n选型",
            "lex: q",
        ):
            assert await bench.found(question) == []


async def test_chinese_questions_find_chinese_notes(tmp_path: Path, standin: Standin) -> None:
    """Though the question does not stand in the note as it was put."""
    notes = NOTES | {"memory/会议 记录.md": "# 会议\n\n数据库选型:我们选择了 PostgreSQL,因为需要事务。\n"}
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        assert await bench.found("数据库是怎么选的?") == ["memory/会议 记录.md"]


# --- who may see what


async def test_a_group_never_sees_curated_notes(tmp_path: Path, standin: Standin) -> None:
    """Their collection is not searched for it, and a MEMORY.md anywhere else is none of its hits."""
    notes = NOTES | {
        "memory/deep/MEMORY.md": "a kestrel for the owner\n",
        "memory/build/USER.md": "kestrel owner\n",
    }
    async with serving(tmp_path, standin.program, notes=notes) as bench:
        assert await bench.found("kestrel", kinds=IN_GROUPS) == ["memory/birds.md"]
        for call in standin.calls("search"):
            assert "memory-root-main" not in call["arguments"]
        assert len(await bench.found("kestrel")) == 4
        assert await bench.found("kestrel", kinds=frozenset()) == []


async def test_only_indexed_files_are_hits(tmp_path: Path, standin: Standin) -> None:
    """Whatever qmd proposes: nothing excluded, linked, outside, or above."""
    (tmp_path / "secret.md").write_text("kestrel password\n")
    async with serving(tmp_path, standin.program, notes=NOTES, exclude=("private.md",)) as bench:
        bench.write("memory/private.md", "kestrel diary\n")
        (bench.workspace / "memory" / "link.md").symlink_to(tmp_path / "secret.md")
        await bench.settle()
        standin.play(
            "search",
            answers(
                *(
                    {
                        "file": f"qmd://memory-dir-main/{name}",
                        "score": 0.9,
                        "snippet": "program.command == str(standin.program) -1,1 program.command == str(standin.program)\nkestrel",
                    }
                    for name in (
                        "private.md",
                        "link.md",
                        "../../secret.md",
                        "../MEMORY.md",
                        "/etc/passwd",
                        ".x.md",
                    )
                ),
                {"file": str(tmp_path / "secret.md"), "score": 0.9, "snippet": "kestrel password"},
                {"file": "qmd://elsewhere/secret.md", "score": 0.9, "snippet": "kestrel password"},
                {"file": "qmd://memory-dir-main/birds.md", "score": 0.5, "line": 3},
            ),
        )
        assert await bench.found("kestrel") == ["memory/birds.md"]


async def test_secrets_of_notes_do_not_reach_qmd(tmp_path: Path, standin: Standin) -> None:
    """Where notes are redacted, qmd knows copies, and hits have the names and lines of the notes."""
    redact = Redact(mode="all", extra=(UserRule(name="word", pattern="swordfish"),))
    notes = NOTES | {"memory/code.md": "first\n\nthe word for the kestrel is swordfish\n"}
    async with serving(tmp_path, standin.program, notes=notes, redact=redact) as bench:
        [hit] = [hit for hit in (await bench.ask("word kestrel")).hits if hit.path == "memory/code.md"]
        assert (hit.start_line, hit.end_line) == (1, 3)
        assert hit.snippet.endswith("the word for the kestrel is [REDACTED:word]")
        assert await bench.found("kestrel", kinds=IN_GROUPS) == ["memory/birds.md", "memory/code.md"]
        held = [file for file in bench.directory.rglob("*") if file.is_file()]
        assert held
        assert not [file for file in held if b"swordfish" in file.read_bytes()]


async def test_sessions_are_found_by_their_pages(tmp_path: Path, standin: Standin) -> None:
    """As lines of the transcript, redacted, taking turns with notes; not for whom they are not meant."""
    transcript(
        tmp_path / "talks", "one", "hello", "hi", "where does the kestrel nest?", f"up there, {SECRET}"
    )
    sessions = SessionSettings(paths=(tmp_path / "talks",))
    async with serving(
        tmp_path, standin.program, notes=NOTES, sources=("memory", "sessions"), sessions=sessions
    ) as bench:
        answer = await bench.ask("kestrel")
        assert [hit.source for hit in answer.hits[:2]] in (["memory", "sessions"], ["sessions", "memory"])
        [hit] = [hit for hit in answer.hits if hit.source == "sessions"]
        assert hit.path == "sessions/talks/one.jsonl"
        assert hit.start_line <= 3 <= hit.end_line <= 4
        assert "User: where does the kestrel nest?" in hit.snippet
        assert SECRET not in hit.snippet
        assert "sessions/talks/one.jsonl" not in await bench.found("kestrel", kinds=IN_GROUPS)
        assert await bench.found("kestrel", kinds=frozenset({Kind.SESSION})) == ["sessions/talks/one.jsonl"]


async def test_each_agents_qmd_is_its_own(tmp_path: Path, standin: Standin) -> None:
    """Its directories and environment are; no key of the daemon reaches it, and no project's configuration is found."""
    environ = {"PATH": os.environ["PATH"], "OPENAI_API_KEY": "sk-x", "QMD_CONFIG_DIR": "/elsewhere"}
    async with serving(tmp_path, standin.program, notes=NOTES, environ=environ) as bench:
        await bench.ask("kestrel")
        for call in standin.calls():
            assert call["environ"]["XDG_CACHE_HOME"] == str(bench.directory / "cache")
            assert call["environ"]["QMD_CONFIG_DIR"] == str(bench.directory / "config")
            assert "OPENAI_API_KEY" not in call["environ"]
            assert call["directory"] == "/"
        assert bench.directory.stat().st_mode & 0o777 == 0o700


# --- what fails


@pytest.mark.rows(2)
@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (dies(), "qmd search was ended by signal 11"),
        (dies(signal.SIGKILL), "qmd search was ended by signal 9"),
        (says(""), "qmd search printed nothing"),
        (says("Segmentation fault"), "qmd search printed no JSON"),
        (floods(300_000), "too much output"),
        (says("", stderr="Error: model kestrel is broken\nError: gone\n", status=3), "status 3: Error: gone"),
    ],
)
async def test_a_search_that_goes_wrong_is_a_failure(
    act: dict[str, object], reason: str, tmp_path: Path, standin: Standin
) -> None:
    """With a reason that a person understands, and that holds no memory."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("search", act)
        with pytest.raises(QmdFailed, match=reason) as failed:
            await bench.ask("kestrel")
        assert "kestrel" not in str(failed.value)


async def test_a_search_that_hangs_is_killed_in_time(tmp_path: Path, standin: Standin) -> None:
    """With its children, which ignore every polite signal."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"timeout_ms": 1500}) as bench:
        standin.play("search", hangs())
        with pytest.raises(QmdFailed, match="qmd search did not end within"):
            await bench.ask("kestrel")
        assert standin.children()
        await until_async(lambda: not any(map(lives, standin.children())), 30)


async def test_a_search_that_nobody_waits_for_is_killed(tmp_path: Path, standin: Standin) -> None:
    """And is no failure: the next one is answered."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("search", hangs())
        waiting = asyncio.create_task(bench.ask("kestrel"))
        await until_async(lambda: len(standin.children()) == 2, 30)
        waiting.cancel()
        await asyncio.wait([waiting])
        assert waiting.cancelled()
        await until_async(lambda: not any(map(lives, standin.children())), 30)
        standin.play("search", USUAL)
        assert await bench.found("heron") == ["memory/birds.md"]


@pytest.mark.rows(1)
@pytest.mark.parametrize("how", ["nobody waits", "one of them fails"])
async def test_no_run_of_a_search_outlives_it(tmp_path: Path, standin: Standin, how: str) -> None:
    """An old qmd is run once for each collection; when one run has failed, or nobody waits, all others end."""
    standin.play("--version", says("qmd 1.0.0\n"))
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"timeout_ms": 60_000}) as bench:
        if how == "nobody waits":
            standin.play("search", hangs())
        else:
            standin.play("search", says("", stderr="no", status=1, after_s=1.0), hangs())
        waiting = asyncio.create_task(bench.ask("kestrel"))
        await until_async(lambda: len(standin.calls("search")) >= 2 and standin.children(), 30)
        if how == "nobody waits":
            waiting.cancel()
        await asyncio.wait([waiting], timeout=20)
        assert waiting.done()
        await until_async(lambda: not any(map(lives, standin.children())), 20)
        assert waiting.cancelled() or isinstance(waiting.exception(), QmdFailed)


async def test_what_one_run_of_a_search_fails_with_is_told_at_once(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Also where the run before it goes on, which is ended."""
    standin.play("--version", says("qmd 1.0.0\n"))
    begun, ended = 0, asyncio.Event()

    async def search(*_: object, **__: object) -> str:
        nonlocal begun
        begun += 1
        if begun > 1:
            raise QmdFailed("the second one fails")
        try:
            await asyncio.Event().wait()
        finally:
            ended.set()
        return ""

    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        monkeypatch.setattr(bench.qmd.runner, "search", search)
        with pytest.raises(QmdFailed, match="the second one fails"):
            await bench.ask("kestrel")
        assert ended.is_set()


async def test_a_collection_that_has_gone_is_added_again(tmp_path: Path, standin: Standin) -> None:
    """Once, and the search is put again."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        state = bench.directory / "cache" / "standin"
        held = marshal.loads(state.read_bytes())
        del held["collections"]["memory-dir-main"]
        state.write_bytes(marshal.dumps(held))
        assert await bench.found("heron") == ["memory/birds.md"]
        standin.play("search", says("", stderr="Collection not found: memory-dir-main", status=1))
        with pytest.raises(QmdFailed, match="not found"):
            await bench.ask("heron")


@pytest.mark.parametrize("what", ["the option is unknown", "it fails", "it fails and nothing was found"])
async def test_what_was_found_for_all_words_is_an_answer_though_some_of_them_fail(
    tmp_path: Path, standin: Standin, what: str
) -> None:
    """What a second call would have added is missed; where there is nothing else, the failure is told."""
    stderr = "unknown option '-c'" if what == "the option is unknown" else "Error: no such column"
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("query", says("", stderr=stderr, status=1))
        if what == "it fails and nothing was found":
            with pytest.raises(QmdFailed, match="no such column"):
                await bench.ask("heron zebra")
        else:
            assert await bench.found("heron waits") == ["memory/birds.md"]
        assert len(standin.calls("query")) == 1


@pytest.mark.parametrize("is_left", [False, True])
async def test_a_second_call_is_made_only_where_there_is_time_for_it(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch, is_left: bool
) -> None:
    """What the first has found is the answer of a question whose time is over."""
    now = 1000.0
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        monkeypatch.setattr(backend, "time", SimpleNamespace(monotonic=lambda: now))
        search = bench.qmd.runner.search

        async def takes_long(*of: Any, **how: Any) -> str:
            nonlocal now
            now += 1.0 if is_left else PATIENCE_MS / 1000 - 0.1
            return await search(*of, **how)

        monkeypatch.setattr(bench.qmd.runner, "search", takes_long)
        assert await bench.found("heron waits") == ["memory/birds.md"]
        assert len(standin.calls("query")) == is_left


async def test_damage_of_the_index_is_answered_as_what_mends_itself(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is reported; it is neither a failure of qmd nor nothing found."""

    async def find(*_: object) -> NoReturn:
        raise StoreDamaged("page 7 is not what was written")

    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        monkeypatch.setattr(bench.index, "find", find)
        with pytest.raises(StoreUnavailable, match="damaged and is being rebuilt: page 7"):
            await bench.ask("heron")
        assert bench.index.damage.reason == "page 7 is not what was written"


async def test_an_old_qmd_that_tells_no_version_is_used(tmp_path: Path, standin: Standin) -> None:
    """As the oldest that is known."""
    standin.play("--version", says("", stderr="error: unknown option '--version'", status=1))
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        assert bench.qmd.program_status.version is None
        assert await bench.found("heron") == ["memory/birds.md"]


async def test_a_qmd_that_is_too_slow_to_tell_its_version_is_not_taken_for_an_old_one(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is tried again later, like one that does not answer at all."""
    monkeypatch.setattr("memd.backends.qmd.backend.PROBE_S", 2.0)
    standin.play("--version", hangs())
    with pytest.raises(QmdUnavailable, match="did not end within 2 s"):
        async with serving(tmp_path, standin.program, notes=NOTES):
            pass


@pytest.mark.long
async def test_many_searches_at_once_are_all_answered(tmp_path: Path, standin: Standin) -> None:
    """A few at a time; waiting for one's turn is not hanging."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        found = await asyncio.gather(*(bench.found("heron") for _ in range(20)))
        assert found == [["memory/birds.md"]] * 20


async def test_a_link_to_documents_is_a_collection_of_them(tmp_path: Path, standin: Standin) -> None:
    """One of the configuration may be reached by a link, relative ones included; hits have the names of the index."""
    (tmp_path / "docs").mkdir()
    (tmp_path / "docs" / "a.md").write_text("a gannet dives\n")
    (tmp_path / "link").symlink_to(tmp_path / "docs")
    custom = (Collection(path=tmp_path / "link", pattern="a.md"),)
    extra = (tmp_path / "docs",)
    async with serving(
        tmp_path, standin.program, notes=NOTES, qmd={"collections": custom}, extra_paths=extra
    ) as bench:
        assert bench.qmd.program_status.warnings == ()
        assert "custom-1-main" in bench.qmd.program_status.collections
        assert await bench.found("gannet") == [str(tmp_path / "docs" / "a.md")]


async def test_an_unknown_way_of_searching_is_replaced_by_another(tmp_path: Path, standin: Standin) -> None:
    """That it is unknown is found out once."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("search", says("", stderr="error: unknown option '--json'", status=1))
        assert await bench.found("a heron waits") == ["memory/birds.md"]
        assert bench.qmd.program_status.search_mode == "query"
        before = len(standin.calls("search"))
        assert await bench.found("A heron") == ["memory/birds.md"]
        assert len(standin.calls("search")) == before
        # It is asked as it understands a question: as it was put.
        assert {call["arguments"][-1] for call in standin.calls("query")} >= {"a heron waits", "A heron"}


async def test_words_take_the_place_of_a_way_that_is_unknown(tmp_path: Path, standin: Standin) -> None:
    """Without what is no word: they are all looked for."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"search_mode": "query"}) as bench:
        await until_async(lambda: bench.qmd.status().vector.available, 30)
        standin.play(
            "query", says("", stderr="error: unknown command 'query'; unknown option '-n'", status=1)
        )
        assert await bench.found("where is the heron?") == ["memory/birds.md"]
        assert bench.qmd.program_status.search_mode == "search"
        assert "?" not in standin.calls("search")[-1]["arguments"][-1]


async def test_without_vectors_qmd_is_asked_by_words(tmp_path: Path, standin: Standin) -> None:
    """Its other ways find nothing then, and say nothing; what is missing is told."""
    standin.play("embed", says("", stderr="Error: no model for this machine", status=1))
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"search_mode": "vsearch"}) as bench:
        await until_async(lambda: "no model" in (bench.qmd.status().vector.reason or ""), 30)
        answer = await bench.ask("heron")
        assert [hit.path for hit in answer.hits] == ["memory/birds.md"]
        assert answer.mode == "keyword"
        assert [part.part for part in answer.degraded] == ["vector"]
        vector = bench.qmd.status().vector
        assert (vector.enabled, vector.available) == (True, False)


async def test_with_vectors_qmd_is_asked_by_meaning(tmp_path: Path, standin: Standin) -> None:
    """With the question as it was put, in its other forms too."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"search_mode": "vsearch"}) as bench:
        await until_async(lambda: bench.qmd.status().vector.available, 30)
        standin.play(
            "vsearch",
            answers({"file": "memory-dir-main/other.md", "score": 0.71, "snippet": "nothing of interest"}),
        )
        answer = await bench.ask("what bores us?")
        assert [(hit.path, hit.score) for hit in answer.hits] == [("memory/other.md", 0.71)]
        assert (answer.mode, answer.degraded) == ("vector", ())
        assert standin.calls("vsearch")[-1]["arguments"][-1] == "what bores us?"
        assert bench.qmd.program_status.last_embed is not None


async def test_what_has_no_vector_yet_is_found_by_its_words(tmp_path: Path, standin: Standin) -> None:
    """A note that qmd knows and has not embedded is nothing to a search by meaning."""
    settings = {"search_mode": "vsearch", "debounce_seconds": 0}
    async with serving(tmp_path, standin.program, notes=NOTES, qmd=settings) as bench:
        await until_async(lambda: bench.qmd.status().vector.available, 30)
        standin.play("vsearch", answers())
        assert await bench.found("heron") == []
        bench.write("memory/new.md", "a zebra crossed the yard\n")
        await bench.ready()
        assert await bench.found("zebra") == ["memory/new.md"]
        assert len(standin.calls("embed")) == 1


# --- how it begins


@pytest.mark.parametrize(
    ("act", "reason"),
    [
        (
            says("", stderr="/usr/bin/env: 'node': No such file or directory", status=127),
            "No such file.*PATH of the daemon",
        ),
        (says(""), "printed nothing"),
        (dies(), "signal 11"),
        (floods(300_000), "too much output"),
    ],
)
async def test_a_qmd_that_does_not_work_is_not_used(
    act: dict[str, object], reason: str, tmp_path: Path, standin: Standin
) -> None:
    """The reason says what to try."""
    standin.play("collection list", act)
    async with indexing(tmp_path, standin.program) as bench:
        with pytest.raises(QmdUnavailable, match=reason):
            await bench.create()


async def test_a_qmd_that_is_not_there_is_not_used(tmp_path: Path) -> None:
    """The reason says how to install it."""
    async with indexing(tmp_path, "./no/qmd") as bench:
        with pytest.raises(QmdUnavailable, match="npm install"):
            await bench.create()


async def test_a_qmd_that_takes_no_collection_fails_searches(tmp_path: Path, standin: Standin) -> None:
    """With what it said; and not by answering nothing."""
    standin.play("collection add", says("", stderr="Error: disk is full", status=1))
    async with indexing(tmp_path, standin.program) as bench:
        bench.write("memory/a.md", "kestrel")
        await bench.settle()
        bench.qmd = await bench.create()
        living = asyncio.create_task(bench.qmd.run())
        with pytest.raises(QmdFailed, match="disk is full"):
            await bench.ask("kestrel")
        living.cancel()
        await asyncio.wait([living])


async def test_the_first_searches_are_answered_while_qmd_reads(tmp_path: Path, standin: Standin) -> None:
    """By what memd has of its own, until qmd has collections."""
    standin.play("collection add", delayed(600))
    async with indexing(tmp_path, standin.program) as bench:
        bench.write("memory/a.md", "kestrel")
        await bench.settle()
        bench.qmd = await bench.create()
        living = asyncio.create_task(bench.qmd.run())
        answer = await bench.qmd.search(
            BackendQuestion(text="kestrel", kinds=EVERYTHING, max_results=6, min_score=0.35)
        )
        assert [hit.path for hit in answer.hits] == ["memory/a.md"]
        living.cancel()
        await asyncio.wait([living])


async def test_it_tells_how_it_stands(tmp_path: Path, standin: Standin) -> None:
    """By facts; what is wrong with the configuration among them."""
    docs = tmp_path / "docs"
    docs.mkdir()
    (docs / "unknown.md").write_text("kestrel")
    custom = (Collection(path=docs, name="Docs"), Collection(path=tmp_path / "missing"))
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"collections": custom}) as bench:
        program, vector = bench.qmd.program_status, bench.qmd.status().vector
        assert program.command == str(standin.program)
        assert (program.version, program.search_mode) == ("2.8.3", "search")
        assert program.collections == ("memory-root-main", "memory-dir-main", "docs-main")
        assert program.files == 4
        assert program.last_update is not None
        assert (program.update_failure, program.updating) == (None, False)
        assert (vector.enabled, vector.available) == (False, False)
        assert "missing: there is no such directory" in program.warnings[0]
        assert "docs-main" in program.warnings[1]
        assert "extra_paths" in program.warnings[1]
        assert await bench.found("kestrel") == ["MEMORY.md", "memory/birds.md"]


# --- where the time goes


async def test_all_that_takes_time_has_a_name(tmp_path: Path, standin: Standin) -> None:
    """What qmd takes is told from what waits for it, and from what is read on our side."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        with TimeTrace(Ticking()) as account:
            assert await bench.found("where does the heron sleep?") == ["memory/birds.md"]
    names = {name for together in account.parts() for name in together.split(" + ")}
    assert names >= {"catching up", "waiting for an update of qmd", "qmd", "qmd, queued", "reading text"}


async def test_the_time_of_a_reading_is_that_of_the_disk_or_of_redaction(
    tmp_path: Path, standin: Standin
) -> None:
    """Where secrets are taken out, that is told from a slow disk, and both from waiting for a thread."""
    settings = Redact(mode="all")
    async with serving(tmp_path, standin.program, notes=NOTES, redact=settings) as bench:
        with TimeTrace(Ticking()) as account:
            found = await bench.builtin.get("memory/birds.md", start_line=1, lines=2, kinds=EVERYTHING)
    assert found is not None
    assert account.parts().keys() >= {
        "catching up",
        "finding the file",
        "finding the file, queued",
        "disk",
        "disk, queued",
        "redacting",
    }
