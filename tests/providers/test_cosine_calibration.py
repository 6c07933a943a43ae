"""The probe of a model, and vectors without their language."""

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.providers import cosine_calibration
from memd.providers.cosine_calibration import centred, line
from memd.providers.local import bundled_model
from memd.providers.provider import READABLE, Vectors
from memd.text.tokens import is_mostly_cjk
from tests.bounds import shipped

HALF = len(cosine_calibration.QUESTIONS) // 2


def made(*, language: float, meaning: float = 1.0) -> Vectors:
    """Vectors of the answers, or of the questions: an axis for each matter, and one for the language of a text."""
    rows = np.zeros((2 * HALF, HALF + 2), np.float32)
    for n in range(2 * HALF):
        rows[n, n % HALF] = meaning
        rows[n, HALF + n // HALF] = language
    lengths: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


def test_a_bias_of_languages_is_found_and_taken_out() -> None:
    """Where texts of one language lie close together, the answer in the other one is behind them; and not without it."""
    vectors = made(language=2.0)
    cosines = vectors @ vectors.T
    assert cosines[0, HALF] < cosines[0, 1]
    bias = cosine_calibration.bias(vectors, vectors)
    assert bias is not None
    questions = centred(vectors, cosine_calibration.QUESTIONS, bias.questions)
    answers = centred(vectors, cosine_calibration.ANSWERS, bias.passages)
    cosines = questions @ answers.T
    assert cosines[0, HALF] > cosines[0, 1] + 0.5
    assert np.allclose(np.linalg.norm(answers, axis=1), 1, atol=1e-6)


def test_where_no_language_is_nearer_nothing_is_taken_out() -> None:
    """A model that tells languages and matters apart as it should keeps its vectors."""
    assert cosine_calibration.bias(made(language=0.0), made(language=0.0)) is None


def test_the_range_begins_at_what_is_usual_between_strangers() -> None:
    """And reading is worth it above 97.5 % of these."""
    answers = np.eye(2 * HALF, dtype=np.float32)
    random = np.random.default_rng(1)
    questions = random.normal(0.2, 0.05, answers.shape).astype(np.float32)
    found = cosine_calibration.calibration(questions, answers)
    assert found.low == pytest.approx(0.2, abs=0.01)
    assert found(0.2 + 1.96 * 0.05) == pytest.approx(READABLE, abs=0.02)


def test_a_model_that_tells_nothing_apart_makes_nothing_look_close() -> None:
    """Where own and other answers are equally near, the range is narrow but not empty, and nothing is worth reading."""
    same = np.full((2 * HALF, 2 * HALF), 0.5, np.float32)
    found = cosine_calibration.calibration(same, np.eye(2 * HALF, dtype=np.float32))
    least = shipped("memd.providers.cosine_calibration._LEAST_RANGE")
    assert found(found.low + least) == pytest.approx(READABLE)
    assert found(0.5) == 0.0


def test_questions_and_answers_come_in_pairs() -> None:
    """As many of one as of the other, all different, the second half Chinese."""
    assert len(cosine_calibration.QUESTIONS) == len(cosine_calibration.ANSWERS) == 2 * HALF
    assert len({*cosine_calibration.QUESTIONS, *cosine_calibration.ANSWERS}) == 4 * HALF
    for texts in (cosine_calibration.QUESTIONS, cosine_calibration.ANSWERS):
        assert [is_mostly_cjk(text) for text in texts] == [False] * HALF + [True] * HALF


@pytest.mark.parametrize(
    ("now", "same"), [([1, 0, 0], True), ([0.999, 0.04, 0], True), ([0.9, 0.43, 0], False), ([1, 0], False)]
)
def test_another_model_is_noticed(now: list[float], same: bool) -> None:
    """By the direction of one vector, or its length; rounding is none."""
    before = np.array([1, 0, 0], np.float32)
    assert cosine_calibration.same_model(before, np.array(now, np.float32)) is same


TEXTS = ("a line of words", "一行中文", "half 中文 of it", "", "12345")


def unit_rows(seed: int, n: int = len(TEXTS)) -> Vectors:
    rows = np.random.default_rng(seed).normal(size=(n, 8)).astype(np.float32)
    lengths: Vectors = rows / np.linalg.norm(rows, axis=1, keepdims=True)
    return lengths


@given(st.integers(0, 1000), st.permutations(range(len(TEXTS))))
def test_a_vector_depends_on_its_own_text_alone(seed: int, order: list[int]) -> None:
    """In whatever company it comes, to the last bit, and at length 1."""
    rows, of = unit_rows(seed), line(unit_rows(seed + 1), TEXTS)
    together = centred(rows, TEXTS, of)
    assert together.dtype == np.float32
    assert np.allclose(np.linalg.norm(together, axis=1), 1, atol=1e-6)
    shuffled = centred(rows[order], [TEXTS[n] for n in order], of)
    assert shuffled.tobytes() == together[order].tobytes()
    for n, text in enumerate(TEXTS):
        assert centred(rows[n : n + 1], [text], of).tobytes() == together[n].tobytes()


def test_a_vector_that_is_all_language_stays_as_it_is() -> None:
    """It is no reason to divide by nothing."""
    rows = np.full((2, 4), 0.5, np.float32)
    of = line(rows, ["a", "b"])
    assert np.array_equal(centred(rows, ["a", "b"], of), rows)


def test_the_bundled_model_finds_answers_in_the_other_language() -> None:
    """Nothing is subtracted from its vectors: it was trained not to put texts of one language close together."""
    model, half = bundled_model.load(), len(cosine_calibration.QUESTIONS) // 2
    some = [0, 1, 2, half, half + 1, half + 2]
    questions = np.stack([model.query(cosine_calibration.QUESTIONS[n]) for n in some])
    answers = np.stack([model.passage(cosine_calibration.ANSWERS[n]) for n in some])
    cosines = questions @ answers.T
    others = ~np.isin(np.arange(36).reshape(6, 6) % 7, [0]) & ~np.roll(np.eye(6, dtype=bool), 3, axis=1)
    assert abs(float(np.median(cosines[others]))) < 0.12
    assert (np.diagonal(np.roll(cosines, 3, axis=1)) > np.quantile(cosines[others], 0.9)).all()
