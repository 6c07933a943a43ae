import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd.config.settings import SessionSettings
from memd.indexing.transcript_due import due_at
from tests.bounds import shipped

NOW = 1_000_000.0
SETTINGS = SessionSettings(delta_bytes=1000, delta_messages=5, idle_seconds=120)


@pytest.mark.parametrize(
    ("came_bytes", "came_lines", "changed_at", "due"),
    [
        pytest.param(10, 1, NOW - 1, NOW + 119, id="a little, a moment ago"),
        pytest.param(999, 4, NOW - 60, NOW + 60, id="not quite enough"),
        pytest.param(1000, 0, NOW, NOW, id="enough bytes"),
        pytest.param(10, 5, NOW, NOW, id="enough messages"),
        pytest.param(10, 1, NOW - 120, NOW, id="quiet for long enough"),
        pytest.param(10, 1, NOW - 5000, NOW - 4880, id="quiet for longer"),
        pytest.param(0, 0, NOW, NOW, id="touched"),
        pytest.param(-500, 0, NOW, NOW, id="cut"),
        pytest.param(10, 1, NOW + 1.5, NOW + 121.5, id="clocks a little apart"),
        pytest.param(10, 1, NOW + 3600, NOW, id="written in the future"),
    ],
)
def test_when_a_transcript_is_due(came_bytes: int, came_lines: int, changed_at: float, due: float) -> None:
    """Enough has come, or it was quiet for long enough; what is not as it was is looked at at once."""
    found = due_at(came_bytes, came_lines, changed_at, SETTINGS, NOW)
    assert found == due if due > NOW else found <= NOW


@pytest.mark.parametrize(
    "settings",
    [
        SessionSettings(delta_bytes=0),
        SessionSettings(delta_messages=0),
        SessionSettings(idle_seconds=0),
    ],
)
def test_nought_means_any_growth(settings: SessionSettings) -> None:
    """With nothing to wait for, one byte is enough."""
    assert due_at(1, 0, NOW, settings, NOW) <= NOW


@given(
    st.integers(-(10**9), 10**9),
    st.integers(0, 10**6),
    st.floats(-1e12, 1e12),
    st.floats(0, 1e10),
)
def test_no_transcript_waits_for_longer_than_the_time_of_quiet(
    came_bytes: int, came_lines: int, changed_at: float, now: float
) -> None:
    """Whatever the clocks and the file say, it is due within the time of quiet and what clocks may be apart."""
    assert due_at(came_bytes, came_lines, changed_at, SETTINGS, now) <= now + SETTINGS.idle_seconds + 2.0


def test_a_time_that_is_ahead_tells_of_quiet_within_the_slack_of_clocks() -> None:
    """A little ahead is a clock that was read before; further ahead was set."""
    ahead, settings = shipped("memd.indexing.transcript_due._AHEAD_S"), SessionSettings()
    assert due_at(1, 0, 100.0 + ahead, settings, 100.0) == 100.0 + ahead + settings.idle_seconds
    assert due_at(1, 0, 100.1 + ahead, settings, 100.0) == 100.0
