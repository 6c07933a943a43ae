import asyncio
import errno
import json
import marshal
from pathlib import Path
from types import SimpleNamespace
from typing import Any, Literal, NoReturn, cast

import msgspec
import pytest
from structlog.testing import capture_logs

from memd.backends.qmd import schedule
from memd.backends.qmd.backend import QmdBackend
from memd.backends.qmd.process import QmdFailed
from memd.backends.qmd.schedule import TaskHistory
from memd.backends.qmd.updater import QmdUpdater
from memd.config.settings import AgentSettings, Collection, QmdSettings, Redact, SessionSettings, UserRule
from memd.runtime.asyncio_helpers import ChangeNotifier
from memd.store.errors import StoreDamaged
from tests.backends.qmd.bench import Bench, indexing, serving, transcript
from tests.clock import hastily, now_s
from tests.fakes.qmd_standin import USUAL, Standin, delayed, hangs, says
from tests.wait import until_async

NOTES = {"MEMORY.md": "kestrel\n", "memory/birds.md": "A heron waits.\n"}
LOCKED = says("", stderr="SqliteError: database is locked", status=1)


def collections(bench: Bench) -> dict[str, dict[str, str]]:
    """What the stand-in has."""
    state = marshal.loads((bench.directory / "cache" / "standin").read_bytes())
    found: dict[str, dict[str, str]] = state["collections"]
    return found


async def lived(bench: Bench, qmd: QmdBackend, standin: Standin, updates: int = 1) -> None:
    """A life of an engine, until it has updated so often."""
    before = len(standin.calls("update"))
    living = asyncio.create_task(qmd.run())
    await until_async(
        lambda: (
            len(standin.calls("update")) >= before + updates
            and not qmd.program_status.updating
            and (qmd.program_status.last_update or qmd.program_status.update_failure)
        ),
        30,
    )
    living.cancel()
    await asyncio.wait([living])
    await qmd.close()


async def test_collections_are_added_once(tmp_path: Path, standin: Standin) -> None:
    """The next life finds them as they are."""
    async with indexing(tmp_path, standin.program) as bench:
        for _ in range(2):
            await lived(bench, await bench.create(), standin)
        assert set(collections(bench)) == {"memory-root-main", "memory-dir-main"}
        assert len(standin.calls("collection add")) == 2
        assert not standin.calls("collection remove")


async def test_a_collection_that_differs_is_made_anew(tmp_path: Path, standin: Standin) -> None:
    """What memd has added for another workspace goes; what somebody else has added stays."""
    async with indexing(tmp_path, standin.program) as bench:
        await lived(bench, await bench.create(), standin)
        record = bench.directory / "collections.json"
        record.write_text(record.read_text().replace(str(bench.workspace / "memory"), "/old/memory"))
        state_file = bench.directory / "cache" / "standin"
        state = marshal.loads(state_file.read_bytes())
        state["collections"]["theirs"] = {"path": "/theirs", "pattern": "*"}
        state_file.write_bytes(marshal.dumps(state))
        index = bench.directory / "cache" / "qmd" / "index.sqlite"
        index.write_text("what is in it is secret to nobody")
        await lived(bench, await bench.create(), standin)
        assert [call["arguments"][2] for call in standin.calls("collection remove")] == ["memory-dir-main"]
        assert set(collections(bench)) == {"memory-root-main", "memory-dir-main", "theirs"}
        assert index.exists()


async def test_a_name_that_is_taken_is_used(tmp_path: Path, standin: Standin) -> None:
    """It is what an earlier life was interrupted at. A place that another name has is left to that one."""
    async with indexing(tmp_path, standin.program) as bench:
        standin.play("collection list", says("No collections found.\n"), says('["memory-root-main"]'))
        standin.play("collection add", says("", stderr="Collection 'x' already exists.", status=1))
        qmd = await bench.create()
        await lived(bench, qmd, standin)
        assert qmd.program_status.collections == ("memory-root-main",)
        assert "collection memory-dir-main: qmd collection add ended" in qmd.program_status.warnings[0]


