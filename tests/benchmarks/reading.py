"""How long it takes to read what a hit points to."""

from collections.abc import Iterator

from tests.benchmarks.figures import Figure, Samples, milliseconds
from tests.benchmarks.notes import QUESTIONS
from tests.benchmarks.stage import Stage


def measure(stage: Stage) -> Iterator[Figure]:
    """Twenty lines from each hit of the questions."""
    hits = [hit for question in QUESTIONS for hit in stage.client.search(question.text).results]
    samples = Samples()
    for hit in hits:
        with samples.timed():
            note = stage.client.get(hit.path, start_line=hit.start_line, lines=20)
        assert not note.missing, hit.path
    yield milliseconds("get, 20 lines", samples)
