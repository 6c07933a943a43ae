import numpy as np
from hypothesis import given
from hypothesis import strategies as st

from memd.providers import calibration
from memd.providers.centring import centred, line
from memd.providers.local import bundled_model
from memd.providers.provider import Vectors

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


def test_the_bundled_bias_is_that_of_the_bundled_model() -> None:
    """What is kept was made by this model: questions then lie nearest to their answers in the other language."""
    bias, model, half = bundled_model.bias(), bundled_model.load(), len(calibration.QUESTIONS) // 2
    some = [0, 1, 2, half, half + 1, half + 2]
    questions = np.stack([model.query(calibration.QUESTIONS[n]) for n in some])
    answers = np.stack([model.passage(calibration.ANSWERS[n]) for n in some])
    raw = questions @ answers.T
    cosines = (
        centred(questions, [calibration.QUESTIONS[n] for n in some], bias.questions)
        @ centred(answers, [calibration.ANSWERS[n] for n in some], bias.passages).T
    )
    others = ~np.isin(np.arange(36).reshape(6, 6) % 7, [0]) & ~np.roll(np.eye(6, dtype=bool), 3, axis=1)
    assert abs(float(np.median(cosines[others]))) < 0.12
    across = np.diagonal(np.roll(cosines, 3, axis=1))
    assert (across > np.quantile(cosines[others], 0.9)).all()
    assert not (np.diagonal(np.roll(raw, 3, axis=1)) > np.quantile(raw[others], 0.9)).all()
