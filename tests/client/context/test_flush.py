from datetime import UTC, datetime
from zoneinfo import ZoneInfo

import pytest
from hypothesis import given
from hypothesis import strategies as st

from memd_client.context.flush import (
    FORCE_TRANSCRIPT_BYTES,
    RESERVE_FLOOR_TOKENS,
    SOFT_THRESHOLD_TOKENS,
    flush_prompt,
    flush_system_prompt,
    flush_threshold,
    should_flush,
)
from tests.bounds import shipped

LEFT = RESERVE_FLOOR_TOKENS + SOFT_THRESHOLD_TOKENS


@pytest.mark.parametrize(
    ("window", "threshold"),
    [
        (200_000, 200_000 - LEFT),
        (1_000_000, 1_000_000 - LEFT),
        (4 * RESERVE_FLOOR_TOKENS, 4 * RESERVE_FLOOR_TOKENS - LEFT),
        (32_768, 20_576),
        (16_000, 8_000),
        (8_000, 3_000),
        (0, 0),
        (-5, 0),
    ],
)
def test_the_threshold_is_the_window_without_reserve_and_margin(window: int, threshold: int) -> None:
    """Window - 20,000 - 4,000, and on small windows never so little that no flush could come."""
    assert flush_threshold(window) == threshold


@given(st.integers(1, 3_000_000))
def test_every_window_has_room_before_and_after_a_flush(window: int) -> None:
    """Whatever the window, a flush can fire before the window is full."""
    threshold = flush_threshold(window)
    assert 0 < threshold <= window
    assert threshold >= window * 3 // 8 - 1


@pytest.mark.parametrize(
    ("used", "due", "reason"),
    [
        (175_999, False, "below_threshold"),
        (176_000, True, "due"),
        (250_000, True, "due"),
        (1, False, "below_threshold"),
    ],
)
def test_a_flush_is_due_from_the_threshold_on(used: int, due: bool, reason: str) -> None:
    """The threshold itself counts."""
    decision = should_flush(window_tokens=200_000, used_tokens=used)
    assert (decision.due, decision.reason, decision.used_tokens) == (due, reason, used)
    assert decision.threshold_tokens == 176_000


def test_there_is_one_flush_between_two_compactions() -> None:
    """After a flush the next is due only when the conversation has been compacted again."""
    first = should_flush(window_tokens=200_000, used_tokens=180_000, compactions=0, flushed_at=None)
    second = should_flush(window_tokens=200_000, used_tokens=180_000, compactions=0, flushed_at=0)
    third = should_flush(window_tokens=200_000, used_tokens=180_000, compactions=1, flushed_at=0)
    assert [first.due, second.due, third.due] == [True, False, True]
    assert second.reason == "already_flushed"


def test_a_workspace_that_is_read_only_is_not_flushed() -> None:
    """Nothing could be written."""
    decision = should_flush(window_tokens=200_000, used_tokens=199_000, is_writable=False)
    assert (decision.due, decision.reason) == (False, "read_only")


@pytest.mark.parametrize("used", [None, 0, -1])
def test_an_unknown_count_is_estimated_from_the_transcript(used: int | None) -> None:
    """Where nobody counted, four characters or one Chinese one are a token."""
    few = should_flush(window_tokens=32_768, used_tokens=used, unreported=["x" * 80_000])
    many = should_flush(window_tokens=32_768, used_tokens=used, unreported=["x" * 80_000, "库" * 576])
    assert (few.due, few.used_tokens) == (False, 20_000)
    assert (many.due, many.used_tokens) == (True, 20_576)


def test_what_was_said_since_the_last_report_counts() -> None:
    """A stale count is brought up to date."""
    decision = should_flush(window_tokens=200_000, used_tokens=170_000, unreported=["x" * 24_000])
    assert (decision.due, decision.used_tokens) == (True, 176_000)


def test_a_long_transcript_is_flushed_whatever_its_tokens() -> None:
    """Two megabytes on disk are enough, also where the window is not known."""
    for window in (200_000, 0):
        assert should_flush(window_tokens=window, used_tokens=5, transcript_bytes=FORCE_TRANSCRIPT_BYTES).due
    assert not should_flush(
        window_tokens=200_000, used_tokens=5, transcript_bytes=FORCE_TRANSCRIPT_BYTES - 1
    ).due


def test_an_unknown_window_is_not_flushed() -> None:
    """Without a window nobody knows when it is full."""
    assert should_flush(window_tokens=0, used_tokens=10**6).reason == "unknown_window"


def test_the_prompt_names_the_note_of_the_users_day() -> None:
    """In Shanghai it is already the next day."""
    prompt = flush_prompt(datetime(2026, 2, 9, 16, 30, tzinfo=UTC), ZoneInfo("Asia/Shanghai"))
    assert "memory/2026-02-10.md" in prompt
    assert "memory/2026-02-09.md" not in prompt
    assert "Current time: 2026-02-10T00:30+08:00" in prompt


def test_the_prompt_asks_to_append_and_to_be_silent() -> None:
    """Models that were not told to append have overwritten the note."""
    prompt = flush_prompt(datetime(2026, 2, 9, tzinfo=UTC), UTC)
    assert "Append" in prompt
    assert "Never overwrite" in prompt
    assert "read-only" in prompt
    assert "NO_REPLY" in prompt
    assert "NO_REPLY" in flush_system_prompt()


@pytest.mark.parametrize("window", [400, 4_000, 8_000])
def test_of_a_small_window_reserve_and_margin_take_only_a_share(window: int) -> None:
    """Each of them, where it is larger than that by itself."""
    reserve_share = shipped("memd_client.context.flush._RESERVE_SHARE")
    soft_share = shipped("memd_client.context.flush._SOFT_SHARE")
    assert flush_threshold(window, soft_tokens=0) == window * (1 - reserve_share)
    assert flush_threshold(window, reserve_tokens=0) == window * (1 - soft_share)
