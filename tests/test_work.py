import pytest

from tests.work import calls, peak_bytes


@pytest.mark.parametrize("count", [1, 10, 1000])
def test_calls_are_counted(count: int) -> None:
    """Each call of a function counts, whatever it is written in."""
    one, other = (
        calls(lambda: [abs(n) for n in range(count)]),
        calls(lambda: [abs(n) for n in range(2 * count)]),
    )
    assert other - one == count


def test_memory_is_that_of_the_worst_moment() -> None:
    """What is given back meanwhile counts, and what was there before does not."""
    before = bytes(5_000_000)

    def twice() -> None:
        for _ in range(2):
            bytes(1_000_000)

    assert 1_000_000 <= peak_bytes(twice) < 1_100_000
    assert len(before) == 5_000_000