async def test_a_directory_that_comes_later_becomes_a_collection(tmp_path: Path, standin: Standin) -> None:
    """Memd makes none in anybody's workspace."""
    async with serving(
        tmp_path, standin.program, notes={"MEMORY.md": "kestrel"}, qmd={"debounce_seconds": 0}
    ) as bench:
        assert bench.qmd.program_status.collections == ("memory-root-main", "memory-dir-main")
    other = tmp_path / "other"
    async with indexing(other, standin.program, qmd={"debounce_seconds": 0}) as bench:
        (bench.workspace / "memory").rmdir()
        bench.qmd = await bench.create()
        living = asyncio.create_task(bench.qmd.run())
        await until_async(lambda: bench.qmd.program_status.collections == ("memory-root-main",), 30)
        assert not (bench.workspace / "memory").exists()
        bench.write("memory/a.md", "heron")
        await bench.settle()
        await until_async(lambda: len(bench.qmd.program_status.collections) == 2, 30)
        living.cancel()
        await asyncio.wait([living])


async def test_what_lies_behind_a_link_does_not_reach_qmd(tmp_path: Path, standin: Standin) -> None:
    """A memory directory that is a link is none for memd, and so it is none for qmd."""
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "a.md").write_text("kestrel")
    async with indexing(tmp_path, standin.program) as bench:
        (bench.workspace / "memory").rmdir()
        (bench.workspace / "memory").symlink_to(tmp_path / "elsewhere")
        await lived(bench, await bench.create(), standin)
        assert set(collections(bench)) == {"memory-root-main"}


async def test_a_lock_is_tried_again_at_once(tmp_path: Path, standin: Standin) -> None:
    """Three times."""
    async with indexing(tmp_path, standin.program) as bench:
        standin.play("update", LOCKED, LOCKED, USUAL)
        qmd = await bench.create()
        await lived(bench, qmd, standin, updates=3)
        assert qmd.program_status.update_failure is None
        assert qmd.program_status.last_update is not None


