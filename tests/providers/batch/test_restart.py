"""Jobs that outlive the daemon, and a ledger that cannot be written."""

import asyncio
import itertools
from collections.abc import Collection, Mapping, Sequence
from pathlib import Path

import apsw
import msgspec
import numpy as np
import pytest

from memd.config.settings import BatchSettings
from memd.domain_types import BatchFile, BatchJob, TextHash
from memd.errors import MemdError
from memd.providers.batch.circuit_breaker import BatchState
from memd.providers.batch.ledger import Ledger
from memd.providers.cosine_calibration import Bias, BiasLine
from memd.store import migrations
from memd.store.errors import StoreFull, StoreNewer
from memd.store.int16_vectors import rounded
from memd.store.read_only import look_at_cache
from tests.bounds import shipped
from tests.fakes import embedding_server as says
from tests.fakes.embedding_server import EmbeddingServer, Seen
from tests.fakes.http import Response
from tests.providers.batch.rig import (
    PROVIDERS,
    QUICK,
    SOON,
    Rig,
    batching,
    begun,
    directly,
    done,
    hash_of,
    texts_of,
    through,
    until_cleared,
    until_forgotten,
    vector_of,
)
from tests.store.older import made, run
from tests.wait import until_async


class Troubled:
    """A ledger on a disk that is full at the steps named."""

    def __init__(self, ledger: Ledger, steps: Collection[str], failure: MemdError | None = None) -> None:
        self.steps = set(steps)
        self.met: list[str] = []
        self._ledger = ledger
        self.failure = failure or StoreFull("no room is left on the disk")

    def _pass(self, step: str) -> None:
        if step in self.steps:
            self.met.append(step)
            raise self.failure

    async def begin(self, job: BatchJob, shares: Mapping[TextHash, float], upload: str) -> None:
        self._pass("begin")
        await self._ledger.begin(job, shares, upload)

    async def created(self, job_id: str, name: str, at: float) -> None:
        self._pass("created")
        await self._ledger.created(job_id, name, at)

    async def add_sent(self, texts: int, tokens: int) -> None:
        self._pass("add_sent")
        await self._ledger.add_sent(texts, tokens)

    async def keep(self, job_id: str, vectors: Mapping[TextHash, bytes]) -> None:
        self._pass("keep")
        await self._ledger.keep(job_id, vectors)

    async def kept(self, hashes: Collection[TextHash]) -> frozenset[TextHash]:
        return await self._ledger.kept(hashes)

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        self._pass("end")
        await self._ledger.end(job_id, documents)

    async def jobs(self) -> Sequence[BatchJob]:
        self._pass("jobs")
        return await self._ledger.jobs()

    async def missing(self, job_id: str) -> Mapping[TextHash, float | None]:
        self._pass("missing")
        return await self._ledger.missing(job_id)

    async def add_files(self, job_id: str, files: Collection[str]) -> None:
        self._pass("add_files")
        await self._ledger.add_files(job_id, files)

    async def drop_file(self, file: str) -> None:
        self._pass("drop_file")
        await self._ledger.drop_file(file)

    async def files(self) -> Sequence[BatchFile]:
        self._pass("files")
        return await self._ledger.files()

    async def forget_old(self) -> None:
        self._pass("forget_old")
        await self._ledger.forget_old()

    async def document(self, name: str) -> bytes | None:
        self._pass("document")
        return await self._ledger.document(name)

    async def put_document(self, name: str, content: bytes) -> None:
        self._pass("put_document")
        await self._ledger.put_document(name, content)


def hold(server: EmbeddingServer, what: str, *, before: bool) -> None:
    """Never answer requests of a kind: before the server has done anything, or after."""
    held = Response(delay_s=3600)
    if before:
        server.plan = lambda seen: held if seen.what == what else None
    else:
        server.after = lambda seen, response: held if seen.what == what else response


def let_go(server: EmbeddingServer) -> None:
    """Answer as usual."""
    server.plan = lambda _: None
    server.after = lambda _, response: response


