import pytest

from memd.providers.provider import READABLE, Calibration


@pytest.mark.parametrize(
    ("cosine", "expected"), [(-1.0, 0.0), (0.1, 0.0), (0.3, 0.5), (0.5, 1.0), (0.9, 2.0)]
)
def test_calibration_tells_what_a_cosine_means(cosine: float, expected: float) -> None:
    """Nothing at or below the low end; above it a straight line, which has no end."""
    assert Calibration(0.1, 0.5)(cosine) == pytest.approx(expected)


def test_a_calibration_is_told_by_where_reading_begins() -> None:
    """Its range follows."""
    found = Calibration.where(-0.02, 0.13)
    assert found(-0.02) == 0.0
    assert found(0.13) == pytest.approx(READABLE)
