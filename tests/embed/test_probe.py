import numpy as np
import pytest

from memd.embed import bundled, probe
from memd.embed.local import CALIBRATION
from memd.embed.provider import Vectors


def rows(cosines: list[list[float]]) -> Vectors:
    """Answers at the axes, and questions with these cosines to them."""
    return np.array(cosines, np.float32)


def test_the_bundled_model_is_measured_as_it_was_by_hand() -> None:
    """Sixteen sentences give the ranges that long measurements gave, within .03."""
    model = bundled.load()
    questions = np.stack([model.query(text) for text in probe.QUESTIONS])
    answers = np.stack([model.passage(text) for text in probe.ANSWERS])
    found = probe.calibration(questions, answers)
    for one, other in (
        ((found.low, found.high), (CALIBRATION.low, CALIBRATION.high)),
        (found.cjk, CALIBRATION.cjk),
        (found.across, CALIBRATION.across),
    ):
        assert one is not None
        assert other is not None
        assert one == pytest.approx(other, abs=0.03)


def test_a_model_that_tells_nothing_apart_makes_nothing_look_close() -> None:
    """Where own and other answers are equally near, the range is narrow but not empty, and related text is not at its top."""
    same = rows([[0.5] * 16 for _ in range(16)])
    found = probe.calibration(same, np.eye(16, dtype=np.float32))
    assert found.high > found.low
    assert found(0.5) == 0.0


def test_questions_and_answers_come_in_pairs() -> None:
    """As many of one as of the other, all different, half of them Chinese."""
    assert len(probe.QUESTIONS) == len(probe.ANSWERS) == 16
    assert len({*probe.QUESTIONS, *probe.ANSWERS}) == 32
    assert sum(text.isascii() for text in probe.QUESTIONS) == 8


@pytest.mark.parametrize(
    ("now", "same"), [([1, 0, 0], True), ([0.999, 0.04, 0], True), ([0.9, 0.43, 0], False), ([1, 0], False)]
)
def test_another_model_is_noticed(now: list[float], same: bool) -> None:
    """By the direction of one vector, or its length; rounding is none."""
    before = np.array([1, 0, 0], np.float32)
    assert probe.same_model(before, np.array(now, np.float32)) is same