async def test_a_damaged_index_is_told_and_not_tried_again_at_once(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It will be damaged a moment later, too; it is built anew first."""
    judged: list[TaskHistory] = []
    ended = schedule.ended

    def noted(past: TaskHistory, now: float, **how: Any) -> TaskHistory:
        judged.append(ended(past, now, **how))
        return judged[-1]

    async def fails() -> NoReturn:
        raise StoreDamaged("a page is torn")

    async with indexing(tmp_path, standin.program) as bench:
        monkeypatch.setattr(schedule, "ended", noted)
        qmd = await bench.create()
        monkeypatch.setattr(bench.index, "known", fails)
        living = asyncio.create_task(qmd.run())
        await until_async(lambda: qmd.program_status.update_failure, 30)
        living.cancel()
        await asyncio.wait([living])
        await qmd.close()
        assert "a page is torn" in str(qmd.program_status.update_failure)
        assert [(one.failures, one.passing) for one in judged] == [(1, False)]


async def test_a_failed_update_fails_no_search(tmp_path: Path, standin: Standin) -> None:
    """It is told in status, and what is new is found by memd itself."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"debounce_seconds": 0}) as bench:
        standin.play("update", says("", stderr="Error: no such column", status=1))
        bench.write("memory/new.md", "a zebra\n")
        await bench.settle()
        await until_async(lambda: bench.qmd.program_status.update_failure, 30)
        assert (
            bench.qmd.program_status.update_failure
            == "qmd update ended with exit status 1: Error: no such column"
        )
        assert await bench.found("zebra") == ["memory/new.md"]
        assert await bench.found("heron") == ["memory/birds.md"]


async def test_an_index_that_is_broken_is_made_anew(tmp_path: Path, standin: Standin) -> None:
    """Once: it holds nothing that qmd cannot read again."""
    broken = says("", stderr="SqliteError: database disk image is malformed", status=1)
    async with indexing(tmp_path, standin.program) as bench:
        qmd = await bench.create()
        index = bench.directory / "cache" / "qmd" / "index.sqlite"
        index.write_text("rubbish")
        standin.play("update", broken, USUAL)
        await lived(bench, qmd, standin, updates=2)
        assert qmd.program_status.update_failure is None
        assert not index.exists()
        standin.play("update", broken)
        qmd = await bench.create()
        await lived(bench, qmd, standin, updates=2)
        assert "malformed" in (qmd.program_status.update_failure or "")


async def test_an_index_that_is_broken_and_cannot_be_deleted_is_told(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It is deleted with its log; where the disk refuses that, a person has to."""
    async with indexing(tmp_path, standin.program) as bench:
        qmd = await bench.create()
        index = bench.directory / "cache" / "qmd" / "index.sqlite"
        files = [index.with_name(index.name + end) for end in ("", "-wal", "-shm")]
        for file in files:
            file.write_text("rubbish")
        await qmd.updater.drop_index("it is broken")
        assert not any(file.exists() for file in files)

        def refused(*_: object, **__: object) -> NoReturn:
            raise OSError(errno.EROFS, "Read-only file system")

        monkeypatch.setattr(Path, "unlink", refused)
        with pytest.raises(QmdFailed, match=r"index\.sqlite is damaged and cannot be deleted: Read-only"):
            await qmd.updater.drop_index("it is broken")


async def test_a_collection_that_cannot_be_used_is_logged_once(tmp_path: Path, standin: Standin) -> None:
    """Not at each update; it stays in the status."""
    custom = (Collection(path=tmp_path / "missing"),)
    async with indexing(tmp_path, standin.program, qmd={"collections": custom}) as bench:
        qmd = await bench.create()
        with capture_logs() as logs:
            for _ in range(3):
                await qmd.updater.update()
        told = [one["reason"] for one in logs if one["event"] == "qmd.collection_unusable"]
        assert told == list(qmd.program_status.warnings)
        assert "there is no such directory" in told[0]
        await qmd.close()


async def test_a_collection_that_was_being_added_at_a_kill_is_memds_own(
    tmp_path: Path, standin: Standin
) -> None:
    """Else the next life would take it for somebody else's, and leave it there when it is to be another one."""
    async with indexing(tmp_path, standin.program) as bench:
        standin.play("collection add", hangs())
        qmd = await bench.create()
        living = asyncio.create_task(qmd.run())
        await until_async(lambda: standin.calls("collection add"), 30)
        living.cancel()
        await asyncio.wait([living])
        await qmd.close()
        [added] = standin.calls("collection add")
        record = json.loads((bench.directory / "collections.json").read_text())
        assert [name for name in record if name in added["arguments"]] == list(record) != []


async def test_a_record_of_collections_that_cannot_be_read_is_none(tmp_path: Path, standin: Standin) -> None:
    """What is there under memd's names is taken for its own; nothing of others goes."""
    async with indexing(tmp_path, standin.program) as bench:
        await lived(bench, await bench.create(), standin)
        record = bench.directory / "collections.json"
        record.write_text("no JSON")
        await lived(bench, await bench.create(), standin)
        assert set(collections(bench)) == {"memory-root-main", "memory-dir-main"}


async def test_a_collection_that_cannot_be_added_is_told_and_the_others_are_there(
    tmp_path: Path, standin: Standin
) -> None:
    """Its record goes, so that it is tried at the next start; where none can be had, there is no update."""
    refused = says("", stderr="Error: permission denied", status=1)
    async with indexing(tmp_path, standin.program) as bench:
        standin.play("collection add", refused, USUAL)
        qmd = await bench.create()
        await lived(bench, qmd, standin)
        assert len(qmd.program_status.collections) == 1
        assert "permission denied" in qmd.program_status.warnings[0]
        assert qmd.program_status.update_failure is None
        assert len(json.loads((bench.directory / "collections.json").read_text())) == 1


@pytest.mark.rows(1)
@pytest.mark.parametrize("is_refused", [False, True])
async def test_a_session_is_known_to_qmd_where_its_page_is_in_a_collection(
    tmp_path: Path, standin: Standin, *, is_refused: bool
) -> None:
    """What is not is looked for by the built-in search; so is one that has gone on since the last update."""
    file = transcript(tmp_path / "talks", "one", "where does the kestrel nest?", "up there")
    sessions = SessionSettings(paths=(tmp_path / "talks",), delta_bytes=0, delta_messages=0)
    how: dict[str, Any] = {"sources": ("memory", "sessions"), "sessions": sessions}
    async with indexing(tmp_path, standin.program, qmd={"debounce_seconds": 3600}, **how) as bench:
        for name, text in NOTES.items():
            bench.write(name, text)
        await bench.settle()
        if is_refused:
            refused = says("", stderr="Error: permission denied", status=1)
            standin.play("collection add", USUAL, USUAL, refused)  # that of the pages of sessions is the last
        qmd = await bench.create()
        await qmd.updater.update()
        session = {"sessions/talks/one.jsonl"}
        assert await qmd.updater.unknown() == (session if is_refused else set())
        with file.open("a") as opened:
            opened.write(json.dumps({"role": "user", "content": "and the heron?"}) + "\n")
        await bench.settle()
        assert await qmd.updater.unknown() == session
        await qmd.updater.update()
        assert await qmd.updater.unknown() == (session if is_refused else set())
        await qmd.close()


async def test_what_qmd_has_made_of_secrets_goes_with_them(tmp_path: Path, standin: Standin) -> None:
    """Once notes are redacted, or by other rules, it reads all anew: what is deleted in a database stays in its file."""

    async def made(redact: Redact) -> bytes:
        async with indexing(tmp_path, standin.program, redact=redact) as bench:
            bench.write("memory/a.md", "the word is swordfish or cutlass\n")
            await bench.settle()
            qmd = await bench.create()
            await lived(bench, qmd, standin)
            index = bench.directory / "cache" / "qmd" / "index.sqlite"
            kept = index.read_bytes() if index.exists() else b""
            index.write_bytes((bench.directory / "cache" / "standin").read_bytes())
            return kept

    rule = UserRule(name="word", pattern="swordfish")
    assert await made(Redact()) == b""
    assert await made(Redact()) != b""
    assert await made(Redact(mode="all", extra=(rule,))) == b""
    assert b"swordfish" not in await made(Redact(mode="all", extra=(rule,)))
    other = UserRule(name="other", pattern="cutlass")
    assert await made(Redact(mode="all", extra=(rule, other))) == b""


async def test_changes_are_taken_in_by_themselves(tmp_path: Path, standin: Standin) -> None:
    """After the debounce, without any search."""
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"debounce_seconds": 0.05}) as bench:
        before = len(standin.calls("update"))
        bench.write("memory/new.md", "a zebra\n")
        await bench.settle()
        await until_async(lambda: len(standin.calls("update")) > before, 30)
        await until_async(lambda: not bench.qmd.updater.is_behind, 30)


