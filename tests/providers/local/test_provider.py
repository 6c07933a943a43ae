import asyncio
import contextlib
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Coroutine, Sequence
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest
import structlog
import uvloop

from memd.providers.local import bundled_model
from memd.providers.local import provider as local
from memd.providers.local.process import WorkerProcess
from memd.providers.local.provider import LocalProvider
from memd.providers.local.query_thread import QueryThread
from memd.providers.provider import EmbedRejected, EmbedUnavailable, Vector, Vectors
from tests.bounds import shipped
from tests.providers import standin
from tests.providers.conftest import Make
from tests.providers.processes import children, has_ended, is_alive
from tests.wait import until, until_async

Run = Callable[[Coroutine[Any, Any, None]], None]

NOTES = ("We picked PostgreSQL for the project.", "我们选择了数据库。", "Lunch is at noon. 🍜", "")
LOOPS = pytest.mark.parametrize("run", [asyncio.run, uvloop.run], ids=["asyncio", "uvloop"])


def expected_passages(texts: Sequence[str]) -> Vectors:
    """The model's vectors."""
    model = bundled_model.load()
    return np.stack([model.passage(text) for text in texts])


def expected_question(text: str) -> Vector:
    """The model's vector."""
    return bundled_model.load().query(text)


async def embedded(provider: LocalProvider, texts: Sequence[str]) -> Vectors:
    """The vectors, asked for again as long as the provider cannot give them."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(EmbedUnavailable):
                return await provider.embed_passages(texts)
            await asyncio.sleep(0.01)


async def asked(provider: LocalProvider, question: str) -> Vector:
    """The vector of a question, asked for again while the model is being loaded."""
    async with asyncio.timeout(60):
        while True:
            with contextlib.suppress(EmbedUnavailable):
                return await provider.embed_query(question)
            await asyncio.sleep(0.01)


async def fate(provider: LocalProvider, texts: Sequence[str]) -> EmbedRejected:
    """The rejection that a request ends in, after however many failures."""
    with pytest.raises(EmbedRejected) as rejected:
        await embedded(provider, texts)
    return rejected.value


async def worker_of(provider: LocalProvider) -> int:
    """The pid of the worker, once there is one."""
    return await until_async(lambda: provider.worker_pid or 0)


async def test_passages_are_those_of_the_model(provider: LocalProvider) -> None:
    """The worker's vectors are what the model gives in one process, of length 1, in the order of the texts."""
    vectors = await provider.embed_passages(NOTES)
    assert vectors.dtype == np.float32
    assert vectors.shape == (len(NOTES), provider.identity.dimensions)
    np.testing.assert_allclose(vectors, expected_passages(NOTES), atol=1e-5)
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)


async def test_a_question_is_embedded_as_a_question(provider: LocalProvider) -> None:
    """A question has the model's vector for questions, and is nearest to the note that answers it."""
    question = "which database did we pick for the project?"
    vector = await asked(provider, question)
    np.testing.assert_allclose(vector, expected_question(question), atol=1e-5)
    notes = await provider.embed_passages([question, *NOTES])
    assert notes[0] @ vector < 0.999
    assert np.argmax(notes[1:] @ vector) == 0


@pytest.mark.long
async def test_awkward_texts_pass_through_the_worker(provider: LocalProvider) -> None:
    """NUL, nothing, blanks, half a surrogate pair, a megabyte: each has a vector, and the worker survives."""
    texts = [
        "",
        " \n\t ",
        "nul\0nul",
        "\ud83d",
        "\udcff\ud800",
        "👩🏽‍🚀",
        "\ufdfa" * 40,
        ("notes" + " " * 700) * 1500,
    ]
    vectors = await provider.embed_passages(texts)
    pid = provider.worker_pid
    np.testing.assert_allclose(np.linalg.norm(vectors, axis=1), 1.0, atol=1e-6)
    for text in texts:
        assert np.linalg.norm(await asked(provider, text)) == pytest.approx(1.0, abs=1e-6)
    assert provider.worker_pid == pid


async def test_nothing_is_started_for_nothing(make: Make) -> None:
    """No text needs no worker."""
    provider = make()
    assert (await provider.embed_passages([])).shape == (0, bundled_model.DIMENSIONS)
    assert provider.worker_pid is None


