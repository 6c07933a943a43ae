"""Cross-encoders of a few words, built here: onnxruntime and tokenizers read their files as they read a real one's."""

import asyncio
import sys
import threading
from collections.abc import Callable, Sequence
from pathlib import Path

import pytest

from memd.config.settings import Rerank
from memd.domain_types import DegradedPart
from memd.providers.local.cross_encoder import (
    MOST_PIECES,
    MOST_WAITING,
    TOGETHER,
    CrossEncoder,
    LocalReranker,
    UnusableCrossEncoder,
    model_file,
    reranker,
)
from memd.providers.reranker import MOST_FAILURES, PAUSE_S, NoReranker, RerankFailed
from tests.bounds import shipped
from tests.clock import Clock
from tests.fakes.cross_encoder import INT32, INT64, write

TEXTS = ["the dog", "a cat sits on the roof", "the cat"]
IN_ORDER = [1, 2, 0]


def settings(model: Path, timeout_ms: int = 10_000) -> Rerank:
    return Rerank(provider="onnx", model=str(model), timeout_ms=timeout_ms)


@pytest.mark.parametrize(
    ("labels", "kind"), [(1, INT64), (1, INT32), (2, INT64)], ids=["one", "int32", "two labels"]
)
def test_a_text_scores_by_question_and_text_together(tmp_path: Path, labels: int, kind: int) -> None:
    """Of two labels the second is that it answers."""
    model = CrossEncoder(write(tmp_path, labels=labels, kind=kind))
    assert model.scores("which cat sits", TEXTS) == [0.0, 2.0, 1.0]
    assert model.scores("dog", TEXTS) == [1.0, 0.0, 0.0]


def test_texts_of_any_number_and_length_keep_their_places(tmp_path: Path) -> None:
    """They are computed a few at a time, those of about the same length together."""
    texts = ["dog " * (n % 5) + "cat " * n for n in range(2 * TOGETHER + 3)]
    assert CrossEncoder(write(tmp_path)).scores("cat", texts) == [float(n) for n in range(len(texts))]


def test_of_a_pair_that_is_too_long_the_longer_one_is_cut(tmp_path: Path) -> None:
    """Question and text share what the model reads with three marks, and fewer where its tokenizer says so."""
    long = "cat " * (2 * MOST_PIECES)
    assert CrossEncoder(write(tmp_path)).scores("cat", [long]) == [MOST_PIECES - 4]
    assert CrossEncoder(write(tmp_path, most=16)).scores("cat", [long]) == [12]


async def test_a_search_has_its_candidates_in_the_order_of_the_model(tmp_path: Path) -> None:
    """The path may be that of the file, or of the directory of the model."""
    file = write(tmp_path)
    for place in (file, tmp_path):
        made = reranker(settings(place), Clock())
        assert await made.order("which cat sits", TEXTS) == IN_ORDER
        await made.close()
    assert model_file(tmp_path) == file


@pytest.mark.parametrize("labels", [3])
def test_a_model_with_other_answers_orders_nothing(tmp_path: Path, labels: int) -> None:
    """A classifier of three labels says nothing of relevance."""
    with pytest.raises(RerankFailed, match="3 numbers"):
        CrossEncoder(write(tmp_path, labels=labels)).scores("cat", TEXTS)


def test_a_model_with_other_inputs_is_no_cross_encoder(tmp_path: Path) -> None:
    """It is named, not guessed at."""
    with pytest.raises(UnusableCrossEncoder, match="pixel_values"):
        CrossEncoder(write(tmp_path, further=["pixel_values"]))


@pytest.mark.parametrize("broken", ["onnx/model.onnx", "tokenizer.json"])
async def test_a_broken_file_is_named_and_no_search_fails(tmp_path: Path, broken: str) -> None:
    """It is loaded by the first question; after some failures nobody waits for a while, then a mended file serves."""
    clock = Clock()
    write(tmp_path)
    (tmp_path / broken).write_bytes(b"{}")
    made = reranker(settings(tmp_path), clock)
    for _ in range(MOST_FAILURES):
        part = await made.order("cat", TEXTS)
        assert isinstance(part, DegradedPart)
        assert (part.part, "cannot be loaded" in part.reason) == ("rerank", True)
    write(tmp_path)
    part = await made.order("cat", TEXTS)
    assert isinstance(part, DegradedPart)
    assert "asked again" in part.reason
    clock.now += PAUSE_S - 1
    assert isinstance(await made.order("cat", TEXTS), DegradedPart)
    clock.now += 1
    assert await made.order("which cat sits", TEXTS) == IN_ORDER
    await made.close()