@pytest.mark.rows(8)
@pytest.mark.parametrize("before", [True, False])
@pytest.mark.parametrize("what", ["upload", "create", "poll", "download"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_survives_a_restart_wherever_it_was(
    server: EmbeddingServer, tmp_path: Path, name: str, what: str, before: bool
) -> None:
    """Closing waits for no answer; the next life takes the job up, or lets its texts go if it never was, and nothing is paid twice."""
    texts = texts_of(10)
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    hold(server, what, before=before)
    async with batching(name, url, file) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: server.requests(what), 20)
        await rig.batches.close()
        assert {task for task in asyncio.all_tasks() if "carry_out" in repr(task)} == set()
        assert all(map(rig.batches.holds, texts))
        assert not rig.batches.is_open
    let_go(server)
    is_there = what in {"poll", "download"} or (what == "create" and not before)
    async with batching(name, url, file) as rig:
        assert all(map(rig.batches.holds, texts))
        assert rig.batches.jobs == 1
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == (10 if is_there else 0)
        assert rig.batches.state == BatchState()
        if not is_there:
            assert all(map(rig.batches.takes, texts))
            await through(rig, texts)
        assert await rig.kept(texts) == {text_hash: vector_of(text) for text_hash, text in texts.items()}
    assert sorted(server.embedded()) == sorted(texts.values())
    assert not server.requests("cancel")


@pytest.mark.parametrize("name", PROVIDERS)
async def test_no_file_stays_of_a_job_that_was_not_created_before_a_restart(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """Nobody else would know of it."""
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    hold(server, "create", before=True)
    async with batching(name, url, file) as rig:
        await rig.batches.submit(texts_of(10))
        await until_async(lambda: server.requests("create"), 20)
    assert len(server.files) == 1
    let_go(server)
    async with batching(name, url, file) as rig:
        await until_forgotten(rig)
        await until_cleared(rig)
        assert not server.files


@pytest.mark.parametrize("ending", ["answered", "failed", "restarted"])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_file_whose_upload_was_not_answered_is_found_and_deleted(
    server: EmbeddingServer, tmp_path: Path, name: str, ending: str
) -> None:
    """By the name under which it was uploaded, on whatever page of the list it is: nobody was told another one.

    Those of others stay, also where their names are much alike: two installations may share a key.
    """
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    often = msgspec.structs.replace(SOON, delete_first_s=0.01, delete_longest_s=0.02)
    others = {"of-somebody": "notes.jsonl", "of-another-memd": "memd-0123456789abcdef.jsonl"}
    for other, uploaded in others.items():
        server.files[other], server.file_names[other] = b"{}", uploaded
    server.page = 1
    lost = itertools.count()
    if ending == "restarted":
        hold(server, "upload", before=False)
    else:
        # The file is there, and nobody hears of it: once, or each time.
        server.after = lambda seen, response: (
            says.broken(seen.provider)
            if seen.what == "upload" and (ending == "failed" or not next(lost))
            else response
        )
    async with batching(name, url, file, timeouts=often) as rig:
        await rig.batches.submit(texts_of(10))
        await until_async(lambda: bool(server.requests("upload")) and len(server.files) >= 3, 20)
        if ending != "restarted":
            await until_cleared(rig)
            assert server.files.keys() == others.keys()
            assert rig.batches.files_left == 0
            assert len(server.deleted) == (3 if ending == "answered" else QUICK.attempts)
    let_go(server)
    async with batching(name, url, file, timeouts=often) as rig:
        await until_forgotten(rig)
        await until_cleared(rig)
        assert server.files.keys() == others.keys()


@pytest.mark.parametrize("beyond", [0, 1])
async def test_a_file_is_sought_on_so_many_pages(
    server: EmbeddingServer, tmp_path: Path, beyond: int
) -> None:
    """One that is further back is sought again, and counts as left until then."""
    most = shipped("memd.providers.batch.remote_files.MOST_PAGES")
    others = [f"other-{number}" for number in range(most - 1 + beyond)]
    often = msgspec.structs.replace(SOON, delete_first_s=0.01, delete_longest_s=0.02)
    server.page = 1

    def after(seen: Seen, response: Response) -> Response:
        if seen.what == "upload" and len(server.files) == 1:
            server.files.update(dict.fromkeys(others, b"{}"))
            return says.broken(seen.provider)
        return response

    server.after = after
    async with batching("openai", server.base_url("openai"), tmp_path / "e.sqlite", timeouts=often) as rig:
        await rig.batches.submit(texts_of(10))
        await until_async(lambda: len(server.requests("list_files")) >= most * (1 + beyond), 20)
        if beyond:
            assert rig.batches.files_left == 1
            for name in others:
                server.files.pop(name)
        await until_cleared(rig)
    assert server.files.keys() <= set(others)


@pytest.mark.parametrize("name", PROVIDERS)
async def test_no_list_of_files_is_asked_for_where_each_upload_was_answered(
    server: EmbeddingServer, tmp_path: Path, name: str
) -> None:
    """There is nothing to be sought."""
    async with batching(name, server.base_url(name), tmp_path / "e.sqlite") as rig:
        await through(rig, texts_of(10))
        await until_cleared(rig)
    assert not server.requests("list_files")


@pytest.mark.parametrize("name", PROVIDERS)
@pytest.mark.parametrize("listed", [True, False])
async def test_a_file_whose_deletion_is_refused_is_gone_where_the_list_does_not_have_it(
    server: EmbeddingServer, tmp_path: Path, name: str, listed: bool
) -> None:
    """Gemini refuses the deletion of a file that is not there as if it were somebody else's."""
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    often = msgspec.structs.replace(SOON, delete_first_s=0.01, delete_longest_s=0.02)

    def refuse(seen: Seen) -> Response | None:
        if seen.what == "delete":
            if not listed:
                server.files.clear()
            return says.forbidden(seen.provider)
        return None

    server.plan = refuse
    async with batching(name, url, file, timeouts=often) as rig:
        await through(rig, texts_of(10))
        if listed:
            await until_async(
                lambda: len(server.requests("list_files")) >= 3 and rig.batches.files_left == 2, 20
            )
            assert len(await rig.ledger.files()) == 2
            assert look_at_cache(tmp_path / "e.sqlite", 5.0).files == tuple(
                sorted(f"{name} {stored.name}" for stored in await rig.ledger.files())
            )
        else:
            await until_cleared(rig)
            await until_async(lambda: rig.batches.files_left == 0, 20)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_files_that_could_not_be_deleted_are_tried_again(
    server: EmbeddingServer, tmp_path: Path, name: str, restarted: bool
) -> None:
    """For as long as a provider keeps them, also in the next life, though their jobs are forgotten; none of others."""
    url, file = server.base_url(name), tmp_path / "e.sqlite"
    often = msgspec.structs.replace(SOON, delete_first_s=0.01, delete_longest_s=0.02)
    server.files["file-of-somebody"] = b"{}"
    server.plan = lambda seen: says.broken(seen.provider) if seen.what == "delete" else None
    async with batching(name, url, file, timeouts=SOON if restarted else often) as rig:
        await through(rig, texts_of(10))
        await until_async(lambda: len(server.requests("delete")) >= 2 * 3, 20)
        assert len(server.files) == 3
        if not restarted:
            let_go(server)
            await until_cleared(rig)
            assert list(server.files) == ["file-of-somebody"]
    let_go(server)
    async with batching(name, url, file) as rig:
        await until_cleared(rig)
        assert list(server.files) == ["file-of-somebody"]


def bias_of() -> Bias:
    """Such as no text is without."""
    rows = np.random.default_rng(3).normal(0, 0.2, (2, 32)).astype("<f4")
    return Bias(passages=BiasLine(rows[0].tobytes(), rows[1].tobytes()), questions=BiasLine(b"", b""))


MANY_SCRIPTS = (
    "words alone",
    "灯塔",
    "half 灯塔 of it",
    "two\0words 灯塔",
    "\udc80 灯塔",
    "",
    "かな and 한글 and 中文",
)


@pytest.mark.parametrize("restarted", [False, True])
@pytest.mark.parametrize("name", PROVIDERS)
async def test_a_job_brings_the_vectors_that_plain_requests_would(
    server: EmbeddingServer, tmp_path: Path, name: str, restarted: bool
) -> None:
    """To the last bit, without what their language adds, also when the texts are known no more."""
    texts = {hash_of(text): text for text in MANY_SCRIPTS}
    url, file, bias = server.base_url(name), tmp_path / "e.sqlite", bias_of()
    server.batch_outcome = "never" if restarted else "completed"
    async with batching(name, url, file, without=bias.passages) as rig:
        await begun(rig, server, texts)
        if not restarted:
            await until_forgotten(rig)
    server.batch_outcome = "completed"
    async with batching(name, url, file, without=bias.passages) as rig:
        await until_forgotten(rig)
        kept = await rig.kept(texts)
    rows = await directly(name, url, bias, list(texts.values()))
    assert kept == rounded({one: row.astype("<f4").tobytes() for one, row in zip(texts, rows, strict=True)})
    raw = await directly(name, url, None, list(texts.values()))
    assert not any(np.allclose(row, bare, atol=0.01) for row, bare in zip(rows, raw, strict=True))


async def test_texts_of_which_nobody_knows_what_their_language_adds_are_left_to_plain_requests(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Of a job that a memd began which did not remember it: no vector is better than one as it came."""
    texts, url, file, bias = texts_of(6), server.base_url("openai"), tmp_path / "e.sqlite", bias_of()
    server.batch_outcome = "never"
    async with batching("openai", url, file, without=bias.passages) as rig:
        await begun(rig, server, texts)
    some = list(texts)[:2]
    connection = apsw.Connection(str(file))
    connection.executemany("UPDATE job_texts SET share = NULL WHERE hash = ?", ((one,) for one in some))
    connection.close()
    server.batch_outcome = "completed"
    async with batching("openai", url, file, without=bias.passages) as rig:
        await until_forgotten(rig)
        assert (await rig.kept(texts)).keys() == texts.keys() - set(some)
        assert not any(map(rig.batches.holds, texts))
        assert not any(map(rig.batches.takes, some))


def stall(seen: Seen, response: Response) -> Response:
    """Let a download stop shortly before its end."""
    if seen.what != "download":
        return response
    return Response(body=response.body, hold_after=len(response.body) * 9 // 10)


async def test_the_end_of_a_long_file_is_reached_after_a_restart(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """However few of its texts are missing by then, all of its lines are read."""
    texts = texts_of(1500)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.after = stall
    async with batching("openai", url, file) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: rig.batches.claimed < 300, 20)
    server.after = lambda _, response: response
    async with batching("openai", url, file) as rig:
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 1500
        assert rig.batches.state.failures == 0


async def test_what_was_kept_of_a_file_is_not_delivered_again(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """A restart in the middle of a download fetches the rest."""
    texts = texts_of(400)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.after = stall
    async with batching("openai", url, file) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: rig.delivered, 20)
        first = set(rig.delivered)
        assert rig.batches.claimed == 400 - len(first)
    let_go(server)
    async with batching("openai", url, file) as rig:
        assert rig.batches.claimed == 400 - len(first)
        await until_forgotten(rig)
        assert first.isdisjoint(rig.delivered)
        assert len(await rig.kept(texts)) == 400
        assert rig.batches.state == BatchState()
    assert len(server.embedded()) == 400


async def test_late_is_counted_from_the_creation_and_over_restarts(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """A job that is found late at a start is asked once more: what it has done is not thrown away."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.batch_outcome = "never"
    async with batching("openai", url, file) as rig:
        await begun(rig, server, texts)
        [job] = await rig.ledger.jobs()
        assert job.name is not None
        await rig.ledger.created(job.id, job.name, job.created_at - 2 * 3600)
    server.batch_outcome = "completed"
    async with batching("openai", url, file) as rig:
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 6
    assert not server.requests("cancel")


# --- a ledger that cannot be written or read


async def troubled(rig: Rig) -> Troubled:
    assert isinstance(rig.ledger, Troubled)
    return rig.ledger


async def test_a_job_that_cannot_be_remembered_is_not_created(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Its texts are left to plain requests, the reason is told, and it is not tried again and again."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"begin"})) as rig:
        await rig.batches.submit(texts)
        assert not any(map(rig.batches.holds, texts))
        assert rig.batches.reason == (
            "no job is created, since none can be remembered: no room is left on the disk"
        )
        assert not rig.batches.is_open
        await rig.batches.submit(texts)
        assert (await troubled(rig)).met == ["begin"]
        assert rig.batches.state == BatchState()
    assert not server.seen


async def test_after_so_long_another_job_is_tried(
    server: EmbeddingServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """And that begins the time anew, if it cannot be remembered either."""
    texts, seconds = texts_of(6), shipped("memd.providers.batch.runner.UNREMEMBERED_S")
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"begin"})) as rig:
        loop = asyncio.get_running_loop()
        began, time = loop.time(), loop.time
        await rig.batches.submit(texts)
        barred_s = seconds + loop.time() - began
        for passed_s, is_open in ((seconds - 20, False), (barred_s, True)):
            monkeypatch.setattr(loop, "time", lambda passed_s=passed_s: time() + passed_s)
            assert rig.batches.is_open is is_open
        await rig.batches.submit(texts)
        assert (await troubled(rig)).met == ["begin"] * 2
        assert not rig.batches.is_open


async def test_a_name_that_cannot_be_noted_is_found_after_a_restart(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The job goes on meanwhile."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.batch_outcome = "never"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"created"})) as rig:
        await begun(rig, server, texts)
        [job] = await rig.ledger.jobs()
        assert job.name is None
    server.batch_outcome = "completed"
    async with batching("openai", url, file) as rig:
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 6
    assert len(server.jobs) == 1


async def test_vectors_that_cannot_be_kept_stay_at_the_providers(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """The job is neither given up nor paid for again: it waits for room, in this life and in the next."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"keep"})) as rig:
        await rig.batches.submit(texts)
        await until_async(lambda: "wait at the provider's" in (rig.batches.reason or ""), 20)
        assert all(map(rig.batches.holds, texts))
        assert not rig.delivered
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"keep"})) as rig:
        await until_async(lambda: rig.batches.reason, 20)
        (await troubled(rig)).steps.clear()
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 6
        assert rig.batches.reason is None
    assert len(server.embedded()) == 6


async def test_a_job_that_cannot_be_forgotten_does_no_harm(server: EmbeddingServer, tmp_path: Path) -> None:
    """Its texts are let go; in the next life there is nothing left to fetch of it."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"end"})) as rig:
        await rig.batches.submit(texts)
        await done(rig)
        assert not any(map(rig.batches.holds, texts))
        await until_async(lambda: "cannot be forgotten" in (rig.batches.reason or ""), 20)
    async with batching("openai", url, file) as rig:
        assert (rig.batches.jobs, rig.batches.claimed) == (1, 0)
        await until_forgotten(rig)
        assert not rig.delivered
        assert rig.batches.state == BatchState()
    assert len(server.requests("download")) == 1


class HeldUp(Troubled):
    """A ledger in which a second look at all files is held up, until the test lets it go on."""

    def __init__(self, ledger: Ledger) -> None:
        super().__init__(ledger, ())
        self.looks = 0
        self.has_looked, self.has_ended, self.may_go_on = asyncio.Event(), asyncio.Event(), asyncio.Event()

    async def files(self) -> Sequence[BatchFile]:
        found = await super().files()
        self.looks += 1
        if self.looks == 2:
            self.has_looked.set()
            await self.may_go_on.wait()
        return found

    async def end(self, job_id: str, documents: Mapping[str, bytes]) -> None:
        await super().end(job_id, documents)
        self.has_ended.set()


async def test_what_a_job_leaves_while_others_are_cleared_is_cleared_too(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """Also where nothing is left of those: the look at what was left may be older than the job's end."""
    can_delete = False
    server.plan = lambda seen: None if seen.what != "delete" or can_delete else says.broken(seen.provider)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    timeouts = msgspec.structs.replace(SOON, delete_first_s=0.002, delete_longest_s=0.01)
    async with batching("openai", url, file, wrap=HeldUp, timeouts=timeouts) as rig:
        held = rig.ledger
        assert isinstance(held, HeldUp)
        await held.has_looked.wait()
        await rig.batches.submit(texts_of(6))
        await held.has_ended.wait()
        assert server.files
        can_delete = True
        held.may_go_on.set()
        await until_cleared(rig)
    assert not server.files


@pytest.mark.parametrize("step", ["document", "jobs", "missing", "files"])
async def test_while_the_ledger_cannot_be_read_every_text_is_held(
    server: EmbeddingServer, tmp_path: Path, step: str
) -> None:
    """Any of them might be in a job; when it can be read, those that are in none are let go."""
    texts, others = texts_of(6), texts_of(6, "other")
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.batch_outcome = "never"
    async with batching("openai", url, file) as rig:
        await begun(rig, server, texts)
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {step})) as rig:
        assert all(map(rig.batches.holds, texts | others))
        assert not rig.batches.is_open
        assert "so none is embedded" in (rig.batches.reason or "")
        (await troubled(rig)).steps.clear()
        await until_async(lambda: rig.batches.is_open, 20)
        assert rig.changes
        assert all(map(rig.batches.holds, texts))
        assert not any(map(rig.batches.holds, others))


async def test_the_ledger_of_a_newer_memd_means_no_jobs(server: EmbeddingServer, tmp_path: Path) -> None:
    """Waiting would not help: everything goes by plain requests, and the reason is told."""
    file = made(tmp_path / "e.sqlite", "embeddings", migrations.newest("embeddings"))
    run(file, "PRAGMA user_version = 99")
    async with batching("openai", server.base_url("openai"), file) as rig:
        assert not rig.batches.is_open
        assert not any(map(rig.batches.holds, texts_of(3)))
        assert rig.changes
        assert "written by a newer memd" in (rig.batches.reason or "")


async def test_a_ledger_that_proves_to_be_of_a_newer_memd_is_waited_for_no_longer(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """At first another program had it locked: until then every text was held."""
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"jobs"})) as rig:
        assert all(map(rig.batches.holds, texts_of(3)))
        ledger = await troubled(rig)
        ledger.failure = StoreNewer(file, 9, 2)
        await until_async(lambda: rig.changes, 20)
        assert not any(map(rig.batches.holds, texts_of(3)))
        assert not rig.batches.is_open
        assert "written by a newer memd" in (rig.batches.reason or "")
        assert ledger.met.count("jobs") == 2


@pytest.mark.parametrize("has_newer_ledger", [False, True])
async def test_once_it_is_known_what_is_in_jobs_the_queues_look_again(
    server: EmbeddingServer, tmp_path: Path, *, has_newer_ledger: bool
) -> None:
    """Until then every text was held, and a queue that looked before sees nothing to do."""
    newer = StoreNewer(tmp_path / "e.sqlite", 9, 2)
    steps = {"jobs"} if has_newer_ledger else set()
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, steps, newer)) as rig:
        assert not any(map(rig.batches.holds, texts_of(3)))
        assert rig.changes