async def test_a_search_waits_for_an_update_but_not_for_long(tmp_path: Path, standin: Standin) -> None:
    """Half a second at most, be it one that hangs."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        standin.play("update", delayed(600))
        bench.write("memory/new.md", "a zebra\n")
        await bench.settle()
        loop = asyncio.get_running_loop()
        began = loop.time()
        assert await bench.found("zebra") == ["memory/new.md"]
        assert loop.time() - began < 30


class Slow(QmdUpdater):
    """An updater of nothing, whose updates take their time."""

    takes_s = 3600.0
    failure: Exception | None = None

    def __init__(self, runner: object = None, *, update_minutes: int = 0, **qmd: Any) -> None:
        index = SimpleNamespace(file=Path("/nowhere/main.sqlite"), changed=ChangeNotifier())
        rules = SimpleNamespace(roots=(), notes_redactor=None)
        settings = AgentSettings(
            workspace=Path("/nowhere"), qmd=QmdSettings(update_minutes=update_minutes, **qmd)
        )
        agent = SimpleNamespace(id="main", settings=settings, index=index, rules=rules)
        nothing = cast("Any", None)
        super().__init__(
            cast("Any", agent), cast("Any", runner), nothing, nothing, asyncio.Lock(), clock=now_s
        )

    async def _bring_up_to_date(self) -> None:
        version = self._index.changed.version
        await asyncio.sleep(self.takes_s)
        if self.failure is not None:
            raise self.failure
        self._seen_version = version


def test_who_asks_waits_for_the_first_collections_but_once() -> None:
    """From the beginning of all: a qmd that hangs holds up no later search, and one that has failed none at all."""

    async def main(*, fails: bool) -> list[float]:
        updater = Slow()
        if fails:
            updater.takes_s, updater.failure = 0.5, QmdFailed("no disk")
        updating = asyncio.create_task(updater.update())
        waited = []
        for _ in range(3):
            began = now_s()
            await updater.wait_for_collections(2.0)
            waited.append(now_s() - began)
        updating.cancel()
        return waited

    assert hastily(main(fails=False)) == pytest.approx([2.0, 0.0, 0.0])
    assert hastily(main(fails=True)) == pytest.approx([0.5, 0.0, 0.0])


@pytest.mark.parametrize(
    ("takes_s", "failure", "expected"),
    [
        (0.2, None, [0.2, 0.0]),
        (3600.0, None, [0.5, 0.5]),
        # The next one begins in its time: it is not waited for.
        (0.2, QmdFailed("no disk"), [0.2, 0.0]),
    ],
    ids=["a fast one", "one that hangs", "one that fails"],
)
def test_who_asks_waits_for_an_update_and_no_longer_than_is_said(
    takes_s: float, failure: Exception | None, expected: list[float]
) -> None:
    """What has just changed is taken in at once; where nothing has, nothing is waited for."""

    async def main() -> list[float]:
        updater = Slow()
        updater.takes_s, updater.failure = takes_s, failure
        running = asyncio.create_task(updater._keep_updated())  # noqa: SLF001 - without what else runs for ever
        waited = []
        for _ in expected:
            began = now_s()
            await updater.caught_up(0.5)
            waited.append(now_s() - began)
        running.cancel()
        return waited

    assert hastily(main()) == pytest.approx(expected)


async def test_minutes_of_the_settings_are_minutes() -> None:
    """And the debounce is in seconds, as it is called."""
    pace = Slow(update_minutes=7, debounce_seconds=3, embed_minutes=90).pace
    assert (pace.interval_s, pace.debounce_s, pace.embed_s) == (420, 3, 5400)


class Embedding:
    """What runs qmd, which embeds at once."""

    def __init__(self) -> None:
        self.embedded: list[float] = []

    async def ask(self, arguments: tuple[str, ...], **_: object) -> str:
        if arguments[0] == "embed":
            self.embedded.append(now_s())
        return ""


@pytest.mark.parametrize(("minutes", "expected"), [(0, [100]), (30, [100, 1900, 3700])])
def test_qmd_embeds_after_the_first_update_and_then_as_often_as_is_said(
    minutes: int, expected: list[float]
) -> None:
    """With no minutes once; a qmd that does not tell how many vectors it has is taken at its word that it has some."""
    embedding = Embedding()

    async def main() -> bool:
        updater = Slow(embedding, search_mode="query", embed_minutes=minutes)
        updater.takes_s = 100.0
        running = asyncio.create_task(updater._keep_embedded())  # noqa: SLF001 - without what else runs for ever
        await updater.update()
        await asyncio.sleep(3650)
        running.cancel()
        return updater.vectors.available

    assert hastily(main())
    assert embedding.embedded == pytest.approx(expected)


async def test_a_search_has_one_update_made_and_no_more(
    tmp_path: Path, standin: Standin, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Those that follow find all taken in, and qmd need not even rest."""
    monkeypatch.setattr(schedule, "REST", 0)
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        bench.write("memory/new.md", "a zebra\n")
        await bench.settle()
        await bench.found("zebra")
        await until_async(lambda: not bench.qmd.updater.is_behind, 30)
        updates = len(standin.calls("update"))
        await bench.found("zebra")
        assert len(standin.calls("update")) == updates


