import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.embed.provider import Calibration


@pytest.mark.parametrize(
    ("cosine", "expected"), [(-1.0, 0.0), (0.76, 0.0), (0.83, 0.5), (0.9, 1.0), (1.0, 1.0)]
)
def test_calibration_spreads_the_range_over_0_to_1(cosine: float, expected: float) -> None:
    """Below the range is 0, above it is 1, between them it is a straight line."""
    assert Calibration(0.76, 0.90)(cosine) == pytest.approx(expected)


LANGUAGES = Calibration(0.70, 0.90, cjk=(0.75, 1.0), across=(0.65, 0.85))


@pytest.mark.parametrize(
    ("question_cjk", "text_cjk", "expected"),
    [
        (0.0, 0.0, 0.5),
        (1.0, 1.0, 0.2),
        (1.0, 0.0, 0.75),
        (0.0, 1.0, 0.75),
        (1.0, 0.5, 0.2),  # half of it is in the language of the question
        (0.0, 0.5, 0.5),
        (0.5, 1.0, 0.2),
        (0.0, 0.75, 0.625),  # between two languages, between their ranges
        (0.25, 0.0, 0.625),
    ],
)
def test_a_level_cosine_does_not_tell_which_languages_met(
    question_cjk: float, text_cjk: float, expected: float
) -> None:
    """The same cosine counts for less between two CJK texts, and for more between a CJK text and another."""
    assert LANGUAGES(LANGUAGES.level(0.80, question_cjk, text_cjk)) == pytest.approx(expected)


@pytest.mark.parametrize("cosine", [-0.3, 0.0, 0.81234567890123])
def test_a_model_without_further_ranges_keeps_its_cosines(cosine: float) -> None:
    """Where no language is nearer than another, a cosine stays exactly as it is."""
    assert Calibration(0.1, 0.9).level(cosine, 1.0, 0.5) == cosine


@given(st.floats(-1, 1), st.floats(-1, 1), st.floats(0, 1), st.floats(0, 1))
def test_level_cosines_keep_their_order(
    one: float, other: float, question_cjk: float, text_cjk: float
) -> None:
    """Of two texts alike in language the nearer one stays the nearer."""
    low, high = sorted((one, other))
    assert LANGUAGES.level(low, question_cjk, text_cjk) <= LANGUAGES.level(high, question_cjk, text_cjk)