async def test_turning_on_tells_that_it_will_not_last(server: EmbeddingServer, tmp_path: Path) -> None:
    """They are on for now."""
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    async with batching("openai", url, file, wrap=lambda one: Troubled(one, {"put_document"})) as rig:
        with pytest.raises(StoreFull):
            await rig.batches.turn_on()
        assert rig.batches.is_open


async def test_a_ledger_that_is_deleted_under_a_job_loses_no_vector(
    server: EmbeddingServer, tmp_path: Path
) -> None:
    """A new file takes its place, and the job's vectors are kept there."""
    texts = texts_of(6)
    url, file = server.base_url("openai"), tmp_path / "e.sqlite"
    server.batch_outcome = "never"
    async with batching("openai", url, file) as rig:
        await begun(rig, server, texts)
        file.unlink()
        server.batch_outcome = "completed"
        await until_forgotten(rig)
        assert len(await rig.kept(texts)) == 6
        assert rig.batches.state == BatchState()
    async with batching("openai", url, file) as rig:
        assert len(await rig.kept(texts)) == 6
    assert len(server.embedded()) == 6


@pytest.mark.rows(1)
@pytest.mark.parametrize("provider", PROVIDERS)
async def test_a_job_that_two_have_taken_up_is_no_failure_of_the_second(
    server: EmbeddingServer, tmp_path: Path, provider: str
) -> None:
    """Its results are gone when it looks, since the first has kept them all: batches have done well."""
    texts, url, file = texts_of(6), server.base_url(provider), tmp_path / "embeddings.sqlite"
    server.batch_outcome = "never"
    async with batching(provider, url, file) as rig:
        await begun(rig, server, texts)
    slow = BatchSettings(enabled=True, poll_interval_ms=400)
    polls = len(server.requests("poll"))
    async with batching(provider, url, file, settings=slow) as second:
        await until_async(lambda: len(server.requests("poll")) > polls, 20)
        async with batching(provider, url, file) as first:
            assert (first.batches.jobs, second.batches.jobs) == (1, 1)
            server.batch_outcome = "completed"
            await until_forgotten(first)
            assert first.batches.state == BatchState()
        await until_forgotten(second)
        assert len(await second.kept(texts)) == 6
        assert second.batches.state == BatchState()
        assert all(map(second.batches.takes, texts))