async def test_one_agent_embeds_at_a_time(tmp_path: Path, standin: Standin) -> None:
    """Whoever comes second waits for the turn that all share."""
    is_wanted = asyncio.Event()

    class Slot(asyncio.Lock):
        async def acquire(self) -> Literal[True]:
            if self.locked():
                is_wanted.set()
            return await super().acquire()

    async with indexing(tmp_path, standin.program, qmd={"search_mode": "vsearch"}) as bench:
        bench.environment = msgspec.structs.replace(bench.environment, embed_slot=Slot())
        qmd = await bench.create()
        async with bench.environment.embed_slot:
            living = asyncio.create_task(qmd.run())
            await until_async(lambda: qmd.program_status.last_update, 30)
            await until_async(is_wanted.is_set, 30)
            assert not standin.calls("embed")
        await until_async(lambda: qmd.program_status.last_embed, 30)
        living.cancel()
        await asyncio.wait([living])


async def test_embedding_fails_nothing_else(tmp_path: Path, standin: Standin) -> None:
    """It waits a minute for the next try; status says why there are no vectors."""
    standin.play("embed", says("", stderr="NoBinaryFoundError\n", status=1))
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"search_mode": "query"}) as bench:
        await until_async(lambda: "NoBinaryFound" in (bench.qmd.status().vector.reason or ""), 30)
        assert bench.qmd.program_status.update_failure is None
        for _ in range(3):
            assert await bench.found("heron") == ["memory/birds.md"]
        assert len(standin.calls("embed")) == 1


