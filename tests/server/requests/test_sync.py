"""How long those wait who have files indexed."""

import asyncio

import pytest

from memd.server.requests.sync import RequestDeadline
from tests.clock import hastily, now_s


async def _after(seconds: float, result: int | Exception) -> int:
    await asyncio.sleep(seconds)
    if isinstance(result, Exception):
        raise result
    return result


@pytest.mark.parametrize(
    ("timeout_ms", "expected"), [(1500, [[1, 2], None]), (900, [None, None]), (None, [[1, 2], [3]])]
)
def test_a_caller_waits_so_long_in_all(timeout_ms: int | None, expected: list[list[int] | None]) -> None:
    """Over several waits; what is left after the first is what the second has."""

    async def waits() -> tuple[list[list[int] | None], float]:
        deadline = RequestDeadline(timeout_ms)
        found = [await deadline.gather(_after(1, 1), _after(0.5, 2)), await deadline.gather(_after(1, 3))]
        return found, now_s()

    found, ended_s = hastily(waits())
    assert found == expected
    assert ended_s == pytest.approx(2.0 if timeout_ms is None else timeout_ms / 1000, abs=0.1)


def test_a_failure_is_raised_once_all_have_ended() -> None:
    """Nobody is left waiting for what another failed at."""

    async def fails() -> float:
        with pytest.raises(ValueError, match="first"):
            await RequestDeadline(5000).gather(
                _after(1, ValueError("first")), _after(2, ValueError("second"))
            )
        return now_s()

    assert hastily(fails()) == pytest.approx(2.0, abs=0.1)