@pytest.mark.parametrize("missing", ["onnx/model.onnx", "tokenizer.json"])
async def test_a_missing_file_is_named(tmp_path: Path, missing: str) -> None:
    """With each search, which goes on without."""
    write(tmp_path)
    (tmp_path / missing).unlink()
    made = reranker(settings(tmp_path), Clock())
    assert isinstance(made, NoReranker)
    part = await made.order("cat", TEXTS)
    assert isinstance(part, DegradedPart)
    assert "there is no" in part.reason


def test_without_tokenizers_it_is_said_what_to_install(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The package is an extra."""
    file = write(tmp_path)
    monkeypatch.setitem(sys.modules, "tokenizers", None)
    with pytest.raises(UnusableCrossEncoder, match=r"pip install 'memd-daemon\[rerank\]'"):
        CrossEncoder(file)


class Held:
    """A model, or the loading of one, that takes as long as a test wants."""

    def __init__(self, file: Path) -> None:
        self.begun, self.go = threading.Event(), threading.Event()
        self.asked: list[str] = []
        self._file = file

    def load(self) -> CrossEncoder:
        self.begun.set()
        assert self.go.wait(30)
        return CrossEncoder(self._file)

    def computing(self) -> CrossEncoder:
        held, model = self, CrossEncoder(self._file)

        class Slow(CrossEncoder):
            def __init__(self) -> None:
                pass

            def scores(
                self, question: str, texts: Sequence[str], is_wanted: Callable[[], bool] = lambda: True
            ) -> list[float]:
                held.begun.set()
                assert held.go.wait(30)
                held.asked.append(question)
                return model.scores(question, texts, is_wanted)

        return Slow()


async def test_no_search_waits_while_the_model_is_loaded(tmp_path: Path) -> None:
    """The next ones find it loaded."""
    held = Held(write(tmp_path))
    made = LocalReranker(held.load, settings(tmp_path, timeout_ms=10), Clock())
    late = asyncio.create_task(made.order("cat", TEXTS))
    assert await asyncio.to_thread(held.begun.wait, 30)
    await late
    assert await made.order("cat", TEXTS) == DegradedPart("rerank", "onnx: the model is being loaded")
    held.go.set()
    patient = LocalReranker(held.load, settings(tmp_path), Clock())
    assert await patient.order("which cat sits", TEXTS) == IN_ORDER
    await made.close()
    await patient.close()


async def test_what_comes_too_late_is_named_and_given_up(tmp_path: Path) -> None:
    """Between two batches it is seen that nobody waits; and few questions gather behind one."""
    held, clock = Held(write(tmp_path)), Clock()
    made = LocalReranker(held.computing, settings(tmp_path, timeout_ms=10), clock)
    first = asyncio.create_task(made.order("cat 1", TEXTS))
    assert await asyncio.to_thread(held.begun.wait, 30)
    part = await first
    assert part in (
        DegradedPart("rerank", "onnx: no answer within 10 ms"),
        DegradedPart("rerank", "onnx: the model is being loaded"),
    )
    clock.now += 1
    others = await asyncio.gather(*(made.order(f"cat {n}", TEXTS) for n in range(2, MOST_WAITING + 3)))
    assert all(isinstance(one, DegradedPart) for one in others)
    # One of them is asked already.
    assert sum("earlier requests" in one.reason for one in others if isinstance(one, DegradedPart)) == 2
    held.go.set()
    await made.close()


def test_a_batch_that_nobody_wants_is_not_computed(tmp_path: Path) -> None:
    """A search that has gone on without an answer costs no more than the batch that was under way."""
    asked: list[bool] = []

    def is_wanted() -> bool:
        asked.append(len(asked) < 2)
        return asked[-1]

    with pytest.raises(RerankFailed, match="nobody waits"):
        CrossEncoder(write(tmp_path)).scores("cat", ["cat"] * (4 * TOGETHER), is_wanted)
    assert asked == [True, True, False]
    batches = 0

    def count_batch() -> bool:
        nonlocal batches
        batches += 1
        return True

    together = shipped("memd.providers.local.cross_encoder.TOGETHER")
    CrossEncoder(write(tmp_path)).scores("cat", ["cat"] * (4 * together), count_batch)
    assert batches == 4
