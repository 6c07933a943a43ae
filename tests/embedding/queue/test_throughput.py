"""How fast vectors come."""

import pytest

from memd.embedding.queue.throughput import Throughput


def test_nothing_is_known_before_the_first_answer() -> None:
    """Not even while it is awaited."""
    rate = Throughput()
    rate.asked(0.0)
    assert rate.per_s is None


@pytest.mark.parametrize(("requests", "expected"), [(1, 10.0), (4, 40.0)])
def test_requests_count_together(requests: int, expected: float) -> None:
    """Each answers 20 texts after two seconds; four at once are four times as fast."""
    rate = Throughput()
    for second in range(0, 60, 2):
        for _ in range(requests):
            rate.asked(float(second))
        for _ in range(requests):
            rate.answered(20, second + 2.0)
    assert rate.per_s == pytest.approx(expected, rel=0.05)


def test_breaks_do_not_count() -> None:
    """An hour without work makes nothing slower."""
    rate = Throughput()
    for began in (0.0, 3600.0):
        rate.asked(began)
        rate.answered(20, began + 2.0)
    assert rate.per_s == pytest.approx(10.0, rel=0.01)


def test_failures_make_it_slower() -> None:
    """The time that they took is gone."""
    rate = Throughput()
    rate.asked(0.0)
    rate.answered(20, 2.0)
    rate.asked(2.0)
    rate.answered(0, 4.0)
    assert rate.per_s is not None
    assert rate.per_s < 6


def test_a_request_that_hung_is_soon_forgotten() -> None:
    """A minute after a break of ten, texts come as fast as they do."""
    rate = Throughput()
    now = 0.0
    for took_s in (*[1.0] * 60, 600.0, *[1.0] * 60):
        rate.asked(now)
        now += took_s
        rate.answered(16, now)
    assert rate.per_s == pytest.approx(16.0, rel=0.2)
