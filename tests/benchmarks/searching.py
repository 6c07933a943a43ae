"""How long a warm daemon takes to answer, over its socket."""

import threading
import time
from collections.abc import Callable, Iterator
from itertools import islice

import numpy as np

from tests.benchmarks import baseline
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.idle import spent_by
from tests.benchmarks.notes import QUESTIONS, Question, natural_questions
from tests.benchmarks.stage import Stage
from tests.wait import until

ROUNDS = 10
BASELINE_ROUNDS = 2
CLIENTS = 8
WARMING, NATURAL = 20, 200  # natural questions that are asked before the others, and these
REST_S = 0.5


def measure(stage: Stage) -> Iterator[Figure]:
    """One client after the other's answer, then several at once."""
    for language in dict.fromkeys(question.language for question in QUESTIONS):
        asked = [question for question in QUESTIONS if question.language == language]
        memd, found = _timed(
            asked, ROUNDS, lambda text: [hit.snippet for hit in stage.client.search(text).results]
        )
        other, other_found = _timed(asked, BASELINE_ROUNDS, lambda text: _baseline(stage, text))
        note = f"found {found} of {len(asked)}; baseline {other_found}"
        yield milliseconds(f"search, {language}", memd, other, note)
    yield _natural(stage)
    yield _at_once(stage)


def _timed(asked: list[Question], rounds: int, search: Callable[[str], list[str]]) -> tuple[Samples, int]:
    """How long each search takes, and how many of the questions had their answer among the hits."""
    found = sum(any(question.answer in text for text in search(question.text)) for question in asked)
    samples = Samples()
    for _ in range(rounds):
        for question in asked:
            with samples.timed():
                search(question.text)
    return samples, found


def _baseline(stage: Stage, text: str) -> list[str]:
    vector = stage.embedder.embed([text])[0].tobytes()
    return [hit.snippet for hit in baseline.search(stage.connection, text, vector)]


def _natural(stage: Stage) -> Figure:
    """Questions of common words, none of which is asked twice, once what is made in the background is there.

    The baseline is what no exact search by meaning can do without: a product of as many vectors, in this process.
    """
    asked = natural_questions(WARMING + NATURAL)
    for text in asked[:WARMING]:
        stage.client.search(text)
    at_rest(stage.daemon.process.pid)
    vectors = np.random.default_rng(1).standard_normal((stage.corpus.chunks, baseline.DIMENSIONS), np.float32)
    memd, product = Samples(), Samples()
    before = spent_by(stage.daemon.process.pid).cpu_s
    for text in asked[WARMING:]:
        with memd.timed():
            stage.client.search(text)
        with product.timed():
            np.dot(vectors, vectors[0])
    cpu_ms = 1000 * (spent_by(stage.daemon.process.pid).cpu_s - before) / NATURAL
    note = f"{cpu_ms:.1f} ms of CPU; baseline: a float32 product of as many vectors"
    return milliseconds("search, natural questions", memd, product, note)


def at_rest(pid: int) -> None:
    """Wait until a process has done nothing for half a second."""
    before = -1.0

    def is_done() -> bool:
        nonlocal before
        time.sleep(REST_S)
        now, last = spent_by(pid).cpu_s, before
        before = now
        return now - last < REST_S / 10

    until(is_done, 300.0)


def _at_once(stage: Stage) -> Figure:
    """Several clients, each with its next question as soon as it has its answer: the time that one answer costs."""
    memd = Samples()

    def ask() -> None:
        with stage.daemon.client() as client:
            for question in QUESTIONS:
                client.search(question.text)

    with memd.timed():
        _together(ask)
    other, rounds = Samples(), 4

    def ask_baseline() -> None:
        connection = baseline.open_file(stage.database)
        for question in islice(QUESTIONS, 0, None, rounds):
            vector = stage.embedder.embed([question.text])[0].tobytes()
            baseline.search(connection, question.text, vector)
        connection.close()

    with other.timed():
        _together(ask_baseline)
    each, other_each = CLIENTS * len(QUESTIONS), CLIENTS * len(QUESTIONS[::rounds])
    return Figure(
        name=f"search, {CLIENTS} clients at once, an answer",
        unit="ms",
        memd=1000 * memd.median / each,
        baseline=1000 * other.median / other_each,
        note=f"{each / memd.median:.0f} answers/s",
    )


def _together(work: Callable[[], None]) -> None:
    threads = [threading.Thread(target=work) for _ in range(CLIENTS)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
