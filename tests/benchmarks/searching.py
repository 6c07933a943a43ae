"""How long a warm daemon takes to answer, over its socket."""

import threading
from collections.abc import Callable, Iterator
from itertools import islice

from tests.benchmarks import baseline
from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.notes import QUESTIONS, Question
from tests.benchmarks.stage import Stage

ROUNDS = 10
BASELINE_ROUNDS = 2
CLIENTS = 8


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