async def test_vectors_are_those_that_qmd_counts(tmp_path: Path, standin: Standin) -> None:
    """An embedding that went well and gave none is not taken for vectors."""
    standin.play("embed", says("all good\n"))
    async with serving(tmp_path, standin.program, notes=NOTES, qmd={"search_mode": "vsearch"}) as bench:
        await until_async(lambda: bench.qmd.program_status.last_embed, 30)
        await until_async(lambda: len(standin.calls("status")) >= 2, 30)
        vector = bench.qmd.status().vector
        assert (vector.ok, vector.enabled, vector.available) == (False, True, False)
        assert vector.reason == "qmd has not embedded anything yet"


async def test_in_the_mode_of_words_nothing_is_embedded(tmp_path: Path, standin: Standin) -> None:
    """Nobody needs the vectors, and models are large."""
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        await bench.found("heron")
        assert not standin.calls("embed")
        assert not bench.qmd.status().vector.enabled


async def test_what_is_gone_is_cleaned_out(tmp_path: Path, standin: Standin) -> None:
    """An update of qmd only hides it; a search that comes meanwhile waits, and is answered."""
    async with indexing(tmp_path, standin.program, qmd={"debounce_seconds": 0}) as bench:
        for name, text in NOTES.items():
            bench.write(name, text)
        await bench.settle()
        bench.qmd = await bench.create()
        upkeep = bench.qmd.updater
        upkeep.pace = msgspec.structs.replace(upkeep.pace, clean_quiet_s=0.0, clean_rest_s=0.0)
        living = asyncio.create_task(bench.qmd.run())
        await until_async(lambda: standin.calls("cleanup"), 30)
        updates = len(standin.calls("update"))
        bench.write("memory/new.md", "a dunlin\n")
        await bench.settle()
        await until_async(lambda: len(standin.calls("update")) > updates and not upkeep.updating, 30)
        assert upkeep.cleanings.unseen is None  # nothing is gone
        (bench.workspace / "memory" / "birds.md").unlink()
        await bench.settle()
        await until_async(lambda: len(standin.calls("cleanup")) == 2, 30)
        state = bench.directory / "cache" / "standin"
        await until_async(lambda: b"heron" not in state.read_bytes(), 30)
        standin.play("cleanup", delayed(0.2))
        cleaning = asyncio.create_task(upkeep.clean())
        await until_async(lambda: len(standin.calls("cleanup")) == 3, 30)
        assert await bench.found("kestrel") == ["MEMORY.md"]
        assert cleaning.done()
        living.cancel()
        await asyncio.wait([living])


async def test_nothing_is_indexed_while_it_is_cleaned(tmp_path: Path, standin: Standin) -> None:
    """A cleaning waits for the end of an update, and an update for that of a cleaning."""
    settings = {"debounce_seconds": 0}
    async with serving(tmp_path, standin.program, notes=NOTES, qmd=settings) as bench:
        upkeep = bench.qmd.updater
        standin.play("update", delayed(0.3))
        standin.play("cleanup", delayed(0.3))
        before = len(standin.calls("update"))
        bench.write("memory/new.md", "a dunlin\n")
        await bench.settle()
        await until_async(lambda: len(standin.calls("update")) == before + 1, 30)
        assert bench.qmd.program_status.updating
        cleaning = asyncio.create_task(upkeep.clean())
        await until_async(lambda: standin.calls("cleanup"), 30)
        assert not upkeep.is_behind
        bench.write("memory/newer.md", "a curlew\n")
        await bench.settle()
        await until_async(lambda: len(standin.calls("update")) == before + 2, 30)
        assert cleaning.done()


async def test_a_qmd_that_cannot_clean_up_is_asked_seldom(tmp_path: Path, standin: Standin) -> None:
    """An old one does not know the command; it searches all the same."""
    standin.play("cleanup", says("", stderr="Unknown command: cleanup", status=1))
    async with serving(tmp_path, standin.program, notes=NOTES) as bench:
        await bench.qmd.updater.clean()
        await bench.qmd.updater.clean()
        assert bench.qmd.updater.cleanings.failures == 2
        assert await bench.found("kestrel") == ["MEMORY.md"]
