import pytest

from memd.embed.provider import Calibration


@pytest.mark.parametrize(
    ("cosine", "expected"), [(-1.0, 0.0), (0.76, 0.0), (0.83, 0.5), (0.9, 1.0), (1.0, 1.0)]
)
def test_calibration_spreads_the_range_over_0_to_1(cosine: float, expected: float) -> None:
    """Below the range is 0, above it is 1, between them it is a straight line."""
    assert Calibration(0.76, 0.90)(cosine) == pytest.approx(expected)


@pytest.mark.parametrize(
    ("question_is_cjk", "text_is_cjk", "expected"),
    [(False, False, 0.5), (True, True, 0.25), (True, False, 0.75), (False, True, 0.75)],
)
def test_calibration_knows_which_languages_met(
    question_is_cjk: bool, text_is_cjk: bool, expected: float
) -> None:
    """The same cosine counts for less between two CJK texts, and for more between a CJK text and another."""
    calibration = Calibration(0.70, 0.90, cjk=(0.75, 0.95), across=(0.65, 0.85))
    value = calibration(0.80, question_is_cjk=question_is_cjk, text_is_cjk=text_is_cjk)
    assert value == pytest.approx(expected)
