from pathlib import Path

import pytest

from memd.chunk import markdown
from memd.config.settings import Chunking
from memd.domain_types import Document, Kind
from memd.search.query import parse
from memd.sources.notes import lines_of
from memd.text.tokens import fts_text
from tests.benchmarks import baseline, notes
from tests.benchmarks.figures import Figure, Samples, milliseconds, table
from tests.benchmarks.notes import QUESTIONS
from tests.benchmarks.stage import index
from tests.fakes import HashingProvider

CHUNKS = 50


@pytest.fixture(scope="module")
def workspace(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Some notes, which no test changes."""
    directory = tmp_path_factory.mktemp("notes")
    notes.generate(directory, chunks=CHUNKS)
    return directory


def written(directory: Path) -> dict[str, str]:
    return {str(file.relative_to(directory)): file.read_text("utf-8") for file in directory.rglob("*.md")}


def test_notes_are_as_many_as_asked_for(workspace: Path, tmp_path: Path) -> None:
    """The chunks are counted as memd cuts them; the last notes may bring some more."""
    corpus = notes.generate(tmp_path, chunks=CHUNKS)
    sizes = Chunking()
    made = [
        len(markdown.chunk(Document(path, Kind.NOTE, lines_of(text)), sizes.tokens, sizes.overlap))
        for path, text in written(tmp_path).items()
    ]
    assert (corpus.files, corpus.chunks) == (len(made), sum(made))
    assert CHUNKS <= corpus.chunks < CHUNKS + 2 * max(made)
    assert written(tmp_path) == written(workspace)


def test_another_seed_gives_other_notes(workspace: Path, tmp_path: Path) -> None:
    """Nothing is random but by the seed."""
    notes.generate(tmp_path, chunks=CHUNKS, seed=7)
    assert written(tmp_path) != written(workspace)


def test_natural_questions_share_words_with_many_notes(workspace: Path) -> None:
    """In both languages, and none is asked twice."""
    asked = notes.natural_questions(40)
    assert len(set(asked)) == 40
    assert asked[:10] == notes.natural_questions(10)
    assert sum(text.isascii() for text in asked) == 20
    texts = [" ".join(fts_text(text).split()) for text in written(workspace).values()]
    usual = [
        question
        for question in asked
        if any(
            sum(" ".join(fts_text(word).split()) in text for text in texts) >= len(texts) / 2
            for word in parse(question).words
        )
    ]
    assert len(usual) >= 30


def test_each_question_is_answered_once(workspace: Path) -> None:
    """The line that answers stands in one note, and the answer in that line."""
    texts = written(workspace).values()
    assert all(question.answer in question.line for question in QUESTIONS)
    assert [sum(text.count(question.line) for text in texts) for question in QUESTIONS] == [1] * len(
        QUESTIONS
    )


def test_the_baseline_finds_what_it_can(workspace: Path, tmp_path: Path) -> None:
    """It knows what changed, and finds words and what is like the question, in the newest text of a file."""
    connection = baseline.open_file(tmp_path / "baseline.sqlite")
    embedder = HashingProvider()
    files = sorted(workspace.rglob("*.md"))
    assert baseline.changed(connection, files) == files
    for file in files:
        index(connection, file, embedder)
        index(connection, file, embedder)
    assert baseline.changed(connection, files) == []
    (question,) = (one for one in QUESTIONS if one.text == "ERR_QUORUM_LOST")
    found = baseline.search(connection, question.text, embedder.embed([question.text])[0].tobytes())
    assert question.line in found[0].snippet
    near = baseline.search(connection, "。", embedder.embed([found[0].snippet])[0].tobytes())
    assert question.line in near[0].snippet
    connection.close()


def test_figures_are_compared() -> None:
    """Medians, the 95th percentile by nearest rank, and the ratio to the baseline."""
    figure = milliseconds("search", Samples([0.001, 0.002, 0.003, 0.1]), Samples([0.05]))
    assert (figure.memd, figure.p95, figure.baseline, figure.ratio) == (2.5, 100.0, 50.0, 0.05)
    lines = table([figure, Figure(name="resident", unit="MB", memd=123.4)]).split("\n")
    assert lines[1].split() == ["search", "2.5", "ms", "100", "ms", "50", "ms", "0.05"]
    assert lines[2].split() == ["resident", "123", "MB", "-", "-", "-"]