async def test_a_question_does_not_wait_behind_passages(provider: LocalProvider) -> None:
    """While seconds of passages are embedded, a question is answered."""
    await asked(provider, "warm")
    passages = asyncio.create_task(provider.embed_passages(["word " * 1600] * 4))
    await worker_of(provider)
    await provider.embed_query("which database did we pick?")
    assert not passages.done()
    passages.cancel()
    await asyncio.wait([passages])


async def test_a_question_without_direction_has_no_vector(
    provider: LocalProvider, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Keywords answer it."""

    async def ask(*_: object) -> Vector:
        return np.zeros(bundled_model.DIMENSIONS, np.float32)

    monkeypatch.setattr(QueryThread, "ask", ask)
    with pytest.raises(EmbedUnavailable, match="no usable vector for this question"):
        await provider.embed_query("which database?")


async def test_a_killed_worker_is_replaced(provider: LocalProvider) -> None:
    """A worker killed in the middle of a request costs that request, and no text."""
    texts = [f"note number {i} about the release " * 4 for i in range(8)]
    await provider.embed_passages(["warm"])
    pid = await worker_of(provider)
    request = asyncio.create_task(provider.embed_passages(texts))
    await asyncio.sleep(0)  # the first text is on its way
    os.kill(pid, signal.SIGKILL)
    with pytest.raises(EmbedUnavailable, match="SIGKILL"):
        await request
    with pytest.raises(EmbedUnavailable, match="started again in"):
        await provider.embed_passages(texts)
    vectors = await embedded(provider, texts)
    np.testing.assert_allclose(vectors, expected_passages(texts), atol=1e-5)
    assert provider.worker_pid != pid


async def test_a_text_that_kills_twice_is_rejected(make: Make) -> None:
    """The text is named by its place, the others come through, and it is never tried again."""
    provider = make()
    texts = ["one", "exit", "three"]
    rejected = await fate(provider, texts)
    assert rejected.index == 1
    assert str(rejected).startswith(f"{local.DEATHS} embedding workers died on this text")
    assert "exit status 3" in str(rejected)
    assert "exit " not in str(rejected).replace("exit status", "")
    others = ["one", "three"]
    np.testing.assert_allclose(await embedded(provider, others), standin.rows_of(others), atol=1e-6)
    pid = provider.worker_pid
    with pytest.raises(EmbedRejected) as again:
        await provider.embed_passages(["three", "four", "exit"])
    assert again.value.index == 2
    assert provider.worker_pid == pid


async def test_texts_are_embedded_side_by_side(make: Make, tmp_path: Path) -> None:
    """Each of the two waits until the other one is being embedded."""
    one, other = tmp_path / "one", tmp_path / "other"
    texts = [f"meet {one} {other}", f"meet {other} {one}"]
    np.testing.assert_allclose(await make().embed_passages(texts), standin.rows_of(texts), atol=1e-6)


async def test_a_text_that_kills_costs_three_workers(make: Make) -> None:
    """One dies at it and at its neighbours, which tells nothing; then each is embedded alone, and two die at it."""
    provider = make()
    with structlog.testing.capture_logs() as logs:
        assert (await fate(provider, ["one", "crash", "three", "four"])).index == 1
    assert [line["event"] for line in logs].count("embed.worker_started") == 1 + local.DEATHS


async def test_the_worker_is_given_a_few_texts_at_once(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """At most so many, and of long ones fewer."""
    given = []
    embed = WorkerProcess.embed

    async def noted(worker: WorkerProcess, texts: Sequence[str], timeout_s: float) -> Vectors:
        given.append(len(texts))
        return await embed(worker, texts, timeout_s)

    monkeypatch.setattr(WorkerProcess, "embed", noted)
    most = shipped("memd.providers.local.provider.TOGETHER")
    half = shipped("memd.providers.local.provider.BYTES_TOGETHER") // 2
    for texts, expected in (
        ([f"{n}" for n in range(most + 1)], [most, 1]),
        (["a" * half, "b" * half, "c"], [2, 1]),
        (["a" * half, "b" * (half + 1), "c"], [1, 2]),
        (["a" * 3 * half, "b"], [1, 1]),
    ):
        given.clear()
        await make().embed_passages(texts)
        assert given == expected


@pytest.mark.long
async def test_a_text_that_kills_once_is_embedded(make: Make, tmp_path: Path) -> None:
    """One death is forgiven, and forgotten once the text has its vector."""
    provider = make()
    text = f"exit-once {tmp_path / 'died'}"
    for _ in range(2):
        (tmp_path / "died").unlink(missing_ok=True)
        np.testing.assert_allclose(await embedded(provider, [text]), standin.rows_of([text]), atol=1e-6)


@pytest.mark.long
async def test_a_kill_from_outside_is_not_the_texts_fault(make: Make) -> None:
    """However often the system kills the worker at a text, the text is not set aside."""
    provider = make()
    deaths = 0
    async with asyncio.timeout(60):
        while deaths < local.DEATHS + 1:
            with pytest.raises(EmbedUnavailable) as failure:
                await provider.embed_passages(["killed"])
            deaths += "SIGKILL" in str(failure.value)
            await asyncio.sleep(0.01)
    np.testing.assert_allclose(await embedded(provider, ["fine"]), standin.rows_of(["fine"]), atol=1e-6)


async def test_a_wedged_worker_is_killed(make: Make) -> None:
    """No answer in time counts as a death: the worker goes, and the second time the text too."""
    provider = make(timeout_s=0.3)
    request = asyncio.create_task(provider.embed_passages(["hang"]))
    pid = await worker_of(provider)
    with pytest.raises(EmbedUnavailable, match="did not answer"):
        await request
    assert not is_alive(pid)
    assert (await fate(provider, ["fine", "hang"])).index == 1


@pytest.mark.long
async def test_a_worker_that_somebody_has_stopped_blames_no_text(make: Make) -> None:
    """It is replaced like one that is wedged, however often, and the text has its vector in the end."""
    provider = make(timeout_s=0.2)
    for _ in range(local.DEATHS + 1):
        await embedded(provider, ["warm"])
        pid = await worker_of(provider)
        os.kill(pid, signal.SIGSTOP)
        with pytest.raises(EmbedUnavailable, match="was stopped by a signal"):
            await provider.embed_passages(["fine"])
        assert not is_alive(pid)
    np.testing.assert_allclose(await embedded(provider, ["fine"]), standin.rows_of(["fine"]), atol=1e-6)


async def test_a_vector_without_direction_is_the_texts_fault(make: Make) -> None:
    """A text whose vector is not finite is rejected, and the worker goes on."""
    provider = make()
    assert (await fate(provider, ["fine", "nan"])).index == 1
    assert provider.worker_pid is not None


@pytest.mark.rows(1)
@pytest.mark.parametrize(
    ("command", "reason"),
    [
        (("/nonexistent/python",), "No such file"),
        ((sys.executable, "-c", "raise SystemExit(4)"), "exit status 4"),
        ((*standin.COMMAND, "9.9.9"), "restart memd"),
    ],
)
async def test_a_worker_that_does_not_start_blames_no_text(
    make: Make, command: tuple[str, ...], reason: str
) -> None:
    """Trouble before the first text is the provider's, however often it comes."""
    provider = make(command=command)
    seen = 0
    async with asyncio.timeout(60):
        while seen < local.DEATHS + 1:
            with pytest.raises(EmbedUnavailable) as failure:
                await provider.embed_passages(["innocent"])
            seen += reason in str(failure.value)
            await asyncio.sleep(0.01)
    assert provider.worker_pid is None


async def test_an_idle_worker_goes_and_comes_back(make: Make) -> None:
    """Without work the process ends; the next text starts another."""
    provider = make(idle_s=0.05)
    await provider.embed_passages(["one"])
    first = provider.worker_pid
    assert first is not None
    await until_async(partial(has_ended, first))
    await provider.embed_passages(["two"])
    assert provider.worker_pid not in {None, first}


@pytest.mark.long
async def test_a_worker_that_died_idle_is_replaced_at_once(make: Make) -> None:
    """Nobody waited for it, so nobody has to be told."""
    provider = make()
    await provider.embed_passages(["one"])
    first = await worker_of(provider)
    os.kill(first, signal.SIGKILL)
    await until_async(lambda: provider.worker_pid is None)
    np.testing.assert_allclose(await provider.embed_passages(["two"]), standin.rows_of(["two"]), atol=1e-6)


async def test_a_cancelled_request_leaves_no_answer_behind(make: Make) -> None:
    """The next request gets its own vectors, from the same worker."""
    provider = make()
    await provider.embed_passages(["warm"])
    pid = provider.worker_pid
    request = asyncio.create_task(provider.embed_passages(["pause", "never sent"]))
    with pytest.raises(TimeoutError):
        async with asyncio.timeout(0.05):
            await request
    np.testing.assert_allclose(await provider.embed_passages(["mine"]), standin.rows_of(["mine"]), atol=1e-6)
    assert provider.worker_pid == pid


async def test_cancelled_while_the_worker_starts(make: Make) -> None:
    """A request that is given up before the worker has greeted does not spoil the worker."""
    provider = make()
    request = asyncio.create_task(provider.embed_passages(["early"]))
    pid = await worker_of(provider)
    request.cancel()
    await asyncio.wait([request])
    np.testing.assert_allclose(await provider.embed_passages(["late"]), standin.rows_of(["late"]), atol=1e-6)
    assert provider.worker_pid == pid


async def test_a_short_request_is_let_in_between(make: Make) -> None:
    """Two requests take turns text by text, and each gets its own rows."""
    provider = make()
    long = [f"pause {i}" for i in range(20)]
    slow = asyncio.create_task(provider.embed_passages(long))
    await worker_of(provider)
    np.testing.assert_allclose(
        await provider.embed_passages(["quick"]), standin.rows_of(["quick"]), atol=1e-6
    )
    assert not slow.done()
    slow.cancel()
    await asyncio.wait([slow])


@pytest.mark.rows(1)
@LOOPS
def test_cancelled_at_any_moment_of_the_start(run: Run) -> None:
    """Wherever a request is given up while a worker starts, the next one finds a working provider."""
    before = children()  # what daemons are forked off, where tests of them have run in this process

    async def scenario() -> None:
        for steps in range(6):
            provider = standin.provider()
            request = asyncio.create_task(provider.embed_passages(["early"]))
            for _ in range(steps):
                await asyncio.sleep(0)
            request.cancel()
            await asyncio.wait([request])
            np.testing.assert_allclose(
                await provider.embed_passages(["late"]), standin.rows_of(["late"]), atol=1e-6
            )
            await provider.close()
        assert children() == before

    run(scenario())


@pytest.mark.rows(1)
@LOOPS
def test_close_ends_a_busy_worker(run: Run) -> None:
    """Closing does not wait for a text that is being embedded; the request fails, and no process is left."""

    async def scenario() -> None:
        provider = LocalProvider(bundled_model.find(), Random(7))
        await provider.embed_passages(["warm"])
        pid = await worker_of(provider)
        request = asyncio.create_task(provider.embed_passages(["word " * 1600] * 8))
        waiting = asyncio.create_task(provider.embed_passages(["another"]))
        await asyncio.sleep(0)
        await provider.close()
        assert not is_alive(pid)
        for task in (request, waiting):
            with pytest.raises(EmbedUnavailable, match="closed"):
                await task

    run(scenario())


def test_close_kills_a_worker_that_does_not_listen(tmp_path: Path) -> None:
    """A worker deaf to the polite signal is killed after a second."""

    async def scenario() -> None:
        provider = standin.provider()
        request = asyncio.create_task(provider.embed_passages([f"deaf {tmp_path / 'deaf'}"]))
        await until_async((tmp_path / "deaf").exists)
        pid = await worker_of(provider)
        began = time.monotonic()
        await provider.close()
        assert time.monotonic() - began > 0.9
        assert not is_alive(pid)
        with pytest.raises(EmbedUnavailable):
            await request

    uvloop.run(scenario())


@LOOPS
def test_close_while_the_worker_starts(run: Run) -> None:
    """A worker that has not greeted yet is ended too."""

    async def scenario() -> None:
        provider = standin.provider()
        request = asyncio.create_task(provider.embed_passages(["early"]))
        pid = await worker_of(provider)
        await provider.close()
        assert not is_alive(pid)
        with pytest.raises(EmbedUnavailable):
            await request

    run(scenario())


@pytest.mark.rows(1)
@LOOPS
def test_a_worker_is_replaced_on_either_loop(run: Run) -> None:
    """Deaths, rejections and retirements leave nothing behind on the loop that the daemon uses."""

    async def scenario() -> None:
        provider = standin.provider(idle_s=0.05)
        assert (await fate(provider, ["fine", "crash"])).index == 1
        np.testing.assert_allclose(await embedded(provider, ["fine"]), standin.rows_of(["fine"]), atol=1e-6)
        await until_async(lambda: provider.worker_pid is None)
        await provider.close()

    run(scenario())


class Stuck:
    """A model that comes to no end with any question until it is let go."""

    def __init__(self) -> None:
        self.end = threading.Event()

    def query(self, text: str) -> Vectors:
        self.end.wait(60)
        return standin.vector_of(text)


async def test_close_does_not_wait_for_a_question_that_is_stuck(make: Make) -> None:
    """A reload that takes another provider goes on, whatever the model's engine is at."""
    model = Stuck()
    provider = make(questions=QueryThread(lambda: model))
    question = asyncio.create_task(provider.embed_query("which database?"))
    await asyncio.sleep(0)
    async with asyncio.timeout(60):
        await provider.close()
    assert not question.done()
    model.end.set()
    np.testing.assert_allclose(await question, standin.vector_of("which database?"), atol=1e-6)


async def test_a_closed_provider_says_so(make: Make) -> None:
    """After close, and after closing again, nothing is started any more."""
    provider = make()
    await provider.close()
    await provider.close()
    with pytest.raises(EmbedUnavailable, match="closed"):
        await provider.embed_passages(["a"])
    with pytest.raises(EmbedUnavailable, match="closed"):
        await provider.embed_query("a")
    assert provider.worker_pid is None


DAEMON = """
import asyncio
from random import Random
from memd.providers.local import bundled_model as bundled
from memd.providers.local.query_thread import QueryThread
from memd.providers.local.provider import LocalProvider

async def main():
    provider = LocalProvider(bundled.find(), Random(1))
    await provider.embed_passages(["warm"])
    print(provider.worker_pid, flush=True)
    await provider.embed_passages(["word " * 1600] * 8)

asyncio.run(main())
"""


def test_a_killed_daemon_leaves_no_worker() -> None:
    """Its worker ends with it, in the middle of a text."""
    with subprocess.Popen(
        [sys.executable, "-c", DAEMON], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
    ) as daemon:
        assert daemon.stdout is not None
        line = daemon.stdout.readline()
        while not line.strip().isdigit():  # log lines come on stdout where logging is not set up
            line = daemon.stdout.readline()
        worker = int(line)
        assert is_alive(worker)
        daemon.kill()
    until(partial(has_ended, worker))


def test_the_identity_names_what_shapes_a_vector() -> None:
    """Another version of the package is another space of vectors."""
    one, other = (
        LocalProvider(bundled_model.InstalledModel(version), Random(1)).identity
        for version in ("0.3.0", "0.4.0")
    )
    assert (one.provider, one.model, one.dimensions) == ("local", "multilingual-e5-small-q4+use-3", 384)
    assert one.key != other.key
    assert one.key == LocalProvider(bundled_model.InstalledModel("0.3.0"), Random(2)).identity.key


@pytest.mark.parametrize("name", ["TUNING_FILE", "JOINING_FILE"])
def test_another_training_is_another_space_of_vectors(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path, name: str
) -> None:
    """It is made by hand, and nothing else says that it is another one."""
    one, other = (LocalProvider(bundled_model.InstalledModel("0.3.0"), Random(1)) for _ in range(2))
    assert one.identity == other.identity
    file = tmp_path / "trained.npy"
    file.write_bytes(bundled_model.beside(getattr(bundled_model, name)).read_bytes() + b"\0")
    monkeypatch.setattr(bundled_model, name, str(file))
    assert LocalProvider(bundled_model.InstalledModel("0.3.0"), Random(1)).identity != one.identity


def test_an_unknown_model_is_refused() -> None:
    """Only the bundled model can be built."""
    with pytest.raises(bundled_model.ModelMissing, match="bge-m3"):
        local.build("bge-m3", Random(1))
